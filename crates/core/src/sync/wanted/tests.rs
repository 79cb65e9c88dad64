//! Every guard between an answer and the target. No message holds a byte of a value.

use ferrvault_api::secret::Transform;

use super::*;
use crate::content::MAX_TOTAL_BYTES;
use crate::fixtures::{CANARY, pairs, resource};

struct Case {
    name: &'static str,
    transforms: Vec<Transform>,
    fate: Fate<'static>,
    token_key: Option<&'static str>,
    found: Vec<(&'static str, String)>,
    missing: Vec<&'static str>,
}

impl Case {
    fn new(name: &'static str, found: &[(&'static str, &str)]) -> Self {
        let found = found.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
        Self { name, transforms: Vec::new(), fate: Fate::Kept("app-env"), token_key: None, found, missing: Vec::new() }
    }

    fn without_target(self) -> Self {
        Self { fate: Fate::NotMade("app-env"), ..self }
    }

    fn missing(self, names: &[&'static str]) -> Self {
        Self { missing: names.to_vec(), ..self }
    }

    fn transformed(self, transforms: &[Transform]) -> Self {
        Self { transforms: transforms.to_vec(), ..self }
    }

    fn token(self, key: &'static str) -> Self {
        Self { token_key: Some(key), ..self }
    }

    fn decide(&self) -> Result<Content, Refusal> {
        let mut resource = resource();
        resource.spec.transforms.clone_from(&self.transforms);
        let question = WantedQuestion { resource: &resource, fate: self.fate, token_key: self.token_key };
        let content = self.found.iter().map(|(key, value)| (*key, value.as_str())).collect();
        let missing = self.missing.iter().map(|name| (*name).to_owned()).collect();
        wanted(question, Answer { content, missing })
    }
}

fn transform(type_: &str) -> Transform {
    Transform { type_: type_.to_owned(), ..Transform::default() }
}

fn rename(from: &str, to: &str) -> Transform {
    Transform { from: Some(from.to_owned()), to: Some(to.to_owned()), ..transform("rename") }
}

fn prefix(value: &str) -> Transform {
    Transform { value: Some(value.to_owned()), ..transform("prefix") }
}

fn expand(key: &str) -> Transform {
    Transform { key: Some(key.to_owned()), ..transform("jsonExpand") }
}

#[test]
fn an_answer_that_is_whole_is_wanted_as_transformed() {
    let cases = [
        (Case::new("as it came", &[("A", "1"), ("B", "")]), pairs(&[("A", "1"), ("B", "")])),
        (Case::new("for a target to be made", &[("A", "1")]).without_target(), pairs(&[("A", "1")])),
        (Case::new("transformed", &[("A", "1")]).transformed(&[prefix("X_")]), pairs(&[("X_A", "1")])),
        (Case::new("a bad key renamed", &[("a b", "1")]).transformed(&[rename("a b", "ab")]), pairs(&[("ab", "1")])),
        (
            Case::new("with the token", &[("token", "t"), ("A", "1")]).token("token"),
            pairs(&[("token", "t"), ("A", "1")]),
        ),
        (
            Case::new("with the token by a transform", &[("t", "t")])
                .token("token")
                .transformed(&[rename("t", "token")]),
            pairs(&[("token", "t")]),
        ),
    ];
    for (case, expected) in cases {
        assert_eq!(case.decide(), Ok(expected), "{}", case.name);
    }
}

#[test]
fn every_guard_refuses_by_its_reason_and_says_what_becomes_of_the_target() {
    use Reason::{EmptyAnswer, MissingKeys, SecretWriteFailed, TokenKeyMissing, TransformError};
    let large = "x".repeat(MAX_TOTAL_BYTES + 1);
    let cases: Vec<(Case, Reason, &[&str])> = vec![
        (
            Case::new("keys missing, target there", &[("A", CANARY)]).missing(&["B", "C"]),
            MissingKeys,
            &["vault \"prod\" does not have: B, C", "Secret \"app-env\" keeps its last content"],
        ),
        (
            Case::new("keys missing, no target", &[("A", CANARY)]).missing(&["B"]).without_target(),
            MissingKeys,
            &["does not have: B", "Secret \"app-env\" is not made"],
        ),
        (Case::new("all keys missing", &[]).missing(&["A"]), MissingKeys, &["does not have: A"]),
        (
            Case::new("nothing found, target there", &[]),
            EmptyAnswer,
            &["vault \"prod\" gave no key at all", "keeps its last content"],
        ),
        (Case::new("nothing found, no target", &[]).without_target(), EmptyAnswer, &["is not made"]),
        (
            Case::new("nothing left by transforms", &[("A", "{}")]).transformed(&[expand("A")]),
            EmptyAnswer,
            &["keeps its last content"],
        ),
        (
            Case::new("not base64", &[("A", CANARY)]).transformed(&[prefix("P"), transform("base64Decode")]),
            TransformError,
            &["transforms[1] (base64Decode): key \"PA\""],
        ),
        (
            Case::new("not JSON", &[("A", CANARY)]).transformed(&[expand("A")]),
            TransformError,
            &["transforms[0] (jsonExpand): key \"A\""],
        ),
        (
            Case::new("two that collide", &[("A", CANARY), ("B", "x")]).transformed(&[rename("A", "B")]),
            TransformError,
            &["key \"B\"", "written twice"],
        ),
        (
            Case::new("an unknown transform", &[("A", CANARY)]).transformed(&[transform("rot13")]),
            TransformError,
            &["rot13", "unknown type"],
        ),
        (
            Case::new("a key that Kubernetes refuses", &[("a b", CANARY)]),
            SecretWriteFailed,
            &["\"a b\"", "`transforms`"],
        ),
        (
            Case { found: vec![("A", large.clone())], ..Case::new("too large", &[]) },
            SecretWriteFailed,
            &["1048577 bytes", "1 MiB", "`selector.names`"],
        ),
        (
            Case { found: vec![("a b", large)], ..Case::new("a bad key and too large", &[]) },
            SecretWriteFailed,
            &["\"a b\"", "; ", "1 MiB"],
        ),
        (
            Case::new("the token's key is not there", &[("A", CANARY)]).token("token"),
            TokenKeyMissing,
            &["no key \"token\"", "left alone", "spec.target.name"],
        ),
        (
            Case::new("the token is empty", &[("token", ""), ("A", CANARY)]).token("token"),
            TokenKeyMissing,
            &["\"token\""],
        ),
        (
            Case::new("the token is blank, which is trimmed to nothing", &[("token", " \r\n\t")]).token("token"),
            TokenKeyMissing,
            &["\"token\""],
        ),
        (
            Case::new("the token is renamed away", &[("token", CANARY)]).token("token").transformed(&[prefix("X_")]),
            TokenKeyMissing,
            &["\"token\""],
        ),
    ];
    for (case, reason, fragments) in cases {
        let refusal = case.decide().expect_err(case.name);
        assert_eq!(refusal.reason, reason, "{}: {refusal:?}", case.name);
        for fragment in fragments {
            assert!(refusal.message.contains(fragment), "{}: {}", case.name, refusal.message);
        }
        assert!(!format!("{refusal:?}").contains(CANARY), "{}: a value is told", case.name);
        let missing = if reason == MissingKeys { case.missing.clone() } else { Vec::new() };
        assert_eq!(refusal.missing_keys, missing, "{}", case.name);
    }
}

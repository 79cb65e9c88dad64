//! The question for values, and the judgement of its answer.
//!
//! An answer is taken whole or not at all (invariant I4), and nothing that was not asked for is ever decoded.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use ferrvault_core::content::{Answer, Content};
use serde_json::value::RawValue;

use crate::encode;
use crate::error::VaultError;
use crate::upstream::shown_name;
use crate::wire;

/// Longest address of a call, path and query. RFC 9110 4.1 asks servers for 8,000 bytes, and common proxies stop a
/// request line at 8 KiB. With names of 40 characters that is about 190 keys.
pub(crate) const MAX_TARGET_BYTES: usize = 8_000;

/// Which of the two APIs is spoken, with the names only one of them needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Mode `cloud`: a vault by its name within a project.
    Cloud {
        /// The organization's name.
        organization: String,
        /// The project's name.
        project: String,
        /// Namespace of the resource that asks.
        namespace: String,
    },
    /// Mode `ferrvault`: the vault that the token is bound to.
    FerrVault,
}

/// A question for values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RevealRequest {
    /// Which API.
    pub scope: Scope,
    /// The vault.
    pub vault: String,
    /// The keys wanted; none means every key of the vault. Doubles are asked for once.
    pub names: Vec<String>,
    /// In mode `ferrvault`: the namespace to be named, where the token does not stand for one namespace alone. Mode `cloud`
    /// has it in its scope, because there it is always named.
    pub namespace: Option<String>,
}

impl RevealRequest {
    /// The keys wanted, each once, sorted; empty for every key. Refuses what the wire cannot carry.
    pub(crate) fn keys(&self) -> Result<BTreeSet<&str>, VaultError> {
        let check = match self.scope {
            Scope::Cloud { .. } => encode::check_listed_key,
            Scope::FerrVault => encode::check_key,
        };
        self.names.iter().map(|name| check(name).map(|()| name.as_str())).collect()
    }
}

/// Path and query of the reveal in mode `cloud`.
pub(crate) fn cloud_target(
    organization: &str,
    project: &str,
    vault: &str,
    keys: &BTreeSet<&str>,
) -> Result<String, VaultError> {
    let organization = encode::segment("organization", organization)?;
    let project = encode::segment("project", project)?;
    let vault = encode::segment("vault", vault)?;
    let mut target = format!("/api/v1/orgs/{organization}/projects/{project}/vaults/by-name/{vault}/secrets/reveal");
    for (index, key) in keys.iter().enumerate() {
        target.push_str(if index == 0 { "?names=" } else { "," });
        target.push_str(&encode::percent_encoded(key));
    }
    Ok(target)
}

/// Reads the answer of mode `cloud`.
pub(crate) fn read_cloud(body: &[u8], asked: &BTreeSet<&str>) -> Result<Answer, VaultError> {
    let answer: wire::CloudAnswer<'_> = wire::decode(body)?;
    let found = answer.secrets.0.into_iter().map(|(name, value)| (Cow::Owned(name), value));
    judge(asked, found, &answer.missing.unwrap_or_default().0)
}

/// Reads the answer of mode `ferrvault`.
pub(crate) fn read_operator(body: &[u8], asked: &BTreeSet<&str>) -> Result<Answer, VaultError> {
    let answer: wire::OperatorAnswer<'_> = wire::decode(body)?;
    let found = answer.hits.0.into_iter().map(|hit| (hit.name, hit.value));
    judge(asked, found, &answer.missing.unwrap_or_default().0)
}

/// Decides what the answer says about the keys asked for.
///
/// A key found twice, or found and missing at once, makes the whole answer worthless: there is no telling which half is
/// true. What is missing follows from what was asked and what came, not from the server's own list, which may be
/// incomplete.
fn judge<'a>(
    asked: &BTreeSet<&str>,
    found: impl Iterator<Item = (Cow<'a, str>, &'a RawValue)>,
    listed_missing: &[Cow<'a, str>],
) -> Result<Answer, VaultError> {
    let mut values = BTreeMap::new();
    for (name, value) in found {
        if values.contains_key(&*name) {
            return Err(VaultError::broken(format!("it has the key \"{}\" twice", shown_name(&name))));
        }
        values.insert(name, value);
    }
    if let Some(name) = listed_missing.iter().find(|name| values.contains_key(&***name)) {
        return Err(VaultError::broken(format!("it has the key \"{}\" and calls it missing", shown_name(name))));
    }
    if !asked.is_empty() {
        values.retain(|name, _| asked.contains(&**name));
    }
    let missing = asked.iter().filter(|name| !values.contains_key(**name)).map(|name| (*name).to_owned()).collect();
    let content = values
        .into_iter()
        .map(|(name, value)| {
            let value = wire::secret_text(&name, value)?;
            Ok((name.into_owned(), value))
        })
        .collect::<Result<_, VaultError>>()?;
    Ok(Answer { content: Content(content), missing })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(scope: Scope, names: &[&str]) -> RevealRequest {
        RevealRequest {
            scope,
            vault: "v".into(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            namespace: None,
        }
    }

    fn cloud() -> Scope {
        Scope::Cloud { organization: "o".into(), project: "p".into(), namespace: "n".into() }
    }

    /// Keys with their values, and the missing keys.
    fn shape(answer: &Answer) -> (Vec<(&str, &str)>, Vec<&str>) {
        let content = &answer.content.0;
        let values = content.iter().map(|(key, value)| (key.as_str(), str::from_utf8(value.expose()).unwrap()));
        (values.collect(), answer.missing.iter().map(String::as_str).collect())
    }

    #[test]
    fn doubles_are_asked_for_once_and_in_order() {
        for scope in [cloud(), Scope::FerrVault] {
            let request = request(scope, &["B", "A", "B"]);
            assert_eq!(request.keys().unwrap().into_iter().collect::<Vec<_>>(), ["A", "B"]);
        }
        assert!(request(cloud(), &["A,B"]).keys().is_err());
        assert!(request(Scope::FerrVault, &["A,B"]).keys().is_ok());
        assert!(request(Scope::FerrVault, &["A", ""]).keys().is_err());
    }

    #[test]
    fn the_address_separates_keys_with_plain_commas() {
        let target = |keys: &[&str]| cloud_target("o/o", "p p", "v?", &keys.iter().copied().collect()).unwrap();
        let path = "/api/v1/orgs/o%2Fo/projects/p%20p/vaults/by-name/v%3F/secrets/reveal";
        assert_eq!(target(&[]), path);
        assert_eq!(target(&["A"]), format!("{path}?names=A"));
        assert_eq!(target(&["A&x=1", "B"]), format!("{path}?names=A%26x%3D1,B"));
        for (organization, project, vault) in [("..", "p", "v"), ("o", ".", "v"), ("o", "p", "")] {
            assert!(cloud_target(organization, project, vault, &BTreeSet::new()).is_err());
        }
    }

    #[test]
    fn both_answers_mean_the_same() {
        let asked = BTreeSet::from(["A", "B", "C"]);
        let cloud = br#"{"secrets":{"B":"2\n","A":"1","X":12},"missing":["C"],"vault":{"id":"i"}}"#;
        let operator = br#"{"hits":[{"name":"B","value":"2\n","version":7,"fetched_at":"x"},{"name":"A","value":"1"},
            {"name":"X","value":{}}],"missing":["C"]}"#;
        for answer in [read_cloud(cloud, &asked).unwrap(), read_operator(operator, &asked).unwrap()] {
            assert_eq!(shape(&answer), (vec![("A", "1"), ("B", "2\n")], vec!["C"]), "X was not asked for");
        }
    }

    #[test]
    fn what_is_missing_is_computed() {
        let asked = BTreeSet::from(["A", "B"]);
        for (body, missing) in [
            (r#"{"secrets":{"A":"1"}}"#, vec!["B"]),
            (r#"{"secrets":{"A":"1"},"missing":null}"#, vec!["B"]),
            (r#"{"secrets":{"A":"1"},"missing":["B","Z"]}"#, vec!["B"]),
            (r#"{"secrets":{},"missing":[]}"#, vec!["A", "B"]),
            (r#"{"secrets":null,"missing":[]}"#, vec!["A", "B"]),
            (r#"{"secrets":{"A":"","B":""}}"#, vec![]),
        ] {
            assert_eq!(read_cloud(body.as_bytes(), &asked).unwrap().missing, missing, "{body}");
        }
    }

    #[test]
    fn without_names_every_key_is_taken() {
        let answer = read_cloud(br#"{"secrets":{"B":"2","A":"1"},"missing":["Z"]}"#, &BTreeSet::new()).unwrap();
        assert_eq!(shape(&answer), (vec![("A", "1"), ("B", "2")], vec![]));
    }

    #[test]
    fn a_contradictory_answer_is_broken() {
        let asked = BTreeSet::from(["A"]);
        for (body, what) in [
            (r#"{"secrets":{"A":"canary","A":"canary"}}"#, "it has the key \"A\" twice"),
            (r#"{"secrets":{"Z":"canary","Z":"canary"}}"#, "it has the key \"Z\" twice"),
            (r#"{"secrets":{"\u0041":"canary","A":"canary"}}"#, "it has the key \"A\" twice"),
            (r#"{"secrets":{"A":"canary"},"missing":["A"]}"#, "it has the key \"A\" and calls it missing"),
            (r#"{"secrets":{"A":["canary"]}}"#, "\"A\" is not a text"),
            (r#"{"secrets":{"A":null}}"#, "\"A\" is not a text"),
            (r#"{"secrets":{"A":"\ud800canary"}}"#, "\"A\" is not a text"),
        ] {
            assert_eq!(read_cloud(body.as_bytes(), &asked), Err(VaultError::broken(what)), "{body}");
        }
        let twice = br#"{"hits":[{"name":"A","value":"canary"},{"name":"A","value":"canary"}],"missing":[]}"#;
        assert_eq!(read_operator(twice, &asked), Err(VaultError::broken("it has the key \"A\" twice")));
        for body in [
            r#"{"secrets":{"A":"x"},"secrets":{}}"#,
            r#"{"secrets":"canary"}"#,
            r#"{"hits":[{"name":1,"value":"canary"}]}"#,
            r#"{"hits":null,"missing":[]}"#,
            r#"{"error":"x"}"#,
        ] {
            assert!(read_cloud(body.as_bytes(), &asked).is_err() && read_operator(body.as_bytes(), &asked).is_err());
        }
    }
}

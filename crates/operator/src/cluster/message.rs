//! Which part of a refusal by the API server may be shown to people.
//!
//! The server's sentence goes into a status, an event or a log, so it must be short, printable and free of what was
//! sent. Sentences about a write of a Secret are not repeated at all (invariant I8): validation quotes the offending
//! value, decoding errors quote the bytes around the fault, and an admission webhook says whatever it likes. What is
//! kept of those is rebuilt from parts that can only be names: verb, resource, policy, webhook, quota, field path. Of a
//! write that carried no value, what a policy or webhook said in its own words is what helps, so that is kept.

use kube::core::Status;
use kube::core::response::StatusCause;

/// Characters of a server's sentence that are shown. Two lines of a terminal; enough for verb, resource and scope.
pub(super) const SHOWN: usize = 200;

/// Characters of a whole message: a sentence, and before it what was tried and who refused.
pub(super) const LINE: usize = SHOWN + 120;

/// Longest name of a policy or webhook that is shown before its words.
const NAME: usize = 80;

/// Longest field path repeated: `data[` + a key of 253 characters + `]` would fill the message alone.
const PATH: usize = 80;

/// How much of a refusal may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quote {
    /// The sentence, cut.
    Sentence,
    /// Names only: the request carried the values of a Secret.
    NamesOnly,
}

/// `text` on one line, printable, at most `limit` characters.
pub(super) fn printable(text: &str, limit: usize) -> String {
    let mut shown = String::new();
    let mut length = 0;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if length > 0 {
            shown.push(' ');
            length += 1;
        }
        // Format characters (bidi overrides, zero widths) could make a message read as something else.
        for c in word.chars().map(|c| if is_invisible(c) { '?' } else { c }) {
            shown.push(c);
            length += 1;
        }
        if length > limit {
            let cut = limit.saturating_sub(1);
            shown = shown.chars().take(cut).collect();
            shown.push('…');
            break;
        }
    }
    shown
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// What may be said about `status`.
pub(super) fn shown(status: &Status, quote: Quote) -> String {
    if let Some(denied) = rbac_denial(&status.message) {
        return printable(&denied, SHOWN);
    }
    if let Some(denial) = Denial::of(&status.message) {
        return denial.shown(quote);
    }
    match quote {
        Quote::Sentence if !status.message.is_empty() => printable(&status.message, SHOWN),
        Quote::Sentence => printable(fallback(status), SHOWN),
        Quote::NamesOnly => printable(&names_only(status), SHOWN),
    }
}

/// `cannot VERB resource "R" in API group "G" …` as the authorizer words it, rebuilt from its parts.
fn rbac_denial(message: &str) -> Option<String> {
    let (_, rest) = message.split_once("cannot ")?;
    let (verb, rest) = rest.split_once(" resource \"")?;
    let (resource, rest) = rest.split_once("\" in API group \"")?;
    let (group, rest) = rest.split_once('"')?;
    if !is_name(verb) || !is_name(resource) || !(group.is_empty() || is_name(group)) {
        return None;
    }
    let whole = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
    if rest.starts_with(" at the cluster scope") {
        return Some(format!("cannot {verb} {whole} at the cluster scope"));
    }
    let (namespace, _) = rest.strip_prefix(" in the namespace \"")?.split_once('"')?;
    is_name(namespace).then(|| format!("cannot {verb} {whole} in the namespace {namespace}"))
}

/// What admission refused, taken apart. Only where the sentence opens like one: anywhere further in, the same words could
/// be a quoted value.
struct Denial<'m> {
    what: &'static str,
    name: &'m str,
    words: &'m str,
}

impl<'m> Denial<'m> {
    fn of(message: &'m str) -> Option<Self> {
        let rest = without_object(message);
        if let Some(rest) = rest.strip_prefix("admission webhook \"") {
            let (name, rest) = rest.split_once('"').unwrap_or((rest, ""));
            let words = rest.strip_prefix(" denied the request: ").unwrap_or_default();
            return Some(Self { what: "admission webhook", name, words });
        }
        let rest = rest.strip_prefix("ValidatingAdmissionPolicy '")?;
        let (name, rest) = rest.split_once('\'').unwrap_or((rest, ""));
        let words = rest.split_once(" denied request: ").map_or("", |(_, words)| words);
        Some(Self { what: "admission policy", name, words })
    }

    fn shown(&self, quote: Quote) -> String {
        let name = if is_name(self.name) { printable(self.name, NAME) } else { "(unnamed)".to_owned() };
        let who = format!("{} {name} denied it", self.what);
        let words = printable(self.words, SHOWN);
        if quote == Quote::NamesOnly || words.is_empty() { who } else { format!("{who}: {words}") }
    }
}

/// The sentence after `secrets "db" is forbidden: `, which the server puts before the words of whoever refused.
fn without_object(message: &str) -> &str {
    let after = || {
        let (resource, rest) = message.split_once(" \"")?;
        let (name, rest) = rest.split_once('"')?;
        let rest = rest.strip_prefix(" is forbidden: ")?;
        (is_name(resource) && is_name(name)).then_some(rest)
    };
    after().unwrap_or(message)
}

fn names_only(status: &Status) -> String {
    if let Some(rest) = without_object(&status.message).strip_prefix("exceeded quota: ") {
        let name = rest.split(',').next().filter(|name| is_name(name));
        return format!("exceeded quota {}", name.unwrap_or("(unnamed)"));
    }
    let causes = status.details.as_ref().map_or(&[][..], |details| details.causes.as_slice());
    let faults: Vec<String> = causes.iter().filter_map(fault).collect();
    if faults.is_empty() { fallback(status).to_owned() } else { faults.join(", ") }
}

/// One wrong field, in words for the kinds of fault that the API server knows.
fn fault(cause: &StatusCause) -> Option<String> {
    let (field, reason) = (cause.field.as_str(), cause.reason.as_str());
    if !is_name(reason) || !(field.is_empty() || is_path(field)) {
        return None;
    }
    let what = match reason {
        "FieldValueRequired" => "is required",
        "FieldValueInvalid" => "is invalid",
        "FieldValueForbidden" => "must not be set or changed",
        "FieldValueTooLong" => "is too long",
        "FieldValueNotSupported" => "is not supported",
        other if field.is_empty() => return Some(other.to_owned()),
        other => return Some(format!("{field}: {other}")),
    };
    Some(if field.is_empty() { format!("the object {what}") } else { format!("{field} {what}") })
}

fn fallback(status: &Status) -> &str {
    if is_name(&status.reason) { &status.reason } else { "the API server gave no reason" }
}

/// Names of objects, verbs, resources, groups and reasons: nothing else is made of these characters alone.
fn is_name(text: &str) -> bool {
    (1..=253).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._/:*".contains(&b))
}

fn is_path(text: &str) -> bool {
    (1..=PATH).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._/[]".contains(&b))
}

#[cfg(test)]
mod tests {
    use kube::core::response::StatusDetails;

    use super::*;

    const CANARY: &str = "hunter2-hunter2";

    fn refusal(message: &str, reason: &str, causes: &[(&str, &str)]) -> Status {
        let causes = causes
            .iter()
            .map(|(field, reason)| StatusCause {
                reason: (*reason).to_owned(),
                message: format!("Invalid value: \"{CANARY}\""),
                field: (*field).to_owned(),
            })
            .collect();
        let details = StatusDetails {
            name: String::new(),
            group: String::new(),
            kind: String::new(),
            uid: String::new(),
            causes,
            retry_after_seconds: 0,
        };
        Status::failure(message, reason).with_code(422).with_details(details)
    }

    #[test]
    fn a_refused_write_of_a_secret_is_told_in_names() {
        let cases: [(&str, Status, &str); 12] = [
            (
                "validation quotes the value",
                refusal(
                    &format!("Secret \"db\" is invalid: data[a b]: Invalid value: \"{CANARY}\""),
                    "Invalid",
                    &[("data[a-b]", "FieldValueInvalid"), ("type", "FieldValueForbidden")],
                ),
                "data[a-b] is invalid, type must not be set or changed",
            ),
            (
                "decoding quotes the bytes around the fault",
                refusal(&format!("error decoding patch: ...|:\"{CANARY}\"|..."), "BadRequest", &[]),
                "BadRequest",
            ),
            (
                "a webhook says what it likes",
                refusal(
                    &format!("admission webhook \"guard.example.com\" denied the request: {CANARY} is weak"),
                    "Forbidden",
                    &[(CANARY, "Weak")],
                ),
                "admission webhook guard.example.com denied it",
            ),
            (
                "so does a policy",
                refusal(
                    &format!(
                        "secrets \"db\" is forbidden: ValidatingAdmissionPolicy 'no-friday' with binding 'all' denied request: {CANARY}"
                    ),
                    "Invalid",
                    &[("", "Invalid")],
                ),
                "admission policy no-friday denied it",
            ),
            (
                "a value that reads like a policy",
                refusal(
                    &format!(
                        "Secret \"db\" is invalid: data[a]: Invalid value: \"is forbidden: ValidatingAdmissionPolicy '{CANARY}'\""
                    ),
                    "Invalid",
                    &[("data[a]", "FieldValueInvalid")],
                ),
                "data[a] is invalid",
            ),
            (
                "a value that reads like a webhook",
                refusal(&format!("error decoding: admission webhook \"{CANARY}\" denied"), "BadRequest", &[]),
                "BadRequest",
            ),
            (
                "a value that reads like a quota",
                refusal(&format!("no: exceeded quota: {CANARY}, 1"), "Invalid", &[]),
                "Invalid",
            ),
            (
                "even its name is checked",
                refusal(&format!("admission webhook \"{CANARY} \" denied the request"), "Forbidden", &[]),
                "admission webhook (unnamed) denied it",
            ),
            (
                "quota",
                refusal(
                    "secrets \"db\" is forbidden: exceeded quota: small, requested: secrets=1, used: secrets=9",
                    "Forbidden",
                    &[],
                ),
                "exceeded quota small",
            ),
            (
                "the authorizer",
                refusal(
                    "secrets \"db\" is forbidden: User \"system:serviceaccount:ops:fv\" cannot patch resource \"secrets\" in API group \"\" in the namespace \"shop\"",
                    "Forbidden",
                    &[],
                ),
                "cannot patch secrets in the namespace shop",
            ),
            (
                "a path that is none is left out",
                refusal("no", "Invalid", &[("data[\"a = 1\"]", "FieldValueInvalid")]),
                "Invalid",
            ),
            ("nothing at all", refusal("", "", &[]), "the API server gave no reason"),
        ];
        for (case, status, expected) in cases {
            let text = shown(&status, Quote::NamesOnly);
            assert_eq!(text, expected, "{case}");
            assert!(!text.contains(CANARY), "{case}");
        }
    }

    #[test]
    fn what_refused_a_write_without_values_is_told_in_its_own_words() {
        let long = "x".repeat(300);
        for (case, message, expected) in [
            (
                "a policy",
                "deployments.apps \"api\" is forbidden: ValidatingAdmissionPolicy 'no-friday' with binding 'all' denied \
                 request: no restarts on Friday, ask the team",
                "admission policy no-friday denied it: no restarts on Friday, ask the team".to_owned(),
            ),
            (
                "a webhook",
                "admission webhook \"guard.example.com\" denied the request: template \"x\"\n is frozen",
                "admission webhook guard.example.com denied it: template \"x\" is frozen".to_owned(),
            ),
            (
                "a webhook without a word",
                "admission webhook \"guard.example.com\" denied the request without explanation",
                "admission webhook guard.example.com denied it".to_owned(),
            ),
            (
                "one of many words",
                &format!("admission webhook \"guard.example.com\" denied the request: {long}"),
                format!("admission webhook guard.example.com denied it: {}…", "x".repeat(SHOWN - 1)),
            ),
        ] {
            assert_eq!(shown(&refusal(message, "Invalid", &[]), Quote::Sentence), expected, "{case}");
        }
    }

    #[test]
    fn a_missing_permission_is_told_without_the_account() {
        let status = refusal(
            "ferrvaultsecrets.ferrvault.com is forbidden: User \"x\" cannot list resource \"ferrvaultsecrets\" in API group \"ferrvault.com\" at the cluster scope",
            "Forbidden",
            &[],
        );
        assert_eq!(shown(&status, Quote::Sentence), "cannot list ferrvaultsecrets.ferrvault.com at the cluster scope");
    }

    #[test]
    fn other_sentences_are_cut_to_what_fits() {
        let status = refusal(&"word \n\u{1b}[31m".repeat(90), "Invalid", &[]);
        let text = shown(&status, Quote::Sentence);
        assert_eq!(text.chars().count(), SHOWN);
        assert!(text.ends_with('…'));
        assert!(!text.chars().any(char::is_control));
    }

    #[test]
    fn printable_counts_characters_and_keeps_what_fits() {
        assert_eq!(printable("äöü äöü", 7), "äöü äöü");
        assert_eq!(printable("äöü äöü", 6), "äöü ä…");
        assert_eq!(printable(" a\u{202e}b\t\tc ", 20), "a?b c");
        assert_eq!(printable("", 5), "");
    }
}

//! Rules that make chosen calls go wrong, for tests.
//!
//! Deciding only: which rule a call meets and what is then to happen. Carrying it out is the front's and the transport's.
//! Rules are asked in the order in which they were added, and the first that applies is the only one.

use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// 5 MiB: above the 4 MiB that clients accept.
const BIG_BODY: usize = 5 * 1024 * 1024;

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Which calls it is for; everything that is absent matches.
    #[serde(default, rename = "match")]
    pub calls: CallPattern,
    /// What happens to them.
    pub action: Action,
    /// Matching calls let through before the first one is touched.
    #[serde(default)]
    pub skip: u32,
    /// Calls touched before the rule is used up; absent means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
}

/// Which calls a rule is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallPattern {
    /// HTTP method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// What the path starts with, as it is on the wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<String>,
    /// Name of the vault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vault: Option<String>,
}

/// What happens to a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// It is answered as usual, later.
    Delay {
        /// Milliseconds to wait before anything is done.
        ms: u64,
    },
    /// It is never answered and nothing is done; the connection stays open.
    Stall,
    /// It is done; the answer stops in the middle of its body and the connection stays open.
    StallBody,
    /// Nothing is done and the connection is reset before the answer begins.
    Reset,
    /// It is done and the connection is reset before the answer begins.
    ResetAfter,
    /// It is done and the connection is reset in the middle of the answer's body.
    ResetBody,
    /// Nothing is done and this is answered.
    Respond {
        /// The status.
        status: u16,
        /// The body, sent as it is; an error in the usual shape when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<String>,
        /// The header `Retry-After`: seconds, or any text such as a date.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<RetryAfter>,
    },
    /// Nothing is done and the answer is 200 with a body that claims to be JSON and is not.
    Nonsense,
    /// Nothing is done and the answer is 200 with a well-formed reveal that is very long.
    BigBody {
        /// Length of the value in it; 5 MiB when absent.
        #[serde(default = "big_body")]
        bytes: usize,
    },
    /// Nothing is done and the answer is 200 without a body.
    Empty,
    /// It is done and the answer is the first half of its JSON, with a length that says so.
    Truncated,
}

impl Action {
    /// Its name, as rules and the log of requests write it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Delay { .. } => "delay",
            Self::Stall => "stall",
            Self::StallBody => "stall_body",
            Self::Reset => "reset",
            Self::ResetAfter => "reset_after",
            Self::ResetBody => "reset_body",
            Self::Respond { .. } => "respond",
            Self::Nonsense => "nonsense",
            Self::BigBody { .. } => "big_body",
            Self::Empty => "empty",
            Self::Truncated => "truncated",
        }
    }
}

/// The two forms that `Retry-After` has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RetryAfter {
    /// Seconds.
    Seconds(u64),
    /// Anything else.
    Text(String),
}

fn big_body() -> usize {
    BIG_BODY
}

/// A rule that was added, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleState {
    /// Names the rule, for taking it away again.
    pub id: u64,
    /// The rule.
    pub rule: Rule,
    /// Calls that matched it, those let through by `skip` included.
    pub matched: u64,
    /// Calls that it was applied to.
    pub applied: u64,
}

/// The rules of a server.
#[derive(Debug, Default)]
pub struct Faults(Mutex<Added>);

#[derive(Debug, Default)]
struct Added {
    rules: Vec<RuleState>,
    last_id: u64,
}

impl Faults {
    /// Adds a rule behind the others.
    pub fn add(&self, rule: Rule) -> u64 {
        let mut added = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        added.last_id += 1;
        let id = added.last_id;
        added.rules.push(RuleState { id, rule, matched: 0, applied: 0 });
        id
    }

    /// The rules in order, used-up ones included.
    pub fn list(&self) -> Vec<RuleState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).rules.clone()
    }

    /// Takes one rule away; false when there is none with this `id`.
    pub fn remove(&self, id: u64) -> bool {
        let mut added = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = added.rules.len();
        added.rules.retain(|state| state.id != id);
        added.rules.len() < before
    }

    /// Takes all rules away. Calls that a rule already holds stay held.
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).rules.clear();
    }

    /// What is to happen to this call; counts it.
    pub(crate) fn claim(&self, method: &str, path: &str, vault: Option<&str>) -> Option<Action> {
        let mut added = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for state in &mut added.rules {
            let used_up = state.rule.times.is_some_and(|times| state.applied >= u64::from(times));
            if used_up || !state.rule.calls.matches(method, path, vault) {
                continue;
            }
            state.matched += 1;
            if state.matched <= u64::from(state.rule.skip) {
                continue;
            }
            state.applied += 1;
            return Some(state.rule.action.clone());
        }
        None
    }
}

impl CallPattern {
    fn matches(&self, method: &str, path: &str, vault: Option<&str>) -> bool {
        self.method.as_deref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(method))
            && self.path_prefix.as_deref().is_none_or(|prefix| path.starts_with(prefix))
            && self.vault.as_deref().is_none_or(|wanted| vault == Some(wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::{Action, CallPattern, Faults, Rule};

    fn rule(calls: CallPattern, action: Action, skip: u32, times: Option<u32>) -> Rule {
        Rule { calls, action, skip, times }
    }

    #[test]
    fn the_first_rule_that_is_not_used_up_is_the_only_one() {
        let faults = Faults::default();
        faults.add(rule(CallPattern::default(), Action::Stall, 0, Some(1)));
        faults.add(rule(CallPattern::default(), Action::Empty, 1, Some(1)));
        let claim = || faults.claim("GET", "/health", None);
        assert_eq!(claim(), Some(Action::Stall));
        assert_eq!(claim(), None, "the second rule lets its first call through");
        assert_eq!(claim(), Some(Action::Empty));
        assert_eq!(claim(), None);
        let states: Vec<_> = faults.list().into_iter().map(|state| (state.matched, state.applied)).collect();
        assert_eq!(states, [(1, 1), (2, 1)]);
    }

    #[test]
    fn every_part_of_a_pattern_must_match() {
        let pattern = CallPattern {
            method: Some("post".to_owned()),
            path_prefix: Some("/v1/operator".to_owned()),
            vault: Some("app".to_owned()),
        };
        let cases = [
            ("all parts", "POST", "/v1/operator/secrets/reveal", Some("app"), true),
            ("another method", "GET", "/v1/operator/secrets/reveal", Some("app"), false),
            ("another path", "POST", "/v1", Some("app"), false),
            ("another vault", "POST", "/v1/operator/secrets/reveal", Some("ap"), false),
            ("no vault", "POST", "/v1/operator/secrets/reveal", None, false),
        ];
        for (case, method, path, vault, expected) in cases {
            assert_eq!(pattern.matches(method, path, vault), expected, "{case}");
        }
    }

    #[test]
    fn rules_read_as_they_are_documented_and_typing_errors_are_refused() {
        let rule: Rule = serde_json::from_str(
            r#"{"match":{"method":"POST","vault":"app"},
                "action":{"kind":"respond","status":429,"retry_after":7},"times":3}"#,
        )
        .unwrap();
        assert_eq!(rule.times, Some(3));
        for wrong in [
            r#"{"action":{"kind":"delay"}}"#,
            r#"{"action":{"kind":"explode"}}"#,
            r#"{"action":{"kind":"stall"},"time":3}"#,
            r#"{"match":{"path":"/"},"action":{"kind":"stall"}}"#,
        ] {
            assert!(serde_json::from_str::<Rule>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn removed_and_cleared_rules_apply_no_more() {
        let faults = Faults::default();
        let id = faults.add(rule(CallPattern::default(), Action::Reset, 0, None));
        assert!(faults.remove(id));
        assert!(!faults.remove(id));
        faults.add(rule(CallPattern::default(), Action::Reset, 0, None));
        faults.clear();
        assert_eq!(faults.claim("GET", "/", None), None);
    }
}

//! What a rotation leaves behind for whoever looks later. The story runs each of these commands and believes none that
//! shows nothing; the ending recommends the same ones.

use ferrvault_api::marks;

use super::super::objects::{NAMESPACE, RESOURCE, WORKLOAD};

/// What the operator logs of a rotation: that the Secret was written, and that a workload was restarted.
pub(super) const LOGGED: [&str; 2] = ["target written", "workload restarted"];

/// A command of kubectl that shows a rotation.
pub(super) struct Trace {
    kind: &'static str,
    name: &'static str,
    output: &'static str,
    /// What it tells, for who reads the command.
    pub(super) tells: &'static str,
    /// What is in the answer when there was a rotation.
    shows: &'static [&'static str],
}

/// All of them.
pub(super) fn traces() -> [Trace; 3] {
    [
        Trace {
            kind: "fvs",
            name: RESOURCE,
            output: "wide",
            tells: "the column ROLLOUT: whether a restart is owed",
            shows: &["ROLLOUT", "Restarted"],
        },
        Trace {
            kind: "fvs",
            name: RESOURCE,
            output: "jsonpath={.status.lastChangedAt}",
            tells: "when the content last changed",
            shows: &["T", "Z"],
        },
        Trace {
            kind: "deployment",
            name: WORKLOAD,
            output: "jsonpath={.spec.template.metadata.annotations}",
            tells: "when its pods were restarted, and for which version of the Secret",
            shows: &[marks::RESTARTED_AT, marks::CONTENT_HASH],
        },
    ]
}

impl Trace {
    pub(super) fn arguments(&self) -> [&'static str; 7] {
        ["get", self.kind, self.name, "-n", NAMESPACE, "-o", self.output]
    }

    pub(super) fn is_in(&self, printed: &str) -> bool {
        self.shows.iter().all(|part| printed.contains(part))
    }
}

/// As a person types it: braces are the shell's unless they are quoted.
impl std::fmt::Display for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let quote = if self.output.contains('{') { "'" } else { "" };
        write!(f, "kubectl get {} {} -n {NAMESPACE} -o {quote}{}{quote}", self.kind, self.name, self.output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_copied_into_a_shell() {
        let typed: Vec<String> = traces().iter().map(ToString::to_string).collect();
        assert_eq!(typed[0], "kubectl get fvs shop -n ferrvault-demo -o wide");
        assert_eq!(typed[1], "kubectl get fvs shop -n ferrvault-demo -o 'jsonpath={.status.lastChangedAt}'");
    }

    #[test]
    fn an_answer_that_says_nothing_of_a_rotation_is_none() {
        for trace in traces() {
            assert!(!trace.is_in("") && !trace.is_in("{}"), "{trace}");
        }
        let [wide, changed, template] = traces();
        assert!(!wide.is_in("NAME   VAULT   READY   REASON   FRESH\nshop   demo-shop   True   Synced   True"));
        assert!(changed.is_in("2026-01-02T03:04:05Z"));
        assert!(template.is_in(r#"{"ferrvault.com/content-hash.u":"v","ferrvault.com/restarted-at":"t"}"#));
    }
}

//! Who may do what: rules as RBAC has them, additive, per identity.
//!
//! An identity without any rules may do everything, so that tests that are not about access need not speak of it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::object;

/// One question to the rules, and one row of a `SelfSubjectAccessReview`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attempt<'a> {
    pub(crate) verb: &'a str,
    pub(crate) group: &'a str,
    /// Plural, with `/subresource` where there is one.
    pub(crate) resource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

/// What one Role or `ClusterRole` grants, and where.
#[derive(Clone, Debug)]
struct Grant {
    /// Empty: everywhere.
    namespace: String,
    groups: Vec<String>,
    resources: Vec<String>,
    names: Vec<String>,
    verbs: Vec<String>,
}

impl Grant {
    fn covers(&self, attempt: &Attempt<'_>) -> bool {
        let any = |list: &[String], wanted: &str| list.iter().any(|one| one == "*" || one == wanted);
        (self.namespace.is_empty() || self.namespace == attempt.namespace)
            && any(&self.groups, attempt.group)
            && any(&self.resources, attempt.resource)
            && any(&self.verbs, attempt.verb)
            && (self.names.is_empty() || self.names.iter().any(|name| name == attempt.name))
    }
}

/// The rules.
#[derive(Clone, Debug, Default)]
pub(crate) struct Access {
    grants: BTreeMap<String, Vec<Grant>>,
    denied: Vec<(String, String, String)>,
}

impl Access {
    /// Adds the rules of a Role (bound in `namespace`) or `ClusterRole` (bound everywhere when `namespace` is empty).
    pub(crate) fn grant(&mut self, who: &str, namespace: &str, role: &Value) {
        let grants = object::list(role, "/rules").iter().map(|rule| Grant {
            namespace: namespace.to_owned(),
            groups: object::strings(rule.get("apiGroups")),
            resources: object::strings(rule.get("resources")),
            names: object::strings(rule.get("resourceNames")),
            verbs: object::strings(rule.get("verbs")),
        });
        self.grants.entry(who.to_owned()).or_default().extend(grants);
    }

    /// Takes one verb on one resource away, whatever the grants say.
    pub(crate) fn deny(&mut self, who: &str, verb: &str, resource: &str) {
        self.denied.push((who.to_owned(), verb.to_owned(), resource.to_owned()));
    }

    /// Gives back what `deny` took.
    pub(crate) fn allow_again(&mut self, who: &str, verb: &str, resource: &str) {
        self.denied.retain(|(denied, what, on)| !(denied == who && what == verb && on == resource));
    }

    /// Whether `who` may.
    pub(crate) fn allows(&self, who: &str, attempt: &Attempt<'_>) -> bool {
        let denied = self
            .denied
            .iter()
            .any(|(denied, verb, resource)| denied == who && verb == attempt.verb && resource == attempt.resource);
        let granted = self.grants.get(who).is_none_or(|grants| grants.iter().any(|grant| grant.covers(attempt)));
        granted && !denied
    }

    /// The sentence of the 403 answer.
    pub(crate) fn refusal_text(who: &str, attempt: &Attempt<'_>) -> String {
        let place = if attempt.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace \"{}\"", attempt.namespace)
        };
        format!(
            "User \"{who}\" cannot {} resource \"{}\" in API group \"{}\" {place}",
            attempt.verb, attempt.resource, attempt.group
        )
    }
}

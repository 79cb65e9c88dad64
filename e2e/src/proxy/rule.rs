//! Which calls go wrong, and how. Deciding only: carrying it out is the proxy's.

use std::time::Duration;

use http::{Method, StatusCode};

/// What is done to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is sent on after a while.
    Delay(Duration),
    /// It is not sent on, and not answered.
    Hang,
    /// It is sent on; the answer is kept back.
    Swallow,
    /// It is not sent on; this is the answer.
    Refuse(StatusCode),
    /// It is answered, and no byte of the answer's body arrives: nor of those that are under way.
    Silence,
    /// It is not sent on, and of answers that are under way no further byte arrives. Nothing is reset.
    BlackHole,
}

impl Fault {
    /// Whether bodies that are under way stand still.
    const fn stops_bodies(self) -> bool {
        matches!(self, Self::Silence | Self::BlackHole)
    }
}

/// Some calls; what is not said matches.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    method: Option<Method>,
    path: Option<String>,
    watch: Option<bool>,
}

impl Calls {
    /// All of them.
    pub fn all() -> Self {
        Self::default()
    }

    /// Those whose path has this in it: `/deployments/web`, `/ferrvaultsecrets`.
    pub fn with_path(part: impl Into<String>) -> Self {
        Self { path: Some(part.into()), ..Self::default() }
    }

    /// Of these, those of this method.
    #[must_use]
    pub fn method(mut self, method: Method) -> Self {
        self.method = Some(method);
        self
    }

    /// Of these, the watches.
    #[must_use]
    pub fn watches(mut self) -> Self {
        self.watch = Some(true);
        self
    }

    fn matches(&self, call: &Call) -> bool {
        self.method.as_ref().is_none_or(|method| *method == call.method)
            && self.path.as_ref().is_none_or(|part| call.path.contains(part.as_str()))
            && self.watch.is_none_or(|watch| watch == call.is_watch)
    }
}

/// What a rule is held against.
#[derive(Clone, Debug)]
pub(super) struct Call {
    method: Method,
    path: String,
    is_watch: bool,
}

impl Call {
    pub(super) fn new(method: &Method, path: &str, query: Option<&str>) -> Self {
        let mut parameters = query.unwrap_or_default().split('&');
        let is_watch = parameters.any(|parameter| matches!(parameter, "watch=true" | "watch=1"));
        Self { method: method.clone(), path: path.to_owned(), is_watch }
    }
}

/// The rules that hold at one moment. Of those that match a call, the first counts.
pub(super) type Rules = Vec<(Calls, Fault)>;

/// What happens to `call` before it is answered.
pub(super) fn fault_for(rules: &Rules, call: &Call) -> Option<Fault> {
    rules.iter().find(|(calls, _)| calls.matches(call)).map(|(_, fault)| *fault)
}

/// Whether the body of the answer to `call` stands still.
pub(super) fn body_stands_still(rules: &Rules, call: &Call) -> bool {
    fault_for(rules, call).is_some_and(Fault::stops_bodies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_for_the_calls_that_it_describes() {
        let patch = Call::new(&Method::PATCH, "/apis/apps/v1/namespaces/shop/deployments/web", None);
        let list = Call::new(&Method::GET, "/apis/ferrvault.com/v1alpha1/ferrvaultsecrets", Some("limit=500"));
        let watch = Call::new(&Method::GET, "/apis/ferrvault.com/v1alpha1/ferrvaultsecrets", Some("a=b&watch=true"));
        for (case, calls, matching) in [
            ("all", Calls::all(), [true, true, true]),
            ("one workload", Calls::with_path("/deployments/web"), [true, false, false]),
            ("its reads", Calls::with_path("/deployments/web").method(Method::GET), [false, false, false]),
            ("every watch", Calls::all().watches(), [false, false, true]),
            ("the watch of one kind", Calls::with_path("/ferrvaultsecrets").watches(), [false, false, true]),
            ("patches", Calls::all().method(Method::PATCH), [true, false, false]),
        ] {
            assert_eq!([&patch, &list, &watch].map(|call| calls.matches(call)), matching, "{case}");
        }
    }

    #[test]
    fn the_first_rule_that_matches_counts() {
        let call = Call::new(&Method::GET, "/api/v1/secrets", None);
        let rules = vec![
            (Calls::with_path("/secrets"), Fault::Refuse(StatusCode::SERVICE_UNAVAILABLE)),
            (Calls::all(), Fault::BlackHole),
        ];
        assert_eq!(fault_for(&rules, &call), Some(Fault::Refuse(StatusCode::SERVICE_UNAVAILABLE)));
        assert!(!body_stands_still(&rules, &call));
        assert!(body_stands_still(&rules, &Call::new(&Method::GET, "/version", None)));
        assert_eq!(fault_for(&Rules::new(), &call), None);
    }
}

use super::*;
use crate::fixtures::{condition_since_10, in_order, resource, version, with_status, workload};

#[test]
fn the_workloads_are_looked_at_once_per_generation_and_when_somebody_asks() {
    let listing = |mut resource: FerrVaultSecret| {
        resource.spec.rollout_restart = vec![workload("api")];
        resource
    };
    let said = |generation, status: &str| {
        let mut said = condition_since_10(condition::ROLLOUT_RESTARTED, status, "Restarted", "");
        said.observed_generation = Some(generation);
        let mut status = in_order(&version(1, "A"));
        status.conditions = vec![condition_since_10(condition::READY, "True", "Synced", ""), said];
        with_status(status)
    };
    let asked = |mut resource: FerrVaultSecret, handled: Option<&str>| {
        let asks = [(ferrvault_api::marks::REFRESH.to_owned(), "2".to_owned())];
        resource.metadata.annotations = Some(asks.into());
        resource.status.as_mut().unwrap().last_handled_refresh = handled.map(str::to_owned);
        resource
    };
    for (case, resource, expected) in [
        ("a new resource", listing(resource()), true),
        ("a new one without a list", resource(), false),
        ("looked at", listing(said(3, "True")), false),
        ("edited since", listing(said(2, "True")), true),
        ("edited, and the list is empty", said(2, "True"), false),
        ("what was owed is not any more", listing(said(3, "False")), true),
        ("asked for", asked(listing(said(3, "True")), Some("1")), true),
        ("asked for and done", asked(listing(said(3, "True")), Some("2")), false),
    ] {
        assert_eq!(look_is_due(&resource), expected, "{case}");
    }
}

//! Messages: short enough for a terminal, with what matters kept, and without a byte of a value.

use ferrvault_api::secret::Selector;

use super::*;
use crate::fixtures::{content, workload};
use crate::restart::{WorkloadOutcome, settle};
use crate::sync::{Fate, WantedQuestion, wanted};

#[track_caller]
fn assert_short(rendered: &Rendered) {
    for condition in &rendered.status.conditions {
        assert!(condition.message.chars().count() <= MAX_MESSAGE, "{condition:?}");
    }
    for told in &rendered.transitions {
        assert!(told.message.chars().count() <= MAX_MESSAGE, "{told:?}");
    }
}

#[test]
fn a_message_of_any_length_is_cut_between_characters() {
    for length in [MAX_MESSAGE - 1, MAX_MESSAGE, MAX_MESSAGE + 1, 10 * MAX_MESSAGE] {
        let report = SyncReport::Refused(Refusal::new(Reason::TransformError, "ü".repeat(length)));
        let rendered = render(&resource(), &report, &RestartReport::NotDue, at(NOW));
        assert_short(&rendered);
        let message = &ready(&rendered.status).message;
        assert_eq!(message.ends_with('…'), length > MAX_MESSAGE, "{length}");
        assert_eq!(message.chars().count(), length.min(MAX_MESSAGE), "{length}");
        assert_eq!(rendered.transitions[0].message, *message);
    }
}

#[test]
fn the_last_success_is_told_however_long_the_refusal_is() {
    for length in [0, 400, 470, MAX_MESSAGE, 5000] {
        let report = SyncReport::Refused(Refusal::new(Reason::Unreachable, "ü".repeat(length)));
        let rendered = render(&resource_in_order(), &report, &RestartReport::NotDue, at(NOW));
        assert_short(&rendered);
        let message = &ready(&rendered.status).message;
        assert!(message.ends_with("; last synced at 2026-01-01T00:00:10Z"), "{length}: {message}");
    }
    assert_short(&render_timeout(&resource_in_order(), &"x".repeat(5000), "2m0s", None, at(NOW)));
}

#[test]
fn the_last_success_is_told_in_whole_seconds() {
    let synced_at = Timestamp::from_millisecond(1_767_225_610_999).unwrap();
    let before = FerrVaultSecretStatus { last_synced_at: Some(Time(synced_at)), ..in_order(&version(1, "A")) };
    let status = render(&with_status(before), &refused(Reason::Unreachable), &RestartReport::NotDue, at(NOW)).status;
    assert_eq!(ready(&status).message, "why; last synced at 2026-01-01T00:00:10Z");
}

#[test]
fn hundreds_of_workloads_do_not_fill_a_terminal() {
    let b = version(2, "B");
    for outcome in [
        WorkloadOutcome::Missing,
        WorkloadOutcome::Failed("forbidden".to_owned()),
        WorkloadOutcome::Restarted { paused: true },
    ] {
        let outcomes: Vec<_> =
            (0..300).map(|index| (workload(&format!("workload-{index}")), outcome.clone())).collect();
        let settled = settle(&b, &[], &outcomes, at(NOW));
        let report = RestartReport::Owed { current: b.clone(), settled };
        let rendered = render(&resource_in_order(), &SyncReport::NotDue, &report, at(NOW));
        assert_short(&rendered);
        assert_eq!(rendered.status.rollouts.len(), 300, "each has its own entry");
    }
}

#[test]
fn names_that_are_selected_twice_are_pointed_out() {
    let message = |names: &[&str]| {
        let mut found = resource();
        found.spec.selector = Some(Selector { names: names.iter().map(|name| (*name).to_owned()).collect() });
        let report = synced(&version(1, "A"), Change::Unchanged);
        ready(&render(&found, &report, &RestartReport::NotDue, at(NOW)).status).message.clone()
    };
    assert_eq!(message(&[]), "1 key(s) synced into app-env");
    assert_eq!(message(&["A", "B"]), "1 key(s) synced into app-env");
    let twice = "1 key(s) synced into app-env; spec.selector.names lists A, B more than once";
    assert_eq!(message(&["B", "A", "C", "A", "B", "A"]), twice);
}

/// From an answer full of values to every text that a pass leaves behind.
#[test]
fn no_text_of_a_status_holds_a_byte_of_a_value() {
    let transforms = ["base64Decode", "jsonExpand", "rot13"];
    for (index, type_) in transforms.into_iter().enumerate() {
        let fate = if index % 2 == 0 { Fate::Kept("app-env") } else { Fate::Edited("app-env") };
        let mut found = resource_in_order();
        found.spec.transforms = serde_json::from_value(serde_json::json!([{ "type": type_, "key": "KEY" }])).unwrap();
        let question = WantedQuestion { resource: &found, fate, token_key: None };
        let answer = crate::content::Answer { content: content(CANARY), missing: Vec::new() };
        let refusal = wanted(question, answer).expect_err(type_);
        let rendered = render(&found, &SyncReport::Refused(refusal), &RestartReport::NotDue, at(NOW));
        let told = format!("{rendered:?} {}", serde_json::to_string(&rendered.status).unwrap());
        assert!(!told.contains(CANARY), "{type_}: {told}");
    }
}

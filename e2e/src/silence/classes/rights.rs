//! Rights that are withdrawn and given back.

use std::time::{Duration, Instant};

use k8s_openapi::api::rbac::v1::PolicyRule;

use super::{LIMIT, RECOVERY, ROLLOUT, STALE, stuck};
use crate::own::rules_for;
use crate::silence::alerts::Alert;
use crate::silence::lab::{Lab, SHOP};
use crate::silence::trial::{Sign, Signs, Trial};

/// For how long the right is away in all, as the story of the incident has it.
const A_MINUTE: Duration = Duration::from_mins(1);

/// 1: the incident. The operator of old waited for ever on a list of workloads that it was not allowed to make.
pub(super) async fn apps(lab: &Lab) -> Trial<'_> {
    // Neither list nor watch is granted, nor needed: whoever granted them may withdraw them.
    let more = |rules: &mut Vec<PolicyRule>| {
        rules_for(rules, "deployments").next().unwrap().verbs.extend(["list".to_owned(), "watch".to_owned()]);
    };
    lab.own.change_rights(more).await;
    lab.own
        .change_rights(|rules| {
            let apps = rules_for(rules, "deployments").next().unwrap();
            apps.verbs.retain(|verb| verb != "list" && verb != "watch");
        })
        .await;
    lab.change().await;
    lab.ask_for_a_pass(SHOP).await;
    let mut before = Trial::begin(lab);
    before.recover(Instant::now(), RECOVERY).await;

    let withdrawn = std::cell::RefCell::new(None);
    lab.own
        .change_rights(|rules| {
            let at = rules.iter().position(|rule| rule.api_groups == Some(vec!["apps".to_owned()])).unwrap();
            withdrawn.replace(Some(rules.remove(at)));
        })
        .await;
    lab.change().await;
    let mut trial = Trial::begin(lab);
    trial.problems.append(&mut before.problems);
    lab.ask_for_a_pass(SHOP).await;
    let began = Instant::now();
    let signs = Signs {
        kubectl: Some(Sign::new("Rollout RolloutFailed", |look| look.says(SHOP, "Rollout", "RolloutFailed"))),
        metric: Some(Sign::new("ferrvault_secret_rollouts_owed{state=\"failed\"} > 0", |look| {
            look.metric("ferrvault_secret_rollouts_owed", &[("name", SHOP), ("state", "failed")]).is_some()
        })),
        alert: Some(ROLLOUT),
        ..Signs::default()
    };
    trial.watch(&signs, LIMIT).await;
    let rest = A_MINUTE.saturating_sub(began.elapsed());
    lab.look_on(u32::try_from(rest.as_secs()).unwrap()).await;
    lab.own.change_rights(|rules| rules.extend(withdrawn.take())).await;
    trial.recover(Instant::now(), RECOVERY).await;
    trial
}

/// 11: nobody may write the lease, so nobody leads.
pub(super) async fn lease(lab: &Lab) -> Trial<'_> {
    lab.own
        .change_rights_at_home(|rules| {
            for rule in rules_for(rules, "leases") {
                rule.verbs.retain(|verb| verb != "update");
            }
        })
        .await;
    let mut trial = Trial::begin(lab);
    lab.change().await;
    let signs = Signs {
        kubectl: Some(attempt_stands_still()),
        metric: Some(Sign::new("ferrvault_operator_leader == 0", |look| {
            look.metric("ferrvault_operator_leader", &[]) == Some(0.0)
        })),
        alert: Some(stuck("leader")),
        ..Signs::default()
    };
    trial.watch(&signs, LIMIT).await;
    lab.own
        .change_rights_at_home(|rules| {
            let named = rules_for(rules, "leases").find(|rule| rule.resource_names.is_some()).unwrap();
            named.verbs.push("update".to_owned());
        })
        .await;
    trial.recover(Instant::now(), RECOVERY).await;
    trial
}

/// 14: every write of a status is refused. What a pass did is on the target and the workloads all the same.
pub(super) async fn status(lab: &Lab) -> Trial<'_> {
    let withdrawn = std::cell::RefCell::new(None);
    lab.own
        .change_rights(|rules| {
            let named = |rule: &PolicyRule| rule.resources == Some(vec!["ferrvaultsecrets/status".to_owned()]);
            let at = rules.iter().position(named).unwrap();
            withdrawn.replace(Some(rules.remove(at)));
        })
        .await;
    let mut trial = Trial::begin(lab);
    lab.change().await;
    let signs = Signs {
        kubectl: Some(Sign::new("event StatusWriteFailed", |look| look.has_event("StatusWriteFailed", SHOP))),
        metric: Some(Sign::new("ferrvault_secret_sync_errors_total{reason=\"StatusWriteFailed\"} > 0", |look| {
            look.metric("ferrvault_secret_sync_errors_total", &[("reason", "StatusWriteFailed")]) > Some(0.0)
        })),
        // A pass that left no record has not ended, for whoever waits for it.
        alert: Some(Alert { name: STALE.name, cause: "pass" }),
        ..Signs::default()
    };
    trial.watch(&signs, LIMIT).await;
    lab.own.change_rights(|rules| rules.extend(withdrawn.take())).await;
    trial.recover(Instant::now(), RECOVERY).await;
    trial
}

/// 16: Secrets can be neither read nor written nor watched.
pub(super) async fn secrets(lab: &Lab) -> Trial<'_> {
    let withdrawn = std::cell::RefCell::new(None);
    lab.own
        .change_rights(|rules| {
            let named = |rule: &PolicyRule| rule.resources == Some(vec!["secrets".to_owned()]);
            let at = rules.iter().position(named).unwrap();
            withdrawn.replace(Some(rules.remove(at)));
        })
        .await;
    let mut trial = Trial::begin(lab);
    lab.change().await;
    let signs = Signs {
        kubectl: Some(Sign::new("Ready False", |look| look.says(SHOP, "Ready", "False"))),
        metric: Some(Sign::new("ferrvault_secret_sync_errors_total > 0", |look| {
            let of = |reason| look.metric("ferrvault_secret_sync_errors_total", &[("reason", reason)]);
            of("SecretReadFailed") > Some(0.0) || of("TokenUnreadable") > Some(0.0)
        })),
        alert: Some(STALE),
        ..Signs::default()
    };
    trial.watch(&signs, LIMIT).await;
    lab.own.change_rights(|rules| rules.extend(withdrawn.take())).await;
    trial.recover(Instant::now(), RECOVERY).await;
    trial
}

/// Nobody writes conditions: the column of the last attempt is what is left. Six intervals.
pub(super) fn attempt_stands_still() -> Sign {
    Sign::new("LastAttempt above 30s at an interval of 5s", |look| look.attempt_is_older(SHOP, 30))
}

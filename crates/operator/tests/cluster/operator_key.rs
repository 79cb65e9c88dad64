//! The operator key under every fault at every call: in the end there is one key, and every replica has it.

use std::time::Duration;

use ferrvault_operator::cluster::operator_key::obtain;
use ferrvault_operator::entropy::Entropy;
use ferrvault_operator::key::ObjectKey;
use ferrvault_testkit::{ApiServer, Fault, Plan, Verb};
use k8s_openapi::api::core::v1::Secret;

fn place() -> ObjectKey {
    ObjectKey::new("ferrvault-system", "ferrvault-operator-key")
}

#[tokio::test(start_paused = true)]
async fn two_replicas_agree_on_one_key_whatever_goes_wrong() {
    let mut runs = 0;
    for fault in Fault::every() {
        if matches!(fault, Fault::CutBefore | Fault::CutAfter | Fault::Stale(_)) {
            continue;
        }
        for number in 1..=6 {
            let server = ApiServer::default();
            server.set_plan(Plan::new().at(number, fault.clone()));
            let (one, other) = (server.client_as("one"), server.client_as("other"));
            let (seed, another, place) = (Entropy::seeded(1), Entropy::seeded(2), place());
            let both =
                async { tokio::join!(obtain(&one, &place, &seed, |_| {}), obtain(&other, &place, &another, |_| {})) };
            let (one, other) = tokio::time::timeout(Duration::from_mins(1), both).await.expect("still trying");
            assert_eq!(one.id(), other.id(), "{fault} at {number}\n{}", server.story());
            assert_eq!(server.list::<Secret>("ferrvault-system").len(), 1);
            runs += 1;
        }
    }
    assert!(runs > 90, "{runs} runs");
}

#[tokio::test(start_paused = true)]
async fn a_second_start_reads_what_the_first_made() {
    let server = ApiServer::default();
    let first = obtain(&server.client("x"), &place(), &Entropy::seeded(1), |_| {}).await;
    let calls: Vec<Verb> = server.journal().iter().map(|record| record.call.verb).collect();
    assert_eq!(calls, [Verb::Get, Verb::Create, Verb::Get]);
    let after = server.last_call();
    let second = obtain(&server.client("x"), &place(), &Entropy::seeded(2), |_| {}).await;
    assert_eq!(first.id(), second.id());
    assert_eq!(server.last_call() - after, 1);
}

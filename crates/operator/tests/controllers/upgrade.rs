//! The first start over what the Go operator left: its hash, its finalizer, its status. No Secret is rewritten, nothing
//! restarts that was not owed, and what is written is the status (rule 9).

use std::time::Duration;

use ferrvault_api::{FerrVaultSecret, marks};
use ferrvault_testkit::{Fault, build};
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use crate::legacy;
use crate::room::{NS, Rollouts, Room};

fn db() -> build::Built {
    build::fvs(NS, "db").through("conn").vault("db").every("1h").restarts("Deployment", "api")
}

/// What the former operator left of resource `db` and its target.
struct Left {
    room: Room,
    rollouts: Rollouts,
    resource: Value,
    hash: String,
}

fn left() -> Left {
    let room = Room::new();
    room.api.apply(&build::deployment(NS, "api"));
    let rollouts = Rollouts::watch(&room.api);
    let resource = legacy::stored(&room, db());
    let hash = legacy::target(&room, &resource);
    Left { room, rollouts, resource, hash }
}

impl Left {
    fn record(&self, last_rollout: &str) {
        self.room.api.edit_status::<FerrVaultSecret>(NS, "db", |object| {
            object["status"]["lastRolloutHash"] = last_rollout.into();
        });
    }

    /// Starts the operator and gives its writes about the resource.
    async fn start(&mut self) -> Vec<String> {
        let before = self.room.here();
        self.room.start().await;
        self.room.run_for(Duration::from_secs(60)).await;
        let mut writes = self.room.writes_since(before);
        writes.retain(|call| !call.contains("ferrvaultconnections") && call != "CREATE events");
        writes
    }

    fn assert_settled(&self, version: &str, restarts: u64) {
        let room = &self.room;
        assert_eq!(room.ready("db"), "True Synced", "{}", room.api.story());
        assert_eq!(room.rollout("db"), "True Restarted");
        let status = room.status("db");
        assert_eq!(status.last_rollout_hash.as_deref(), Some(version));
        assert_eq!(status.content_hash.as_deref(), Some(version));
        assert_eq!(room.version("db"), version);
        room.assert_current("db", "db");
        assert_eq!(self.rollouts.of("api"), restarts);
        assert_eq!(room.fvs("db").unwrap().metadata.finalizers.unwrap_or_default(), Vec::<String>::new());
    }
}

const FINALIZER: &str = "PATCH ferrvaultsecrets default/db";
const REPORT: &str = "PATCH ferrvaultsecrets/status default/db";

#[tokio::test(start_paused = true)]
async fn an_equal_secret_is_taken_over_by_a_status_alone() {
    let mut left = left();
    let secret = left.room.secret("db");
    let hash = left.hash.clone();
    let writes = left.start().await;
    assert_eq!(writes, [FINALIZER, REPORT]);
    assert_eq!(left.room.secret("db"), secret);
    left.assert_settled(&hash, 0);
    assert_eq!(left.room.status("db").last_changed_at, None, "nothing changed that anybody saw");
    assert_eq!(left.room.events("db"), Vec::<String>::new(), "nothing to tell");

    // The first change of content replaces the old kind of hash.
    left.room.rotate(2);
    left.room.nudge("db").await;
    let version = left.room.version("db");
    assert!(version.starts_with("v1."), "{version}");
    left.assert_settled(&version, 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_restarted_for_stays_restarted_for() {
    let mut left = left();
    let (secret, hash) = (left.room.secret("db"), left.hash.clone());
    left.record(&hash);
    assert_eq!(left.start().await, [FINALIZER, REPORT]);
    assert_eq!(left.room.secret("db"), secret);
    left.assert_settled(&hash, 0);
}

#[tokio::test(start_paused = true)]
async fn a_restart_that_was_owed_is_paid_once_and_the_secret_not_rewritten() {
    let mut left = left();
    let (secret, hash) = (left.room.secret("db"), left.hash.clone());
    left.record(&"0".repeat(64));
    assert_eq!(left.start().await, [FINALIZER, "PATCH deployments default/api", REPORT]);
    assert_eq!(left.room.secret("db"), secret);
    left.assert_settled(&hash, 1);
}

#[tokio::test(start_paused = true)]
async fn a_restart_that_was_carried_out_and_not_recorded_is_not_repeated() {
    let mut left = left();
    let hash = left.hash.clone();
    left.record(&"0".repeat(64));
    let mark = marks::workload_mark(left.resource["metadata"]["uid"].as_str().unwrap());
    left.room.api.apply(
        &build::deployment(NS, "api").set(&["spec", "template", "metadata", "annotations", &mark], hash.as_str()),
    );
    assert_eq!(left.start().await, [FINALIZER, REPORT]);
    left.assert_settled(&hash, 0);
}

#[tokio::test(start_paused = true)]
async fn a_missing_secret_comes_back_without_a_restart() {
    for recorded in [false, true] {
        let mut left = left();
        let hash = left.hash.clone();
        if recorded {
            left.record(&hash);
        }
        left.room.api.delete::<Secret>(NS, "db");
        assert_eq!(left.start().await, [FINALIZER, "CREATE secrets default/db", REPORT], "recorded: {recorded}");
        let version = left.room.version("db");
        assert_eq!(version == hash, recorded, "the old name where it is known, a new one where it is not");
        left.assert_settled(&version, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_value_that_changed_meanwhile_is_one_restart_preceded_by_its_debt() {
    let mut left = left();
    left.room.rotate(2);
    let writes = left.start().await;
    assert_eq!(
        writes,
        [FINALIZER, REPORT, "PATCH secrets default/db", "PATCH deployments default/api", REPORT],
        "the debt, the content, the restart, the report"
    );
    let version = left.room.version("db");
    left.assert_settled(&version, 1);
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_was_edited_meanwhile_is_put_back_under_the_old_hash() {
    let mut left = left();
    let hash = left.hash.clone();
    left.room.api.edit::<Secret>(NS, "db", |secret| secret["data"]["PASSWORD"] = "Y2FuYXJ5LWVkaXRlZA==".into());
    assert_eq!(left.start().await, [FINALIZER, "PATCH secrets default/db", REPORT]);
    left.assert_settled(&hash, 0);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_waits_for_the_old_operator_to_let_go_is_let_go() {
    let mut left = left();
    left.room.api.delete::<FerrVaultSecret>(NS, "db");
    assert!(left.room.fvs("db").is_some(), "the finalizer holds it");
    assert_eq!(left.start().await, [FINALIZER]);
    assert!(left.room.fvs("db").is_none());
    assert!(left.room.secret("db").is_none(), "the owner reference cleans up");
}

#[tokio::test(start_paused = true)]
async fn other_finalizers_are_none_of_its_business() {
    let mut left = left();
    left.room.api.edit::<FerrVaultSecret>(NS, "db", |object| {
        object["metadata"]["finalizers"] = json!(["example.com/keep", marks::LEGACY_SECRET_FINALIZER]);
    });
    left.start().await;
    assert_eq!(left.room.fvs("db").unwrap().metadata.finalizers.unwrap(), ["example.com/keep"]);
    // Nor does it do anything for a resource on its way out.
    left.room.api.delete::<FerrVaultSecret>(NS, "db");
    left.room.rest().await;
    let before = left.room.here();
    left.room.run_for(Duration::from_secs(2 * 3600)).await;
    let calls = left.room.calls_since(before);
    assert!(!calls.iter().any(|call| call.contains("default/db")), "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_that_comes_back_goes_again() {
    let mut left = left();
    left.start().await;
    // The former operator was started once more beside this one.
    left.room.api.edit::<FerrVaultSecret>(NS, "db", |object| {
        object["metadata"]["finalizers"] = json!([marks::LEGACY_SECRET_FINALIZER]);
    });
    left.room.rest().await;
    assert_eq!(left.room.fvs("db").unwrap().metadata.finalizers.unwrap_or_default(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_hundred_resources_are_taken_over_with_two_writes_each() {
    let mut room = Room::new();
    for number in 0..100 {
        let resource = build::fvs(NS, &format!("r{number}")).through("conn").vault("db").every("1h");
        let resource = legacy::stored(&room, resource);
        legacy::target(&room, &resource);
    }
    let before = room.here();
    room.start().await;
    room.run_for(Duration::from_secs(30)).await;
    let writes = room.writes_since(before);
    let count = |part: &str| writes.iter().filter(|call| call.starts_with(part)).count();
    assert_eq!(count("PATCH ferrvaultsecrets default"), 100);
    assert_eq!(count("PATCH ferrvaultsecrets/status"), 100);
    assert_eq!(count("PATCH secrets") + count("CREATE secrets"), 0);
}

#[tokio::test(start_paused = true)]
async fn somebody_who_writes_a_resource_while_its_old_finalizer_goes_is_no_error() {
    let mut room = Room::new();
    let resource = legacy::stored(&room, db());
    legacy::target(&room, &resource);
    room.times_over(1, "PATCH ferrvaultsecrets default/db", Fault::Refuse(409));
    room.start().await;
    room.run_for(Duration::from_secs(10)).await;
    assert_eq!(room.ready("db"), "True Synced");
    assert_eq!(room.metric("ferrvault_secret_sync_errors_total{reason=\"StatusWriteFailed\"}"), 0.0);
}

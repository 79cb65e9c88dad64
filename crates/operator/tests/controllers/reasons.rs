//! Every reason that `Ready` can have, provoked on a resource that was synced and on one that never was: what the
//! condition says, what the times say, what becomes of the Secret, when it is tried again, and that it heals.

use std::ops::RangeInclusive;
use std::time::Duration;

use ferrvault_api::{FerrVaultConnection, Reason};
use ferrvault_testkit::Fault;
use ferrvault_testkit::build::{self, Built};
use ferrvault_vault::{UpstreamText, VaultError};
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use crate::room::{NS, Room, TOKEN, VALUE};
use crate::script::{self, Mood};

/// What is wrong, and how it is put right.
enum Wrong {
    /// The resource itself.
    Resource(fn(Built) -> Built),
    /// Something around it.
    Around(fn(&Room), fn(&Room)),
    /// FerrVault's answers.
    Answer(fn() -> VaultError),
    /// An answer of the API server.
    Call(&'static str, Fault),
}

pub(crate) struct Case {
    pub(crate) name: &'static str,
    wrong: Wrong,
    pub(crate) reason: Reason,
    /// What the message has to name.
    says: &'static [&'static str],
    /// Seconds to the next try.
    retry: RangeInclusive<f64>,
}

/// The resource of all cases is looked at this often.
const REFRESH: RangeInclusive<f64> = 600.0..=600.0;
/// First step of the backoff.
const SOON: RangeInclusive<f64> = 0.8..=1.0;
/// Where the resource's own interval cannot be read, the operator's; a watch that lists anew may come before it.
const DEFAULT: RangeInclusive<f64> = 3500.0..=3600.0;

pub(crate) fn resource() -> Built {
    build::fvs(NS, "db").through("conn").vault("db").every("10m")
}

fn connection(room: &Room, change: impl FnOnce(&mut Value)) {
    room.api.edit::<FerrVaultConnection>(NS, "conn", |object| change(&mut object["spec"]));
}

fn good_connection(room: &Room) {
    connection(room, |spec| {
        *spec = json!({
            "url": "http://127.0.0.1:1", "mode": "ferrvault", "tokenSecretRef": { "name": "token", "key": "token" },
        });
    });
}

fn without_token(spec: &mut Value) {
    spec.as_object_mut().unwrap().remove("tokenSecretRef");
}

fn good_token(room: &Room) {
    room.api.apply(&build::secret(NS, "token").key("token", TOKEN));
}

fn good_vault(room: &Room) {
    room.vault.empty("db");
    room.vault.set("db", "USER", "canary-app");
    room.vault.set("db", "PASSWORD", format!("{VALUE}-1"));
}

fn oidc(cluster: &str) -> Value {
    json!({ "clusterID": cluster, "tokenPath": "/nowhere/token", "audience": "https://ferrflow.com" })
}

fn upstream() -> UpstreamText {
    UpstreamText::default()
}

pub(crate) fn cases() -> Vec<Case> {
    let mut all = of_the_connection();
    all.extend(of_the_resource());
    all.extend(of_ferrvault());
    all.extend(of_the_content());
    all.extend(of_the_target());
    all
}

fn of_the_connection() -> Vec<Case> {
    let invalid = |name, wrong: fn(&Room), says| Case {
        name,
        wrong: Wrong::Around(wrong, good_connection),
        reason: Reason::InvalidConnection,
        says,
        retry: REFRESH,
    };
    vec![
        Case {
            name: "an unknown connection",
            wrong: Wrong::Resource(|resource| resource.through("nope")),
            reason: Reason::ConnectionNotFound,
            says: &["\"nope\"", "\"default\"", "correct spec.connectionRef"],
            retry: REFRESH,
        },
        Case {
            name: "no token Secret",
            wrong: Wrong::Around(|room| room.api.delete::<Secret>(NS, "token"), good_token),
            reason: Reason::TokenUnreadable,
            says: &["\"token\"", "\"default\"", "correct tokenSecretRef.name"],
            retry: REFRESH,
        },
        Case {
            name: "an empty token",
            wrong: Wrong::Around(
                |room| {
                    room.api.apply(&build::secret(NS, "token").key("token", " \n"));
                },
                good_token,
            ),
            reason: Reason::TokenUnreadable,
            says: &["\"token\"", "is empty", "store the whole token"],
            retry: REFRESH,
        },
        Case {
            name: "a token with a line break within",
            wrong: Wrong::Around(
                |room| {
                    room.api.apply(&build::secret(NS, "token").key("token", "fft_canary\nfft_canary"));
                },
                good_token,
            ),
            reason: Reason::TokenUnreadable,
            says: &["\"token\"", "store the token alone"],
            retry: REFRESH,
        },
        Case {
            name: "a token Secret that the API server does not hand out just now",
            wrong: Wrong::Call("GET secrets default/token", Fault::Refuse(500)),
            reason: Reason::TokenUnreadable,
            says: &["reading the token Secret token", "500"],
            retry: SOON,
        },
        Case {
            name: "another key in the token Secret",
            wrong: Wrong::Around(
                |room| {
                    room.api.apply(&build::secret(NS, "token").key("TOKEN", TOKEN));
                },
                good_token,
            ),
            reason: Reason::TokenKeyMissing,
            says: &["\"token\"", "add it or correct tokenSecretRef.key"],
            retry: REFRESH,
        },
        invalid(
            "a URL with credentials",
            |room| connection(room, |spec| spec["url"] = "https://me:canary-pw@vault.example.com".into()),
            &["user name or password", "put the token into a Secret"],
        ),
        invalid(
            "plain http to somewhere else",
            |room| connection(room, |spec| spec["url"] = "http://vault.example.com".into()),
            &["plain http", "use https, or set allowInsecureHTTP"],
        ),
        invalid(
            "a URL with a query",
            |room| connection(room, |spec| spec["url"] = "https://vault.example.com/?x=1".into()),
            &["query", "remove it"],
        ),
        invalid(
            "both kinds of credentials",
            |room| connection(room, |spec| spec["oidc"] = oidc("6f1c8a52-7d0e-4a55-9c52-3f6b1d2e4f60")),
            &["both tokenSecretRef and oidc", "set exactly one"],
        ),
        invalid(
            "no credentials",
            |room| connection(room, without_token),
            &["neither tokenSecretRef nor oidc", "set exactly one"],
        ),
        invalid(
            "a cluster id of 35 characters",
            |room| {
                connection(room, |spec| {
                    without_token(spec);
                    spec["oidc"] = oidc("6f1c8a52-7d0e-4a55-9c52-3f6b1d2e4f6");
                });
            },
            &["oidc.clusterID", "36 characters"],
        ),
        invalid(
            "the operator's identity for an origin that it was not started for",
            |room| {
                connection(room, |spec| {
                    without_token(spec);
                    spec["oidc"] = oidc("6f1c8a52-7d0e-4a55-9c52-3f6b1d2e4f60");
                });
            },
            &["--allow-origin=http://127.0.0.1:1"],
        ),
        Case {
            name: "mode cloud without a project",
            wrong: Wrong::Around(
                |room| {
                    connection(room, |spec| {
                        spec["mode"] = "cloud".into();
                        spec["organization"] = "acme".into();
                    });
                },
                good_connection,
            ),
            reason: Reason::MissingCloudScope,
            says: &["mode is cloud", "spec.project is required", "set it"],
            retry: REFRESH,
        },
        Case {
            name: "mode cloud without an organization",
            wrong: Wrong::Around(|room| connection(room, |spec| spec["mode"] = "cloud".into()), good_connection),
            reason: Reason::MissingCloudScope,
            says: &["mode is cloud", "spec.organization of the connection is required"],
            retry: REFRESH,
        },
    ]
}

fn of_the_resource() -> Vec<Case> {
    let invalid = |name, wrong, says, retry| Case {
        name,
        wrong: Wrong::Resource(wrong),
        reason: Reason::InvalidSpec,
        says,
        retry,
    };
    vec![
        invalid("an interval that is none", |r| r.every("abc"), &["spec.refreshInterval", "abc"], DEFAULT),
        invalid("a negative interval", |r| r.every("-1s"), &["spec.refreshInterval", "-1s"], DEFAULT),
        invalid(
            "an empty selector name",
            |r| r.names(&["USER", " "]),
            &["spec.selector.names[1] is empty", "remove the entry"],
            REFRESH,
        ),
        invalid(
            "a target name that is none",
            |r| r.target("Not_A_Name"),
            &["spec.target.name", "\"Not_A_Name\"", "lower-case letters"],
            REFRESH,
        ),
        invalid(
            "a type that grants rights",
            |r| r.set(&["spec", "target", "type"], "kubernetes.io/service-account-token"),
            &["spec.target.type kubernetes.io/service-account-token is refused"],
            REFRESH,
        ),
        invalid(
            "a workload name that is none",
            |r| r.restarts("Deployment", "api").restarts("Deployment", "Not A Name"),
            &["spec.rolloutRestart[1].name", "correct or remove the entry"],
            REFRESH,
        ),
    ]
}

fn of_ferrvault() -> Vec<Case> {
    let answer = |name, wrong, reason, says, retry| Case { name, wrong: Wrong::Answer(wrong), reason, says, retry };
    // An hour at most is believed. A watch that lists anew looks for the target in between.
    let hours = 3500.0..=3960.0;
    vec![
        answer(
            "a token that is not accepted",
            script::unauthorized,
            Reason::AuthFailed,
            &["db", "does not accept the token", "expired nor revoked"],
            300.0..=300.0,
        ),
        answer(
            "a token for another vault",
            || VaultError::Forbidden { upstream: upstream() },
            Reason::AuthFailed,
            &["\"db\"", "403", "correct spec.vault", "made for this vault"],
            300.0..=300.0,
        ),
        Case {
            name: "an unknown vault",
            wrong: Wrong::Around(|room| room.vault.remove("db"), good_vault),
            reason: Reason::VaultNotFound,
            says: &["\"db\"", "404", "correct spec.vault"],
            retry: REFRESH,
        },
        answer("a server that fails", script::failing, Reason::Unreachable, &["db", "503"], SOON),
        answer(
            "no connection",
            || VaultError::Unreachable { why: "connection refused".into() },
            Reason::Unreachable,
            &["db", "connection refused", "check the URL"],
            SOON,
        ),
        answer(
            "no answer in time",
            || VaultError::TimedOut { limit: Duration::from_secs(10) },
            Reason::Unreachable,
            &["db", "within 10 s"],
            SOON,
        ),
        answer(
            "a certificate that is refused",
            || VaultError::RefusedByTls { why: "the certificate is for another name".into() },
            Reason::Unreachable,
            &["db", "for another name"],
            SOON,
        ),
        answer(
            "nonsense",
            || VaultError::BrokenAnswer { what: "it is not JSON".into() },
            Reason::Unreachable,
            &["db", "not JSON", "no proxy"],
            SOON,
        ),
        answer(
            "a call that is rejected",
            || VaultError::Rejected { status: 400, upstream: upstream() },
            Reason::InvalidConnection,
            &["db", "400", "check that the URL belongs to FerrVault"],
            REFRESH,
        ),
        answer(
            "a redirect",
            || VaultError::RedirectRefused { status: 302, to: Some("https://login.example.com".into()) },
            Reason::InvalidConnection,
            &["db", "https://login.example.com", "use the final address"],
            REFRESH,
        ),
        answer(
            "an answer beyond all bounds",
            || VaultError::TooLarge { limit: 4 << 20 },
            Reason::InvalidSpec,
            &["db", "name the keys that are needed"],
            REFRESH,
        ),
        answer(
            "too many calls, with a time",
            || script::throttled(Some(Duration::from_secs(90))),
            Reason::RateLimited,
            &["db", "429", "after 90 s"],
            90.0..=99.0,
        ),
        answer("too many calls, without", || script::throttled(None), Reason::RateLimited, &["db", "429"], SOON),
        answer(
            "too many calls, with a day's wait",
            || script::throttled(Some(Duration::from_secs(86_400))),
            Reason::RateLimited,
            &["db", "429"],
            hours,
        ),
    ]
}

fn of_the_content() -> Vec<Case> {
    let transform = |name, wrong, says| Case {
        name,
        wrong: Wrong::Resource(wrong),
        reason: Reason::TransformError,
        says,
        retry: REFRESH,
    };
    let unfit = |name, wrong, says| Case {
        name,
        wrong: Wrong::Around(wrong, good_vault),
        reason: Reason::SecretWriteFailed,
        says,
        retry: SOON,
    };
    vec![
        Case {
            name: "a vault that holds nothing",
            wrong: Wrong::Around(|room| room.vault.empty("db"), good_vault),
            reason: Reason::EmptyAnswer,
            says: &["\"db\"", "no key at all"],
            retry: REFRESH,
        },
        Case {
            name: "a key that FerrVault does not have",
            wrong: Wrong::Resource(|r| r.names(&["USER", "MAIL", "PASSWORD"])),
            reason: Reason::MissingKeys,
            says: &["\"db\"", "does not have: MAIL;"],
            retry: 60.0..=60.0,
        },
        transform(
            "base64 that is not",
            |r| r.transform(json!({ "type": "prefix", "value": "A_" })).transform(json!({ "type": "base64Decode" })),
            &["transforms[1] (base64Decode)", "\"A_PASSWORD\"", "neither standard nor URL-safe base64"],
        ),
        transform(
            "JSON that is none",
            |r| r.transform(json!({ "type": "jsonExpand", "key": "USER" })),
            &["transforms[0] (jsonExpand)", "\"USER\"", "not JSON"],
        ),
        transform(
            "two keys that become one",
            |r| r.transform(json!({ "type": "rename", "from": "USER", "to": "PASSWORD" })),
            &["transforms[0] (rename)", "\"PASSWORD\"", "rename one of the two"],
        ),
        transform(
            "a transform without its field",
            |r| r.transform(json!({ "type": "rename", "from": "USER" })),
            &["transforms[0] (rename)", "`to` is missing"],
        ),
        unfit(
            "a key that Kubernetes refuses",
            |room| room.vault.set("db", "API KEY", VALUE),
            &["\"API KEY\"", "by `transforms`"],
        ),
        unfit(
            "more than a Secret holds",
            |room| room.vault.set("db", "BLOB", vec![b'x'; 1 << 20]),
            &["1 MiB", "selector.names"],
        ),
    ]
}

fn of_the_target() -> Vec<Case> {
    vec![
        Case {
            name: "a target that the API server does not hand out just now",
            wrong: Wrong::Call("GET secrets default/db", Fault::Refuse(503)),
            reason: Reason::SecretReadFailed,
            says: &["reading Secret db", "503"],
            retry: SOON,
        },
        Case {
            name: "a target that the API server wants to be asked for later",
            wrong: Wrong::Call("GET secrets default/db", Fault::RefuseFor(429, 20)),
            reason: Reason::SecretReadFailed,
            says: &["reading Secret db", "throttling"],
            retry: 20.0..=22.0,
        },
        Case {
            name: "a target that may not be written",
            wrong: Wrong::Around(
                |room| {
                    room.rotate(2);
                    room.api.deny("operator", "patch", "secrets");
                    room.api.deny("operator", "create", "secrets");
                },
                |room| {
                    room.api.allow_again("operator", "patch", "secrets");
                    room.api.allow_again("operator", "create", "secrets");
                },
            ),
            reason: Reason::SecretWriteFailed,
            says: &["writing Secret db", "forbidden", "secrets in the namespace default"],
            retry: SOON,
        },
    ]
}

fn spelled(status: &str, reason: Reason) -> String {
    format!("{status} {reason}")
}

impl Case {
    pub(crate) fn transient(&self) -> bool {
        matches!(self.reason, Reason::Unreachable | Reason::RateLimited | Reason::ReconcileTimeout)
    }

    pub(crate) fn make_wrong(&self, room: &Room) {
        match &self.wrong {
            Wrong::Resource(change) => {
                room.api.apply(&change(resource()));
            }
            Wrong::Around(wrong, _) => wrong(room),
            Wrong::Answer(error) => room.vault.always("db", Some(Mood::Fails(error()))),
            Wrong::Call(summary, fault) => room.on(summary, fault.clone()),
        }
    }

    fn put_right(&self, room: &Room) {
        match &self.wrong {
            Wrong::Resource(_) => {
                room.api.apply(&resource());
            }
            Wrong::Around(_, right) => right(room),
            Wrong::Answer(_) => room.vault.always("db", None),
            Wrong::Call(..) => room.api.clear_faults(),
        }
    }

    fn assert_message(&self, room: &Room) {
        let message = room.condition("db", "Ready").message;
        for part in self.says {
            assert!(message.contains(part), "{}: {message:?} does not say {part:?}", self.name);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_reason_on_a_resource_that_was_synced() {
    for case in cases() {
        let name = case.name;
        let room = Room::with_db(resource()).await;
        let (data, before) = (room.data("db"), room.status("db"));
        assert_eq!(room.ready("db"), "True Synced", "{name}");
        room.run_for(Duration::from_secs(5)).await;

        case.make_wrong(&room);
        room.next_report("db").await;
        let status = if case.transient() { "True" } else { "False" };
        assert_eq!(room.ready("db"), spelled(status, case.reason), "{name}\n{}", room.api.story());
        case.assert_message(&room);
        let (generation, after) = (room.fvs("db").unwrap().metadata.generation, room.status("db"));
        assert_eq!(room.condition("db", "Ready").observed_generation, generation, "{name}");
        assert_eq!(after.observed_generation, before.observed_generation, "{name}: a failure advances nothing");
        assert!(after.last_attempted_at > before.last_attempted_at, "{name}");
        assert_eq!(after.last_synced_at, before.last_synced_at, "{name}");
        assert_eq!(after.last_changed_at, before.last_changed_at, "{name}");
        assert_eq!(after.synced_keys, before.synced_keys, "{name}");
        assert_eq!(room.data("db"), data, "{name}: the target is left alone");
        assert_eq!(room.rollout("db"), "True Restarted", "{name}: the restarts have nothing to do with it");
        if case.transient() {
            let synced = before.last_synced_at.unwrap().0.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            let message = room.condition("db", "Ready").message;
            assert!(message.contains(&synced), "{name}: {message:?} does not tell of the last success");
        }
        assert_eq!(room.events("db"), ["Normal Synced".to_owned(), format!("Warning {}", case.reason)], "{name}");
        let counted = format!("ferrvault_secret_sync_errors_total{{reason=\"{}\"}}", case.reason);
        assert!(room.metric(&counted) >= 1.0, "{name}: {counted}");

        let retried = room.next_report("db").await;
        assert!(
            case.retry.contains(&retried),
            "{name}: tried again after {retried} s, not {:?}\n{}",
            case.retry,
            room.api.story()
        );
        assert_eq!(room.ready("db"), spelled(status, case.reason), "{name}: the second time");
        assert_eq!(room.events("db").len(), 2, "{name}: the same again is no news");

        case.put_right(&room);
        room.next_report("db").await;
        assert_eq!(room.ready("db"), "True Synced", "{name}\n{}", room.api.story());
        room.assert_current("db", "db");
        let healed = room.status("db");
        assert_eq!(healed.observed_generation, room.fvs("db").unwrap().metadata.generation, "{name}");
        assert!(healed.missing_keys.is_empty(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_reason_on_a_resource_that_never_was() {
    for case in cases() {
        let name = case.name;
        let room = Room::started().await;
        if !matches!(case.wrong, Wrong::Resource(_)) {
            case.make_wrong(&room);
            room.run_for(Duration::from_secs(2)).await;
            room.api.apply(&resource());
        } else {
            case.make_wrong(&room);
        }
        room.next_report("db").await;
        assert_eq!(room.ready("db"), spelled("False", case.reason), "{name}\n{}", room.api.story());
        case.assert_message(&room);
        let status = room.status("db");
        assert_eq!(room.condition("db", "Ready").observed_generation, Some(1), "{name}");
        assert_eq!(status.observed_generation, None, "{name}");
        assert!(status.last_attempted_at.is_some(), "{name}");
        assert_eq!(status.last_synced_at, None, "{name}");
        assert_eq!(status.last_rollout_hash, None, "{name}: there is no version yet");
        assert!(room.secret("db").is_none(), "{name}: no target is made");

        let retried = room.next_report("db").await;
        assert!(
            case.retry.contains(&retried),
            "{name}: tried again after {retried} s, not {:?}\n{}",
            case.retry,
            room.api.story()
        );

        case.put_right(&room);
        room.next_report("db").await;
        assert_eq!(room.ready("db"), "True Synced", "{name}\n{}", room.api.story());
        assert_eq!(room.rollout("db"), "True Restarted", "{name}");
        room.assert_current("db", "db");
    }
}

#[tokio::test(start_paused = true)]
async fn mode_cloud_without_a_project_asks_nobody() {
    let room = Room::started().await;
    connection(&room, |spec| {
        spec["mode"] = "cloud".into();
        spec["organization"] = "acme".into();
    });
    room.api.apply(&resource());
    room.run_for(Duration::from_secs(30)).await;
    assert_eq!(room.ready("db"), "False MissingCloudScope");
    assert_eq!(room.vault.reveals(), 0);
}

#[tokio::test(start_paused = true)]
async fn backoff_grows_to_the_shorter_of_interval_and_five_minutes() {
    for (interval, cap) in [("1m", 60.0), ("30m", 300.0)] {
        let room = Room::with_db(resource().every(interval)).await;
        room.vault.always("db", Some(Mood::Fails(script::failing())));
        room.run_for(Duration::from_secs(34 * 60)).await;
        let failed = room.reports("db").len();
        room.run_for(Duration::from_secs(3600)).await;
        let reports = room.reports("db");
        let gaps: Vec<f64> = reports[failed - 1..].windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        let last = &gaps[gaps.len() - 5..];
        assert!(last.iter().all(|gap| (cap * 0.8..=cap).contains(gap)), "every {interval}: {gaps:?}");
        let first: Vec<f64> = reports[1..8].windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        for (step, gap) in first.iter().enumerate().take(5) {
            let full = f64::from(1u32 << u32::try_from(step).unwrap());
            assert!((full * 0.8..=full * 1.01).contains(gap), "every {interval}, step {step}: {first:?}");
        }
        // What is tried often is not thereby told often.
        assert_eq!(room.events("db"), ["Normal Synced", "Warning Unreachable"]);
    }
}

//! Connections: when they are probed, what they say, who is told of their changes, and that none is deleted under its
//! users.

use std::time::Duration;

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret, marks};
use ferrvault_testkit::{Fault, build};
use ferrvault_vault::VaultError;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use crate::room::{NS, Room, TOKEN};
use crate::script;

fn fvs(name: &str) -> build::Built {
    build::fvs(NS, name).through("conn").vault("db").every("10h")
}

fn ready(room: &Room) -> String {
    let condition = room.connection_ready("conn");
    format!("{} {}", condition.status, condition.reason)
}

fn held(room: &Room) -> bool {
    room.finalizers("conn").iter().any(|name| name == marks::CONNECTION_FINALIZER)
}

#[tokio::test(start_paused = true)]
async fn it_is_probed_every_ten_minutes_with_a_heartbeat_and_no_more() {
    let room = Room::started().await;
    assert_eq!(ready(&room), "True Reachable");
    assert_eq!(room.connection_ready("conn").message, "http://127.0.0.1:1 answers and accepts the token");
    assert_eq!(room.events("conn"), ["Normal Reachable"]);
    let (before, probes) = (room.here(), room.vault.health_checks());
    room.run_for(Duration::from_secs(3600)).await;
    let probes = room.vault.health_checks() - probes;
    assert!((6..=7).contains(&probes), "{probes} probes in an hour");
    let mut calls = room.calls_since(before);
    calls.retain(|call| !call.starts_with("LIST"));
    let each = ["GET secrets default/token", "PATCH ferrvaultconnections/status default/conn"];
    let expected: Vec<&str> = each.iter().copied().cycle().take(2 * usize::try_from(probes).unwrap()).collect();
    assert_eq!(calls, expected);
    let checked = room.connection("conn").unwrap().status.unwrap().last_checked_at.unwrap().0;
    assert!(room.clock.now().duration_since(checked).as_secs() <= 600);
    assert_eq!(room.metric("ferrvault_connection_ready{namespace=\"default\",name=\"conn\"}"), 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_it_or_of_its_token_probes_it_and_tells_its_users() {
    let room = Room::started().await;
    for name in ["a", "b"] {
        room.api.apply(&fvs(name));
    }
    // Neither its own writes nor somebody's label are changes.
    room.rest().await;
    let quiet = |room: &Room| (room.vault.health_checks(), room.reports("a").len(), room.reports("b").len());
    let at_rest = quiet(&room);
    room.api.edit::<FerrVaultConnection>(NS, "conn", |object| object["metadata"]["labels"] = json!({"a": "b"}));
    room.rest().await;
    assert_eq!(quiet(&room), at_rest);

    let changes: [(&str, fn(&Room)); 3] = [
        ("its address", |room| {
            room.api.edit::<FerrVaultConnection>(NS, "conn", |object| {
                object["spec"]["url"] = "http://127.0.0.1:2/prefix/".into();
            });
        }),
        ("its token", |room| {
            room.api.apply(&build::secret(NS, "token").key("token", "fft_canary-next"));
        }),
        ("which token", |room| {
            room.api.apply(&build::secret(NS, "other").key("token", TOKEN));
            room.api.edit::<FerrVaultConnection>(NS, "conn", |object| {
                object["spec"]["tokenSecretRef"]["name"] = "other".into();
            });
        }),
    ];
    for (case, change) in changes {
        let (probes, a, b) = quiet(&room);
        change(&room);
        room.rest().await;
        assert_eq!(quiet(&room), (probes + 1, a + 1, b + 1), "{case}\n{}", room.api.story());
    }
    assert_eq!(room.vault.last_endpoint(), "http://127.0.0.1:2/prefix", "a path prefix is kept");
    let (probes, a, b) = quiet(&room);
    room.api.apply(&build::secret(NS, "token").key("token", TOKEN));
    room.rest().await;
    assert_eq!(quiet(&room), (probes, a, b), "the token it had is nobody's any more");
}

#[tokio::test(start_paused = true)]
async fn each_thing_wrong_with_it_is_said_and_heals_within_a_minute() {
    struct Case {
        ready: &'static str,
        says: &'static [&'static str],
        wrong: fn(&Room),
        right: fn(&Room),
    }
    let cases = [
        Case {
            ready: "False TokenUnreadable",
            says: &["no Secret \"token\"", "correct tokenSecretRef.name"],
            wrong: |room| room.api.delete::<Secret>(NS, "token"),
            right: |room| {
                room.api.apply(&build::secret(NS, "token").key("token", TOKEN));
            },
        },
        Case {
            ready: "False TokenKeyMissing",
            says: &["no key \"token\"", "correct tokenSecretRef.key"],
            wrong: |room| {
                room.api.apply(&build::secret(NS, "token").key("other", TOKEN));
            },
            right: |room| {
                room.api.apply(&build::secret(NS, "token").key("token", TOKEN));
            },
        },
        Case {
            ready: "False InvalidConnection",
            says: &["plain http", "allowInsecureHTTP"],
            wrong: |room| {
                room.api.edit::<FerrVaultConnection>(NS, "conn", |object| {
                    object["spec"]["url"] = "http://vault.example.com".into();
                });
            },
            right: |room| {
                room.api.edit::<FerrVaultConnection>(NS, "conn", |object| {
                    object["spec"]["url"] = "http://127.0.0.1:1".into();
                });
            },
        },
        Case {
            ready: "False Unreachable",
            says: &["/health", "connection refused", "host and port of spec.url"],
            wrong: |room| room.vault.ill(Some(VaultError::Unreachable { why: "connection refused".into() })),
            right: |room| room.vault.ill(None),
        },
        Case {
            ready: "False VaultNotFound",
            says: &["/health: not found (404)", "correct spec.url"],
            wrong: |room| room.vault.ill(Some(script::not_found())),
            right: |room| room.vault.ill(None),
        },
        Case {
            ready: "False RateLimited",
            says: &["/health", "429"],
            wrong: |room| room.vault.ill(Some(script::throttled(None))),
            right: |room| room.vault.ill(None),
        },
    ];
    for case in cases {
        let room = Room::started().await;
        (case.wrong)(&room);
        room.run_for(Duration::from_secs(1800)).await;
        assert_eq!(ready(&room), case.ready);
        let condition = room.connection_ready("conn");
        for part in case.says {
            assert!(condition.message.contains(part), "{}: {:?} lacks {part:?}", case.ready, condition.message);
        }
        assert_eq!(condition.observed_generation, room.connection("conn").unwrap().metadata.generation);
        let reason = case.ready.trim_start_matches("False ");
        assert_eq!(room.events("conn"), ["Normal Reachable".to_owned(), format!("Warning {reason}")], "told once");
        assert_eq!(room.metric("ferrvault_connection_ready{namespace=\"default\",name=\"conn\"}"), 0.0);
        (case.right)(&room);
        room.run_for(Duration::from_secs(61)).await;
        assert_eq!(ready(&room), "True Reachable", "after {}", case.ready);
    }
}

/// A token that was revoked would otherwise show on each of its resources and not where it is kept.
#[tokio::test(start_paused = true)]
async fn a_token_that_is_not_accepted_is_said_and_not_insisted_on() {
    let room = Room::started().await;
    assert_eq!(room.vault.asked_whose(), 1);
    room.vault.stranger(Some(script::unauthorized()));
    room.run_for(Duration::from_secs(600)).await;
    assert_eq!(ready(&room), "False AuthFailed");
    let message = room.connection_ready("conn").message;
    assert!(message.contains("expired nor revoked"), "{message}");
    assert_eq!(room.events("conn"), ["Normal Reachable", "Warning AuthFailed"]);
    let asked = room.vault.asked_whose();
    room.run_for(Duration::from_secs(3600)).await;
    let asked = room.vault.asked_whose() - asked;
    assert!((11..=13).contains(&asked), "asked {asked}x in an hour, not every five minutes");
    // Another token is tried at once.
    room.vault.stranger(None);
    room.api.apply(&build::secret(NS, "token").key("token", format!("{TOKEN}-2")));
    room.rest().await;
    assert_eq!(ready(&room), "True Reachable");
}

#[tokio::test(start_paused = true)]
async fn what_does_not_say_that_the_token_is_bad_is_not_held_against_it() {
    let upstream = ferrvault_vault::UpstreamText::default;
    let untold = "http://127.0.0.1:1 answers; whether it accepts the token shows on the resources";
    for error in [
        script::not_found(),
        VaultError::Forbidden { upstream: upstream() },
        script::throttled(None),
        script::failing(),
        VaultError::BrokenAnswer { what: "no JSON".into() },
    ] {
        let room = Room::new();
        room.vault.stranger(Some(error.clone()));
        let mut room = room;
        room.start().await;
        assert_eq!(ready(&room), "True Reachable", "{error}");
        assert_eq!(room.connection_ready("conn").message, untold, "{error}");
    }
    // Mode cloud has no such question.
    let room = Room::started().await;
    room.api.edit::<FerrVaultConnection>(NS, "conn", |object| {
        object["spec"]["mode"] = "cloud".into();
        object["spec"]["organization"] = "acme".into();
    });
    let asked = room.vault.asked_whose();
    room.rest().await;
    assert_eq!((room.vault.asked_whose(), room.connection_ready("conn").message.as_str()), (asked, untold));
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_to_use_it_is_no_reason_to_probe_it() {
    let room = Room::started().await;
    let (before, probes) = (room.here(), room.vault.health_checks());
    for index in 0..20 {
        room.api.apply(&fvs(&format!("r{index}")));
    }
    room.rest().await;
    let about_it = |room: &Room, since| {
        let mut calls = room.calls_since(since);
        calls.retain(|call| call.contains("ferrvaultconnections"));
        calls
    };
    assert_eq!(about_it(&room, before), ["PATCH ferrvaultconnections default/conn"], "held, and that is all");
    assert_eq!(room.vault.health_checks(), probes);
    for index in 0..20 {
        room.api.delete::<FerrVaultSecret>(NS, &format!("r{index}"));
    }
    room.rest().await;
    assert!(!held(&room));
    assert_eq!(room.vault.health_checks(), probes);
    // The next probe comes when it would have come.
    room.run_for(Duration::from_secs(600)).await;
    assert_eq!(room.vault.health_checks(), probes + 1, "{}", room.api.story());
    // One that fails is probed as before, however many come.
    room.vault.ill(Some(script::failing()));
    room.run_for(Duration::from_secs(900)).await;
    let failing = room.vault.health_checks();
    room.api.apply(&fvs("late"));
    room.run_for(Duration::from_secs(300)).await;
    let probes = room.vault.health_checks() - failing;
    assert!((4..=8).contains(&probes), "{probes} probes in five minutes at one a minute");
}

#[tokio::test(start_paused = true)]
async fn made_together_with_its_first_resource_it_is_probed_for_itself_and_not_for_the_second() {
    let room = Room::started().await;
    room.api.apply(&build::secret(NS, "new-token").key("token", format!("{TOKEN}-new")));
    room.api.apply(&build::connection(NS, "new").url("http://127.0.0.1:1").token_in("new-token", "token"));
    room.api.apply(&fvs("first").through("new"));
    room.run_for(Duration::from_secs(2)).await;
    let (before, probes) = (room.here(), room.vault.health_checks());
    room.api.apply(&fvs("second").through("new"));
    room.run_for(Duration::from_secs(2)).await;
    assert_eq!(room.ready("second"), "True Synced");
    let calls = room.calls_since(before);
    assert!(!calls.iter().any(|call| call.contains("ferrvaultconnections")), "{calls:?}\n{}", room.api.story());
    assert_eq!(room.vault.health_checks(), probes);
}

#[tokio::test(start_paused = true)]
async fn it_is_held_exactly_while_it_is_used() {
    let room = Room::started().await;
    assert!(!held(&room), "nothing refers to it");
    room.api.apply(&fvs("a"));
    room.rest().await;
    assert!(held(&room), "the first user");
    room.api.apply(&fvs("b"));
    room.rest().await;
    room.api.delete::<FerrVaultSecret>(NS, "a");
    room.rest().await;
    assert!(held(&room), "one user left");
    room.api.apply(&fvs("b").through("another"));
    room.rest().await;
    assert!(!held(&room), "the last user turned to another");
    room.api.apply(&fvs("b"));
    room.rest().await;
    assert!(held(&room), "and came back");
    room.api.delete::<FerrVaultSecret>(NS, "b");
    room.rest().await;
    assert!(!held(&room), "the last user went");
    // Users in another namespace mean another connection.
    room.api.apply(&build::fvs("elsewhere", "a").through("conn").vault("db"));
    room.rest().await;
    assert!(!held(&room), "same name, another namespace");
    let writes = room.times("PATCH ferrvaultconnections default/conn").len();
    assert_eq!(writes, 4, "one write per change and no more");
    room.api.delete::<FerrVaultConnection>(NS, "conn");
    room.rest().await;
    assert!(room.connection("conn").is_none(), "unused, it goes at once");
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_that_was_left_behind_or_taken_away_is_put_right() {
    let mut room = Room::new();
    room.api.edit::<FerrVaultConnection>(NS, "conn", |object| {
        object["metadata"]["finalizers"] = json!(["example.com/keep", marks::CONNECTION_FINALIZER]);
    });
    room.start().await;
    assert_eq!(room.finalizers("conn"), ["example.com/keep"]);
    room.api.apply(&fvs("a"));
    room.rest().await;
    assert!(held(&room));
    room.api.edit::<FerrVaultConnection>(NS, "conn", |object| object["metadata"]["finalizers"] = json!([]));
    room.run_for(Duration::from_secs(601)).await;
    assert!(held(&room), "at the next probe at the latest");
}

#[tokio::test(start_paused = true)]
async fn a_delete_waits_for_the_users_and_names_five_of_them() {
    let room = Room::started().await;
    for name in ["g", "c", "a", "f", "b", "e", "d"] {
        room.api.apply(&fvs(name));
    }
    room.rest().await;
    room.api.delete::<FerrVaultConnection>(NS, "conn");
    room.rest().await;
    assert_eq!(ready(&room), "False DeletionBlocked");
    let message = room.connection_ready("conn").message;
    assert!(message.contains("FerrVaultSecret a, b, c, d, e and 2 more"), "{message}");
    assert!(message.contains("deleted when they are gone or refer to another"), "{message}");
    assert_eq!(room.events("conn"), ["Normal Reachable", "Warning DeletionBlocked"]);

    let looks = room.times("PATCH ferrvaultconnections/status default/conn").len();
    room.run_for(Duration::from_secs(300)).await;
    let looked = room.times("PATCH ferrvaultconnections/status default/conn").len() - looks;
    assert!((9..=11).contains(&looked), "looked at {looked}x in five minutes, not every 30 s");
    // Its users go on meanwhile.
    room.rotate(2);
    room.nudge("a").await;
    room.assert_current("a", "db");
    assert_eq!(room.ready("a"), "True Synced");

    room.api.delete::<FerrVaultSecret>(NS, "g");
    room.api.delete::<FerrVaultSecret>(NS, "a");
    room.rest().await;
    assert!(
        room.connection_ready("conn").message.contains("FerrVaultSecret b, c, d, e, f;"),
        "each that goes is noticed"
    );
    for name in ["b", "c", "d", "e"] {
        room.api.delete::<FerrVaultSecret>(NS, name);
    }
    room.api.apply(&fvs("f").through("another"));
    room.rest().await;
    assert!(room.connection("conn").is_none(), "the last user being gone, it goes\n{}", room.api.story());
    let before = room.here();
    room.run_for(Duration::from_secs(1200)).await;
    assert!(!room.calls_since(before).iter().any(|call| call.contains("conn")), "and is forgotten");
    assert!(!room.metrics.text().unwrap().contains("name=\"conn\""));
}

#[tokio::test(start_paused = true)]
async fn a_delete_goes_through_when_the_users_go_while_no_operator_runs() {
    let mut room = Room::started().await;
    room.api.apply(&fvs("a"));
    room.rest().await;
    room.kill();
    room.api.delete::<FerrVaultConnection>(NS, "conn");
    room.api.delete::<FerrVaultSecret>(NS, "a");
    assert!(room.connection("conn").is_some());
    room.start().await;
    assert!(room.connection("conn").is_none());
}

#[tokio::test(start_paused = true)]
async fn every_write_about_it_is_repeated_until_it_goes_through() {
    for (call, fault) in [
        ("PATCH ferrvaultconnections default/conn", Fault::Refuse(500)),
        ("PATCH ferrvaultconnections default/conn", Fault::Refuse(409)),
        ("PATCH ferrvaultconnections default/conn", Fault::LostAnswer),
        ("PATCH ferrvaultconnections/status default/conn", Fault::Refuse(503)),
        ("PATCH ferrvaultconnections/status default/conn", Fault::LostRequest),
    ] {
        let room = Room::started().await;
        room.times_over(2, call, fault.clone());
        room.vault.ill(Some(script::failing()));
        room.api.apply(&fvs("a"));
        room.api.apply(&build::secret(NS, "token").key("token", format!("{TOKEN}-2")));
        room.run_for(Duration::from_secs(60)).await;
        assert!(held(&room), "{call}, {fault}\n{}", room.api.story());
        assert_eq!(ready(&room), "False Unreachable", "{call}, {fault}\n{}", room.api.story());
        assert_eq!(room.ready("a"), "True Synced", "{call}, {fault}: its users do not wait for its probe");
    }
}

#[tokio::test(start_paused = true)]
async fn made_after_its_resource_it_is_used_at_once() {
    let room = Room::started().await;
    room.api.apply(&fvs("a").through("later"));
    room.run_for(Duration::from_secs(900)).await;
    assert_eq!(room.ready("a"), "False ConnectionNotFound");
    room.api.apply(&build::connection(NS, "later").url("http://127.0.0.1:1").token_in("token", "token"));
    room.rest().await;
    assert_eq!(room.ready("a"), "True Synced", "{}", room.api.story());
    assert_eq!(room.finalizers("later"), [marks::CONNECTION_FINALIZER]);
    // Taken away by force, it is missed at once as well.
    room.api.edit::<FerrVaultConnection>(NS, "later", |object| object["metadata"]["finalizers"] = json!([]));
    room.api.delete::<FerrVaultConnection>(NS, "later");
    room.rest().await;
    assert_eq!(room.ready("a"), "False ConnectionNotFound");
    room.assert_current("a", "db");
}

#[tokio::test(start_paused = true)]
async fn its_token_made_after_it_is_used_at_once() {
    let room = Room::started().await;
    room.api.apply(&build::connection(NS, "later").url("http://127.0.0.1:1").token_in("later-token", "token"));
    room.api.apply(&fvs("a").through("later"));
    room.run_for(Duration::from_secs(900)).await;
    assert_eq!(room.ready("a"), "False TokenUnreadable");
    room.api.apply(&build::secret(NS, "later-token").key("token", TOKEN));
    room.rest().await;
    assert_eq!(room.ready("a"), "True Synced", "{}", room.api.story());
    let condition = room.connection_ready("later");
    assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("True", "Reachable"));
}

fn refused(room: &Room, error: Option<VaultError>) {
    room.vault.always("db", error.map(script::Mood::Fails));
}

/// It would otherwise go on saying that the token is accepted until its next probe, ten minutes later.
#[tokio::test(start_paused = true)]
async fn a_resource_whose_token_is_refused_has_it_checked_once_and_before_its_time() {
    let room = Room::started().await;
    let names: Vec<String> = (0..20).map(|index| format!("r{index}")).collect();
    for name in &names {
        room.api.apply(&fvs(name));
    }
    room.run_for(Duration::from_secs(60)).await;
    let reports = |room: &Room| names.iter().map(|name| room.reports(name).len()).sum::<usize>();
    let (probes, before) = (room.vault.health_checks(), reports(&room));
    room.vault.stranger(Some(script::unauthorized()));
    refused(&room, Some(script::unauthorized()));
    names.iter().for_each(|name| room.nudge_now(name));
    room.rest().await;
    assert_eq!(ready(&room), "False AuthFailed", "{}", room.api.story());
    assert_eq!(room.vault.health_checks(), probes + 1, "once for all of them");
    assert_eq!(reports(&room), before + names.len(), "a check starts no pass of theirs");
    // All are tried again each five minutes, and each is refused again.
    let whose = room.vault.asked_whose();
    room.run_for(Duration::from_secs(3600)).await;
    let asked = room.vault.asked_whose() - whose;
    assert!((11..=13).contains(&asked), "asked {asked}x in an hour, not every five minutes");
}

#[tokio::test(start_paused = true)]
async fn a_check_that_finds_the_token_accepted_is_not_repeated_for_each_pass_that_is_refused() {
    let room = Room::with_db(fvs("a")).await;
    for name in ["b", "c", "d", "e"] {
        room.api.apply(&fvs(name));
        room.run_for(Duration::from_secs(70)).await;
    }
    let scheduled = room.vault.health_checks();
    refused(&room, Some(script::unauthorized()));
    for name in ["a", "b", "c", "d", "e"] {
        room.nudge(name).await;
        room.run_for(Duration::from_secs(55)).await;
        assert_eq!(room.ready(name), "False AuthFailed");
    }
    assert_eq!(ready(&room), "True Reachable");
    assert_eq!(room.vault.health_checks(), scheduled + 1, "{}", room.api.story());
    let probes = room.vault.health_checks();
    room.run_for(Duration::from_secs(7200)).await;
    let probes = room.vault.health_checks() - probes;
    assert!((12..=26).contains(&probes), "{probes} probes in two hours: one of its own beside each that is scheduled");
}

#[tokio::test(start_paused = true)]
async fn what_is_about_a_vault_or_was_looked_at_just_now_is_no_reason_to_check_it() {
    for (case, error, wait, expected) in [
        ("another vault than the token's", VaultError::Forbidden { upstream: Default::default() }, 60, 0),
        ("no such vault", script::not_found(), 60, 0),
        ("FerrVault is failing", script::failing(), 60, 0),
        ("checked half a minute ago", script::unauthorized(), 20, 0),
        ("checked a minute ago", script::unauthorized(), 60, 1),
    ] {
        let room = Room::with_db(fvs("a")).await;
        let probes = room.vault.health_checks();
        room.run_for(Duration::from_secs(wait)).await;
        refused(&room, Some(error));
        room.nudge("a").await;
        assert_eq!(room.vault.health_checks(), probes + expected, "{case}\n{}", room.api.story());
    }
    // One that is not well is looked at in its own time.
    let room = Room::with_db(fvs("a")).await;
    room.vault.ill(Some(script::failing()));
    room.run_for(Duration::from_secs(900)).await;
    assert_eq!(ready(&room), "False Unreachable");
    let last = room.vault.health_checks();
    while room.vault.health_checks() == last {
        room.run_for(Duration::from_secs(1)).await;
    }
    refused(&room, Some(script::unauthorized()));
    room.run_for(Duration::from_secs(40)).await;
    room.nudge("a").await;
    assert_eq!(room.vault.health_checks(), last + 1, "{}", room.api.story());
}

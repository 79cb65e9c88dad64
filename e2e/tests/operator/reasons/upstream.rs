//! What FerrVault answers, or does not.

use ferrvault_api::FerrVaultSecret;
use serde_json::json;

use super::{Case, HEAL, HEAL_AND_RENEW_TOKEN, change, spoil};

pub(super) fn cases() -> Vec<Case> {
    let case = |name, breaks, ready, says, heals| Case { name, breaks, ready, says, heals };
    let no = |reason| ("False", reason);
    let still = |reason| ("True", reason);
    vec![
        case(
            "a_wanted_key_is_missing",
            change!(|scene| scene.unset("B").await),
            no("MissingKeys"),
            &["does not have: B", "keeps its last content"],
            change!(|scene| scene.set(&[("B", "back again")]).await),
        ),
        case(
            "nothing_is_left_of_the_vault",
            change!(|scene| {
                scene.unset("A").await;
                scene.unset("B").await;
                scene.edit::<FerrVaultSecret>("shop", json!({"spec": {"selector": null}})).await;
            }),
            no("EmptyAnswer"),
            &["gave no key at all", "keeps its last content"],
            change!(|scene| scene.set(&[("A", "back again")]).await),
        ),
        case(
            "ferrvault_says_503",
            spoil!({"kind": "respond", "status": 503}),
            still("Unreachable"),
            &["is failing (503", "last synced at"],
            HEAL,
        ),
        case(
            "ferrvault_hangs_up",
            spoil!({"kind": "reset"}),
            still("Unreachable"),
            &["cannot be reached", "last synced at"],
            HEAL,
        ),
        case(
            "ferrvault_hangs_up_in_its_answer",
            spoil!({"kind": "reset_body"}),
            still("Unreachable"),
            &["last synced at"],
            HEAL,
        ),
        case(
            "ferrvault_never_answers",
            spoil!({"kind": "stall"}),
            still("Unreachable"),
            &["did not answer completely within 10", "last synced at"],
            HEAL,
        ),
        case(
            "the_answer_is_no_json",
            spoil!({"kind": "nonsense"}),
            still("Unreachable"),
            &["is not understood", "last synced at"],
            HEAL,
        ),
        case(
            "the_answer_is_cut_short",
            spoil!({"kind": "truncated"}),
            still("Unreachable"),
            &["is not understood", "last synced at"],
            HEAL,
        ),
        case(
            "the_answer_has_no_body",
            spoil!({"kind": "empty"}),
            still("Unreachable"),
            &["is not understood", "last synced at"],
            HEAL,
        ),
        case(
            "the_answer_is_too_large",
            spoil!({"kind": "big_body"}),
            no("InvalidSpec"),
            &["is larger than 4194304 bytes", "split the vault"],
            HEAL,
        ),
        case(
            "ferrvault_asks_for_fewer_calls",
            spoil!({"kind": "respond", "status": 429, "retry_after": 2}),
            still("RateLimited"),
            &["asks for fewer calls (429", "last synced at"],
            HEAL,
        ),
        case(
            "ferrvault_says_401",
            spoil!({"kind": "respond", "status": 401}),
            no("AuthFailed"),
            &["(401"],
            HEAL_AND_RENEW_TOKEN,
        ),
        case(
            "ferrvault_says_403",
            spoil!({"kind": "respond", "status": 403}),
            no("AuthFailed"),
            &["(403"],
            HEAL_AND_RENEW_TOKEN,
        ),
        case(
            "ferrvault_says_418",
            spoil!({"kind": "respond", "status": 418}),
            no("InvalidConnection"),
            &["rejects the call (418"],
            HEAL,
        ),
    ]
}

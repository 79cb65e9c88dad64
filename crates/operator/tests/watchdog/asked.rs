//! The annotation that asks for a pass, and what answers it.

use std::time::Duration;

use ferrvault_api::FerrVaultSecret;

use crate::script::{Mood, unauthorized};
use crate::ward::{MINUTE, NS, Ward, resource};

async fn settled(ward: &Ward) {
    ward.run_for(Duration::from_secs(1)).await;
}

fn handled(ward: &Ward) -> Option<String> {
    ward.fvs("db").status.unwrap().last_handled_refresh
}

#[tokio::test(start_paused = true)]
async fn any_new_value_asks_for_one_pass_and_is_echoed_when_it_has_ended() {
    let ward = Ward::with(&[resource("db", "24h")]).await;
    for (value, passes) in [("1", 1), ("2", 2), ("2", 2), ("", 3), ("1", 4)] {
        ward.ask_for_refresh("db", value);
        settled(&ward).await;
        assert_eq!(handled(&ward).as_deref(), Some(value));
        assert_eq!(ward.vault.reveals_of("db"), 1 + passes, "{value:?}");
    }
    // That the annotation goes asks for nothing, and neither does the same value set again.
    ward.api.edit::<FerrVaultSecret>(NS, "db", |object| object["metadata"]["annotations"] = serde_json::json!({}));
    settled(&ward).await;
    ward.ask_for_refresh("db", "1");
    settled(&ward).await;
    assert_eq!((handled(&ward).as_deref(), ward.vault.reveals_of("db")), (Some("1"), 5));
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_fails_has_ended_as_well() {
    let ward = Ward::with(&[resource("db", "24h")]).await;
    ward.vault.always("db", Some(Mood::Fails(unauthorized())));
    ward.ask_for_refresh("db", "now");
    settled(&ward).await;
    assert_eq!((handled(&ward).as_deref(), ward.ready("db").as_str()), (Some("now"), "False AuthFailed"));
    // And is tried again as its reason says, not more often for the request.
    ward.run_for(4 * MINUTE).await;
    assert_eq!(ward.vault.reveals_of("db"), 2);
    assert_eq!(ward.fresh("db"), "True Current");
}

#[tokio::test(start_paused = true)]
async fn a_value_that_was_set_while_no_operator_ran_is_answered_at_its_start() {
    let mut ward = Ward::new();
    ward.api.apply(&resource("db", "24h").annotated("ferrvault.com/refresh", "early"));
    ward.start().await;
    settled(&ward).await;
    assert_eq!(handled(&ward).as_deref(), Some("early"));
    assert_eq!(ward.vault.reveals_of("db"), 1);
}

#[tokio::test(start_paused = true)]
async fn of_a_value_without_end_the_beginning_counts() {
    let ward = Ward::with(&[resource("db", "24h")]).await;
    ward.ask_for_refresh("db", &"ü".repeat(10_000));
    settled(&ward).await;
    assert_eq!(handled(&ward), Some("ü".repeat(128)));
    ward.run_for(30 * MINUTE).await;
    assert_eq!(ward.vault.reveals_of("db"), 2, "it is answered");
}

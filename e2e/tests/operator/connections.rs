//! Connections: what their Ready says, and that none goes while a resource uses it.

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret, marks};
use ferrvault_e2e::canaries::fresh;
use ferrvault_e2e::dev::Dev;
use ferrvault_e2e::objects::{self, CONNECTION, TOKEN};
use ferrvault_e2e::runner::Scenario;
use ferrvault_e2e::scene::Scene;
use ferrvault_e2e::world::World;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use crate::register::{by_default, scenarios};

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    scenarios![by_default:
        what_is_wrong_with_a_connection_is_said_on_it_until_it_is_right,
        a_ferrvault_that_goes_and_comes_back,
        a_prefix_in_the_url_is_kept,
        a_connection_in_use_is_not_deleted_and_one_that_is_not_goes_at_once,
        more_than_five_users_are_counted,
    ]
}

async fn what_is_wrong_with_a_connection_is_said_on_it_until_it_is_right(scene: &Scene) {
    let url = scene.cluster.dev.url();
    scene.create::<FerrVaultConnection>(objects::connection(url)).await;
    let told = scene.until_connection(CONNECTION, "False", "TokenUnreadable").await;
    assert!(told.message.contains(r#"there is no Secret "main-token""#), "{}", told.message);

    let token = scene.cluster.dev.token(&scene.vault()).await;
    scene.put_token(&token.token).await;
    let told = scene.until_connection(CONNECTION, "True", "Reachable").await;
    assert_eq!(told.message, format!("{url} answers and accepts the token"));

    for (spec, reason, words, back) in [
        (
            json!({"tokenSecretRef": {"key": "k"}}),
            "TokenKeyMissing",
            r#"no key "k""#,
            json!({"tokenSecretRef": {"key": "token"}}),
        ),
        (json!({"url": "http://vault.example.com"}), "InvalidConnection", "plain http", json!({"url": url})),
        (json!({"url": "http://127.0.0.1:1"}), "Unreachable", "cannot be reached", json!({"url": url})),
        (json!({"url": format!("{url}/nowhere")}), "VaultNotFound", "404", json!({"url": url})),
    ] {
        scene.edit::<FerrVaultConnection>(CONNECTION, json!({"spec": spec})).await;
        let told = scene.until_connection(CONNECTION, "False", reason).await;
        assert!(told.message.contains(words), "{words:?} is not in: {}", told.message);
        scene.edit::<FerrVaultConnection>(CONNECTION, json!({"spec": back})).await;
        scene.until_connection(CONNECTION, "True", "Reachable").await;
    }
    let connection = scene.get::<FerrVaultConnection>(CONNECTION).await;
    assert!(connection.status.unwrap().last_checked_at.is_some());
    assert_eq!(connection.metadata.finalizers, None, "nobody uses it");
}

async fn a_ferrvault_that_goes_and_comes_back(scene: &Scene) {
    let folder = scene.cluster.new_folder("dev");
    let dev = Dev::start(&folder, &[], &scene.cluster.canaries).await;
    let vault = dev.vault(&scene.name).await;
    let first = fresh("first");
    dev.set(&vault, &[("K", &first)]).await;
    let token = dev.token(&vault).await;
    scene.put_token(&token.token).await;
    scene.create::<FerrVaultConnection>(objects::connection(dev.url())).await;
    scene.resource("shop", json!({})).await;
    let resource = scene.synced("shop").await;
    let version = scene.target("shop", &resource, &[("K", first.as_bytes())]).await;

    let listens = dev.url().trim_start_matches("http://").to_owned();
    dev.kill().await;
    let told = scene.until_condition("shop", "Ready", "True", "Unreachable").await;
    let told = &objects::condition(objects::conditions(&told), "Ready").unwrap().message;
    assert!(told.contains("cannot be reached") && told.contains("last synced at"), "{told}");

    // The same data on the same port, as after a restart of the server.
    let dev = Dev::start(&folder, &["--listen", &listens], &scene.cluster.canaries).await;
    scene.synced("shop").await;
    assert_eq!(
        scene.target("shop", &resource, &[("K", first.as_bytes())]).await,
        version,
        "nothing was lost meanwhile"
    );
    let second = fresh("second");
    dev.set(&vault, &[("K", &second)]).await;
    scene.target("shop", &resource, &[("K", second.as_bytes())]).await;
    scene.close().await;
}

async fn a_prefix_in_the_url_is_kept(scene: &Scene) {
    let folder = scene.cluster.new_folder("dev");
    let dev = Dev::start(&folder, &["--base-path", "/tools/ferrvault"], &scene.cluster.canaries).await;
    assert!(dev.url().ends_with("/tools/ferrvault"), "{}", dev.url());
    let vault = dev.vault(&scene.name).await;
    let value = fresh("value");
    dev.set(&vault, &[("K", &value)]).await;
    scene.put_token(&dev.token(&vault).await.token).await;
    // A slash at the end is tolerated.
    scene.create::<FerrVaultConnection>(objects::connection(&format!("{}/", dev.url()))).await;
    scene.resource("shop", json!({})).await;
    let resource = scene.synced("shop").await;
    scene.target("shop", &resource, &[("K", value.as_bytes())]).await;
    scene.until_connection(CONNECTION, "True", "Reachable").await;
    scene.close().await;
}

async fn a_connection_in_use_is_not_deleted_and_one_that_is_not_goes_at_once(scene: &Scene) {
    scene.connect().await;
    scene.until_connection(CONNECTION, "True", "Reachable").await;
    assert_eq!(scene.get::<FerrVaultConnection>(CONNECTION).await.metadata.finalizers, None);
    let (first, second) = (fresh("first"), fresh("second"));
    scene.set(&[("K", &first)]).await;
    scene.resource("shop", json!({})).await;
    let resource = scene.synced("shop").await;
    let held = |connection: &FerrVaultConnection| {
        let held = connection.metadata.finalizers.clone().unwrap_or_default();
        if held == [marks::CONNECTION_FINALIZER] { Ok(()) } else { Err(format!("finalizers {held:?}")) }
    };
    scene.until_it(CONNECTION, "is held", held).await;

    scene.delete::<FerrVaultConnection>(CONNECTION).await;
    let told = scene.until_connection(CONNECTION, "False", "DeletionBlocked").await;
    assert!(told.message.contains("still used by FerrVaultSecret shop;"), "{}", told.message);
    // It goes on working for who uses it.
    scene.set(&[("K", &second)]).await;
    scene.target("shop", &resource, &[("K", second.as_bytes())]).await;

    scene.delete::<FerrVaultSecret>("shop").await;
    scene.gone::<FerrVaultConnection>(CONNECTION).await;

    // With nobody using it, it goes at once; and so does one whose user turned to another.
    scene.create::<FerrVaultConnection>(objects::connection(scene.cluster.dev.url())).await;
    scene.until_connection(CONNECTION, "True", "Reachable").await;
    let mut other = objects::connection(scene.cluster.dev.url());
    other["metadata"]["name"] = json!("other");
    scene.create::<FerrVaultConnection>(other).await;
    scene.resource("again", json!({})).await;
    scene.synced("again").await;
    scene.until_it(CONNECTION, "is held", held).await;
    scene.edit::<FerrVaultSecret>("again", json!({"spec": {"connectionRef": {"name": "other"}}})).await;
    scene.until_it("other", "is held", held).await;
    scene.delete::<FerrVaultConnection>(CONNECTION).await;
    scene.gone::<FerrVaultConnection>(CONNECTION).await;
    assert!(scene.find::<Secret>(TOKEN).await.is_some(), "the token is the user's");
}

async fn more_than_five_users_are_counted(scene: &Scene) {
    scene.connect().await;
    scene.set(&[("K", &fresh("value"))]).await;
    for number in 1..=6 {
        scene.resource(&format!("r{number}"), json!({})).await;
    }
    for number in 1..=6 {
        scene.synced(&format!("r{number}")).await;
    }
    scene.delete::<FerrVaultConnection>(CONNECTION).await;
    let told = scene.until_connection(CONNECTION, "False", "DeletionBlocked").await;
    assert!(told.message.contains("FerrVaultSecret r1, r2, r3, r4, r5 and 1 more;"), "{}", told.message);
    scene.close().await;
    scene.gone::<FerrVaultConnection>(CONNECTION).await;
}

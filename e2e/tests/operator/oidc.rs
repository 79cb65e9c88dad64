//! Workload identity from end to end: a token of the operator's service account, made by the API server for FerrVault's
//! audience, is exchanged for a bearer by a FerrVault that verifies it against the API server's own keys. And everything
//! that must keep that token from getting anywhere else.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use ferrvault_api::{FerrVaultConnection, FerrVaultSecret, condition};
use ferrvault_e2e::canaries::fresh;
use ferrvault_e2e::dev::Dev;
use ferrvault_e2e::objects;
use ferrvault_e2e::own::Own;
use ferrvault_e2e::runner::Scenario;
use ferrvault_e2e::scene::Scene;
use ferrvault_e2e::world::World;
use serde_json::{Value, json};

const AUDIENCE: &str = "https://ferrflow.com";

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    vec![
        Scenario::new("oidc::one_exchange_serves_all_until_its_bearer_is_refused", async |world: Rc<World>| {
            exchange(&Identity::new(&world).await).await;
        }),
        Scenario::new("oidc::a_bearer_is_renewed_before_it_ends", async |world: Rc<World>| {
            renewal(&Identity::with(&world, &["--bearer-lifetime", "63s"], json!({})).await).await;
        }),
        // The shortest deadline that is accepted: just above the longest call of 30.625 s.
        Scenario::new("oidc::a_pass_is_cut_at_its_deadline_and_tried_again", async |world: Rc<World>| {
            cut(&Identity::with(&world, &[], json!({"reconcileTimeout": "31s"})).await).await;
        }),
        Scenario::new("oidc::the_identity_goes_only_where_it_is_meant_to", async |world: Rc<World>| {
            refusals(&Identity::new(&world).await).await;
        }),
    ]
}

/// An operator with a folder for its identity and leave to send it to one server.
struct Identity {
    own: Own,
    dev: Dev,
    folder: PathBuf,
    /// The public keys that the API server signs its tokens with.
    keys: Value,
}

impl Identity {
    async fn new(world: &World) -> Self {
        Self::with(world, &[], json!({})).await
    }

    async fn with(world: &World, dev_args: &[&str], more: Value) -> Self {
        let cluster = world.apart().await;
        let dev = Dev::start(&cluster.new_folder("oidc-dev"), dev_args, &cluster.canaries).await;
        let folder = cluster.new_folder("identity");
        // As a user sets it, with a folder of this test in the place of the mounted one.
        let mut values = json!({
            "oidcToken": {"enabled": true, "allowOrigins": [dev.url()]},
            "extraArgs": [format!("--oidc-token-dir={}", folder.display())],
        });
        objects::merge(&mut values, more);
        let own = Own::new(&cluster, "oidc", values).await;
        let request = http::Request::get("/openid/v1/jwks").body(Vec::new()).unwrap();
        let keys = cluster.client.request(request).await.unwrap();
        Self { own, dev, folder, keys }
    }

    fn scene(&self) -> &Scene {
        &self.own.scene
    }

    /// Writes a token of the operator's own service account, as the kubelet does.
    async fn mount_token(&self, audience: &str, path: &Path) {
        let (cluster, release) = (&self.scene().cluster, &self.own.release);
        let made =
            cluster.plane.service_account_token(&release.namespace, &release.account, &[audience]).await.unwrap();
        cluster.canaries.note(made.expose());
        std::fs::write(path, format!("{}\n", made.expose())).unwrap();
    }

    async fn exchanges(&self) -> usize {
        exchanges(&self.dev).await
    }

    /// A vault with a value, a connection, and resources that are synced through it; the value.
    async fn synced(&self, resources: &[&str]) -> String {
        let scene = self.scene();
        let path = self.folder.join("token");
        self.mount_token(AUDIENCE, &path).await;
        let cluster_id = self.dev.register_cluster(AUDIENCE, &self.keys).await;
        let vault = self.dev.vault(&scene.name).await;
        let value = fresh("value");
        self.dev.set(&vault, &[("K", &value)]).await;
        let oidc = json!({"clusterID": cluster_id, "tokenPath": path});
        scene.create::<FerrVaultConnection>(connection(objects::CONNECTION, self.dev.url(), &oidc)).await;
        for name in resources {
            scene.resource(name, json!({})).await;
        }
        for name in resources {
            let resource = scene.synced(name).await;
            scene.target(name, &resource, &[("K", value.as_bytes())]).await;
        }
        scene.until_connection(objects::CONNECTION, "True", "Reachable").await;
        value
    }
}

async fn exchanges(dev: &Dev) -> usize {
    dev.asked(0).await.iter().filter(|asked| asked.route.ends_with("/oidc-exchange")).count()
}

fn connection(name: &str, url: &str, oidc: &Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"url": url, "oidc": oidc}})
}

fn ready(resource: &FerrVaultSecret) -> (String, String) {
    let ready = objects::condition(objects::conditions(resource), condition::READY).unwrap();
    (ready.reason.clone(), ready.message.clone())
}

async fn exchange(identity: &Identity) {
    let _operator = identity.own.start("a").await;
    let names = ["one", "two", "three"];
    identity.synced(&names).await;
    for name in names {
        identity.scene().passes(name, 2).await;
    }
    assert_eq!(identity.exchanges().await, 1, "one bearer for connection and resources");

    // Revoked before its time: exchanged anew, and nobody notices.
    assert_eq!(identity.dev.revoke_bearers(&identity.own.release.user()).await, 1);
    for name in names {
        let now = identity.scene().passes(name, 2).await;
        assert_eq!(ready(&now).0, "Synced", "{}", ready(&now).1);
    }
    let again = identity.exchanges().await - 1;
    // Passes that were refused at the same moment may each drop the bearer that another one has just won.
    assert!((1..=names.len()).contains(&again), "exchanged {again} times for one bearer that was refused");
}

/// A bearer counts as ended a minute before it does, so one of 63 s is used for three.
async fn renewal(identity: &Identity) {
    let _operator = identity.own.start("a").await;
    identity.synced(&["shop"]).await;
    identity
        .scene()
        .until("the bearer was exchanged several times", async || {
            let count = identity.exchanges().await;
            if count >= 3 { Ok(()) } else { Err(format!("{count} exchanges")) }
        })
        .await;
    let refused = identity.dev.asked(0).await.iter().filter(|asked| asked.status == Some(401)).count();
    assert_eq!(refused, 0, "renewed in time, not after a refusal");
    assert_eq!(ready(&identity.scene().get("shop").await).0, "Synced");
}

/// One call alone never takes as long as a pass may, so two of them do: an exchange that takes its time, and a reveal that
/// never ends.
async fn cut(identity: &Identity) {
    let Identity { own, dev, .. } = identity;
    let scene = identity.scene();
    let operator = own.start("a").await;
    let value = identity.synced(&["shop"]).await;
    let resource = scene.get::<FerrVaultSecret>("shop").await;
    let attempted = async || scene.get::<FerrVaultSecret>("shop").await.status.unwrap().last_attempted_at;
    let exchange = json!({"path_prefix": "/api/v1/clusters/oidc-exchange"});
    dev.rule(json!({"match": exchange, "action": {"kind": "delay", "ms": 8000}})).await;
    dev.revoke_bearers(&own.release.user()).await;
    scene
        .until("an exchange is under way", async || {
            let asked = dev.asked(0).await;
            let waits = asked.iter().any(|asked| asked.route.ends_with("/oidc-exchange") && asked.status.is_none());
            if waits { Ok(()) } else { Err("none".to_owned()) }
        })
        .await;
    dev.spoil(&scene.name, json!({"kind": "stall"})).await;
    let before = attempted().await;
    let cut = scene.until_condition("shop", condition::READY, "True", "ReconcileTimeout").await;
    let told = ready(&cut).1;
    for words in ["cut after 31s while asking FerrVault for vault", "last synced at"] {
        assert!(told.contains(words), "{words:?} is not in: {told}");
    }
    assert_eq!(attempted().await, before, "a pass that was cut is not a completed one");
    let metric = r#"controller_runtime_reconcile_timeouts_total{controller="ferrvaultsecret"} 1"#;
    assert!(operator.metrics().await.unwrap().contains(metric), "{}", operator.metrics().await.unwrap());
    scene.target("shop", &resource, &[("K", value.as_bytes())]).await;
    dev.heal(&scene.name).await;
    scene.synced("shop").await;
}

async fn refusals(identity: &Identity) {
    let Identity { dev, folder, .. } = identity;
    let scene = identity.scene();
    let cluster = &scene.cluster;
    let (token, other_token) = (folder.join("token"), folder.join("for-elsewhere"));
    let outside = cluster.new_folder("outside");
    identity.mount_token(AUDIENCE, &token).await;
    identity.mount_token("https://elsewhere.example", &other_token).await;
    identity.mount_token(AUDIENCE, &outside.join("token")).await;
    std::os::unix::fs::symlink(outside.join("token"), folder.join("link")).unwrap();
    std::fs::write(folder.join("no-jwt"), "just some text").unwrap();
    let up_and_out = folder.join("..").join(outside.file_name().unwrap()).join("token");

    let other = Dev::start(&cluster.new_folder("not-allowed"), &[], &cluster.canaries).await;
    let known_there = other.register_cluster(AUDIENCE, &identity.keys).await;
    let known = dev.register_cluster(AUDIENCE, &identity.keys).await;
    let strict = dev.register_cluster("https://another.example", &identity.keys).await;
    let _operator = identity.own.start("a").await;
    scene.resource("shop", json!({"connectionRef": {"name": "none-yet"}})).await;
    let here = dev.url();
    let below = format!("cannot be read as a file in {}", folder.display());
    for (name, url, cluster_id, path, reason, words) in [
        (
            "another-server",
            other.url(),
            &known_there,
            token.clone(),
            "InvalidConnection",
            "add --allow-origin=http://127.0.0.1:",
        ),
        ("outside", here, &known, outside.join("token"), "TokenUnreadable", &*below),
        ("up-and-out", here, &known, up_and_out, "TokenUnreadable", &*below),
        ("linked", here, &known, folder.join("link"), "TokenUnreadable", &*below),
        ("of-the-system", here, &known, PathBuf::from("/etc/passwd"), "TokenUnreadable", &*below),
        ("the-folder", here, &known, folder.clone(), "TokenUnreadable", &*below),
        ("not-there", here, &known, folder.join("nothing"), "TokenUnreadable", &*below),
        ("no-jwt", here, &known, folder.join("no-jwt"), "TokenUnreadable", "holds no JWT"),
        ("for-another", here, &known, other_token, "InvalidConnection", "was not made for oidc.audience"),
        ("another-wanted", here, &strict, token, "AuthFailed", "(401"),
    ] {
        let before = identity.exchanges().await;
        let oidc = json!({"clusterID": cluster_id, "tokenPath": path, "audience": AUDIENCE});
        scene.create::<FerrVaultConnection>(connection(name, url, &oidc)).await;
        scene.edit::<FerrVaultSecret>("shop", json!({"spec": {"connectionRef": {"name": name}}})).await;
        let told = scene.until_connection(name, "False", reason).await.message;
        assert!(told.contains(words), "{name}: {words:?} is not in: {told}");
        let told = ready(&scene.until_condition("shop", condition::READY, "False", reason).await).1;
        assert!(told.contains(words), "{name}: {words:?} is not in: {told}");
        let sent = identity.exchanges().await > before;
        assert_eq!(sent, reason == "AuthFailed", "{name}: the identity is sent only where FerrVault itself refuses it");
    }
    assert_eq!(exchanges(&other).await, 0);
    // Its own console is asked by this test; nothing else may have come with a token.
    let asked = other.asked(0).await;
    assert!(asked.iter().all(|asked| asked.route.starts_with("/dev/") || !asked.bearer), "{asked:?}");
}

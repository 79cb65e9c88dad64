//! Rights, asked for before they are needed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ferrvault_operator::cluster::rights::{needed, until_granted};
use ferrvault_operator::cluster::watch::Scope;
use ferrvault_operator::key::ObjectKey;
use ferrvault_testkit::{ApiServer, Fault};

use crate::ward::OPERATOR;

#[tokio::test(start_paused = true)]
async fn each_right_that_is_missing_is_named_and_asked_for_again_until_it_is_granted() {
    let api = ApiServer::default();
    api.deny(OPERATOR, "watch", "secrets");
    api.deny(OPERATOR, "patch", "deployments");
    api.deny(OPERATOR, "patch", "ferrvaultsecrets/status");
    let client = api.client_of(OPERATOR, "default");
    let key = ObjectKey::new("ferrvault-system", "ferrvault-operator-key");
    let rights = needed(&Scope::Cluster, &key, None);
    let count = rights.len();
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let tell = Arc::clone(&heard);
    let task = tokio::spawn(async move {
        until_granted(&client, rights, |missing| {
            let line = match missing {
                Ok(missing) => missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
                Err(error) => error.user_message(),
            };
            tell.lock().unwrap().push(line);
        })
        .await;
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let all = "patch ferrvaultsecrets/status.ferrvault.com, watch secrets, patch deployments.apps";
    assert_eq!(*heard.lock().unwrap(), [all]);
    assert_eq!(api.last_call(), count, "each is asked for once");

    api.allow_again(OPERATOR, "watch", "secrets");
    api.allow_again(OPERATOR, "patch", "ferrvaultsecrets/status");
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(heard.lock().unwrap().last().unwrap(), "patch deployments.apps");
    assert_eq!(api.last_call(), count + 3, "only what was missing is asked for again");

    // An API server that does not answer tells nothing about rights.
    api.on_call(|_| Fault::Refuse(503));
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert!(heard.lock().unwrap().last().unwrap().contains("503"), "{heard:?}");

    api.clear_faults();
    api.allow_again(OPERATOR, "patch", "deployments");
    tokio::time::timeout(Duration::from_secs(20), task).await.unwrap().unwrap();
    assert_eq!(heard.lock().unwrap().last().unwrap(), "");
}

//! A server of its own for each test, and a client that shows whole answers.

use std::time::Duration;

use ferrvault_devserver::clock::{Clock, ManualClock};
use ferrvault_devserver::{Config, Server, outbound};
use jiff::Timestamp;
use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// Longest a test waits for anything: far above what a busy machine needs, far below forever.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Where the manual clock starts: 2027-01-15T08:00:00Z.
pub(crate) const START: i64 = 1_800_000_000;

pub(crate) struct World {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) server: Server,
    pub(crate) hands: ManualClock,
    http: reqwest::Client,
}

/// One answer.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut Config)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (clock, hands) = Clock::manual(Timestamp::from_second(START).unwrap());
        let mut config = Config { clock, ..Config::new(dir.path()) };
        change(&mut config);
        let server = Server::start(config).await.unwrap();
        let http = outbound::client(None, PATIENCE).unwrap();
        Self { dir, server, hands, http }
    }

    pub(crate) fn admin_token(&self) -> String {
        self.server.admin_token().expose().to_owned()
    }

    /// A request that can be changed before it is sent.
    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.server.url()))
    }

    pub(crate) async fn call(&self, method: Method, path: &str, token: &str, body: Option<Value>) -> Answer {
        let mut request = self.request(method, path).bearer_auth(token);
        if let Some(body) = body {
            request = request.json(&body);
        }
        send(request).await
    }

    /// Creates a vault and returns its identifier.
    pub(crate) async fn vault(&self, organization: &str, project: &str, name: &str) -> String {
        let body = json!({ "name": name, "organization": organization, "project": project });
        let answer = self.call(Method::POST, "/dev/v1/vaults", &self.admin_token(), Some(body)).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        answer.body["id"].as_str().unwrap().to_owned()
    }

    /// Makes a token.
    pub(crate) async fn token(&self, kind: &str, role: &str, scope: Value) -> String {
        let body = json!({ "kind": kind, "role": role, "scope": scope, "label": "test" });
        let answer = self.call(Method::POST, "/dev/v1/tokens", &self.admin_token(), Some(body)).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        answer.body["token"].as_str().unwrap().to_owned()
    }

    /// A service account's token for one vault.
    pub(crate) async fn account(&self, role: &str, vault_id: &str) -> String {
        self.token("service-account", role, json!({ "kind": "vault", "vault_id": vault_id })).await
    }

    /// Writes secrets as the client verb does.
    pub(crate) async fn set(&self, vault_id: &str, values: Value) {
        let path = format!("/dev/v1/vaults/{vault_id}/secrets");
        let answer = self.call(Method::PUT, &path, &self.admin_token(), Some(json!({ "values": values }))).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }

    /// A vault `app` in `default/default` with `A` and `B`, and a viewer's token for it.
    pub(crate) async fn app(&self) -> (String, String) {
        let vault_id = self.vault("default", "default", "app").await;
        self.set(&vault_id, json!({ "A": "one", "B": "two" })).await;
        let token = self.account("viewer", &vault_id).await;
        (vault_id, token)
    }

    /// A call to the admin side.
    pub(crate) async fn admin(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let url = format!("{}{path}", self.server.admin_url().unwrap());
        let mut request = self.http.request(method, url);
        if let Some(body) = body {
            request = request.json(&body);
        }
        send(request).await
    }
}

pub(crate) async fn send(request: reqwest::RequestBuilder) -> Answer {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    let bytes = response.bytes().await.unwrap();
    Answer { status, headers, body: serde_json::from_slice(&bytes).unwrap_or(Value::Null) }
}

impl Answer {
    /// The text of a refusal, checked to be in the shape that belongs to the call.
    pub(crate) fn refused(&self, status: u16, shape: &str) -> &str {
        assert_eq!(self.status, status, "{}", self.body);
        assert_eq!(self.body.as_object().unwrap().keys().collect::<Vec<_>>(), [shape]);
        self.body[shape].as_str().unwrap()
    }
}

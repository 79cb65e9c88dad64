//! The calls of the FerrVault API.
//!
//! A client belongs to one endpoint, holds no token and keeps nothing of an answer. Each method checks what it was
//! handed before anything is sent, and returns within [`RetryPolicy::longest_call`].

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use ferrvault_core::content::{Answer, SecretBytes};
use http::header::{ACCEPT, InvalidHeaderValue};
use http::{HeaderMap, HeaderValue, Method};
use thiserror::Error;

use crate::address::{self, Reachable};
use crate::bearer::Bearer;
use crate::body::{Body, Budget, secret_object};
use crate::encode;
use crate::endpoint::Endpoint;
use crate::error::VaultError;
use crate::identity::{self, BearerGrant, SecretVersion, TokenIdentity};
use crate::memory::{AnswerMemory, Claim, Owner};
use crate::retry::{Repeat, RetryPolicy};
use crate::reveal::{self, MAX_TARGET_BYTES, RevealRequest, Scope};
use crate::tls::{self, TlsError, TlsOptions};
use crate::transport::{Call, Wanted};
use crate::upstream::shown_name;
use crate::wire;

/// Connections kept open while nobody uses them. Calls of one connection are few and shared; two serve a burst.
const IDLE_CONNECTIONS: usize = 2;

/// How a client behaves.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// When a call is tried again and how long it may take.
    pub retry: RetryPolicy,
    /// Whom it trusts and who it is.
    pub tls: TlsOptions,
    /// Name and version it goes by.
    pub user_agent: String,
    /// Which addresses it connects to.
    pub reachable: Reachable,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            retry: RetryPolicy::default(),
            tls: TlsOptions::default(),
            user_agent: concat!("ferrvault-operator/", env!("CARGO_PKG_VERSION")).to_owned(),
            reachable: Reachable::default(),
        }
    }
}

/// Why a client cannot be made.
#[derive(Debug, Error)]
pub enum SetupError {
    /// TLS options that do not work.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A user agent that no header carries.
    #[error("the user agent is not usable; write it as name/version in ASCII")]
    UserAgent(#[from] InvalidHeaderValue),
    /// The HTTP client itself.
    #[error("the HTTP client cannot be set up")]
    Http,
}

/// A client of one FerrVault. A clone shares the connections.
#[derive(Clone)]
pub struct VaultClient {
    http: reqwest::Client,
    endpoint: Arc<Endpoint>,
    retry: Arc<RetryPolicy>,
    reachable: Reachable,
}

impl VaultClient {
    /// Makes a client; nothing is sent. The first one with an `https` endpoint reads the system's CAs from disk.
    pub fn new(endpoint: Endpoint, options: ClientOptions) -> Result<Self, SetupError> {
        let tls = tls::client_config(&options.tls, endpoint.is_plain_http())?;
        let user_agent = HeaderValue::from_str(&options.user_agent)?;
        let accept = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .user_agent(user_agent)
            .default_headers(accept)
            // A redirect or a proxy would carry the token to a place nobody wrote into the connection.
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .referer(false)
            // Repeating is the policy's business alone, or the longest call would not be what it computes.
            .retry(reqwest::retry::never())
            .gzip(true)
            .http1_only()
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .dns_resolver(address::resolver(options.reachable))
            .build()
            .map_err(|_| SetupError::Http)?;
        Ok(Self { http, endpoint: Arc::new(endpoint), retry: Arc::new(options.retry), reachable: options.reachable })
    }

    /// Where this client calls.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The policy its calls obey.
    pub fn retry_policy(&self) -> &RetryPolicy {
        &self.retry
    }

    /// Asks for values.
    ///
    /// With names, the answer holds these keys and no other, and `missing` is what was asked for and did not come.
    /// Without names it holds every key of the vault.
    pub async fn reveal(&self, bearer: &Bearer, request: &RevealRequest) -> Result<Answer, VaultError> {
        self.ask(bearer, request, None).await.map(|(answer, _)| answer)
    }

    /// [`VaultClient::reveal`] for a resource in `namespace`, within `memory`: an answer that is not small waits for its
    /// room, within the time that an attempt has. The claim is to be kept until nothing of the answer is left.
    pub async fn reveal_within(
        &self,
        memory: &AnswerMemory,
        namespace: Arc<str>,
        bearer: &Bearer,
        request: &RevealRequest,
    ) -> Result<(Answer, Option<Claim>), VaultError> {
        let owner = Owner { namespace, connection: self.endpoint.to_string().into() };
        self.ask(bearer, request, Some((memory, &owner))).await
    }

    async fn ask(
        &self,
        bearer: &Bearer,
        request: &RevealRequest,
        budget: Budget<'_>,
    ) -> Result<(Answer, Option<Claim>), VaultError> {
        let keys = request.keys()?;
        let (answer, claim) = match &request.scope {
            Scope::Cloud { organization, project, namespace } => {
                encode::check_namespace(namespace)?;
                let target = reveal::cloud_target(organization, project, &request.vault, &keys)?;
                let mut call = self.call(Method::GET, &target)?;
                let bytes = call.url.path().len() + call.url.query().map_or(0, |query| query.len() + 1);
                if bytes > MAX_TARGET_BYTES {
                    return Err(VaultError::TooManyNames { bytes, limit: MAX_TARGET_BYTES });
                }
                call.bearer = Some(bearer);
                call.namespace = HeaderValue::from_str(namespace).ok();
                call.budget = budget;
                let body = self.send(call).await?;
                (reveal::read_cloud(&body.bytes, &keys)?, body.claim)
            }
            Scope::FerrVault => {
                encode::check_name("vault", &request.vault)?;
                let names = (!keys.is_empty()).then(|| keys.iter().copied().collect());
                let question = wire::OperatorQuestion { vault: &request.vault, names };
                let mut call = self.call(Method::POST, "/v1/operator/secrets/reveal")?;
                call.bearer = Some(bearer);
                if let Some(namespace) = &request.namespace {
                    encode::check_namespace(namespace)?;
                    call.namespace = HeaderValue::from_str(namespace).ok();
                }
                call.body = Some(serde_json::to_vec(&question).map_err(|_| unencodable())?.into());
                call.budget = budget;
                let body = self.send(call).await?;
                (reveal::read_operator(&body.bytes, &keys)?, body.claim)
            }
        };
        let claim = claim.map(|mut claim| {
            claim.decoded(answer.content.0.values().map(|value| value.expose().len()).sum());
            claim
        });
        Ok((answer, claim))
    }

    /// Asks for names and versions of the vault the token is bound to, sorted by name.
    pub async fn list(&self, bearer: &Bearer) -> Result<Vec<SecretVersion>, VaultError> {
        let mut call = self.call(Method::GET, "/v1/operator/secrets/list")?;
        call.bearer = Some(bearer);
        identity::read_list(&self.send(call).await?.bytes)
    }

    /// Asks what the token is.
    pub async fn me(&self, bearer: &Bearer) -> Result<TokenIdentity, VaultError> {
        let mut call = self.call(Method::GET, "/v1/operator/me")?;
        call.bearer = Some(bearer);
        identity::read_me(&self.send(call).await?.bytes)
    }

    /// Asks whether FerrVault is well. No token is sent.
    pub async fn health(&self) -> Result<(), VaultError> {
        let mut call = self.call(Method::GET, "/health")?;
        call.wanted = Wanted::Ok;
        self.send(call).await.map(drop)
    }

    /// Exchanges the JWT of a service account for a token of about 15 minutes. No bearer is sent.
    pub async fn oidc_exchange(&self, cluster_id: &str, jwt: &Bearer) -> Result<BearerGrant, VaultError> {
        encode::check_name("cluster id", cluster_id)?;
        // A bearer is ASCII by construction.
        let token = str::from_utf8(jwt.expose()).map_err(|_| unencodable())?;
        let mut call = self.call(Method::POST, "/api/v1/clusters/oidc-exchange")?;
        call.body = Some(json_object(&[("cluster_id", cluster_id), ("token", token)])?);
        call.secret = jwt.expose();
        identity::read_grant(&self.send(call).await?.bytes)
    }

    /// Stores a new key. Not repeated once it may have arrived: a second one would be refused as existing already.
    pub async fn create_secret(
        &self,
        bearer: &Bearer,
        vault: &str,
        name: &str,
        value: &SecretBytes,
    ) -> Result<(), VaultError> {
        encode::check_name("vault", vault)?;
        encode::check_key(name)?;
        let mut call = self.call(Method::POST, "/v1/operator/secrets")?;
        call.body = Some(json_object(&[("vault", vault), ("name", name), ("value", text_of(name, value)?)])?);
        call.secret = value.expose();
        call.repeat = Repeat::IfUnsent;
        self.write(call, bearer).await
    }

    /// Gives a key a new value. Repeating it changes nothing but the version.
    pub async fn update_secret(
        &self,
        bearer: &Bearer,
        vault: &str,
        name: &str,
        value: &SecretBytes,
    ) -> Result<(), VaultError> {
        encode::check_name("vault", vault)?;
        let target = format!("/v1/operator/secrets/{}", encode::key_segment(name)?);
        let mut call = self.call(Method::PUT, &target)?;
        call.body = Some(json_object(&[("vault", vault), ("value", text_of(name, value)?)])?);
        call.secret = value.expose();
        self.write(call, bearer).await
    }

    /// Removes a key. Not repeated once it may have arrived: a second one would find nothing.
    pub async fn delete_secret(&self, bearer: &Bearer, vault: &str, name: &str) -> Result<(), VaultError> {
        encode::check_name("vault", vault)?;
        let target =
            format!("/v1/operator/secrets/{}?vault={}", encode::key_segment(name)?, encode::percent_encoded(vault));
        let mut call = self.call(Method::DELETE, &target)?;
        call.repeat = Repeat::IfUnsent;
        self.write(call, bearer).await
    }

    /// A call that reads JSON, without token.
    fn call(&self, method: Method, target: &str) -> Result<Call<'_>, VaultError> {
        // A checked endpoint joined with an encoded path is an address; this cannot fail, and if it did, it must not
        // take the process with it.
        let url = self.endpoint.join(target).map_err(|_| unencodable())?;
        Ok(Call {
            method,
            url,
            bearer: None,
            namespace: None,
            body: None,
            secret: &[],
            repeat: Repeat::Always,
            wanted: Wanted::Json,
            budget: None,
        })
    }

    async fn write<'a>(&self, mut call: Call<'a>, bearer: &'a Bearer) -> Result<(), VaultError> {
        call.bearer = Some(bearer);
        call.wanted = Wanted::Done;
        self.send(call).await.map(drop)
    }

    async fn send(&self, call: Call<'_>) -> Result<Body, VaultError> {
        if self.reachable == Reachable::NoMetadata && self.endpoint.is_metadata() {
            return Err(VaultError::AddressRefused);
        }
        self.retry.run(call.repeat, |deadline| call.attempt(&self.http, deadline)).await
    }
}

impl fmt::Debug for VaultClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VaultClient")
            .field("endpoint", &self.endpoint)
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

fn json_object(members: &[(&str, &str)]) -> Result<Bytes, VaultError> {
    secret_object(members).map_err(|_| unencodable())
}

/// A value as the text that JSON carries.
fn text_of<'a>(name: &str, value: &'a SecretBytes) -> Result<&'a str, VaultError> {
    str::from_utf8(value.expose()).map_err(|_| VaultError::UnencodableValue { key: shown_name(name) })
}

/// What was checked before and still cannot be written down.
fn unencodable() -> VaultError {
    VaultError::UnencodableName { field: "request", name: String::new(), why: "it cannot be encoded" }
}

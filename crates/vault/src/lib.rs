//! Client of the FerrVault HTTP API: reveal in both modes, list, me, health, the OIDC exchange and the write side.
//!
//! Every call is bounded in time ([`RetryPolicy::longest_call`]), in size (4 MiB after decompression) and in where it
//! goes (no redirect, no proxy); it ends in an answer or in a [`VaultError`]. Values and tokens live in types that
//! cannot be printed and are wiped on drop, and no error, log or `Debug` of this crate holds a byte of them.
//!
//! `endpoint` checks URLs, `allowed` compares them with a list, `address` keeps away from the node's own, `lookup` names, `bearer` tokens, `encode` names; `client` has the calls, `transport` and `network`
//! one attempt, `retry` the policy, `body` and `memory` the limits, `wire`, `json_string`, `reveal` and `identity` the answers, `tls`
//! and `pin` whom to trust, `upstream`, `echo` and `error` what a failure may say.

mod address;
mod allowed;
mod bearer;
mod body;
mod client;
mod echo;
mod encode;
mod endpoint;
mod error;
mod identity;
mod json_string;
mod lookup;
mod memory;
mod network;
mod pin;
mod retry;
mod reveal;
mod tls;
mod transport;
mod upstream;
mod wire;

pub use address::Reachable;
pub use allowed::{AllowedUrl, AllowedUrlError};
pub use bearer::{Bearer, BearerError};
pub use client::{ClientOptions, SetupError, VaultClient};
pub use endpoint::{Endpoint, EndpointError};
pub use error::{UpstreamText, VaultError};
pub use identity::{BearerGrant, Role, SecretVersion, TokenIdentity};
pub use memory::{AnswerMemory, Claim};
pub use pin::{Pin, PinError};
pub use retry::RetryPolicy;
pub use reveal::{RevealRequest, Scope};
pub use tls::{TlsError, TlsOptions};

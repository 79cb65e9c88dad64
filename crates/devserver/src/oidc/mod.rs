//! Checks the JWT that a Kubernetes service account presents: signature, issuer, audience and time.
//!
//! Nothing about a token is believed before its signature has been checked against a key of the registered cluster, and
//! the algorithm is the key's, never the token's alone. No error quotes the token.

mod jwks;
mod jws;
mod source;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

pub(crate) use jwks::check_document;
pub(crate) use source::fetch_keys;

/// The audience that connections ask their JWTs for unless they say otherwise.
pub(crate) const DEFAULT_AUDIENCE: &str = "https://ferrflow.com";

/// How far the clocks of cluster and server may be apart.
const LEEWAY: SignedDuration = SignedDuration::from_secs(10);

/// What a JWT of a cluster must say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected<'a> {
    pub(crate) issuer: &'a str,
    pub(crate) audience: &'a str,
    pub(crate) now: Timestamp,
}

/// What is read of the claims.
#[derive(Debug, Deserialize)]
pub(crate) struct Claims {
    iss: Option<String>,
    /// Who it is: `system:serviceaccount:NAMESPACE:NAME`.
    pub(crate) sub: Option<String>,
    aud: Option<Audience>,
    exp: Option<i64>,
    nbf: Option<i64>,
}

/// One audience may be written without a list.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

/// Why a JWT is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Rejected {
    #[error("this is not a signed JWT")]
    Malformed,
    #[error(
        "the JWT is signed with an algorithm that is not accepted; RS256, RS384, RS512, ES256, ES384 and EdDSA are"
    )]
    Algorithm,
    #[error("the signature of the JWT is not by any key of this cluster")]
    Signature,
    #[error("the issuer of the JWT is not {expected:?}, the one this cluster is registered with")]
    Issuer { expected: String },
    #[error("the audience {expected:?} is not among those of the JWT")]
    Audience { expected: String },
    #[error("the JWT has expired, or does not say when it does")]
    Expired,
    #[error("the JWT is not valid yet; compare the clocks of cluster and server")]
    NotYet,
}

/// The claims of `token`, once everything about it has been checked.
pub(crate) fn verify(token: &str, keys: &serde_json::Value, expected: Expected<'_>) -> Result<Claims, Rejected> {
    let signed = jws::Signed::parse(token)?;
    let keys = jwks::Keys::parse(keys).map_err(|_| Rejected::Signature)?;
    keys.verify(&signed)?;
    let claims: Claims = signed.claims()?;
    check(&claims, expected)?;
    Ok(claims)
}

fn check(claims: &Claims, expected: Expected<'_>) -> Result<(), Rejected> {
    if claims.iss.as_deref() != Some(expected.issuer) {
        return Err(Rejected::Issuer { expected: expected.issuer.to_owned() });
    }
    let addressed = match &claims.aud {
        Some(Audience::One(audience)) => audience == expected.audience,
        Some(Audience::Many(audiences)) => audiences.iter().any(|audience| audience == expected.audience),
        None => false,
    };
    if !addressed {
        return Err(Rejected::Audience { expected: expected.audience.to_owned() });
    }
    let leeway = LEEWAY.as_secs();
    let now = expected.now.as_second();
    if claims.exp.is_none_or(|end| end.saturating_add(leeway) <= now) {
        return Err(Rejected::Expired);
    }
    if claims.nbf.is_some_and(|start| start.saturating_sub(leeway) > now) {
        return Err(Rejected::NotYet);
    }
    Ok(())
}

#[cfg(test)]
mod tests;

//! One attempt: a request, its answer, and what became of it.
//!
//! Everything from the other side passes here, status, headers and body, and leaves as an answer within limits or as a
//! [`VaultError`]. This is the only module that awaits the network.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, DATE, LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use reqwest::{Client, Response};
use tokio::time::Instant;
use url::Url;
use zeroize::Zeroizing;

use crate::bearer::Bearer;
use crate::body::{self, Body, Budget, MAX_ANSWER_BYTES, MAX_ERROR_BYTES};
use crate::error::VaultError;
use crate::network::{request_failure, unread_body};
use crate::retry::{Failure, Repeat};
use crate::upstream::UpstreamText;

/// Name of the header that tells FerrVault who asks, in mode `cloud`.
pub(crate) const NAMESPACE: HeaderName = HeaderName::from_static("x-ferrvault-namespace");

/// How long the text of an error is waited for, once its status is known. The status is what counts; a text that
/// takes longer than a second must not turn it into a timeout.
const ERROR_TEXT_PATIENCE: Duration = Duration::from_secs(1);

/// Longest wait that is believed: a day. Keeps the arithmetic of callers far from overflow.
const LONGEST_WAIT: Duration = Duration::from_hours(24);

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// What is wanted of a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// 200 or 201 with JSON.
    Json,
    /// Exactly 200, whatever its body.
    Ok,
    /// Any 2xx, whatever its body.
    Done,
}

/// A call, ready to be sent as often as it takes.
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) bearer: Option<&'a Bearer>,
    pub(crate) namespace: Option<HeaderValue>,
    /// JSON.
    pub(crate) body: Option<Bytes>,
    /// What no error text may repeat, beside the bearer.
    pub(crate) secret: &'a [u8],
    pub(crate) repeat: Repeat,
    pub(crate) wanted: Wanted,
    /// Whose memory its answer is read into; an error's text is too short to be counted.
    pub(crate) budget: Budget<'a>,
}

impl Call<'_> {
    /// Sends the call once and reads what comes back.
    pub(crate) async fn attempt(&self, http: &Client, deadline: Instant) -> Result<Body, Failure> {
        let mut request = http.request(self.method.clone(), self.url.clone());
        if let Some(bearer) = self.bearer {
            request = request.header(http::header::AUTHORIZATION, bearer.header());
        }
        if let Some(namespace) = &self.namespace {
            request = request.header(NAMESPACE, namespace);
        }
        if let Some(body) = &self.body {
            request = request.header(CONTENT_TYPE, JSON).body(body.clone());
        }
        let mut response = request.send().await.map_err(|error| request_failure(&error))?;
        let status = response.status();
        let accepted = match self.wanted {
            Wanted::Json => matches!(status, StatusCode::OK | StatusCode::CREATED),
            Wanted::Ok => status == StatusCode::OK,
            Wanted::Done => status.is_success(),
        };
        if !accepted {
            return Err(Failure::sent(self.refusal(&mut response, deadline).await));
        }
        if self.wanted != Wanted::Json {
            // Read so that the connection can be used again; its content decides nothing.
            let _ = leftover(&mut response, deadline).await;
            return Ok(Body::default());
        }
        check_is_json(response.headers(), &self.secrets()).map_err(Failure::sent)?;
        let read = body::read(&mut response, MAX_ANSWER_BYTES, self.budget, deadline).await;
        read.map_err(|unread| Failure::sent(unread_body(&unread)))
    }

    /// What no text may repeat.
    fn secrets(&self) -> [&[u8]; 2] {
        [self.secret, self.bearer.map_or(&[], Bearer::expose)]
    }

    /// The error a status stands for.
    async fn refusal(&self, response: &mut Response, deadline: Instant) -> VaultError {
        let status = response.status().as_u16();
        if (300..400).contains(&status) {
            return VaultError::RedirectRefused { status, to: redirect_origin(response, self.secrets()) };
        }
        let upstream = match leftover(response, deadline).await {
            Some(body) => UpstreamText::from_body(&body, &self.secrets()),
            None => UpstreamText::default(),
        };
        match status {
            401 => VaultError::Unauthorized { upstream },
            403 => VaultError::Forbidden { upstream },
            404 => VaultError::NotFound { upstream },
            429 => VaultError::Throttled { after: retry_after(response.headers(), Timestamp::now()), upstream },
            400..500 => VaultError::Rejected { status, upstream },
            500..600 => VaultError::ServerError { status, upstream },
            _ => VaultError::broken(format!("its status is {status}")),
        }
    }
}

/// A body that is nice to have: within a small limit and a short time, or not at all.
async fn leftover(response: &mut Response, deadline: Instant) -> Option<Zeroizing<Vec<u8>>> {
    let patience = deadline.min(Instant::now() + ERROR_TEXT_PATIENCE);
    let read = tokio::time::timeout_at(patience, body::read(response, MAX_ERROR_BYTES, None, patience)).await.ok()?;
    read.ok().map(|body| body.bytes)
}

/// Refuses what names another type than JSON, or an encoding that was not asked for. An answer that names no type is
/// left to the JSON decoder.
fn check_is_json(headers: &HeaderMap, secrets: &[&[u8]]) -> Result<(), VaultError> {
    // The transport removes this header from what it decompressed.
    if headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(VaultError::broken("it is compressed in a way that was not asked for"));
    }
    let Some(content_type) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    let essence = content_type.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let lower = essence.to_ascii_lowercase();
    if lower == "application/json" || (lower.starts_with("application/") && lower.ends_with("+json")) {
        Ok(())
    } else {
        let shown = UpstreamText::new(essence, secrets);
        Err(VaultError::broken(format!("it is of type \"{}\" instead of JSON", shown.as_str())))
    }
}

/// Scheme, host and port of a redirect: what helps to correct a URL, and nothing that could hold a secret.
fn redirect_origin(response: &Response, secrets: [&[u8]; 2]) -> Option<String> {
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    let origin = response.url().join(location).ok()?.origin();
    if !origin.is_tuple() {
        return None;
    }
    // A host name is written in lower case, so that is how a secret would show in it.
    let [first, second] = secrets.map(|secret| Zeroizing::new(secret.to_ascii_lowercase()));
    let shown = UpstreamText::new(&origin.ascii_serialization(), &[&first, &second]);
    Some(shown.as_str().to_owned())
}

/// How long `Retry-After` asks to wait: seconds, or a date, which is compared with the server's own clock where it
/// tells it.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Digits beyond 64 bits are more than a day as well.
        return Some(text.parse().map_or(LONGEST_WAIT, Duration::from_secs).min(LONGEST_WAIT));
    }
    let parse = |text: &str| rfc2822::DateTimeParser::new().parse_timestamp(text).ok();
    let until = parse(text)?;
    let now = headers.get(DATE).and_then(|date| date.to_str().ok()).and_then(parse).unwrap_or(now);
    let wait = until.duration_since(now);
    Some(wait.max(jiff::SignedDuration::ZERO).unsigned_abs().min(LONGEST_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(HeaderName, &str)]) -> HeaderMap {
        list.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn retry_after_is_read_in_both_forms() {
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        for (text, seconds) in [
            ("0", Some(0)),
            ("30", Some(30)),
            (" 30 ", Some(30)),
            ("86401", Some(86_400)),
            ("99999999999999999999999", Some(86_400)),
            ("Fri, 02 Jan 2026 03:05:05 GMT", Some(60)),
            ("Fri, 02 Jan 2026 03:04:05 GMT", Some(0)),
            ("Thu, 01 Jan 2026 00:00:00 GMT", Some(0)),
            ("Sat, 02 Jan 2100 00:00:00 GMT", Some(86_400)),
            ("", None),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
            ("2026-01-02T03:05:05Z", None),
        ] {
            let headers = headers(&[(RETRY_AFTER, text)]);
            assert_eq!(retry_after(&headers, now), seconds.map(Duration::from_secs), "{text}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }

    #[test]
    fn a_date_is_compared_with_the_clock_of_who_wrote_it() {
        let now: Timestamp = "2031-01-01T00:00:00Z".parse().unwrap();
        let headers =
            headers(&[(RETRY_AFTER, "Fri, 02 Jan 2026 03:05:05 GMT"), (DATE, "Fri, 02 Jan 2026 03:04:35 GMT")]);
        assert_eq!(retry_after(&headers, now), Some(Duration::from_secs(30)));
    }

    #[test]
    fn only_json_is_read() {
        for (content_type, accepted) in [
            (None, true),
            (Some("application/json"), true),
            (Some("Application/JSON; charset=utf-8"), true),
            (Some("application/problem+json"), true),
            (Some("text/html"), false),
            (Some("text/plain; charset=utf-8"), false),
            (Some("application/jsonl"), false),
            (Some("text/x+json"), false),
            (Some(""), false),
        ] {
            let headers: HeaderMap =
                content_type.map(|text| (CONTENT_TYPE, HeaderValue::from_static(text))).into_iter().collect();
            assert_eq!(check_is_json(&headers, &[]).is_ok(), accepted, "{content_type:?}");
        }
        let encoded = headers(&[(CONTENT_TYPE, "application/json"), (CONTENT_ENCODING, "br")]);
        assert!(check_is_json(&encoded, &[]).is_err());
    }
}

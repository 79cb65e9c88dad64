//! The admin side: tests add fault rules and read counters here. On a port of its own, on loopback only.
//!
//! It asks for no token, so it answers nothing that a browser could have been made to send: a request with an `Origin`, or
//! for a host that is not loopback, is refused. It shows neither values nor tokens; it knows none.

use std::net::IpAddr;
use std::sync::Arc;

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde::Deserialize;

use crate::api::answer::Answer;
use crate::faults::{Faults, Rule};
use crate::front::{BodyError, read_body, whole};
use crate::ledger::Ledger;
use crate::transport::{Aborted, Cut, Handler, Outgoing};

/// The admin side.
pub(crate) struct Admin {
    pub(crate) faults: Arc<Faults>,
    pub(crate) ledger: Arc<Ledger>,
}

/// One rule, or several in order.
#[derive(Deserialize)]
#[serde(untagged)]
enum Rules {
    Many(Vec<serde_json::Value>),
    One(serde_json::Value),
}

impl Handler for Admin {
    async fn handle(self: Arc<Self>, request: Request<Incoming>, _cut: Cut) -> Result<Response<Outgoing>, Aborted> {
        let (parts, body) = request.into_parts();
        if !from_here(&parts.headers) {
            return Ok(whole(error(StatusCode::FORBIDDEN, "the admin side answers local programs only, no browsers")));
        }
        let body = match read_body(body).await {
            Ok(body) => body,
            Err(BodyError::TooLarge) => return Ok(whole(error(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long"))),
            Err(BodyError::Broken) => return Err(Aborted),
        };
        let query = parts.uri.query().unwrap_or_default();
        Ok(whole(self.answer(&parts.method, parts.uri.path(), query, &body)))
    }
}

impl Admin {
    fn answer(&self, method: &Method, path: &str, query: &str, body: &[u8]) -> Answer {
        match (method.as_str(), path) {
            ("GET", "/health") => Answer::json(StatusCode::OK, &serde_json::json!({ "status": "ok" })),
            ("GET", "/rules") => Answer::json(StatusCode::OK, &self.faults.list()),
            ("POST", "/rules") => self.add_rules(body),
            ("DELETE", "/rules") => {
                self.faults.clear();
                Answer::no_content()
            }
            ("DELETE", path) if path.starts_with("/rules/") => {
                let id = path.trim_start_matches("/rules/").parse();
                if id.is_ok_and(|id| self.faults.remove(id)) {
                    Answer::no_content()
                } else {
                    error(StatusCode::NOT_FOUND, "there is no rule of this number; GET /rules lists them")
                }
            }
            ("GET", "/counters") => Answer::json(
                StatusCode::OK,
                &serde_json::json!({ "total": self.ledger.total(), "calls": self.ledger.counts() }),
            ),
            ("DELETE", "/counters") => {
                self.ledger.reset_counts();
                Answer::no_content()
            }
            ("GET", "/requests") => {
                let after = url::form_urlencoded::parse(query.as_bytes())
                    .find(|(name, _)| name == "after")
                    .map_or(Ok(0), |(_, value)| value.parse());
                match after {
                    Ok(after) => Answer::json(StatusCode::OK, &self.ledger.requests(after)),
                    Err(_) => error(StatusCode::BAD_REQUEST, "after is the number of a request"),
                }
            }
            _ => error(
                StatusCode::NOT_FOUND,
                "the admin side has GET /health, GET POST DELETE /rules, DELETE /rules/ID, GET DELETE /counters and \
                 GET /requests?after=SEQ",
            ),
        }
    }

    /// All of the rules or, when one cannot be read, none.
    fn add_rules(&self, body: &[u8]) -> Answer {
        let values = match serde_json::from_slice(body) {
            Ok(Rules::Many(values)) => values,
            Ok(Rules::One(value)) => vec![value],
            Err(_) => return error(StatusCode::BAD_REQUEST, "the body is a rule or a list of rules, in JSON"),
        };
        let mut rules = Vec::new();
        for value in values {
            match Rule::deserialize(&value) {
                Ok(rule) => rules.push(rule),
                // A rule holds no secret, so the error may quote it.
                Err(problem) => return error(StatusCode::BAD_REQUEST, &format!("this is not a rule: {problem}")),
            }
        }
        let ids: Vec<u64> = rules.into_iter().map(|rule| self.faults.add(rule)).collect();
        Answer::json(StatusCode::CREATED, &serde_json::json!({ "ids": ids }))
    }
}

/// Whether a program on this machine asks, rather than a page that a browser has loaded from somewhere.
fn from_here(headers: &HeaderMap) -> bool {
    if headers.contains_key(ORIGIN) {
        return false;
    }
    let Some(host) = headers.get(HOST).and_then(|host| host.to_str().ok()) else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn error(status: StatusCode, message: &str) -> Answer {
    Answer::json(status, &serde_json::json!({ "error": message }))
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use http::header::{HOST, ORIGIN};

    use super::from_here;

    #[test]
    fn only_loopback_hosts_without_an_origin_are_local_programs() {
        let cases = [
            ("127.0.0.1:8201", None, true),
            ("localhost", None, true),
            ("[::1]:8201", None, true),
            ("example.com:8201", None, false),
            ("10.0.0.1", None, false),
            ("127.0.0.1:8201", Some("http://127.0.0.1:8201"), false),
        ];
        for (host, origin, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(ORIGIN, origin.parse().unwrap());
            }
            assert_eq!(from_here(&headers), expected, "{host} {origin:?}");
        }
        assert!(!from_here(&HeaderMap::new()), "no host at all");
    }
}

//! Which failure is which, and that none tells more than it may.

use super::*;

fn api(code: u16, reason: &str) -> CallError {
    kube::Error::Api(Status::failure("a sentence", reason).with_code(code).boxed()).into()
}

fn service(error: impl Into<tower::BoxError>) -> CallError {
    kube::Error::Service(error.into()).into()
}

#[test]
fn each_refusal_is_told_apart() {
    let message = || "a sentence".to_owned();
    let cases = [
        (404, "NotFound", CallError::NotFound, Class::Waiting),
        // What a proxy answers, or the API server for a kind that it does not serve.
        (404, "Failed to parse error data", CallError::Refused { code: 404, message: message() }, Class::Transient),
        (409, "", CallError::Conflict, Class::Transient),
        (409, "Conflict", CallError::Conflict, Class::Transient),
        (409, "AlreadyExists", CallError::AlreadyExists, Class::Transient),
        (403, "Forbidden", CallError::Forbidden { message: message() }, Class::User),
        (422, "Invalid", CallError::Invalid { message: message() }, Class::User),
        (410, "Expired", CallError::Gone, Class::Transient),
        (410, "Gone", CallError::Gone, Class::Transient),
        (429, "TooManyRequests", CallError::Throttled { after: None }, Class::Throttled { after: None }),
        (400, "BadRequest", CallError::Refused { code: 400, message: message() }, Class::Bug),
        (401, "Unauthorized", CallError::Refused { code: 401, message: message() }, Class::Transient),
        (413, "RequestEntityTooLarge", CallError::Refused { code: 413, message: message() }, Class::Bug),
        (500, "InternalError", CallError::Refused { code: 500, message: message() }, Class::Transient),
        (503, "ServiceUnavailable", CallError::Refused { code: 503, message: message() }, Class::Transient),
        (504, "Timeout", CallError::Refused { code: 504, message: message() }, Class::Transient),
        (0, "", CallError::Refused { code: 500, message: message() }, Class::Transient),
    ];
    for (code, reason, expected, class) in cases {
        let error = api(code, reason);
        assert_eq!(error, expected, "{code} {reason}");
        assert_eq!(error.class(), class, "{code} {reason}");
    }
}

#[test]
fn an_empty_object_as_an_error_body_is_a_server_error() {
    let status: Status = serde_json::from_str("{}").unwrap();
    let error = CallError::from(kube::Error::Api(status.boxed()));
    assert_eq!(error, CallError::Refused { code: 500, message: "the API server gave no reason".to_owned() });
    assert!(error.is_unknown_outcome());
}

#[test]
fn throttling_says_for_how_long() {
    let status: Status =
        serde_json::from_str(r#"{"code":429,"reason":"TooManyRequests","details":{"retryAfterSeconds":7}}"#).unwrap();
    let error = CallError::from(kube::Error::Api(status.boxed()));
    assert_eq!(error, CallError::Throttled { after: Some(Duration::from_secs(7)) });
}

#[test]
fn time_running_out_is_told_apart_from_a_closed_door() {
    let elapsed = || tower::timeout::error::Elapsed::new();
    assert_eq!(service(elapsed()), CallError::TimedOut);
    assert_eq!(service(std::io::Error::other(elapsed())), CallError::TimedOut);
    assert_eq!(service(std::io::Error::from(std::io::ErrorKind::TimedOut)), CallError::TimedOut);
    let refused = service(std::io::Error::from(std::io::ErrorKind::ConnectionRefused));
    assert_eq!(refused, CallError::Unreachable { message: "connection refused".to_owned() });
    assert!(refused.is_unknown_outcome());
}

#[test]
fn what_could_not_be_read_is_not_repeated() {
    let error = serde_json::from_str::<u8>("\"hunter2-hunter2\"").unwrap_err();
    let error = CallError::from(kube::Error::SerdeError(error));
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    assert_eq!(error.class(), Class::Bug);
}

#[test]
fn a_secret_write_keeps_no_sentence() {
    let status = Status::failure("value hunter2-hunter2 is bad", "Invalid").with_code(422).boxed();
    let error = CallError::from_secret_write(kube::Error::Api(status));
    assert_eq!(error, CallError::Invalid { message: "Invalid".to_owned() });
}

#[test]
fn messages_open_with_what_was_tried_and_stay_short() {
    let error = CallError::Forbidden { message: "x".repeat(400) };
    let text = error.user_message_for("patch Secret db");
    assert!(text.starts_with("patch Secret db: forbidden: xxx"), "{text}");
    assert_eq!(text.chars().count(), LINE);
    assert_eq!(CallError::Conflict.user_message(), "changed since it was read");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_never_answers_ends_at_its_deadline() {
    let started = tokio::time::Instant::now();
    let never = std::future::pending::<Result<(), kube::Error>>();
    assert_eq!(deadline(CALL_DEADLINE, never).await, Err(CallError::TimedOut));
    assert_eq!(started.elapsed(), CALL_DEADLINE);
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_time_is_handed_on() {
    let call = async {
        tokio::time::sleep(CALL_DEADLINE.mul_f64(0.99)).await;
        Ok::<_, CallError>(7)
    };
    assert_eq!(deadline(CALL_DEADLINE, call).await, Ok(7));
}

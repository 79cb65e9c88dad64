//! A look into the service account's own JWT before it leaves the process. Not a verification: that is the receiver's;
//! here only one question counts, whether the token was made for the one who will get it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

/// The audience claim: one, or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

#[derive(Deserialize)]
struct Claims {
    aud: Audience,
}

/// Whether the JWT names `audience` among those it was made for. `None`: it is no JWT.
pub(super) fn is_meant_for(jwt: &[u8], audience: &str) -> Option<bool> {
    let payload = jwt.split(|byte| *byte == b'.').nth(1)?;
    let claims: Claims = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()?;
    Some(match claims.aud {
        Audience::One(one) => one == audience,
        Audience::Several(several) => several.iter().any(|one| one == audience),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_audience_is_found_in_both_spellings() {
        let jwt = |payload: &str| format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(payload));
        let cases = [
            ("one", jwt(r#"{"aud":"https://a"}"#), Some(true)),
            ("several", jwt(r#"{"aud":["https://b","https://a"]}"#), Some(true)),
            ("another", jwt(r#"{"aud":["https://b"]}"#), Some(false)),
            ("none", jwt("{}"), None),
            ("no JWT", "fft_token".to_owned(), None),
        ];
        for (case, jwt, expected) in cases {
            assert_eq!(is_meant_for(jwt.as_bytes(), "https://a"), expected, "{case}");
        }
    }
}

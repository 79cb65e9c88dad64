//! Tokens signed with keys made here, and the published RSA example of RFC 7515.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm,
    Ed25519KeyPair, KeyPair as _,
};
use serde_json::{Value, json};

use super::jwks::Keys;
use super::jws::Signed;
use super::{Expected, Rejected, check_document, verify};

const NOW: i64 = 1_800_000_000;
const ISSUER: &str = "https://kubernetes.default.svc";
const AUDIENCE: &str = "https://ferrflow.com";

/// A key pair with the names that a JWK and a JWS have for its algorithm.
struct Signer {
    key: EcdsaKeyPair,
    algorithm: &'static str,
    curve: &'static str,
}

impl Signer {
    fn new(kind: &'static EcdsaSigningAlgorithm, algorithm: &'static str, curve: &'static str) -> Self {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        Self { key: EcdsaKeyPair::from_pkcs8(kind, document.as_ref(), &random).unwrap(), algorithm, curve }
    }

    fn p256() -> Self {
        Self::new(&ECDSA_P256_SHA256_FIXED_SIGNING, "ES256", "P-256")
    }

    fn jwk(&self, id: &str) -> Value {
        let point = &self.key.public_key().as_ref()[1..];
        let (x, y) = point.split_at(point.len() / 2);
        json!({
            "kty": "EC", "crv": self.curve, "kid": id, "use": "sig", "alg": self.algorithm,
            "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
        })
    }

    fn token(&self, header: &Value, claims: &Value) -> String {
        let message = message(header, claims);
        let signature = self.key.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

fn message(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}

fn claims(changes: &Value) -> Value {
    let mut claims = json!({
        "iss": ISSUER, "aud": [AUDIENCE], "exp": NOW + 600, "nbf": NOW - 5, "sub": "system:serviceaccount:a:b",
    });
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims
}

fn check(token: &str, keys: &Value) -> Result<String, Rejected> {
    let now = Timestamp::from_second(NOW).unwrap();
    verify(token, keys, Expected { issuer: ISSUER, audience: AUDIENCE, now }).map(|claims| claims.sub.unwrap())
}

#[test]
fn tokens_signed_by_a_key_of_the_cluster_are_accepted() {
    let signers = [Signer::p256(), Signer::new(&ECDSA_P384_SHA384_FIXED_SIGNING, "ES384", "P-384")];
    let keys = json!({ "keys": [signers[0].jwk("a"), signers[1].jwk("b"), { "kty": "oct", "k": "AA" }] });
    for (signer, id) in signers.iter().zip(["a", "b"]) {
        for header in [json!({ "alg": signer.algorithm, "kid": id }), json!({ "alg": signer.algorithm })] {
            let token = signer.token(&header, &claims(&json!({})));
            assert_eq!(check(&token, &keys), Ok("system:serviceaccount:a:b".to_owned()), "{header}");
        }
    }
    let seed = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
    let keys = json!({ "keys": [{
        "kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode(seed.public_key().as_ref()),
    }] });
    let message = message(&json!({ "alg": "EdDSA" }), &claims(&json!({})));
    let signature = URL_SAFE_NO_PAD.encode(seed.sign(message.as_bytes()).as_ref());
    assert!(check(&format!("{message}.{signature}"), &keys).is_ok());
}

#[test]
fn what_the_claims_must_say_is_checked_one_by_one() {
    let signer = Signer::p256();
    let keys = json!({ "keys": [signer.jwk("k")] });
    let issuer = Rejected::Issuer { expected: ISSUER.to_owned() };
    let audience = Rejected::Audience { expected: AUDIENCE.to_owned() };
    let cases = [
        ("all as expected", json!({}), None),
        ("one audience without a list", json!({ "aud": AUDIENCE }), None),
        ("one of several audiences", json!({ "aud": ["x", AUDIENCE] }), None),
        ("expired within the leeway", json!({ "exp": NOW - 9 }), None),
        ("valid soon, within the leeway", json!({ "nbf": NOW + 10 }), None),
        ("another issuer", json!({ "iss": "https://other" }), Some(issuer.clone())),
        ("no issuer", json!({ "iss": null }), Some(issuer)),
        ("other audiences", json!({ "aud": ["x"] }), Some(audience.clone())),
        ("an audience that only begins alike", json!({ "aud": "https://ferrflow.com/" }), Some(audience.clone())),
        ("no audience", json!({ "aud": null }), Some(audience)),
        ("expired", json!({ "exp": NOW - 10 }), Some(Rejected::Expired)),
        ("without an end", json!({ "exp": null }), Some(Rejected::Expired)),
        ("not valid yet", json!({ "nbf": NOW + 11 }), Some(Rejected::NotYet)),
        ("an end that is no number", json!({ "exp": "soon" }), Some(Rejected::Malformed)),
    ];
    for (case, changes, expected) in cases {
        let token = signer.token(&json!({ "alg": "ES256", "kid": "k" }), &claims(&changes));
        assert_eq!(check(&token, &keys).err(), expected, "{case}");
    }
}

#[test]
fn forged_tokens_are_refused() {
    let (signer, stranger) = (Signer::p256(), Signer::p256());
    let keys = json!({ "keys": [signer.jwk("k")] });
    let good = signer.token(&json!({ "alg": "ES256", "kid": "k" }), &claims(&json!({})));
    let (message_part, signature) = good.rsplit_once('.').unwrap();
    let other_claims = message(&json!({ "alg": "ES256", "kid": "k" }), &claims(&json!({ "sub": "root" })));
    let unsigned = message(&json!({ "alg": "none" }), &claims(&json!({})));
    let shared = message(&json!({ "alg": "HS256", "kid": "k" }), &claims(&json!({})));
    let cases = [
        (
            "a stranger's key",
            stranger.token(&json!({ "alg": "ES256", "kid": "k" }), &claims(&json!({}))),
            Rejected::Signature,
        ),
        (
            "another key id",
            signer.token(&json!({ "alg": "ES256", "kid": "x" }), &claims(&json!({}))),
            Rejected::Signature,
        ),
        ("claims changed after signing", format!("{other_claims}.{signature}"), Rejected::Signature),
        (
            "the algorithm of another key type",
            signer.token(&json!({ "alg": "RS256" }), &claims(&json!({}))),
            Rejected::Signature,
        ),
        ("algorithm none", format!("{unsigned}."), Rejected::Algorithm),
        ("a public key used as a shared one", format!("{shared}.{signature}"), Rejected::Algorithm),
        (
            "a critical extension",
            signer.token(&json!({ "alg": "ES256", "crit": ["x"] }), &claims(&json!({}))),
            Rejected::Malformed,
        ),
        ("no signature", message_part.to_owned(), Rejected::Malformed),
        ("an empty signature", format!("{message_part}."), Rejected::Signature),
        ("nothing", String::new(), Rejected::Malformed),
        ("too long to be one", format!("{good}{}", "A".repeat(16 * 1024)), Rejected::Malformed),
    ];
    assert!(check(&good, &keys).is_ok());
    for (case, token, expected) in cases {
        assert_eq!(check(&token, &keys).err(), Some(expected), "{case}");
    }
}

#[test]
fn a_key_that_is_not_for_signing_or_is_for_another_algorithm_is_not_used() {
    let signer = Signer::p256();
    let token = signer.token(&json!({ "alg": "ES256" }), &claims(&json!({})));
    let mut encryption = signer.jwk("k");
    encryption["use"] = json!("enc");
    assert_eq!(check(&token, &json!({ "keys": [encryption] })).err(), Some(Rejected::Signature));
    let mut narrowed = signer.jwk("k");
    narrowed["alg"] = json!("ES384");
    assert_eq!(check(&token, &json!({ "keys": [narrowed] })).err(), Some(Rejected::Signature));
}

#[test]
fn documents_without_a_usable_key_are_refused() {
    assert!(check_document(&json!({ "keys": [Signer::p256().jwk("k")] })).is_ok());
    for document in [
        json!(null),
        json!({}),
        json!({ "keys": [] }),
        json!({ "keys": [{ "kty": "oct", "k": "AA" }] }),
        json!({ "keys": [{ "kty": "RSA", "n": "not base64!", "e": "AQAB" }] }),
        json!([{ "kty": "RSA" }]),
    ] {
        assert!(check_document(&document).is_err(), "{document}");
    }
}

/// RFC 7515, appendix A.2: the one RSA signature that needs no key generated here.
#[test]
fn the_rsa_example_of_rfc_7515_verifies_also_with_a_padded_modulus() {
    const MODULUS: &str = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4\
                           d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5re\
                           xMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxX\
                           FvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";
    const TOKEN: &str = "eyJhbGciOiJSUzI1NiJ9.\
                         eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.\
                         cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5\
                         jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb\
                         1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QO\
                         YEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
    let padded = [&[0_u8][..], &URL_SAFE_NO_PAD.decode(MODULUS).unwrap()].concat();
    for modulus in [MODULUS.to_owned(), URL_SAFE_NO_PAD.encode(padded)] {
        let keys = Keys::parse(&json!({ "keys": [{ "kty": "RSA", "n": modulus, "e": "AQAB" }] })).unwrap();
        keys.verify(&Signed::parse(TOKEN).unwrap()).unwrap();
        let altered = TOKEN.replacen("eyJpc3Mi", "eyJpc3Nj", 1);
        assert_eq!(keys.verify(&Signed::parse(&altered).unwrap()), Err(Rejected::Signature));
    }
}

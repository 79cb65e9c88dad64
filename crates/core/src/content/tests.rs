//! That nothing prints a value, that checks refuse what Kubernetes refuses, and that data goes to the wire and back.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const CANARY: &str = "canary-4c7f";

fn content(pairs: &[(&str, &str)]) -> Content {
    pairs.iter().copied().collect()
}

#[test]
fn nothing_prints_a_value() {
    let held = content(&[("K", CANARY)]);
    let shown = format!(
        "{:?} {:#?} {:?} {:?} {:?}",
        SecretBytes::from(CANARY),
        held,
        SecretData(held.clone()),
        data_patch(&Content::default(), &held),
        Answer { content: held.clone(), missing: vec![] },
    );
    assert!(!shown.contains("canary"), "{shown}");
    assert!(!shown.contains("99, 97"), "printed as numbers: {shown}");
    assert!(shown.contains("<11 bytes>"), "{shown}");
}

#[test]
fn content_is_the_same_on_its_way_to_the_data_of_a_secret_and_back() {
    let held = content(&[("a", "1"), ("b", "2")]);
    let data = SecretData::from(held.clone());
    assert_eq!(data.0, held);
    assert_eq!(Content::from(data), held);
}

#[test]
fn sizes_and_keys_are_those_of_what_is_held() {
    let held = content(&[("b", "12345"), ("aa", "")]);
    assert_eq!((held.len(), held.is_empty(), held.total_size()), (2, false, 8));
    assert_eq!(held.keys(), ["aa", "b"]);
    assert_eq!(held.get("b"), Some(&SecretBytes::from("12345")));
    assert_eq!(held.get("c"), None);
    assert!(Content::default().is_empty());
    assert!(held.get("aa").is_some_and(SecretBytes::is_empty) && !held.get("b").is_some_and(SecretBytes::is_empty));
}

#[test]
fn keys_that_kubernetes_refuses_are_refused_with_the_rule_they_break() {
    let longest = "k".repeat(253);
    for key in ["a", "A_b-c.9", "...a".trim_start_matches(".."), ".a", "-", "_", longest.as_str()] {
        assert_eq!(content(&[(key, "v")]).check_for_secret(), [], "{key}");
    }
    let too_long = "k".repeat(254);
    let cases = [
        ("", KeyRule::Empty),
        (".", KeyRule::Dots),
        ("..", KeyRule::Dots),
        ("..data", KeyRule::Dots),
        ("a/b", KeyRule::Character),
        ("a b", KeyRule::Character),
        ("schlüssel", KeyRule::Character),
        ("a\n", KeyRule::Character),
        (too_long.as_str(), KeyRule::TooLong),
    ];
    for (key, rule) in cases {
        let expected = ContentViolation::InvalidKey { key: key.to_owned(), rule };
        assert_eq!(content(&[(key, "v")]).check_for_secret(), [expected], "{key}");
    }
}

#[test]
fn the_message_names_the_key_and_what_to_do() {
    let message = content(&[("db/pass\n", CANARY)]).check_for_secret()[0].to_string();
    assert_eq!(
        message,
        r#"key "db/pass\n" is not a valid key of a Secret: only letters, digits, `-`, `_` and `.` are allowed; give it another name by `transforms`: `rename`, or another `prefix`"#
    );
}

#[test]
fn a_secret_holds_one_mebibyte_of_values_whatever_its_keys_weigh() {
    let half = "x".repeat(512 * 1024);
    let full = content(&[("long-key", &half), ("b", &half)]);
    assert_eq!(full.check_for_secret(), []);
    let mut over = full;
    over.0.insert("c".to_owned(), SecretBytes::from("1"));
    assert_eq!(
        over.check_for_secret()[0].to_string(),
        "the values have 1048577 bytes together, a Secret holds at most 1048576 (1 MiB); \
         use `selector.names` to choose fewer keys"
    );
}

#[test]
fn of_many_invalid_keys_three_are_named_and_the_rest_counted() {
    let named = |count: u32| {
        let keys: Vec<String> = (0..count).map(|number| format!("{number}/")).collect();
        let bad: Content = keys.iter().map(|key| (key.as_str(), "")).collect();
        bad.check_for_secret()
    };
    let sentences = |count| named(count).iter().skip(3).map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(named(3).len(), 3);
    assert!(named(9)[2].to_string().starts_with(r#"key "2/" is not"#));
    assert_eq!(sentences(3), [""; 0]);
    assert_eq!(sentences(4), ["1 more key is not valid either"]);
    assert_eq!(sentences(9), ["6 more keys are not valid either"]);
}

#[test]
fn a_patch_writes_every_wanted_key_and_removes_every_other() {
    let patch = data_patch(&content(&[("gone", "1"), ("kept", "2")]), &content(&[("kept", "2"), ("new", "é")]));
    assert_eq!(serde_json::to_value(&patch).unwrap(), json!({"gone": null, "kept": "Mg==", "new": "w6k="}));
}

#[test]
fn null_data_is_empty_and_so_is_a_null_value() {
    let read = |value: serde_json::Value| serde_json::from_str::<SecretData>(&value.to_string()).unwrap().0;
    assert_eq!(read(json!(null)), Content::default());
    assert_eq!(read(json!({})), Content::default());
    assert_eq!(read(json!({"a": null, "b": ""})), content(&[("a", ""), ("b", "")]));
}

#[test]
fn data_that_cannot_be_read_is_not_quoted() {
    let cases = [
        json!({"K": CANARY}),
        json!({"K": [CANARY]}),
        json!({"K": {CANARY: 1}}),
        json!({"K": 4_711}),
        json!({"K": -4_711}),
        json!({"K": 47.11}),
        json!({"K": true}),
        json!(CANARY),
        json!([CANARY]),
        json!(4_711),
        json!(-4_711),
        json!(47.11),
    ];
    for case in cases {
        // Both ways of reading: from text, and from a tree, which hands its strings over.
        let from_text = serde_json::from_str::<SecretData>(&case.to_string()).unwrap_err().to_string();
        let from_tree = serde_json::from_value::<SecretData>(case.clone()).unwrap_err().to_string();
        for message in [from_text, from_tree] {
            assert!(!message.contains("canary") && !message.contains("47"), "{case}: {message}");
        }
    }
}

#[test]
fn data_of_another_shape_is_answered_with_the_shape_that_was_expected() {
    for (case, expected) in [(json!([1]), "a map of base64 text by key"), (json!({"K": [1]}), "base64 text")] {
        let message = serde_json::from_value::<SecretData>(case.clone()).unwrap_err().to_string();
        assert!(message.ends_with(&format!("expected {expected}")), "{case}: {message}");
    }
}

/// A merge patch, as the API server applies it to `data`.
fn merged(current: &Content, patch: &DataPatch) -> Content {
    let mut result = current.clone();
    for (key, value) in &patch.0 {
        match value {
            Some(value) => result.0.insert(key.clone(), value.clone()),
            None => result.0.remove(key),
        };
    }
    result
}

fn any_content() -> impl Strategy<Value = Content> {
    let value = prop::collection::vec(any::<u8>(), 0..80).prop_map(SecretBytes::new);
    prop::collection::btree_map("[a-d]{1,2}", value, 0..6).prop_map(Content)
}

proptest! {
    #[test]
    fn bytes_go_to_the_wire_and_back(held in any_content()) {
        let wire = serde_json::to_string(&SecretData(held.clone())).unwrap();
        prop_assert_eq!(serde_json::from_str::<SecretData>(&wire).unwrap().0, held.clone());
        // The same wire as the type of the API itself.
        let data: BTreeMap<String, k8s_openapi::ByteString> = serde_json::from_str(&wire).unwrap();
        prop_assert!(data.iter().map(|(key, value)| (key.as_str(), value.0.as_slice()))
            .eq(held.0.iter().map(|(key, value)| (key.as_str(), value.expose()))));
    }

    #[test]
    fn a_patch_leads_from_any_content_to_any_other(current in any_content(), wanted in any_content()) {
        let patch = data_patch(&current, &wanted);
        let once = merged(&current, &patch);
        prop_assert_eq!(&once, &wanted);
        prop_assert_eq!(merged(&once, &patch), wanted);
    }
}

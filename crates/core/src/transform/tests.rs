//! Each transform by its rules, and that no error tells what a value is.

use proptest::prelude::*;

use super::*;

mod json_expand;

const CANARY: &str = "canary-4c7f";

fn content(pairs: &[(&str, &str)]) -> Content {
    pairs.iter().copied().collect()
}

fn transform(type_: &str) -> Transform {
    Transform { type_: type_.to_owned(), ..Transform::default() }
}

fn prefix(value: &str) -> Transform {
    Transform { value: Some(value.to_owned()), ..transform("prefix") }
}

fn suffix(value: &str) -> Transform {
    Transform { value: Some(value.to_owned()), ..transform("suffix") }
}

fn rename_to(from: &str, to: &str) -> Transform {
    Transform { from: Some(from.to_owned()), to: Some(to.to_owned()), ..transform("rename") }
}

fn decode(keys: &[&str]) -> Transform {
    Transform { keys: keys.iter().map(|key| (*key).to_owned()).collect(), ..transform("base64Decode") }
}

fn expand(key: &str) -> Transform {
    Transform { key: Some(key.to_owned()), ..transform("jsonExpand") }
}

fn message(transforms: &[Transform], pairs: &[(&str, &str)]) -> String {
    apply(transforms, content(pairs)).unwrap_err().to_string()
}

#[test]
fn without_transforms_nothing_changes() {
    let held = content(&[("A", "1"), ("b", "")]);
    assert_eq!(apply(&[], held.clone()), Ok(held));
}

#[test]
fn prefix_and_suffix_touch_every_key() {
    let result = apply(&[prefix("P_"), suffix(".x")], content(&[("A", "1"), ("B", "2")]));
    assert_eq!(result, Ok(content(&[("P_A.x", "1"), ("P_B.x", "2")])));
    assert_eq!(apply(&[prefix("")], content(&[("A", "1")])), Ok(content(&[("A", "1")])));
}

#[test]
fn rename_moves_one_key() {
    let held = || content(&[("A", "1"), ("B", "2")]);
    let cases = [
        ("a key that exists", rename_to("A", "C"), content(&[("C", "1"), ("B", "2")])),
        ("a missing key", rename_to("X", "Y"), held()),
        ("a missing key onto one that exists", rename_to("X", "B"), held()),
        ("a key to itself", rename_to("A", "A"), held()),
    ];
    for (name, transform, expected) in cases {
        assert_eq!(apply(&[transform], held()), Ok(expected), "{name}");
    }
    assert_eq!(
        message(&[rename_to("A", "B")], &[("A", CANARY), ("B", CANARY)]),
        r#"transforms[0] (rename): key "B": a key of that name is there already and would be written twice; rename one of the two"#
    );
}

#[test]
fn two_renames_swap_by_way_of_a_third() {
    let swap = [rename_to("A", "T"), rename_to("B", "A"), rename_to("T", "B")];
    assert_eq!(apply(&swap, content(&[("A", "1"), ("B", "2")])), Ok(content(&[("B", "1"), ("A", "2")])));
}

#[test]
fn base64_is_read_as_go_reads_it() {
    let accepted: &[(&str, &[u8])] = &[
        ("", b""),
        ("aGk=", b"hi"),
        ("aG\r\nk=\n", b"hi"),
        ("aA=\n=", b"h"),
        ("+/+/", &[0xfb, 0xff, 0xbf]),
        ("-_-_", &[0xfb, 0xff, 0xbf]),
        ("AP8K", &[0, 0xff, 0x0a]),
        ("aGl=", b"hi"),
    ];
    for (text, bytes) in accepted {
        let result = apply(&[decode(&[])], content(&[("K", text)])).unwrap();
        assert_eq!(result.get("K").map(SecretBytes::expose), Some(*bytes), "{text:?}");
    }
    for text in ["aGk", "a", "a===", "=", "+_+_", "aGk= ", " aGk=", "aGk=aGk=", "aGé=", "aGk=="] {
        assert_eq!(
            message(&[decode(&[])], &[("K", text)]),
            r#"transforms[0] (base64Decode): key "K": the value is neither standard nor URL-safe base64 with padding; correct it, or leave the key out of the step"#,
            "{text:?}"
        );
    }
}

#[test]
fn base64_decodes_the_named_keys_or_all() {
    let held = || content(&[("A", "aGk="), ("B", "aGk=")]);
    let cases: [(&[&str], _); 4] = [
        (&[], content(&[("A", "hi"), ("B", "hi")])),
        (&["A"], content(&[("A", "hi"), ("B", "aGk=")])),
        (&["A", "A"], content(&[("A", "hi"), ("B", "aGk=")])),
        (&["missing"], held()),
    ];
    for (keys, expected) in cases {
        assert_eq!(apply(&[decode(keys)], held()), Ok(expected), "{keys:?}");
    }
}

#[test]
fn bytes_that_are_no_text_are_not_base64() {
    let held: Content = [("K", SecretBytes::new(vec![0xff, 0xfe]))].into_iter().collect();
    let error = apply(&[decode(&["K"])], held).unwrap_err();
    assert_eq!((error.key.as_deref(), error.problem), (Some("K"), Problem::NotBase64));
}

#[test]
fn an_error_says_which_of_several_transforms_it_was() {
    let error = apply(&[prefix("P_"), rename_to("x", "y"), decode(&["P_A"])], content(&[("A", "?")])).unwrap_err();
    assert_eq!((error.index, error.type_.as_str(), error.key.as_deref()), (2, "base64Decode", Some("P_A")));
}

#[test]
fn a_transform_that_says_too_little_is_refused() {
    let empty_from = Transform { from: Some(String::new()), ..rename_to("A", "B") };
    let cases = [
        (transform("rename"), "transforms[0] (rename): the field `from` is missing; set it"),
        (empty_from, "transforms[0] (rename): the field `from` is missing; set it"),
        (rename_to("A", ""), "transforms[0] (rename): the field `to` is missing; set it"),
        (transform("jsonExpand"), "transforms[0] (jsonExpand): the field `key` is missing; set it"),
        (
            transform("Prefix"),
            "transforms[0] (Prefix): unknown type; the types are prefix, suffix, rename, base64Decode and jsonExpand",
        ),
    ];
    for (transform, expected) in cases {
        assert_eq!(message(&[transform], &[("A", CANARY)]), expected);
    }
}

#[test]
fn a_prefix_or_suffix_without_value_changes_nothing_as_under_the_go_operator() {
    for type_ in ["prefix", "suffix"] {
        let content = Content::from_iter([("A".to_owned(), SecretBytes::from(CANARY))]);
        assert_eq!(apply(&[transform(type_)], content.clone()).unwrap(), content, "{type_}");
    }
}

#[test]
fn a_strange_type_or_key_does_not_break_the_line_of_the_message() {
    let strange = format!("x\n{}", "y".repeat(1_000));
    let unknown = message(&[transform(&strange)], &[]);
    let collision = message(&[rename_to("A", &strange)], &[("A", ""), (&strange, "")]);
    for message in [unknown, collision] {
        assert!(!message.contains('\n') && message.len() < 400, "{message}");
    }
}

#[test]
fn made_up_keys_end_where_keys_of_a_secret_end() {
    let longest = "p".repeat(252);
    assert!(apply(&[prefix(&longest)], content(&[("A", "1")])).is_ok());
    let error = apply(&[suffix(&longest)], content(&[("AB", "1")])).unwrap_err();
    assert_eq!(error.problem, Problem::KeyTooLong { bytes: 254 });
}

proptest! {
    #[test]
    fn values_pass_prefix_suffix_and_rename_byte_for_byte(values in prop::collection::vec(any::<Vec<u8>>(), 0..5)) {
        let held: Content = values.iter().enumerate()
            .map(|(index, value)| (format!("K{index}"), SecretBytes::new(value.clone()))).collect();
        let moved = apply(&[prefix("a"), suffix("z"), rename_to("aK0z", "other")], held).unwrap();
        for (index, value) in values.iter().enumerate() {
            let key = if index == 0 { "other".to_owned() } else { format!("aK{index}z") };
            prop_assert_eq!(moved.get(&key).map(SecretBytes::expose), Some(value.as_slice()));
        }
        prop_assert_eq!(moved.len(), values.len());
    }

    #[test]
    fn any_bytes_survive_base64_in_either_alphabet(bytes: Vec<u8>) {
        use base64::Engine;
        use base64::engine::general_purpose::{STANDARD, URL_SAFE};
        for text in [STANDARD.encode(&bytes), URL_SAFE.encode(&bytes)] {
            let decoded = apply(&[decode(&[])], content(&[("K", &text)])).unwrap();
            prop_assert_eq!(decoded.get("K").map(SecretBytes::expose), Some(bytes.as_slice()));
        }
    }
}

//! The one transform that looks into values.

use std::fmt::Write;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn expanded(key: &str, source: &str) -> Vec<(String, String)> {
    let result = apply(&[expand(key)], content(&[(key, source)])).unwrap();
    let text = |value: &SecretBytes| String::from_utf8(value.expose().to_vec()).unwrap();
    result.0.iter().map(|(key, value)| (key.clone(), text(value))).collect()
}

fn problem(source: &str) -> (Option<String>, Problem) {
    let error = apply(&[expand("app")], content(&[("app", source)])).unwrap_err();
    (error.key, error.problem)
}

#[test]
fn each_kind_of_value_has_its_text() {
    let cases = [
        ("{}", None),
        (r#"{"a":{}}"#, None),
        (r#"{"a":"x y"}"#, Some("x y")),
        (r#"{"a":""}"#, Some("")),
        (r#"{"a":null}"#, Some("")),
        (r#"{"a":true}"#, Some("true")),
        (r#"{"a":false}"#, Some("false")),
        (r#"{"a":0}"#, Some("0")),
        (r#" { "a" : 12 } "#, Some("12")),
        (r#"{"a":1.50}"#, Some("1.50")),
        (r#"{"a":-0.0}"#, Some("-0.0")),
        (r#"{"a":1E+400}"#, Some("1E+400")),
        (r#"{"a":9007199254740993}"#, Some("9007199254740993")),
        (r#"{"a":123456789012345678901234567890123456789}"#, Some("123456789012345678901234567890123456789")),
        (r#"{"a":[]}"#, Some("[]")),
        (r#"{"a":[ 1 , "b c" , { "d" : [ null ] } ]}"#, Some(r#"[1,"b c",{"d":[null]}]"#)),
        (r#"{"a":["\" ] , [", "\\", 1.0]}"#, Some(r#"["\" ] , [","\\",1.0]"#)),
        (r#"{"a":"\" \\ \/ \b\f\n\r\t"}"#, Some("\" \\ / \u{8}\u{c}\n\r\t")),
        (r#"{"a":"\u0041\u00e9\ud83d\uDE00é"}"#, Some("A\u{e9}\u{1f600}é")),
        (r#"{"a":"\\u0041"}"#, Some(r"\u0041")),
        (r#"{"a":"\u0000"}"#, Some("\0")),
    ];
    for (source, expected) in cases {
        let expected: Vec<_> = expected.iter().map(|text| ("APP_A".to_owned(), (*text).to_owned())).collect();
        assert_eq!(expanded("app", source), expected, "{source}");
    }
}

#[test]
fn names_are_joined_and_in_upper_case() {
    let source = r#"{"db":{"host-name":"h","Port":{"x":1}},"":2,"\u0061b":3,"straße":4}"#;
    let expected = [
        ("MY-APP_", "2"),
        ("MY-APP_AB", "3"),
        ("MY-APP_DB_HOST-NAME", "h"),
        ("MY-APP_DB_PORT_X", "1"),
        ("MY-APP_STRAßE", "4"),
    ];
    assert_eq!(expanded("my-app", source), expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
}

#[test]
fn the_source_goes_and_the_rest_stays() {
    let result = apply(&[expand("A")], content(&[("A", r#"{"b":"1"}"#), ("C", "2")]));
    assert_eq!(result, Ok(content(&[("A_B", "1"), ("C", "2")])));
    assert_eq!(apply(&[expand("X")], content(&[("C", "2")])), Ok(content(&[("C", "2")])));
}

#[test]
fn whatever_would_be_written_twice_is_refused_by_its_name() {
    let cases = [
        ("one name twice", r#"{"a":1,"a":1}"#, "APP_A"),
        ("names that differ in case", r#"{"a":1,"A":2}"#, "APP_A"),
        ("a path and a name", r#"{"a":{"b":1},"a_b":2}"#, "APP_A_B"),
        ("a key beside the source", r#"{"there":1}"#, "APP_THERE"),
    ];
    for (name, source, key) in cases {
        let error = apply(&[expand("app")], content(&[("app", source), ("APP_THERE", CANARY)])).unwrap_err();
        assert_eq!((error.key.as_deref(), error.problem), (Some(key), Problem::Collision), "{name}");
    }
}

#[test]
fn what_is_no_object_is_refused_without_being_quoted() {
    let not_json = |line, column| Problem::NotJson { line, column };
    let cases = [
        (r#""canary-4c7f""#.to_owned(), Problem::NotAnObject),
        (r#"["canary-4c7f"]"#.to_owned(), Problem::NotAnObject),
        ("4711".to_owned(), Problem::NotAnObject),
        ("null".to_owned(), Problem::NotAnObject),
        ("true".to_owned(), Problem::NotAnObject),
        (CANARY.to_owned(), not_json(1, 1)),
        (String::new(), not_json(1, 0)),
        (r#"{"canary-4c7f"}"#.to_owned(), not_json(1, 15)),
        (r#"{"a":"canary-4c7f""#.to_owned(), not_json(1, 18)),
        ("{\"a\":1}\n{\"canary-4c7f\":2}".to_owned(), not_json(2, 1)),
        (r#"{"a":canary-4c7f}"#.to_owned(), not_json(1, 6)),
        (r#"{"a":01}"#.to_owned(), not_json(1, 7)),
        (r#"{"a":"\x"}"#.to_owned(), not_json(1, 8)),
    ];
    for (source, expected) in cases {
        let error = apply(&[expand("app")], content(&[("app", &source)])).unwrap_err();
        assert_eq!((error.key.as_deref(), error.problem), (Some("app"), expected), "{source}");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("canary") && !shown.contains("4711"), "{shown}");
    }
}

#[test]
fn bytes_that_are_no_text_are_not_json() {
    let held: Content = [("K", SecretBytes::new(b"{\"a\":\"\xff\"}".to_vec()))].into_iter().collect();
    let error = apply(&[expand("K")], held).unwrap_err();
    assert_eq!(error.problem, Problem::NotJson { line: 0, column: 0 });
}

#[test]
fn half_a_surrogate_pair_is_refused_rather_than_replaced() {
    for text in [r"\ud83d", r"\ude00", r"\ud83dx", r"\ud83d\n", r"\ud83dA", r"\ud83d\ud83d", r"\ud83d\u0041"] {
        let (key, problem) = problem(&format!(r#"{{"a":"{text}"}}"#));
        assert_eq!((key.as_deref(), problem), (Some("APP_A"), Problem::LoneSurrogate), "{text}");
    }
    let (key, problem) = problem(r#"{"\ud83d":1}"#);
    assert_eq!((key.as_deref(), problem), (Some("app"), Problem::LoneSurrogate));
}

#[test]
fn depth_width_and_length_of_names_are_bounded() {
    let nested = |depth: usize| format!("{}1{}", r#"{"":"#.repeat(depth), "}".repeat(depth));
    assert_eq!(expanded("A", &nested(64)), [(format!("A{}", "_".repeat(64)), "1".to_owned())]);
    assert_eq!(problem(&nested(65)).1, Problem::TooDeep { limit: 64 });
    assert_eq!(problem(&nested(100_000)).1, Problem::TooDeep { limit: 64 });

    let wide = |count: usize| {
        let mut fields = String::from("{\"x\":0");
        for number in 1..count {
            write!(fields, ",\"{number}\":0").unwrap();
        }
        fields + "}"
    };
    assert_eq!(expanded("A", &wide(10_000)).len(), 10_000);
    assert_eq!(problem(&wide(10_001)).1, Problem::TooManyFields { limit: 10_000 });
    assert_eq!(problem(&format!(r#"{{"a":{},"b":0}}"#, wide(10_000))).1, Problem::TooManyFields { limit: 10_000 });

    let named = |length: usize| format!(r#"{{"{}":{{"a":1}}}}"#, "n".repeat(length));
    assert_eq!(problem(&named(248)).1, Problem::KeyTooLong { bytes: 254 });
    assert_eq!(expanded("app", &named(247)).len(), 1);
    // Brackets inside an array are not looked into, so their number does not matter.
    let array = format!(r#"{{"a":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(expanded("A", &array)[0].1.len(), 200_000);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,3}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

/// The rules once more, over a parsed tree.
fn flattened(path: &str, value: &Value, into: &mut Vec<(String, String)>) {
    let text = match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                flattened(&format!("{path}_{}", name.to_uppercase()), value, into);
            }
            return;
        }
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    into.push((path.to_owned(), text));
}

proptest! {
    #[test]
    fn agrees_with_the_rules_applied_to_a_tree(fields in prop::collection::btree_map("[a-z]{1,3}", any_json(), 0..4), pretty: bool) {
        let tree = json!(fields);
        let mut expected = Vec::new();
        flattened("K", &tree, &mut expected);
        expected.sort();
        let source = if pretty { serde_json::to_string_pretty(&tree).unwrap() } else { tree.to_string() };
        prop_assert_eq!(expanded("k", &source), expected);
    }

    #[test]
    fn any_text_survives_whatever_its_escapes(text in any::<String>()) {
        let escaped: String = text.encode_utf16().fold(String::new(), |mut all, unit| {
            write!(all, "\\u{unit:04x}").unwrap();
            all
        });
        let plain = json!(text).to_string();
        for source in [format!(r#"{{"a":{plain}}}"#), format!(r#"{{"a":"{escaped}"}}"#)] {
            prop_assert_eq!(expanded("K", &source), [("K_A".to_owned(), text.clone())]);
        }
    }

    #[test]
    fn a_damaged_source_gives_an_error_or_a_result_and_never_its_text(cut in 0_usize..60, with in "[\\[{\"\\\\:,0-9a-f ]{0,3}") {
        let source = r#"{"a":{"b":"canary-4c7f","c":[1,"\ud83d\ude00"]},"d":null,"e":-1.5e3}"#;
        let source = format!("{}{with}{}", &source[..cut], &source[cut..]);
        if let Err(error) = apply(&[expand("K")], content(&[("K", &source)])) {
            prop_assert!(!format!("{error} {error:?}").contains("canary"), "{error}");
        }
    }
}

//! Known answers, computed with another language's library from the description alone, and the properties that the
//! rollout protocol rests on.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use proptest::prelude::*;

use super::*;
use crate::content::SecretBytes;

const FIRST_NONCE: [u8; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
const SECOND_NONCE: [u8; 8] = [0xff; 8];

fn counting_key() -> OperatorKey {
    let bytes: Vec<u8> = (0..32).collect();
    OperatorKey::from_bytes(&bytes).unwrap()
}

fn other_key() -> OperatorKey {
    OperatorKey::from_bytes(&[0xaa; 32]).unwrap()
}

fn content(pairs: &[(&str, &[u8])]) -> Content {
    pairs.iter().map(|(key, value)| (*key, SecretBytes::new(value.to_vec()))).collect()
}

/// Contents with their version under each key and nonce, and with the Go operator's hash.
fn known_answers() -> Vec<(Content, [&'static str; 3])> {
    vec![
        (
            content(&[]),
            [
                "v1.9a939e49.0001020304050607.49e0c78d78f50754a3f9ac8f2f6bdb36",
                "v1.eedd1c71.ffffffffffffffff.f84fa8c58b558cd0fcdcf4241b897307",
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            ],
        ),
        (
            content(&[("A", b"1")]),
            [
                "v1.9a939e49.0001020304050607.6540346958a9ca05c4104625d711b678",
                "v1.eedd1c71.ffffffffffffffff.1be6603819bb72920a8a9498dc430bbf",
                "e722cfcc65cc7c01d3816a7d3abafc9e116230d3ee3fcd5ab925f38814f113c2",
            ],
        ),
        (
            content(&[("DB_PASSWORD", b"s3cr3t"), ("API", b"")]),
            [
                "v1.9a939e49.0001020304050607.542cc6258aeea67d7840c688ea48177c",
                "v1.eedd1c71.ffffffffffffffff.21f4a32b4f494bc4289bc420d9a9f8b2",
                "e18bbd1fac8eb5842e595aa663e1ce81583bc9d2d18bd281b7a8491dd61b3191",
            ],
        ),
        (
            content(&[("b", &[0, 255, 10]), ("a.b", "ü".as_bytes())]),
            [
                "v1.9a939e49.0001020304050607.7a373a111ea00866b785dd0ee09bf2fd",
                "v1.eedd1c71.ffffffffffffffff.02284a52ac4dee43f5cd9b4129152ff8",
                "269503cd5a94b8f930140aa4ba8b4fba17570da961c32e66a93efc13572cc65b",
            ],
        ),
    ]
}

#[test]
fn versions_are_the_known_answers() {
    for (content, [first, second, _]) in known_answers() {
        assert_eq!(Version::make(&counting_key(), FIRST_NONCE, &content).as_str(), first);
        assert_eq!(Version::make(&other_key(), SECOND_NONCE, &content).as_str(), second);
    }
}

#[test]
fn each_version_is_that_of_its_content_and_of_no_other() {
    let answers = known_answers();
    for (row, (_, versions)) in answers.iter().enumerate() {
        for (column, (content, _)) in answers.iter().enumerate() {
            let expected = if row == column { Verdict::Matches } else { Verdict::Differs };
            for (version, key) in versions.iter().zip([counting_key(), other_key(), counting_key()]) {
                assert_eq!(Version::parse(*version).verify(&key, content), expected, "{version}");
            }
        }
    }
}

#[test]
fn a_legacy_hash_needs_no_key_and_any_other_key_is_gone() {
    for (content, [first, _, legacy]) in known_answers() {
        assert_eq!(Version::parse(legacy).verify(&other_key(), &content), Verdict::Matches);
        assert_eq!(Version::parse(first).verify(&other_key(), &content), Verdict::KeyGone);
    }
}

#[test]
fn what_nobody_made_is_foreign_and_equal_to_itself_only() {
    let good = "v1.9a939e49.0001020304050607.6540346958a9ca05c4104625d711b678";
    let texts = [
        String::new(),
        "edited".to_owned(),
        good.to_uppercase(),
        good.replacen("v1", "v2", 1),
        good.replacen("v1.", "", 1),
        format!("{good}."),
        format!("{good}.00"),
        format!("{good}0"),
        format!(" {good}"),
        good.replace('a', "g"),
        good.replacen("9a939e49", "9a939e4", 1),
        good.replacen("0001", "00é", 1),
        "e722cfcc65cc7c01d3816a7d3abafc9e116230d3ee3fcd5ab925f38814f113c".to_owned(),
        "E722CFCC65CC7C01D3816A7D3ABAFC9E116230D3EE3FCD5AB925F38814F113C2".to_owned(),
    ];
    for text in texts {
        let version = Version::parse(text.as_str());
        assert_eq!(version.form(), Form::Foreign, "{text}");
        assert_eq!(version.verify(&counting_key(), &content(&[("A", b"1")])), Verdict::KeyGone, "{text}");
        assert_eq!(version, Version::parse(text.as_str()));
        assert_ne!(version, Version::parse(good));
        assert_eq!(version.to_string(), text);
    }
}

#[test]
fn there_and_back_again_gives_three_versions_of_which_two_fit() {
    let (a, b) = (content(&[("K", b"a")]), content(&[("K", b"b")]));
    let key = counting_key();
    let versions =
        [([1; 8], &a), ([2; 8], &b), ([3; 8], &a)].map(|(nonce, content)| Version::make(&key, nonce, content));
    assert_eq!(versions.iter().collect::<HashSet<_>>().len(), 3);
    let verdicts = versions.each_ref().map(|version| version.verify(&key, &a));
    assert_eq!(verdicts, [Verdict::Matches, Verdict::Differs, Verdict::Matches]);
}

#[test]
fn versions_are_compared_ordered_hashed_and_printed_by_their_text() {
    let version = |text: &str| Version::parse(text);
    let hash = |text: &str| BuildHasherDefault::<DefaultHasher>::default().hash_one(version(text));
    assert_eq!(version("a").partial_cmp(&version("b")), Some(Ordering::Less));
    assert_eq!(version("b").partial_cmp(&version("b")), Some(Ordering::Equal));
    assert_eq!(hash("a"), hash("a"));
    assert_ne!(hash("a"), hash("b"));
    assert_eq!(format!("{:?}", version("a")), r#"Version("a")"#);
}

#[test]
fn every_changed_digit_of_the_hash_or_nonce_is_noticed() {
    let (key, content) = (counting_key(), content(&[("A", b"1")]));
    let text = Version::make(&key, FIRST_NONCE, &content).to_string();
    for (index, digit) in text.char_indices().skip("v1.9a939e49.".len()).filter(|(_, c)| *c != '.') {
        let mut changed = text.clone();
        changed.replace_range(index..=index, if digit == '0' { "1" } else { "0" });
        assert_eq!(Version::parse(changed).verify(&key, &content), Verdict::Differs, "digit {index}");
    }
}

#[test]
fn an_operator_key_has_32_bytes_and_never_prints_them() {
    for wrong in [0, 16, 31, 33, 64] {
        let error = OperatorKey::from_bytes(&vec![7; wrong]).unwrap_err();
        assert_eq!(error.to_string(), format!("an operator key has 32 bytes, this one has {wrong}"));
    }
    let key = counting_key();
    assert_eq!(key.expose(), (0..32).collect::<Vec<u8>>());
    assert_eq!(format!("{key:?} {}", key.id()), "OperatorKey(9a939e49) 9a939e49");
}

fn any_content() -> impl Strategy<Value = Vec<(String, Vec<u8>)>> {
    // Short pieces over few symbols, zero bytes among them, so that boundaries between keys and values get confused.
    let key = "[ab\\x00]{0,3}";
    let value = prop::collection::vec(prop::sample::select(vec![0, b'a', b'b', 255]), 0..4);
    prop::collection::btree_map(key, value, 0..4).prop_map(|map| map.into_iter().collect())
}

fn gather(pairs: &[(String, Vec<u8>)]) -> Content {
    pairs.iter().map(|(key, value)| (key.as_str(), SecretBytes::new(value.clone()))).collect()
}

proptest! {
    #[test]
    fn the_order_in_which_keys_arrive_does_not_matter(pairs in any_content().prop_shuffle(), nonce: [u8; 8]) {
        let mut reversed = pairs.clone();
        reversed.reverse();
        let key = counting_key();
        prop_assert_eq!(
            Version::make(&key, nonce, &gather(&pairs)),
            Version::make(&key, nonce, &gather(&reversed))
        );
    }

    #[test]
    fn a_version_fits_exactly_the_contents_equal_to_its_own(one in any_content(), other in any_content(), nonce: [u8; 8]) {
        let (key, one, other) = (counting_key(), gather(&one), gather(&other));
        let version = Version::parse(Version::make(&key, nonce, &one).to_string());
        prop_assert_eq!(version.verify(&key, &one), Verdict::Matches);
        prop_assert_eq!(version.verify(&key, &other) == Verdict::Matches, one == other);
    }

    #[test]
    fn moving_a_byte_between_key_and_value_is_noticed(text in "[a-c]{2,8}", at in 1_usize..8, nonce: [u8; 8]) {
        let key = counting_key();
        let split = |at: usize| {
            let (name, value) = text.split_at(at.min(text.len()));
            content(&[(name, value.as_bytes())])
        };
        let at = at.min(text.len());
        prop_assert_eq!(Version::make(&key, nonce, &split(at)).verify(&key, &split(at - 1)), Verdict::Differs);
    }

    #[test]
    fn any_changed_added_or_removed_byte_is_noticed(
        value in prop::collection::vec(any::<u8>(), 1..64),
        at: prop::sample::Index,
        flip in 1_u8..,
        nonce: [u8; 8],
    ) {
        let key = counting_key();
        let version = Version::make(&key, nonce, &content(&[("K", &value)]));
        let at = at.index(value.len());
        let mut changed = value.clone();
        changed[at] ^= flip;
        let mut longer = value.clone();
        longer.insert(at, flip);
        let mut shorter = value.clone();
        shorter.remove(at);
        for other in [changed, longer, shorter] {
            prop_assert_eq!(version.verify(&key, &content(&[("K", &other)])), Verdict::Differs);
        }
    }

    #[test]
    fn a_version_is_valid_as_a_label_and_reads_back(pairs in any_content(), key: [u8; 32], nonce: [u8; 8]) {
        let key = OperatorKey::from_bytes(&key).unwrap();
        let version = Version::make(&key, nonce, &gather(&pairs));
        let text = version.as_str();
        prop_assert_eq!(text.len(), 61);
        prop_assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.'));
        prop_assert_eq!(Version::parse(text).form(), version.form());
        let named = matches!(version.form(), Form::Keyed { key_id, nonce: n, .. } if key_id == key.id() && n == nonce);
        prop_assert!(named);
    }

    #[test]
    fn reading_a_version_never_fails_and_keeps_the_text(text in any::<String>()) {
        prop_assert_eq!(Version::parse(text.clone()).to_string(), text);
    }
}

//! Whether a text repeats a secret, however it spells it (invariant I8).
//!
//! Whoever quotes a secret in an error escapes it for the place it puts it in: as JSON, as a string of some language, for an
//! address, for a page. What is compared is what a reader would make of the text, with the secret as it is, as it would be
//! shown, and as that reader would take it: one that looks escaped itself is changed along with the text around it.

use std::collections::HashSet;

use zeroize::Zeroizing;

use crate::json_string::escaped_character;

/// Length of the pieces compared with a secret. Shorter ones meet by chance (`fvsat_` is six characters), longer ones
/// would let a usable part of a value through.
const PIECE: usize = 8;

/// How often a text is read anew with its escapes replaced: an error that quotes the error of another service, which
/// quotes its own, has three layers.
const LAYERS: usize = 3;

/// Whether `text` contains a piece of one of `secrets`, or all of one that is shorter than a piece. `shown`: how a text is
/// shown to people.
pub(crate) fn repeats(text: &str, secrets: &[&[u8]], shown: fn(&str) -> Zeroizing<String>) -> bool {
    let mut read = Zeroizing::new(text.to_owned());
    let mut taken: Vec<Zeroizing<String>> = secrets
        .iter()
        .filter_map(|secret| str::from_utf8(secret).ok())
        .map(|text| Zeroizing::new(text.to_owned()))
        .collect();
    for _ in 0..=LAYERS {
        if secrets.iter().any(|secret| found(&read, secret, shown)) {
            return true;
        }
        if taken.iter().any(|secret| found(&read, secret.as_bytes(), shown)) {
            return true;
        }
        for secret in &mut taken {
            *secret = unescaped(secret);
        }
        let next = unescaped(&read);
        if *next == *read {
            break;
        }
        read = next;
    }
    false
}

/// Compared before and after the cleaning: a secret broken up by invisible characters reads like the secret.
fn found(text: &str, secret: &[u8], shown: fn(&str) -> Zeroizing<String>) -> bool {
    let cleaned = shown(text);
    let as_shown = str::from_utf8(secret).ok().map(shown);
    let secrets = [Some(secret), as_shown.as_ref().map(|text| text.as_bytes())];
    let mut pairs = secrets.into_iter().flatten().flat_map(|secret| [(text, secret), (cleaned.as_str(), secret)]);
    pairs.any(|(text, secret)| contains_piece(text, secret))
}

fn contains_piece(text: &str, secret: &[u8]) -> bool {
    if secret.is_empty() {
        return false;
    }
    let length = secret.len().min(PIECE);
    let pieces: HashSet<&[u8]> = text.as_bytes().windows(length).collect();
    secret.windows(length).any(|piece| pieces.contains(piece))
}

/// `text` with one layer of escapes replaced by what they stand for, whichever way each is written: `%22`, `+`, `\"`, `\n`,
/// `\x22`, `\u0022`, `\u{22}`, `&quot;`, `&#34;`, `&#x22;`.
fn unescaped(text: &str) -> Zeroizing<String> {
    // No escape is shorter than what it stands for, so this vector never grows and leaves nothing behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(text.len()));
    let mut rest = text;
    while let Some((plain, escape)) = rest.find(['%', '+', '\\', '&']).and_then(|at| rest.split_at_checked(at)) {
        bytes.extend_from_slice(plain.as_bytes());
        rest = match replace(escape, &mut bytes) {
            Some(after) => after,
            // It stands for itself, and is one byte long.
            None => match escape.split_at_checked(1) {
                Some((itself, after)) => {
                    bytes.extend_from_slice(itself.as_bytes());
                    after
                }
                None => "",
            },
        };
    }
    bytes.extend_from_slice(rest.as_bytes());
    Zeroizing::new(String::from_utf8_lossy(&bytes).into_owned())
}

/// Appends what the escape that `text` begins with stands for, and gives what follows it.
fn replace<'a>(text: &'a str, bytes: &mut Vec<u8>) -> Option<&'a str> {
    if let Some(after) = text.strip_prefix('+') {
        bytes.push(b' ');
        return Some(after);
    }
    if let Some(digits) = text.strip_prefix('%').or_else(|| text.strip_prefix("\\x")) {
        let (digits, after) = digits.split_at_checked(2)?;
        bytes.push(u8::try_from(hexadecimal(digits)?).ok()?);
        return Some(after);
    }
    let (character, after) = if let Some(braced) = text.strip_prefix("\\u{") {
        let (digits, after) = braced.split_once('}')?;
        (char::from_u32(hexadecimal(digits)?)?, after)
    } else if let Some(escape) = text.strip_prefix('\\') {
        let itself = || escape.chars().next().and_then(|kind| Some((kind, escape.get(kind.len_utf8()..)?)));
        escaped_character(escape).or_else(itself)?
    } else {
        let (name, after) = text.strip_prefix('&')?.split_once(';')?;
        (entity(name)?, after)
    };
    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    Some(after)
}

/// What `&name;` stands for. Only what is escaped of necessity has a name here.
fn entity(name: &str) -> Option<char> {
    match (name, name.strip_prefix('#')) {
        ("quot", _) => Some('"'),
        ("apos", _) => Some('\''),
        ("amp", _) => Some('&'),
        ("lt", _) => Some('<'),
        ("gt", _) => Some('>'),
        (_, Some(number)) => {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => hexadecimal(digits)?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)
        }
        _ => None,
    }
}

/// Digits and nothing else: the standard library would take a sign.
fn hexadecimal(digits: &str) -> Option<u32> {
    let all = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    all.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn as_it_is(text: &str) -> Zeroizing<String> {
        Zeroizing::new(text.to_owned())
    }

    #[test]
    fn one_layer_of_escapes_is_read_whichever_way_it_is_written() {
        for (written, read) in [
            ("no escape at all é", "no escape at all é"),
            (r#"\"\\\/\n\t\'\$\é"#, "\"\\/\n\t'$é"),
            (r"\x22\u0022\u{22}\u{1f600}\ud83d\ude00", "\"\"\"😀😀"),
            ("%22%C3%a9%25", "\"é%"),
            ("a+b%2B+", "a b+ "),
            ("&quot;&apos;&amp;&lt;&gt;&#34;&#x22;&#X22;", "\"'&<>\"\"\""),
            (r#"\\\"%2522&amp;quot;"#, r#"\"%22&quot;"#),
            ("100 % of %zz, %2", "100 % of %zz, %2"),
            (r"\xzz \u{} \u{110000}", r"\xzz \u{} \u{110000}"),
            ("a & b; &nothing; &#; &#x; &#-1; &", "a & b; &nothing; &#; &#x; &#-1; &"),
            ("%é \\", "%é \\"),
            ("", ""),
        ] {
            assert_eq!(*unescaped(written), read, "{written}");
        }
    }

    #[test]
    fn a_secret_is_known_through_three_layers_and_a_text_without_it_stays() {
        let secret = "a\"b\\c&d%e\"f\ng".as_bytes();
        let mut text = String::from_utf8(secret.to_vec()).unwrap();
        for layer in 0..=LAYERS {
            assert!(repeats(&format!("value {text} is weak"), &[b"", secret], as_it_is), "{layer}: {text}");
            text = serde_json::to_string(&text).unwrap().trim_matches('"').to_owned();
        }
        for text in ["value is weak", "", "a%22", r#"a\"b"#] {
            assert!(!repeats(text, &[b"", secret], as_it_is), "{text}");
        }
    }

    #[test]
    fn a_secret_that_looks_escaped_itself_is_known_in_quotes() {
        let secret = r#"p"%41q"%42r"%43s"%44"#;
        for text in [serde_json::to_string(secret).unwrap(), format!("{secret:?}")] {
            assert!(repeats(&format!("value {text} is weak"), &[secret.as_bytes()], as_it_is), "{text}");
        }
    }

    #[test]
    fn a_secret_of_short_words_is_known_in_a_form() {
        let secret = "an old cat on my mat sat";
        let form = secret.replace(' ', "+");
        assert!(repeats(&form, &[secret.as_bytes()], as_it_is), "{form}");
    }
}

//! What FerrVault said about a failure, made fit to be shown on a status.
//!
//! Texts from the other side are not trusted: they are cut, freed of everything that does not print, and withheld
//! altogether when they repeat a piece of what the call kept secret (invariant I8).

use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use crate::echo;
use crate::json_string::unescape;

/// Most characters that are shown.
const MAX_CHARACTERS: usize = 200;

/// Shown instead of a text that repeats a secret.
const WITHHELD: &str = "<withheld: it repeats a secret>";

/// At most 200 printable characters from FerrVault, possibly none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamText(String);

impl UpstreamText {
    /// Makes `text` fit to be shown. `secrets` is what the call must not reveal.
    pub(crate) fn new(text: &str, secrets: &[&[u8]]) -> Self {
        if echo::repeats(text, secrets, printable) {
            return Self(WITHHELD.to_owned());
        }
        Self(cut(&printable(text)))
    }

    /// Reads the text out of an error body: `{"error":"…"}` or `{"message":"…"}`. Anything else gives no text, because
    /// the page of some proxy helps nobody in a status.
    pub(crate) fn from_body(body: &[u8], secrets: &[&[u8]]) -> Self {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(borrow, default)]
            error: Option<&'a RawValue>,
            #[serde(borrow, default)]
            message: Option<&'a RawValue>,
        }
        let Ok(body) = serde_json::from_slice::<Body<'_>>(body) else { return Self::default() };
        let text = [body.error, body.message].into_iter().flatten().find_map(|raw| unescape(raw.get()));
        match text.as_ref().map(|text| str::from_utf8(text.expose())) {
            Some(Ok(text)) => Self::new(text, secrets),
            _ => Self::default(),
        }
    }

    /// The text; empty when there is none.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Reads as a clause within a sentence: nothing, or `, saying "…"`.
impl fmt::Display for UpstreamText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ", saying \"{}\"", self.0) }
    }
}

/// A name as it may be shown: cut, and every character that does not print written as its escape.
pub(crate) fn shown_name(name: &str) -> String {
    cut(&name.escape_debug().to_string())
}

/// `text` without characters that do not print, with runs of white space made one space. It is shown in double quotes, so
/// what it quotes itself stands in single ones.
fn printable(text: &str) -> Zeroizing<String> {
    // A secret passes here as well. Nothing becomes longer, so this never grows and leaves no copy behind.
    let mut shown = Zeroizing::new(String::with_capacity(text.len()));
    let mut word_ended = false;
    for c in text.chars() {
        if c.is_whitespace() {
            word_ended = !shown.is_empty();
        } else if !c.is_control() && !is_invisible(c) {
            if std::mem::take(&mut word_ended) {
                shown.push(' ');
            }
            shown.push(if c == '"' { '\'' } else { c });
        }
    }
    shown
}

/// Characters that are no controls to Unicode and still change how the text around them is shown, or hide in it.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// At most [`MAX_CHARACTERS`] characters, the last of them an ellipsis where something was cut.
fn cut(text: &str) -> String {
    if text.chars().nth(MAX_CHARACTERS).is_none() {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(MAX_CHARACTERS - 1).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_body_gives_its_text_and_nothing_else_does() {
        for (body, text) in [
            (r#"{"error":"no such vault"}"#, "no such vault"),
            (r#"{"message":"slow down"}"#, "slow down"),
            (r#"{"error":"first","message":"second"}"#, "first"),
            (r#"{"error":{"code":3},"message":"second"}"#, "second"),
            (r#"{"error":"caf\u00e9 \n\t closed\u0007"}"#, "café closed"),
            (r#"{"error":"bound to \"stage\""}"#, "bound to 'stage'"),
            (r#"{"error":"\ud800"}"#, ""),
            (r#"{"error":""}"#, ""),
            (r#"{"error":null}"#, ""),
            (r#"{"detail":"x"}"#, ""),
            ("<html>502</html>", ""),
            ("", ""),
        ] {
            assert_eq!(UpstreamText::from_body(body.as_bytes(), &[]).as_str(), text, "{body}");
        }
    }

    #[test]
    fn long_texts_are_cut_by_characters() {
        let exact = "é".repeat(MAX_CHARACTERS);
        assert_eq!(UpstreamText::new(&exact, &[]).as_str(), exact);
        let long = UpstreamText::new(&format!("{exact}é"), &[]);
        assert_eq!(long.as_str().chars().count(), MAX_CHARACTERS);
        assert!(long.as_str().ends_with("é…"));
    }

    #[test]
    fn nothing_survives_that_reorders_or_hides_text() {
        let text = UpstreamText::new("a\u{202e}b\u{200b}c\u{1b}[31md\u{feff}", &[]);
        assert_eq!(text.as_str(), "abc[31md");
    }

    #[test]
    fn a_text_that_repeats_a_secret_is_withheld() {
        let token: &[u8] = b"fvsat_canary_0123456789";
        for text in [
            "token fvsat_canary_0123456789 is unknown",
            "token ...0123456789 is unknown",
            "token fvsat_ca... is unknown",
            "token fvsat\u{200b}_canary\u{0}_0123456789 is unknown",
        ] {
            assert_eq!(UpstreamText::new(text, &[token]).as_str(), WITHHELD, "{text}");
        }
        assert_eq!(UpstreamText::new("fvsat_ tokens only", &[token]).as_str(), "fvsat_ tokens only");
        assert_eq!(UpstreamText::new("value abc is weak", &[b"abc"]).as_str(), WITHHELD);
        assert_eq!(UpstreamText::new("value is weak", &[b"", b"abc"]).as_str(), "value is weak");
    }

    /// The shown text is in single quotes where the value is in double ones, and whoever quotes a value escapes it.
    #[test]
    fn a_secret_with_quotes_is_withheld_however_it_is_spelled() {
        let secret = "can\"ary\" \n42\"x\"7\"";
        let as_json = serde_json::to_string(secret).unwrap();
        for (spelling, text) in [
            ("as it is", secret.to_owned()),
            ("as it would be shown", "can'ary' 42'x'7'".to_owned()),
            ("as JSON", as_json.clone()),
            ("as JSON within JSON", serde_json::to_string(&as_json).unwrap()),
            ("as Rust prints it", format!("{secret:?}")),
            ("for an address", "can%22ary%22%20%0A42%22x%227%22".to_owned()),
            ("for an address within another", "can%2522ary%2522%2520%250A42%2522x%25227%2522".to_owned()),
            ("for a page", "can&quot;ary&quot; &#10;42&#34;x&#x22;7&quot;".to_owned()),
            ("as code points", r"can\u0022ary\u0022\u0020\u000a42\u0022x\u00227\u0022".to_owned()),
        ] {
            let text = format!("value {text} is weak");
            assert_eq!(
                UpstreamText::new(&text, &[b"fvsat_canary", secret.as_bytes()]).as_str(),
                WITHHELD,
                "{spelling}"
            );
            let body = serde_json::json!({ "error": text }).to_string();
            let read = UpstreamText::from_body(body.as_bytes(), &[secret.as_bytes()]);
            assert_eq!(read.as_str(), WITHHELD, "{spelling}");
        }
    }

    #[test]
    fn names_are_shown_escaped_and_cut() {
        assert_eq!(shown_name("A\nB"), r"A\nB");
        assert_eq!(shown_name(&"x".repeat(300)).chars().count(), MAX_CHARACTERS);
    }
}

//! `KEY=VALUE` arguments: the value as it is, from a file, or from standard input.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::CliError;
use crate::data_dir::FileError;
use crate::secret_text::SecretText;

/// Where a value comes from.
#[derive(Debug, PartialEq, Eq)]
enum Source {
    Text(SecretText),
    File(PathBuf),
    Stdin,
}

/// Reads all of `arguments`; nothing is read before all of them make sense.
pub(super) fn read_values(
    arguments: Vec<String>,
    stdin: &mut dyn Read,
) -> Result<BTreeMap<String, SecretText>, CliError> {
    let mut sources = BTreeMap::new();
    let mut asks_stdin = false;
    for (index, argument) in arguments.into_iter().enumerate() {
        let (key, source) = parse(&SecretText::new(argument), index + 1)?;
        if source == Source::Stdin && std::mem::replace(&mut asks_stdin, true) {
            return Err(CliError::Usage("standard input can be the value of one key only".to_owned()));
        }
        if sources.contains_key(&key) {
            return Err(CliError::Usage(format!("the key {key:?} is given twice")));
        }
        sources.insert(key, source);
    }
    sources.into_iter().map(|(key, source)| read(&key, source, stdin).map(|value| (key, value))).collect()
}

/// Errors name the place of the argument, never the argument: what has no `=` may well be a value.
fn parse(argument: &SecretText, place: usize) -> Result<(String, Source), CliError> {
    let Some((key, value)) = argument.expose().split_once('=') else {
        return Err(CliError::Usage(format!(
            "argument {place} after the vault is not KEY=VALUE; KEY=@FILE reads a file, KEY=- standard input"
        )));
    };
    if key.is_empty() {
        return Err(CliError::Usage(format!("argument {place} after the vault has no key before its '='")));
    }
    let source = match value {
        "-" => Source::Stdin,
        "@" => return Err(CliError::Usage(format!("{key}=@ needs the name of a file behind the @"))),
        _ => match value.strip_prefix('@') {
            Some(text) if text.starts_with('@') => Source::Text(SecretText::new(text.to_owned())),
            Some(file) => Source::File(PathBuf::from(file)),
            None => Source::Text(SecretText::new(value.to_owned())),
        },
    };
    Ok((key.to_owned(), source))
}

/// The bytes as they are, a newline at the end included: what is stored is what was given.
fn read(key: &str, source: Source, stdin: &mut dyn Read) -> Result<SecretText, CliError> {
    let (bytes, from) = match source {
        Source::Text(text) => return Ok(text),
        Source::File(path) => {
            let bytes = std::fs::read(&path).map_err(|error| FileError::new("cannot read", &path, error))?;
            (bytes, path)
        }
        Source::Stdin => {
            let mut bytes = Vec::new();
            let from = Path::new("standard input").to_owned();
            stdin.read_to_end(&mut bytes).map_err(|error| FileError::new("cannot read", &from, error))?;
            (bytes, from)
        }
    };
    String::from_utf8(bytes).map(SecretText::new).map_err(|_| {
        CliError::Usage(format!(
            "the value of {key} in {} is not UTF-8, which the API cannot carry; store it in base64 and let the resource \
             decode it with the transform base64Decode",
            from.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::read_values;

    fn values(arguments: &[&str], mut stdin: &[u8]) -> Result<Vec<(String, String)>, String> {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        read_values(arguments, &mut stdin)
            .map(|values| values.into_iter().map(|(key, value)| (key, value.expose().to_owned())).collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn values_are_taken_as_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("value");
        std::fs::write(&file, "from file\n").unwrap();
        let from_file = format!("F=@{}", file.display());
        let cases = [
            ("plain", "A=b", "A", "b"),
            ("with further equal signs", "A=b=c=", "A", "b=c="),
            ("empty", "A=", "A", ""),
            ("a literal @ written twice", "A=@@b", "A", "@b"),
            ("a minus with more behind it", "A=-b", "A", "-b"),
            ("from a file, newline included", &from_file, "F", "from file\n"),
            ("from standard input", "S=-", "S", "from stdin"),
        ];
        for (case, argument, key, value) in cases {
            let read = values(&[argument], b"from stdin");
            assert_eq!(read, Ok(vec![(key.to_owned(), value.to_owned())]), "{case}");
        }
    }

    #[test]
    fn mistakes_are_named_without_quoting_a_value() {
        let cases: [(&[&str], &str); 7] = [
            (&["A=b", "canary"], "argument 2"),
            (&["=canary"], "argument 1"),
            (&["A=@"], "A=@ needs"),
            (&["A=-", "B=-"], "one key only"),
            (&["A=canary", "A=canary"], "twice"),
            (&["A=@/nowhere/at/all"], "/nowhere/at/all"),
            (&["A=-"], "base64Decode"),
        ];
        for (arguments, expected) in cases {
            let error = values(arguments, b"\xff canary").unwrap_err();
            assert!(error.contains(expected) && !error.contains("canary"), "{error}");
        }
    }
}

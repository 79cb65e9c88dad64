//! Finds which tests are properties: those inside a `proptest!` block. Their names in the output do not say so.

use std::collections::BTreeSet;
use std::path::Path;

/// The names of all properties in the Rust files below `folder`. A file that cannot be read only makes the count by kind
/// coarser.
pub(super) fn names(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    collect(folder, &mut found);
    found
}

fn collect(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            names_in(&std::fs::read_to_string(&path).unwrap_or_default(), found);
        }
    }
}

/// A block begins at a line with `proptest! {` and ends at the brace under the beginning of that line: so the formatter
/// leaves it, and braces inside of strings need not be told from others.
fn names_in(source: &str, found: &mut BTreeSet<String>) {
    let mut end: Option<String> = None;
    for line in source.lines() {
        let text = line.trim_start();
        match &end {
            None if text.starts_with("proptest!") && text.ends_with('{') => {
                let indent = line.len() - text.len();
                end = Some(format!("{}}}", " ".repeat(indent)));
            }
            Some(brace) if line == brace => end = None,
            Some(_) => {
                let name = text.strip_prefix("fn ").and_then(|rest| rest.split('(').next());
                found.extend(name.map(str::to_owned));
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_functions_inside_of_a_block_are_properties() {
        let source = "\
fn before() {}
mod tests {
    proptest! {
        #![proptest_config(a())]
        #[test]
        fn one(text in \"}\") {
            prop_assert!(true);
        }

        #[test]
        fn two(
            number: u8,
        ) {}
    }

    fn after() {}
}
";
        let mut found = BTreeSet::new();
        names_in(source, &mut found);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["one", "two"]);
    }

    #[test]
    fn the_properties_of_this_repository_are_found() {
        let found = names(&crate::repository::root().join("crates"));
        assert!(found.contains("what_was_written_reads_back_the_same"), "{found:?}");
    }
}

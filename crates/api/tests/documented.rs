//! People look reasons up: each one has a row in `docs/troubleshooting.md`, and no row is about one that does not exist.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use ferrvault_api::Reason;

/// The first column of every row that begins with a code span.
fn rows(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect()
}

#[test]
fn every_reason_is_explained_and_no_other() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/troubleshooting.md");
    let text = std::fs::read_to_string(path).unwrap();
    let rows = rows(&text);
    for reason in Reason::ALL {
        let count = rows.iter().filter(|row| **row == reason.as_str()).count();
        assert_eq!(count, 1, "{reason} has {count} rows in docs/troubleshooting.md");
    }
    for row in rows {
        assert!(Reason::parse(row).is_some(), "docs/troubleshooting.md explains {row}, which is no reason");
    }
}

//! Rule 7: a target that is gone, or has lost its version, gets the one it had, where that is certain.

use super::*;

/// A version is named by its place in this list; `A` stands for the content that is wanted, `B` for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    A1,
    B2,
    A3,
    Edited,
    KeyGone,
}
use Name::{A1, A3, B2, Edited, KeyGone};

fn named(name: Name) -> Version {
    match name {
        A1 => version(1, "A"),
        B2 => version(2, "B"),
        A3 => version(3, "A"),
        Edited => Version::parse("edited"),
        KeyGone => of_the_old_key("A"),
    }
}

struct Row {
    case: &'static str,
    last: Option<Name>,
    content: Option<Name>,
    rollouts: &'static [Name],
    marks: &'static [Name],
    /// `None`: a new version.
    expected: Option<Name>,
}

const ROWS: &[Row] = &[
    Row { case: "nothing known", last: None, content: None, rollouts: &[], marks: &[], expected: None },
    Row {
        case: "restarted for it, without a trace of another",
        last: Some(A1),
        content: None,
        rollouts: &[],
        marks: &[],
        expected: Some(A1),
    },
    Row {
        case: "restarted for it, and everything says so",
        last: Some(A1),
        content: Some(A1),
        rollouts: &[A1, A1],
        marks: &[A1, A1],
        expected: Some(A1),
    },
    Row {
        case: "restarted for it, one mark stripped",
        last: Some(A1),
        content: Some(A1),
        rollouts: &[A1, A1],
        marks: &[A1],
        expected: Some(A1),
    },
    Row {
        case: "restarted for another content",
        last: Some(B2),
        content: Some(B2),
        rollouts: &[B2],
        marks: &[B2],
        expected: None,
    },
    Row {
        case: "restarted for it, then another content, known from the last sync",
        last: Some(A1),
        content: Some(B2),
        rollouts: &[],
        marks: &[],
        expected: None,
    },
    Row {
        case: "restarted for it, then for another content, known from a record",
        last: Some(A1),
        content: None,
        rollouts: &[A1, B2],
        marks: &[],
        expected: None,
    },
    Row {
        case: "restarted for it, then for another content, known from a mark",
        last: Some(A1),
        content: Some(A1),
        rollouts: &[A1],
        marks: &[B2],
        expected: None,
    },
    Row {
        case: "restarted for it, then for the same content under another version, known from a mark",
        last: Some(A1),
        content: Some(A1),
        rollouts: &[],
        marks: &[A3],
        expected: Some(A3),
    },
    Row {
        case: "a restart for it is under way",
        last: Some(B2),
        content: Some(A3),
        rollouts: &[B2, B2],
        marks: &[A3, B2],
        expected: Some(A3),
    },
    Row {
        case: "a restart for it is under way and nothing of it recorded",
        last: Some(B2),
        content: Some(B2),
        rollouts: &[B2, B2],
        marks: &[A3, B2],
        expected: Some(A3),
    },
    Row {
        case: "a restart for it is under way, known from a record alone",
        last: Some(B2),
        content: None,
        rollouts: &[A3, B2],
        marks: &[],
        expected: Some(A3),
    },
    Row {
        case: "two stamps that nobody recorded: one of them is not the last",
        last: Some(B2),
        content: Some(B2),
        rollouts: &[],
        marks: &[A1, A3],
        expected: None,
    },
    Row {
        case: "a stamp for another content that nobody recorded",
        last: Some(A1),
        content: Some(A1),
        rollouts: &[A1, A1],
        marks: &[A1, B2],
        expected: None,
    },
    Row {
        case: "a mark that somebody edited",
        last: Some(A1),
        content: Some(A1),
        rollouts: &[A1, A1],
        marks: &[A1, Edited],
        expected: None,
    },
    Row {
        case: "a record that somebody edited",
        last: Some(Edited),
        content: Some(Edited),
        rollouts: &[],
        marks: &[],
        expected: None,
    },
    Row {
        case: "the key is gone: nothing is certain",
        last: Some(KeyGone),
        content: Some(KeyGone),
        rollouts: &[KeyGone],
        marks: &[KeyGone],
        expected: None,
    },
];

#[test]
fn a_deleted_target_comes_back_under_the_version_it_had_or_under_a_new_one() {
    for row in ROWS {
        let records = records_of(row);
        let seen: Vec<Version> = row.marks.iter().copied().map(named).collect();
        let plan = decided(None, "A", &records, &seen);
        let expected = match row.expected {
            Some(name) => (None, Written::Made, named(name), Change::Recreated),
            None => (None, Written::Made, version(NEW, "A"), Change::Created),
        };
        assert_eq!(summary(&plan), expected, "{}", row.case);
    }
}

#[test]
fn a_stripped_annotation_comes_back_where_a_deleted_target_would() {
    for row in ROWS {
        let records = records_of(row);
        let seen: Vec<Version> = row.marks.iter().copied().map(named).collect();
        let plan = decided(Some(&target(None, "A")), "A", &records, &seen);
        let expected = match row.expected {
            Some(name) => (None, Written::Patched, named(name), Change::Repaired),
            None => (None, Written::Patched, version(NEW, "A"), Change::Adopted),
        };
        assert_eq!(summary(&plan), expected, "{}", row.case);
    }
}

#[test]
fn over_other_bytes_no_version_comes_back() {
    for row in ROWS {
        let records = records_of(row);
        let seen: Vec<Version> = row.marks.iter().copied().map(named).collect();
        let plan = decided(Some(&target(None, "B")), "A", &records, &seen);
        let debt = row.last.is_none().then(|| version(NAMING, "B"));
        assert_eq!(summary(&plan), (debt, Written::Patched, version(NEW, "A"), Change::Replaced), "{}", row.case);
    }
}

fn records_of(row: &Row) -> Records {
    Records {
        last_rollout: row.last.map(named),
        content: row.content.map(named),
        rollouts: row.rollouts.iter().copied().map(named).collect(),
    }
}

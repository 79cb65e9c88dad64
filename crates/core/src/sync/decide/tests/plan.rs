//! The plan of every state that a target can be in, with what it holds, what it should hold and what is on record.

use super::*;

#[test]
fn every_state_of_a_target_has_its_plan() {
    type Row<'a> = (&'a str, Option<ObservedTarget>, &'a str, Records, (Option<Version>, Written, Version, Change));
    use Change::{Adopted, Created, Repaired, Replaced, Unchanged};
    use Written::{Made, Nothing, Patched};
    let (a, b, new_a, new_b) = (version(1, "A"), version(2, "B"), version(NEW, "A"), version(NEW, "B"));
    let naming = |value: &str| version(NAMING, value);
    let nothing = Records::default;
    let cases: Vec<Row<'_>> = vec![
        ("nothing there, nothing known", None, "A", nothing(), (None, Made, new_a.clone(), Created)),
        (
            "right",
            Some(target(Some(a.clone()), "A")),
            "A",
            last_rollout(a.clone()),
            (None, Nothing, a.clone(), Unchanged),
        ),
        (
            "right, nothing known",
            Some(target(Some(a.clone()), "A")),
            "A",
            nothing(),
            (None, Nothing, a.clone(), Unchanged),
        ),
        (
            "edited: repaired under its version",
            Some(target(Some(a.clone()), "B")),
            "A",
            last_rollout(a.clone()),
            (None, Patched, a.clone(), Repaired),
        ),
        (
            "changed, a version on record: no debt before it",
            Some(target(Some(a.clone()), "A")),
            "B",
            last_rollout(a.clone()),
            (None, Patched, new_b.clone(), Replaced),
        ),
        (
            "changed, an older version on record: the older debt stays",
            Some(target(Some(b.clone()), "B")),
            "A",
            last_rollout(a.clone()),
            (None, Patched, new_a.clone(), Replaced),
        ),
        (
            "changed, nothing on record: the target's version is the debt",
            Some(target(Some(a.clone()), "A")),
            "B",
            nothing(),
            (Some(a.clone()), Patched, new_b.clone(), Replaced),
        ),
        (
            "edited by hand to what comes next: a change all the same",
            Some(target(Some(a.clone()), "B")),
            "B",
            last_rollout(a.clone()),
            (None, Patched, new_b.clone(), Replaced),
        ),
        (
            "there and back: a version of its own",
            Some(target(Some(b.clone()), "B")),
            "A",
            last_rollout(b.clone()),
            (None, Patched, new_a.clone(), Replaced),
        ),
        (
            "from the Go operator, unchanged, nothing on record",
            Some(target(Some(legacy()), "A")),
            "A",
            nothing(),
            (None, Nothing, legacy(), Unchanged),
        ),
        (
            "from the Go operator, unchanged, restarted",
            Some(target(Some(legacy()), "A")),
            "A",
            last_rollout(legacy()),
            (None, Nothing, legacy(), Unchanged),
        ),
        (
            "from the Go operator, unchanged, in debt",
            Some(target(Some(legacy()), "A")),
            "A",
            last_rollout(Version::parse("0".repeat(64))),
            (None, Nothing, legacy(), Unchanged),
        ),
        (
            "from the Go operator, changed, nothing on record",
            Some(target(Some(legacy()), "A")),
            "B",
            nothing(),
            (Some(legacy()), Patched, new_b.clone(), Replaced),
        ),
        (
            "from the Go operator, changed, restarted",
            Some(target(Some(legacy()), "A")),
            "B",
            last_rollout(legacy()),
            (None, Patched, new_b.clone(), Replaced),
        ),
        (
            "from the Go operator, target gone",
            None,
            "A",
            last_rollout(legacy()),
            (None, Made, legacy(), Change::Recreated),
        ),
        (
            "key lost, unchanged",
            Some(target(Some(of_the_old_key("A")), "A")),
            "A",
            last_rollout(of_the_old_key("A")),
            (None, Nothing, of_the_old_key("A"), Unchanged),
        ),
        (
            "key lost, changed, nothing on record",
            Some(target(Some(of_the_old_key("A")), "A")),
            "B",
            nothing(),
            (Some(of_the_old_key("A")), Patched, new_b.clone(), Replaced),
        ),
        ("key lost, target gone", None, "A", last_rollout(of_the_old_key("A")), (None, Made, new_a.clone(), Created)),
        (
            "handed over with the wanted content",
            Some(target(None, "A")),
            "A",
            nothing(),
            (None, Patched, new_a.clone(), Adopted),
        ),
        (
            "handed over with another content: what pods run on gets a name",
            Some(target(None, "A")),
            "B",
            nothing(),
            (Some(naming("A")), Patched, new_b.clone(), Replaced),
        ),
        (
            "annotation stripped",
            Some(target(None, "A")),
            "A",
            last_rollout(a.clone()),
            (None, Patched, a.clone(), Repaired),
        ),
        (
            "annotation stripped after a change whose restart is owed",
            Some(target(None, "B")),
            "B",
            last_rollout(a.clone()),
            (None, Patched, new_b.clone(), Adopted),
        ),
        (
            "annotation stripped, then changed",
            Some(target(None, "A")),
            "B",
            last_rollout(a.clone()),
            (None, Patched, new_b, Replaced),
        ),
        (
            "annotation stripped and other bytes: a change, whatever fits",
            Some(target(None, "B")),
            "A",
            last_rollout(a.clone()),
            (None, Patched, new_a, Replaced),
        ),
    ];
    for (case, target, wanted, records, expected) in cases {
        let plan = decided(target.as_ref(), wanted, &records, &[]);
        assert_eq!(summary(&plan), expected, "{case}");
    }
}

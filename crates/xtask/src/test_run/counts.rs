//! Counts tests from what `cargo test` writes. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Tests on a real control plane.
pub(super) const END_TO_END: &str = "end to end";
/// Long runs of the simulation.
const SIMULATION: &str = "simulation";
const UNIT: &str = "unit";
const PROPERTY: &str = "property";
const INTEGRATION: &str = "integration";
const DOCUMENTATION: &str = "documentation";

/// How many tests ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) skipped: usize,
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// The counts, by kind of test.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    kinds: BTreeMap<&'static str, Count>,
    reasons: Vec<String>,
    /// What each run of the simulation said in the end.
    simulations: Vec<String>,
}

impl Counts {
    fn of(&mut self, kind: &'static str) -> &mut Count {
        self.kinds.entry(kind).or_default()
    }

    /// Tests of this kind could not be run: that counts as one that failed, because no count may look like success.
    pub(super) fn fail_to_run(&mut self, kind: &'static str) {
        self.of(kind).failed += 1;
    }

    /// Takes over the tests that noted themselves as skipped, one per line. The test program counted them as passed.
    pub(super) fn take_skipped(&mut self, kind: &'static str, notes: &str) {
        for note in notes.lines() {
            self.reasons.push(note.to_owned());
            let count = self.of(kind);
            count.passed = count.passed.saturating_sub(1);
            count.skipped += 1;
        }
    }

    /// Takes over one run of the simulation: what it said in the end, and whether all of it held.
    pub(super) fn take_simulation(&mut self, sum: String, held: bool) {
        let said = if sum.is_empty() { "it ended without a word".to_owned() } else { sum };
        self.simulations.push(said);
        let count = self.of(SIMULATION);
        *(if held { &mut count.passed } else { &mut count.failed }) += 1;
    }

    /// All kinds together.
    pub(super) fn total(&self) -> Count {
        self.kinds.values().fold(Count::default(), |sum, count| Count {
            passed: sum.passed + count.passed,
            failed: sum.failed + count.failed,
            skipped: sum.skipped + count.skipped,
        })
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for reason in &self.reasons {
            writeln!(f, "skipped: {reason}")?;
        }
        for sum in &self.simulations {
            writeln!(f, "simulation: {sum}")?;
        }
        for (kind, count) in &self.kinds {
            writeln!(f, "{kind:<14} {count}")?;
        }
        Ok(())
    }
}

/// Reads the lines of one `cargo test`, in their order.
pub(super) struct Reader<'a> {
    /// The names of the tests that are properties.
    names: &'a BTreeSet<String>,
    /// The one kind of everything that is run, or nothing when it follows from the lines.
    fixed: &'static str,
    /// The kind of the program that runs now; nothing between two programs.
    running: Option<&'static str>,
    /// Of the tests that the running program has named so far: the properties.
    properties: Count,
    any_failed: bool,
}

impl<'a> Reader<'a> {
    /// `fixed` is the kind of all tests; empty, it follows from where a test lives.
    pub(super) fn new(fixed: &'static str, names: &'a BTreeSet<String>) -> Self {
        Self { names, fixed, running: None, properties: Count::default(), any_failed: false }
    }

    /// Takes one line in.
    pub(super) fn read(&mut self, line: &str, counts: &mut Counts) {
        let trimmed = line.trim_start();
        if let Some(program) = trimmed.strip_prefix("Running ").filter(|rest| rest.ends_with(')')) {
            let kind = if program.starts_with("unittests ") { UNIT } else { INTEGRATION };
            self.begin(kind, counts);
        } else if trimmed.starts_with("Doc-tests ") {
            self.begin(DOCUMENTATION, counts);
        } else if let Some(result) = line.strip_prefix("test result: ") {
            self.result(result, counts);
        } else if let Some(test) = line.strip_prefix("test ") {
            self.test(test);
        }
    }

    /// The end of the output. A program without a result has died, and cargo's discontent without any failed test is one
    /// more failure, such as a program that does not compile.
    pub(super) fn end(&mut self, content: bool, counts: &mut Counts) {
        self.program_died(counts);
        if !content && !self.any_failed {
            counts.fail_to_run(if self.fixed.is_empty() { UNIT } else { self.fixed });
        }
    }

    fn begin(&mut self, kind: &'static str, counts: &mut Counts) {
        self.program_died(counts);
        self.running = Some(if self.fixed.is_empty() { kind } else { self.fixed });
        self.properties = Count::default();
    }

    fn program_died(&mut self, counts: &mut Counts) {
        if let Some(kind) = self.running.take() {
            counts.fail_to_run(kind);
            self.any_failed = true;
        }
    }

    /// One test by name. Only properties are counted here; the program's own result is what holds for the sum.
    fn test(&mut self, test: &str) {
        let Some((name, result)) = test.split_once(" ... ") else {
            return;
        };
        let own_name = name.rsplit("::").next().unwrap_or(name);
        if !self.fixed.is_empty() || !self.names.contains(own_name) {
            return;
        }
        match result.split([' ', ',']).next() {
            Some("ok") => self.properties.passed += 1,
            Some("FAILED") => self.properties.failed += 1,
            Some("ignored") => self.properties.skipped += 1,
            _ => {}
        }
    }

    /// The result of a program, such as `ok. 5 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.1s`.
    fn result(&mut self, result: &str, counts: &mut Counts) {
        let number = |what: &str| {
            let parts = result.split(['.', ';']).map(str::trim);
            parts.filter_map(|part| part.strip_suffix(what)).find_map(|text| text.trim().parse().ok()).unwrap_or(0)
        };
        let sum = Count { passed: number("passed"), failed: number("failed"), skipped: number("ignored") };
        self.any_failed |= sum.failed > 0;
        let properties = std::mem::take(&mut self.properties);
        let count = counts.of(self.running.take().unwrap_or(UNIT));
        count.passed += sum.passed.saturating_sub(properties.passed);
        count.failed += sum.failed.saturating_sub(properties.failed);
        count.skipped += sum.skipped.saturating_sub(properties.skipped);
        if properties != Count::default() {
            let count = counts.of(PROPERTY);
            count.passed += properties.passed;
            count.failed += properties.failed;
            count.skipped += properties.skipped;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fixed: &'static str, output: &str, content: bool) -> Counts {
        let mut counts = Counts::default();
        let names = BTreeSet::from(["order_does_not_matter".to_owned()]);
        let mut reader = Reader::new(fixed, &names);
        for line in output.lines() {
            reader.read(line, &mut counts);
        }
        reader.end(content, &mut counts);
        counts
    }

    fn shown(counts: &Counts) -> Vec<String> {
        counts.kinds.iter().map(|(kind, count)| format!("{kind}: {count}")).collect()
    }

    const TWO_PROGRAMS: &str = "\
   Compiling core v0.1.0
     Running unittests src/lib.rs (target/debug/deps/core-0a1b)

running 3 tests
test duration::tests::hours ... ok
test content::tests::order_does_not_matter ... ok
test slow ... ignored, takes an hour

test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s

     Running tests/schema.rs (target/debug/deps/schema-0a1b)

running 2 tests
test one ... ok
test two ... FAILED

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s

   Doc-tests core

running 1 test
test crates/core/src/lib.rs - (line 3) ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.2s
";

    #[test]
    fn tests_are_counted_by_where_they_live() {
        let counts = read("", TWO_PROGRAMS, false);
        assert_eq!(
            shown(&counts),
            [
                "documentation: 1 passed, 0 failed, 0 skipped",
                "integration: 1 passed, 1 failed, 0 skipped",
                "property: 1 passed, 0 failed, 0 skipped",
                "unit: 1 passed, 0 failed, 1 skipped",
            ]
        );
        assert_eq!(counts.total().to_string(), "4 passed, 1 failed, 1 skipped");
    }

    #[test]
    fn a_given_kind_holds_for_all() {
        let counts = read(END_TO_END, TWO_PROGRAMS, false);
        assert_eq!(shown(&counts), ["end to end: 4 passed, 1 failed, 1 skipped"]);
    }

    #[test]
    fn a_program_that_dies_counts_as_a_failure() {
        let died =
            "     Running unittests src/lib.rs (target/debug/deps/core-0a1b)\n\nrunning 3 tests\ntest a ... ok\n";
        assert_eq!(read("", died, false).total().to_string(), "0 passed, 1 failed, 0 skipped");
        let then_another = format!("{died}{TWO_PROGRAMS}");
        assert_eq!(read("", &then_another, false).total().failed, 2);
    }

    #[test]
    fn a_compile_error_never_looks_like_success() {
        assert_eq!(read("", "error[E0308]: mismatched types\n", false).total().failed, 1);
        assert_eq!(read("", "", true).total(), Count::default());
    }

    #[test]
    fn skipped_tests_are_taken_from_those_that_passed() {
        let mut counts = read(END_TO_END, TWO_PROGRAMS, false);
        counts.take_skipped(END_TO_END, "deletion: no kube-controller-manager\n");
        assert_eq!(counts.total().to_string(), "3 passed, 1 failed, 2 skipped");
        assert!(counts.to_string().contains("skipped: deletion: no kube-controller-manager"));
    }

    #[test]
    fn runs_of_the_simulation_say_their_sums_and_count_as_one_each() {
        let mut counts = Counts::default();
        counts.take_simulation("29518 runs, all of them, in 218 s with seed 1: 0 that do not hold".to_owned(), true);
        counts.take_simulation("35 of 36 broken operators caught, 900 runs in 40 s".to_owned(), false);
        counts.take_simulation(String::new(), false);
        assert_eq!(shown(&counts), ["simulation: 1 passed, 2 failed, 0 skipped"]);
        for line in ["simulation: 29518 runs", "simulation: 35 of 36", "simulation: it ended without a word"] {
            assert!(counts.to_string().contains(line), "{counts}");
        }
    }
}

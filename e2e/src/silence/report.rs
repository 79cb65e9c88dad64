//! What was found, as a person reads it: a table, and below it what kubectl printed and what does not hold.

use std::fmt::Write as _;
use std::time::Duration;

use super::classes::Class;
use super::trial::Measured;

/// What came of one class.
pub struct Finding {
    /// Which.
    pub class: Class,
    /// What was measured.
    pub measured: Measured,
    /// What was waited for.
    pub told: Vec<String>,
    /// What kubectl printed.
    pub printed: String,
    /// What does not hold.
    pub problems: Vec<String>,
    /// How long it took in all.
    pub took: Duration,
}

impl Finding {
    /// Whether everything holds.
    pub fn holds(&self) -> bool {
        self.problems.is_empty()
    }

    /// What was seen in one class, at length.
    pub fn story(&self) -> String {
        let mut story = String::new();
        let (class, verdict) = (self.class, if self.holds() { "holds" } else { "DOES NOT HOLD" });
        let _ = writeln!(story, "\n== {} {}: {verdict} ({:.0} s)", class.number, class.name, self.took.as_secs_f64());
        for told in &self.told {
            let _ = writeln!(story, "   {told}");
        }
        for line in self.printed.lines() {
            let _ = writeln!(story, "   | {line}");
        }
        for problem in &self.problems {
            let _ = writeln!(story, "   ! {problem}");
        }
        story
    }
}

/// All of them, a line each.
pub fn table(findings: &[Finding], haste: u32) -> String {
    let mut table =
        String::from("| class | what happens | kubectl | metric | alert true | liveness red | well again |\n");
    table.push_str("|---|---|---|---|---|---|---|\n");
    let cell = |seconds: Option<f64>| seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.0} s"));
    for Finding { class, measured, problems, .. } in findings {
        let Measured { kubectl, metric, alert, red, recovered } = measured;
        let marked = if problems.is_empty() { "" } else { " **does not hold**" };
        let _ = writeln!(
            table,
            "| {} | {}{marked} | {} | {} | {} | {} | {} |",
            class.number,
            class.name,
            cell(*kubectl),
            cell(*metric),
            cell(*alert),
            cell(*red),
            cell(*recovered),
        );
    }
    if haste > 1 {
        let _ = writeln!(table, "\nThresholds of minutes of the operator are divided by {haste}.");
    }
    table
}

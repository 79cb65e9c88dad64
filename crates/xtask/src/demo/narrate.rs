//! How the story reads on a terminal and in a log: headings, commands with what they printed, and what was observed.

use std::time::Duration;

/// A new part of the story.
pub(super) fn heading(text: &str) {
    println!("\n== {text}");
}

/// A sentence.
pub(super) fn line(text: &str) {
    println!("   {text}");
}

/// A command as a person would type it, and what it printed.
pub(super) fn command(typed: &str, printed: &str) {
    println!("   $ {typed}");
    for line in printed.lines() {
        println!("     {line}");
    }
}

/// Something that was seen, and how long that took.
pub(super) fn observed(what: &str, took: Duration) {
    println!("   ok  {what} ({:.1} s)", took.as_secs_f64());
}

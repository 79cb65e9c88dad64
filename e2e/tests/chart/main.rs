//! The chart: what it renders for which values, that it installs under any name, and what its service account may and
//! may not do then, verb by verb, as a real API server judges.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by it")]

mod alerts;
mod installed;
mod rendered;

use xtask::repository;

/// A name and a namespace that the chart's author did not have in mind.
const RELEASE: &str = "secrets-of-team-b";
const HOME: &str = "platform-tools";

fn chart() -> String {
    repository::root().join("charts/ferrvault-operator").display().to_string()
}

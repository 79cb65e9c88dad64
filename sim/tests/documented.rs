//! docs/simulation.md speaks of what there is: every scenario and every broken operator, in their order, and no other.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use ferrvault_sim::{scenario, variants};

/// Names in the first column of the table that begins with this heading.
fn rows<'d>(page: &'d str, heading: &str) -> Vec<&'d str> {
    let table = page.lines().skip_while(|line| !line.starts_with(heading)).skip(2);
    table.map_while(|line| line.strip_prefix("| `")).filter_map(|line| line.split('`').next()).collect()
}

#[test]
fn the_page_names_every_scenario_and_every_broken_operator() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/simulation.md")).unwrap();
    let scenarios: Vec<&str> = scenario::all().iter().map(|scenario| scenario.name).collect();
    assert_eq!(rows(&page, "| scenario |"), scenarios, "cargo xtask sim --singles tells the runs");
    let broken: Vec<&str> = variants().iter().map(|variant| variant.name).collect();
    assert_eq!(rows(&page, "| broken operator |"), broken, "cargo xtask sim --broken tells what caught each");
}

//! What of the simulation belongs to every full run of the tests: each scenario with every single fault, the operators
//! that are broken on purpose, and a sample of the pairs of faults for as long as there is time.
//!
//! The sample is another one every day: its seed is the day, which shuffles the pairs and everything random in them. It is
//! printed, so that a failure can be had again.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Minutes for the sample of pairs: with the rest of the simulation (about 5 min on two cores) well below a tenth of the
/// 90 min that CI has.
const MINUTES_OF_PAIRS: u64 = 3;

/// Where it is written down which pairs a test run did; not where a long run by hand notes its own.
const NOTEBOOK: &str = "target/sim-pairs-of-the-day.txt";

/// The runs of the simulation, each as its arguments.
pub(super) fn runs(now: SystemTime) -> Vec<Vec<String>> {
    let day = day(now).to_string();
    let minutes = MINUTES_OF_PAIRS.to_string();
    let pairs = ["--pairs", "--minutes", &minutes, "--seed", &day, "--notebook", NOTEBOOK];
    [["--singles"].as_slice(), &["--broken"], &pairs]
        .into_iter()
        .map(|args| args.iter().map(|arg| (*arg).to_owned()).collect())
        .collect()
}

/// Days since 1970, in UTC.
fn day(now: SystemTime) -> u64 {
    const DAY: u64 = 24 * 60 * 60;
    now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs() / DAY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_of_pairs_is_another_one_every_day_and_the_rest_is_the_same() {
        let noon = UNIX_EPOCH + Duration::from_hours(36);
        let (today, evening) = (runs(noon), runs(noon + Duration::from_hours(11)));
        let tomorrow = runs(noon + Duration::from_hours(12));
        assert_eq!(today, evening);
        assert_eq!(today[..2], tomorrow[..2]);
        assert_eq!(today[..2], [["--singles"], ["--broken"]]);
        assert!(today[2].join(" ").contains("--seed 1 "), "{:?}", today[2]);
        assert!(tomorrow[2].join(" ").contains("--seed 2 "), "{:?}", tomorrow[2]);
    }
}

//! The ways of stopping, by their numbers in docs/never-silent.md.

mod network;
mod rights;
mod schema;
mod upstream;
mod within;

use std::time::Duration;

use futures::future::LocalBoxFuture;

use super::alerts::Alert;
use super::lab::Lab;
use super::release::Thresholds;
use super::trial::Trial;

/// From the end of a fault until all is well: what is retried is retried every five seconds here, or after a minute by the
/// backoff that has grown meanwhile.
pub(super) const RECOVERY: Duration = Duration::from_secs(90);

/// What is tried for longer than this does not show.
pub(super) const LIMIT: Duration = Duration::from_mins(3);

pub(super) const STUCK: &str = "FerrVaultOperatorReconcileStuck";
pub(super) const STALE: Alert = Alert { name: "FerrVaultSecretStale", cause: "sync" };
pub(super) const ROLLOUT: Alert = Alert { name: "FerrVaultRolloutRestartFailing", cause: "refused" };

pub(super) const fn stuck(cause: &'static str) -> Alert {
    Alert { name: STUCK, cause }
}

/// The label of the controller of resources.
pub(super) const OF_SECRETS: &[(&str, &str)] = &[("controller", "ferrvaultsecret")];

/// One way of stopping.
#[derive(Clone, Copy)]
pub struct Class {
    /// Its number; a letter tells two ways of one class apart.
    pub number: &'static str,
    /// What happens.
    pub name: &'static str,
    /// Whether it concerns everybody on the cluster, so that it needs one of its own.
    pub alone: bool,
    /// Whether it needs the operator with hooks.
    pub hooks: bool,
    /// Makes it happen, looks, undoes it, looks again.
    pub act: for<'l> fn(&'l Lab) -> LocalBoxFuture<'l, Trial<'l>>,
}

impl Class {
    /// The whole number.
    pub fn is(&self, number: &str) -> bool {
        self.number == number || self.number.trim_end_matches(|c: char| c.is_ascii_lowercase()) == number
    }

    /// Which thresholds it is tried with.
    pub fn thresholds(&self, default: bool) -> Thresholds {
        if default { Thresholds::Default } else { Thresholds::Short }
    }
}

macro_rules! class {
    ($number:literal, $name:literal, $act:path) => {
        Class { number: $number, name: $name, alone: false, hooks: false, act: |lab| Box::pin($act(lab)) }
    };
}

/// All of them.
pub fn all() -> Vec<Class> {
    let hooked = |class: Class| Class { hooks: true, ..class };
    let alone = |class: Class| Class { alone: true, ..class };
    vec![
        class!("1", "the right on apps is withdrawn", rights::apps),
        class!("2", "a workload call is never answered", network::workload_call),
        class!("2b", "a workload is patched and the answer kept back", network::workload_answer),
        class!("3", "the API server is black-holed", network::api_server),
        class!("4", "one watch is silently dead", network::one_watch),
        class!("5", "FerrVault is black-holed", upstream::black_hole),
        class!("6", "FerrVault answers 429", upstream::throttled),
        class!("7", "the token is revoked", upstream::revoked),
        hooked(class!("8", "every worker is blocked", within::workers)),
        hooked(class!("8b", "the queue starts nothing", within::queue)),
        hooked(class!("9", "the runtime is blocked", within::runtime)),
        class!("10", "the process is stopped", within::stopped),
        class!("11", "the lease cannot be written", rights::lease),
        alone(class!("12", "a definition is deleted", schema::deleted)),
        alone(class!("13", "an object does not decode", schema::undecodable)),
        class!("14", "status writes are refused", rights::status),
        hooked(class!("15", "the clock jumps forward by an hour", within::clock_forward)),
        hooked(class!("15b", "the clock jumps back by an hour", within::clock_back)),
        class!("16", "the right on secrets is withdrawn", rights::secrets),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_number_stands_for_its_class_and_for_its_other_ways() {
        let chosen = |number: &str| -> Vec<&str> {
            all().iter().filter(|class| class.is(number)).map(|class| class.number).collect()
        };
        assert_eq!(chosen("8"), ["8", "8b"]);
        assert_eq!(chosen("8b"), ["8b"]);
        assert_eq!(chosen("1"), ["1"]);
        assert!(chosen("17").is_empty());
    }

    #[test]
    fn the_page_about_it_has_every_class_and_no_other() {
        let page = std::fs::read_to_string(xtask::repository::root().join("docs/never-silent.md")).unwrap();
        let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | ")).map(|(number, _)| number);
        let told: BTreeSet<&str> = rows.filter(|number| number.starts_with(|c: char| c.is_ascii_digit())).collect();
        let tried = all();
        assert_eq!(told, tried.iter().map(|class| class.number).collect());
    }
}

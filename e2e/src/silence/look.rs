//! What can be seen of an operator from outside at one moment, and everything that was seen of it so far.

use std::time::{Duration, Instant};

use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use xtask::programs::Operator;

use super::alerts::{Alert, Rules, Scrape};
use super::listing::{self, Listing};
use super::page::Page;
use crate::canaries::Canaries;
use crate::scene::Scene;

/// After this long a probe or a scrape has failed: twice what the kubelet waits by default, for a machine that compiles.
const PATIENCE: Duration = Duration::from_secs(2);

/// One moment.
#[derive(Clone, Debug)]
pub struct Look {
    /// When it was over: nothing of it was seen before.
    pub at: Instant,
    /// The page of metrics, if it came.
    pub page: Option<Page>,
    /// What `/healthz` answered, if it did.
    pub health: Option<(u16, String)>,
    /// What `/readyz` answered, if it did.
    pub ready: Option<(u16, String)>,
    /// What `kubectl get fvs` prints, or why it cannot.
    pub listing: Result<Listing, String>,
    /// Reasons of the events of the namespace, each with the name of what it is about.
    pub events: Vec<(String, String)>,
}

impl Look {
    /// Whether liveness is red, and says so in these words.
    pub fn is_red(&self, words: &str) -> bool {
        self.health.as_ref().is_some_and(|(status, says)| *status == 503 && says.contains(words))
    }

    /// Whether the cell of a resource's line says this.
    pub fn says(&self, name: &str, column: &str, text: &str) -> bool {
        self.listing.as_ref().is_ok_and(|lines| lines.get(name).is_some_and(|line| line.cell(column) == text))
    }

    /// Whether the last attempt on a resource is older than this.
    pub fn attempt_is_older(&self, name: &str, seconds: u64) -> bool {
        let age = |lines: &Listing| lines.get(name).and_then(|line| line.age("LastAttempt"));
        self.listing.as_ref().is_ok_and(|lines| age(lines).is_some_and(|age| age > seconds))
    }

    /// Whether there is an event with this reason about this object.
    pub fn has_event(&self, reason: &str, about: &str) -> bool {
        self.events.iter().any(|(found, name)| found == reason && name == about)
    }

    /// A metric of the page.
    pub fn metric(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.page.as_ref()?.most(name, labels)
    }
}

/// Everything that was seen, in order.
pub struct Looks {
    began: Instant,
    unix: f64,
    all: Vec<Look>,
}

impl Default for Looks {
    fn default() -> Self {
        Self { began: Instant::now(), unix: jiff::Timestamp::now().as_duration().as_secs_f64(), all: Vec::new() }
    }
}

impl Looks {
    /// Looks once more.
    pub async fn take(&mut self, operator: &Operator, scene: &Scene) -> &Look {
        let in_time = async |page: &str| tokio::time::timeout(PATIENCE, operator.probe(page)).await.ok()?.ok();
        let scrape = async { tokio::time::timeout(PATIENCE, operator.metrics()).await.ok()?.ok() };
        let client = &scene.cluster.client;
        let (text, health, ready, listing, events) = tokio::join!(
            scrape,
            in_time("healthz"),
            in_time("readyz"),
            listing::list(client, &scene.name),
            events(scene),
        );
        for said in text.iter().chain(health.as_ref().map(|it| &it.1)).chain(ready.as_ref().map(|it| &it.1)) {
            hold_nothing_secret(&scene.cluster.canaries, said);
        }
        let page = text.filter(|text| !text.is_empty()).map(|text| Page::read(&text));
        self.all.push(Look { at: Instant::now(), page, health, ready, listing, events });
        self.all.last().unwrap()
    }

    /// Every look.
    pub fn all(&self) -> &[Look] {
        &self.all
    }

    /// Seconds from `since` until an alert's expression was true for the first time.
    pub fn alert_after(&self, rules: &Rules, alert: Alert, since: Instant) -> Option<f64> {
        let second = |at: Instant| usize::try_from(at.saturating_duration_since(self.began).as_secs()).unwrap();
        let scrapes: Vec<Scrape<'_>> =
            self.all.iter().map(|look| Scrape { second: second(look.at), page: look.page.as_ref() }).collect();
        let from = second(since);
        let first = rules.first_true(alert, &scrapes, self.unix, from)?;
        // A second of promtool's is over when the look of that second was.
        Some(f64::from(u32::try_from(first - from).unwrap()))
    }
}

async fn events(scene: &Scene) -> Vec<(String, String)> {
    let events = scene.api::<Event>().list(&ListParams::default()).await;
    let named = |event: Event| Some((event.reason?, event.regarding?.name?));
    events.map(|events| events.items.into_iter().filter_map(named).collect()).unwrap_or_default()
}

/// Ends the run when something that is told to everybody tells a value or token.
fn hold_nothing_secret(canaries: &Canaries, said: &str) {
    let found = canaries.found_in(said);
    assert!(found.is_none(), "a page of the operator's tells a secret: {}", found.unwrap_or_default());
}

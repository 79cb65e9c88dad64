//! One way of stopping, tried: since when it shows where, what that looks like, and how soon all is well again.

use std::time::{Duration, Instant};

use super::alerts::Alert;
use super::lab::{Lab, WEB, seconds};
use super::look::Look;

/// What is visible by then is visible in time.
pub const BOUND: f64 = 60.0;

/// `--stall-threshold` of the chart, after which liveness turns red, and the grace that the condition `Fresh` gives. Both are
/// divided by the haste of the run; that they come when they should is what is left to check.
const STALL_THRESHOLD: f64 = 15.0 * 60.0;
/// See [`STALL_THRESHOLD`].
const GRACE: f64 = 5.0 * 60.0;

/// What a threshold may seem to be early by: a watch may have been heard up to a period before the fault (45 s, and 10 s for
/// the way), a resource an interval before (5 s).
const EARLY_WATCH: f64 = 55.0;
/// See [`EARLY_WATCH`].
const EARLY_PASS: f64 = 6.0;

/// What it may be late by: the next pass begins an interval later, everybody looks every five seconds, and the machine has
/// other things to do.
const LATE: f64 = 30.0;

/// Between two evaluations of an alert, which cost half a second of a core each.
const ALERT_EVERY: Duration = Duration::from_secs(5);

/// What somebody would see.
pub struct Sign {
    /// In words: `Reason Unreachable`.
    pub told: &'static str,
    judge: Box<dyn Fn(&Look) -> bool>,
}

impl Sign {
    /// A sign that is there when `judge` says so of what was seen.
    pub fn new(told: &'static str, judge: impl Fn(&Look) -> bool + 'static) -> Self {
        Self { told, judge: Box::new(judge) }
    }
}

/// Where a way of stopping is expected to show; nothing: it does not show there, or must not.
#[derive(Default)]
pub struct Signs {
    /// In `kubectl get fvs`, or `kubectl get events`.
    pub kubectl: Option<Sign>,
    /// Whether that needs one of the operator's thresholds of minutes, which are short here: it then counts for nothing
    /// against the bound.
    pub kubectl_waits_for_a_threshold: bool,
    /// In a metric. Never a matter of the operator's thresholds.
    pub metric: Option<Sign>,
    /// In the expression of an alert.
    pub alert: Option<Alert>,
    /// In liveness, which then says this.
    pub red: Option<&'static str>,
}

/// Seconds from the fault to each sign of it.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// See [`Signs`].
    pub kubectl: Option<f64>,
    /// See [`Signs`].
    pub metric: Option<f64>,
    /// See [`Signs`].
    pub alert: Option<f64>,
    /// See [`Signs`].
    pub red: Option<f64>,
    /// From the end of the fault until the value was where it belongs and its workload restarted.
    pub recovered: Option<f64>,
}

/// One try, as it goes.
pub struct Trial<'l> {
    /// Where.
    pub lab: &'l Lab,
    /// What was measured.
    pub measured: Measured,
    /// What was to be seen, in words.
    pub told: Vec<String>,
    /// What kubectl printed when it showed.
    pub printed: String,
    /// What did not hold.
    pub problems: Vec<String>,
    began: Instant,
    may_be_red: bool,
}

impl<'l> Trial<'l> {
    /// To be made at the moment of the fault.
    pub fn begin(lab: &'l Lab) -> Self {
        let began = Instant::now();
        let (measured, told, printed) = (Measured::default(), Vec::new(), String::new());
        Self { lab, measured, told, printed, problems: Vec::new(), began, may_be_red: false }
    }

    /// Something does not hold.
    pub fn fault(&mut self, what: impl Into<String>) {
        self.problems.push(what.into());
    }

    /// Looks until every sign was seen, or `limit` is over since the fault.
    pub async fn watch(&mut self, signs: &Signs, limit: Duration) {
        self.may_be_red = signs.red.is_some();
        let alert = signs.alert.filter(|_| self.lab.rules.can_judge());
        let mut next_alert = self.began;
        let mut every = tokio::time::interval(Duration::from_secs(1));
        loop {
            every.tick().await;
            let (at, kubectl, metric, red) = self
                .lab
                .look(|look| {
                    let seen = |sign: &Option<Sign>| sign.as_ref().is_some_and(|sign| (sign.judge)(look));
                    let red = signs.red.is_some_and(|words| look.is_red(words));
                    (look.at, seen(&signs.kubectl), seen(&signs.metric), red)
                })
                .await;
            let since = seconds(self.began, at);
            let mut showed = false;
            for (seen, measured) in [
                (kubectl, &mut self.measured.kubectl),
                (metric, &mut self.measured.metric),
                (red, &mut self.measured.red),
            ] {
                if seen && measured.is_none() {
                    *measured = Some(since);
                    showed = true;
                }
            }
            if showed && (kubectl || signs.kubectl.is_none()) && self.printed.is_empty() {
                self.printed = self.lab.kubectl(&["get", "fvs", "-o", "wide"]).await;
            }
            let all_but_alert = (signs.kubectl.is_none() || self.measured.kubectl.is_some())
                && (signs.metric.is_none() || self.measured.metric.is_some())
                && (signs.red.is_none() || self.measured.red.is_some());
            let over = self.began.elapsed() >= limit;
            if let Some(alert) = alert
                && self.measured.alert.is_none()
                && (over || (all_but_alert && Instant::now() >= next_alert))
            {
                next_alert = Instant::now() + ALERT_EVERY;
                self.measured.alert = self.lab.seen(|looks| looks.alert_after(&self.lab.rules, alert, self.began));
            }
            if over || (all_but_alert && (alert.is_none() || self.measured.alert.is_some())) {
                break;
            }
        }
        self.judge(signs, alert, limit);
    }

    fn judge(&mut self, signs: &Signs, alert: Option<Alert>, limit: Duration) {
        let Measured { kubectl, metric, alert: alert_true, red, .. } = self.measured.clone();
        let limit = limit.as_secs();
        for (where_, told, seen) in [
            ("kubectl", signs.kubectl.as_ref().map(|sign| sign.told), kubectl),
            ("metric", signs.metric.as_ref().map(|sign| sign.told), metric),
            ("alert", alert.map(|alert| alert.name), alert_true),
            ("liveness", signs.red, red),
        ] {
            let Some(told) = told else { continue };
            let cause = alert.filter(|_| where_ == "alert").map_or(String::new(), |it| format!("/{}", it.cause));
            self.told.push(format!("{where_}: {told}{cause}"));
            if seen.is_none() {
                self.fault(format!("not within {limit} s: {where_}: {told}{cause}"));
            }
        }
        if let (Some(red), haste @ 2..) = (red, self.lab.mode.haste) {
            let threshold = STALL_THRESHOLD / f64::from(haste);
            if red < threshold - EARLY_WATCH || red > threshold + LATE {
                self.fault(format!("liveness turned red after {red:.0} s, where its threshold is {threshold:.0} s"));
            }
        }
        if let (Some(seen), haste @ 2.., true) = (kubectl, self.lab.mode.haste, signs.kubectl_waits_for_a_threshold) {
            let threshold = GRACE / f64::from(haste);
            if seen < threshold - EARLY_PASS || seen > threshold + LATE {
                self.fault(format!("Fresh became False after {seen:.0} s, where its grace is {threshold:.0} s"));
            }
        }
        let counted = kubectl.filter(|_| !signs.kubectl_waits_for_a_threshold).into_iter().chain(metric);
        let first = counted.reduce(f64::min);
        if (signs.kubectl.is_some() || signs.metric.is_some()) && first.is_none_or(|first| first > BOUND) {
            self.fault(format!("neither kubectl nor a metric showed it within {BOUND} s"));
        }
    }

    /// The fault is over since `healed`: waits until the value is where it belongs, and its workload restarted as often as
    /// was due and no more.
    pub async fn recover(&mut self, healed: Instant, within: Duration) {
        let lab = self.lab;
        let resource = lab.own.scene.get(super::lab::SHOP).await;
        let value = lab.value();
        let recovery = async {
            let version = lab.own.scene.target(super::lab::SHOP, &resource, &[("K", value.as_bytes())]).await;
            if lab.restarts() > 0 {
                lab.own.scene.restarted("Deployment", WEB, lab.restarts(), &resource, &version).await;
            }
            seconds(healed, Instant::now())
        };
        let looking = async {
            loop {
                lab.look_on(1).await;
            }
        };
        let took = tokio::select! {
            took = recovery => took,
            () = looking => unreachable!("it goes on"),
        };
        self.measured.recovered = Some(took);
        if took > within.as_secs_f64() {
            self.fault(format!("all was well again only {took:.0} s after the end of the fault"));
        }
    }

    /// What must not have been red was not, and at the end nothing is.
    pub async fn judge_liveness(&mut self) {
        let began = self.began;
        let red = self.lab.seen(|looks| {
            let since = looks.all().iter().filter(|look| look.at >= began);
            since.filter_map(|look| look.health.clone()).find(|(status, _)| *status != 200)
        });
        if let Some((_, says)) = red.filter(|_| !self.may_be_red) {
            self.fault(format!("liveness was red, which cures nothing here: {says}"));
        }
        let now = self.lab.look(|look| look.health.clone()).await;
        if now.as_ref().is_none_or(|(status, _)| *status != 200) {
            self.fault(format!("liveness at the end: {now:?}"));
        }
    }
}

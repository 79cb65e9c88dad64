//! What the operator was told to do, checked: whoever holds [`Settings`] need not ask again whether they make sense.
//!
//! Every refusal names the flag, the value it had and what would be right, in one line, because it is read in the log of
//! a pod that does not start.

mod address;

use std::num::NonZeroUsize;
use std::time::Duration;

use ferrvault_core::duration::{DurationError, GoDuration};
use ferrvault_vault::{AllowedUrl, RetryPolicy};

pub use self::address::{BindAddress, CannotListen};
use crate::args::{Args, LogFormat};
use crate::cluster::watch::Scope;
use crate::ferrvault::OidcLimits;
use crate::leader::LeaseTimes;
use crate::logging::Level;
use crate::queue::Limits;

/// How often a connection is probed. Nothing may be called stalled that merely waits for its next probe.
pub const PROBE_INTERVAL: Duration = Duration::from_mins(10);

/// More passes than this side by side only wait in the API server: at 32 in flight it writes 2,000 Secrets a second on
/// two cores and no more at 64. A thousand leaves room for any cluster and still catches a misplaced digit.
const MOST_CONCURRENT: usize = 1_000;

/// Checked settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where `/metrics` is served.
    pub metrics_address: BindAddress,
    /// Where `/healthz` and `/readyz` are served.
    pub probe_address: BindAddress,
    /// The name of the lease to hold while working; `None` without leader election.
    pub lease: Option<String>,
    /// The times of the election; the defaults without one.
    pub lease_times: LeaseTimes,
    /// For resources without an interval of their own; zero means that nothing is refreshed on a schedule.
    pub default_refresh_interval: Duration,
    /// Which namespaces to work in.
    pub scope: Scope,
    /// How long something may stand still before the process is called stalled.
    pub stall_threshold: Duration,
    /// How long one pass may take.
    pub reconcile_timeout: Duration,
    /// How much is logged.
    pub log_level: Level,
    /// How log lines are written.
    pub log_format: LogFormat,
    /// How many passes run side by side.
    pub limits: Limits,
    /// What the exchange of the operator's identity is held within.
    pub oidc: OidcLimits,
    /// Name of the Secret with the operator's own key.
    pub key_secret: String,
}

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSetting {
    /// Not a duration, or one that makes no sense there.
    #[error("{flag}: {error}")]
    Duration {
        /// The flag.
        flag: &'static str,
        /// What is wrong.
        error: DurationError,
    },
    /// A duration that is not as long as it has to be.
    #[error("{flag}={value} is too short: it has to be {bound} {limit}, {because}")]
    TooShort {
        /// The flag.
        flag: &'static str,
        /// Its value, as given.
        value: String,
        /// `at least` or `more than`.
        bound: &'static str,
        /// The limit, in Go's syntax.
        limit: String,
        /// What the limit is.
        because: &'static str,
    },
    /// Anything else.
    #[error("{flag}={value:?} cannot be used: expected {expected}")]
    Value {
        /// The flag.
        flag: &'static str,
        /// Its value, as given.
        value: String,
        /// What would be right.
        expected: &'static str,
    },
}

impl Settings {
    /// Checks `args`. The longest call that `retry` allows bounds the time of a pass from below.
    pub fn check(args: &Args, retry: &RetryPolicy) -> Result<Self, BadSetting> {
        let reconcile_timeout = at_least(
            ("--reconcile-timeout", &args.reconcile_timeout),
            retry.longest_call(),
            "the longest that one call to FerrVault takes with its retries",
        )?;
        let stall = ("--stall-threshold", &*args.stall_threshold);
        more_than(stall, PROBE_INTERVAL, "the interval at which connections are probed")?;
        let stall_threshold = more_than(stall, reconcile_timeout, "the value of --reconcile-timeout")?;

        Ok(Self {
            metrics_address: BindAddress::parse("--metrics-bind-address", &args.metrics_bind_address)?,
            probe_address: BindAddress::parse("--health-probe-bind-address", &args.health_probe_bind_address)?,
            lease: args.leader_elect.then(|| subdomain("--leader-elect-id", &args.leader_elect_id)).transpose()?,
            lease_times: if args.leader_elect { lease_times(args)? } else { LeaseTimes::default() },
            default_refresh_interval: GoDuration::parse_non_negative(&args.default_refresh_interval)
                .map_err(|error| BadSetting::Duration { flag: "--default-refresh-interval", error })?,
            scope: scope(&args.watch_namespace)?,
            stall_threshold,
            reconcile_timeout,
            log_level: Level::parse(&args.log_level).ok_or_else(|| BadSetting::Value {
                flag: "--log-level",
                value: args.log_level.clone(),
                expected: "error, warn, info, debug, trace, or a number of 1 or more",
            })?,
            log_format: args.log_format,
            limits: Limits::new(concurrency(&args.concurrency)?),
            oidc: OidcLimits {
                token_dir: args.oidc_token_dir.clone().into(),
                origins: args.allow_origin.iter().map(|text| allowed(text)).collect::<Result<_, _>>()?,
            },
            key_secret: subdomain("--key-secret", &args.key_secret)?,
        })
    }
}

type Flag<'a> = (&'static str, &'a str);

fn at_least((flag, value): Flag<'_>, limit: Duration, because: &'static str) -> Result<Duration, BadSetting> {
    long_enough((flag, value), "at least", limit, because, |given| given >= limit)
}

fn more_than((flag, value): Flag<'_>, limit: Duration, because: &'static str) -> Result<Duration, BadSetting> {
    long_enough((flag, value), "more than", limit, because, |given| given > limit)
}

/// A duration below zero is too short, like any other: the message then names the limit instead of the sign.
fn long_enough(
    (flag, value): Flag<'_>,
    bound: &'static str,
    limit: Duration,
    because: &'static str,
    enough: impl Fn(Duration) -> bool,
) -> Result<Duration, BadSetting> {
    let given = GoDuration::parse(value).map_err(|error| BadSetting::Duration { flag, error })?;
    given.to_std().filter(|given| enough(*given)).ok_or_else(|| BadSetting::TooShort {
        flag,
        value: value.to_owned(),
        bound,
        limit: GoDuration::from(limit).to_string(),
        because,
    })
}

fn concurrency(value: &str) -> Result<NonZeroUsize, BadSetting> {
    let number = value.parse().ok().filter(|number: &NonZeroUsize| number.get() <= MOST_CONCURRENT);
    number.ok_or_else(|| BadSetting::Value {
        flag: "--concurrency",
        value: value.to_owned(),
        expected: "a number from 1 to 1000",
    })
}

fn scope(value: &str) -> Result<Scope, BadSetting> {
    // A name has at most 63 characters and no dot; a list of namespaces is the mistake to expect.
    if value.is_empty() || (value.len() <= 63 && is_label(value)) {
        return Ok(Scope::new(value));
    }
    Err(BadSetting::Value {
        flag: "--watch-namespace",
        value: value.to_owned(),
        expected: "the name of one namespace, or nothing for all",
    })
}

fn allowed(value: &str) -> Result<AllowedUrl, BadSetting> {
    AllowedUrl::parse(value).map_err(|_| BadSetting::Value {
        flag: "--allow-origin",
        value: value.to_owned(),
        expected: "scheme and host, as in https://vault.example.com, with a plain path behind them if need be",
    })
}

/// Times under which one replica leads at a time, each refused by what it contradicts.
fn lease_times(args: &Args) -> Result<LeaseTimes, BadSetting> {
    let retry_period = at_least(
        ("--leader-elect-retry-period", &args.leader_elect_retry_period),
        LeaseTimes::SHORTEST_PERIOD,
        "or a leader would do little but renew",
    )?;
    let renew_deadline = at_least(
        ("--leader-elect-renew-deadline", &args.leader_elect_renew_deadline),
        LeaseTimes::with_gap(retry_period),
        "--leader-elect-retry-period and a tenth of it, at least 1s, on top",
    )?;
    let flag = "--leader-elect-lease-duration";
    let value = &*args.leader_elect_lease_duration;
    let duration = at_least(
        (flag, value),
        LeaseTimes::with_gap(renew_deadline),
        "--leader-elect-renew-deadline and a tenth of it, at least 1s, on top",
    )?;
    if duration.subsec_nanos() > 0 || duration > LeaseTimes::LONGEST {
        let expected = "whole seconds, and one hour at most: so long nobody works after a leader was killed";
        return Err(BadSetting::Value { flag, value: value.to_owned(), expected });
    }
    Ok(LeaseTimes { duration, renew_deadline, retry_period })
}

/// The name of an object: what Kubernetes calls a DNS subdomain.
fn subdomain(flag: &'static str, value: &str) -> Result<String, BadSetting> {
    if value.len() <= 253 && value.split('.').all(is_label) {
        return Ok(value.to_owned());
    }
    Err(BadSetting::Value {
        flag,
        value: value.to_owned(),
        expected: "the name of an object: lower-case letters, digits, - and ., at most 253 of them",
    })
}

fn is_label(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.chars().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

#[cfg(test)]
mod tests;

//! What is accepted, and the exact line that refuses the rest.

use std::ffi::OsString;

use super::*;

fn check(flags: &[&str]) -> Result<Settings, String> {
    let line = std::iter::once("ferrvault-operator").chain(flags.iter().copied()).map(OsString::from);
    let args = Args::read(line).unwrap();
    Settings::check(&args, &RetryPolicy::default()).map_err(|error| error.to_string())
}

#[test]
fn the_defaults_are_accepted() {
    let settings = check(&[]).unwrap();
    assert_eq!(settings.reconcile_timeout, Duration::from_mins(2));
    assert_eq!(settings.stall_threshold, Duration::from_mins(15));
    assert_eq!(settings.default_refresh_interval, Duration::from_hours(1));
    assert_eq!(settings.limits.permits(), 32);
    assert_eq!((settings.lease, settings.scope), (None, Scope::Cluster));
    assert!(settings.oidc.origins.is_empty(), "by default the operator's identity goes nowhere");
}

#[test]
fn limits_are_exact() {
    for accepted in [
        &["--reconcile-timeout=30.625s"][..],
        &["--stall-threshold=10m1ns"],
        &["--stall-threshold=20m1s", "--reconcile-timeout=20m"],
        &["--default-refresh-interval=0s"],
        &["--concurrency=1"],
        &["--concurrency=1000"],
    ] {
        assert!(check(accepted).is_ok(), "{accepted:?}");
    }
}

#[test]
fn refusals_name_flag_value_and_limit() {
    let too_short_for_a_call = |value: &str| {
        format!(
            "--reconcile-timeout={value} is too short: it has to be at least 30.625s, the longest that one call to \
             FerrVault takes with its retries"
        )
    };
    let not_one_namespace = |value: &str| {
        format!("--watch-namespace={value:?} cannot be used: expected the name of one namespace, or nothing for all")
    };
    for (args, message) in [
        (&["--reconcile-timeout=30.624s"][..], too_short_for_a_call("30.624s")),
        (&["--reconcile-timeout=0"], too_short_for_a_call("0")),
        (&["--reconcile-timeout=-2m"], too_short_for_a_call("-2m")),
        (
            &["--stall-threshold=10m"],
            "--stall-threshold=10m is too short: it has to be more than 10m0s, the interval at which connections are \
             probed"
                .to_owned(),
        ),
        (
            &["--stall-threshold=20m", "--reconcile-timeout=20m"],
            "--stall-threshold=20m is too short: it has to be more than 20m0s, the value of --reconcile-timeout".to_owned(),
        ),
        (&["--watch-namespace=a,b"], not_one_namespace("a,b")),
        (&["--watch-namespace=Shop"], not_one_namespace("Shop")),
        (
            &["--concurrency=0"],
            "--concurrency=\"0\" cannot be used: expected a number from 1 to 1000".to_owned(),
        ),
        (
            &["--log-level=loud"],
            "--log-level=\"loud\" cannot be used: expected error, warn, info, debug, trace, or a number of 1 or more"
                .to_owned(),
        ),
        (
            &["--key-secret=-key"],
            "--key-secret=\"-key\" cannot be used: expected the name of an object: lower-case letters, digits, - and ., \
             at most 253 of them"
                .to_owned(),
        ),
    ] {
        assert_eq!(check(args).unwrap_err(), message, "{args:?}");
    }
}

#[test]
fn durations_that_are_none_are_refused_by_flag_and_value() {
    for flag in ["--reconcile-timeout", "--stall-threshold", "--default-refresh-interval"] {
        for value in ["", "abc", "10", "1d"] {
            let message = check(&[&format!("{flag}={value}")]).unwrap_err();
            assert!(message.starts_with(flag) && message.contains(&format!("{value:?}")), "{message}");
        }
    }
    let message = check(&["--default-refresh-interval=-1s"]).unwrap_err();
    assert!(message.starts_with("--default-refresh-interval") && message.contains("\"-1s\""), "{message}");
}

#[test]
fn zero_turns_scheduled_refresh_off() {
    assert_eq!(check(&["--default-refresh-interval=0s"]).unwrap().default_refresh_interval, Duration::ZERO);
}

#[test]
fn origins_may_have_a_path_that_everybody_reads_alike() {
    let settings =
        check(&["--allow-origin=HTTPS://Vault.Example.com:443/", "--allow-origin=https://v.example.com/team-a"]);
    let entries = settings.unwrap().oidc.origins;
    let covered = |url: &str| {
        let endpoint = ferrvault_vault::Endpoint::parse(url).unwrap();
        entries.iter().any(|entry| entry.covers(&endpoint))
    };
    assert!(covered("https://vault.example.com/any") && covered("https://v.example.com/team-a/b"));
    assert!(!covered("https://v.example.com/team-b"));
    for wrong in ["vault.example.com", "ftp://vault.example.com", "", "https://v.example.com/a/..", "https://a/b%2Fc"] {
        let message = check(&[&format!("--allow-origin={wrong}")]).unwrap_err();
        assert!(message.starts_with(&format!("--allow-origin={wrong:?} cannot be used: ")), "{message}");
    }
}

#[test]
fn lease_times_are_taken_or_refused_by_what_they_contradict() {
    let with = |duration: &str, deadline: &str, period: &str| {
        check(&[
            "--leader-elect",
            &format!("--leader-elect-lease-duration={duration}"),
            &format!("--leader-elect-renew-deadline={deadline}"),
            &format!("--leader-elect-retry-period={period}"),
        ])
    };
    assert_eq!(check(&["--leader-elect"]).unwrap().lease_times, LeaseTimes::default());
    let times = with("1m", "40s", "2500ms").unwrap().lease_times;
    let expected = [Duration::from_mins(1), Duration::from_secs(40), Duration::from_millis(2_500)];
    assert_eq!([times.duration, times.renew_deadline, times.retry_period], expected);
    for (duration, deadline, period, refused) in [
        (
            "10s",
            "10s",
            "5s",
            "--leader-elect-lease-duration=10s is too short: it has to be at least 11s, --leader-elect-renew-deadline and a \
             tenth of it, at least 1s, on top",
        ),
        (
            "11s",
            "10s1ms",
            "5s",
            "--leader-elect-lease-duration=11s is too short: it has to be at least 11.0011s, --leader-elect-renew-deadline \
             and a tenth of it, at least 1s, on top",
        ),
        (
            "65s",
            "1m",
            "5s",
            "--leader-elect-lease-duration=65s is too short: it has to be at least 1m6s, --leader-elect-renew-deadline and \
             a tenth of it, at least 1s, on top",
        ),
        (
            "15s",
            "5999ms",
            "5s",
            "--leader-elect-renew-deadline=5999ms is too short: it has to be at least 6s, --leader-elect-retry-period and \
             a tenth of it, at least 1s, on top",
        ),
        (
            "15s",
            "5s",
            "5s",
            "--leader-elect-renew-deadline=5s is too short: it has to be at least 6s, --leader-elect-retry-period and a \
             tenth of it, at least 1s, on top",
        ),
        (
            "15s",
            "10s",
            "0s",
            "--leader-elect-retry-period=0s is too short: it has to be at least 100ms, or a leader would do little but renew",
        ),
        (
            "15s",
            "10s",
            "-5s",
            "--leader-elect-retry-period=-5s is too short: it has to be at least 100ms, or a leader would do little but renew",
        ),
        (
            "15500ms",
            "10s",
            "5s",
            "--leader-elect-lease-duration=\"15500ms\" cannot be used: expected whole seconds, and one hour at most: so \
             long nobody works after a leader was killed",
        ),
        (
            "2h",
            "10s",
            "5s",
            "--leader-elect-lease-duration=\"2h\" cannot be used: expected whole seconds, and one hour at most: so long \
             nobody works after a leader was killed",
        ),
    ] {
        assert_eq!(with(duration, deadline, period).unwrap_err(), refused);
    }
    for (duration, deadline, period) in [("11s", "10s", "9s"), ("66s", "1m", "5s"), ("3s", "2s", "100ms")] {
        assert!(with(duration, deadline, period).is_ok(), "{duration} {deadline} {period}: the limits are exact");
    }
    // Who does not elect need not care.
    assert!(check(&["--leader-elect-lease-duration=soon"]).is_ok());
}

#[test]
fn one_namespace_is_a_scope() {
    let scope = check(&["--watch-namespace=shop"]).unwrap().scope;
    assert_eq!(scope, Scope::Namespace("shop".to_owned()));
}

#[test]
fn the_lease_is_named_only_with_leader_election() {
    assert_eq!(check(&["--leader-elect-id=Not A Name"]).unwrap().lease, None);
    assert_eq!(check(&["--leader-elect"]).unwrap().lease.as_deref(), Some("ferrvault-operator.ferrvault.com"));
    assert!(check(&["--leader-elect", "--leader-elect-id=Not A Name"]).is_err());
}

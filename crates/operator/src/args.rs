//! The command line, as the Go operator had it: same flags, same spellings, same leniency.
//!
//! Go's `flag` package takes `-flag` for `--flag`, `--bool` for `--bool=true`, the last of several, and any text after a
//! flag as its value. All of that is accepted here, because live manifests use it. Nothing is judged: see
//! [`crate::settings`].

use std::ffi::OsString;

use clap::{Parser, ValueEnum};

/// What `--help` ends with.
const AFTER_HELP: &str = "\
Durations are written as in Go: 30s, 15m, 1h30m. An address is HOST:PORT, :PORT for all interfaces, or 0 for none.

Outside a cluster the operator uses the kubeconfig that KUBECONFIG names:
  KUBECONFIG=~/.kube/config ferrvault-operator --watch-namespace=shop --log-format=text

Its own namespace, where the lease and the operator key are kept, is POD_NAMESPACE; without it, that of the service
account or of the kubeconfig.";

/// The command line.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "ferrvault-operator",
    version,
    about = "Keeps Kubernetes Secrets equal to what FerrVault holds, and restarts what uses them when they change.",
    after_help = AFTER_HELP,
    args_override_self = true
)]
pub struct Args {
    /// Where /metrics is served.
    #[arg(long, value_name = "ADDRESS", default_value = ":8080", allow_hyphen_values = true)]
    pub metrics_bind_address: String,

    /// Where /healthz and /readyz are served.
    #[arg(long, value_name = "ADDRESS", default_value = ":8081", allow_hyphen_values = true)]
    pub health_probe_bind_address: String,

    /// Work only while holding the lease, so that several replicas can stand by for each other.
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        default_value = "false",
        hide_default_value = true,
        value_parser = go_bool
    )]
    pub leader_elect: bool,

    /// Name of the lease. Two operators with one name in one namespace take turns.
    #[arg(long, value_name = "NAME", default_value = "ferrvault-operator.ferrvault.com", allow_hyphen_values = true)]
    pub leader_elect_id: String,

    /// How long the others wait for a leader that shows no sign before one of them takes over. Whole seconds, more than
    /// --leader-elect-renew-deadline. A killed leader is replaced within this and about 2s.
    #[arg(long, value_name = "DURATION", default_value = "15s", allow_hyphen_values = true)]
    pub leader_elect_lease_duration: String,

    /// How long a leader goes on without having renewed its lease before it stops working and stands by. More than
    /// --leader-elect-retry-period; the rest of the period is what a renewal may take.
    #[arg(long, value_name = "DURATION", default_value = "10s", allow_hyphen_values = true)]
    pub leader_elect_renew_deadline: String,

    /// How often a leader renews its lease: one write each time, 12 a minute by default.
    #[arg(long, value_name = "DURATION", default_value = "5s", allow_hyphen_values = true)]
    pub leader_elect_retry_period: String,

    /// How often a resource without spec.refreshInterval is read from FerrVault; 0s for only when it changes.
    #[arg(long, value_name = "DURATION", default_value = "1h", allow_hyphen_values = true)]
    pub default_refresh_interval: String,

    /// The one namespace to work in. Empty for all.
    #[arg(long, value_name = "NAMESPACE", default_value = "", hide_default_value = true, allow_hyphen_values = true)]
    pub watch_namespace: String,

    /// How long watches, queue or process may stand still before /healthz turns red.
    #[arg(long, value_name = "DURATION", default_value = "15m", allow_hyphen_values = true)]
    pub stall_threshold: String,

    /// How long one pass over a resource may take. A pass that takes longer is cut off and tried again.
    #[arg(long, value_name = "DURATION", default_value = "2m", allow_hyphen_values = true)]
    pub reconcile_timeout: String,

    /// How much is logged: error, warn, info, debug or trace; 1 is debug, higher numbers are trace.
    #[arg(
        long,
        visible_alias = "zap-log-level",
        value_name = "LEVEL",
        default_value = "info",
        allow_hyphen_values = true
    )]
    pub log_level: String,

    /// How log lines are written.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,

    /// How many passes run side by side. A pass that waits for more than a second no longer counts.
    #[arg(long, value_name = "NUMBER", default_value = "32", allow_hyphen_values = true)]
    pub concurrency: String,

    /// Where the operator's own identity may be sent (spec.oidc): scheme and host of FerrVault, with a path if only what
    /// is below it is meant. May be given several times; without it, nowhere. With it, tokens are sent nowhere else either.
    #[arg(long, value_name = "URL", allow_hyphen_values = true)]
    pub allow_origin: Vec<String>,

    /// The directory that spec.oidc.tokenPath has to be in.
    #[arg(long, value_name = "DIRECTORY", default_value = "/var/run/secrets/ferrvault", allow_hyphen_values = true)]
    pub oidc_token_dir: String,

    /// Name of the Secret with the operator's own key, in the operator's namespace. Made when it is not there.
    #[arg(long, value_name = "NAME", default_value = "ferrvault-operator-key", allow_hyphen_values = true)]
    pub key_secret: String,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people: time, level, message, fields.
    Text,
    /// One JSON object per line.
    Json,
}

impl Args {
    /// Reads `argv`, the name of the program first. An error is clap's, with its text and exit status.
    pub fn read(argv: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut literal = false;
        let argv = argv.into_iter().enumerate().map(|(position, arg)| {
            literal |= arg == "--";
            if position == 0 || literal { arg } else { with_two_dashes(arg) }
        });
        Self::try_parse_from(argv)
    }
}

/// `-flag` as `--flag`: a dash and a word. `-1s` is a value, and a single letter is a short flag.
fn with_two_dashes(arg: OsString) -> OsString {
    let Some(flag) = arg.to_str().and_then(|text| text.strip_prefix('-')) else { return arg };
    let word = flag.len() > 1 && flag.starts_with(|first: char| first.is_ascii_alphabetic());
    if word { format!("--{flag}").into() } else { arg }
}

/// The spellings of Go's `strconv.ParseBool`.
fn go_bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("expected true or false".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn read(args: &[&str]) -> Result<Args, clap::Error> {
        Args::read(std::iter::once("ferrvault-operator").chain(args.iter().copied()).map(OsString::from))
    }

    #[test]
    fn the_command_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn without_flags_the_defaults_are_those_of_the_go_operator() {
        let args = read(&[]).unwrap();
        assert_eq!(args.metrics_bind_address, ":8080");
        assert_eq!(args.health_probe_bind_address, ":8081");
        assert!(!args.leader_elect);
        assert_eq!(args.leader_elect_id, "ferrvault-operator.ferrvault.com");
        assert_eq!(args.default_refresh_interval, "1h");
        assert_eq!(args.watch_namespace, "");
        assert_eq!(args.stall_threshold, "15m");
        assert_eq!(args.reconcile_timeout, "2m");
        assert_eq!(args.log_level, "info");
        assert_eq!(args.key_secret, "ferrvault-operator-key");
        assert_eq!(args.leader_elect_lease_duration, "15s");
        assert_eq!(args.leader_elect_renew_deadline, "10s");
        assert_eq!(args.leader_elect_retry_period, "5s");
    }

    #[test]
    fn booleans_are_read_as_go_reads_them() {
        for (text, expected) in [
            ("--leader-elect", true),
            ("-leader-elect", true),
            ("--leader-elect=true", true),
            ("--leader-elect=T", true),
            ("-leader-elect=1", true),
            ("--leader-elect=false", false),
            ("-leader-elect=False", false),
            ("--leader-elect=0", false),
        ] {
            assert_eq!(read(&[text]).unwrap().leader_elect, expected, "{text}");
        }
        assert!(read(&["--leader-elect=yes"]).unwrap_err().to_string().contains("expected true or false"));
    }

    #[test]
    fn one_dash_is_as_good_as_two() {
        let args = read(&["-stall-threshold", "20m", "-zap-log-level=debug", "--reconcile-timeout=3m"]).unwrap();
        assert_eq!((&*args.stall_threshold, &*args.log_level, &*args.reconcile_timeout), ("20m", "debug", "3m"));
    }

    #[test]
    fn a_value_may_begin_with_a_dash_and_is_not_taken_for_a_flag() {
        let args = read(&["--reconcile-timeout", "-1s", "-stall-threshold=-5m"]).unwrap();
        assert_eq!((&*args.reconcile_timeout, &*args.stall_threshold), ("-1s", "-5m"));
    }

    #[test]
    fn the_last_of_several_counts_under_either_name() {
        let args =
            read(&["--log-level=info", "--zap-log-level=debug", "--leader-elect", "--leader-elect=false"]).unwrap();
        assert_eq!((&*args.log_level, args.leader_elect), ("debug", false));
    }

    #[test]
    fn origins_add_up() {
        let args = read(&["--allow-origin=https://a", "-allow-origin", "https://b"]).unwrap();
        assert_eq!(args.allow_origin, ["https://a", "https://b"]);
    }

    #[test]
    fn a_flag_that_the_chart_renders_empty_is_taken() {
        assert_eq!(read(&["--watch-namespace="]).unwrap().watch_namespace, "");
    }

    #[test]
    fn what_nobody_knows_is_refused_by_name_with_status_2() {
        for (unknown, named) in
            [("--refresh", "'--refresh'"), ("-refresh=1", "'--refresh'"), ("shop", "'shop'"), ("-x", "'-x'")]
        {
            let error = read(&[unknown]).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(named), "{error}");
        }
    }

    #[test]
    fn help_names_every_flag_and_what_a_duration_looks_like() {
        let error = read(&["-help"]).unwrap_err();
        assert_eq!(error.exit_code(), 0);
        let help = error.to_string();
        let command = Args::command();
        for flag in command.get_arguments().filter_map(clap::Arg::get_long_and_visible_aliases).flatten() {
            assert!(help.contains(&format!("--{flag}")), "{flag}");
        }
        assert!(help.contains("1h30m"));
    }

    #[test]
    fn the_version_is_that_of_the_package() {
        let error = read(&["--version"]).unwrap_err();
        assert_eq!(error.to_string(), format!("ferrvault-operator {}\n", env!("CARGO_PKG_VERSION")));
    }
}

//! Log lines: how much, in which shape, and what must never be in them.
//!
//! They go to standard error, as those of the Go operator did; standard output is for what somebody asked to see
//! (`--help`, `--version`). Two things could carry a value into a line and are closed here (invariant I8): the client
//! library, which logs whole answers that it cannot decode, and panics, whose messages may quote anything.

use std::io::IsTerminal;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

use crate::args::LogFormat;

/// The crates that speak for the operator, and alone say more when more is asked for. Others stay at `info`: what they
/// tell at `debug` is about bytes and headers.
const OURS: [&str; 4] = ["ferrvault_operator", "ferrvault_core", "ferrvault_vault", "ferrvault_api"];

/// Logs at `warn` the whole body of an answer that it cannot decode, which may be a Secret: only its errors are let through.
const LOGS_BODIES: &str = "kube_client::client";

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level(LevelFilter);

impl Level {
    /// Reads a name, or a verbosity as zap counts it: 1 is debug, and there is nothing above it but trace.
    pub fn parse(text: &str) -> Option<Self> {
        let level = match text.to_ascii_lowercase().as_str() {
            "error" | "dpanic" | "panic" | "fatal" => LevelFilter::ERROR,
            "warn" | "warning" => LevelFilter::WARN,
            "info" => LevelFilter::INFO,
            "debug" => LevelFilter::DEBUG,
            "trace" => LevelFilter::TRACE,
            number => match number.parse::<u8>().ok()? {
                0 => return None,
                1 => LevelFilter::DEBUG,
                _ => LevelFilter::TRACE,
            },
        };
        Some(Self(level))
    }
}

/// What is let through at `level`.
fn targets(level: Level) -> Targets {
    let others = level.0.min(LevelFilter::INFO);
    Targets::new()
        .with_default(others)
        .with_targets(OURS.map(|target| (target, level.0)))
        .with_target(LOGS_BODIES, LevelFilter::ERROR)
}

/// Starts logging for the whole process, panics included. The first call counts.
pub fn start(level: Level, format: LogFormat) {
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_span_events(FmtSpan::NONE);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).with_span_list(true).boxed(),
    };
    // Only a second call fails, and then the first has done the work.
    let _ = tracing_subscriber::registry().with(lines.with_filter(targets(level))).try_init();
    std::panic::set_hook(Box::new(log_panic));
}

/// Says where a panic happened and in which thread, and not what it said.
fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current();
    tracing::error!(place, thread = thread.name().unwrap_or("unnamed"), "panicked");
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::panic::catch_unwind;
    use std::sync::{Arc, Mutex};

    use tracing::Level as Event;

    use super::*;

    /// Log lines kept in memory.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_panic_is_logged_with_its_place_and_without_its_message() {
        let lines = Lines::default();
        let kept = lines.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || kept.clone()).with_ansi(false).finish();
        // The hook is the whole process's, and other tests panic on purpose: theirs go where they went before.
        let (here, before) = (std::thread::current().id(), std::panic::take_hook());
        std::panic::set_hook(Box::new(move |panic| {
            if std::thread::current().id() == here { log_panic(panic) } else { before(panic) }
        }));
        let caught = tracing::subscriber::with_default(subscriber, || catch_unwind(|| panic!("password is hunter2")));
        let _ = std::panic::take_hook();
        assert!(caught.is_err());
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        assert!(text.contains("panicked") && text.contains("logging.rs:"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }

    #[test]
    fn levels_are_read_by_name_and_by_zaps_numbers() {
        for (text, expected) in [
            ("error", Some(LevelFilter::ERROR)),
            ("panic", Some(LevelFilter::ERROR)),
            ("warn", Some(LevelFilter::WARN)),
            ("INFO", Some(LevelFilter::INFO)),
            ("debug", Some(LevelFilter::DEBUG)),
            ("1", Some(LevelFilter::DEBUG)),
            ("2", Some(LevelFilter::TRACE)),
            ("10", Some(LevelFilter::TRACE)),
            ("0", None),
            ("-1", None),
            ("", None),
            ("off", None),
        ] {
            assert_eq!(Level::parse(text), expected.map(Level), "{text:?}");
        }
    }

    #[test]
    fn the_client_library_never_logs_a_body_whatever_the_level() {
        for level in ["error", "info", "debug", "9"] {
            let targets = targets(Level::parse(level).unwrap());
            for below in [Event::WARN, Event::INFO, Event::DEBUG, Event::TRACE] {
                assert!(!targets.would_enable("kube_client::client", &below), "{level}: {below}");
                assert!(!targets.would_enable("kube_client::client::builder", &below), "{level}: {below}");
            }
            assert!(targets.would_enable("kube_client::client", &Event::ERROR), "{level}");
        }
    }

    #[test]
    fn only_our_own_crates_say_more_when_asked() {
        let debug = targets(Level::parse("debug").unwrap());
        assert!(debug.would_enable("ferrvault_operator::queue", &Event::DEBUG));
        assert!(!debug.would_enable("ferrvault_operator::queue", &Event::TRACE));
        assert!(!debug.would_enable("hyper::proto", &Event::DEBUG));
        assert!(debug.would_enable("kube_runtime::watcher", &Event::INFO));
    }

    #[test]
    fn less_is_less_for_everybody() {
        let error = targets(Level::parse("error").unwrap());
        assert!(!error.would_enable("ferrvault_operator", &Event::WARN));
        assert!(!error.would_enable("kube_runtime::watcher", &Event::WARN));
    }
}

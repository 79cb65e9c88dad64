//! The operator process. Status 0: asked to stop, and did. 1: could not go on. 2: settings that cannot be used.

use std::env;
use std::fmt::Display;
use std::process::ExitCode;
use std::time::Duration;

use ferrvault_operator::admin::Sockets;
use ferrvault_operator::args::Args;
use ferrvault_operator::settings::Settings;
use ferrvault_operator::{hardening, logging, runtime};
use ferrvault_vault::RetryPolicy;

/// For calls on threads that cannot be cut off, as looking up a host name: nobody waits for their answer any more.
const ABANDON: Duration = Duration::from_millis(100);

pub(crate) fn main() -> ExitCode {
    let args = match Args::read(env::args_os()) {
        Ok(args) => args,
        Err(error) => error.exit(),
    };
    let settings = match Settings::check(&args, &RetryPolicy::default()) {
        Ok(settings) => settings,
        Err(error) => {
            eprintln!("ferrvault-operator: {error}");
            return ExitCode::from(2);
        }
    };
    logging::start(settings.log_level, settings.log_format);
    if let Err(error) = hardening::forbid_memory_images() {
        tracing::warn!(%error, "the system may write the memory of this process to a file when it dies");
    }
    // Fails only if there is a provider already, and it is the only one in the tree.
    let _ = rustls::crypto::ring::default_provider().install_default();

    let sockets = match Sockets::bind(&settings.metrics_address, &settings.probe_address) {
        Ok(sockets) => sockets,
        Err(error) => return failed(&error),
    };
    // Two at least: under a limit of half a processor there would be one, and one long computation would stop everything.
    let workers = std::thread::available_parallelism().map_or(2, |found| found.get().max(2));
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    let end = runtime.block_on(runtime::run(settings, sockets));
    runtime.shutdown_timeout(ABANDON);
    match end {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(error: &dyn Display) -> ExitCode {
    tracing::error!(%error, "cannot go on");
    ExitCode::FAILURE
}

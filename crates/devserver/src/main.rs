//! `ferrvault-dev`: the dev server and its client verbs.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use ferrvault_devserver::cli::{Cli, CliError};
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    // Standard output belongs to what the verbs print.
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_env_filter(EnvFilter::try_from_env("FERRVAULT_DEV_LOG").unwrap_or_else(|_| EnvFilter::new("warn")))
        .init();
    let mut out = std::io::stdout();
    let result = cli.run(&mut out).await.and_then(|()| Ok(out.flush()?));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads the output has seen enough, as `head` does.
        Err(CliError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            // If even this cannot be written, the exit code still says it.
            let _ = writeln!(std::io::stderr(), "ferrvault-dev: {error}");
            ExitCode::FAILURE
        }
    }
}

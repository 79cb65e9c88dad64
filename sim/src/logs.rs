//! I8, for logs: everything that this thread logs during a run is searched for values and tokens.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::check::gives_away;

/// Ours in full, the client library's as far as anybody would turn it on.
const LEVELS: &str = "info,ferrvault_operator=trace,ferrvault_core=trace,ferrvault_vault=trace,kube=debug";

/// Listens to the logs of this thread from its beginning to its end.
pub(crate) struct Listener {
    leaks: Leaks,
    _guard: tracing::subscriber::DefaultGuard,
}

#[derive(Clone, Default)]
struct Leaks(Arc<Mutex<Vec<String>>>);

impl Listener {
    pub(crate) fn begin() -> Self {
        let leaks = Leaks::default();
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::new(LEVELS))
            .with_ansi(false)
            .without_time()
            .with_writer(leaks.clone())
            .finish();
        Self { leaks, _guard: tracing::subscriber::set_default(subscriber) }
    }

    /// The lines that gave something away.
    pub(crate) fn end(self) -> Vec<String> {
        self.leaks.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl io::Write for Leaks {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        if gives_away(&text) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text.into_owned());
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Leaks {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_a_value_is_noticed_and_no_other() {
        let listener = Listener::begin();
        tracing::info!("all is well");
        tracing::warn!(value = "canary-PASSWORD-A", "something is wrong");
        let leaks = listener.end();
        assert_eq!(leaks.len(), 1, "{leaks:?}");
    }
}

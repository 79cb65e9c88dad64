//! The project's own two programs as processes of this machine: the dev server, and the operator as the chart's
//! Deployment would run it. For the demo and for the end-to-end tests alike.
//!
//! Both listen on loopback only, on ports of the system's choice, and end with their handle. No token or value gets into
//! arguments, messages or errors.

mod dev_server;
mod operator;

use std::path::PathBuf;
use std::time::Duration;

pub use dev_server::{DevServer, Values};
pub use operator::{Operator, account_of};

use crate::process::ProcessError;

/// Both programs start in well under a second; the rest is for a machine that is busy.
const START_WITHIN: Duration = Duration::from_secs(30);

/// One call to a program on this machine.
const CALL: Duration = Duration::from_secs(10);

/// What can go wrong with one of them.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It did not start, did not last, or did not end as it should.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A file or program could not be used.
    #[error("{}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A verb of the dev server's failed.
    #[error("`ferrvault-dev {verb}` failed: {says}")]
    Verb {
        /// Which one.
        verb: String,
        /// What it said.
        says: String,
    },
    /// A call to one of them failed.
    #[error("{what}: {says}")]
    Call {
        /// What was asked.
        what: String,
        /// What came of it.
        says: String,
    },
}

/// For loopback only: no proxy of the environment gets in between.
fn http_client() -> Result<reqwest::Client, Error> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let built = reqwest::Client::builder().no_proxy().timeout(CALL).build();
    built.map_err(|error| Error::Call { what: "an HTTP client".to_owned(), says: error.to_string() })
}

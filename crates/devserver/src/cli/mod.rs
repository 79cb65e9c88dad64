//! The command line: `serve`, and the verbs that talk to a running server over HTTP.
//!
//! No verb prints a value unless `get --show` asks for it. Arguments that may hold one are taken as plain text and parsed
//! here, because a parser that fails inside the argument library quotes what it was given.

// Comments on arguments are help texts: a terminal shows their backticks and angle brackets as they are.
#![allow(clippy::doc_markdown)]

mod client;
mod clusters;
mod connection;
mod secrets;
mod serve;
mod span;
mod tokens;
mod values;
mod vaults;

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub use client::ClientError;

use crate::data_dir::FileError;
use crate::outbound::NotBuilt;

/// A FerrVault to try out with: a server on this machine, and verbs to fill it.
///
/// Start it with `ferrvault-dev serve`; it prints what to try next. The other verbs talk to the running server, which they
/// find through its data directory. Values are stored unencrypted: for trying out and for tests only.
#[derive(Parser)]
#[command(name = "ferrvault-dev", version, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Args)]
struct ConnectionArgs {
    /// Data directory of the server
    #[arg(long, global = true, env = "FERRVAULT_DEV_DATA", value_name = "DIR", default_value = DEFAULT_DATA_DIR)]
    data: PathBuf,
    /// URL of the server, if not the one that runs on the data directory
    #[arg(long, global = true, env = "FERRVAULT_DEV_URL", value_name = "URL")]
    server: Option<String>,
    /// Token to send, if not the admin token in the data directory. Others can see arguments: prefer the variable
    #[arg(long, global = true, env = "FERRVAULT_DEV_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// PEM file with the certificate to trust for https, if not the CA in the data directory
    #[arg(long, global = true, env = "FERRVAULT_DEV_CA", value_name = "FILE")]
    ca: Option<PathBuf>,
}

const DEFAULT_DATA_DIR: &str = "ferrvault-dev-data";

#[derive(Subcommand)]
enum Verb {
    /// Run the server until Ctrl-C
    Serve(serve::ServeArgs),
    /// Create, list and delete vaults
    #[command(subcommand)]
    Vault(vaults::VaultVerb),
    /// Write secrets; all of them in one step, as one change
    Set(secrets::SetArgs),
    /// Give a secret a new random value
    Rotate(secrets::RotateArgs),
    /// Delete secrets
    Unset(secrets::UnsetArgs),
    /// List the secrets of a vault: names and versions, never values
    List(secrets::ListArgs),
    /// Show one secret; its value only with --show
    Get(secrets::GetArgs),
    /// Make, list and revoke tokens
    #[command(subcommand)]
    Token(tokens::TokenVerb),
    /// Register clusters whose service accounts may exchange their JWTs for a bearer
    #[command(subcommand)]
    Cluster(clusters::ClusterVerb),
}

/// Which vault is meant.
#[derive(Args)]
struct VaultArgs {
    /// Name of the vault
    vault: String,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Where a vault is; needed only when several have the same name.
#[derive(Args)]
struct PlaceArgs {
    /// Organization of the vault
    #[arg(long, value_name = "NAME")]
    organization: Option<String>,
    /// Project of the vault
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
}

/// Why a verb failed. The text says what to change.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// No server is known.
    #[error(
        "no running server is known for {data}; start one with `ferrvault-dev serve --data {data}`, or name one with \
         --server or FERRVAULT_DEV_URL"
    )]
    NoServer {
        /// The data directory.
        data: PathBuf,
    },
    /// There is no token for the server.
    #[error("no token for {url}; give one in FERRVAULT_DEV_TOKEN or with --token")]
    NoToken {
        /// The server.
        url: String,
    },
    /// The URL is not one.
    #[error("{0:?} is not the URL of a server; it looks like http://127.0.0.1:8200")]
    Url(String),
    /// The call failed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// No such vault.
    #[error("there is no vault {name:?} here; create it with `ferrvault-dev vault create {name}`, or see `vault list`")]
    NoVault {
        /// What was asked for.
        name: String,
    },
    /// More than one.
    #[error("there are several vaults {name:?} (in {places}); say which with --organization and --project")]
    ManyVaults {
        /// What was asked for.
        name: String,
        /// Where they are.
        places: String,
    },
    /// An argument that is not what it should be; the text is made without quoting a value.
    #[error("{0}")]
    Usage(String),
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The HTTP client.
    #[error(transparent)]
    NotBuilt(#[from] NotBuilt),
    /// The server did not start.
    #[error(transparent)]
    Start(#[from] crate::StartError),
    /// No randomness.
    #[error(transparent)]
    Randomness(#[from] crate::credential::NoRandomness),
    /// The terminal or the pipe.
    #[error("cannot write the output: {0}")]
    Output(#[from] std::io::Error),
}

impl Cli {
    /// Carries the verb out, writing what it has to say to `out`.
    pub async fn run(self, out: &mut (dyn Write + Send)) -> Result<(), CliError> {
        let connection = self.connection;
        match self.verb {
            Verb::Serve(args) => serve::run(args, &connection.data, out).await,
            Verb::Vault(verb) => vaults::run(verb, &connection.client()?, out).await,
            Verb::Set(args) => secrets::set(args, &connection.client()?, out).await,
            Verb::Rotate(args) => secrets::rotate(args, &connection.client()?, out).await,
            Verb::Unset(args) => secrets::unset(args, &connection.client()?, out).await,
            Verb::List(args) => secrets::list(args, &connection.client()?, out).await,
            Verb::Get(args) => secrets::get(args, &connection.client()?, out).await,
            Verb::Token(verb) => tokens::run(verb, &connection.client()?, out).await,
            Verb::Cluster(verb) => clusters::run(verb, &connection.client()?, out).await,
        }
    }
}

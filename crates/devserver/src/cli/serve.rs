//! The verb `serve`: runs the server and teaches what to do with it.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::SignedDuration;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

use super::span::read_span;
use super::{CliError, DEFAULT_DATA_DIR};
use crate::data_dir::{DataDir, replace_with_json};
use crate::secret_text::{SecretText, serialize_exposed};
use crate::{Config, DEFAULT_BEARER_LIFETIME, DEFAULT_RATE_LIMIT, Server};

#[derive(Args)]
#[command(after_help = "FERRVAULT_DEV_LOG=debug shows each call on standard error, without tokens and values.")]
pub(super) struct ServeArgs {
    /// Where the API listens; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:8200", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Where the admin side listens: fault rules and counters for tests. None without; loopback only
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<SocketAddr>,
    /// Speak https, with a CA that is made on first start
    #[arg(long)]
    tls: bool,
    /// Calls per minute and service-account token; 0 is no limit
    #[arg(long, default_value_t = DEFAULT_RATE_LIMIT, value_name = "N")]
    rate_limit: u32,
    /// How long a bearer from an OIDC exchange is accepted
    #[arg(
        long,
        default_value_t = format!("{DEFAULT_BEARER_LIFETIME:#}"),
        value_name = "DURATION",
        allow_hyphen_values = true
    )]
    bearer_lifetime: String,
    /// A path before all others, such as /vault
    #[arg(long, default_value = "", value_name = "PATH", hide_default_value = true)]
    base_path: String,
    /// Allow --listen to be an address that other machines reach
    #[arg(long)]
    expose: bool,
    /// Write url, admin_url, ca and the admin token to this file, as JSON, once the server is ready
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
}

/// What scripts read.
#[derive(Serialize)]
struct Ready<'a> {
    url: &'a str,
    admin_url: Option<&'a str>,
    ca: Option<&'a Path>,
    #[serde(serialize_with = "token_exposed")]
    token: &'a SecretText,
}

// The signature is the one serde asks of `serialize_with`.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn token_exposed<S: serde::Serializer>(token: &&SecretText, serializer: S) -> Result<S::Ok, S::Error> {
    serialize_exposed(token, serializer)
}

pub(super) async fn run(args: ServeArgs, data: &Path, out: &mut (dyn Write + Send)) -> Result<(), CliError> {
    let bearer_lifetime = read_span("--bearer-lifetime", &args.bearer_lifetime)?;
    if bearer_lifetime <= SignedDuration::ZERO {
        return Err(CliError::Usage("--bearer-lifetime has to be longer than nothing, such as 15m".to_owned()));
    }
    // Before anybody can know that the server runs, so that a signal sent at once is not lost.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let server = Server::start(Config {
        listen: args.listen,
        admin: args.admin,
        tls: args.tls,
        rate_limit: args.rate_limit,
        bearer_lifetime,
        base_path: args.base_path,
        expose: args.expose,
        ..Config::new(data)
    })
    .await?;
    // The server serves whether or not anybody still reads the greeting.
    if let Err(error) = greet(&server, data, out) {
        tracing::warn!(%error, "the greeting could not be written");
    }
    // Last, so that a script which waits for the file finds the greeting, too.
    if let Some(file) = &args.ready_file {
        let address = server.address();
        let ready = Ready {
            url: &address.url,
            admin_url: address.admin_url.as_deref(),
            ca: address.ca.as_deref(),
            token: server.admin_token(),
        };
        replace_with_json(file, &ready)?;
    }
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    server.stop().await;
    Ok(())
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte);
    if text.bytes().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// Where it listens and what to try next. Commands are complete: they can be copied as they stand.
fn greet(server: &Server, data: &Path, out: &mut (dyn Write + Send)) -> std::io::Result<()> {
    let is_default = data == Path::new(DEFAULT_DATA_DIR);
    // Absolute, so that the commands work in whatever directory the other terminal is in.
    let data = std::path::absolute(data)?;
    let data_dir = DataDir::new(&data);
    let option = if is_default { String::new() } else { format!(" --data {}", quoted(&data)) };
    writeln!(
        out,
        "FerrVault dev server is ready. For trying out only: values lie unencrypted in {}.\n",
        data.display()
    )?;
    writeln!(out, "  API      {}", server.url())?;
    if let Some(admin) = server.admin_url() {
        writeln!(out, "  admin    {admin}   (fault rules and counters for tests)")?;
    }
    if let Some(ca) = &server.address().ca {
        writeln!(out, "  CA       {}   (what clients have to trust)", ca.display())?;
    }
    writeln!(out, "  token    {}   (the verbs below use it)", data_dir.admin_token_file().display())?;
    writeln!(out, "\nTry next, in another terminal:\n")?;
    for line in [
        format!("ferrvault-dev vault create app{option}"),
        format!("ferrvault-dev set app DATABASE_PASSWORD=first{option}"),
        format!("ferrvault-dev token create --vault app --role viewer{option} > token"),
        "kubectl create secret generic ferrvault-token --from-file=token=token".to_owned(),
        format!("ferrvault-dev rotate app DATABASE_PASSWORD{option}"),
        format!("ferrvault-dev list app{option}"),
    ] {
        writeln!(out, "  {line}")?;
    }
    let trust = server.address().ca.as_ref().map(|ca| format!(" --cacert {}", quoted(ca))).unwrap_or_default();
    writeln!(out, "\nOr ask it as the operator does:\n")?;
    writeln!(
        out,
        "  curl{trust} -H \"Authorization: Bearer $(cat token)\" -d '{{\"vault\":\"app\"}}' {}/v1/operator/secrets/reveal",
        server.url()
    )?;
    if let Some(admin) = server.admin_url() {
        writeln!(out, "  curl -d '{{\"action\":{{\"kind\":\"stall\"}},\"times\":1}}' {admin}/rules")?;
    }
    writeln!(out, "\nCtrl-C stops it; the data stays.")?;
    out.flush()
}

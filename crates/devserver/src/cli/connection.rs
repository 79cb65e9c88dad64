//! Finds the server and the token: from the arguments, the environment, or the data directory.
//!
//! The admin token of a data directory is sent to the server of that directory, and to another one only if it is on
//! loopback: a token must not leave the machine because somebody mistyped a URL.

use url::{Host, Url};

use super::client::Client;
use super::{CliError, ConnectionArgs};
use crate::data_dir::{DataDir, FileError, read};
use crate::secret_text::SecretText;

impl ConnectionArgs {
    /// A client for the server that is meant.
    pub(super) fn client(&self) -> Result<Client, CliError> {
        let data_dir = DataDir::new(&self.data);
        let running = data_dir.address()?;
        let url = match (&self.server, &running) {
            (Some(url), _) => url.clone(),
            (None, Some(address)) => address.url.clone(),
            (None, None) => return Err(CliError::NoServer { data: self.data.clone() }),
        };
        let base = parse(&url)?;
        let own = running.as_ref().is_some_and(|address| parse(&address.url).is_ok_and(|own| own == base));
        let token = match &self.token {
            Some(token) => SecretText::new(token.trim().to_owned()),
            None if own || is_loopback(&base) => {
                data_dir.admin_token()?.ok_or(CliError::NoToken { url: url.clone() })?
            }
            None => return Err(CliError::NoToken { url }),
        };
        let ca_file = match &self.ca {
            Some(file) => Some(file.clone()),
            None if base.scheme() == "https" => {
                running.and_then(|address| address.ca).or_else(|| Some(data_dir.ca()).filter(|file| file.exists()))
            }
            None => None,
        };
        let ca_pem = match ca_file {
            Some(file) => Some(
                read(&file)?
                    .ok_or_else(|| FileError::new("cannot read", &file, std::io::ErrorKind::NotFound.into()))?,
            ),
            None => None,
        };
        Client::new(base, token, ca_pem.as_deref())
    }
}

fn parse(text: &str) -> Result<Url, CliError> {
    let url = Url::parse(text).map_err(|_| CliError::Url(text.to_owned()))?;
    let plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
    // Not quoted when it carries credentials.
    if !plain {
        return Err(CliError::Usage("the URL of the server holds no user, password or query; remove them".to_owned()));
    }
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        _ => Err(CliError::Url(text.to_owned())),
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{ConnectionArgs, is_loopback, parse};
    use crate::cli::CliError;
    use crate::data_dir::{Address, DataDir};
    use crate::secret_text::SecretText;

    fn args(data: &Path, server: Option<&str>) -> ConnectionArgs {
        ConnectionArgs { data: data.to_owned(), server: server.map(str::to_owned), token: None, ca: None }
    }

    #[test]
    fn the_admin_token_goes_to_its_own_server_and_to_loopback_only() {
        let parent = tempfile::tempdir().unwrap();
        let data_dir = DataDir::new(parent.path());
        assert!(matches!(args(parent.path(), None).client(), Err(CliError::NoServer { .. })));
        data_dir.keep_admin_token(&SecretText::new("fft_canary".to_owned())).unwrap();
        let url = "http://192.0.2.1:8200".to_owned();
        data_dir.keep_address(&Address { url: url.clone(), admin_url: None, ca: None }).unwrap();
        assert!(args(parent.path(), None).client().is_ok());
        assert!(args(parent.path(), Some(&url)).client().is_ok(), "its own server, named");
        assert!(args(parent.path(), Some("http://localhost:1")).client().is_ok());
        let elsewhere = args(parent.path(), Some("http://192.0.2.2:8200")).client();
        assert!(matches!(elsewhere, Err(CliError::NoToken { .. })));
        let mut given = args(parent.path(), Some("http://192.0.2.2:8200"));
        given.token = Some("fft_other".to_owned());
        assert!(given.client().is_ok(), "a token that was given goes where it is told to");
    }

    #[test]
    fn what_is_not_the_url_of_a_server_is_refused_without_quoting_credentials() {
        for wrong in ["", "127.0.0.1:8200", "ftp://127.0.0.1", "http://u:canary@127.0.0.1", "http://127.0.0.1/?canary"]
        {
            let error = parse(wrong).unwrap_err().to_string();
            assert!(!error.contains("canary"), "{error}");
        }
        assert!(is_loopback(&parse("http://[::1]:1/prefix").unwrap()));
        assert!(!is_loopback(&parse("http://localhost.example").unwrap()));
    }
}

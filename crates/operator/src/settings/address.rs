//! Where a server listens, as Go writes it: `HOST:PORT`, `:PORT` for all interfaces, `0` for no server at all.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};

use super::BadSetting;

/// The address a flag asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindAddress {
    flag: &'static str,
    text: String,
    place: Place,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    Everywhere(u16),
    Host(String, u16),
}

/// A server that could not begin to listen.
#[derive(Debug, thiserror::Error)]
#[error("{flag}={text}: cannot listen there: {error}")]
pub struct CannotListen {
    flag: &'static str,
    text: String,
    #[source]
    error: std::io::Error,
}

impl BindAddress {
    /// Reads the value that `flag` had.
    pub fn parse(flag: &'static str, text: &str) -> Result<Self, BadSetting> {
        let place = read(text).ok_or_else(|| BadSetting::Value {
            flag,
            value: text.to_owned(),
            expected: "an address such as :8080, 127.0.0.1:8080 or [::1]:8080, or 0 for none",
        })?;
        Ok(Self { flag, text: text.to_owned(), place })
    }

    /// Begins to listen, if there is anything to listen for.
    pub fn listen(&self) -> Result<Option<TcpListener>, CannotListen> {
        let listener = match &self.place {
            Place::Nowhere => return Ok(None),
            // One socket takes both families where the kernel has both.
            Place::Everywhere(port) => TcpListener::bind((Ipv6Addr::UNSPECIFIED, *port))
                .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port))),
            Place::Host(host, port) => TcpListener::bind((&**host, *port)),
        };
        let ready = listener.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
        ready.map(Some).map_err(|error| CannotListen { flag: self.flag, text: self.text.clone(), error })
    }
}

impl fmt::Display for BindAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn read(text: &str) -> Option<Place> {
    if text == "0" {
        return Some(Place::Nowhere);
    }
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok()?;
    if host.is_empty() {
        return Some(Place::Everywhere(port));
    }
    let host = match host.strip_prefix('[') {
        // Brackets are for IPv6 alone, and IPv6 is for brackets alone.
        Some(inner) => inner.strip_suffix(']').filter(|inner| inner.parse::<Ipv6Addr>().is_ok())?,
        None if host.contains([':', ']', '/', ' ']) => return None,
        None => host,
    };
    Some(Place::Host(host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_go_reads_them() {
        let host = |host: &str, port| Some(Place::Host(host.to_owned(), port));
        for (text, expected) in [
            (":8080", Some(Place::Everywhere(8080))),
            ("0", Some(Place::Nowhere)),
            ("127.0.0.1:8081", host("127.0.0.1", 8081)),
            ("localhost:0", host("localhost", 0)),
            ("[::1]:8080", host("::1", 8080)),
            ("::1:8080", None),
            ("[localhost]:8080", None),
            ("8080", None),
            ("", None),
            (":", None),
            (":http", None),
            (":65536", None),
            ("http://localhost:80", None),
        ] {
            assert_eq!(read(text), expected, "{text:?}");
        }
    }

    #[test]
    fn an_address_that_cannot_be_read_names_flag_value_and_remedy() {
        let message = BindAddress::parse("--metrics-bind-address", "8080").unwrap_err().to_string();
        assert_eq!(
            message,
            "--metrics-bind-address=\"8080\" cannot be used: expected an address such as :8080, 127.0.0.1:8080 or \
             [::1]:8080, or 0 for none"
        );
    }

    #[test]
    fn an_address_that_is_taken_names_the_flag() {
        let first = BindAddress::parse("--a", "127.0.0.1:0").unwrap().listen().unwrap().unwrap();
        let taken = first.local_addr().unwrap().to_string();
        let message = BindAddress::parse("--b", &taken).unwrap().listen().unwrap_err().to_string();
        assert!(message.starts_with(&format!("--b={taken}: cannot listen there: ")), "{message}");
    }

    #[test]
    fn zero_listens_nowhere() {
        assert!(BindAddress::parse("--a", "0").unwrap().listen().unwrap().is_none());
    }
}

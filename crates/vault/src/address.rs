//! Addresses that a FerrVault cannot have: those of the link, of the node and of its cloud's metadata service, which gives
//! credentials to whoever asks from within. Whoever may create a connection must not have the operator ask there.
//!
//! What a URL says is looked at before anything is sent; what a name stands for, where it is resolved, for each connection
//! anew. So a name that changes its mind between two looks is no way around it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use thiserror::Error;

use crate::lookup;

/// Which addresses a client connects to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reachable {
    /// All but those of the link and of metadata services.
    #[default]
    NoMetadata,
    /// All: whoever starts the process has named this server.
    Any,
}

/// A name was resolved to nothing else than addresses that are not called.
#[derive(Debug, Error)]
#[error("the name stands for an address that is not called")]
pub(crate) struct Metadata;

/// Services of clouds beyond the link: Azure's, Alibaba's, and over IPv6 those of Google, Oracle and Scaleway.
const SERVICES_V4: [Ipv4Addr; 2] = [Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(100, 100, 100, 200)];
const SERVICES_V6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
    Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42),
];

/// Names that clouds give them. Whatever else a name stands for shows when it is resolved.
const NAMES: [&str; 5] =
    ["metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"];

pub(crate) fn is_metadata_name(name: &str) -> bool {
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

pub(crate) fn is_metadata(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_metadata_v4(address),
        IpAddr::V6(address) => {
            address.is_unicast_link_local()
                || SERVICES_V6.contains(&address)
                // AWS has all of its services of the node in this block: metadata, DNS, time, credentials.
                || matches!(address.segments(), [0xfd00, 0xec2, ..])
                || within(address).into_iter().any(is_metadata_v4)
        }
    }
}

fn is_metadata_v4(address: Ipv4Addr) -> bool {
    address.is_link_local() || SERVICES_V4.contains(&address)
}

/// The IPv4 addresses that an IPv6 address may lead to: mapped, translated or compatible, behind NAT64 or 6to4.
fn within(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    let from = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => vec![from(high, low)],
        // A network divides its own NAT64 block (RFC 8215) as it likes, and where the address stands depends on the length
        // of its prefix (RFC 6052, 2.2), 48, 56, 64 or 96 bits, with the ninth byte left out.
        [0x64, 0xff9b, 1, ..] => {
            let octets = address.octets().into_iter().enumerate();
            let octets: Vec<u8> =
                octets.filter(|(place, _)| *place >= 6 && *place != 8).map(|(_, octet)| octet).collect();
            let places = [0, 1, 2, 5].into_iter().filter_map(|place| octets.get(place..place + 4));
            places.filter_map(|four| <[u8; 4]>::try_from(four).ok()).map(Ipv4Addr::from).collect()
        }
        _ => Vec::new(),
    }
}

/// Looks a name up.
type Lookup = Arc<dyn Fn(String) -> Found + Send + Sync>;
type Found = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// A resolver that leaves out what is not called.
struct Filtered {
    reachable: Reachable,
    lookup: Lookup,
}

/// The system's resolver, held to `reachable`.
pub(crate) fn resolver(reachable: Reachable) -> Arc<impl Resolve> {
    let lookup: Lookup = Arc::new(|name| Box::pin(lookup::SYSTEM.of(name)));
    Arc::new(Filtered { reachable, lookup })
}

impl Resolve for Filtered {
    fn resolve(&self, name: Name) -> Resolving {
        let (looked_up, reachable) = ((self.lookup)(name.as_str().to_owned()), self.reachable);
        Box::pin(async move {
            let mut addresses = looked_up.await?;
            if reachable == Reachable::NoMetadata {
                let found = addresses.len();
                addresses.retain(|address| !is_metadata(address.ip()));
                if addresses.is_empty() && found > 0 {
                    return Err(Metadata.into());
                }
            }
            let addresses: Addrs = Box::new(addresses.into_iter());
            Ok(addresses)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::VaultError;
    use crate::network::request_failure;

    #[test]
    fn addresses_of_link_and_metadata_are_known_in_every_spelling() {
        for (address, expected) in [
            ("169.254.169.254", true),
            ("169.254.0.1", true),
            ("168.63.129.16", true),
            ("100.100.100.200", true),
            ("fe80::1", true),
            ("febf::1", true),
            ("fd00:ec2::254", true),
            ("fd20:ce::254", true),
            ("::ffff:169.254.169.254", true),
            ("::169.254.169.254", true),
            ("64:ff9b::a9fe:a9fe", true),
            ("2002:a9fe:a9fe::1", true),
            ("127.0.0.1", false),
            ("::1", false),
            ("10.0.0.1", false),
            ("169.253.1.1", false),
            ("fd00:ec2::253", true),
            ("fd00:ec3::254", false),
            ("fd00:c1::a9fe:a9fe", true),
            ("fd00:42::42", true),
            ("::ffff:0:169.254.169.254", true),
            ("64:ff9b:1:a9fe:a9:fe00::", true),
            ("64:ff9b:1:a9:fe:a9fe::", true),
            ("64:ff9b:1:0:a9:fea9:fe00:0", true),
            ("64:ff9b:1::a9fe:a9fe", true),
            ("64:ff9b:1::10.0.0.1", false),
            ("fec0::1", false),
            ("2001:db8::a9fe:a9fe", false),
            ("::ffff:10.0.0.1", false),
        ] {
            assert_eq!(is_metadata(address.parse().unwrap()), expected, "{address}");
        }
    }

    /// What becomes of a request to a host that is resolved to `addresses`.
    async fn failure(reachable: Reachable, addresses: &[&str]) -> VaultError {
        let addresses: Vec<SocketAddr> =
            addresses.iter().map(|address| SocketAddr::new(address.parse().unwrap(), 0)).collect();
        let lookup: Lookup = Arc::new(move |_| {
            let addresses = addresses.clone();
            Box::pin(async move { Ok(addresses) })
        });
        unreachable_because(reachable, lookup).await
    }

    async fn unreachable_because(reachable: Reachable, lookup: Lookup) -> VaultError {
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(crate::tls::client_config(&crate::TlsOptions::default(), true).unwrap())
            .dns_resolver(Arc::new(Filtered { reachable, lookup }))
            .no_proxy()
            .build()
            .unwrap();
        // Nobody listens on port 1 of this machine: to be refused there means to have been let through.
        request_failure(&http.get("http://vault.example.com:1/").send().await.unwrap_err()).error
    }

    #[tokio::test]
    async fn a_name_that_stands_for_such_an_address_is_not_called() {
        let only = failure(Reachable::NoMetadata, &["169.254.169.254", "fe80::1"]).await;
        assert_eq!(only, VaultError::AddressRefused);
        for (case, reachable, addresses) in [
            ("beside another address", Reachable::NoMetadata, &["169.254.169.254", "127.0.0.1"][..]),
            ("another address", Reachable::NoMetadata, &["127.0.0.1"]),
            ("with leave", Reachable::Any, &["127.0.0.1"]),
        ] {
            let error = failure(reachable, addresses).await;
            assert_eq!(error, VaultError::Unreachable { why: "connection refused".into() }, "{case}");
        }
    }

    #[tokio::test]
    async fn a_name_that_nobody_knows_is_told_as_such() {
        let lookup: Lookup = Arc::new(|_| Box::pin(async { Err(io::Error::other("canary")) }));
        let why = unreachable_because(Reachable::NoMetadata, lookup).await;
        assert_eq!(why, VaultError::Unreachable { why: "the host name cannot be resolved".into() });
    }

    #[tokio::test]
    async fn that_too_many_names_hang_is_not_blamed_on_the_name() {
        let lookup: Lookup = Arc::new(|_| Box::pin(async { Err(io::Error::other(lookup::TooMany)) }));
        let why = unreachable_because(Reachable::NoMetadata, lookup).await;
        let said = "too many host names are being looked up and not answered";
        assert_eq!(why, VaultError::Unreachable { why: said.into() });
    }

    #[tokio::test]
    async fn the_filter_has_no_say_where_the_server_was_named() {
        let lookup: Lookup = Arc::new(|_| Box::pin(async { Ok(vec!["169.254.169.254:0".parse().unwrap()]) }));
        let found = |reachable| {
            let filtered = Filtered { reachable, lookup: Arc::clone(&lookup) };
            async move { filtered.resolve("vault.example.com".parse().unwrap()).await.map(Iterator::count) }
        };
        assert_eq!(found(Reachable::Any).await.unwrap(), 1);
        assert!(found(Reachable::NoMetadata).await.is_err());
    }
}

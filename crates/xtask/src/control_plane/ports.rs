//! Free ports on 127.0.0.1.
//!
//! They are taken from *below* the range that the system uses for outgoing connections. Inside that range a port that is
//! free now may belong to somebody's connection a moment later; and while an API server is down, a client that keeps
//! trying its port can even be connected to itself.

use std::net::{Ipv4Addr, TcpListener};

use super::Error;

/// The lowest port considered: below it live the ports that people configure by hand.
const LOWEST: u16 = 15_000;

/// Where outgoing connections start on Linux unless somebody changed it.
const USUAL_EPHEMERAL_START: u16 = 32_768;

/// Attempts per port: with 17,000 candidates of which few are taken, ten would do.
const TRIES_PER_PORT: usize = 100;

/// `N` different ports that nobody listens on. They are all held until the last one is found, then let go.
pub(crate) fn free<const N: usize>() -> Result<[u16; N], Error> {
    let end = ephemeral_start();
    let range = if end > LOWEST + 1_000 { LOWEST..end } else { LOWEST..USUAL_EPHEMERAL_START };
    let mut held = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        let found = (0..TRIES_PER_PORT).find_map(|_| {
            let candidate = fastrand::u16(range.clone());
            Some((candidate, TcpListener::bind((Ipv4Addr::LOCALHOST, candidate)).ok()?))
        });
        let Some((candidate, listener)) = found else {
            return Err(Error::NoPorts { wanted: N });
        };
        held.push(listener);
        *port = candidate;
    }
    Ok(ports)
}

fn ephemeral_start() -> u16 {
    std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse().ok())
        .unwrap_or(USUAL_EPHEMERAL_START)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_different_free_and_outside_the_range_of_outgoing_connections() {
        let mut ports = free::<20>().unwrap();
        for port in ports {
            assert!((LOWEST..ephemeral_start().max(USUAL_EPHEMERAL_START)).contains(&port), "{port}");
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        }
        ports.sort_unstable();
        assert!(ports.windows(2).all(|pair| pair[0] != pair[1]), "{ports:?}");
    }
}

//! What an error of the network means, in own words.
//!
//! The layers below print addresses, names out of certificates and pieces of answers. So their errors are looked at for
//! their type and kind, and dropped.

use std::error::Error;
use std::io;

use crate::address;
use crate::body::Unread;
use crate::error::VaultError;
use crate::lookup::TooMany;
use crate::retry::Failure;
use crate::tls;

/// The request was not answered.
pub(crate) fn request_failure(error: &reqwest::Error) -> Failure {
    let unsent = error.is_connect();
    if causes(error).any(<dyn Error>::is::<address::Metadata>) {
        return Failure { error: VaultError::AddressRefused, unsent };
    }
    let error = match causes(error).find_map(|cause| cause.downcast_ref::<rustls::Error>()) {
        Some(refused) => VaultError::RefusedByTls { why: tls::explain(refused) },
        None if causes(error).any(<dyn Error>::is::<TooMany>) => unreachable(&TooMany.to_string()),
        None if error.is_dns() => unreachable("the host name cannot be resolved"),
        None => unreachable(&network_reason(error)),
    };
    Failure { error, unsent }
}

/// The answer broke off.
pub(crate) fn unread_body(unread: &Unread) -> VaultError {
    let error = match unread {
        Unread::TooLarge { limit } => return VaultError::TooLarge { limit: *limit },
        Unread::NoRoom => return VaultError::NoRoom,
        Unread::Broken(error) => error,
    };
    // Whatever the connection does to a body arrives as an error of hyper's; all else is the decompressor's.
    if causes(error).any(<dyn Error>::is::<hyper::Error>) {
        unreachable(&network_reason(error))
    } else {
        VaultError::broken("its compression is damaged")
    }
}

fn unreachable(why: &str) -> VaultError {
    VaultError::Unreachable { why: why.to_owned() }
}

/// The kind of the system's error, in words of the standard library. The texts of the errors themselves hold addresses.
fn network_reason(error: &reqwest::Error) -> String {
    match io_kind(error) {
        // The first two say nothing, the others are what TLS and HTTP make of an end that comes too early.
        None
        | Some(
            io::ErrorKind::Other
            | io::ErrorKind::UnexpectedEof
            | io::ErrorKind::InvalidData
            | io::ErrorKind::InvalidInput,
        ) => "the connection was closed before the answer was complete".to_owned(),
        Some(kind) => kind.to_string(),
    }
}

/// The kind of the innermost error of the system.
fn io_kind(error: &reqwest::Error) -> Option<io::ErrorKind> {
    causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>()).last().map(io::Error::kind)
}

/// `error` and everything below it. [`Error::source`] of an I/O error leaves out the error it wraps, which is exactly
/// the one wanted here.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&cause| {
        let wrapped = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        match wrapped {
            Some(wrapped) => Some(wrapped as &(dyn Error + 'static)),
            None => cause.source(),
        }
    })
}

//! Bodies: answers read up to a limit into memory that is wiped, questions that hold a secret built in such memory.
//!
//! The limit counts what comes out of the decompressor, as it comes out, so that a small answer that unpacks into a
//! large one is dropped on the way. What cannot be reached from here are the buffers of the transport itself; the
//! pieces it hands over are wiped where it gave up its own claim on them.

use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;
use tokio::time::Instant;
use zeroize::{Zeroize, Zeroizing};

use crate::memory::{AnswerMemory, Claim, FREE_BYTES, Owner};

/// Most bytes of an answer, counted after decompression: a Secret holds 1 MiB, JSON may need up to six bytes for one,
/// though hardly ever more than two, and keys and metadata need room as well.
pub(crate) const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// Most bytes of an error's body. It holds one sentence.
pub(crate) const MAX_ERROR_BYTES: usize = 16 * 1024;

/// First allocation for an answer; it doubles from there, ten times up to the limit.
const FIRST_ALLOCATION: usize = 4 * 1024;

/// A wait for room ends this much before the attempt does, which would otherwise be called a timeout of FerrVault.
const ENDS_FIRST: Duration = Duration::from_millis(20);

/// Why a body was not read to its end.
#[derive(Debug)]
pub(crate) enum Unread {
    /// Beyond the limit.
    TooLarge { limit: usize },
    /// What is beyond the first few bytes found no room until it was too late.
    NoRoom,
    /// The transport or the decompressor failed.
    Broken(reqwest::Error),
}

/// A body, with the room that it claimed.
#[derive(Debug, Default)]
pub(crate) struct Body {
    pub(crate) bytes: Zeroizing<Vec<u8>>,
    pub(crate) claim: Option<Claim>,
}

/// Whose memory a body is read into.
pub(crate) type Budget<'a> = Option<(&'a AnswerMemory, &'a Owner)>;

/// Reads the body to its end, `limit` bytes at most. With a budget, all beyond the first few bytes waits for its room, and
/// with it the server; for that until `deadline` and no longer, so that the wait can be told from a slow server's.
pub(crate) async fn read(
    response: &mut Response,
    limit: usize,
    budget: Budget<'_>,
    deadline: Instant,
) -> Result<Body, Unread> {
    // Known beforehand only where nothing was compressed; saves the transfer, decides nothing.
    let length = response.content_length().map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    if length.is_some_and(|length| length > limit) {
        return Err(Unread::TooLarge { limit });
    }
    let mut body = Body::default();
    while let Some(chunk) = response.chunk().await.map_err(Unread::Broken)? {
        let fits = chunk.len() <= limit - body.bytes.len();
        if fits {
            if body.bytes.len() + chunk.len() > FREE_BYTES
                && body.claim.is_none()
                && let Some((memory, owner)) = budget
            {
                let until = deadline.checked_sub(ENDS_FIRST).unwrap_or(deadline);
                let claim = tokio::time::timeout_at(until, memory.claim(owner, length)).await;
                body.claim = Some(claim.map_err(|_| Unread::NoRoom)?);
            }
            append(&mut body.bytes, &chunk);
        }
        if let Ok(mut chunk) = chunk.try_into_mut() {
            chunk.as_mut().zeroize();
        }
        if !fits {
            return Err(Unread::TooLarge { limit });
        }
    }
    Ok(body)
}

/// Adds `chunk`. Grows by hand, because a vector that grows by itself leaves its former memory behind unwiped.
fn append(body: &mut Zeroizing<Vec<u8>>, chunk: &[u8]) {
    let needed = body.len() + chunk.len();
    if needed > body.capacity() {
        let capacity = needed.next_power_of_two().max(FIRST_ALLOCATION);
        let mut larger = Zeroizing::new(Vec::with_capacity(capacity));
        larger.extend_from_slice(body);
        *body = larger;
    }
    body.extend_from_slice(chunk);
}

/// A JSON object of texts, in memory that is wiped when the transport drops it.
pub(crate) fn secret_object(members: &[(&str, &str)]) -> Result<Bytes, serde_json::Error> {
    // A character becomes six bytes at most (`\u001f`), and each member has quotes, colon and comma around it.
    let capacity = members.iter().map(|(name, text)| 6 * (name.len() + text.len()) + 6).sum::<usize>() + 2;
    let mut body = Zeroizing::new(Vec::with_capacity(capacity));
    for (index, (name, text)) in members.iter().enumerate() {
        body.push(if index == 0 { b'{' } else { b',' });
        serde_json::to_writer(&mut *body, name)?;
        body.push(b':');
        serde_json::to_writer(&mut *body, text)?;
    }
    body.push(b'}');
    debug_assert!(body.capacity() == capacity, "the body grew and left memory behind");
    Ok(Bytes::from_owner(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growing_keeps_every_byte() {
        let mut body = Zeroizing::new(Vec::new());
        let mut expected = Vec::new();
        for size in [0, 1, 4_095, 1, 70_000, 3] {
            let chunk: Vec<u8> = (0..size).map(|index| u8::try_from(index % 251).unwrap()).collect();
            append(&mut body, &chunk);
            expected.extend_from_slice(&chunk);
        }
        assert_eq!(*body, expected);
    }

    #[test]
    fn an_object_of_texts_is_json_and_never_grows() {
        let worst = "\u{1}\u{1f}\"\\é😀".repeat(50);
        let body = secret_object(&[("vault", "v"), ("na\"me", &worst), ("value", "")]).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(value, serde_json::json!({"vault": "v", "na\"me": worst, "value": ""}));
        assert!(secret_object(&[("a", &"\u{1}".repeat(1_000))]).is_ok());
    }
}

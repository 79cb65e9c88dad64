//! Answers that are too large, whole or on arrival.

use std::io::Write as _;

use ferrvault_core::content::Answer;
use ferrvault_vault::{AnswerMemory, RetryPolicy, VaultError};
use flate2::write::GzEncoder;
use flate2::{Compress, Compression, FlushCompress};

use crate::server::{Reply, Server, json, response};
use crate::{bearer, client, cloud, impatient, quick};

/// What one answer may have, after decompression.
const LIMIT: usize = 4 * 1024 * 1024;

const GZIP: &str = "content-type: application/json\r\ncontent-encoding: gzip\r\n";

async fn reveal(reply: Reply) -> (Result<Answer, VaultError>, usize) {
    let server = Server::start([reply]).await;
    let result = client(&server.url(), quick()).reveal(&bearer(), &cloud(&["A"])).await;
    (result, server.count())
}

/// An answer of exactly `size` bytes, and the length of its value.
fn answer(size: usize) -> (Vec<u8>, usize) {
    let frame = br#"{"secrets":{"A":""}}"#.len();
    let value = "x".repeat(size - frame);
    (format!(r#"{{"secrets":{{"A":"{value}"}}}}"#).into_bytes(), value.len())
}

pub(crate) fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn chunked(body: &[u8]) -> Reply {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut bytes = head.as_bytes().to_vec();
    for chunk in body.chunks(64 * 1024) {
        bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    Reply::Bytes(bytes)
}

#[tokio::test]
async fn four_mebibytes_are_read_and_one_byte_more_is_not() {
    let (exact, length) = answer(LIMIT);
    let (above, _) = answer(LIMIT + 1);
    for (name, reply) in [
        ("announced", json(200, &exact)),
        ("in chunks", chunked(&exact)),
        ("compressed", response(200, GZIP, compressed(&exact))),
    ] {
        let (result, _) = reveal(reply).await;
        assert_eq!(result.unwrap().content.0["A"].len(), length, "{name}");
    }
    for (name, reply) in [
        ("announced", json(200, &above)),
        ("in chunks", chunked(&above)),
        ("compressed", response(200, GZIP, compressed(&above))),
        ("five mebibytes", json(200, answer(5 * 1024 * 1024).0)),
    ] {
        let (result, count) = reveal(reply).await;
        assert_eq!(result, Err(VaultError::TooLarge { limit: LIMIT }), "{name}");
        assert_eq!(count, 1, "{name}: it would be as large a second time");
    }
}

#[tokio::test]
async fn a_small_answer_that_unpacks_into_a_huge_one_is_dropped_on_the_way() {
    // One mebibyte of zeros becomes about a kibibyte that refers to nothing before it, so 4,096 of them make 4 GiB.
    let mut block = Vec::with_capacity(64 * 1024);
    Compress::new(Compression::best(), false)
        .compress_vec(&vec![0; 1024 * 1024], &mut block, FlushCompress::Full)
        .unwrap();
    let gzip_header: &[u8] = &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let bomb = [gzip_header, &block.repeat(4096)].concat();
    let size = bomb.len();
    // It stalls after the bomb: only a reader that stops early ever returns before its deadline.
    let head = format!("HTTP/1.1 200 OK\r\n{GZIP}content-length: {}\r\n\r\n", size + 1);
    let (result, count) = reveal(Reply::Stall([head.as_bytes(), &bomb].concat())).await;
    assert_eq!(result, Err(VaultError::TooLarge { limit: LIMIT }));
    assert_eq!(count, 1);
}

#[tokio::test]
async fn the_text_of_an_error_has_a_limit_of_its_own() {
    let body = |size: usize| format!(r#"{{"error":"no such vault","padding":"{}"}}"#, "x".repeat(size));
    for (name, reply, told) in [
        ("small", json(404, body(10)), true),
        ("large", json(404, body(17 * 1024)), false),
        ("endless", Reply::Stall([b"HTTP/1.1 404 No\r\n\r\n".to_vec(), vec![b'x'; 1024 * 1024]].concat()), false),
    ] {
        let (result, count) = reveal(reply).await;
        let error = result.unwrap_err();
        assert!(matches!(error, VaultError::NotFound { .. }), "{name}: {error:?}");
        assert_eq!(error.to_string().contains("no such vault"), told, "{name}: {error}");
        assert_eq!(count, 1, "{name}");
    }
}

const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn a_large_answer_claims_room_until_nothing_of_it_is_left_and_a_small_one_none() {
    let memory = AnswerMemory::default();
    for (name, reply, kept) in [
        ("small", json(200, answer(60_000).0), 0),
        ("announced", json(200, answer(MIB).0), 3 * answer(MIB).1),
        ("in chunks", chunked(&answer(MIB).0), 3 * answer(MIB).1),
        ("compressed", response(200, GZIP, compressed(&answer(MIB).0)), 3 * answer(MIB).1),
        // Twice its own length is all that an announced answer claims.
        ("the longest", json(200, answer(LIMIT).0), 2 * LIMIT),
        ("too large", chunked(&answer(LIMIT + 1).0), 0),
        ("broken off", Reply::Reset(response_bytes(&answer(MIB).0)), 0),
    ] {
        let server = Server::start([reply]).await;
        let client = client(&server.url(), RetryPolicy { attempts: 1, ..quick() });
        let answered = client.reveal_within(&memory, "shop".into(), &bearer(), &cloud(&["A"])).await;
        let kept = if name == "announced" { kept.min(2 * MIB) } else { kept };
        assert_eq!(memory.claimed(), kept, "{name}");
        drop(answered);
        assert_eq!(memory.claimed(), 0, "{name}");
    }
}

/// Half of a chunked response.
fn response_bytes(body: &[u8]) -> Vec<u8> {
    let Reply::Bytes(mut bytes) = chunked(body) else { panic!("chunks are bytes") };
    bytes.truncate(bytes.len() / 2);
    bytes
}

#[tokio::test]
async fn whoever_finds_no_room_waits_within_the_time_of_an_attempt() {
    let memory = AnswerMemory::default();
    let server = Server::start([json(200, answer(LIMIT).0)]).await;
    let patient = client(&server.url(), quick());
    let mut held = Vec::new();
    for number in 0..8 {
        let namespace = format!("n{number}").into();
        held.push(patient.reveal_within(&memory, namespace, &bearer(), &cloud(&["A"])).await.unwrap());
    }
    assert_eq!(memory.claimed(), 64 * MIB, "all there is");
    // Not FerrVault's fault, and so FerrVault is not asked again and again.
    let hurried = client(&server.url(), RetryPolicy { attempts: 3, ..impatient() });
    let asked = server.count();
    let refused = hurried.reveal_within(&memory, "late".into(), &bearer(), &cloud(&["A"])).await.map(drop);
    assert_eq!(refused, Err(VaultError::NoRoom));
    assert_eq!(server.count(), asked + 1);
    let waits = tokio::spawn({
        let memory = memory.clone();
        async move { patient.reveal_within(&memory, "next".into(), &bearer(), &cloud(&["A"])).await.map(drop) }
    });
    held.pop();
    assert_eq!(waits.await.unwrap(), Ok(()));
    drop(held);
    assert_eq!(memory.claimed(), 0);
}

//! The wire between a client and a server that sends back what it gets. No test here depends on time: each waits for the
//! next thing that must come.

use std::io::ErrorKind;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::*;

const SENT: &[u8] = b"twenty bytes of text";

/// A server that sends back what it gets, and tells what it got of each connection when that ends.
async fn echo() -> (String, mpsc::UnboundedReceiver<(Vec<u8>, bool)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let tell = tell.clone();
            tokio::spawn(async move {
                let (mut got, mut piece) = (Vec::new(), [0; 64]);
                let orderly = loop {
                    match socket.read(&mut piece).await {
                        Ok(0) => break true,
                        Ok(read) => {
                            got.extend_from_slice(&piece[..read]);
                            // Whichever comes first after a reset, reading or writing, is told of it.
                            if socket.write_all(&piece[..read]).await.is_err() {
                                break false;
                            }
                        }
                        Err(_) => break false,
                    }
                };
                let _ = tell.send((got, orderly));
            });
        }
    });
    (url, told)
}

async fn connect(wire: &Wire) -> TcpStream {
    TcpStream::connect(wire.url().trim_start_matches("https://")).await.unwrap()
}

/// Sends the text and reads until there is an end of any kind.
async fn talk(wire: &Wire) -> (Vec<u8>, Result<(), ErrorKind>) {
    let mut client = connect(wire).await;
    let _ = client.write_all(SENT).await;
    rest(&mut client).await
}

async fn rest(client: &mut TcpStream) -> (Vec<u8>, Result<(), ErrorKind>) {
    let mut got = Vec::new();
    let end = client.read_to_end(&mut got).await.map(drop).map_err(|error| error.kind());
    (got, end)
}

fn always(way: Way, after: u64, end: End) -> impl FnMut() -> Option<Fate> + Send {
    move || Some(Fate { way, after, end })
}

#[tokio::test]
async fn a_calm_wire_carries_everything_and_both_ends() {
    let (server, mut told) = echo().await;
    let wire = Wire::to(&server).await;
    let mut client = connect(&wire).await;
    client.write_all(SENT).await.unwrap();
    let mut got = [0; SENT.len()];
    client.read_exact(&mut got).await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(got, SENT);
    assert_eq!(rest(&mut client).await, (Vec::new(), Ok(())));
    assert_eq!(told.recv().await.unwrap(), (SENT.to_vec(), true));
    assert_eq!(wire.ended(), 0);
}

#[tokio::test]
async fn an_answer_is_cut_at_the_chosen_byte_in_the_chosen_way() {
    let (server, _told) = echo().await;
    let wire = Wire::to(&server).await;
    for after in [0, 1, 7, 19] {
        let kept = SENT[..usize::try_from(after).unwrap()].to_vec();
        wire.choose(always(Way::Down, after, End::Close));
        assert_eq!(talk(&wire).await, (kept.clone(), Ok(())));
        wire.choose(always(Way::Down, after, End::Reset));
        assert_eq!(talk(&wire).await, (kept, Err(ErrorKind::ConnectionReset)));
    }
}

#[tokio::test]
async fn a_request_is_cut_at_the_chosen_byte_in_the_chosen_way() {
    let (server, mut told) = echo().await;
    let wire = Wire::to(&server).await;
    for (end, orderly) in [(End::Close, true), (End::Reset, false)] {
        wire.choose(always(Way::Up, 6, end));
        // What the client sees of it is another matter.
        let _ = talk(&wire).await;
        assert_eq!(told.recv().await.unwrap(), (SENT[..6].to_vec(), orderly), "{end:?}");
    }
}

#[tokio::test]
async fn a_stalled_connection_stays_open_without_a_byte_until_the_weather_changes() {
    let (server, mut told) = echo().await;
    let wire = Wire::to(&server).await;
    wire.choose(always(Way::Down, 3, End::Stall));
    let mut client = connect(&wire).await;
    client.write_all(SENT).await.unwrap();
    let mut got = [0; 3];
    client.read_exact(&mut got).await.unwrap();
    assert_eq!(got, SENT[..3]);
    // Neither way: what is sent now never arrives, what was sent back never comes.
    client.write_all(b"more").await.unwrap();
    wire.calm();
    assert_eq!(rest(&mut client).await, (Vec::new(), Err(ErrorKind::ConnectionReset)));
    assert_eq!(told.recv().await.unwrap(), (SENT.to_vec(), false));
    let mut client = connect(&wire).await;
    client.write_all(SENT).await.unwrap();
    let mut got = [0; SENT.len()];
    client.read_exact(&mut got).await.unwrap();
}

#[tokio::test]
async fn a_cut_wire_resets_what_is_there_and_what_comes_and_a_mended_one_carries_again() {
    let (server, _told) = echo().await;
    let wire = Wire::to(&server).await;
    let mut client = connect(&wire).await;
    client.write_all(b"x").await.unwrap();
    client.read_exact(&mut [0]).await.unwrap();
    wire.cut();
    assert_eq!(rest(&mut client).await.1, Err(ErrorKind::ConnectionReset));
    assert!(talk(&wire).await.1.is_err());
    wire.calm();
    let mut client = connect(&wire).await;
    client.write_all(b"x").await.unwrap();
    client.read_exact(&mut [0]).await.unwrap();
}

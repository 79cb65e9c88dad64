//! Carries the bytes of one connection until it ends by itself, meets its fate, or its time is over.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::fate::{End, Fate, Way};

/// Bytes carried at a time: a TLS record.
const PIECE: usize = 16 * 1024;

/// Makes the end of this socket a reset instead of an orderly close.
pub(super) fn reset(socket: &TcpStream) {
    // Fails on a socket that is broken already.
    let _ = socket.set_zero_linger();
}

/// How one direction ended.
enum Stop {
    /// There is nothing more to read, and the other side was told.
    Ended,
    /// Reading or writing failed.
    Broken,
    /// All bytes that were let through have been.
    Reached,
}

/// Carries a connection to `server` until it ends or `over` is; the fate that it met, if it did.
pub(super) async fn connection(
    client: TcpStream,
    server: SocketAddr,
    fate: Option<Fate>,
    over: impl Future<Output = ()>,
) -> Option<End> {
    let Ok(server) = TcpStream::connect(server).await else {
        // Nobody listens there: said in the way that is still open.
        reset(&client);
        return None;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let limit = |way| fate.filter(|fate| fate.way == way).map(|fate| fate.after);
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    tokio::pin!(over);
    let both = async {
        let up = pump(&mut from_client, &mut to_server, limit(Way::Up));
        let down = pump(&mut from_server, &mut to_client, limit(Way::Down));
        tokio::pin!(up, down);
        // The first that stops stops both, unless it only has nothing more to say.
        let (first, is_up) = tokio::select! {
            stop = &mut up => (stop, true),
            stop = &mut down => (stop, false),
        };
        match first {
            Stop::Ended if is_up => down.await,
            Stop::Ended => up.await,
            stop => stop,
        }
    };
    let stop = tokio::select! {
        stop = both => Some(stop),
        () = &mut over => None,
    };
    let met = fate.filter(|_| matches!(stop, Some(Stop::Reached)));
    match (stop, met.map(|fate| fate.end)) {
        (Some(Stop::Ended), _) => {}
        (_, Some(End::Close)) => {
            let _ = (to_client.shutdown().await, to_server.shutdown().await);
            // What is still sent is read: closing a socket with bytes in it would reset it.
            let drained = async { tokio::join!(drain(&mut from_client), drain(&mut from_server)) };
            tokio::select! {
                _ = drained => {}
                () = over => {}
            }
        }
        (_, end) => {
            if end == Some(End::Stall) {
                over.await;
            }
            // Put together again first: the half that writes would end its side in order when it goes.
            for socket in [from_client.reunite(to_client), from_server.reunite(to_server)].iter().flatten() {
                reset(socket);
            }
        }
    }
    met.map(|fate| fate.end)
}

/// Carries one direction, up to `limit` bytes of it.
async fn pump(from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf, limit: Option<u64>) -> Stop {
    let mut left = limit;
    let mut piece = vec![0; PIECE];
    loop {
        let room = left.map_or(PIECE, |left| usize::try_from(left).unwrap_or(PIECE).min(PIECE));
        if room == 0 {
            return Stop::Reached;
        }
        match from.read(&mut piece[..room]).await {
            Ok(0) => {
                let _ = to.shutdown().await;
                return Stop::Ended;
            }
            Ok(read) => {
                if to.write_all(&piece[..read]).await.is_err() {
                    return Stop::Broken;
                }
                left = left.map(|left| left - read as u64);
            }
            Err(_) => return Stop::Broken,
        }
    }
}

async fn drain(from: &mut OwnedReadHalf) {
    let mut piece = vec![0; PIECE];
    while from.read(&mut piece).await.is_ok_and(|read| read > 0) {}
}

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use tokio::sync::mpsc;

use super::*;

/// A call that does not come to an end is taken for one that hangs: far above what one takes on loopback.
const LIMIT: Duration = Duration::from_secs(10);

/// A server that tells of each request, and answers with what it is handed piece by piece.
struct Server {
    url: String,
    asked: mpsc::UnboundedReceiver<String>,
    pieces: mpsc::UnboundedSender<&'static str>,
    _task: tokio::task::JoinHandle<()>,
}

async fn server() -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (tell, asked) = mpsc::unbounded_channel();
    let (pieces, take) = mpsc::unbounded_channel::<&'static str>();
    let take = Arc::new(tokio::sync::Mutex::new(take));
    let task = tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let (tell, take) = (tell.clone(), Arc::clone(&take));
            let service = service_fn(move |request: Request<Incoming>| {
                let (tell, take) = (tell.clone(), Arc::clone(&take));
                async move {
                    let bearer = request.headers().get("authorization").map(|it| it.to_str().unwrap().to_owned());
                    let target = request.uri().to_string();
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    let told = format!("{target} {} {}", bearer.unwrap_or_default(), String::from_utf8_lossy(&body));
                    tell.send(told).unwrap();
                    let pieces = futures::stream::unfold(take, |take| async move {
                        let piece = take.lock().await.recv().await.filter(|piece| !piece.is_empty())?;
                        Some((Ok::<_, Infallible>(Frame::data(Bytes::from(piece))), take))
                    });
                    Ok::<_, Infallible>(Response::new(UnsyncBody::new(StreamBody::new(pieces))))
                }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), service));
        }
    });
    Server { url, asked, pieces, _task: task }
}

type UnsyncBody = http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible>;

async fn proxy(server: &Server) -> (Proxy, reqwest::Client) {
    let proxy = Proxy::before(&server.url, reqwest::Client::builder()).await;
    (proxy, reqwest::Client::builder().no_proxy().build().unwrap())
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, what).await.expect("it hangs")
}

#[tokio::test]
async fn a_call_is_passed_on_as_it_is_and_its_answer_as_it_comes() {
    let mut server = server().await;
    let (proxy, client) = proxy(&server).await;
    let sent = client.post(format!("{}/a/b?c=d%20e", proxy.url())).bearer_auth("t").body("body").send();
    let answer = soon(sent).await.unwrap();
    assert_eq!(soon(server.asked.recv()).await.unwrap(), "/a/b?c=d%20e Bearer t body");
    let mut pieces = answer.bytes_stream();
    for piece in ["one", "two"] {
        // The second is sent only when the first has arrived: nothing is kept back until the end.
        server.pieces.send(piece).unwrap();
        assert_eq!(soon(pieces.next()).await.unwrap().unwrap(), piece);
    }
    server.pieces.send("").unwrap();
    assert!(soon(pieces.next()).await.is_none());
}

#[tokio::test]
async fn what_is_refused_does_not_reach_the_server() {
    let mut server = server().await;
    let (proxy, client) = proxy(&server).await;
    proxy.spoil(Calls::with_path("/secrets"), Fault::Refuse(StatusCode::SERVICE_UNAVAILABLE));
    let answer = soon(client.get(format!("{}/api/v1/secrets", proxy.url())).send()).await.unwrap();
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.text().await.unwrap().contains("\"code\":503"));
    assert!(server.asked.try_recv().is_err());
}

#[tokio::test]
async fn a_call_that_hangs_goes_on_when_it_may_and_not_before() {
    let mut server = server().await;
    let (proxy, client) = proxy(&server).await;
    proxy.spoil(Calls::with_path("/hang"), Fault::Hang);
    let mut hanging = Box::pin(client.get(format!("{}/hang", proxy.url())).send());
    // Another call goes through meanwhile: when it is answered, the first one would have been as well.
    server.pieces.send("").unwrap();
    tokio::select! {
        biased;
        _ = &mut hanging => panic!("it was answered"),
        other = client.get(format!("{}/other", proxy.url())).send() => drop(other.unwrap().text().await.unwrap()),
    }
    assert_eq!(server.asked.recv().await.unwrap().trim(), "/other");
    assert!(server.asked.try_recv().is_err(), "it reached the server");
    proxy.heal();
    server.pieces.send("").unwrap();
    assert_eq!(soon(hanging).await.unwrap().status(), StatusCode::OK);
    assert_eq!(server.asked.recv().await.unwrap().trim(), "/hang");
}

#[tokio::test]
async fn a_body_under_way_falls_silent_and_is_not_broken_off() {
    let server = server().await;
    let (proxy, client) = proxy(&server).await;
    let answer = soon(client.get(format!("{}/things?watch=true", proxy.url())).send()).await.unwrap();
    let mut pieces = answer.bytes_stream();
    server.pieces.send("first").unwrap();
    assert_eq!(soon(pieces.next()).await.unwrap().unwrap(), "first");
    proxy.spoil(Calls::all().watches(), Fault::Silence);
    server.pieces.send("second").unwrap();
    let mut next = Box::pin(pieces.next());
    // A call that is no watch comes and goes; had the piece been let through, it would have been there before.
    let other = soon(client.get(format!("{}/things", proxy.url())).send()).await.unwrap();
    tokio::select! {
        biased;
        piece = &mut next => panic!("it was let through: {piece:?}"),
        () = std::future::ready(()) => {}
    }
    drop(other);
    proxy.heal();
    assert_eq!(soon(next).await.unwrap().unwrap(), "second");
}

//! What a pass holds of FerrVault's answer: the room in memory that the values take, in whatever form they are by then;
//! and whether the last answer was that nobody knows who asks.
//!
//! Bound to the task of the pass and not to the answer, whose values are moved, transformed, encoded and sent. The end of the
//! sync stage leaves nothing of them, nor does the end of the pass, however it comes; a restart that hangs holds no room.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use ferrvault_vault::Claim;

tokio::task_local! {
    static PASS: Pass;
}

struct Pass {
    namespace: Arc<str>,
    /// A second answer takes the place of the first, which was dropped by then.
    claim: RefCell<Option<Claim>>,
    refused: Cell<bool>,
}

/// Runs a pass over an object of `namespace`; what it claims is given back when it ends or is cut off.
pub(crate) async fn until_the_end<F: Future>(namespace: Arc<str>, pass: F) -> F::Output {
    PASS.scope(Pass { namespace, claim: RefCell::default(), refused: Cell::default() }, pass).await
}

/// The namespace that claims are counted for. Outside of a pass it has no name, and shares with all that have none.
pub(super) fn namespace() -> Arc<str> {
    PASS.try_with(|pass| Arc::clone(&pass.namespace)).unwrap_or_else(|_| Arc::from(""))
}

/// Gives back what the pass has claimed: the stage that held values has returned.
pub(crate) fn nothing_is_left() {
    keep(None);
}

/// Keeps `claim` until nothing is left of the answer. Outside of a pass it is given back at once.
pub(super) fn keep(claim: Option<Claim>) {
    let _ = PASS.try_with(|pass| pass.claim.replace(claim));
}

/// Notes whether FerrVault's last answer to the pass was that it does not accept who asks.
pub(super) fn note(refused: bool) {
    let _ = PASS.try_with(|pass| pass.refused.set(refused));
}

/// Whether it was.
pub(crate) fn token_was_refused() -> bool {
    PASS.try_with(|pass| pass.refused.get()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use ferrvault_core::content::SecretBytes;
    use ferrvault_vault::{Bearer, Endpoint, RevealRequest, Scope};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::super::{FerrVault, Http};
    use super::*;

    #[tokio::test]
    async fn room_for_a_large_answer_is_held_until_nothing_is_left_of_it_or_the_pass_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Endpoint::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let answer = format!(r#"{{"secrets":{{"A":"{}"}}}}"#, "x".repeat(200_000));
        let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", answer.len());
        let server = tokio::spawn(async move {
            loop {
                let (mut asked, _) = listener.accept().await.unwrap();
                // The question is small and arrives in one piece; what it says does not matter.
                assert!(asked.read(&mut [0; 4096]).await.unwrap() > 0);
                asked.write_all(head.as_bytes()).await.unwrap();
                asked.write_all(answer.as_bytes()).await.unwrap();
            }
        });

        let (http, bearer) = (Http::default(), Bearer::new(&SecretBytes::from("fvsat_canary")).unwrap());
        let (vault, names) = ("prod".to_owned(), vec!["A".to_owned()]);
        let scope = Scope::Cloud { organization: "acme".into(), project: "shop".into(), namespace: "shop".into() };
        let request = RevealRequest { scope, vault, names, namespace: None };
        until_the_end("shop".into(), async {
            http.reveal(&endpoint, &bearer, &request).await.unwrap();
            assert!(http.memory().claimed() >= 200_000);
            nothing_is_left();
            assert_eq!(http.memory().claimed(), 0, "whatever the pass still waits for");
            http.reveal(&endpoint, &bearer, &request).await.unwrap();
        })
        .await;
        assert_eq!(http.memory().claimed(), 0);
        server.abort();
    }
}

//! The model answers the whole script word for word as a real kube-apiserver did.
//!
//! The transcript was recorded with `examples/record.rs` from kube-apiserver 1.36.3. When a step is added or changed,
//! it is recorded anew; when the model differs, the model is wrong.

use ferrvault_testkit::{ApiServer, script};

const RECORDED: &str = include_str!("reality/kube-apiserver-1.36.3.txt");

#[tokio::test(start_paused = true)]
async fn the_model_gives_the_transcript_of_a_real_server() {
    let api = ApiServer::default();
    let answers = script::run(&api.client_as("script"), "conformance").await.unwrap();
    let recorded: Vec<&str> = RECORDED.lines().collect();
    let differing: Vec<String> = answers
        .iter()
        .zip(&recorded)
        .filter(|(model, real)| model.as_str() != **real)
        .map(|(model, real)| format!("model: {model}\nreal:  {real}\n"))
        .collect();
    assert!(differing.is_empty(), "{} answers differ:\n{}", differing.len(), differing.join("\n"));
    assert_eq!(answers.len(), recorded.len(), "the recorded transcript belongs to another script");
}

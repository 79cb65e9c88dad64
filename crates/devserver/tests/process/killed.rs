//! SIGKILL at any moment: what was answered is there, what was not is whole or absent.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};

use crate::program::{PATIENCE, Served};

/// One call over a connection that is kept; `None` when the server is gone.
fn call(stream: &mut TcpStream, token: &str, method: &str, path: &str, body: &Value) -> Option<Value> {
    let body = body.to_string();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: h\r\nauthorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut answer = vec![0; length];
    reader.read_exact(&mut answer).ok()?;
    serde_json::from_slice(&answer).ok()
}

fn connect(served: &Served) -> TcpStream {
    let stream = TcpStream::connect(served.url().trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

#[test]
fn a_write_is_durable_when_its_answer_has_arrived() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut served = Served::start(&data, &[]);
    let token = served.token().to_owned();
    let vault = call(&mut connect(&served), &token, "POST", "/dev/v1/vaults", &json!({ "name": "app" })).unwrap();
    for round in 1..=5 {
        let path = format!("/dev/v1/vaults/{}/secrets", vault["id"].as_str().unwrap());
        let body = json!({ "values": { "K": format!("value {round}") } });
        let written = call(&mut connect(&served), &token, "PUT", &path, &body).unwrap();
        served.kill();
        assert_eq!(written[0]["version"], round);
        served = Served::start(&data, &[]);
        assert_eq!(served.token(), token);
        assert_eq!(served.told(&["get", "app", "K", "--show"]), format!("value {round}\n"));
    }
}

#[test]
fn a_kill_between_two_answers_never_leaves_half_a_write() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut served = Served::start(&data, &[]);
    let token = served.token().to_owned();
    served.told(&["vault", "create", "app"]);
    let vault: Value = call(&mut connect(&served), &token, "GET", "/dev/v1/vaults", &Value::Null).unwrap();
    let path = format!("/dev/v1/vaults/{}/secrets", vault[0]["id"].as_str().unwrap());
    let mut first = 1;
    for round in 1..=3_i64 {
        let answered = Arc::new(AtomicI64::new(first - 1));
        let writer = {
            let (answered, token, path, mut stream) =
                (Arc::clone(&answered), token.clone(), path.clone(), connect(&served));
            std::thread::spawn(move || {
                for number in first.. {
                    let body = json!({ "values": { "A": number.to_string(), "B": number.to_string() } });
                    if call(&mut stream, &token, "PUT", &path, &body).is_none() {
                        break;
                    }
                    answered.store(number, Ordering::SeqCst);
                }
            })
        };
        let start = std::time::Instant::now();
        while answered.load(Ordering::SeqCst) < first + 10 * round {
            assert!(start.elapsed() < PATIENCE, "no writes");
            std::thread::yield_now();
        }
        served.kill();
        writer.join().unwrap();
        served = Served::start(&data, &[]);
        let shown = |key: &str| served.told(&["get", "app", key, "--show"]).trim().parse::<i64>().unwrap();
        let (a, b) = (shown("A"), shown("B"));
        let answered = answered.load(Ordering::SeqCst);
        assert_eq!(a, b, "both keys are of the same write");
        assert!((answered..=answered + 1).contains(&a), "{a} is there, {answered} was answered");
        first = a + 1;
    }
}

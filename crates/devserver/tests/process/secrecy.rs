//! No value and no token is ever printed unasked: not by the server at its most talkative, not by a verb, not in an error.

use std::os::unix::fs::PermissionsExt as _;

use crate::program::{Served, program, run};

const CANARY: &str = "canary-4f1d9c";

#[test]
fn nothing_that_is_printed_or_told_to_tests_holds_a_value_or_a_token() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(&dir.path().join("data"), &[]);
    let value = format!("A={CANARY}");
    let mut said = Vec::new();
    let mut verb = |arguments: &[&str]| {
        let output = served.verb(arguments);
        said.extend([output.stdout, output.stderr].concat());
    };
    verb(&["vault", "create", "app"]);
    verb(&["set", "app", &value]);
    verb(&["set", "app", CANARY]);
    verb(&["set", "nowhere", &value]);
    verb(&["set", "app", &value, &value]);
    verb(&["rotate", "app", "B"]);
    verb(&["get", "app", "A"]);
    verb(&["list", "app"]);
    verb(&["token", "list"]);
    verb(&["token", "revoke", CANARY]);
    verb(&["token", "revoke", served.token()]);
    verb(&["list", "app", "--token", CANARY]);
    verb(&["rotate", "app", "B", "--bytes", "0", "--token", CANARY]);
    verb(&["--help"]);

    let http = |method: &str, path: &str, body: &str| {
        let address = served.url().trim_start_matches("http://");
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{body}",
            served.token(),
            body.len()
        );
        exchange(address, &request)
    };
    for body in [
        format!(r#"{{"vault":"app","name":"N","value":["{CANARY}"]}}"#),
        format!(r#"{{"vault":"app","name":"N","value":"{CANARY}""#),
        format!(r#"{{"vault":"app","name":"A","value":"{CANARY}"}}"#),
        format!(r#"{{"vault":{{"{CANARY}":1}}}}"#),
        format!(r#"{{"cluster_id":"x","token":"{CANARY}"}}"#),
        format!("{CANARY}\r\n"),
    ] {
        said.extend(http("POST", "/v1/operator/secrets", &body).into_bytes());
        said.extend(http("PUT", "/v1/operator/secrets/N", &body).into_bytes());
        said.extend(http("POST", "/api/v1/clusters/oidc-exchange", &body).into_bytes());
        said.extend(http("POST", "/dev/v1/tokens", &body).into_bytes());
    }
    // Values in places where none belong.
    let names = format!(r#"{{"vault":"app","names":"{CANARY}"}}"#);
    said.extend(http("POST", "/v1/operator/secrets/reveal", &names).into_bytes());
    said.extend(http("GET", &format!("/{CANARY}"), "").into_bytes());
    let admin = served.ready["admin_url"].as_str().unwrap().trim_start_matches("http://");
    for path in ["/requests", "/counters", "/rules"] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: {admin}\r\nconnection: close\r\n\r\n");
        said.extend(exchange(admin, &request).into_bytes());
    }
    let everything = format!("{}{}", String::from_utf8_lossy(&said), served.printed());
    assert!(everything.contains("SECRET_EXISTS"), "the calls were made");
    assert!(everything.contains("oidc-exchange"), "the requests were shown");
    for secret in [CANARY, served.token()] {
        assert!(!everything.contains(secret), "{everything}");
    }
    // It did get through where it belongs.
    assert_eq!(served.told(&["get", "app", "A", "--show"]).trim(), CANARY);
}

#[test]
fn files_with_a_token_are_for_the_owner_only() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let served = Served::start(&data, &["--tls"]);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    for private in
        [data.join("admin-token"), data.join("ca-key.pem"), data.join("server.json"), data.with_extension("ready")]
    {
        assert_eq!(mode(&private), 0o600, "{}", private.display());
    }
    assert_eq!(std::fs::read_to_string(data.join("admin-token")).unwrap().trim(), served.token());
}

#[test]
fn help_teaches_every_verb_and_hides_what_the_environment_holds() {
    let help = |arguments: &[&str]| {
        let output = run(program().args(arguments).env("FERRVAULT_DEV_TOKEN", CANARY), "");
        assert!(output.status.success(), "{arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let top = help(&["--help"]);
    for verb in ["serve", "vault", "set", "rotate", "unset", "list", "get", "token", "cluster"] {
        assert!(top.contains(verb), "{verb}");
        let own = help(&[verb, "--help"]);
        assert!(own.contains("Usage: ferrvault-dev") && !own.contains(CANARY), "{own}");
    }
    assert!(!top.contains(CANARY));
    assert!(help(&["set", "--help"]).contains("CERT=@tls.crt"));
    assert!(help(&["token", "create", "--help"]).contains("ferrvault-dev token create --vault app"));
    assert!(help(&["token", "revoke", "--help"]).contains("ferrvault-dev token revoke 1b4e28ba"));
    assert!(help(&["serve", "--help"]).contains("[default: 15m]"));
}

fn exchange(address: &str, request: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(crate::program::PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

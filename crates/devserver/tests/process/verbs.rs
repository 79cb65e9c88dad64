//! The verbs, as a person types them.

use serde_json::Value;

use crate::program::{Served, program, run};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn from_nothing_to_a_revealed_value() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(&dir.path().join("data"), &[]);
    let greeting = served.printed();
    for shown in
        [served.url(), served.ready["admin_url"].as_str().unwrap(), "vault create app", "token create --vault app"]
    {
        assert!(greeting.contains(shown), "{shown} is not in {greeting}");
    }
    assert_eq!(served.ready["ca"], Value::Null);

    assert!(served.told(&["vault", "create", "app"]).contains("default/default"));
    assert_eq!(
        served.told(&["set", "app", "A=canary-one", "B=two=2"]),
        "app: A is at version 1\napp: B is at version 1\n"
    );
    let listed = served.told(&["list", "app"]);
    let lines: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().take(2).collect()).collect();
    assert_eq!(lines, [["NAME", "VERSION"], ["A", "1"], ["B", "1"]]);
    assert!(!served.told(&["get", "app", "A"]).contains("canary"));
    assert_eq!(served.told(&["get", "app", "A", "--show"]), "canary-one\n");

    let rotated = served.told(&["rotate", "app", "A", "--bytes", "9"]);
    assert_eq!(rotated, "app: A is at version 2\n");
    let new = served.told(&["get", "app", "A", "--show"]);
    assert_eq!(new.trim().len(), 12, "9 bytes are 12 characters of base64url");
    assert_ne!(new, "canary-one\n");
    assert_eq!(served.told(&["unset", "app", "A", "B"]), "app: A is deleted\napp: B is deleted\n");
    assert_eq!(served.told(&["list", "app"]).lines().count(), 1);
    assert!(served.terminate().success());
    assert!(!dir.path().join("data/server.json").exists());
}

#[test]
fn values_come_from_arguments_files_and_standard_input_byte_for_byte() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(&dir.path().join("data"), &[]);
    served.told(&["vault", "create", "app"]);
    let file = dir.path().join("value");
    std::fs::write(&file, "line\n").unwrap();
    let from_file = format!("F=@{}", file.display());
    let set = served.verb_with_input(&["set", "app", "S=-", &from_file, "AT=@@x"], "from \u{fc}\r\n\r\n");
    assert!(set.status.success());
    assert!(text(&set.stdout).contains("note: the value of F ends with a newline"));
    for (key, shown) in [("S", "from \u{fc}\r\n\r\n\n"), ("F", "line\n\n"), ("AT", "@x\n")] {
        assert_eq!(served.told(&["get", "app", key, "--show"]), shown, "{key}");
    }
}

#[test]
fn mistakes_say_what_to_change() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let nobody = run(program().args(["vault", "list", "--data"]).arg(&data), "");
    assert!(text(&nobody.stderr).contains("ferrvault-dev serve --data"), "{}", text(&nobody.stderr));
    let served = Served::start(&data, &[]);
    served.told(&["vault", "create", "twice"]);
    served.told(&["vault", "create", "twice", "--organization", "acme", "--project", "shop"]);
    let cases: [(&[&str], &str); 10] = [
        (&["set", "app", "A=b"], "vault create app"),
        (&["vault", "create", "twice"], "default/default already"),
        (&["list", "twice"], "acme/shop, default/default"),
        (&["unset", "twice", "A", "--project", "default"], "no secret \"A\""),
        (&["rotate", "twice", "A", "--project", "default"], "make it with `set`"),
        (&["get", "twice", "A", "--project", "default"], "see `list`"),
        (&["get", "twice", "A", "--show", "--project", "default"], "see `list`"),
        (&["vault", "list", "--token", "fft_wrong"], "check --token"),
        (&["vault", "list", "--server", "http://127.0.0.1:1"], "cannot reach http://127.0.0.1:1/"),
        (&["token", "create", "--vault", "twice", "--project", "shop", "--expires-in", "0s"], "--expires-in"),
    ];
    for (arguments, expected) in cases {
        let said = served.refused(arguments);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
    let taken = served.url().trim_start_matches("http://").to_owned();
    let second = run(program().args(["serve", "--listen", &taken, "--data"]).arg(dir.path().join("other")), "");
    assert!(text(&second.stderr).contains("cannot listen on"), "{}", text(&second.stderr));
    let same_data = run(program().args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(&data), "");
    assert!(text(&same_data.stderr).contains("in use by another server"), "{}", text(&same_data.stderr));
    let admin = run(program().args(["serve", "--admin", "0.0.0.0:0", "--data"]).arg(dir.path().join("other")), "");
    assert!(text(&admin.stderr).contains("loopback only"), "{}", text(&admin.stderr));
}

#[test]
fn tokens_vaults_and_clusters_are_made_listed_and_taken_away() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(&dir.path().join("data"), &[]);
    served.told(&["vault", "create", "app"]);
    let account = served.told(&["token", "create", "--vault", "app", "--role", "writer", "--label", "mine"]);
    let cluster = served.told(&["token", "create", "--organization", "acme"]);
    let user = served.told(&["token", "create", "--kind", "user", "--role", "admin", "--expires-in", "24h"]);
    for (token, prefix) in [(&account, "fvsat_"), (&cluster, "ffclust_"), (&user, "fft_")] {
        assert!(token.starts_with(prefix) && token.lines().count() == 1);
    }
    // The token of an account is enough to write with.
    served.told(&["set", "app", "A=b", "--token", account.trim()]);
    assert!(served.refused(&["vault", "create", "x", "--token", account.trim()]).contains("403"));
    let listed = served.told(&["token", "list"]);
    assert!(!listed.contains(account.trim()));
    let id = listed.lines().find(|line| line.contains("mine")).unwrap().split_whitespace().next().unwrap();
    served.told(&["token", "revoke", id]);
    assert!(served.refused(&["list", "app", "--token", account.trim()]).contains("401"));

    let jwks = dir.path().join("jwks.json");
    std::fs::write(
        &jwks,
        r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#,
    )
    .unwrap();
    let jwks = jwks.to_str().unwrap();
    let registered =
        served.told(&["cluster", "register", "--issuer", "https://kubernetes.default.svc", "--jwks-file", jwks]);
    let cluster_id = registered.split_whitespace().nth(1).unwrap();
    assert!(
        served.told(&["cluster", "list"]).contains(&format!("{cluster_id}  default, https://kubernetes.default.svc"))
    );
    served.told(&["cluster", "remove", cluster_id]);
    assert_eq!(served.told(&["cluster", "list"]).lines().count(), 1);
    std::fs::write(jwks, "{}").unwrap();
    let keyless = served.refused(&["cluster", "register", "--issuer", "x", "--jwks-file", jwks]);
    assert!(keyless.contains("not a JWKS document"), "{keyless}");

    assert!(served.told(&["vault", "list"]).contains("default       default  app"));
    served.told(&["vault", "delete", "app"]);
    assert!(!served.told(&["vault", "list"]).contains("app"));
}

#[test]
fn tls_needs_no_further_option_and_the_environment_names_another_server() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(&dir.path().join("data"), &["--tls"]);
    assert!(served.url().starts_with("https://"));
    let ca = served.ready["ca"].as_str().unwrap();
    assert!(served.printed().contains(ca));
    served.told(&["vault", "create", "app"]);
    let elsewhere = |ca: &str| {
        let mut command = program();
        command
            .args(["vault", "list", "--data"])
            .arg(dir.path().join("none"))
            .env("FERRVAULT_DEV_URL", served.url())
            .env("FERRVAULT_DEV_TOKEN", served.token())
            .env("FERRVAULT_DEV_CA", ca);
        run(&mut command, "")
    };
    assert!(text(&elsewhere(ca).stdout).contains("app"));
    let missing = elsewhere("/nowhere/ca.pem");
    assert!(text(&missing.stderr).contains("/nowhere/ca.pem"));
}

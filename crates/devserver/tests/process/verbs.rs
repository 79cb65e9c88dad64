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
    let line = listed.lines().find(|line| line.contains("mine")).unwrap();
    assert!(line.contains("  vault default/default/app ("), "{line}");
    let id = line.split_whitespace().next().unwrap();
    let revoked = served.told(&["token", "revoke", &id.to_uppercase()]);
    assert!(revoked.starts_with(&format!("token {id} revoked: writer of vault default/default/app (")), "{revoked}");
    assert!(revoked.trim().ends_with(", mine"), "{revoked}");
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
    let again = served.refused(&["cluster", "remove", cluster_id]);
    assert!(again.contains("there is no cluster with this identifier; see `cluster list`"), "{again}");
    assert_eq!(served.told(&["cluster", "list"]).lines().count(), 1);
    std::fs::write(jwks, "{}").unwrap();
    let keyless = served.refused(&["cluster", "register", "--issuer", "x", "--jwks-file", jwks]);
    assert!(keyless.contains("not a JWKS document"), "{keyless}");

    assert!(served.told(&["vault", "list"]).contains("default       default  app"));
    served.told(&["token", "create", "--vault", "app", "--label", "orphan"]);
    served.told(&["vault", "delete", "app"]);
    assert!(!served.told(&["vault", "list"]).contains("app"));
    let listed = served.told(&["token", "list"]);
    let orphan = listed.lines().find(|line| line.ends_with(", orphan")).unwrap();
    assert!(orphan.contains("a vault that was deleted ("), "{orphan}");
}

#[test]
fn a_token_that_was_made_can_be_revoked_by_what_was_printed_and_only_once() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(&dir.path().join("data"), &[]);
    served.told(&["vault", "create", "app"]);
    let made = served.verb(&["token", "create", "--vault", "app"]);
    let (token, told) = (text(&made.stdout), text(&made.stderr));
    assert_eq!(token.lines().count(), 1, "alone on standard output, for `> token`");
    assert!(!told.contains(token.trim()), "the token is printed once");
    let id = told.split_whitespace().last().unwrap();
    assert!(told.contains(&format!("ferrvault-dev token revoke {id}")), "{told}");
    served.told(&["token", "revoke", id]);
    let again = served.refused(&["token", "revoke", id]);
    assert!(again.contains(&format!("there is no token {id}: it was revoked already")), "{again}");
    assert!(again.contains("`token list`"), "{again}");
    // The token in the place of its identifier, which must not be repeated.
    for wrong in [token.trim(), "made with ferrvault-dev"] {
        let said = served.refused(&["token", "revoke", wrong]);
        assert!(said.contains("by its identifier") && !said.contains(wrong), "{said}");
    }
}

#[test]
fn times_that_are_none_are_refused_in_words_that_help() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(&dir.path().join("data"), &[]);
    for (span, expected) in [
        ("soon", "--expires-in \"soon\" is no time: write a number with s, m or h"),
        ("7d", "a day is 24h"),
        ("-5m", "--expires-in -5m cannot be used: it is a time from 1s"),
        ("2000000h", "--expires-in 2000000h cannot be used"),
    ] {
        let said = served.refused(&["token", "create", "--expires-in", span]);
        assert!(said.contains(expected), "{span}: {said}");
    }
    let unbound = served.refused(&["token", "create", "--kind", "service-account"]);
    assert!(unbound.contains("--kind service-account needs --vault NAME"), "{unbound}");
    for lifetime in ["soon", "-1m"] {
        let other = dir.path().join("other");
        let refused = run(program().args(["serve", "--bearer-lifetime", lifetime, "--data"]).arg(other), "");
        assert!(text(&refused.stderr).contains("--bearer-lifetime"), "{}", text(&refused.stderr));
        assert!(!text(&refused.stderr).contains("jiff") && refused.status.code() == Some(1));
    }
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

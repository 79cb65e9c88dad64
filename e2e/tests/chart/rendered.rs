//! Without a cluster: values, flags, refusals.

use std::collections::BTreeSet;
use std::ffi::OsString;

use ferrvault_operator::args::Args;
use ferrvault_operator::settings::Settings;
use ferrvault_vault::RetryPolicy;
use serde_json::{Value, json};
use tempfile::TempDir;
use xtask::control_plane::{Binaries, Component, Tools};
use xtask::test_run::skip;

use crate::{HOME, RELEASE, chart};

/// Helm without a cluster; nothing when the assets have none, which `test` then notes.
pub(crate) fn helm(test: &str) -> Option<(Tools, TempDir)> {
    let binaries = Binaries::locate(None).unwrap();
    if !binaries.has(Component::Helm) {
        skip(test, "no helm");
        return None;
    }
    let home = tempfile::tempdir().unwrap();
    // An empty kubeconfig: what is asked here must not reach any cluster.
    let nowhere = home.path().join("kubeconfig");
    std::fs::write(&nowhere, "apiVersion: v1\nkind: Config\n").unwrap();
    Some((Tools::new(binaries, Some(nowhere), None, home.path().to_owned()), home))
}

/// The objects that the chart renders with these values, or Helm's refusal.
pub(crate) async fn render(tools: &Tools, values: &[&str]) -> Result<Vec<Value>, String> {
    render_set(tools, "--set", values).await
}

/// The same, with every value a text.
async fn render_texts(tools: &Tools, values: &[&str]) -> Result<Vec<Value>, String> {
    render_set(tools, "--set-string", values).await
}

async fn render_set(tools: &Tools, set: &str, values: &[&str]) -> Result<Vec<Value>, String> {
    let chart = chart();
    let mut args = vec!["template", RELEASE, &chart, "-n", HOME, "--kube-version", "1.33.0"];
    for value in values {
        args.extend([set, value]);
    }
    let text = tools.helm(args).await.map_err(|error| error.to_string())?;
    let documents = text.split("\n---\n").map(|document| document.trim_start_matches("---\n"));
    let objects = documents.map(|document| serde_saphyr::from_str::<Value>(document).unwrap());
    Ok(objects.filter(|object| !object.is_null()).collect())
}

fn kinds(objects: &[Value]) -> BTreeSet<&str> {
    objects.iter().map(|object| object["kind"].as_str().unwrap()).collect()
}

pub(crate) fn the<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let mut found = objects.iter().filter(|object| object["kind"] == kind);
    let one = found.next().unwrap_or_else(|| panic!("no {kind}"));
    assert!(found.next().is_none(), "more than one {kind}");
    one
}

fn args(objects: &[Value]) -> Vec<&str> {
    let container = &the(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0];
    container["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect()
}

/// Each rule as (group, resource, verb, name), one by one.
fn grants(role: &Value) -> BTreeSet<(String, String, String, String)> {
    let texts = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let mut grants = BTreeSet::new();
    for rule in role["rules"].as_array().unwrap() {
        let names = if rule["resourceNames"].is_null() { vec![String::new()] } else { texts(&rule["resourceNames"]) };
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                for verb in texts(&rule["verbs"]) {
                    let grant = |name: &String| (group.clone(), resource.clone(), verb.clone(), name.clone());
                    grants.extend(names.iter().map(grant));
                }
            }
        }
    }
    grants
}

#[tokio::test]
async fn lint_has_nothing_to_say() {
    let Some((tools, _home)) = helm("lint_has_nothing_to_say") else { return };
    let said = tools.helm(["lint", "--strict", "--quiet", &chart()]).await.unwrap();
    assert!(!said.contains("WARNING") && !said.contains("ERROR"), "{said}");
}

#[tokio::test]
async fn by_default_everything_is_there_and_runs_with_no_rights_of_its_own() {
    let Some((tools, _home)) = helm("by_default_everything_is_there") else { return };
    let objects = render(&tools, &[]).await.unwrap();
    let all = [
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "Deployment",
        "Role",
        "RoleBinding",
        "Service",
        "ServiceAccount",
    ];
    assert_eq!(kinds(&objects), BTreeSet::from(all));
    for object in objects.iter().filter(|object| object["kind"] != "CustomResourceDefinition") {
        let cluster_wide = object["kind"].as_str().unwrap().starts_with("Cluster");
        let home = if cluster_wide { Value::Null } else { json!(HOME) };
        assert_eq!(object["metadata"]["namespace"], home, "{object}");
        assert!(object["metadata"]["name"].as_str().unwrap().starts_with(RELEASE), "{object}");
    }

    let expected = [
        "--metrics-bind-address=:8080",
        "--health-probe-bind-address=:8081",
        "--leader-elect",
        "--leader-elect-id=ferrvault-operator.ferrvault.com",
        "--default-refresh-interval=1h",
        "--stall-threshold=15m",
        "--reconcile-timeout=2m",
        "--log-level=info",
        "--key-secret=ferrvault-operator-key",
    ];
    assert_eq!(args(&objects), expected);

    let pod = &the(&objects, "Deployment")["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["runAsUser"], 65532);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false);
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(container["securityContext"]["capabilities"], json!({"drop": ["ALL"]}));
    assert_eq!(container["resources"]["requests"], json!({"cpu": "100m", "memory": "128Mi"}));
    assert_eq!(container["resources"]["limits"], json!({"cpu": "500m", "memory": "256Mi"}));
    let probe = |name: &str| {
        let probe = &container[name];
        (&probe["httpGet"]["path"], &probe["initialDelaySeconds"], &probe["periodSeconds"])
    };
    assert_eq!(probe("livenessProbe"), (&json!("/healthz"), &json!(15), &json!(20)));
    assert_eq!(probe("readinessProbe"), (&json!("/readyz"), &json!(5), &json!(10)));
    assert!(pod["volumes"].is_null(), "the operator's identity is mounted only on request");
}

#[tokio::test]
async fn values_reach_the_flags_and_what_is_off_is_not_there() {
    let Some((tools, _home)) = helm("values_reach_the_flags") else { return };
    let cases: [(&[&str], &[&str], &[&str]); 10] = [
        (&["watchNamespace=shop"], &["--watch-namespace=shop"], &[]),
        (&["leaderElection.enabled=false"], &[], &["--leader-elect"]),
        (&["leaderElection.id=mine"], &["--leader-elect-id=mine"], &["--leader-elect-l", "--leader-elect-r"]),
        (
            &["leaderElection.leaseDuration=30s", "leaderElection.renewDeadline=20s", "leaderElection.retryPeriod=10s"],
            &[
                "--leader-elect-lease-duration=30s",
                "--leader-elect-renew-deadline=20s",
                "--leader-elect-retry-period=10s",
            ],
            &[],
        ),
        (&["leaderElection.enabled=false", "leaderElection.leaseDuration=30s"], &[], &["--leader-elect"]),
        (&["oidcToken.allowOrigins={https://a.example.com/b}"], &["--allow-origin=https://a.example.com/b"], &[]),
        (&["metrics.enabled=false"], &["--metrics-bind-address=0"], &[]),
        (
            &["metrics.port=9000", "probe.port=9001"],
            &["--metrics-bind-address=:9000", "--health-probe-bind-address=:9001"],
            &[],
        ),
        (
            &["defaultRefreshInterval=30m", "stallThreshold=20m", "reconcileTimeout=3m", "logLevel=debug"],
            &["--default-refresh-interval=30m", "--stall-threshold=20m", "--reconcile-timeout=3m", "--log-level=debug"],
            &[],
        ),
        (&["extraArgs={--log-format=json}", "keySecretName=k"], &["--log-format=json", "--key-secret=k"], &[]),
    ];
    for (values, present, absent) in cases {
        let objects = render(&tools, values).await.unwrap();
        let args = args(&objects);
        assert!(present.iter().all(|flag| args.contains(flag)), "{values:?}: {args:?}");
        assert!(!args.iter().any(|arg| absent.iter().any(|flag| arg.starts_with(flag))), "{values:?}: {args:?}");
    }

    let off = ["crds.install=false", "rbac.create=false", "serviceAccount.create=false", "metrics.enabled=false"];
    let objects = render(&tools, &off).await.unwrap();
    assert_eq!(kinds(&objects), BTreeSet::from(["Deployment"]));
    assert_eq!(the(&objects, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"], "default");

    let kept = |objects: &[Value]| {
        let crds = objects.iter().filter(|object| object["kind"] == "CustomResourceDefinition");
        crds.map(|crd| crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep").collect::<Vec<_>>()
    };
    assert_eq!(kept(&render(&tools, &[]).await.unwrap()), [true, true]);
    assert_eq!(kept(&render(&tools, &["crds.keep=false"]).await.unwrap()), [false, false]);

    let identity = ["oidcToken.enabled=true", "oidcToken.allowOrigins={https://api.example.com}"];
    let objects = render(&tools, &identity).await.unwrap();
    assert!(args(&objects).contains(&"--allow-origin=https://api.example.com"));
    let pod = &the(&objects, "Deployment")["spec"]["template"]["spec"];
    let token = &pod["volumes"][0]["projected"]["sources"][0]["serviceAccountToken"];
    assert_eq!(token, &json!({"path": "token", "audience": "https://ferrflow.com", "expirationSeconds": 3600}));
    assert_eq!(pod["containers"][0]["volumeMounts"][0]["mountPath"], "/var/run/secrets/ferrvault");
}

#[tokio::test]
async fn values_that_cannot_work_are_refused_with_the_reason() {
    let Some((tools, _home)) = helm("values_that_cannot_work_are_refused") else { return };
    for (values, words) in [
        (&["watchNamspace=shop"][..], "watchNamspace"),
        (&["watchNamespace=a\\,b"], "/watchNamespace"),
        (&["defaultRefreshInterval=-1s"], "/defaultRefreshInterval"),
        (&["reconcileTimeout=soon"], "/reconcileTimeout"),
        (&["defaultRefreshInterval=30"], "defaultRefreshInterval=30 is no duration: a number needs its unit"),
        (&["logLevel=loud"], "logLevel=loud is no level: use error, warn, info, debug or trace"),
        (&["logLevel=0"], "/logLevel"),
        (&["reconcileTimeout=30s"], "reconcileTimeout=30s is too short: it has to be at least 30.625s"),
        (&["stallThreshold=5m"], "stallThreshold=5m is too short: it has to be more than 10m"),
        (
            &["stallThreshold=20m", "reconcileTimeout=20m"],
            "stallThreshold=20m is too short: it has to be more than reconcileTimeout=20m",
        ),
        (
            &["leaderElection.leaseDuration=10s"],
            "leaderElection.leaseDuration=10s is too short: it has to be at least leaderElection.renewDeadline=10s and a tenth",
        ),
        (
            &["leaderElection.retryPeriod=10s"],
            "leaderElection.renewDeadline=10s is too short: it has to be at least leaderElection.retryPeriod=10s and a tenth",
        ),
        (
            &["leaderElection.retryPeriod=50ms"],
            "leaderElection.retryPeriod=50ms is too short: it has to be at least 100ms",
        ),
        (
            &["leaderElection.leaseDuration=2h"],
            "leaderElection.leaseDuration=2h cannot be used: it has to be whole seconds, and one hour at most",
        ),
        (&["metrics.port=0"], "/metrics/port"),
        (&["metrics.port=65536"], "/metrics/port"),
        (&["probe.port=8080"], "metrics.port and probe.port are both 8080"),
        (&["replicaCount=-1"], "/replicaCount"),
        (&["replicaCount=2", "leaderElection.enabled=false"], "needs leaderElection.enabled=true"),
        (&["oidcToken.enabled=true"], "needs oidcToken.allowOrigins"),
        (&["metrics.serviceMonitor.intervall=1m"], "intervall"),
        (&["metrics.serviceMonitor.enabled=true", "metrics.enabled=false"], "needs metrics.enabled"),
        (&["metrics.prometheusRule.enabled=true", "metrics.enabled=false"], "needs metrics.enabled"),
        (
            &["metrics.prometheusRule.enabled=true", "reconcileTimeout=0h4m60s"],
            "stuckAfterSeconds=300 must be above reconcileTimeout",
        ),
        (
            &["metrics.prometheusRule.enabled=true", "metrics.prometheusRule.stuckAfterSeconds=900"],
            "stuckAfterSeconds=900 must be below stallThreshold=15m",
        ),
        (
            &["metrics.serviceMonitor.enabled=true", "metrics.serviceMonitor.interval=9s"],
            "scrapeTimeout=10s must not be above metrics.serviceMonitor.interval=9s",
        ),
    ] {
        let refused = render(&tools, values).await.expect_err("refused");
        assert!(refused.contains(words), "{values:?}: {refused}");
    }
}

/// Whether the operator would start with these values, and how it is said to it: each value with its flag.
fn operator_takes(values: &[(&str, &str)]) -> bool {
    let flag = |(path, value): &(&str, &str)| {
        let name = match *path {
            "defaultRefreshInterval" => "default-refresh-interval",
            "stallThreshold" => "stall-threshold",
            "reconcileTimeout" => "reconcile-timeout",
            "logLevel" => "log-level",
            "keySecretName" => "key-secret",
            "watchNamespace" => "watch-namespace",
            "leaderElection.id" => "leader-elect-id",
            "leaderElection.leaseDuration" => "leader-elect-lease-duration",
            "leaderElection.renewDeadline" => "leader-elect-renew-deadline",
            "leaderElection.retryPeriod" => "leader-elect-retry-period",
            "oidcToken.allowOrigins[0]" => "allow-origin",
            other => panic!("no flag is known for {other}"),
        };
        OsString::from(format!("--{name}={value}"))
    };
    let line = ["ferrvault-operator", "--leader-elect"].map(OsString::from).into_iter().chain(values.iter().map(flag));
    Settings::check(&Args::read(line).unwrap(), &RetryPolicy::default()).is_ok()
}

#[tokio::test]
async fn the_chart_takes_exactly_what_the_operator_takes() {
    let Some((tools, _home)) = helm("the_chart_takes_exactly_what_the_operator_takes") else { return };
    let one = |path: &'static str, values: &[&'static str]| -> Vec<Vec<(&'static str, &'static str)>> {
        values.iter().map(|value| vec![(path, *value)]).collect()
    };
    let lease = |duration: &'static str, deadline: &'static str, period: &'static str| {
        vec![
            ("leaderElection.leaseDuration", duration),
            ("leaderElection.renewDeadline", deadline),
            ("leaderElection.retryPeriod", period),
        ]
    };
    let both = |pass: &'static str, stall: &'static str| vec![("reconcileTimeout", pass), ("stallThreshold", stall)];
    let spellings = [
        "2m",
        "1h30m",
        "90s",
        "1.5h",
        "0",
        "0s",
        "+1h",
        "500\u{b5}s",
        "1.h",
        ".5h",
        "010m",
        "",
        "-1s",
        "1d",
        "h",
        "soon",
        "5 m",
    ];
    let cases = [
        one("logLevel", &["warn", "Warning", "TRACE", "panic", "1", "255", "0", "256", "loud", "off"]),
        one("defaultRefreshInterval", &spellings),
        one("reconcileTimeout", &["30.625s", "30s625ms", "0.5m.625s", "30.624999999s", "0.5104166666666666667m", "0"]),
        one("stallThreshold", &["10m", "10m1ns", "010m1ns", "600.000000001s", "10m0.5ns", "9m60s", "12h", "-15m"]),
        vec![
            both("20m", "20m"),
            both("20m", "20m1ns"),
            both("1200s", "20m1us"),
            both("3h", "2.5h"),
            both("10000h", "10000h1ns"),
        ],
        vec![
            lease("11s", "10s", "9s"),
            lease("66s", "1m", "5s"),
            lease("65s", "1m", "5s"),
            lease("3s", "2s", "100ms"),
            lease("11s", "10s1ms", "5s"),
            lease("15s", "5999ms", "5s"),
            lease("15s", "10s", "99ms"),
            lease("15500ms", "10s", "5s"),
            lease("15000ms", "10s", "5s"),
            lease("1h", "10s", "5s"),
            lease("3601s", "10s", "5s"),
            lease("1m", "33.000000003s", "30.000000003s"),
            lease("1m", "33.000000002s", "30.000000003s"),
        ],
        one("leaderElection.id", &["a.b-c", "a..b", "a.-b", "-a", "A"]),
        one("keySecretName", &["k", "k.", "k-.l"]),
        one("watchNamespace", &["shop", "a.b", "shop-"]),
        one(
            "oidcToken.allowOrigins[0]",
            &[
                "HTTPS://Vault.Example.com:443/",
                "https://v/a/b",
                "ftp://v",
                "https://u:p@v",
                "https://v?a",
                "https://v/a#b",
            ],
        ),
    ];
    for values in cases.concat() {
        let set: Vec<String> = values.iter().map(|(path, value)| format!("{path}={value}")).collect();
        let rendered = render_texts(&tools, &set.iter().map(String::as_str).collect::<Vec<_>>()).await;
        assert_eq!(rendered.is_ok(), operator_takes(&values), "{set:?}: {:?}", rendered.err());
    }
}

#[tokio::test]
async fn what_extra_arguments_say_again_is_left_to_the_operator() {
    let Some((tools, _home)) = helm("what_extra_arguments_say_again") else { return };
    for values in [
        ["stallThreshold=5m", "extraArgs={--stall-threshold=20m}"],
        ["logLevel=loud", "extraArgs={--zap-log-level=debug}"],
        ["leaderElection.leaseDuration=10s", "extraArgs={--leader-elect=false}"],
    ] {
        assert!(render(&tools, &values[..1]).await.is_err(), "{values:?}");
        let objects = render(&tools, &values).await.unwrap();
        let line = std::iter::once("ferrvault-operator").chain(args(&objects)).map(OsString::from);
        assert!(Settings::check(&Args::read(line).unwrap(), &RetryPolicy::default()).is_ok(), "{values:?}");
    }
    // A number may be written as one.
    let objects = render(&tools, &["logLevel=1", "defaultRefreshInterval=0"]).await.unwrap();
    assert!(["--log-level=1", "--default-refresh-interval=0"].iter().all(|flag| args(&objects).contains(flag)));
}

#[tokio::test]
async fn the_prometheus_operator_finds_service_and_rules_by_the_labels_that_it_is_given() {
    let Some((tools, _home)) = helm("the_prometheus_operator_finds_service_and_rules") else { return };
    let values = [
        "metrics.serviceMonitor.enabled=true",
        "metrics.serviceMonitor.labels.release=monitoring",
        "metrics.serviceMonitor.interval=1m",
        "metrics.serviceMonitor.scrapeTimeout=",
        "metrics.prometheusRule.enabled=true",
        "metrics.prometheusRule.labels.team=b",
        "metrics.prometheusRule.stuckAfterSeconds=600",
        "reconcileTimeout=5m30s",
        "probe.port=9001",
    ];
    let objects = render(&tools, &values).await.unwrap();
    let (monitor, service) = (the(&objects, "ServiceMonitor"), the(&objects, "Service"));
    assert_eq!(monitor["metadata"]["labels"]["release"], "monitoring");
    let wanted = monitor["spec"]["selector"]["matchLabels"].as_object().unwrap();
    assert!(wanted.iter().all(|(label, value)| service["metadata"]["labels"][label] == *value), "{wanted:?}");
    assert_eq!(monitor["spec"]["namespaceSelector"], json!({"matchNames": [HOME]}));
    let endpoint =
        json!({"port": service["spec"]["ports"][0]["name"], "path": "/metrics", "honorLabels": true, "interval": "1m"});
    assert_eq!(monitor["spec"]["endpoints"], json!([endpoint]));

    let rule = the(&objects, "PrometheusRule");
    assert_eq!(rule["metadata"]["labels"]["team"], "b");
    let text = rule["spec"].to_string();
    for filled_in in ["> 600", &format!("-n {HOME} get deploy"), ":9001/proxy/readyz", &format!("{HOME}:{RELEASE}-")] {
        assert!(text.contains(filled_in), "{filled_in}: {text}");
    }
    let selector =
        format!("{{namespace=\\\"{HOME}\\\", job=\\\"{}\\\"}}", service["metadata"]["name"].as_str().unwrap());
    assert!(text.contains(&selector), "{selector}: {text}");
    assert!(!text.contains("%stuck") && !text.contains("%name") && !text.contains("%s"), "{text}");

    // Who scrapes in another way labels in another way.
    let objects = render(&tools, &["metrics.prometheusRule.enabled=true"]).await.unwrap();
    assert!(!kinds(&objects).contains("ServiceMonitor"));
    assert!(the(&objects, "PrometheusRule")["spec"].to_string().contains("absent(ferrvault_operator_build_info)"));
}

#[tokio::test]
async fn a_watched_namespace_means_roles_there_with_the_same_verbs_and_no_cluster_role() {
    let Some((tools, _home)) = helm("a_watched_namespace_means_roles_there") else { return };
    let everywhere = render(&tools, &[]).await.unwrap();
    let one = render(&tools, &["watchNamespace=shop"]).await.unwrap();
    assert!(!kinds(&one).iter().any(|kind| kind.starts_with("ClusterRole")), "{:?}", kinds(&one));
    let in_shop: Vec<_> =
        one.iter().filter(|object| object["metadata"]["namespace"] == "shop").map(|object| &object["kind"]).collect();
    assert_eq!(in_shop, ["Role", "RoleBinding"]);
    let role = one.iter().find(|object| object["kind"] == "Role" && object["metadata"]["namespace"] == "shop");
    assert_eq!(grants(role.unwrap()), grants(the(&everywhere, "ClusterRole")));
    let binding =
        one.iter().find(|object| object["kind"] == "RoleBinding" && object["metadata"]["namespace"] == "shop");
    assert_eq!(binding.unwrap()["subjects"][0]["namespace"], HOME, "the account is where the release is");
}

/// Every value, as `a.b`; maps that are handed on as they are count as one.
fn paths(prefix: &str, values: &Value, found: &mut Vec<String>) {
    for (name, value) in values.as_object().unwrap() {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        let handed_on = ["resources", "podSecurityContext", "securityContext"].contains(&path.as_str());
        if value.as_object().is_some_and(|map| !map.is_empty()) && !handed_on {
            paths(&path, value, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn every_value_is_explained() {
    let read = |file: &str| std::fs::read_to_string(format!("{}/{file}", chart())).unwrap();
    let values: Value = serde_saphyr::from_str(&read("values.yaml")).unwrap();
    let readme = read("README.md");
    let mut found = Vec::new();
    paths("", &values, &mut found);
    assert!(found.len() > 30, "{found:?}");
    let unexplained: Vec<_> = found.iter().filter(|path| !readme.contains(&format!("`{path}`"))).collect();
    assert!(unexplained.is_empty(), "not in the chart's README: {unexplained:?}");
}

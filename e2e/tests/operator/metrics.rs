//! The metrics page of a real process that has something to tell, as Prometheus's own tools read it.

use std::io::Write as _;
use std::process::{Command, Stdio};

use ferrvault_api::FerrVaultSecret;
use ferrvault_e2e::canaries::fresh;
use ferrvault_e2e::objects::restart;
use ferrvault_e2e::own::Own;
use ferrvault_e2e::runner::{self, Scenario};
use ferrvault_e2e::world::World;
use serde_json::json;
use xtask::promtool;

use crate::register::{apart, scenarios};

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    scenarios![apart:
        promtool_has_nothing_to_say_about_the_page,
        a_scraper_gets_open_metrics_and_curl_gets_text,
        the_series_follow_what_happens,
    ]
}

/// Waits until the page has a line that begins like this, and one value after it; that value.
async fn until_told(own: &Own, page: &str, series: &str, wanted: impl Fn(f64) -> bool) -> f64 {
    own.scene
        .until(&format!("{series} is told"), async || {
            let text = reqwest::get(page).await.unwrap().text().await.unwrap();
            let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
            let value: f64 = line.ok_or_else(|| text.clone())?.parse().unwrap();
            if wanted(value) { Ok(value) } else { Err(format!("it is {value}")) }
        })
        .await
}

async fn promtool_has_nothing_to_say_about_the_page(own: &Own) {
    let Some(promtool) = promtool::locate() else { runner::skip("no promtool") };
    let operator = own.start("a").await;
    let scene = &own.scene;
    // Each family of series has something in it.
    own.shop(&fresh("value"), json!({"rolloutRestart": [restart("Deployment", "not-there")]})).await;
    scene.set(&[("K", &fresh("next"))]).await;
    let owed =
        format!("ferrvault_secret_rollouts_owed{{namespace=\"{}\",name=\"shop\",state=\"waiting\"}}", scene.name);
    until_told(own, &operator.metrics_url(), &owed, |count| count >= 1.0).await;
    scene.resource("unsynced", json!({"connectionRef": {"name": "not-there"}})).await;
    scene.until_condition("unsynced", "Ready", "False", "ConnectionNotFound").await;
    let page = operator.metrics().await.unwrap();
    let empty: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .filter(|family| !page.lines().any(|line| line.starts_with(family)))
        .collect();
    assert!(empty.is_empty(), "{empty:?} in\n{page}");

    let mut child = Command::new(promtool)
        .args(["check", "metrics", "--extended"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.is_empty(), "{said}");
    // It counted what it read, so it did read.
    let counted = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(counted.contains("ferrvault_secret_sync_duration_seconds"), "{counted}");
}

async fn a_scraper_gets_open_metrics_and_curl_gets_text(own: &Own) {
    let operator = own.start("a").await;
    let client = reqwest::Client::new();
    // As Prometheus 2 and 3 ask, and as curl does.
    for (accept, kind) in [
        (
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text",
        ),
        ("*/*", "text/plain"),
    ] {
        let answer = client.get(operator.metrics_url()).header("accept", accept).send().await.unwrap();
        let content_type = answer.headers()["content-type"].to_str().unwrap().to_owned();
        assert!(content_type.starts_with(kind), "{content_type}");
        let page = answer.text().await.unwrap();
        assert_eq!(page.ends_with("# EOF\n"), kind.starts_with("application"), "{page}");
        assert!(page.contains("\nferrvault_operator_ready 1"), "{page}");
    }
}

async fn the_series_follow_what_happens(own: &Own) {
    let operator = own.start("a").await;
    let (scene, page) = (&own.scene, operator.metrics_url());
    own.shop(&fresh("value"), json!({"rolloutRestart": [restart("Deployment", "web")]})).await;
    let of_shop = |metric: &str| format!("{metric}{{namespace=\"{}\",name=\"shop\"}}", scene.name);
    until_told(own, &page, "ferrvault_operator_leader", |leads| leads > 0.5).await;
    until_told(own, &page, &of_shop("ferrvault_secret_fresh"), |fresh| fresh > 0.5).await;
    let first = until_told(own, &page, &of_shop("ferrvault_secret_last_sync_timestamp_seconds"), |_| true).await;
    until_told(own, &page, &of_shop("ferrvault_secret_last_sync_timestamp_seconds"), |time| time > first).await;

    // A change, and the restart that it owes when the workload comes.
    let written = "ferrvault_secret_propagation_seconds_count{stage=\"written\"}";
    let restarted = "ferrvault_secret_propagation_seconds_count{stage=\"restarted\"}";
    until_told(own, &page, restarted, |count| count < 0.5).await;
    scene.set(&[("K", &fresh("next"))]).await;
    until_told(own, &page, written, |count| count > 1.5).await;
    scene.workload("Deployment", "web").await;
    until_told(own, &page, restarted, |count| count > 0.5).await;

    scene.edit::<FerrVaultSecret>("shop", json!({"spec": {"suspend": true}})).await;
    until_told(own, &page, &of_shop("ferrvault_secret_refresh_interval_seconds"), |interval| interval < 0.5).await;
    scene.delete::<FerrVaultSecret>("shop").await;
    scene
        .until("its series are gone", async || {
            let text = operator.metrics().await.unwrap();
            if text.contains("name=\"shop\"") { Err(text) } else { Ok(()) }
        })
        .await;
}

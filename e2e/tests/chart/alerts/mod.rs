//! The alerts that the chart renders, judged by Prometheus's own tool: what fires when, and what does not.
//!
//! Everything here happens on promtool's clock: no cluster, no operator, no waiting. That the series are the ones that the
//! operator tells is held by `docs/metrics.md`, which both sides are compared with.

mod quiet;
mod stops;
mod world;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;
use xtask::test_run::skip;
use xtask::{promtool, repository};

use self::world::World;
use crate::rendered::{helm, render, the};

/// What fires, once: the name of an alert, and its cause where it has one.
type Firing = (&'static str, &'static str);

const STUCK: &str = "FerrVaultOperatorReconcileStuck";
const TIMEOUTS: &str = "FerrVaultOperatorReconcileTimeouts";
const STALE: &str = "FerrVaultSecretStale";
const ROLLOUT: &str = "FerrVaultRolloutRestartFailing";

/// A course of events, and what fires at which minute of it.
struct Story {
    name: &'static str,
    world: World,
    /// By minute, everything that fires then and nothing else.
    fires: Vec<(u32, Vec<Firing>)>,
}

impl Story {
    fn new(name: &'static str, change: impl FnOnce(&mut World), fires: Vec<(u32, Vec<Firing>)>) -> Self {
        let mut world = World::healthy();
        change(&mut world);
        Self { name, world, fires }
    }

    /// Nothing fires, at any minute of half an hour.
    fn quiet(name: &'static str, change: impl FnOnce(&mut World)) -> Self {
        Self::new(name, change, (0..=30).map(|minute| (minute, Vec::new())).collect())
    }

    /// As promtool wants it.
    fn test(&self) -> Value {
        let checks: Vec<Value> = self
            .fires
            .iter()
            .map(|(minute, firing)| {
                let samples: Vec<Value> = firing
                    .iter()
                    .map(|(alert, cause)| {
                        let cause = if cause.is_empty() { String::new() } else { format!(", cause={cause:?}") };
                        json!({"labels": format!("{{alertname={alert:?}{cause}}}"), "value": 1})
                    })
                    .collect();
                json!({"expr": r#"count by (alertname, cause) (ALERTS{alertstate="firing"})"#,
                       "eval_time": format!("{minute}m"), "exp_samples": samples})
            })
            .collect();
        json!({"name": self.name, "interval": "30s", "input_series": self.world.series(), "promql_expr_test": checks})
    }
}

/// promtool and the rendered rules, in a folder of their own; nothing where a tool is missing, which `test` then notes.
struct Bench {
    promtool: PathBuf,
    folder: TempDir,
    groups: Value,
}

async fn bench(test: &str) -> Option<Bench> {
    let (tools, _home) = helm(test)?;
    let Some(promtool) = promtool::locate() else {
        skip(test, "no promtool");
        return None;
    };
    let values = ["metrics.serviceMonitor.enabled=true", "metrics.prometheusRule.enabled=true"];
    let objects = render(&tools, &values).await.unwrap();
    let groups = the(&objects, "PrometheusRule")["spec"].clone();
    let folder = tempfile::tempdir().unwrap();
    // JSON is YAML, and the file is read by a machine.
    std::fs::write(folder.path().join("rules.json"), groups.to_string()).unwrap();
    Some(Bench { promtool, folder, groups })
}

impl Bench {
    /// Whether promtool is content, and all that it said.
    fn run(&self, args: &[&str]) -> (bool, String) {
        let output = Command::new(&self.promtool).args(args).current_dir(self.folder.path()).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).unwrap())
    }

    fn play(&self, stories: &[Story]) {
        for story in stories {
            let (content, said) = self.run_tests(&[story.test()]);
            assert!(content, "{}: {said}", story.name);
        }
    }

    fn run_tests(&self, tests: &[Value]) -> (bool, String) {
        let file = json!({"rule_files": ["rules.json"], "evaluation_interval": "30s", "tests": tests});
        std::fs::write(self.folder.path().join("tests.json"), file.to_string()).unwrap();
        self.run(&["test", "rules", "tests.json"])
    }

    fn rules(&self) -> &Vec<Value> {
        self.groups["groups"][0]["rules"].as_array().unwrap()
    }
}

#[tokio::test]
async fn promtool_has_nothing_to_say_about_the_rules() {
    let Some(bench) = bench("promtool_has_nothing_to_say_about_the_rules").await else { return };
    let (content, said) = bench.run(&["check", "rules", "--lint-fatal", "rules.json"]);
    assert!(content && said.contains("SUCCESS"), "{said}");
}

#[tokio::test]
async fn every_alert_says_how_bad_it_is_what_to_look_at_and_where_to_read_on() {
    let Some(bench) = bench("every_alert_says_what_to_look_at").await else { return };
    let names: BTreeSet<_> = bench.rules().iter().map(|rule| rule["alert"].as_str().unwrap()).collect();
    assert_eq!(names, BTreeSet::from([STUCK, TIMEOUTS, STALE, ROLLOUT]));
    for rule in bench.rules() {
        let (name, annotations) = (rule["alert"].as_str().unwrap(), &rule["annotations"]);
        let text = |annotation: &str| annotations[annotation].as_str().unwrap();
        let severity = if name == STUCK { "critical" } else { "warning" };
        assert_eq!(rule["labels"]["severity"], severity, "{name}");
        assert!(rule["for"].as_str().is_some_and(|wait| wait.ends_with('m')), "{name}");
        assert!(!text("summary").is_empty() && text("description").contains("`kubectl "), "{name}");
        assert!(!rule.to_string().contains('%') || !rule.to_string().contains("%s"), "{name}: not filled in");
        assert_eq!(text("runbook"), format!("docs/runbooks/{name}.md"));
        let page = std::fs::read_to_string(repository::root().join(text("runbook"))).unwrap();
        let cause = rule["labels"]["cause"].as_str();
        assert!(page.contains(&format!("# {name}")), "{name}");
        assert!(cause.is_none_or(|cause| page.contains(&format!("`{cause}`"))), "{name} does not explain {cause:?}");
    }
}

#[tokio::test]
async fn every_description_is_filled_in_when_its_alert_fires() {
    let Some(bench) = bench("every_description_is_filled_in").await else { return };
    let mut described = 0;
    for story in stops::stories() {
        // Asked to see nothing, promtool shows what it sees instead.
        let (minute, firing) = story.fires.last().unwrap();
        let seen: BTreeSet<_> = firing.iter().map(|(alert, _)| *alert).collect();
        for alert in seen {
            let mut test = story.test();
            test["promql_expr_test"] = json!([]);
            test["alert_rule_test"] =
                json!([{"eval_time": format!("{minute}m"), "alertname": alert, "exp_alerts": []}]);
            let (_, said) = bench.run_tests(&[test]);
            assert!(said.contains("description=\""), "{}: {said}", story.name);
            for wrong in ["error expanding", "<no value>", "FerrVaultSecret /", "pod /", "namespace  ", "%!"] {
                assert!(!said.contains(wrong), "{}: {wrong}: {said}", story.name);
            }
            described += 1;
        }
    }
    assert!(described >= bench.rules().len(), "{described}");
}

#[tokio::test]
async fn each_way_to_stop_fires_within_ten_minutes() {
    let Some(bench) = bench("each_way_to_stop_fires_within_ten_minutes").await else { return };
    let stories = stops::stories();
    bench.play(&stories);
    // Every rule is seen to fire in one of them.
    let fired: BTreeSet<Firing> =
        stories.iter().flat_map(|story| &story.fires).flat_map(|(_, all)| all.clone()).collect();
    for rule in bench.rules() {
        let of = (rule["alert"].as_str().unwrap(), rule["labels"]["cause"].as_str().unwrap_or_default());
        assert!(fired.iter().any(|seen| *seen == of), "{of:?} fires in no story");
    }
}

#[tokio::test]
async fn what_is_no_stop_fires_nothing() {
    let Some(bench) = bench("what_is_no_stop_fires_nothing").await else { return };
    bench.play(&quiet::stories());
}

#[tokio::test]
async fn the_expressions_use_only_series_that_are_documented() {
    let Some(bench) = bench("the_expressions_use_only_series_that_are_documented").await else { return };
    let page = std::fs::read_to_string(repository::root().join("docs/metrics.md")).unwrap();
    for rule in bench.rules() {
        let words = rule["expr"].as_str().unwrap().split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let series: Vec<_> = words.filter(|word| word.len() > 15 && word.contains('_')).collect();
        assert!(!series.is_empty(), "{rule}");
        for name in series {
            assert!(page.contains(&format!("`{name}`")), "{name} is not in docs/metrics.md");
        }
    }
}

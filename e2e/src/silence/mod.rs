//! Each way in which the operator can stop, made to happen on a real control plane: how soon that shows, where, and that
//! nothing is lost by it.
//!
//! Time is real. Thresholds of minutes are short where a flag, a value of the chart or the hooks of the tests make them so,
//! each by the same factor; what shows without any threshold is measured as everybody would see it.

pub mod alerts;
pub mod classes;
mod ending;
pub mod lab;
pub mod listing;
pub mod look;
pub mod page;
pub mod release;
pub mod report;
pub mod trial;

use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;

use self::classes::Class;
use self::lab::Lab;
use self::release::{Mode, Thresholds};
use self::report::Finding;
use self::trial::Measured;
use crate::cluster::Cluster;

/// No class takes longer on a machine that works: three times its own limit, and the way there and back.
const LIMIT: Duration = Duration::from_mins(12);

/// Tries one class, whatever comes of it.
pub async fn try_class(class: Class, cluster: Option<Rc<Cluster>>, mode: Mode, default_thresholds: bool) -> Finding {
    let began = Instant::now();
    let bounded = tokio::time::timeout(LIMIT, whole(class, cluster, mode, class.thresholds(default_thresholds)));
    // What a panic leaves half done is this class's own room, which is dropped with it.
    let ended = AssertUnwindSafe(bounded).catch_unwind().await;
    let mut finding = match ended {
        Ok(Ok(finding)) => finding,
        Ok(Err(_)) => Finding::broken(class, format!("not over within {LIMIT:?}")),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            Finding::broken(class, text.unwrap_or("it panicked").to_owned())
        }
    };
    finding.took = began.elapsed();
    finding
}

async fn whole(class: Class, cluster: Option<Rc<Cluster>>, mode: Mode, thresholds: Thresholds) -> Finding {
    let cluster = match cluster.filter(|_| !class.alone) {
        Some(shared) => shared,
        None => start_cluster().await,
    };
    let label = format!("class-{}", class.number);
    let lab = Lab::new(&cluster, &label, mode, thresholds).await;
    // Prometheus has seen it when all was well.
    lab.look_on(3).await;
    let mut trial = (class.act)(&lab).await;
    trial.judge_liveness().await;
    let by_annotation = thresholds == Thresholds::Default;
    let wrong = ending::what_does_not_hold(&lab, by_annotation).await;
    trial.problems.extend(wrong);
    let finding = Finding {
        class,
        measured: trial.measured.clone(),
        told: std::mem::take(&mut trial.told),
        printed: std::mem::take(&mut trial.printed),
        problems: std::mem::take(&mut trial.problems),
        took: Duration::ZERO,
    };
    if finding.problems.is_empty() {
        lab.own.scene.close().await;
    } else {
        eprintln!("== the operator of class {}, its last words:\n{}", class.number, tail(&lab.said()));
    }
    finding
}

/// A cluster that classes can share.
pub async fn start_cluster() -> Rc<Cluster> {
    let cluster = Cluster::start().await;
    cluster.install_current_definitions().await;
    Rc::new(cluster)
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

/// A finding of nothing measured.
impl Finding {
    fn broken(class: Class, why: String) -> Self {
        Self {
            class,
            measured: Measured::default(),
            told: Vec::new(),
            printed: String::new(),
            problems: vec![why],
            took: Duration::ZERO,
        }
    }
}

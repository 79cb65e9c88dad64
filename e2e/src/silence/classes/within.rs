//! The process itself: workers, queue, runtime, clock, and the process as a whole.

use std::time::Instant;

use rustix::process::Signal;

use super::rights::attempt_stands_still;
use super::{LIMIT, OF_SECRETS, RECOVERY, stuck};
use crate::silence::lab::{Lab, SHOP};
use crate::silence::trial::{Sign, Signs, Trial};

/// Time enough for every judgement on ages to be made once: the grace of five minutes, in haste.
const CLOCK_LOOKS: u32 = 60;

fn overdue() -> Sign {
    Sign::new("Fresh False", |look| look.says(SHOP, "Fresh", "False"))
}

fn stalled() -> Sign {
    Sign::new("ferrvault_queue_stalled_seconds > 30", |look| {
        look.metric("ferrvault_queue_stalled_seconds", OF_SECRETS) > Some(30.0)
    })
}

/// 8: each pass that begins waits for ever, and no deadline cuts it.
pub(super) async fn workers(lab: &Lab) -> Trial<'_> {
    let signs = Signs {
        kubectl: Some(overdue()),
        kubectl_waits_for_a_threshold: true,
        // A call to FerrVault takes 30.6 s at the very most, and a pass is little more than that.
        metric: Some(Sign::new("workqueue_longest_running_processor_seconds > 40", |look| {
            look.metric("workqueue_longest_running_processor_seconds", OF_SECRETS) > Some(40.0)
        })),
        alert: Some(stuck("pass")),
        red: Some("pass over"),
    };
    held(lab, "hold-passes", signs).await
}

/// 8, from the other end: work is due, and nobody begins it.
pub(super) async fn queue(lab: &Lab) -> Trial<'_> {
    let signs = Signs {
        kubectl: Some(overdue()),
        kubectl_waits_for_a_threshold: true,
        metric: Some(stalled()),
        alert: Some(stuck("queue")),
        red: Some("work has been due for"),
    };
    held(lab, "hold-queues", signs).await
}

/// 9: every thread of the main runtime is blocked. Who may write is decided there, so nobody writes.
pub(super) async fn runtime(lab: &Lab) -> Trial<'_> {
    let signs = Signs {
        kubectl: Some(attempt_stands_still()),
        metric: Some(Sign::new("ferrvault_operator_runtime_silence_seconds > 10", |look| {
            look.metric("ferrvault_operator_runtime_silence_seconds", &[]) > Some(10.0)
        })),
        alert: Some(stuck("runtime")),
        red: Some("the main runtime has stood still"),
        ..Signs::default()
    };
    held(lab, "block-runtime", signs).await
}

async fn held<'l>(lab: &'l Lab, what: &'static str, signs: Signs) -> Trial<'l> {
    lab.wish(what, "");
    let mut trial = Trial::begin(lab);
    lab.change().await;
    lab.ask_for_a_pass(SHOP).await;
    trial.watch(&signs, LIMIT).await;
    // A restart cures it, as liveness says. The next process is not held.
    let killed = Instant::now();
    lab.unwish(what);
    lab.restart_operator().await;
    trial.recover(killed, RECOVERY).await;
    trial
}

/// 10: it does not run, and is there. Then it goes on as if nothing had been.
pub(super) async fn stopped(lab: &Lab) -> Trial<'_> {
    let operator = lab.operator();
    operator.process().signal(Signal::STOP);
    let mut trial = Trial::begin(lab);
    lab.change().await;
    let signs = Signs {
        kubectl: Some(attempt_stands_still()),
        metric: Some(Sign::new("no scrape succeeds", |look| look.page.is_none())),
        alert: Some(stuck("absence")),
        ..Signs::default()
    };
    trial.watch(&signs, LIMIT).await;
    if trial.lab.look(|look| look.health.is_some()).await {
        trial.fault("a stopped process answered its probe");
    }
    operator.process().signal(Signal::CONT);
    trial.recover(Instant::now(), RECOVERY).await;
    trial
}

/// 15: the clock jumps forward. Nothing stops, so nothing is to show; and values go on to arrive.
pub(super) async fn clock_forward(lab: &Lab) -> Trial<'_> {
    clock(lab, "3600").await
}

/// 15, back.
pub(super) async fn clock_back(lab: &Lab) -> Trial<'_> {
    clock(lab, "-3600").await
}

async fn clock<'l>(lab: &'l Lab, offset: &str) -> Trial<'l> {
    lab.wish("clock-offset", offset);
    let mut trial = Trial::begin(lab);
    lab.change().await;
    trial.recover(Instant::now(), RECOVERY).await;
    trial.printed = lab.kubectl(&["get", "fvs", "-o", "wide"]).await;
    let began = Instant::now();
    lab.look_on(CLOCK_LOOKS).await;
    let stale = lab.seen(|looks| {
        let mut since = looks.all().iter().filter(|look| look.at >= began);
        since
            .any(|look| look.says(SHOP, "Fresh", "False") || look.metric("ferrvault_operator_leader", &[]) == Some(0.0))
    });
    if stale {
        trial.fault("a jump of the clock made something look stale, or cost the lease");
    }
    // And back to the truth, which is another jump.
    lab.unwish("clock-offset");
    lab.change().await;
    trial.recover(Instant::now(), RECOVERY).await;
    trial
}

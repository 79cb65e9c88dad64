//! After the story: what to try while it stays up, what must not happen meanwhile, and the way out.

use std::time::{Duration, Instant};

use super::super::objects::{NAMESPACE, RESOURCE, ROTATED, TARGET, VAULT};
use super::super::{Error, narrate};
use super::Story;
use super::trace::{LOGGED, traces};
use crate::programs::DevServer;
use crate::repository;

/// Between two looks at the programs.
const LOOK_EVERY: Duration = Duration::from_millis(500);

impl Story {
    /// What to type next, when everything stays up.
    pub(in crate::demo) fn say_what_to_try(&self) {
        narrate::heading("Your turn: in another shell");
        let target = repository::target_dir();
        for export in self.cluster.exports() {
            println!("   {export}");
        }
        println!("   export PATH={}:$PATH", target.join("debug").display());
        if let Some(dev) = &self.dev {
            println!("   export FERRVAULT_DEV_DATA={}", dev.data().display());
        }
        println!();
        for (command, effect) in hints() {
            println!("   {command:<55} # {effect}");
        }
        if let Some(operator) = &self.operator {
            for (url, effect) in [
                (operator.probe_url("healthz"), "whether the operator is well"),
                (operator.metrics_url(), "its numbers"),
            ] {
                println!("   {:<55} # {effect}", format!("curl {url}"));
            }
        }
        println!(
            "   {:<55} # what the operator says: of a rotation, \"{}\"",
            format!("tail -f {}", self.log().display()),
            LOGGED.join("\" and \"")
        );
        println!("\n   Ctrl-C ends everything.");
    }

    /// Waits until something ends by itself that should not.
    pub(in crate::demo) async fn failed(&self) -> Error {
        loop {
            let programs = [self.operator_process(), self.dev.as_ref().map(DevServer::process)];
            if let Some(ended) = programs.into_iter().flatten().find(|process| !process.is_running()) {
                return ended.ended_error().await.into();
            }
            if let Some(plane) = &self.cluster.plane
                && let Some(error) = plane.failure().await
            {
                return error.into();
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Ends the programs in order and takes from a user's cluster what was put there.
    pub(in crate::demo) async fn clear_up(&mut self) -> Result<(), Error> {
        narrate::heading("The end");
        if self.cluster.plane.is_none() {
            // While the operator still runs: its finalizer holds the connection until nothing refers to it.
            let gone =
                self.cluster.tools.kubectl(["delete", "fvs,fvc", "--all", "-n", NAMESPACE, "--timeout=60s"]).await;
            if let Err(error) = gone {
                narrate::line(&format!("not removed: {error}"));
            }
        }
        let stopped = match &self.operator {
            Some(operator) if operator.process().is_running() => {
                let started = Instant::now();
                let stopped = operator.stop().await;
                if stopped.is_ok() {
                    narrate::observed("the operator ended on SIGTERM with status 0", started.elapsed());
                }
                stopped
            }
            _ => Ok(()),
        };
        let cleared = self.cluster.clear_up().await;
        stopped.map_err(Error::from).and(cleared)
    }
}

/// Commands to type, and what comes of each.
fn hints() -> Vec<(String, &'static str)> {
    let typed = [
        (format!("kubectl get pods -n {NAMESPACE} -w"), "watch, and meanwhile in one more shell:"),
        (format!("ferrvault-dev rotate {VAULT} {ROTATED}"), "the pods restart, once"),
        (
            format!("ferrvault-dev set {VAULT} API_KEY=new"),
            "the Secret gets one more key, and the pods restart to see it",
        ),
        (format!("kubectl delete secret {TARGET} -n {NAMESPACE}"), "it comes back, and nothing restarts"),
        (format!("kubectl describe fvs {RESOURCE} -n {NAMESPACE}"), "conditions, times, and what was restarted"),
        (
            format!("kubectl get events -n {NAMESPACE}"),
            "the operator's tell of conditions that became others: a rotation that goes well has none",
        ),
    ];
    let traces = traces().into_iter().map(|trace| (trace.to_string(), trace.tells));
    typed.into_iter().chain(traces).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_told_to_watch_two_kinds_at_once_which_kubectl_refuses() {
        let watching: Vec<String> =
            hints().into_iter().map(|(command, _)| command).filter(|c| c.ends_with(" -w")).collect();
        assert!(!watching.is_empty());
        assert!(!watching.iter().any(|command| command.contains(',')), "{watching:?}");
    }
}

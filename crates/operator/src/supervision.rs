//! Tasks that are meant to last as long as the process: the end of one that was not told to end is the end of the process.
//!
//! A process of which one part has died goes on looking alive while it does half its work, which is the worst it can do.

use std::collections::HashMap;
use std::fmt;

use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// Running tasks, each with a name. They are cut off when this is dropped.
#[derive(Debug, Default)]
pub struct Tasks {
    running: JoinSet<()>,
    names: HashMap<Id, String>,
}

/// A task that is no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its name.
    pub name: String,
    /// Whether it panicked instead of returning.
    pub panicked: bool,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has {}", self.name, if self.panicked { "panicked" } else { "ended" })
    }
}

impl Tasks {
    /// Runs `task` under `name`.
    pub fn spawn(&mut self, name: impl Into<String>, task: impl Future<Output = ()> + Send + 'static) {
        let id = self.running.spawn(task).id();
        self.names.insert(id, name.into());
    }

    /// Waits for the end of a task before `stop`. After `stop` ends are as they should be, and this waits for ever.
    pub async fn early_end(&mut self, stop: &CancellationToken) -> Ended {
        let ended = self.next_end().await;
        match ended {
            Some(ended) if !stop.is_cancelled() => ended,
            _ => std::future::pending().await,
        }
    }

    /// Waits until every task has ended.
    pub async fn all_ended(&mut self) {
        while self.next_end().await.is_some() {}
    }

    /// Waits until the task called `name` has ended, if there is one.
    pub async fn end_of(&mut self, name: &str) {
        while self.names.values().any(|running| running == name) && self.next_end().await.is_some() {}
    }

    /// Cuts off what still runs, and waits until it is gone.
    pub async fn shutdown(&mut self) {
        self.running.shutdown().await;
        self.names.clear();
    }

    /// The names of the tasks that run, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.names.values().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    async fn next_end(&mut self) -> Option<Ended> {
        let (id, panicked) = match self.running.join_next_with_id().await? {
            Ok((id, ())) => (id, false),
            Err(error) => (error.id(), JoinError::is_panic(&error)),
        };
        let name = self.names.remove(&id).unwrap_or_default();
        Some(Ended { name, panicked })
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    fn ended(name: &str, panicked: bool) -> Ended {
        Ended { name: name.to_owned(), panicked }
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_task_that_ends_early_is_told_by_name() {
        let (mut tasks, stop) = (Tasks::default(), CancellationToken::new());
        tasks.spawn("lasting", pending());
        tasks.spawn("brief", async {});
        assert_eq!(tasks.early_end(&stop).await, ended("brief", false));
        assert_eq!(tasks.names(), ["lasting"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_is_an_end() {
        let (mut tasks, stop) = (Tasks::default(), CancellationToken::new());
        tasks.spawn("broken", async { panic!("for the test") });
        let ended = tasks.early_end(&stop).await;
        assert_eq!(ended.to_string(), "broken has panicked");
    }

    #[tokio::test(start_paused = true)]
    async fn ends_after_the_stop_are_not_early() {
        let (mut tasks, stop) = (Tasks::default(), CancellationToken::new());
        let told = stop.clone();
        tasks.spawn("obedient", async move { told.cancelled().await });
        stop.cancel();
        assert!(timeout(Duration::from_mins(1), tasks.early_end(&stop)).await.is_err());
        timeout(Duration::from_mins(1), tasks.all_ended()).await.unwrap();
        assert!(tasks.names().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn one_can_be_waited_for_while_others_run() {
        let mut tasks = Tasks::default();
        tasks.spawn("lasting", pending());
        tasks.spawn("slow", tokio::time::sleep(Duration::from_secs(5)));
        timeout(Duration::from_secs(6), tasks.end_of("slow")).await.unwrap();
        timeout(Duration::from_secs(1), tasks.end_of("never there")).await.unwrap();
        assert_eq!(tasks.names(), ["lasting"]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_shut_down_is_gone() {
        let mut tasks = Tasks::default();
        let held = std::sync::Arc::new(());
        let of_task = std::sync::Arc::clone(&held);
        tasks.spawn("lasting", async move {
            pending::<()>().await;
            drop(of_task);
        });
        tokio::task::yield_now().await;
        tasks.shutdown().await;
        assert_eq!(std::sync::Arc::strong_count(&held), 1);
        assert!(tasks.names().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn all_have_ended_only_when_the_last_has() {
        let mut tasks = Tasks::default();
        tasks.spawn("slow", tokio::time::sleep(Duration::from_secs(5)));
        tasks.spawn("quick", async {});
        assert!(timeout(Duration::from_secs(4), tasks.all_ended()).await.is_err());
        assert_eq!(tasks.names(), ["slow"]);
        timeout(Duration::from_secs(2), tasks.all_ended()).await.unwrap();
    }
}

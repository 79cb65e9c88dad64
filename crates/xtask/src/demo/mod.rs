//! `cargo xtask demo`: a value travels from FerrVault into a Secret, is rotated, and the pods that use it restart once.
//!
//! Nothing is mocked: a real API server, the chart as users install it, the operator under exactly the rights that the chart
//! gives it. And nothing is only told: each sentence of the story is printed after it was seen through the API.

mod cluster;
mod narrate;
mod objects;
mod observe;
mod story;

use std::path::PathBuf;

use crate::control_plane::foreground::Stop;
use crate::control_plane::{self, Component, build};
use crate::process::ProcessError;
use crate::programs;
use crate::test_run;
use cluster::Cluster;
use story::Story;

/// What is wanted of the demo.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// End after the story instead of staying up.
    pub once: bool,
    /// Play on this cluster of the user's instead of on one of our own.
    pub context: Option<String>,
    /// The user's folder of control plane programs.
    pub assets: Option<PathBuf>,
}

/// Why the demo did not reach its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The cluster.
    #[error(transparent)]
    ControlPlane(#[from] control_plane::Error),
    /// One of the programs.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The dev server or the operator.
    #[error(transparent)]
    Program(#[from] programs::Error),
    /// The operator or the dev server could not be built.
    #[error(transparent)]
    Build(#[from] test_run::Error),
    /// The API server refused a step.
    #[error("{doing}: {source}")]
    Api {
        /// What was being done.
        doing: String,
        /// Why it failed.
        source: Box<kube::Error>,
    },
    /// Something did not come about.
    #[error("not observed within {seconds} s: {what}\nseen last: {seen}\nthe end of the operator's log:\n{log}")]
    NotObserved {
        /// What was waited for.
        what: String,
        /// For how long.
        seconds: u64,
        /// What there was instead.
        seen: String,
        /// The operator's last words.
        log: String,
    },
    /// A file or program could not be used.
    #[error("{}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The cluster is not one to play on.
    #[error("{0}")]
    Refused(String),
    /// Somebody ended it before its end.
    #[error("ended before the end of the story: {0}")]
    Interrupted(&'static str),
}

/// What the demo cannot do without; a folder of the user's may lack some of it.
fn needed(options: &Options) -> impl Iterator<Item = Component> {
    let of_their_own = options.context.is_some();
    let tools = |component: &Component| matches!(component, Component::Kubectl | Component::Helm);
    Component::ALL.into_iter().filter(move |component| !of_their_own || tools(component))
}

/// Plays the story, and then either ends or stays up until it is told to end.
pub async fn run(options: &Options) -> Result<(), Error> {
    let binaries = build::ensure(options.assets.as_deref()).await?;
    for component in needed(options) {
        // Said now and not after a minute of compiling.
        binaries.path(component)?;
    }
    test_run::build_products()?;
    let mut stop = Stop::new()?;
    // Everything until here touches nothing but caches; from here on a signal must clear up.
    let cluster = tokio::select! {
        cluster = Cluster::prepare(options.context.as_deref(), binaries) => cluster?,
        why = stop.requested() => return Err(Error::Interrupted(why)),
    };
    let mut story = Story::new(cluster);
    let played = tokio::select! {
        played = story.play() => played,
        why = stop.requested() => Err(Error::Interrupted(why)),
    };
    let outcome = match played {
        Ok(()) if !options.once => {
            story.say_what_to_try();
            tokio::select! {
                why = stop.requested() => {
                    narrate::line(&format!("{why}: clearing up"));
                    Ok(())
                }
                error = story.failed() => Err(error),
            }
        }
        other => other,
    };
    // Always, and without hiding what went wrong before. A second Ctrl-C is for those who cannot wait.
    let cleared = tokio::select! {
        cleared = story.clear_up() => cleared,
        why = stop.signalled() => Err(Error::Interrupted(why)),
    };
    outcome.and(cleared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_cluster_of_the_users_only_the_tools_are_needed() {
        let own: Vec<Component> = needed(&Options::default()).collect();
        assert_eq!(own, Component::ALL);
        let options = Options { context: Some("kind".to_owned()), ..Options::default() };
        let users: Vec<Component> = needed(&options).collect();
        assert_eq!(users, [Component::Kubectl, Component::Helm]);
    }
}

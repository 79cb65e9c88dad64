//! What can go wrong with a control plane, each with what to do about it.

use std::path::PathBuf;

use super::Component;
use crate::process::ProcessError;

/// Why there is no control plane, or why it cannot do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no Go to build with.
    #[error(
        "the control plane is built with Go 1.26 or newer, and no `go` is in PATH or in /usr/local/go/bin.\n\
         Either install Go (https://go.dev/doc/install) and put it into PATH,\n\
         or set KUBEBUILDER_ASSETS (or pass --assets) to a folder that holds etcd, kube-apiserver and kubectl."
    )]
    GoMissing,
    /// There is a Go, but not one that can do it.
    #[error(
        "{} cannot build the control plane: {says}\n\
         Go 1.26 or newer is needed. Install it (https://go.dev/doc/install), or allow this one to fetch it with \
         GOTOOLCHAIN=auto,\nor set KUBEBUILDER_ASSETS (or pass --assets) to a folder that holds etcd, kube-apiserver \
         and kubectl.",
        go.display()
    )]
    GoUnusable {
        /// The Go found.
        go: PathBuf,
        /// What it said.
        says: String,
    },
    /// The modules do not say what the recipe needs.
    #[error("the recipe of the control plane is broken: {0}")]
    Recipe(String),
    /// Nothing was built yet.
    #[error(
        "the control plane has not been built on this machine yet: run `cargo xtask control-plane build` \
         (about five minutes, once),\n\
         or set KUBEBUILDER_ASSETS to a folder that holds etcd, kube-apiserver and kubectl."
    )]
    NotBuilt,
    /// The user's folder lacks something that cannot be done without.
    #[error(
        "{} lacks {missing}: KUBEBUILDER_ASSETS and --assets name a folder that holds at least etcd, \
         kube-apiserver and kubectl",
        folder.display()
    )]
    AssetsIncomplete {
        /// The folder.
        folder: PathBuf,
        /// What it lacks.
        missing: String,
    },
    /// A program that only some uses need is not there.
    #[error(
        "{component} is needed for this and is not in {}; unset KUBEBUILDER_ASSETS to have all programs built",
        folder.display()
    )]
    ComponentMissing {
        /// Which one.
        component: Component,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// There is no place to keep builds and state.
    #[error("no folder for caches is known: set HOME or XDG_CACHE_HOME to an absolute path")]
    NoCacheFolder,
    /// No free ports were to be had.
    #[error("no {wanted} free ports were found on 127.0.0.1 below the range of outgoing connections")]
    NoPorts {
        /// How many were needed.
        wanted: usize,
    },
    /// A program failed.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A file could not be used.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The certificates could not be made.
    #[error("the certificates of the control plane could not be made: {0}")]
    Certificates(String),
    /// The API server refused or did not answer.
    #[error("{doing}: {source}")]
    Api {
        /// What was being done.
        doing: String,
        /// Why it failed.
        source: Box<kube::Error>,
    },
    /// The kubeconfig could not be used.
    #[error("the kubeconfig {}: {reason}", path.display())]
    Kubeconfig {
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A call of kubectl or helm failed.
    #[error("`{command}` failed:\n{says}")]
    Tool {
        /// The command.
        command: String,
        /// What it wrote.
        says: String,
    },
    /// Something did not come about in time.
    #[error("{what} did not come about within {seconds} s")]
    NotInTime {
        /// What was waited for.
        what: String,
        /// For how long.
        seconds: u64,
    },
    /// A question about running control planes that has no one answer.
    #[error("{0}")]
    Running(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_no_control_plane_is_told_each_way_to_get_one() {
        let unusable = Error::GoUnusable { go: "/old/go".into(), says: "go.mod requires go >= 1.26.0".to_owned() };
        for (error, ways) in [
            (Error::GoMissing, ["go.dev/doc/install", "KUBEBUILDER_ASSETS", "--assets"]),
            (unusable, ["GOTOOLCHAIN=auto", "KUBEBUILDER_ASSETS", "/old/go"]),
            (Error::NotBuilt, ["cargo xtask control-plane build", "KUBEBUILDER_ASSETS", "kube-apiserver"]),
            (Error::NoCacheFolder, ["HOME", "XDG_CACHE_HOME", "absolute"]),
        ] {
            let text = error.to_string();
            for way in ways {
                assert!(text.contains(way), "{way} is not in: {text}");
            }
        }
    }
}

//! `cargo xtask lint`: everything that can be said about the source without running it. All checks run, so that one
//! look shows all that is wrong.

use std::process::Command;

use crate::{crds, repository};

/// Why the source does not pass.
#[derive(Debug, thiserror::Error)]
#[error("{} of {total} checks failed: {}", failed.len(), failed.join(", "))]
pub struct Failed {
    failed: Vec<String>,
    total: usize,
}

/// One check that a cargo command makes.
struct Check {
    name: &'static str,
    args: &'static [&'static str],
    env: Option<(&'static str, &'static str)>,
    /// Whether the command must fail: it asks for something that must not be there.
    absent: bool,
}

const CHECKS: [Check; 5] = [
    Check { name: "format", args: &["fmt", "--all", "--check"], env: None, absent: false },
    Check {
        name: "clippy",
        args: &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
        env: None,
        absent: false,
    },
    // Left out of the above, because it is no test that a plain `cargo test` runs.
    Check {
        name: "clippy of the control plane's test",
        args: &["clippy", "--package", "xtask", "--test", "control_plane", "--", "-D", "warnings"],
        env: None,
        absent: false,
    },
    Check {
        name: "documentation",
        args: &["doc", "--workspace", "--no-deps", "--document-private-items"],
        env: Some(("RUSTDOCFLAGS", "-D warnings")),
        absent: false,
    },
    // A second crypto provider in the tree would make rustls refuse to choose one, at run time.
    Check {
        name: "one crypto provider",
        args: &["tree", "--workspace", "--quiet", "--invert", "aws-lc-rs"],
        env: None,
        absent: true,
    },
];

/// Runs all checks.
pub fn run() -> Result<(), Failed> {
    let mut failed = Vec::new();
    for check in &CHECKS {
        eprintln!("== {}: cargo {}", check.name, check.args.join(" "));
        if !passes(check) {
            failed.push(check.name.to_owned());
        }
    }
    eprintln!("== generated definitions");
    if let Err(error) = crds::check(&repository::root()) {
        eprintln!("{error}");
        failed.push("generated definitions".to_owned());
    }
    let total = CHECKS.len() + 1;
    if failed.is_empty() {
        eprintln!("all {total} checks passed");
        Ok(())
    } else {
        Err(Failed { failed, total })
    }
}

fn passes(check: &Check) -> bool {
    let mut command = Command::new(repository::cargo());
    command.args(check.args).current_dir(repository::root()).envs(check.env);
    if !check.absent {
        return command.status().is_ok_and(|status| status.success());
    }
    // Cargo fails in the same way for a crate that is absent and for a broken manifest; only the first is welcome.
    command.output().is_ok_and(|output| {
        let says = String::from_utf8_lossy(&output.stderr);
        let absent = !output.status.success() && says.contains("did not match any packages");
        if !absent {
            eprintln!("{}{says}", String::from_utf8_lossy(&output.stdout));
        }
        absent
    })
}

//! Where things are: the repository, what cargo builds into it, and the user's cache folder.

use std::path::{Path, PathBuf};

/// The environment variable that names the operator's binary.
pub const OPERATOR_BIN: &str = "FERRVAULT_OPERATOR_BIN";

/// The environment variable that names the binary of the dev server.
pub const DEV_BIN: &str = "FERRVAULT_DEV_BIN";

/// The root of the repository that this program was built from.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// Cargo's folder for what it builds.
pub fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// The cargo that runs us, or the one in PATH.
pub fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}

/// The operator's binary: as `FERRVAULT_OPERATOR_BIN` says, else where a debug build leaves it.
pub fn operator_bin() -> PathBuf {
    debug_binary(OPERATOR_BIN, "ferrvault-operator")
}

/// The dev server's binary: as `FERRVAULT_DEV_BIN` says, else where a debug build leaves it.
pub fn dev_bin() -> PathBuf {
    debug_binary(DEV_BIN, "ferrvault-dev")
}

fn debug_binary(variable: &str, name: &str) -> PathBuf {
    std::env::var_os(variable).map_or_else(|| target_dir().join("debug").join(name), PathBuf::from)
}

/// This project's folder among the user's caches; nothing when the user has no home.
pub fn cache_dir() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(caches.join("ferrvault-operator"))
}

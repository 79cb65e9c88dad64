//! How the control plane is built: the Go toolchain, the flags, and the name of the cache folder that follows from
//! them. Decides only; the building itself is in [`super::build`].

use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

use super::{Component, Error};
use crate::process::{Launch, find_in_path};
use crate::repository;

/// Flags of every build: two compilers side by side keep a small machine usable, and no path of the builder gets in.
const FLAGS: [&str; 4] = ["build", "-p=2", "-trimpath", "-buildvcs=false"];

/// Files that say what is built, relative to the module folder of [`root`].
const SOURCES: [&str; 4] = ["go.mod", "go.sum", "kwok/go.mod", "kwok/go.sum"];

/// The folder of the Go modules.
pub(super) fn root() -> PathBuf {
    repository::root().join("tools/control-plane")
}

/// What a build depends on, apart from the Go toolchain.
#[derive(Clone, Debug)]
pub(super) struct Recipe {
    /// The linker flags of the main module: no symbol tables, and the version stamps.
    linker_flags: String,
    /// Hash over sources and flags, in hexadecimal.
    hash: String,
}

impl Recipe {
    /// Reads it from the Go modules.
    pub(super) fn read() -> Result<Self, Error> {
        let mut sources = Vec::new();
        for name in SOURCES {
            let path = root().join(name);
            let text = std::fs::read_to_string(&path).map_err(|source| Error::File { path, source })?;
            sources.push(text);
        }
        let main_module = sources.first().map(String::as_str).unwrap_or_default();
        let linker_flags = linker_flags(
            required_version(main_module, "k8s.io/kubernetes")?,
            required_version(main_module, "helm.sh/helm/v3")?,
        );
        let mut hash = Sha256::new();
        for part in sources.iter().map(String::as_str).chain(FLAGS).chain([linker_flags.as_str()]) {
            hash.update(part.as_bytes());
            // A separator, so that text cannot move from one part to the next unnoticed.
            hash.update([0]);
        }
        // 8 of its 32 bytes tell a handful of builds apart and keep paths short.
        let digest = hash.finalize();
        let short = digest.first_chunk::<8>().copied().map(u64::from_be_bytes).unwrap_or_default();
        Ok(Self { linker_flags, hash: format!("{short:016x}") })
    }

    /// The name of the folder for what `go` makes of it. The Go version stands in clear, so that a finished build is
    /// still found on a machine whose Go has gone.
    pub(super) fn folder(&self, go: &GoVersion) -> String {
        format!("{}-{}", self.hash, go.0)
    }

    /// Whether a folder of this name was built from this recipe, by whatever Go.
    pub(super) fn made(&self, folder: &str) -> bool {
        folder.strip_prefix(&self.hash).and_then(|rest| rest.strip_prefix("-go")).is_some_and(|version| {
            // Unfinished builds carry a suffix.
            version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        })
    }

    /// The process that builds `component` into the file `output` and logs into the file `log`.
    pub(super) fn launch(&self, go: &Path, component: Component, output: &Path, log: &Path) -> Launch {
        let linker_flags = if component == Component::Kwok { "-s -w" } else { &self.linker_flags };
        Launch::new(format!("go build of {component}"), go, log)
            .args(FLAGS)
            .arg(format!("-ldflags={linker_flags}"))
            .arg("-o")
            .arg(output)
            .arg(component.package())
            .current_dir(root().join(component.module()))
            // No C compiler is asked for, and what a user sets for other projects does not get in.
            .env("CGO_ENABLED", "0")
            .env("GOFLAGS", "-mod=readonly")
            .env("GOWORK", "off")
    }
}

/// The version that a go.mod requires of `module`.
fn required_version<'a>(go_mod: &'a str, module: &str) -> Result<&'a str, Error> {
    go_mod
        .lines()
        .filter_map(|line| line.trim().strip_prefix("require ").or_else(|| Some(line.trim())))
        .find_map(|line| line.strip_prefix(module)?.strip_prefix(' ')?.split_whitespace().next())
        .filter(|version| version.starts_with('v'))
        .ok_or_else(|| Error::Recipe(format!("tools/control-plane/go.mod requires no version of {module}")))
}

/// Without its version stamp `kubectl version` cannot read the server's answer, and helm's checks of the Kubernetes
/// version see none.
fn linker_flags(kubernetes: &str, helm: &str) -> String {
    let mut numbers = kubernetes.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let mut flags = "-s -w".to_owned();
    for (variable, value) in [
        ("k8s.io/component-base/version.gitVersion", kubernetes),
        ("k8s.io/component-base/version.gitMajor", major),
        ("k8s.io/component-base/version.gitMinor", minor),
        ("helm.sh/helm/v3/internal/version.version", helm),
        ("helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor", major),
        ("helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor", minor),
        ("helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor", major),
        ("helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor", minor),
    ] {
        flags.push_str(" -X ");
        flags.push_str(variable);
        flags.push('=');
        flags.push_str(value);
    }
    flags
}

/// The version of a Go toolchain as it calls itself, such as `go1.26.8`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GoVersion(String);

/// The Go toolchain of this machine, asked in the module's folder, because a Go that fetches newer toolchains by
/// itself answers with the one that it would use there.
pub(super) fn find_go() -> Result<(PathBuf, GoVersion), Error> {
    let usual = Path::new("/usr/local/go/bin/go");
    let go = find_in_path("go").or_else(|| usual.is_file().then(|| usual.to_owned())).ok_or(Error::GoMissing)?;
    let answer = Command::new(&go).args(["env", "GOVERSION"]).current_dir(root()).output();
    let answer = answer.map_err(|source| Error::File { path: go.clone(), source })?;
    if !answer.status.success() {
        let says = String::from_utf8_lossy(&answer.stderr).trim().to_owned();
        return Err(Error::GoUnusable { go, says });
    }
    let version = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    let parses = version.strip_prefix("go").is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    if parses { Ok((go, GoVersion(version))) } else { Err(Error::GoUnusable { go, says: version }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_either_form_of_require() {
        let go_mod = "module m\n\nrequire helm.sh/helm/v3 v3.1.0\n\nrequire (\n\tk8s.io/kubernetes v1.36.3\n\tk8s.io/kubernetes-x v9 // indirect\n)\n";
        assert_eq!(required_version(go_mod, "k8s.io/kubernetes").unwrap(), "v1.36.3");
        assert_eq!(required_version(go_mod, "helm.sh/helm/v3").unwrap(), "v3.1.0");
        assert!(required_version(go_mod, "go.etcd.io/etcd").is_err());
    }

    #[test]
    fn the_version_of_kubernetes_is_stamped_as_a_whole_and_in_parts() {
        let flags = linker_flags("v1.36.3", "v3.22.0");
        assert!(flags.starts_with("-s -w -X "), "{flags}");
        assert!(flags.contains("version.gitVersion=v1.36.3 "), "{flags}");
        assert!(flags.contains("version.gitMinor=36 "), "{flags}");
    }

    #[test]
    fn a_folder_belongs_to_its_recipe_by_whatever_go_but_only_when_finished() {
        let recipe = Recipe { linker_flags: String::new(), hash: "00ff".to_owned() };
        let folder = recipe.folder(&GoVersion("go1.26.8".to_owned()));
        assert_eq!(folder, "00ff-go1.26.8");
        assert!(recipe.made(&folder));
        assert!(recipe.made("00ff-go1.27.0"));
        assert!(!recipe.made("00ff-go1.26.8.partial"));
        assert!(!recipe.made("11ff-go1.26.8"));
    }

    #[test]
    fn the_modules_of_this_repository_make_a_recipe() {
        let recipe = Recipe::read().unwrap();
        assert_eq!(recipe.hash.len(), 16);
        assert_ne!(recipe.hash, "0".repeat(16));
        assert!(recipe.linker_flags.contains("gitMajor=1 "), "{}", recipe.linker_flags);
    }
}

//! Finds the programs of the control plane: in a folder that the user names, or among what was built before. Never
//! builds; that is [`super::build`]'s work.

use std::path::{Path, PathBuf};

use super::recipe::{self, Recipe};
use super::{Component, Error};
use crate::repository;

/// The environment variable that envtest users have set to a folder with etcd, kube-apiserver and kubectl.
pub const KUBEBUILDER_ASSETS: &str = "KUBEBUILDER_ASSETS";

/// Where the programs come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A folder that the user named.
    Assets,
    /// Built from the pinned modules.
    Built,
}

/// A folder with the programs of a control plane: etcd, kube-apiserver and kubectl for certain, the others perhaps.
#[derive(Clone, Debug)]
pub struct Binaries {
    folder: PathBuf,
    origin: Origin,
}

impl Binaries {
    /// The folder of `assets`, else of `KUBEBUILDER_ASSETS`, else what was built before.
    pub fn locate(assets: Option<&Path>) -> Result<Self, Error> {
        match Self::from_user(assets)? {
            Some(binaries) => Ok(binaries),
            None => Self::from_cache()?.ok_or(Error::NotBuilt),
        }
    }

    /// What the user named, if anything was.
    pub(super) fn from_user(assets: Option<&Path>) -> Result<Option<Self>, Error> {
        let variable = std::env::var_os(KUBEBUILDER_ASSETS).filter(|value| !value.is_empty()).map(PathBuf::from);
        let Some(folder) = assets.map(Path::to_owned).or(variable) else {
            return Ok(None);
        };
        let missing: Vec<&str> = Component::ALL
            .into_iter()
            .filter(|component| component.required() && !folder.join(component.name()).is_file())
            .map(Component::name)
            .collect();
        if missing.is_empty() {
            Ok(Some(Self { folder, origin: Origin::Assets }))
        } else {
            Err(Error::AssetsIncomplete { folder, missing: missing.join(", ") })
        }
    }

    /// What was built before from the present sources: by the present Go, or by any if there is none now.
    pub(super) fn from_cache() -> Result<Option<Self>, Error> {
        let recipe = Recipe::read()?;
        let builds = builds_dir()?;
        if let Ok((_, version)) = recipe::find_go() {
            let folder = builds.join(recipe.folder(&version));
            if folder.is_dir() {
                return Ok(Some(Self { folder, origin: Origin::Built }));
            }
            return Ok(None);
        }
        let entries = std::fs::read_dir(&builds).map(|entries| entries.flatten().collect::<Vec<_>>());
        let found = entries
            .unwrap_or_default()
            .into_iter()
            .find(|entry| entry.file_name().to_str().is_some_and(|name| recipe.made(name)));
        Ok(found.map(|entry| Self { folder: entry.path(), origin: Origin::Built }))
    }

    /// A finished build in `folder`.
    pub(super) fn built(folder: PathBuf) -> Self {
        Self { folder, origin: Origin::Built }
    }

    /// The folder they are in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where they come from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Whether `component` is there.
    pub fn has(&self, component: Component) -> bool {
        self.folder.join(component.name()).is_file()
    }

    /// The path of `component`.
    pub fn path(&self, component: Component) -> Result<PathBuf, Error> {
        let path = self.folder.join(component.name());
        if path.is_file() { Ok(path) } else { Err(Error::ComponentMissing { component, folder: self.folder.clone() }) }
    }

    /// Those that are not there. Only a folder of the user's can lack any.
    pub fn missing(&self) -> Vec<Component> {
        Component::ALL.into_iter().filter(|component| !self.has(*component)).collect()
    }
}

/// The folder of all builds, one folder each.
pub(super) fn builds_dir() -> Result<PathBuf, Error> {
    repository::cache_dir().map(|cache| cache.join("control-plane")).ok_or(Error::NoCacheFolder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        folder
    }

    #[test]
    fn a_folder_of_the_users_needs_the_three_of_envtest_only() {
        let folder = folder_with(&["etcd", "kube-apiserver", "kubectl"]);
        let binaries = Binaries::locate(Some(folder.path())).unwrap();
        assert_eq!(binaries.origin(), &Origin::Assets);
        assert!(binaries.has(Component::Etcd) && !binaries.has(Component::KubeControllerManager));
        assert_eq!(
            binaries.missing(),
            [Component::KubeControllerManager, Component::KubeScheduler, Component::Helm, Component::Kwok]
        );
        let error = binaries.path(Component::Helm).unwrap_err().to_string();
        assert!(error.contains("helm"), "{error}");
    }

    #[test]
    fn what_a_folder_of_the_users_lacks_is_named() {
        let folder = folder_with(&["kube-apiserver"]);
        let error = Binaries::locate(Some(folder.path())).unwrap_err().to_string();
        assert!(error.contains("etcd, kubectl"), "{error}");
        assert!(error.contains(folder.path().to_str().unwrap()), "{error}");
    }
}

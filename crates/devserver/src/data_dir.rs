//! The files of a data directory: the store, the admin token, the CA, and where the running server listens.
//!
//! Every file is replaced as a whole: written beside its place, synced, renamed. Whoever reads one never sees a part.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::secret_text::SecretText;

/// For the owner only.
pub(crate) const PRIVATE: u32 = 0o600;
/// Readable by everybody: certificates.
pub(crate) const PUBLIC: u32 = 0o644;

/// A file operation failed.
#[derive(Debug, thiserror::Error)]
#[error("{what} {path}: {source}")]
pub struct FileError {
    what: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl FileError {
    pub(crate) fn new(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self { what, path: path.to_owned(), source }
    }
}

/// Where a running server is, for the client verbs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// Base URL of the API.
    pub url: String,
    /// Base URL of the admin side, when there is one.
    pub admin_url: Option<String>,
    /// File with the certificate to trust, when the API speaks TLS.
    pub ca: Option<PathBuf>,
}

/// A data directory.
#[derive(Clone, Debug)]
pub struct DataDir(PathBuf);

impl DataDir {
    /// The directory at `path`, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Creates the directory if needed, for the owner only.
    pub(crate) fn create(&self) -> Result<(), FileError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.0)
            .map_err(|error| FileError::new("cannot create the directory", &self.0, error))
    }

    /// The store.
    pub(crate) fn store(&self) -> PathBuf {
        self.0.join("store.redb")
    }

    /// The certificate to trust.
    pub(crate) fn ca(&self) -> PathBuf {
        self.0.join("ca.pem")
    }

    pub(crate) fn ca_key(&self) -> PathBuf {
        self.0.join("ca-key.pem")
    }

    /// The token that the client verbs use.
    pub fn admin_token_file(&self) -> PathBuf {
        self.0.join("admin-token")
    }

    fn address_file(&self) -> PathBuf {
        self.0.join("server.json")
    }

    /// The admin token; `None` before the first start.
    pub fn admin_token(&self) -> Result<Option<SecretText>, FileError> {
        let text = read(&self.admin_token_file())?;
        Ok(text.map(|text| SecretText::new(text.trim().to_owned())).filter(|token| !token.expose().is_empty()))
    }

    pub(crate) fn keep_admin_token(&self, token: &SecretText) -> Result<(), FileError> {
        replace(&self.admin_token_file(), format!("{}\n", token.expose()).as_bytes(), PRIVATE)
    }

    /// Where the server of this directory listens; `None` when none runs, as far as it could say so.
    pub fn address(&self) -> Result<Option<Address>, FileError> {
        let path = self.address_file();
        let Some(text) = read(&path)? else { return Ok(None) };
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| FileError::new("cannot read", &path, io::Error::other(error)))
    }

    pub(crate) fn keep_address(&self, address: &Address) -> Result<(), FileError> {
        replace_with_json(&self.address_file(), address)
    }

    /// After a stop in good order nothing shall be sent to whoever has the port next.
    pub(crate) fn forget_address(&self) {
        let _ = std::fs::remove_file(self.address_file());
    }
}

/// The text of a file; `None` when there is no file.
pub(crate) fn read(path: &Path) -> Result<Option<String>, FileError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FileError::new("cannot read", path, error)),
    }
}

/// [`replace`] with `content` as JSON, for the owner only.
pub(crate) fn replace_with_json(path: &Path, content: &impl Serialize) -> Result<(), FileError> {
    let mut bytes = serde_json::to_vec_pretty(content)
        .map_err(|error| FileError::new("cannot write", path, io::Error::other(error)))?;
    bytes.push(b'\n');
    replace(path, &bytes, PRIVATE)
}

/// Puts `content` in the place of the file at `path`, with these permissions from the first byte on.
pub(crate) fn replace(path: &Path, content: &[u8], mode: u32) -> Result<(), FileError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = PathBuf::from(beside);
    let written = (|| {
        // One left behind by a crash of a process of the same number would keep its own permissions.
        match std::fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside)?;
        file.write_all(content)?;
        file.sync_all()?;
        std::fs::rename(&beside, path)?;
        // The rename itself is durable once the directory is.
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(parent)?.sync_all()
    })();
    written.map_err(|error| {
        let _ = std::fs::remove_file(&beside);
        FileError::new("cannot write", path, error)
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::{Address, DataDir};
    use crate::secret_text::SecretText;

    #[test]
    fn the_admin_token_is_for_the_owner_only_and_comes_back_as_it_was() {
        let parent = tempfile::tempdir().unwrap();
        let dir = DataDir::new(parent.path().join("data"));
        dir.create().unwrap();
        assert_eq!(dir.admin_token().unwrap(), None);
        let token = SecretText::new("fft_canary".to_owned());
        dir.keep_admin_token(&token).unwrap();
        assert_eq!(dir.admin_token().unwrap(), Some(token));
        let mode = |path: std::path::PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(dir.admin_token_file()), 0o600);
        assert_eq!(mode(parent.path().join("data")), 0o700);
    }

    #[test]
    fn a_replaced_file_leaves_nothing_beside_it() {
        let parent = tempfile::tempdir().unwrap();
        let dir = DataDir::new(parent.path());
        let address = |url: &str| Address { url: url.to_owned(), admin_url: None, ca: None };
        dir.keep_address(&address("http://127.0.0.1:1")).unwrap();
        dir.keep_address(&address("http://127.0.0.1:2")).unwrap();
        assert_eq!(dir.address().unwrap(), Some(address("http://127.0.0.1:2")));
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 1);
        dir.forget_address();
        assert_eq!(dir.address().unwrap(), None);
    }

    #[test]
    fn a_directory_that_is_not_there_is_named_in_the_error() {
        let parent = tempfile::tempdir().unwrap();
        let dir = DataDir::new(parent.path().join("nowhere"));
        let error = dir.keep_admin_token(&SecretText::new("fft_canary".to_owned())).unwrap_err().to_string();
        assert!(error.contains("nowhere/admin-token") && !error.contains("canary"), "{error}");
    }
}

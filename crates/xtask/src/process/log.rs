//! Reads the log of a child while it is being written.

use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::ProcessError;

/// How far back a tail looks: 64 KiB hold the last lines of any program, even of one that logs whole objects.
const TAIL_BYTES: u64 = 64 * 1024;

/// The lines of a growing file, from its start.
pub(super) struct Lines {
    path: PathBuf,
    file: BufReader<File>,
    /// Bytes read that do not end in a newline yet.
    pending: Vec<u8>,
}

impl Lines {
    pub(super) fn open(path: &Path) -> Result<Self, ProcessError> {
        let file = File::open(path).map_err(|source| ProcessError::File { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), file: BufReader::new(file), pending: Vec::new() })
    }

    /// The next complete line, or nothing for now. With `last`, an unfinished line counts as complete.
    pub(super) fn next(&mut self, last: bool) -> Result<Option<String>, ProcessError> {
        let mut byte = [0u8; 1];
        loop {
            let read =
                self.file.read(&mut byte).map_err(|source| ProcessError::File { path: self.path.clone(), source })?;
            match byte {
                _ if read == 0 => break,
                [b'\n'] => return Ok(Some(self.take())),
                [other] => self.pending.push(other),
            }
        }
        Ok((last && !self.pending.is_empty()).then(|| self.take()))
    }

    fn take(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.pending)).into_owned()
    }
}

/// The last `count` lines of a file; what cannot be read reads as empty, because a tail decorates another error.
pub fn tail(path: &Path, count: usize) -> String {
    let text = read_end(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let start = lines.len().saturating_sub(count);
    lines.get(start..).unwrap_or_default().join("\n")
}

fn read_end(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

//! Files that commands read and write.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use serde_json::Value;
use uuid::Uuid;

use super::{Error, Result};

pub(super) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

/// Reads a text file, or standard input for `-`.
pub(super) fn read_or_input(path: &Path) -> Result<String> {
    match path.to_str() {
        Some("-") => io::read_to_string(io::stdin()).map_err(Error::Input),
        _ => read(path),
    }
}

/// Reads a person's input as JSON, or as text.
pub(super) fn json_or_text(text: String) -> Value {
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// Creates the directory of a file that is to be written.
pub(super) fn make_directory_of(path: &Path) -> Result<()> {
    let directory = path.parent().unwrap_or(Path::new(""));
    if directory.as_os_str().is_empty() {
        return Ok(());
    }
    let failed = |source| Error::Write { path: path.to_owned(), source };
    fs::create_dir_all(directory).map_err(failed)
}

/// Replaces a file by one that only its owner can read. Readers see the old content or the new, never a part.
///
/// A link is replaced, not followed. A pipe or a device is written to.
pub(super) fn replace(path: &Path, content: &[u8]) -> Result<()> {
    let failed = |source| Error::Write { path: path.to_owned(), source };
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        let mut file = File::options().write(true).open(path).map_err(failed)?;
        return file.write_all(content).map_err(failed);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", Uuid::new_v4()));
    let draft = path.with_file_name(name);
    let private = File::options().write(true).create_new(true).mode(0o600).open(&draft);
    let written = private.and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&draft, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written.map_err(failed)
}

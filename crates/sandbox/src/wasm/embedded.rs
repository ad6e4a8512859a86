//! The interpreter's code: embedded compressed, kept unpacked in the user's cache, mapped from there.
//!
//! A mapped file costs the memory of the pages that are used, a copy all 45 MB. A file is used only if its content
//! matches the embedded one; if no file can be stored, the code is copied.
#![expect(
    unsafe_code,
    reason = "native code is loaded; it is what was compiled with this program, by hash"
)]

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use wasmtime::{Config, Engine, Module};

use crate::Error;

const CODE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/python.cwasm.zst"));
const HASH: &str = env!("PYTHON_CODE_HASH");
const SIZE: &str = env!("PYTHON_CODE_SIZE");

/// The standard library, and the interpreter's search path.
pub const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/python.zip"));
pub const LIBRARY_PATH: &str = env!("PYTHON_LIBRARY_PATH");

/// Returns the settings that the code was compiled under; any other would be refused when it is loaded.
pub fn settings() -> Config {
    let mut config = Config::new();
    config.consume_fuel(true);
    config.memory_init_cow(true);
    config.memory_guaranteed_dense_image_size(128 << 20);
    config.memory_reservation(1 << 30);
    config.memory_guard_size(64 << 10);
    config
}

/// Loads the code.
///
/// # Errors
/// [`Error::Interpreter`] if this machine cannot run it.
pub fn load(engine: &Engine) -> Result<Module, Error> {
    let failed = |error: wasmtime::Error| Error::Interpreter(error.into());
    if let Some(file) = cache().and_then(|folder| kept(&folder).or_else(|| keep(&folder))) {
        // SAFETY: the open file has the bytes that the build compiled for this engine; only this user can write to its folder.
        return unsafe { Module::deserialize_open_file(engine, file) }.map_err(failed);
    }
    let code = unpacked()?;
    // SAFETY: these are the bytes that the build compiled for this engine.
    unsafe { Module::deserialize(engine, code) }.map_err(failed)
}

fn unpacked() -> Result<Vec<u8>, Error> {
    let size = SIZE.parse().unwrap_or(64 << 20);
    zstd::bulk::decompress(CODE, size).map_err(|error| Error::Interpreter(error.into()))
}

/// The cache folder; `None` without a home directory.
fn cache() -> Option<PathBuf> {
    let folder =
        std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let folder = folder
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))?;
    folder.is_absolute().then(|| folder.join("perihelion"))
}

fn path(folder: &Path) -> PathBuf {
    folder.join(format!("python-{}.cwasm", HASH.get(..16).unwrap_or(HASH)))
}

/// Opens the stored file if it is complete and only this user could have written it.
fn kept(folder: &Path) -> Option<File> {
    let mut file = File::open(path(folder)).ok()?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 256 << 10];
    loop {
        let count = file.read(&mut buffer).ok()?;
        if count == 0 {
            break;
        }
        hasher.update(buffer.get(..count)?);
    }
    (is_private(&file) && hasher.finalize().to_hex().as_str() == HASH).then_some(file)
}

/// Unpacks the code into a file that appears whole or not at all.
fn keep(folder: &Path) -> Option<File> {
    let code = unpacked().ok()?;
    std::fs::create_dir_all(folder).ok()?;
    let mut file = tempfile::NamedTempFile::new_in(folder).ok()?;
    file.write_all(&code).ok()?;
    file.persist(path(folder)).ok()?;
    kept(folder)
}

#[cfg(unix)]
fn is_private(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    // What others may write, or own, they could change between the check and the run.
    let own = tempfile::tempfile().and_then(|file| file.metadata()).map(|own| own.uid());
    let Ok(data) = file.metadata() else { return false };
    data.mode() & 0o022 == 0 && own.is_ok_and(|own| own == data.uid())
}

#[cfg(not(unix))]
fn is_private(_: &File) -> bool {
    true
}

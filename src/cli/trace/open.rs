//! `trace --open`: a page in a file, and the browser on it.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::cli::{Error, browser, output};
use perihelion_runtime::Trace;

/// Writes the page and says where; opens it where that is wanted and there is a display.
pub(super) fn run(trace: &Trace, out: Option<PathBuf>, open: bool) -> Result<(), Error> {
    let page = trace.to_page().map_err(|error| Error::Output(error.into()))?;
    let path = out.unwrap_or_else(|| {
        std::env::temp_dir().join(format!("perihelion-trace-{}.html", trace.head.trace_id))
    });
    write(&path, page.as_bytes()).map_err(|source| Error::Write { path: path.clone(), source })?;
    output::text(&path.display().to_string())?;
    if open && let Err(why) = browser::open(&path) {
        output::note(&format!("the page was not opened: {why}"));
    }
    Ok(())
}

/// Writes a file that only its owner can read, over whatever stood there; a link is not followed.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let directory = match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    };
    let draft = directory.join(format!(".perihelion-trace-{}", uuid::Uuid::new_v4()));
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    let written = file.write_all(bytes).and_then(|()| std::fs::rename(&draft, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    written
}

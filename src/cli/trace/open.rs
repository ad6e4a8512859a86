//! `trace --open`: a page in a file, and the browser on it.

use std::path::PathBuf;

use crate::cli::{Error, browser, files, output};
use perihelion_runtime::Trace;

/// Writes the page and says where; opens it where that is wanted and there is a display.
pub(super) fn run(trace: &Trace, out: Option<PathBuf>, open: bool) -> Result<(), Error> {
    let page = trace.to_page().map_err(|error| Error::Output(error.into()))?;
    let path = out.unwrap_or_else(|| {
        std::env::temp_dir().join(format!("perihelion-trace-{}.html", trace.head.trace_id))
    });
    files::replace_text(&path, &page)?;
    output::text(&path.display().to_string())?;
    if open && let Err(why) = browser::open(&path) {
        output::note(&format!("cannot open the page: {why}"));
    }
    Ok(())
}

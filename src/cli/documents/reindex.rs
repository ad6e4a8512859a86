//! `documents reindex`.

use std::sync::Arc;

use crate::cli::bars::{Bar, Form};
use crate::cli::output::{self, BARS};
use crate::cli::{Error, Exit};
use perihelion_runtime::Documents;

#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    #[command(flatten)]
    within: super::InCollection,
    /// Hide progress
    #[arg(long, short)]
    quiet: bool,
}

pub(super) async fn run(documents: &Documents, args: &Args) -> Result<Exit, Error> {
    if let Some(collection) = args.within.named() {
        output::note(&format!(
            "all collections share one model, so every collection is embedded, not only: {collection}"
        ));
    }
    let bar = output::bar(ProgressBar::new_spinner(), "{spinner:.cyan} {elapsed:>4} {wide_msg}");
    let bar = bar.filter(|_| !args.quiet);
    let shown = bar.clone();
    let quiet = args.quiet;
    let listener = move |done: u64| {
        let text = format!("embedded {done} texts");
        match &shown {
            Some(bar) => bar.set_message(text),
            None if quiet => {}
            None => output::note(&text),
        }
    };
    let done = documents.reindex(Arc::new(listener)).await;
    if let Some(bar) = bar {
        bar.end();
    }
    match done? {
        Some(count) => {
            output::text(&format!("embedded {count} texts; searches now use this model"))?
        }
        None => output::note(
            "no embeddings endpoint is configured, so documents use keyword search only; set PERIHELION_EMBEDDINGS_URL",
        ),
    }
    Ok(Exit::Done)
}

/// A line that moves on a terminal; how many texts are left nobody knows before they are asked for.
fn bar(quiet: bool) -> Option<Bar> {
    let live = !quiet && std::io::stderr().is_terminal();
    live.then(|| BARS.add(Form::Spinner))
}

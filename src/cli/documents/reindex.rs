//! `documents reindex`.

use std::sync::Arc;

use crate::cli::bars::Form;
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
    // How many texts are left is not known before they are read.
    let bar = BARS.shown(Form::Spinner).filter(|_| !args.quiet);
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

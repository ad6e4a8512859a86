//! `threads export` and `threads import`.

use std::path::PathBuf;

use super::list::as_json;
use super::{Context, Result};
use crate::cli::files::{read_or_input, replace};
use crate::cli::output;
use perihelion_engine::checkpoint::{read_dump, write_dump};
use perihelion_runtime::open_rows;

#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// Thread to export. With --data, defaults to all threads with feedback
    #[arg(required_unless_present = "data")]
    thread: Option<String>,
    /// File to write, readable only by its owner. Defaults to standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write a data set for `perihelion eval` instead: questions, answers, labels and notes
    #[arg(long)]
    data: bool,
}

#[derive(Debug, clap::Args)]
pub struct ImportArgs {
    /// File to read. Use - for standard input
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn export(context: &Context<'_>, args: &ExportArgs) -> Result<()> {
    let mut text = Vec::new();
    let thread = match &args.thread {
        Some(name) => Some(context.find(Some(name)).await?),
        None => None,
    };
    let wrote = match thread.filter(|_| !args.data) {
        Some(thread) => {
            let dump = context.threads.export(thread).await?;
            write_dump(&dump, &mut text)?;
            output::count(dump.steps.len() as u64, "step")
        }
        None => {
            let rows = open_rows(context.settings).await?;
            let data = context.threads.data_set(&rows, thread).await;
            rows.close().await;
            text.extend(data?.into_bytes());
            if text.is_empty() && thread.is_none() {
                output::note("no rated answers; rate answers in the web UI, or pass a thread");
            }
            output::count(text.split(|byte| *byte == b'\n').count() as u64 - 1, "case")
        }
    };
    let Some(path) = args.output.as_ref().filter(|path| path.as_os_str() != "-") else {
        return output::bytes(&text);
    };
    replace(path, &text)?;
    output::note(&format!("wrote {wrote} to {}", path.display()));
    Ok(())
}

pub(super) async fn import(context: &Context<'_>, args: &ImportArgs) -> Result<()> {
    let text = read_or_input(&args.file)?;
    let info = context.threads.import(read_dump(text.as_bytes())?, None).await?;
    output::either(args.json, &as_json(&info), || info.id.to_string())
}

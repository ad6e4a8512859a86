//! `threads export` and `threads import`.

use std::path::PathBuf;

use super::Result;
use crate::cli::files::{read_or_input, replace_text};
use crate::cli::output;
use perihelion_engine::checkpoint::{read_dump, write_dump};
use perihelion_runtime::{Threads, open_rows};
use perihelion_settings::config::Settings;

#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// Thread to export. With --data, defaults to all threads with feedback
    #[arg(required_unless_present = "data")]
    pub(super) thread: Option<String>,
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

pub(super) async fn export(
    threads: &Threads,
    settings: &Settings,
    args: &ExportArgs,
) -> Result<()> {
    let mut text = Vec::new();
    let thread = match &args.thread {
        Some(name) => Some(threads.find(Some(name)).await?),
        None => None,
    };
    let wrote = match thread.filter(|_| !args.data) {
        Some(thread) => {
            let dump = threads.export(thread).await?;
            write_dump(&dump, &mut text)?;
            output::count(dump.steps.len() as u64, "step")
        }
        None => {
            let rows = open_rows(settings).await?;
            let data = threads.data_set(&rows, thread).await;
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
    replace_text(path, &String::from_utf8_lossy(&text))?;
    output::note(&format!("wrote {wrote} to {}", path.display()));
    Ok(())
}

pub(super) async fn import(threads: &Threads, args: &ImportArgs) -> Result<()> {
    let text = read_or_input(&args.file)?;
    let info = threads.import(read_dump(text.as_bytes())?, None).await?;
    if args.json {
        return output::json(&super::list::as_json(&info));
    }
    output::text(&info.id.to_string())
}

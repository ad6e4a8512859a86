//! `threads export` and `threads import`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use super::Error;
use crate::cli::files::replace;
use crate::cli::output;
use perihelion_engine::checkpoint::{read_dump, write_dump};
use perihelion_runtime::Threads;

#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// Thread to export
    pub(super) thread: String,
    /// File to write, readable only by its owner. Defaults to standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write a suite for `perihelion eval` instead, with the questions and their results
    #[arg(long, conflicts_with = "output")]
    suite: bool,
}

#[derive(Debug, clap::Args)]
pub struct ImportArgs {
    /// File to read. Use - for standard input
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn export(threads: &Threads, args: &ExportArgs) -> Result<(), Error> {
    let thread = threads.find(Some(&args.thread)).await?;
    if args.suite {
        return output::bytes(threads.suite(thread, &args.thread).await?.as_bytes());
    }
    let dump = threads.export(thread).await?;
    let Some(path) = args.output.as_ref().filter(|path| path.as_os_str() != "-") else {
        let mut text = Vec::new();
        write_dump(&dump, &mut text)?;
        return output::bytes(&text);
    };
    replace(path, |file| Ok(write_dump(&dump, file)?))?;
    output::note(&format!("wrote {} steps to {}", dump.steps.len(), path.display()));
    Ok(())
}

pub(super) async fn import(threads: &Threads, args: &ImportArgs) -> Result<(), Error> {
    let from: Box<dyn BufRead> = match args.file.to_str() {
        Some("-") => Box::new(BufReader::new(std::io::stdin())),
        _ => {
            let file = File::open(&args.file)
                .map_err(|source| Error::Read { path: args.file.clone(), source })?;
            Box::new(BufReader::new(file))
        }
    };
    let info = threads.import(read_dump(from)?, None).await?;
    if args.json {
        return output::json(&super::list::as_json(&info));
    }
    output::text(&info.id.to_string())
}

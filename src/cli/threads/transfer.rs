//! `threads export` and `threads import`.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use super::Error;
use crate::cli::output;
use perihelion_engine::checkpoint::{read_dump, write_dump};
use perihelion_runtime::Threads;

#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// The thread
    pub(super) thread: String,
    /// The file to write, readable by its owner alone; - or nothing for standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write a suite for `perihelion eval` instead: the questions, and what came of them
    #[arg(long, conflicts_with = "output")]
    suite: bool,
}

#[derive(Debug, clap::Args)]
pub struct ImportArgs {
    /// The file; - for standard input
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
    let failed = |source| Error::Write { path: path.clone(), source };
    // A pipe or a device is written to, not replaced.
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        let mut file = BufWriter::new(File::options().write(true).open(path).map_err(failed)?);
        write_dump(&dump, &mut file)?;
        return file.flush().map_err(failed);
    }
    // Written beside it first: a full disk must not leave half a file under the name.
    let draft = draft_of(path);
    let written = private(&draft).map_err(failed).and_then(|file| {
        let mut file = BufWriter::new(file);
        write_dump(&dump, &mut file)?;
        file.flush().and_then(|()| file.get_ref().sync_all()).map_err(failed)?;
        std::fs::rename(&draft, path).map_err(failed)
    });
    if written.is_err() {
        // It may not even have been made.
        let _ = std::fs::remove_file(&draft);
    }
    written?;
    output::note(&format!("wrote {} steps to {}", dump.steps.len(), path.display()));
    Ok(())
}

fn draft_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

fn private(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    File::options().write(true).create_new(true).mode(0o600).open(path)
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

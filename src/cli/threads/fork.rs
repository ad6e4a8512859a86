//! `threads fork`.

use clap::builder::NonEmptyStringValueParser;

use super::Error;
use super::list::as_json;
use crate::cli::globals::quoted;
use crate::cli::output;
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::Threads;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Thread to fork
    pub(super) thread: String,
    /// Last step that both threads share
    #[arg(long, value_name = "STEP")]
    at: u64,
    /// ID or name of the fork. Defaults to a new ID
    #[arg(long = "thread", value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    new: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(threads: &Threads, args: &Args, invocation: &str) -> Result<(), Error> {
    let (id, title) = match &args.new {
        None => (ThreadId::new(), None),
        Some(name) => ThreadId::from_name(name),
    };
    let source = threads.find(Some(&args.thread)).await?;
    let fork = threads.fork(source, args.at, id, title.map(str::to_owned)).await?;
    if args.json {
        return output::json(&as_json(&fork));
    }
    output::text(&fork.id.to_string())?;
    if !threads.is_of_star(fork.id).await? {
        output::note(&format!(
            "only a program with this graph can continue the thread: {}",
            fork.graph
        ));
        return Ok(());
    }
    let next = threads.state(fork.id, None).await?.next;
    let name = args.new.as_deref().map_or_else(|| fork.id.to_string(), quoted);
    if next.is_empty() {
        output::note(&format!(
            "to ask another question, run: {invocation} run --thread {name} QUESTION"
        ))
    } else {
        output::note(&format!("to continue from there, run: {invocation} resume {name}"))
    }
    Ok(())
}

//! `threads update`.

use serde_json::{Map, Value, json};

use super::Error;
use crate::cli::output;
use perihelion_agents::kinds;
use perihelion_runtime::Threads;
use perihelion_settings::config::Settings;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The change is recorded as a step, as if a node had written it. Lists are appended to, and other fields are
replaced. An unfinished step is discarded. Earlier steps do not change. Without --as, no node runs next.

Examples:
  perihelion threads update weekly-report --set answer='\"Seven.\"'
  perihelion threads update weekly-report --set plan='[\"look again\"]' --as supervisor")]
pub struct Args {
    /// Thread to change
    pub(super) thread: String,
    /// Field of the state and its new value, as JSON or plain text. Repeatable
    #[arg(long, value_name = "FIELD=VALUE", value_parser = assignment)]
    set: Vec<(String, Value)>,
    /// Node to record as the author. Its routes decide the next nodes
    #[arg(long = "as", value_name = "NODE")]
    as_node: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn assignment(text: &str) -> Result<(String, Value), String> {
    let (field, value) =
        text.split_once('=').ok_or("expected FIELD=VALUE, such as answer=Seven")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
    Ok((field.trim().to_owned(), value))
}

pub(super) async fn run(threads: &Threads, settings: &Settings, args: &Args) -> Result<(), Error> {
    if args.set.is_empty() {
        return Err(Error::NothingToSet);
    }
    let thread = threads.find(Some(&args.thread)).await?;
    let fields: Map<String, Value> = args.set.iter().cloned().collect();
    let node = args.as_node.as_deref();
    let view = threads.update(settings, kinds(), thread, fields, node).await?;
    if args.json {
        return output::json(&json!({ "thread_id": thread, "step": view.seq, "next": view.next }));
    }
    let next = match view.next.as_slice() {
        [] => "the end".to_owned(),
        next => next.join(", "),
    };
    output::note(&format!("step {}, next: {next}", view.seq));
    Ok(())
}

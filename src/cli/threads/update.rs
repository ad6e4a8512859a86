//! `threads update`.

use serde_json::{Map, Value, json};

use super::Error;
use crate::cli::output;
use perihelion_runtime::Threads;
use perihelion_settings::config::Settings;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
A change is a step of the thread, as if a node had written it: lists are appended to, other fields replaced. What was
under way is abandoned; earlier steps stay as they are. Without --as nothing runs after it.

Examples:
  perihelion threads update weekly-report --set answer='\"Seven.\"'
  perihelion threads update weekly-report --set plan='[\"look again\"]' --as supervisor")]
pub struct Args {
    /// The thread
    pub(super) thread: String,
    /// A field of the state and its value, as JSON or plain text; may be given several times
    #[arg(long, value_name = "FIELD=VALUE", value_parser = assignment)]
    set: Vec<(String, Value)>,
    /// The node that is to have written it, whose routes are next
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
    let view = threads.update(settings, thread, fields, node).await?;
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

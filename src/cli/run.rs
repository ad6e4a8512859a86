//! `perihelion run`: a question, on a new thread or a named one.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::builder::NonEmptyStringValueParser;
use serde_json::Value;

use super::execute;
use super::show::Show;
use super::{Error, Exit, Globals};
use perihelion_runtime::{Job, LOCAL_TENANT, Threads};
use perihelion_settings::config::Settings;
use perihelion_star::{Attachment, Request};

/// Bytes read from standard input; a question has its own, lower bound.
const INPUT_BYTES: u64 = 4 * 1024 * 1024;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perihelion run \"Which time zones did Europe/Vienna observe in 1945?\"
  perihelion run \"And in 1946?\" --thread vienna
  perihelion run - --context region=EU --context year=2024 --json < question.txt
  perihelion run \"Summarise the notes\" --prefer files --disable sql
  perihelion run \"Summarise the notes\" --max-turns 2 --system-prompt \"Answer in French, in one sentence\"
  perihelion run \"What does this say?\" --attach scan.png --attach plan.pdf
  perihelion run \"Summarise the notes\" --detach        a `perihelion worker` does it

Standard output carries the answer alone. With --json it is one object: thread_id, run_id, status
(done, interrupted, failed), answer, data, results, citations, planner, interrupts, finish_reason,
usage, steps, metadata, and trace where that is asked for.")]
pub struct Args {
    /// The question, in quotes; - reads it from standard input
    #[arg(value_name = "QUESTION", allow_hyphen_values = false)]
    question: String,
    /// Thread to ask on: a UUID, or a name that stands for one; by default a new thread
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    thread: Option<String>,
    /// A fact for the agents, such as region=EU; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    context: Vec<(String, String)>,
    /// Agents to be preferred, separated by commas
    #[arg(long, value_name = "AGENT,…", value_delimiter = ',')]
    prefer: Vec<String>,
    /// Agents not to be used, separated by commas
    #[arg(long, value_name = "AGENT,…", value_delimiter = ',')]
    disable: Vec<String>,
    /// A team that does the whole work; `perihelion teams` lists them
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub team: Option<String>,
    /// Who asks: what is known of them is in the prompts, and what they say of themselves is remembered
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    user: Option<String>,
    /// Whose thread it is, where it is new, with their skills, memories, documents and teams
    #[arg(long, value_name = "TENANT", default_value = LOCAL_TENANT)]
    tenant: String,
    /// Decisions that the supervisor may take; then the answer is written from what there is
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_turns: Option<u32>,
    /// How you want the work done and the answer put; all agents are told, and it changes none of their rules
    #[arg(long, value_name = "TEXT")]
    system_prompt: Option<String>,
    /// An image or a file that comes with the question; may be given several times
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,
    /// Leave the run to the workers and print the thread's id
    #[arg(long)]
    detach: bool,
    /// Print one JSON object in place of the answer
    #[arg(long)]
    json: bool,
    /// Add the first table that was found to that object
    #[arg(long, requires = "json")]
    include_data: bool,
    /// Add what happened to that object, event by event
    #[arg(long = "trace", requires = "json")]
    events: bool,
    /// Print what happens as lines of JSON while it happens, and the object of --json last
    #[arg(long = "events", conflicts_with = "detach")]
    lines: bool,
    /// Answer with JSON that is valid against the JSON Schema in this file
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.to_owned()))
        }
        _ => Err("expected KEY=VALUE, such as region=EU".to_owned()),
    }
}

pub(super) async fn run(globals: &Globals, settings: Settings, args: Args) -> Result<Exit, Error> {
    let question = match args.question.as_str() {
        "-" => {
            let mut text = String::new();
            let mut input = std::io::stdin().lock().take(INPUT_BYTES);
            input.read_to_string(&mut text).map_err(Error::Input)?;
            text
        }
        _ => args.question,
    };
    let (thread, title) = Threads::to_ask(&settings, &args.tenant, args.thread.as_deref()).await;
    let listed = |names: Vec<String>| {
        names.into_iter().filter(|name| !name.trim().is_empty()).collect::<Vec<_>>()
    };
    let context: BTreeMap<String, String> = args.context.into_iter().collect();
    let attachments = args.attach.iter().map(|path| attachment(path)).collect::<Result<_, _>>()?;
    let request = Request {
        attachments,
        question,
        context,
        prefer: listed(args.prefer),
        disable: listed(args.disable),
        team: args.team,
        user: args.user,
        max_turns: args.max_turns,
        system_prompt: args.system_prompt,
        answer_schema: args.schema.as_deref().map(schema).transpose()?,
        ..Request::default()
    };
    let show = Show {
        json: args.json || args.lines,
        events: args.events,
        lines: args.lines,
        include_data: args.include_data,
        structured: args.schema.is_some(),
        quiet: args.quiet,
        name: args.thread.clone(),
        ..Show::new(globals.invocation())
    };
    let tenant = args.tenant;
    let job = if args.detach {
        Job::Submit { thread, title, tenant, request }
    } else {
        Job::Ask { thread, title, tenant, request }
    };
    execute::execute(settings, job, &show).await
}

/// Reads a file that comes with the question.
fn attachment(path: &Path) -> Result<Attachment, Error> {
    let bytes =
        std::fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    Ok(Attachment::of_file(&path.to_string_lossy(), &bytes))
}

/// Reads the schema of an answer, which is to be an object.
fn schema(path: &Path) -> Result<Value, Error> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let refuse = |reason: String| Error::Schema { path: path.to_owned(), reason };
    serde_json::from_str(&text).map_err(|error| refuse(format!("it is not JSON: {error}")))
}

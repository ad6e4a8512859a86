//! `perihelion run`: a question, on a new thread or a named one.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::builder::NonEmptyStringValueParser;
use serde_json::Value;

use super::execute;
use super::show::{Printed, Show};
use super::{Error, Exit, Globals, Result, files, output};
use perihelion_engine::ids::ThreadId;
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
  perihelion run \"Summarise the notes\" --max-turns 2 --system-prompt \"Answer in French\"
  perihelion run \"What does this say?\" --attach scan.png --attach plan.pdf
  perihelion run \"Summarise the notes\" --detach        Let a `perihelion worker` run it

Standard output contains only the answer. With --json, it is one object. Fields: thread_id, run_id,
status (done, interrupted, failed, stopped or queued), answer, data, results, citations, planner,
interrupts, finish_reason, usage, steps and metadata. The fields trace, structured, cost_usd and
error are present if they apply. Without a result, the object has an error instead, with a type, a
code and a message, and the thread_id if there is a thread.")]
pub struct Args {
    /// Question to ask, in quotes. Use - to read it from standard input
    #[arg(value_name = "QUESTION", allow_hyphen_values = false)]
    question: String,
    /// Thread to ask on, by name, UUID or the short ID that `threads` prints. Defaults to a new thread
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    thread: Option<String>,
    /// Fact to pass to the agents, such as region=EU. Repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    context: Vec<(String, String)>,
    /// Agents to prefer, separated by commas
    #[arg(long, value_name = "AGENT,…", value_delimiter = ',')]
    prefer: Vec<String>,
    /// Agents to exclude, separated by commas
    #[arg(long, value_name = "AGENT,…", value_delimiter = ',')]
    disable: Vec<String>,
    /// Team that does all of the work. `perihelion teams` lists teams
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub team: Option<String>,
    /// User who asks. Prompts include memories about this user, and new ones are saved
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    user: Option<String>,
    /// Tenant that owns the thread if it is new, with its skills, memories, documents and teams
    #[arg(long, value_name = "TENANT", default_value = LOCAL_TENANT, value_parser = NonEmptyStringValueParser::new())]
    tenant: String,
    /// Maximum number of supervisor decisions. After that, the answer uses the results so far
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_turns: Option<u32>,
    /// Instructions for how to work and answer. Passed to all agents; cannot change their rules
    #[arg(long, value_name = "TEXT")]
    system_prompt: Option<String>,
    /// Image or file to send with the question. Repeatable
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,
    /// Queue the run for a worker and print the thread ID
    #[arg(long, conflicts_with = "lines")]
    detach: bool,
    #[command(flatten)]
    printed: Printed,
    /// Answer with JSON that is valid against the JSON Schema in FILE
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
}

fn key_value(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.to_owned()))
        }
        _ => Err("expected KEY=VALUE, such as region=EU"),
    }
}

pub(super) async fn run(globals: &Globals, settings: Settings, args: Args) -> Result<Exit> {
    let question = match args.question.as_str() {
        "-" => {
            let mut text = String::new();
            let mut input = std::io::stdin().lock().take(INPUT_BYTES);
            input.read_to_string(&mut text).map_err(Error::Input)?;
            text
        }
        _ => args.question,
    };
    let (thread, title) = match args.thread.as_deref() {
        Some(name) => {
            let (thread, title) = Threads::to_ask(&settings, &args.tenant, name).await?;
            if title.is_none() && ThreadId::from_name(name).1.is_some() && !args.printed.quiet {
                output::note(&format!("asking on thread {thread}"));
            }
            (thread, title)
        }
        None => (ThreadId::new(), None),
    };
    let listed = |names: Vec<String>| {
        names.into_iter().filter(|name| !name.trim().is_empty()).collect::<Vec<_>>()
    };
    let context: BTreeMap<String, String> = args.context.into_iter().collect();
    let attachments = args.attach.iter().map(|path| attachment(path)).collect::<Result<_, _>>()?;
    let request = Request {
        attachments,
        question,
        context,
        prefer_agents: listed(args.prefer),
        disable_agents: listed(args.disable),
        team: args.team,
        user: args.user,
        max_turns: args.max_turns,
        system_prompt: args.system_prompt,
        answer_schema: args.schema.as_deref().map(schema).transpose()?,
        ..Request::default()
    };
    let show = Show {
        structured: args.schema.is_some(),
        // Other commands know a name as that of a thread of the local tenant.
        name: args.thread.clone().filter(|_| args.tenant == LOCAL_TENANT),
        ..args.printed.show(globals.invocation())
    };
    let tenant = args.tenant;
    let job = if args.detach {
        Job::Submit { thread, title, tenant, request }
    } else {
        Job::Ask { thread, title, tenant, request }
    };
    execute::execute(settings, job, &show).await
}

fn attachment(path: &Path) -> Result<Attachment> {
    let bytes =
        std::fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    Ok(Attachment::of_file(&path.to_string_lossy(), &bytes))
}

fn schema(path: &Path) -> Result<Value> {
    let text = files::read(path)?;
    serde_json::from_str(&text).map_err(|source| Error::Schema { path: path.to_owned(), source })
}

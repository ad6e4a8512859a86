//! `threads fork`, `cancel`, `update` and `delete`: the commands that change a thread.

use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use serde_json::{Map, Value, json};

use super::list::as_json;
use super::{Context, Error, Result, next_after, next_nodes, title};
use crate::cli::files::json_or_text;
use crate::cli::globals::quoted;
use crate::cli::{graphs, output};
use perihelion_engine::checkpoint::ThreadInfo;
use perihelion_engine::graph::END;
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::{self, INPUT};
use perihelion_runtime::{
    DEMO_TENANT, Edit, Error as RuntimeError, LOCAL_TENANT, LiveStatus, Removal, Served, Threads,
};
use perihelion_service::{self as service, Stopped};
use perihelion_star::{AGENT_PREFIX, ARCHITECT, GRAPH, TEAM_PREFIX};

#[derive(Debug, clap::Args)]
pub struct ForkArgs {
    /// Thread to fork
    thread: String,
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

pub(super) async fn fork(context: &Context<'_>, args: &ForkArgs) -> Result<()> {
    let invocation = &context.invocation;
    let source = context.threads.info(context.find(Some(&args.thread)).await?).await?;
    // Commands find threads of these tenants by their names; other tenants have names of their own.
    let is_found = [LOCAL_TENANT, DEMO_TENANT].contains(&source.tenant.as_str());
    let (id, title) = match &args.new {
        None => (ThreadId::new(), None),
        Some(name) if is_found => ThreadId::from_name(name),
        Some(name) => ThreadId::from_name_of(&source.tenant, name),
    };
    let graph = graphs::of_thread(context.settings, context.threads, &source)?;
    let title = title.map(str::to_owned);
    let fork = context.threads.fork(source.id, args.at, id, title, graph.as_deref()).await?;
    if args.json {
        return output::json(&as_json(&fork));
    }
    output::text(&fork.id.to_string())?;
    if graph.is_none() {
        output::note(&format!(
            "only a program with this graph can continue the thread: {}",
            fork.graph
        ));
        return Ok(());
    }
    let next = next_after(context.threads, fork.id, fork.head).await?;
    let name = args.new.as_deref().filter(|_| is_found);
    let name = name.map_or_else(|| fork.id.to_string(), quoted);
    if next.is_empty() {
        output::note(&format!(
            "to ask another question, run: {invocation} run --thread {name} QUESTION"
        ))
    } else {
        output::note(&format!("to continue from there, run: {invocation} resume {name}"))
    }
    Ok(())
}

#[derive(Debug, clap::Args)]
pub struct CancelArgs {
    /// Thread. Defaults to the newest thread
    thread: Option<String>,
    /// Seconds to wait until the running process stops. After that, its lease is revoked
    #[arg(long, value_name = "SEC", default_value_t = 10.0, value_parser = seconds)]
    wait: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<f64, &'static str> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=3_600.0).contains(seconds));
    seconds.ok_or("expected a number of seconds from 0 to 3600")
}

pub(super) async fn cancel(context: &Context<'_>, args: &CancelArgs) -> Result<()> {
    let invocation = &context.invocation;
    let thread = context.find(args.thread.as_deref()).await?;
    let name = args.thread.clone().unwrap_or_else(|| thread.to_string());
    let wait = Duration::from_secs_f64(args.wait);
    // An error of the service would not name the thread as the caller did.
    context.threads.info(thread).await?;
    let stopped = service::stop(context.settings, context.threads, thread, wait)
        .await
        .map_err(Error::Service)?;
    let Stopped { had, by_force } = stopped.ok_or_else(|| Error::NothingUnderWay(name.clone()))?;
    let had = had.map(|holder| holder.to_string());
    if args.json {
        return output::json(&json!({
            "thread_id": thread, "cancelled": true, "was_run_by": had, "by_force": by_force,
        }));
    }
    output::note(&match had {
        Some(who) if by_force => {
            format!("cancelled; the lease of {who} was revoked, so it cannot write to the thread")
        }
        Some(who) => format!("cancelled; {who} has stopped the run"),
        None if by_force => "cancelled; the run had not started".to_owned(),
        None => "cancelled; the run has stopped".to_owned(),
    });
    output::note(&format!("to continue from there, run: {invocation} resume {}", quoted(&name)));
    Ok(())
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The change is recorded as a step, as if a node had written it. Lists are appended to, and other fields are \
replaced. An unfinished step is discarded. Earlier steps do not change. Without --as, no node runs next.

Examples:
  perihelion threads update weekly-report --set answer='\"Seven.\"'
  perihelion threads update weekly-report --set plan='[\"look again\"]' --as supervisor")]
pub struct UpdateArgs {
    /// Thread to change
    thread: String,
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

fn assignment(text: &str) -> Result<(String, Value), &'static str> {
    let (field, value) =
        text.split_once('=').ok_or("expected FIELD=VALUE, such as answer=Seven")?;
    Ok((field.trim().to_owned(), json_or_text(value.to_owned())))
}

pub(super) async fn update(context: &Context<'_>, args: &UpdateArgs) -> Result<()> {
    if args.set.is_empty() {
        return Err(Error::NothingToSet);
    }
    let thread = context.find(Some(&args.thread)).await?;
    let fields: Map<String, Value> = args.set.iter().cloned().collect();
    let graph = graphs::to_use(context.settings, context.threads, thread).await?;
    let node = args.as_node.as_deref().unwrap_or(END);
    check_node(graph.as_ref(), node)?;
    let as_node = Some(node.to_owned());
    let edit = Edit { update: Value::Object(fields), as_node, ..Edit::default() };
    let step = graph.edit(thread, edit).await?;
    let next = next_after(context.threads, thread, step).await?;
    let shown = json!({ "thread_id": thread, "step": step, "next": next });
    output::done(args.json, &shown, &format!("step {step}, next: {}", next_nodes(&next)))
}

/// Rejects a node that the supervisor graph cannot have. The graph that is opened offline accepts any agent.
fn check_node(graph: &dyn Served, node: &str) -> Result<()> {
    let mut nodes = graph.drawing().nodes;
    nodes.extend([INPUT, END, ARCHITECT].map(str::to_owned));
    let is_agent = [AGENT_PREFIX, TEAM_PREFIX].iter().any(|prefix| node.starts_with(prefix));
    let graph = graph.about().name.clone();
    if graph != GRAPH || is_agent || nodes.iter().any(|known| known == node) {
        return Ok(());
    }
    let unknown = runner::Error::UnknownNode { graph, node: node.to_owned() };
    Err(RuntimeError::from(unknown).into())
}

#[derive(Debug, clap::Args)]
pub struct DeleteArgs {
    /// Thread to delete
    thread: String,
    /// Skip confirmation
    #[arg(long, short)]
    yes: bool,
    /// Delete the thread even during a run. The run fails and loses its unfinished step
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn delete(context: &Context<'_>, args: &DeleteArgs) -> Result<()> {
    let info = context.threads.info(context.find(Some(&args.thread)).await?).await?;
    let removal = if args.force { Removal::Forced } else { Removal::AtRest };
    Threads::check_removal(&info, removal)?;
    if !args.yes && !wanted(&info)? {
        let shown = json!({ "thread_id": info.id, "deleted": false });
        return output::done(args.json, &shown, "the thread was not deleted");
    }
    context.threads.remove(&info, removal).await?;
    let shown = json!({ "thread_id": info.id, "deleted": true });
    output::done(args.json, &shown, &format!("deleted the thread {}", info.id))
}

fn wanted(info: &ThreadInfo) -> Result<bool> {
    let id = info.id.to_string();
    let title = title(info);
    let status = LiveStatus::of(info).as_str();
    let question = format!("delete the thread {id} ({title}), {status}, {} steps?", info.head);
    output::agreed("delete the thread", &id, &question)
}

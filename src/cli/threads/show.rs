//! `threads show`, `history` and `state`.

use serde_json::json;

use super::list::as_json;
use super::{Context, Result, moment, next_after, next_nodes, title};
use crate::cli::globals::quoted;
use crate::cli::{graphs, output, questions};
use perihelion_engine::checkpoint::{RunRow, RunStatus};
use perihelion_engine::ids::RunId;
use perihelion_runtime::{LiveStatus, StepView, ThreadView};
use perihelion_star::{GRAPH, GraphState, ResultStatus};

#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Thread. Defaults to the newest thread
    thread: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn show(context: &Context<'_>, args: &ShowArgs) -> Result<()> {
    let invocation = &context.invocation;
    let thread = context.find(args.thread.as_deref()).await?;
    let ThreadView { info, runs, open, .. } = context.threads.view(thread).await?;
    let status = LiveStatus::of(&info);
    let under_way = runs.last().filter(|_| status == LiveStatus::Busy).map(|run| run.id);
    if args.json {
        let mut all = as_json(&info);
        let rows = runs.iter().map(|run| {
            let mut row = json!(run);
            row["status"] = json!(status_of(run, under_way));
            row
        });
        all["runs"] = rows.collect();
        all["interrupts"] = json!(open);
        return output::json(&all);
    }
    let mut text = format!("thread   {}\n", info.id);
    if info.title.is_some() {
        text.push_str(&format!("title    {}\n", title(&info)));
    }
    if info.graph != GRAPH {
        text.push_str(&format!("graph    {}\n", info.graph));
    }
    text.push_str(&format!("status   {}\n", status.as_str()));
    if let Some(error) = info.shown_error() {
        text.push_str(&format!("because  {}\n", output::one_line(&error)));
    }
    text.push_str(&format!("steps    {}\n", info.head));
    if let Some((source, step)) = info.forked_from {
        text.push_str(&format!("fork of  {source} at step {step}\n"));
    }
    text.push_str(&format!("created  {}\n", moment(info.created_at)));
    text.push_str(&format!("updated  {}\n", moment(info.updated_at)));
    if !runs.is_empty() {
        let rows = runs.iter().map(|run| {
            [
                run.number.to_string(),
                run.id.to_string(),
                status_of(run, under_way).to_owned(),
                moment(run.started_at),
                run.ended_at.map_or_else(|| "-".to_owned(), moment),
            ]
        });
        let head = ["run", "id", "status", "started", "ended"];
        text.push_str(&format!("\n{}\n", output::table(head, rows.collect())));
    }
    let id = args.thread.as_deref().map_or_else(|| info.id.to_string(), quoted);
    if !open.is_empty() {
        text.push_str(&format!("\n{}", questions::explain(&open, &id, invocation)));
    } else if LiveStatus::can_continue(&info) {
        text.push_str(&format!("\nto continue, run: {invocation} resume {id}\n"));
    }
    output::text(&text)
}

fn status_of(run: &RunRow, under_way: Option<RunId>) -> &'static str {
    match run.status {
        // A run whose process died has no end; the next run continued it.
        RunStatus::Running if under_way != Some(run.id) => LiveStatus::Crashed.as_str(),
        RunStatus::Cancelled => LiveStatus::Stopped.as_str(),
        other => other.as_str(),
    }
}

#[derive(Debug, clap::Args)]
pub struct HistoryArgs {
    /// Thread. Defaults to the newest thread
    thread: Option<String>,
    /// Only list steps before this step
    #[arg(long, value_name = "STEP")]
    before: Option<u64>,
    /// Maximum number of steps, or 0 for all
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn history(context: &Context<'_>, args: &HistoryArgs) -> Result<()> {
    let thread = context.find(args.thread.as_deref()).await?;
    let limit = if args.limit == 0 { u32::MAX } else { args.limit };
    let steps = context.threads.history(thread, args.before, limit).await?;
    if args.json {
        return output::json(&steps);
    }
    let ThreadView { info, runs, .. } = context.threads.view(thread).await?;
    let shared = info.forked_from.map_or(0, |(_, step)| step);
    let run = |step: &StepView| match runs.iter().find(|run| run.id == step.run_id) {
        Some(run) => run.number.to_string(),
        None if step.step <= shared => "shared".to_owned(),
        None => "-".to_owned(),
    };
    let rows = steps.iter().map(|step| {
        [
            step.step.to_string(),
            run(step),
            step.kind.as_str().to_owned(),
            step.nodes.join(", "),
            step.wrote.join(", "),
            step.next.join(", "),
            step.bytes.to_string(),
            moment(step.at),
        ]
    });
    let head = ["step", "run", "kind", "ran", "wrote", "next", "bytes", "at"];
    output::text(&output::table(head, rows.collect()))?;
    if let Some(oldest) = steps.last().map(|step| step.step).filter(|step| *step > 1) {
        output::note(&if context.threads.history(thread, Some(oldest), 1).await?.is_empty() {
            format!("the steps before {oldest} were pruned")
        } else {
            format!("for older steps, pass --before {oldest}")
        });
    }
    Ok(())
}

#[derive(Debug, clap::Args)]
pub struct StateArgs {
    /// Thread. Defaults to the newest thread
    thread: Option<String>,
    /// Step. Defaults to the newest step
    #[arg(long, value_name = "STEP")]
    at: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Characters of an agent's output in the summary.
const SHOWN: usize = 200;

pub(super) async fn state(context: &Context<'_>, args: &StateArgs) -> Result<()> {
    let thread = context.find(args.thread.as_deref()).await?;
    let info = context.threads.info(thread).await?;
    let Some(graph) = graphs::of_thread(context.settings, context.threads, &info)? else {
        // The types of another graph are not known here: it is shown as it is kept.
        return output::json(&context.threads.raw_state(thread, args.at).await?);
    };
    let state = graph.state(thread, args.at).await?;
    let step = args.at.unwrap_or(info.head);
    let next = next_after(context.threads, thread, step).await?;
    let whole = json!({
        "thread_id": thread, "graph": info.graph, "step": step, "next": next, "state": state.json(),
    });
    match state.of::<GraphState>() {
        Some(star) if !args.json => output::text(&format!(
            "step {step} of {}, next: {}\n{}",
            info.head,
            next_nodes(&next),
            summary(star)
        )),
        _ => output::json(&whole),
    }
}

fn summary(state: &GraphState) -> String {
    let mut text = format!("request  {}\n", output::one_line(&state.input_request));
    for (key, value) in &state.request_context {
        text.push_str(&format!("  {key} = {}\n", output::one_line(value)));
    }
    if !state.plan.is_empty() {
        text.push_str("plan\n");
    }
    for (index, step) in state.plan.iter().enumerate() {
        text.push_str(&format!("  {}. {}\n", index + 1, output::one_line(step)));
    }
    for result in state.results_of_turn() {
        let word = match result.status {
            ResultStatus::Success => &result.reflection,
            ResultStatus::Failed => "failed",
        };
        let message = result.error_message().unwrap_or(&result.output);
        text.push_str(&format!(
            "result   {} ({word}): {}\n",
            result.agent,
            output::brief(message, SHOWN)
        ));
    }
    for (key, artifact) in state.global_state.iter() {
        text.push_str(&format!(
            "artifact {key}: {} bytes from {}\n",
            artifact.bytes, artifact.source
        ));
    }
    if let Some(reason) = &state.finish_reason {
        text.push_str(&format!("ended    {}\n", output::one_line(&reason.text)));
    }
    if let Some(answer) = &state.answer {
        text.push_str(&format!("answer\n{answer}\n"));
    }
    let usage = state.spent.usage;
    text.push_str(&format!(
        "turn {}, {}, {} input tokens and {} output tokens in the whole thread\n",
        state.turn,
        output::count(state.messages.len() as u64, "message"),
        usage.input_tokens,
        usage.output_tokens
    ));
    text.push_str("pass --json to see the whole state\n");
    text
}

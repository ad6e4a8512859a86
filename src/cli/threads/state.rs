//! `threads state`.

use serde_json::json;

use super::Error;
use crate::cli::output;
use perihelion_runtime::Threads;
use perihelion_star::{GraphState, ResultStatus};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Thread. Defaults to the newest thread
    pub(super) thread: Option<String>,
    /// Step. Defaults to the newest step
    #[arg(long, value_name = "STEP")]
    at: Option<u64>,
    /// Print the whole state as JSON
    #[arg(long)]
    json: bool,
}

/// Characters of an agent's output in the summary.
const SHOWN: usize = 200;

pub(super) async fn run(threads: &Threads, args: &Args) -> Result<(), Error> {
    let thread = threads.find(args.thread.as_deref()).await?;
    if !threads.is_of_star(thread).await? {
        // The types of another graph are not known here: it is shown as it is kept.
        return output::json(&threads.raw_state(thread, args.at).await?);
    }
    let view = threads.state(thread, args.at).await?;
    if args.json {
        return output::json(&json!({
            "thread_id": view.info.id,
            "step": view.seq,
            "next": view.next,
            "state": *view.state,
        }));
    }
    let next = match view.next.as_slice() {
        [] => "the end".to_owned(),
        next => next.join(", "),
    };
    output::text(&format!(
        "step {} of {}, next: {next}\n{}",
        view.seq,
        view.info.head,
        summary(&view.state)
    ))
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
        "turn {}, {} messages, {} input tokens and {} output tokens in the whole thread\n",
        state.turn,
        state.messages.len(),
        usage.input_tokens,
        usage.output_tokens
    ));
    text.push_str("pass --json to see the whole state\n");
    text
}

//! Live progress on standard error: a spinner with lines above it on a terminal, plain lines elsewhere.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use tokio::sync::mpsc::Receiver;

use super::execute::Observer;
use super::output::{BARS, brief, note};
use crate::clock;
use crate::graph::{RunEvent, StreamMode};
use crate::ids::ThreadId;
use crate::llm::Usage;
use crate::runtime::{RunReport, RunStatusView};
use crate::swarm::{AgentEvent, GraphState};

/// Characters of arguments, previews and thoughts in a line.
const SHOWN: usize = 120;

/// Characters of the answer under way in the spinner's line.
const TAIL: usize = 60;

/// Shows a run while it goes on.
pub(super) struct Progress {
    quiet: bool,
    bar: Option<ProgressBar>,
    /// Until it was told; a run that is refused has nothing to tell of.
    thread: Option<ThreadId>,
    started: Instant,
    /// Tokens as far as nodes told them; the report has the whole.
    usage: Usage,
    running: BTreeMap<u32, String>,
    /// The answer as far as it was streamed.
    writing: String,
}

impl Progress {
    /// Begins to show a run.
    pub(super) fn begin(quiet: bool, thread: ThreadId) -> Self {
        let live = !quiet && std::io::stderr().is_terminal();
        let bar = live.then(|| {
            let bar = BARS.add(ProgressBar::new_spinner());
            if let Ok(style) =
                ProgressStyle::with_template("{spinner:.cyan} {elapsed:>4} {wide_msg}")
            {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self {
            quiet,
            bar,
            thread: Some(thread),
            started: clock::monotonic(),
            usage: Usage::default(),
            running: BTreeMap::new(),
            writing: String::new(),
        }
    }

    /// Shows events until the run has ended.
    pub(super) async fn follow(
        mut self,
        mut events: Receiver<RunEvent<GraphState>>,
        observer: Option<Observer>,
    ) -> Self {
        while let Some(event) = events.recv().await {
            if let Some(observer) = &observer {
                observer(&event);
            }
            if !self.quiet {
                self.show(event);
            }
        }
        self
    }

    /// Ends with a line that sums the run up.
    pub(super) fn end(self, report: Option<&RunReport>) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let Some(report) = report else { return };
        if report.status == RunStatusView::Done {
            let answer = report.answer.as_deref().unwrap_or_default();
            let is_cited = |number: usize| answer.contains(&format!("[{number}]"));
            for source in report.citations.iter().filter(|one| is_cited(one.number)) {
                let arguments = brief(&source.arguments.to_string(), SHOWN);
                self.line(&format!("source [{}] {} {arguments}", source.number, source.source));
            }
        }
        let tokens = report.usage.input_tokens + report.usage.output_tokens;
        let status = match report.status {
            RunStatusView::Done => "done",
            RunStatusView::Interrupted => "waiting",
            RunStatusView::Queued => "left to the workers",
            RunStatusView::Failed => "ended early",
        };
        self.line(&format!("{status}; steps: {}, tokens: {tokens}", report.steps));
    }

    fn show(&mut self, event: RunEvent<GraphState>) {
        if let Some(thread) = self.thread.take() {
            self.line(&format!("thread {thread}"));
        }
        match event {
            RunEvent::TaskStarted { task, node, attempt, .. } => {
                if attempt > 1 {
                    self.line(&format!("{node}: attempt {attempt}"));
                } else if node == "qa" {
                    self.line("qa: writes the answer");
                }
                self.running.insert(task, node);
            }
            RunEvent::TaskEnded { task, node, error, retry, .. } => {
                self.running.remove(&task);
                self.writing.clear();
                if let Some(error) = error {
                    let then = if retry { "; trying again" } else { "" };
                    self.line(&format!("{node}: failed{then}: {}", brief(&error, 2 * SHOWN)));
                }
            }
            RunEvent::Published { mode: StreamMode::Messages, payload, .. } => {
                self.writing.push_str(payload["text"].as_str().unwrap_or_default());
            }
            RunEvent::Published { mode: StreamMode::Custom, payload, .. } => {
                if let Some(event) = AgentEvent::read(&payload) {
                    self.agent(event);
                }
            }
            // What an agent's own graph says of itself; its tasks are those of the agent.
            RunEvent::Nested { event, .. } => {
                if let Some(event) = AgentEvent::read(&event["payload"]) {
                    self.agent(event);
                }
            }
            RunEvent::StepRestarted { .. } => {
                self.running.clear();
                self.writing.clear();
            }
            RunEvent::Interrupted { interrupts, .. } => {
                for one in interrupts {
                    self.line(&format!("{}: asks a person ({})", one.node, one.kind));
                }
            }
            _ => {}
        }
        self.refresh();
    }

    /// Shows what the star's nodes say of themselves.
    fn agent(&mut self, event: AgentEvent) {
        let line = match event {
            AgentEvent::Decision { thought, usage, .. } => {
                self.usage += usage;
                format!("supervisor: {}", brief(&thought, SHOWN))
            }
            AgentEvent::Search { query, found } => {
                let found = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
                format!("supervisor: looks for agents ({}): {found}", brief(&query, SHOWN))
            }
            AgentEvent::Stage { agents, remaining: 0 } => format!("stage: {}", agents.join(", ")),
            AgentEvent::Stage { agents, remaining } => {
                format!("stage: {} ({remaining} to come)", agents.join(", "))
            }
            AgentEvent::PipelineStage { agent, stage, attempt: 0 | 1 } => {
                format!("{agent}: {stage}")
            }
            AgentEvent::PipelineStage { agent, stage, attempt } => {
                format!("{agent}: {stage} (attempt {attempt})")
            }
            AgentEvent::Progress { agent, message } => {
                format!("{agent}: {}", brief(&message, SHOWN))
            }
            AgentEvent::ToolCall { agent, tool, arguments } => {
                let arguments = Value::Object(arguments).to_string();
                format!("{agent}: calls {tool} {}", brief(&arguments, SHOWN))
            }
            AgentEvent::ToolRecorded { agent, tool, .. } => {
                format!("{agent}: reads back the recorded call of {tool}")
            }
            AgentEvent::ToolProgress { agent, tool, done, total, message } => {
                let how_far = match total.filter(|total| *total > 0.0) {
                    Some(total) => format!("{:.0}%", 100.0 * (done / total).clamp(0.0, 1.0)),
                    None => format!("{done:.0}"),
                };
                format!("{agent}: {tool} {how_far} {}", brief(&message, SHOWN))
            }
            AgentEvent::ToolResult { agent, tool, is_error, preview } => {
                let how = if is_error { "failed" } else { "gave" };
                format!("{agent}: {tool} {how}: {}", brief(&preview, SHOWN))
            }
            AgentEvent::HitlRequired { agent, tool, .. } => {
                format!("{agent}: {tool} waits for approval")
            }
            AgentEvent::HitlApproved { agent, tool, .. } => format!("{agent}: {tool} was approved"),
            AgentEvent::HitlDenied { agent, tool, reason } => {
                format!("{agent}: {tool} was denied: {reason}")
            }
            AgentEvent::HitlTimeout { agent, tool } => {
                format!("{agent}: nobody decided on {tool} in time")
            }
            AgentEvent::HitlSkipped { agent, tool } => {
                format!("{agent}: {tool} needs approval, which this request does not wait for")
            }
            AgentEvent::Reflection { agent, status, attempt, of, .. } => {
                format!("{agent}: judged {status} ({attempt} of {of})")
            }
            AgentEvent::AgentResult { agent, error, not_mine, usage, .. } => {
                self.usage += usage;
                match error {
                    Some(error) if not_mine => {
                        format!("{agent}: hands the task back: {}", brief(&error, SHOWN))
                    }
                    None => format!("{agent}: done"),
                    Some(error) => format!("{agent}: could not do it: {}", brief(&error, SHOWN)),
                }
            }
            AgentEvent::DecisionRefused { .. } | AgentEvent::EndedEarly { .. } => return,
        };
        self.line(&line);
    }

    fn line(&self, text: &str) {
        if !self.quiet {
            note(&format!("{:>6.1}s {text}", self.started.elapsed().as_secs_f64()));
        }
    }

    /// Brings the spinner's line up to date.
    fn refresh(&self) {
        let Some(bar) = &self.bar else { return };
        let nodes: Vec<&str> = self.running.values().map(String::as_str).collect();
        let tokens = self.usage.input_tokens + self.usage.output_tokens;
        let tail = match self.writing.char_indices().rev().nth(TAIL) {
            Some((at, _)) => &self.writing[at..],
            None => &self.writing,
        };
        bar.set_message(format!(
            "{} · {tokens} tokens {}",
            nodes.join(", "),
            brief(tail, TAIL + 1)
        ));
    }
}

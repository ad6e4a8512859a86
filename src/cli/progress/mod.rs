//! Live progress on standard error: one changing line on a terminal with lasting lines above it, or one line per event.

mod lines;
mod live;

use std::collections::BTreeMap;
use std::time::Instant;

use tokio::sync::mpsc::Receiver;

use self::lines::line_of;
use self::live::Live;
use super::output::{self, brief, note};
use super::show::Observer;
use perihelion_engine::clock;
use perihelion_engine::graph::{RunEvent, StreamMode};
use perihelion_engine::ids::ThreadId;
use perihelion_llm::Usage;
use perihelion_runtime::{RunReport, RunStatusView};
use perihelion_star::{AgentEvent, GraphState, MessagePiece};

/// Characters of arguments, previews and thoughts in a line.
const SHOWN: usize = 120;

const QA: &str = "qa";

pub(super) struct Progress {
    quiet: bool,
    every_line: bool,
    live: Option<Live>,
    /// `None` until it starts; a rejected run has no progress.
    thread: Option<ThreadId>,
    started: Instant,
    /// Tokens reported by nodes so far; the report has the total.
    usage: Usage,
    running: BTreeMap<u32, String>,
}

impl Progress {
    pub(super) fn begin(quiet: bool, every_line: bool, thread: ThreadId) -> Self {
        Self {
            quiet,
            every_line,
            live: if quiet { None } else { Live::begin() },
            thread: Some(thread),
            started: clock::monotonic(),
            usage: Usage::default(),
            running: BTreeMap::new(),
        }
    }

    /// Shows events until there are no more; it blocks its thread, as the reader of the output can make it wait.
    pub(super) fn follow(
        mut self,
        mut events: Receiver<RunEvent<GraphState>>,
        observer: Option<Observer>,
    ) -> Self {
        while let Some(event) = events.blocking_recv() {
            if let Some(observer) = &observer {
                observer(&event);
            }
            if !self.quiet {
                self.show(event);
            }
        }
        self
    }

    pub(super) fn end(mut self, report: Option<&RunReport>) {
        if let Some(live) = self.live.take() {
            live.end();
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
        let tokens = report.usage.total();
        let status = match report.status {
            RunStatusView::Done => "done",
            RunStatusView::Interrupted => "waiting for a person",
            RunStatusView::Queued => "queued for a worker",
            RunStatusView::Failed => "ended early",
            RunStatusView::Stopped => "stopped",
        };
        let steps = output::count(report.steps, "step");
        self.line(&format!("{status} in {steps}, {tokens} tokens"));
    }

    fn show(&mut self, event: RunEvent<GraphState>) {
        if let Some(thread) = self.thread.take() {
            self.line(&format!("thread {thread}"));
        }
        // What an agent's own graph says of itself as well; its tasks are those of the agent.
        if let Some(event) = event.custom().as_ref().and_then(AgentEvent::read) {
            self.agent(&event);
        }
        match event {
            RunEvent::TaskStarted { task, node, attempt, .. } => {
                if attempt > 1 {
                    self.line(&format!("{node}: attempt {attempt}"));
                } else if node == QA {
                    match &mut self.live {
                        Some(live) if !self.every_line => {
                            live.passing("qa: writing the answer".to_owned())
                        }
                        _ => self.line("qa: writing the answer"),
                    }
                }
                self.running.insert(task, node);
            }
            RunEvent::TaskEnded { task, node, error, retry, .. } => {
                self.running.remove(&task);
                if let Some(error) = error {
                    let then = if retry { "; retrying" } else { "" };
                    self.line(&format!("{node}: failed{then}: {}", brief(&error, 2 * SHOWN)));
                }
            }
            RunEvent::Published { mode: StreamMode::Messages, node, payload, .. } => {
                if let (Some(live), QA) = (&mut self.live, node.as_str()) {
                    let piece = MessagePiece::read(&payload);
                    live.write(&piece.map(|piece| piece.text).unwrap_or_default());
                }
            }
            RunEvent::StepRestarted { .. } => {
                self.running.clear();
                if let Some(live) = &mut self.live {
                    live.write_again();
                }
            }
            RunEvent::Interrupted { interrupts, .. } => {
                for one in interrupts {
                    self.line(&format!("{}: needs a person ({})", one.node, one.kind));
                }
            }
            _ => {}
        }
        self.refresh();
    }

    fn agent(&mut self, event: &AgentEvent) {
        if let AgentEvent::Decision { usage, .. } | AgentEvent::AgentResult { usage, .. } = event {
            self.usage += *usage;
        }
        match (line_of(event), &mut self.live) {
            (Some(line), Some(live)) if !(line.lasts || self.every_line) => live.passing(line.text),
            (Some(line), _) => self.line(&line.text),
            (None, _) => {}
        }
    }

    fn line(&self, text: &str) {
        if !self.quiet {
            note(&format!("{:>6.1}s {text}", self.started.elapsed().as_secs_f64()));
        }
    }

    /// Brings what moves on a terminal up to date.
    fn refresh(&mut self) {
        if let Some(live) = &mut self.live {
            let tokens = self.usage.total();
            live.refresh(self.running.values().map(String::as_str), tokens);
        }
    }
}

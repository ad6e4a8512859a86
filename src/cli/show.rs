//! The display of a run for its user, during the run and at its end.

use std::io::IsTerminal as _;
use std::sync::Arc;

use super::globals::quoted;
use super::{Error, Exit, Result, Signals, markdown, output, questions};
use perihelion_engine::graph::RunEvent;
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::{RunReport, RunStatusView};
use perihelion_star::GraphState;

/// Sees every event of a run before it is shown.
pub type Observer = Arc<dyn Fn(&RunEvent<GraphState>) + Send + Sync>;

#[derive(Clone, Default)]
pub struct Show {
    /// Print the report as one JSON object in place of the answer.
    pub json: bool,
    /// Add the events to that object.
    pub events: bool,
    /// Print the events as lines of JSON while they happen.
    pub lines: bool,
    /// The answer is JSON with a schema.
    pub structured: bool,
    /// Add the first table that was found to that object.
    pub include_data: bool,
    /// Show tables and charts where standard output is no terminal, too.
    pub found: bool,
    pub quiet: bool,
    /// Leave every line of progress in sight on a terminal.
    pub every_line: bool,
    /// How the program was called, with its global options: the beginning of commands to be typed next.
    pub invocation: String,
    /// The thread's name in the command, if there is one.
    pub name: Option<String>,
    pub observer: Option<Observer>,
}

#[derive(Debug, clap::Args)]
#[group(skip)]
pub(super) struct Printed {
    /// Print one JSON object instead of the answer
    #[arg(long)]
    json: bool,
    /// Include the first result table in the JSON object
    #[arg(long, requires = "json")]
    include_data: bool,
    /// Include every event in the JSON object
    #[arg(long = "include-events", alias = "trace", requires = "json")]
    events: bool,
    /// Print events as JSON Lines as they happen, followed by the JSON object
    #[arg(long = "events")]
    lines: bool,
    /// Hide progress
    #[arg(long, short)]
    pub quiet: bool,
}

impl Printed {
    pub(super) fn show(&self, invocation: String) -> Show {
        let Self { json, include_data, events, lines, quiet } = *self;
        Show { json: json || lines, include_data, events, lines, quiet, ..Show::new(invocation) }
    }
}

impl Show {
    pub fn new(invocation: String) -> Self {
        Self { invocation, ..Self::default() }
    }

    /// Returns the thread's name in suggested commands: the user's own name for it.
    pub(super) fn called(&self, thread: ThreadId) -> String {
        self.name.as_deref().map_or_else(|| thread.to_string(), quoted)
    }

    pub(super) fn resume(&self, thread: ThreadId) -> String {
        format!("{} resume {}", self.invocation, self.called(thread))
    }

    /// Suggests how to continue a thread whose run ended early.
    pub(super) fn way_on(&self, thread: ThreadId) -> String {
        format!("completed steps are saved. To continue, run: {}", self.resume(thread))
    }

    pub(super) fn can_ask(&self) -> bool {
        let is_shown = !self.json && !self.quiet;
        is_shown && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }
}

/// Shows how a run ended: the answer, the open questions, or what went wrong.
pub(super) fn present(
    report: &RunReport,
    thread: ThreadId,
    is_submission: bool,
    show: &Show,
    signals: &Signals,
) -> Result<Exit> {
    if show.json && show.lines {
        output::json_line(report)?;
    } else if show.json {
        output::json(report)?;
    }
    match report.status {
        RunStatusView::Done => {
            for warning in &report.warnings {
                output::warning(warning);
            }
            let answer = report.answer.as_deref().unwrap_or_default();
            if !show.json && show.structured {
                output::text(answer)?;
            } else if !show.json {
                markdown::answer(answer)?;
            }
            if show.structured && report.structured.is_none() {
                return Err(Error::SchemaMismatch);
            }
            Ok(Exit::Done)
        }
        RunStatusView::Interrupted => {
            if !show.json && !show.can_ask() {
                let called = show.called(thread);
                output::note(&questions::explain(&report.interrupts, &called, &show.invocation));
            }
            Ok(Exit::Waiting)
        }
        RunStatusView::Queued => {
            if !show.json && is_submission {
                output::text(&report.thread_id)?;
            }
            if !show.quiet {
                output::note(&format!(
                    "queued for a worker. To follow the run: {}",
                    show.resume(thread)
                ));
            }
            Ok(if is_submission { Exit::Done } else { Exit::Failed })
        }
        RunStatusView::Failed | RunStatusView::Stopped => {
            if signals.is_stopped() {
                output::note(&format!("stopped. To continue, run: {}", show.resume(thread)));
            } else {
                let error = report.error.clone().unwrap_or_else(|| "the run failed".to_owned());
                let error = Error::RunFailed(error);
                output::coded_error(&error.code(), &error.to_string());
                match &report.answer {
                    // The turn is over: there is nothing to resume.
                    Some(answer) if !show.json => markdown::answer(answer)?,
                    Some(_) => {}
                    None => output::note(&show.way_on(thread)),
                }
            }
            Ok(Exit::Failed)
        }
    }
}

//! How a run ended, for people and programs: the answer, the open questions or what went wrong, and the exit code.

use super::show::Show;
use super::{Error, Exit, Signals, markdown, output, questions};
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::{RunReport, RunStatusView};

/// Shows how a run ended: the answer, the open questions, or what went wrong.
pub(super) fn present(
    report: &RunReport,
    thread: ThreadId,
    is_submission: bool,
    show: &Show,
    signals: &Signals,
) -> Result<Exit, Error> {
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
                output::error("the answer does not match the JSON Schema");
                return Ok(Exit::Failed);
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
                let resume = format!("{} resume {}", show.invocation, show.called(thread));
                output::note(&format!("queued for a worker. To follow the run: {resume}"));
            }
            Ok(if is_submission { Exit::Done } else { Exit::Failed })
        }
        RunStatusView::Failed | RunStatusView::Stopped => {
            if signals.is_stopped() {
                let resume = format!("{} resume {}", show.invocation, show.called(thread));
                output::note(&format!("stopped. To continue, run: {resume}"));
            } else {
                output::error(report.error.as_deref().unwrap_or("the run failed"));
                match &report.answer {
                    // The turn is over: there is nothing to resume.
                    Some(answer) if !show.json => markdown::answer(answer)?,
                    Some(_) => {}
                    None => output::note(&way_on(show, thread)),
                }
            }
            Ok(Exit::Failed)
        }
    }
}

/// Returns the command that continues a thread.
pub(super) fn way_on(show: &Show, thread: ThreadId) -> String {
    format!(
        "completed steps are saved. To continue, run: {} resume {}",
        show.invocation,
        show.called(thread)
    )
}

//! Runs a thread from the command line: progress, signals, the answer or the next command, the exit code.
//!
//! Enter at [`execute`], or at [`drive`] with an open runtime.

use std::io::IsTerminal as _;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::init::no_agents;
use super::inline::Asking;
use super::progress::Progress;
use super::show::{Observer, Show, present};
use super::{Error, Exit, Result, Signals, accounts, found, opening, output, tell_as_json};
use crate::demo;
use perihelion_engine::checkpoint;
use perihelion_engine::graph::{RunEvent, Wants};
use perihelion_engine::runner::RunOptions;
use perihelion_runtime::{Audit, Error as RuntimeError, Job, RunStatusView, Runtime, is_there};
use perihelion_service::Stops;
use perihelion_settings::config::Settings;
use perihelion_star::GraphState;

/// Events that may wait to be shown; a slow terminal slows the run rather than filling memory.
const WAITING_EVENTS: usize = 256;

/// Opens a runtime, drives one job on it and closes it again, whatever happens.
///
/// # Errors
/// [`Error`] when the runtime cannot be opened or refuses the job; a run that fails is an [`Exit`].
pub async fn execute(settings: Settings, job: Job, show: &Show) -> Result<Exit> {
    let signals = Signals::listen()?;
    let database = &settings.store.database;
    let is_made = job.is_submission() && !is_there(database.expose()).unwrap_or(true);
    let made = is_made.then(|| database.to_string());
    let can_decide = job.decides() || show.can_ask();
    let audit = if can_decide { Audit::open(&settings, &accounts::actor()).await? } else { None };
    let opening = opening::shown(show.quiet, async |looks| {
        let builder = opening::builder(settings, looks);
        let builder = if job.is_submission() {
            builder.without_servers()
        } else if job.begins() {
            builder
        } else {
            demo::continued(builder.for_thread(job.thread())).await?
        };
        Ok::<_, Error>(builder.open().await?)
    });
    // Nothing has run yet: a signal drops what was being opened, which ends the servers' processes.
    let runtime = signals.unless_stopped(opening).await??;
    if let Some(audit) = audit {
        runtime.keep_audit(audit);
    }
    let thread = job.thread();
    let holder = runtime.followed_by(&job).await;
    if let Some(who) = holder.as_ref().filter(|_| !show.quiet) {
        output::note(&format!("following the run in {who}"));
    }
    // Who only follows or submits uses no server, and has none to be read again.
    let uses_servers = holder.is_none() && !job.is_submission();
    let plugins = uses_servers.then(|| opening::keep_servers(&runtime, "run", show.quiet));
    if let Some(made) = made {
        output::warning(&format!(
            "created a new database; only workers that use it can run this question: {made}"
        ));
    }
    let mut ended = drive(&runtime, job, show, &signals).await;
    let mut asking = Asking::default();
    while show.can_ask() && matches!(ended, Ok(Exit::Waiting)) {
        let called = show.called(thread);
        ended = match asking.answer(&runtime, thread, &called, &show.invocation, &signals).await {
            Ok(true) => drive(&runtime, Job::Resume { thread }, show, &signals).await,
            Ok(false) => break,
            Err(error) => Err(error),
        };
    }
    drop(plugins);
    finish(runtime, ended, &signals).await
}

/// Closes the runtime after [`drive`], unless a second signal arrives.
pub async fn finish(runtime: Runtime, ended: Result<Exit>, signals: &Signals) -> Result<Exit> {
    if !matches!(ended, Err(Error::Stopped)) {
        signals.unless_aborted(runtime.close()).await?;
    }
    ended
}

/// Drives one job to its end, its next question, its failure or a signal, and shows how it ended.
///
/// After [`Error::Stopped`], drop the runtime instead of closing it.
pub async fn drive(runtime: &Runtime, job: Job, show: &Show, signals: &Signals) -> Result<Exit> {
    if !job.is_submission() && runtime.agents().list().is_empty() {
        output::warning(&no_agents(runtime.settings()));
    }
    opening::warn_of_servers(runtime);
    if !show.quiet {
        let kept = runtime.recorded_calls(&job).await?;
        if kept > 0 {
            let calls = output::count(kept as u64, "recorded call");
            output::note(&format!("reusing {calls} of the unfinished step"));
        }
    }
    let (events, listener) = mpsc::channel(WAITING_EVENTS);
    let stops = Stops::new(runtime.database());
    let options = RunOptions {
        wants: Wants { tasks: true, checkpoints: show.lines, ..Wants::default() },
        events: Some(events),
        cancel: signals.stop_token(),
        withdrawn: stops.register(job.thread()),
        ..runtime.run_options()
    };
    let _looking = AbortOnDropHandle::new(tokio::spawn(async move { stops.keep().await }));
    let is_submission = job.is_submission();
    let progress = Progress::begin(show.quiet || is_submission, show.every_line, job.thread());
    let observer =
        if show.lines { Some(Arc::new(line) as Observer) } else { show.observer.clone() };
    let shown = tokio::task::spawn_blocking(|| progress.follow(listener, observer));
    let thread = job.thread();
    let is_question = job.asks();
    let is_known = job.begins() || runtime.store().info(thread).await.is_ok();
    let running = runtime.perform(job, options);
    tokio::pin!(running);
    let mut noted = None;
    let ended = loop {
        tokio::select! {
            biased;
            () = signals.aborted() => return Err(Error::Stopped),
            () = signals.stopped(), if noted.is_none() && !show.quiet => {
                let note = "stopping after the current step; press Ctrl-C again to stop now";
                // Not on this thread, which must receive the second signal even if the output is not read.
                noted = Some(tokio::task::spawn_blocking(|| output::note(note)));
            }
            ended = &mut running => break ended,
        }
    };
    // The run's end closed the channel; what is left in it is shown before the outcome.
    if let Ok(progress) = signals.unless_aborted(shown).await? {
        progress.end(ended.as_ref().ok());
    }
    let mut report = match ended {
        Ok(report) => report,
        Err(error) => {
            let error = match error {
                RuntimeError::Store(checkpoint::Error::UnknownThread(id))
                    if is_known && id == thread =>
                {
                    Error::Deleted(show.called(thread))
                }
                other => Error::from(other).about(&show.called(thread)),
            };
            let error = if is_question { error.untaken() } else { error };
            if matches!(error, Error::AtWork { .. }) || error.exit() != Exit::Failed {
                return Err(error);
            }
            output::coded_error(&error.code(), &error.to_string());
            if show.json {
                tell_as_json("failed", Some(error.code()), &error.to_string(), Some(thread));
            }
            output::note(&match runtime.store().info(thread).await {
                Err(checkpoint::Error::UnknownThread(_)) => {
                    "there is no thread to continue".to_owned()
                }
                _ => show.way_on(thread),
            });
            return Ok(Exit::Failed);
        }
    };
    if show.events && !is_submission {
        report.events = Some(runtime.events(thread).await?);
    }
    if report.status == RunStatusView::Done && !show.json && (show.found || is_watched(show)) {
        found::show(&report);
    }
    if !show.include_data {
        report.data = None;
    }
    present(&report, thread, is_submission, show, signals)
}

fn is_watched(show: &Show) -> bool {
    !show.quiet && std::io::stdout().is_terminal()
}

/// Prints an event as a line of JSON. A closed pipe is detected at the end.
fn line(event: &RunEvent<GraphState>) {
    let write = || output::json_line(event);
    // Nothing else is written while the bars are suspended, and the reader of a pipe can make its writer wait.
    let is_beside_bars = std::io::stdout().is_terminal();
    let _ = if is_beside_bars { output::BARS.suspend(write) } else { write() };
}

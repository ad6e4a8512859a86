//! The ends of a run's drive: final, left to another process, put back, or driven again.
//!
//! Enter at [`decide`], which does no I/O. Invariants: an error of the store ends no run; if the drive was lost, the
//! thread determines how the run ended.

use serde_json::{Value, json};

use super::Error;
use super::error::Cause;
use super::kept::RunStatus;
use perihelion_engine::graph::EngineError;
use perihelion_runtime::{RunReport, RunStatusView};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Driven {
    /// Its thread came to rest so, with the reason of a failure; or is left to the workers.
    Reported(RunStatusView, Option<Value>),
    /// Another process holds the thread, and the run did not start.
    Claimed,
    /// The store failed, or another process took the thread over.
    Lost,
    /// The order cannot be carried out, for this reason.
    Refused(Value),
}

/// The facts in a thread about a run whose drive was lost.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RunState {
    /// The thread cannot be read for now.
    Unknown,
    /// The thread has not received the run's input.
    NotBegun,
    /// The run is under way elsewhere, queued, or was broken off.
    Unfinished,
    /// It came to rest so, with the reason of a failure.
    Ended(RunStatusView, Option<Value>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum End {
    /// It ended with this status, and why it failed.
    Settled(RunStatus, Option<Value>),
    /// This process is to end; another one continues.
    Left,
    /// It waits for its turn again: another process holds the thread.
    PutBack,
    /// Whichever process has the thread now is to stop; then it ended as interrupted.
    StoppedElsewhere,
    /// It stays, and this process drives it again.
    Again,
}

/// Decides what becomes of a run; `cancelled` when a client wants it ended, `stopping` when this process is to end.
pub(super) fn decide(driven: Driven, thread: RunState, cancelled: bool, stopping: bool) -> End {
    let interrupted = End::Settled(RunStatus::Interrupted, None);
    let (status, why) = match (driven, thread) {
        // The process that drove it before still does.
        (Driven::Claimed, RunState::Unfinished) if cancelled => (RunStatusView::Queued, None),
        (Driven::Claimed, _) if cancelled => return interrupted,
        (Driven::Claimed, _) => return End::PutBack,
        (Driven::Lost, RunState::Unknown) if stopping => return End::Left,
        (Driven::Lost, RunState::Unknown) => return End::Again,
        (Driven::Lost, RunState::NotBegun) if cancelled => return interrupted,
        (Driven::Lost, RunState::NotBegun) if stopping => return End::Left,
        (Driven::Lost, RunState::NotBegun) => return End::Again,
        (Driven::Lost, RunState::Unfinished) => (RunStatusView::Queued, None),
        (Driven::Lost, RunState::Ended(status, why)) => (status, why),
        (Driven::Reported(status, why), _) => (status, why),
        (Driven::Refused(why), _) => (RunStatusView::Failed, Some(why)),
    };
    match status {
        RunStatusView::Done | RunStatusView::Interrupted => End::Settled(RunStatus::Success, None),
        RunStatusView::Queued if stopping => End::Left,
        RunStatusView::Queued if cancelled => End::StoppedElsewhere,
        RunStatusView::Queued => End::Again,
        RunStatusView::Failed | RunStatusView::Stopped if cancelled => interrupted,
        RunStatusView::Failed | RunStatusView::Stopped if stopping => End::Left,
        RunStatusView::Failed | RunStatusView::Stopped => {
            End::Settled(RunStatus::Error, Some(why.unwrap_or_else(|| failed(None))))
        }
    }
}

impl Driven {
    pub(super) fn reported(report: &RunReport) -> Self {
        Self::Reported(report.status, why(report))
    }

    /// Reads how a drive came back that ended with an error; of the last drive, a statement that the database refuses
    /// again and again is the end.
    pub(super) fn broken(error: &Error, is_last: bool) -> Self {
        if matches!(error, Error::Runtime(error) if error.is_claimed()) {
            return Self::Claimed;
        }
        match error.cause() {
            Cause::Store => Self::Lost,
            Cause::Statement if !is_last => Self::Lost,
            _ => Self::Refused(failure(class(error), &error.to_string())),
        }
    }
}

pub(super) fn why(report: &RunReport) -> Option<Value> {
    matches!(report.status, RunStatusView::Failed | RunStatusView::Stopped).then(|| {
        let class = report.error_kind.as_deref();
        match class.filter(|class| class.starts_with(char::is_uppercase)) {
            Some(class) => failure(class, report.error.as_deref().unwrap_or_default()),
            None => failed(report.error.as_deref()),
        }
    })
}

/// Returns why a run failed, as clients are shown it, by the text that its thread has.
pub(super) fn failed(why: Option<&str>) -> Value {
    match why.and_then(EngineError::step_limit_in) {
        Some(limit) => failure(
            "GraphRecursionError",
            &format!(
                "Recursion limit of {limit} reached without hitting a stop condition. You can increase the limit by \
                 setting the `recursion_limit` config key."
            ),
        ),
        None => failure("RunFailed", why.unwrap_or("the run failed")),
    }
}

fn failure(class: &str, message: &str) -> Value {
    json!({ "error": class, "message": message })
}

fn class(error: &Error) -> &'static str {
    match error {
        Error::Answer(_) | Error::Update(_) => "ValueError",
        Error::Runtime(error) if error.is_usage() => "ValueError",
        _ => "RuntimeError",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perihelion_database as database;
    use perihelion_engine::checkpoint;
    use perihelion_engine::ids::ThreadId;
    use perihelion_runtime as runtime;

    #[test]
    fn the_outcome_of_a_run_follows_from_its_drive_and_its_thread() {
        use RunStatusView::{Done, Failed, Interrupted, Queued};
        let why = || Some(failed(Some("no model")));
        let reported = |status| Driven::Reported(status, (status == Failed).then(why).flatten());
        let ended = |status| RunState::Ended(status, (status == Failed).then(why).flatten());
        let refused = || Driven::Refused(failed(Some("no model")));
        let success = || End::Settled(RunStatus::Success, None);
        let error = || End::Settled(RunStatus::Error, why());
        let interrupted = || End::Settled(RunStatus::Interrupted, None);
        let unknown = || RunState::Unknown;
        let lost = || Driven::Lost;
        // Of each: what becomes of it, when it is cancelled, when the process stops, and when both happen.
        let table = [
            (reported(Done), unknown(), [success(), success(), success(), success()]),
            (reported(Interrupted), unknown(), [success(), success(), success(), success()]),
            (reported(Failed), unknown(), [error(), interrupted(), End::Left, interrupted()]),
            (
                reported(Queued),
                unknown(),
                [End::Again, End::StoppedElsewhere, End::Left, End::Left],
            ),
            (refused(), unknown(), [error(), interrupted(), End::Left, interrupted()]),
            (
                Driven::Claimed,
                unknown(),
                [End::PutBack, interrupted(), End::PutBack, interrupted()],
            ),
            (
                Driven::Claimed,
                RunState::Unfinished,
                [End::PutBack, End::StoppedElsewhere, End::PutBack, End::Left],
            ),
            (lost(), unknown(), [End::Again, End::Again, End::Left, End::Left]),
            (lost(), RunState::NotBegun, [End::Again, interrupted(), End::Left, interrupted()]),
            (
                lost(),
                RunState::Unfinished,
                [End::Again, End::StoppedElsewhere, End::Left, End::Left],
            ),
            (lost(), ended(Done), [success(), success(), success(), success()]),
            (lost(), ended(Interrupted), [success(), success(), success(), success()]),
            (lost(), ended(Failed), [error(), interrupted(), End::Left, interrupted()]),
        ];
        for (driven, thread, wanted) in table {
            let asked = [(false, false), (true, false), (false, true), (true, true)];
            for ((cancelled, stopping), wanted) in asked.into_iter().zip(wanted) {
                let end = decide(driven.clone(), thread.clone(), cancelled, stopping);
                assert_eq!(end, wanted, "{driven:?} {thread:?} {cancelled} {stopping}");
            }
        }
    }

    #[test]
    fn an_error_of_the_store_is_no_end_and_a_refusal_is_one() {
        let thread = ThreadId::new();
        let of_store = |error| Error::from(error);
        let url = || "sqlite:x".to_owned();
        let lost = [
            database::Error::Unreachable { url: url(), reason: "gone".into() }.into(),
            database::Error::Full { url: url(), reason: "disk".into() }.into(),
            database::Error::Locked { url: url() }.into(),
            database::Error::ReadOnly { url: url() }.into(),
            checkpoint::Error::NoDatabase { url: url() },
            checkpoint::Error::Fenced { thread, token: 1, current: 2 },
            checkpoint::Error::Conflict { thread, seq: 1, head: 1 },
            checkpoint::Error::EventGap { thread, first: 1, last: 3 },
            checkpoint::Error::Moved { thread },
        ];
        for error in lost.map(of_store) {
            assert_eq!(Driven::broken(&error, true), Driven::Lost, "{error}");
        }
        let of_rows = |error| Error::Rows(super::super::kept::Error::Database(error));
        let away = database::Error::Unreachable { url: url(), reason: "gone".into() };
        assert_eq!(Driven::broken(&of_rows(away), true), Driven::Lost);
        let column = database::Error::Column { column: "id".into(), source: "empty".into() };
        let statement = of_rows(column);
        assert_eq!(Driven::broken(&statement, false), Driven::Lost);
        assert!(matches!(Driven::broken(&statement, true), Driven::Refused(_)));
        let refused = [
            of_store(checkpoint::Error::Corrupt { thread, seq: 1, reason: "hash".into() }),
            of_store(checkpoint::Error::NoKey { key: "k1".into() }),
            of_store(checkpoint::Error::UnknownThread(thread)),
            Error::Answer("none is open".into()),
            Error::UserDisabled("ann".into()),
            Error::Runtime(runtime::Error::NoThread),
        ];
        for error in refused {
            assert!(matches!(Driven::broken(&error, false), Driven::Refused(_)), "{error}");
        }
        let until = perihelion_engine::clock::now();
        let busy = checkpoint::Error::Busy { thread, owner: "b".into(), until };
        assert_eq!(Driven::broken(&of_store(busy), false), Driven::Claimed);
    }
}

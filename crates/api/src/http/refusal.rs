//! Refusals in the form and with the status codes that clients expect.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use perihelion_engine::checkpoint::{
    self,
    Error::{Busy, Fenced},
};
use perihelion_engine::runner;
use perihelion_people as people;
use perihelion_runtime as runtime;
use perihelion_service as service;

#[derive(Debug)]
pub struct Refusal(pub StatusCode, pub String);

impl Refusal {
    pub(crate) fn invalid(why: impl ToString) -> Self {
        Self(StatusCode::UNPROCESSABLE_ENTITY, why.to_string())
    }

    /// Refuses because of a failure of the service itself, which its log has.
    pub(crate) fn failed() -> Self {
        Self(StatusCode::INTERNAL_SERVER_ERROR, FAILED.to_owned())
    }

    pub(crate) fn missing(what: impl Into<String>) -> Self {
        Self(StatusCode::NOT_FOUND, what.into())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, Json(json!({ "detail": self.1 }))).into_response()
    }
}

impl<E: Into<service::Error>> From<E> for Refusal {
    fn from(error: E) -> Self {
        let error = error.into();
        let status = match &error {
            service::Error::UnknownThread(_)
            | service::Error::UnknownRun(_)
            | service::Error::UnknownCheckpoint(_)
            | service::Error::Rows(service::kept::Error::UnknownThread(_)) => StatusCode::NOT_FOUND,
            service::Error::Busy | service::Error::OtherGraph { .. } => StatusCode::CONFLICT,
            service::Error::Forbidden(_)
            | service::Error::OthersThread
            | service::Error::UserDisabled(_) => StatusCode::FORBIDDEN,
            service::Error::TooMuch(_) | service::Error::DaySpent { .. } => {
                StatusCode::TOO_MANY_REQUESTS
            }
            service::Error::People(error) => of_people(error),
            service::Error::Answer(_)
            | service::Error::Update(_)
            | service::Error::Unsearchable => StatusCode::UNPROCESSABLE_ENTITY,
            service::Error::Rows(error) if error.is_passing() => StatusCode::SERVICE_UNAVAILABLE,
            service::Error::Runtime(error) => of_runtime(error),
            service::Error::Rows(_) | service::Error::NoDatabase => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        };
        if status.is_server_error() {
            tracing::error!(%error, "a request failed");
        }
        let stored = of_store(&error);
        // If a stored thread itself cannot be read, its users are informed about it.
        let is_of_thread = stored.is_some_and(checkpoint::Error::is_of_thread);
        let is_busy = stored.is_some_and(|error| matches!(error, Busy { .. } | Fenced { .. }));
        let why = match status {
            StatusCode::INTERNAL_SERVER_ERROR if !is_of_thread => FAILED.to_owned(),
            StatusCode::SERVICE_UNAVAILABLE => AWAY.to_owned(),
            _ if is_busy => BUSY.to_owned(),
            _ => error.to_string(),
        };
        Self(status, why)
    }
}

/// The messages about failures of the service itself, whose own words can name the database, files and servers.
const FAILED: &str = "the service failed; its log has the reason";
const AWAY: &str = "the service is not available for now; try again later, or see its log";

/// The message about a busy thread, without the name of its process.
const BUSY: &str = "the thread is at work; wait until its run has ended, or cancel it";

/// Returns the failure of the threads' store, if an error is one.
fn of_store(error: &service::Error) -> Option<&checkpoint::Error> {
    match error {
        service::Error::Runtime(runtime::Error::Store(error)) => Some(error),
        _ => None,
    }
}

fn of_people(error: &people::Error) -> StatusCode {
    match error {
        people::Error::WrongPassword | people::Error::NotAccepted(_) => StatusCode::UNAUTHORIZED,
        people::Error::Busy => StatusCode::TOO_MANY_REQUESTS,
        people::Error::NotThem(_) => StatusCode::FORBIDDEN,
        people::Error::Taken(_) => StatusCode::CONFLICT,
        people::Error::Unfit(_) => StatusCode::UNPROCESSABLE_ENTITY,
        people::Error::Unknown { .. } => StatusCode::NOT_FOUND,
        people::Error::Jwks(_) => StatusCode::SERVICE_UNAVAILABLE,
        people::Error::Database(error) if error.is_passing() => StatusCode::SERVICE_UNAVAILABLE,
        people::Error::Database(_) | people::Error::NoRandom | people::Error::Hash(_) => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
    }
}

fn of_runtime(error: &runtime::Error) -> StatusCode {
    match error {
        error if error.is_passing() => StatusCode::SERVICE_UNAVAILABLE,
        runtime::Error::Store(error) => match error {
            checkpoint::Error::UnknownThread(_)
            | checkpoint::Error::UnknownStep { .. }
            | checkpoint::Error::UnknownRun { .. } => StatusCode::NOT_FOUND,
            checkpoint::Error::Busy { .. }
            | checkpoint::Error::ThreadExists(_)
            | checkpoint::Error::InterruptClosed(_) => StatusCode::CONFLICT,
            error if error.is_of_another_writer() => StatusCode::CONFLICT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        },
        runtime::Error::Run(runner::Error::StateFull { .. }) => StatusCode::PAYLOAD_TOO_LARGE,
        runtime::Error::Run(runner::Error::Unfinished { .. }) => StatusCode::CONFLICT,
        // The demo, for one, keeps no teams.
        runtime::Error::NoTeams => StatusCode::NOT_FOUND,
        runtime::Error::Run(_) | runtime::Error::Request(_) | runtime::Error::Answer(_) => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        runtime::Error::People(error) => of_people(error),
        error if error.is_usage() => StatusCode::UNPROCESSABLE_ENTITY,
        // It is the model that failed; the same request may succeed later.
        runtime::Error::Model(_) => StatusCode::BAD_GATEWAY,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

pub(crate) async fn not_found() -> Refusal {
    Refusal::missing("Not Found")
}

pub(crate) async fn not_allowed() -> Refusal {
    Refusal(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed".into())
}

#[cfg(test)]
mod tests {
    use perihelion_database::Error::Locked;

    use super::*;

    #[test]
    fn a_database_that_is_not_available_for_now_is_a_503() {
        let locked = || Locked { url: "sqlite:threads.db".to_owned() };
        for error in [
            runtime::Error::Database(locked()),
            runtime::Error::Store(locked().into()),
            runner::Error::Store(locked().into()).into(),
        ] {
            assert_eq!(Refusal::from(error).0, StatusCode::SERVICE_UNAVAILABLE);
        }
    }
}

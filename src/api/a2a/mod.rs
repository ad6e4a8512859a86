//! A2A 1.0: the star as an agent that other agents send tasks to, by JSON-RPC and by REST, streamed too.
//!
//! [`router`] has the routes. A context is a thread; a task is a turn of it, with the runs that went on with it after
//! questions. Deliberately absent: push notifications, and content that is not text.

mod card;
mod refusal;
mod rest;
mod rpc;
mod shapes;
mod stream;
mod tasks;

use axum::Router;
use axum::routing::{get, post};

use crate::service::Service;

/// Makes the routes over a service.
pub fn router(service: Service) -> Router {
    Router::new()
        .route("/.well-known/agent-card.json", get(card::get))
        .route("/a2a", post(rpc::call))
        .route("/a2a/message:send", post(rest::send))
        .route("/a2a/message:stream", post(rest::stream))
        .route("/a2a/tasks", get(rest::list))
        .route("/a2a/tasks/{task}", get(rest::get_or_follow).post(rest::act))
        .with_state(service)
}

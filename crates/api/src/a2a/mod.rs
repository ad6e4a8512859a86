//! A2A 1.0: other agents send tasks, by JSON-RPC or REST, and can stream them.
//!
//! [`router`] has the routes, and [`discovery`] the public agent card. A context is a thread. A task is a turn of it,
//! with the runs that continued it after questions, in any API. Invariant: an address that follows a task receives the
//! end of each of its runs. Deliberately absent: content other than text, and earlier versions of A2A.

mod bindings;
mod card;
mod list;
mod push;
mod refusal;
mod runs;
mod shapes;
mod state;
mod stream;
mod tasks;

use axum::Router;
use axum::middleware::from_fn;

use crate::http::Forms;
use crate::http::routing::{boxed, get, post};
use perihelion_service::Service;

pub(crate) use push::{KIND, MEDIA, pushed};
pub(crate) use runs::TaskAddresses;

pub fn router(service: Service) -> Router {
    let rest = Router::new()
        .route("/a2a/message:send", post(bindings::send))
        .route("/a2a/message:stream", post(bindings::stream))
        .route("/a2a/extendedAgentCard", get(bindings::extended_card))
        .route("/a2a/tasks", get(bindings::tasks))
        .route(
            "/a2a/tasks/{task}",
            get(bindings::get_or_follow)
                .post(boxed(bindings::act))
                .options(boxed(bindings::allowed)),
        )
        .route(
            "/a2a/tasks/{task}/pushNotificationConfigs",
            get(bindings::pushes).post(boxed(bindings::add_push)),
        )
        .route(
            "/a2a/tasks/{task}/pushNotificationConfigs/{id}",
            get(bindings::push).delete(boxed(bindings::delete_push)),
        )
        .route_layer(from_fn(bindings::versioned));
    Router::new()
        .route("/a2a", post(bindings::call))
        // Clients that join the card's address and the path "/".
        .route("/a2a/", post(bindings::call))
        .merge(rest)
        .with_state(service)
}

pub fn discovery(service: Service) -> Router {
    Router::new().route("/.well-known/agent-card.json", get(card::public)).with_state(service)
}

pub(super) fn forms(forms: &mut Forms) {
    forms.body::<tasks::Send>("post /a2a/message:send");
    forms.body::<tasks::Send>("post /a2a/message:stream");
    forms.query::<list::List>("get /a2a/tasks");
    forms.body::<push::Config>("post /a2a/tasks/{task}/pushNotificationConfigs");
    // Whatever is sent gets an answer of JSON-RPC, a fault too.
    forms.other_body("post /a2a", "application/json", serde_json::json!({}));
    forms.other_body("post /a2a/", "application/json", serde_json::json!({}));
    forms.query::<bindings::Shown>("get /a2a/tasks/{task}");
}

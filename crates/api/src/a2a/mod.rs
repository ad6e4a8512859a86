//! A2A 1.0: other agents send tasks, by JSON-RPC or REST, and can stream them.
//!
//! [`router`] has the routes, and [`discovery`] the public agent card. A context is a thread. A task is a turn of it,
//! with the runs that continued it after questions, in any API. Invariant: an address that follows a task receives the
//! end of each of its runs. Deliberately absent: content other than text, and earlier versions of A2A.

mod bindings;
mod body;
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
use crate::http::routing::{Routes, get, options, post};
use perihelion_service::Service;

pub(crate) use push::{KIND, MEDIA, pushed};
pub(crate) use runs::TaskAddresses;

pub fn router(service: Service) -> Router {
    let rest = rest().with_state(service.clone()).route_layer(from_fn(bindings::versioned));
    let rpc = Routes::new()
        .route("/a2a", post(bindings::call))
        // Clients that join the card's address and the path "/".
        .route("/a2a/", post(bindings::call));
    rest.merge(rpc.with_state(service))
}

fn rest() -> Routes<Service> {
    Routes::new()
        .route("/a2a/message:send", post(bindings::send))
        .route("/a2a/message:stream", post(bindings::stream))
        .route("/a2a/extendedAgentCard", get(card::extended))
        .route("/a2a/tasks", get(list::listed))
        .route(
            "/a2a/tasks/{task}",
            options(bindings::allowed).get(bindings::get_or_follow).post(bindings::act),
        )
        .route("/a2a/tasks/{task}/pushNotificationConfigs", get(push::list).post(push::create))
        .route(
            "/a2a/tasks/{task}/pushNotificationConfigs/{id}",
            get(push::get).delete(push::delete),
        )
}

pub fn discovery(service: Service) -> Router {
    Routes::new().route("/.well-known/agent-card.json", get(card::public)).with_state(service)
}

pub(super) fn describe(forms: &mut Forms) {
    rest().describe(forms);
    // Whatever is sent gets an answer of JSON-RPC, a fault too.
    for route in ["post /a2a", "post /a2a/"] {
        forms.other_body(route, "application/json", serde_json::json!({}));
    }
}

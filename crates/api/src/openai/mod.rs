//! OpenAI's APIs, responses and chat completions, for clients that already use them.
//!
//! [`routes`] has the routes. The ID of a response names its run, and so the thread and its step: `previous_response_id`
//! continues from there. A question to a person is the answer, and the next input answers it. Invariant: a parameter
//! has its effect or is refused by name. Deliberately absent: the client's own tools, and sound.

mod chat;
mod format;
mod messages;
mod models;
mod parameters;
mod refusal;
mod responses;
mod shapes;

use crate::http::routing::{Routes, get, post};
use perihelion_service::Service;

pub(crate) use refusal::with_error;

pub(super) fn routes() -> Routes<Service> {
    Routes::new()
        .route("/v1/models", get(models::list))
        .route("/v1/models/{model}", get(models::get))
        .route("/v1/responses", post(responses::create))
        .route("/v1/responses/{id}", get(responses::get).delete(responses::delete))
        .route("/v1/responses/{id}/cancel", post(responses::cancel))
        .route("/v1/responses/{id}/input_items", get(responses::input_items))
        .route("/v1/chat/completions", post(chat::create))
}

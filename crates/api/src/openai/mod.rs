//! OpenAI's APIs, responses and chat completions, for clients that already use them.
//!
//! [`router`] has the routes. The ID of a response names its run, and so the thread and its step: `previous_response_id`
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

use axum::Router;

use crate::http::Forms;
use crate::http::routing::{boxed, get, post};
use perihelion_service::Service;

pub(crate) use refusal::with_error;

pub fn router(service: Service) -> Router {
    Router::new()
        .route("/v1/models", get(models::list))
        .route("/v1/models/{model}", get(models::get))
        .route("/v1/responses", post(responses::create))
        .route("/v1/responses/{id}", get(responses::get).delete(boxed(responses::delete)))
        .route("/v1/responses/{id}/cancel", post(responses::cancel))
        .route("/v1/responses/{id}/input_items", get(responses::input_items))
        .route("/v1/chat/completions", post(chat::create))
        .with_state(service)
}

pub(super) fn forms(forms: &mut Forms) {
    forms.body::<responses::Create>("post /v1/responses");
    forms.query::<responses::Retrieve>("get /v1/responses/{id}");
    forms.query::<responses::Page>("get /v1/responses/{id}/input_items");
    forms.body::<chat::Create>("post /v1/chat/completions");
}

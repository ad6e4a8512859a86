//! The interfaces of OpenAI: responses and chat completions, so that whatever speaks them speaks to the star.
//!
//! [`router`] has the routes. A response's id names its run, and with it the thread and where it stood: the next one
//! continues from there by `previous_response_id`. A question to a person is said in the answer, and the next input
//! answers it. Deliberately absent: tools of the client's, images and sound.

mod chat;
mod messages;
mod models;
mod refusal;
mod responses;
mod shapes;

use axum::Router;

use crate::http::Forms;
use crate::http::routing::{boxed, get, post};
use perihelion_service::Service;

/// Makes the routes over a service.
pub fn router(service: Service) -> Router {
    Router::new()
        .route("/v1/models", get(models::list))
        .route("/v1/models/{model}", get(models::get))
        .route("/v1/responses", post(responses::create))
        .route("/v1/responses/{id}", get(responses::get).delete(boxed(responses::delete)))
        .route("/v1/responses/{id}/cancel", post(responses::cancel))
        .route("/v1/chat/completions", post(chat::create))
        .with_state(service)
}

/// Names what the routes read.
pub(super) fn forms(forms: &mut Forms) {
    forms.body::<responses::Create>("post /v1/responses");
    forms.body::<chat::Create>("post /v1/chat/completions");
}

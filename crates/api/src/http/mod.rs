//! What all APIs share: bodies and queries, refusals, and limits on how many requests run at once.
//!
//! Invariant: an error of the service has one status code, whichever API answers. Deliberately absent: the formats of the
//! APIs, which turn a [`Refusal`] into their own.

mod body;
mod forms;
mod places;
mod refusal;
pub(crate) mod routing;

pub(crate) use body::{
    Asked, Asked as Query, Body, MaybeOfThread, Object, OfRun, OfThread, is_json, json,
};
pub(crate) use forms::Forms;
pub(crate) use places::{Place, Places};
pub(crate) use refusal::{Refusal, not_allowed, not_found};

/// What a handler answers that shows an object.
pub(crate) type JsonResult<E = Refusal> = Result<axum::Json<serde_json::Value>, E>;

/// What a handler answers in a form of its own.
pub(crate) type ResponseResult = Result<axum::response::Response, Refusal>;

/// What a handler answers that shows nothing.
pub(crate) type StatusResult = Result<axum::http::StatusCode, Refusal>;

//! The code that all APIs share: bodies and queries, and refusals.
//!
//! Invariant: an error of the service has one status code, whichever API answers. Deliberately absent: the formats of the
//! APIs, which turn a [`Refusal`] into their own.

mod body;
mod forms;
mod refusal;
pub(crate) mod routing;

pub(crate) use body::{
    Asked, Asked as Query, Body, MaybeOfThread, Object, OfRun, OfThread, Raw, is_json, json,
    read_object, typed, uuid,
};
pub(crate) use forms::{Forms, Input};
pub(crate) use refusal::{Refusal, not_allowed, not_found};

pub(crate) type JsonResult<E = Refusal> = Result<axum::Json<serde_json::Value>, E>;

pub(crate) type ResponseResult = Result<axum::response::Response, Refusal>;

/// The answer of a handler without content.
pub(crate) type StatusResult = Result<axum::http::StatusCode, Refusal>;

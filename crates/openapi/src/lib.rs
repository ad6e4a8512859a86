//! Reads descriptions of HTTP APIs, finds operations in them, and renders requests.
//!
//! Enter at [`Catalogue::read`], [`Finder`] and [`render()`]. OpenAPI 2, 3.0 and 3.1 in JSON and YAML are read, and plain lists of
//! endpoints in YAML. Invariant: a rendered request never leaves the origin and path prefix of its [`Base`], whatever its values are.
//! Deliberately absent: sending anything, and typed models of the descriptions, which real ones do not follow.

mod base;
mod catalogue;
mod describe;
mod error;
mod find;
mod pointer;
mod read;
mod render;
mod schema;

pub use base::{Base, BaseChoice};
pub use catalogue::{
    Body, Catalogue, Content, Location, Operation, Parameter, Scheme, SchemeKind, Server, Snippet,
    Style,
};
pub use describe::describe;
pub use error::Error;
use error::Result;
pub use find::{Finder, Found};
pub use render::{Arguments, Payload, Request, render};

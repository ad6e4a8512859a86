//! The web for models: searched through a provider, fetched from public addresses only, read as Markdown.
//!
//! Enter at [`Web::open`], and at [`mentions`] for the addresses that a text names. Invariant: no connection is made to an address that is not public, no matter who names it: a link, a redirect, a
//! name that resolves elsewhere the second time. Deliberately absent: scripts of pages, cookies, and any proxy of the environment.

mod address;
mod boilerplate;
mod cache;
mod document;
mod error;
mod fetch;
mod limits;
mod main_text;
mod mention;
mod page;
mod polite;
mod regions;
mod robots;
mod search;

pub use address::{Addresses, embedded, is_public};
pub use document::{Document, ReadDocument, Reading};
pub use error::Error;
pub use fetch::Web;
pub use limits::Limits;
pub use mention::{Mention, mentions, mentions_in};
pub use page::{Link, Page, read};
use perihelion_clock as clock;
pub use search::{Hit, Kind, Provider, Wire};

//! Office documents and books: packages of XML parts.

mod chart;
mod docx;
mod epub;
mod math;
mod numbering;
mod open_document;
mod package;
mod pptx;
mod styles;
mod xml;

pub(crate) use chart::sheet_extras;
pub(crate) use docx::parse as docx;
pub(crate) use epub::parse as epub;
pub(crate) use numbering::shown as numbered;
pub(crate) use open_document::parse as open_document;
pub(crate) use package::{CORE, Package};
pub(crate) use pptx::parse as pptx;

//! Word and PowerPoint documents: packages of XML parts.

mod chart;
mod docx;
mod math;
mod numbering;
mod package;
mod pptx;
mod styles;
mod xml;

pub(crate) use chart::sheet_extras;
pub(crate) use docx::parse as docx;
pub(crate) use package::Package;
pub(crate) use pptx::parse as pptx;

//! Documents of the web, parsed as those of the documents server: in a process of its own.

use perihelion_documents::Parser;
use perihelion_ingest::parser;
use perihelion_web::{Document, ReadDocument, Reading};

/// Has documents parsed by this program again.
pub struct Parsing(Parser);

impl Parsing {
    pub fn new() -> Self {
        Self(parser())
    }
}

impl ReadDocument for Parsing {
    fn read<'a>(&'a self, name: &'a str, bytes: &'a [u8]) -> Reading<'a> {
        Box::pin(async move {
            let parsed = self.0.parse(name, bytes).await.map_err(|error| error.to_string())?;
            Ok(Document { title: parsed.title, text: parsed.text })
        })
    }
}

//! Office documents as tests write them: archives of parts.

use std::io::{Cursor, Write as _};

use zip::write::SimpleFileOptions;

/// Packs parts, each with its path.
pub fn package(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (path, content) in parts {
        archive.start_file(*path, SimpleFileOptions::default()).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

//! What kind of document it is, by its bytes first and by its name where they do not say.

use std::io::{Cursor, Read};

use serde::{Deserialize, Serialize};

use crate::Error;

/// A kind of document that can be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    Pdf,
    Docx,
    Pptx,
    Xlsx,
    Xls,
    Ods,
    Csv,
    Html,
    Markdown,
    Text,
}

impl Format {
    /// Returns the format's name as it is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pdf => "pdf",
            Self::Docx => "docx",
            Self::Pptx => "pptx",
            Self::Xlsx => "xlsx",
            Self::Xls => "xls",
            Self::Ods => "ods",
            Self::Csv => "csv",
            Self::Html => "html",
            Self::Markdown => "markdown",
            Self::Text => "text",
        }
    }

    /// Returns the format that files with this ending usually have.
    pub fn by_name(name: &str) -> Option<Self> {
        let (_, ending) = name.rsplit_once('.')?;
        Some(match ending.to_ascii_lowercase().as_str() {
            "pdf" => Self::Pdf,
            "docx" | "docm" | "dotx" => Self::Docx,
            "pptx" | "pptm" | "ppsx" => Self::Pptx,
            "xlsx" | "xlsm" | "xltx" => Self::Xlsx,
            "xls" => Self::Xls,
            "ods" => Self::Ods,
            "csv" | "tsv" | "tab" => Self::Csv,
            "html" | "htm" | "xhtml" => Self::Html,
            "md" | "markdown" | "mdx" => Self::Markdown,
            "txt" | "text" | "log" | "rst" | "adoc" | "org" | "tex" => Self::Text,
            _ => return None,
        })
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The container of encrypted and of old office documents.
const COMPOUND: &[u8] = &[0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1];

pub(crate) fn detect(bytes: &[u8], name: &str) -> Result<Format, Error> {
    let named = Format::by_name(name);
    // Some programs write a few bytes before a PDF's header.
    if bytes[..bytes.len().min(1024)].windows(5).any(|window| window == b"%PDF-") {
        return Ok(Format::Pdf);
    }
    if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        return packed(bytes, named);
    }
    if bytes.starts_with(COMPOUND) {
        return compound(bytes, named);
    }
    match named {
        Some(format @ (Format::Csv | Format::Html | Format::Markdown | Format::Text)) => Ok(format),
        Some(format) => Err(Error::broken(format, "it does not begin as such a file does")),
        None => guess(bytes, name),
    }
}

fn packed(bytes: &[u8], named: Option<Format>) -> Result<Format, Error> {
    let broken =
        |reason: &dyn std::fmt::Display| Error::broken(named.unwrap_or(Format::Docx), reason);
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(|error| broken(&error))?;
    let contains = |part: &str| archive.index_for_name(part).is_some();
    if contains("word/document.xml") || contains("word/document2.xml") {
        return Ok(Format::Docx);
    }
    if contains("ppt/presentation.xml") {
        return Ok(Format::Pptx);
    }
    if contains("xl/workbook.xml") || contains("xl/workbook.bin") {
        return Ok(Format::Xlsx);
    }
    let mut kind = String::new();
    if let Ok(part) = archive.by_name("mimetype") {
        // A hostile archive may hold a long one; the beginning tells.
        let _ = part.take(200).read_to_string(&mut kind);
    }
    match kind.trim() {
        "application/vnd.oasis.opendocument.spreadsheet" => Ok(Format::Ods),
        "" => match named {
            Some(format) => Err(broken(&format!("its parts are not those of a {format} file"))),
            None => Err(Error::Unsupported("an archive".into())),
        },
        kind => Err(Error::Unsupported(kind.to_owned())),
    }
}

fn compound(bytes: &[u8], named: Option<Format>) -> Result<Format, Error> {
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let contains = |text: &str| {
        let wanted = wide(text);
        bytes.windows(wanted.len()).any(|window| window == wanted.as_slice())
    };
    if contains("EncryptedPackage") || contains("EncryptionInfo") {
        return Err(Error::Password);
    }
    if contains("Workbook") || named == Some(Format::Xls) {
        return Ok(Format::Xls);
    }
    Err(Error::Unsupported("an office document of before 2007, such as .doc or .ppt".into()))
}

fn guess(bytes: &[u8], name: &str) -> Result<Format, Error> {
    let unknown = || match name.rsplit_once('.') {
        Some((_, ending)) if ending.len() < 12 => Error::Unsupported(format!(".{ending}")),
        _ => Error::Unsupported("not a text".into()),
    };
    let text = crate::encoding::decode(bytes).map_err(|_| unknown())?;
    let head: String = text.text.trim_start().chars().take(400).collect::<String>().to_lowercase();
    if head.starts_with("<!doctype html") || head.starts_with("<html") {
        return Ok(Format::Html);
    }
    Ok(Format::Text)
}

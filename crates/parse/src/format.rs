//! The kind of document, by its bytes first and by its name if they do not show it.

use std::io::{Cursor, Read};

use serde::{Deserialize, Serialize};

use crate::Error;

/// A kind of document that can be parsed.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Format {
    Pdf,
    Docx,
    Pptx,
    Xlsx,
    Xls,
    Odt,
    Odp,
    Ods,
    Rtf,
    Epub,
    Eml,
    Csv,
    Html,
    Markdown,
    Image,
    #[default]
    Text,
}

const ENDINGS: [(Format, &str); 16] = [
    (Format::Pdf, "pdf"),
    (Format::Docx, "docx docm dotx"),
    (Format::Pptx, "pptx pptm ppsx"),
    (Format::Xlsx, "xlsx xlsm xltx"),
    (Format::Xls, "xls"),
    (Format::Odt, "odt ott fodt"),
    (Format::Odp, "odp otp fodp"),
    (Format::Ods, "ods ots fods"),
    (Format::Rtf, "rtf"),
    (Format::Epub, "epub"),
    (Format::Eml, "eml mht mhtml"),
    (Format::Csv, "csv tsv tab"),
    (Format::Html, "html htm xhtml"),
    (Format::Markdown, "md markdown mdx"),
    (Format::Image, "png jpg jpeg tif tiff gif webp"),
    (Format::Text, "txt text log rst adoc org tex"),
];

impl Format {
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    fn is_text(self) -> bool {
        matches!(self, Self::Csv | Self::Eml | Self::Html | Self::Markdown | Self::Text)
    }

    pub fn by_name(name: &str) -> Option<Self> {
        let ending = name.rsplit_once('.')?.1.to_ascii_lowercase();
        let is_named = |(_, endings): &&(Self, &str)| endings.split(' ').any(|one| one == ending);
        ENDINGS.iter().find(is_named).map(|(format, _)| *format)
    }
}

const PDF: &[u8] = b"%PDF-";

/// The container of encrypted and of old office documents.
const COMPOUND: &[u8] = &[0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1];

/// Pictures, by the bytes with which they begin; Tesseract takes other bytes for a list of files that it is to read.
const PICTURES: [&[u8]; 6] =
    [b"\x89PNG\r\n\x1a\n", b"\xFF\xD8\xFF", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*"];

/// Files of other kinds, by the bytes with which they begin.
const OTHERS: [(&[u8], &str); 19] = [
    (b"%!PS", "PostScript"),
    (b"RIFF", "a sound or a film"),
    (b"ID3", "a sound"),
    (b"OggS", "a sound or a film"),
    (b"AT&TFORM", "DjVu"),
    (b"ITSF", "compiled help, .chm"),
    (b"\xFFWPC", "WordPerfect"),
    (b"7z\xBC\xAF", "an archive"),
    (b"Rar!", "an archive"),
    (b"\x1F\x8B", "an archive"),
    (b"BZh", "an archive"),
    (b"\xFD7zXZ", "an archive"),
    (b"\x28\xB5\x2F\xFD", "an archive"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\x7FELF", "a program"),
    // Workbooks before they were compound files (BIFF 2 to 4).
    (b"\x09\0\x04\0", "an Excel workbook of before 1993, .xls"),
    (b"\x09\0\x06\0", "an Excel workbook of before 1993, .xls"),
    (b"\x09\x02\x06\0", "an Excel workbook of before 1993, .xls"),
    (b"\x09\x04\x06\0", "an Excel workbook of before 1993, .xls"),
];

/// Office documents that are one XML file, by their beginning.
const FLAT: [(&str, &str); 5] = [
    ("progid=\"word.document\"", "a Word 2003 XML document"),
    ("progid=\"excel.sheet\"", "an Excel 2003 XML workbook"),
    ("<pkg:package", "a Word document in one XML file"),
    ("urn:schemas-microsoft-com:office:spreadsheet", "an Excel 2003 XML workbook"),
    ("<fictionbook", "a FictionBook"),
];

pub(crate) fn detect(bytes: &[u8], name: &str) -> Result<Format, Error> {
    let named = Format::by_name(name);
    let is_named_text = named.is_some_and(Format::is_text);
    // Some programs write a few bytes before a PDF's header; a text may speak of one.
    let most = if is_named_text { PDF.len() } else { 1024 };
    let unmarked = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes).trim_ascii_start();
    if unmarked[..unmarked.len().min(most)].windows(PDF.len()).any(|window| window == PDF) {
        return Ok(Format::Pdf);
    }
    if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        return packed(bytes, named);
    }
    if bytes.starts_with(COMPOUND) {
        return compound(bytes, named);
    }
    // A text may begin with such letters, too.
    let is_text = !bytes.starts_with(b"%!PS") && !bytes.iter().take(64).any(|byte| *byte < 9);
    let is_other = |(beginning, _): &&(&[u8], &str)| bytes.starts_with(beginning) && !is_text;
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    if !is_text && (is_webp || PICTURES.iter().any(|sign| bytes.starts_with(sign))) {
        return Ok(Format::Image);
    }
    if let Some((_, kind)) = OTHERS.iter().find(is_other) {
        return Err(Error::Unsupported((*kind).into()));
    }
    if bytes.get(60..68) == Some(b"BOOKMOBI") {
        return Err(Error::Unsupported("a Kindle book".into()));
    }
    if bytes.trim_ascii_start().starts_with(b"{\\rtf") {
        return Ok(Format::Rtf);
    }
    let head = head(bytes);
    // A page or a text may speak of such files.
    if head.starts_with('<') && !is_page(&head) {
        if let Some((_, kind)) = FLAT.iter().find(|(sign, _)| head.contains(sign)) {
            return Err(Error::Unsupported((*kind).into()));
        }
        if let Some((_, kind)) = head.split_once("office:mimetype=\"") {
            let unknown = || Error::Unsupported("an OpenDocument file".into());
            return open_document(kind).ok_or_else(unknown);
        }
    }
    match named {
        Some(format) if is_named_text => Ok(format),
        // Programs that export tables of a page call them workbooks.
        Some(_) if is_page(&head) => Ok(Format::Html),
        Some(format) => Err(Error::broken(format, "it does not begin as such a file does")),
        None if is_page(&head) => Ok(Format::Html),
        None if is_mail(&head) => Ok(Format::Eml),
        None if head.starts_with("from ")
            && is_mail(head.split_once('\n').map_or("", |(_, rest)| rest)) =>
        {
            Err(Error::Unsupported("a folder of mails; save each as .eml".into()))
        }
        None => guess(bytes, name),
    }
}

/// Returns the beginning in lower-case letters, without space and byte order mark before it.
fn head(bytes: &[u8]) -> String {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(2048)]).to_lowercase();
    head.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{FEFF}').to_owned()
}

fn is_page(head: &str) -> bool {
    ["<!doctype html", "<html", "<table", "<head", "<body"]
        .iter()
        .any(|sign| head.starts_with(sign))
        || (head.starts_with("<?xml") && head.contains("<html"))
}

fn is_mail(head: &str) -> bool {
    const FIELDS: &str =
        "from: to: date: subject: received: message-id: mime-version: return-path:";
    let fields = head.lines().take_while(|line| !line.trim().is_empty());
    let known =
        fields.filter(|line| FIELDS.split(' ').any(|field| line.starts_with(field))).count();
    known >= 3
        && head.lines().next().is_some_and(|line| {
            line.split_whitespace().next().is_some_and(|field| field.ends_with(':'))
        })
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
    if contains("xl/workbook.xml") {
        return Ok(Format::Xlsx);
    }
    if contains("xl/workbook.bin") {
        return Err(Error::Unsupported("a binary Excel workbook, .xlsb".into()));
    }
    if contains("Index/Document.iwa") || contains("Index.zip") {
        return Err(Error::Unsupported("a document of Apple Pages, Numbers or Keynote".into()));
    }
    let is_book = contains("META-INF/container.xml");
    let mut kind = String::new();
    if let Ok(part) = archive.by_name("mimetype") {
        // A hostile archive may hold a long one; the beginning tells.
        let _ = part.take(200).read_to_string(&mut kind);
    }
    if let Some(format) = open_document(&kind) {
        return Ok(format);
    }
    match kind.trim() {
        "application/epub+zip" => Ok(Format::Epub),
        "" if is_book => Ok(Format::Epub),
        "" => match named {
            Some(format) => Err(broken(&format!("its parts are not those of a {format} file"))),
            None => Err(Error::Unsupported("an archive".into())),
        },
        kind => Err(Error::Unsupported(kind.to_owned())),
    }
}

fn open_document(kind: &str) -> Option<Format> {
    let kind = kind.strip_prefix("application/vnd.oasis.opendocument.")?;
    let kinds =
        [("text", Format::Odt), ("presentation", Format::Odp), ("spreadsheet", Format::Ods)];
    kinds.into_iter().find(|(name, _)| kind.starts_with(name)).map(|(_, format)| format)
}

/// The kind of a compound file, by the names of its streams; a document can contain a workbook, which comes last.
const STREAMS: [(&str, &str); 8] = [
    ("WordDocument", "a Word document of before 2007, .doc"),
    ("PowerPoint Document", "a PowerPoint document of before 2007, .ppt"),
    ("__properties_version1.0", "an Outlook message, .msg"),
    ("VisioDocument", "a Visio drawing"),
    ("Quill", "a Publisher document"),
    ("Workbook", ""),
    ("Book", "an Excel workbook of before 1997, .xls"),
    ("", "an office document of before 2007"),
];

fn compound(bytes: &[u8], named: Option<Format>) -> Result<Format, Error> {
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let contains = |text: &str| {
        let wanted = wide(text);
        wanted.is_empty() || bytes.windows(wanted.len()).any(|window| window == wanted.as_slice())
    };
    if contains("EncryptedPackage") || contains("EncryptionInfo") {
        return Err(Error::Password);
    }
    if named == Some(Format::Xls) && contains("Workbook") {
        return Ok(Format::Xls);
    }
    match STREAMS.iter().find(|(stream, _)| contains(stream)) {
        Some(("Workbook", _)) | None => Ok(Format::Xls),
        Some((_, kind)) => Err(Error::Unsupported((*kind).into())),
    }
}

fn guess(bytes: &[u8], name: &str) -> Result<Format, Error> {
    let unknown = || match name.rsplit_once('.') {
        Some((_, ending)) if ending.len() < 12 => Error::Unsupported(format!(".{ending}")),
        _ => Error::Unsupported("not a text".into()),
    };
    crate::encoding::decode(bytes).map_err(|_| unknown())?;
    Ok(Format::Text)
}

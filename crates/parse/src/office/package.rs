//! The archive of an office document and the relations between its parts.

use std::collections::HashMap;
use std::io::{Cursor, Read as _};

use roxmltree::Node;

use super::xml;
use crate::builder::author_names;
use crate::{Error, Format, Limits, Warning};

pub(crate) const CORE: &str = "docProps/core.xml";

pub(crate) struct Package<'a> {
    archive: zip::ZipArchive<Cursor<&'a [u8]>>,
    format: Format,
    limits: &'a Limits,
    packed: usize,
    unpacked: u64,
    unread: Vec<String>,
    warnings: Vec<Warning>,
}

/// The relations of a part: target part and kind, by ID.
pub(super) type Relations = HashMap<String, Relation>;

pub(super) struct Relation {
    pub part: String,
    /// The last word of the relation's type, such as `slide`.
    pub kind: String,
}

impl<'a> Package<'a> {
    pub fn open(bytes: &'a [u8], format: Format, limits: &'a Limits) -> Result<Self, Error> {
        let archive = zip::ZipArchive::new(Cursor::new(bytes))
            .map_err(|error| Error::broken(format, error))?;
        Ok(Self {
            archive,
            format,
            limits,
            packed: bytes.len(),
            unpacked: 0,
            unread: Vec::new(),
            warnings: Vec::new(),
        })
    }

    /// Reads a part; `None` if it is missing.
    pub(super) fn bytes(&mut self, part: &str) -> Result<Option<Vec<u8>>, Error> {
        let format = self.format;
        let file = match self.archive.by_name(part) {
            Ok(file) => file,
            Err(zip::result::ZipError::FileNotFound) => return Ok(None),
            Err(error) => return Err(Error::broken(format, error)),
        };
        // The sizes in an archive can be wrong: the limit is checked while reading.
        let most = (self.limits.unpacked_bytes as u64).saturating_sub(self.unpacked) + 1;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes).map_err(|error| Error::broken(format, error))?;
        self.unpacked += bytes.len() as u64;
        self.limits.check_unpacked(self.packed, self.unpacked)?;
        Ok(Some(bytes))
    }

    /// Reads a part as text; `None` if it is missing.
    pub fn text(&mut self, part: &str) -> Result<Option<String>, Error> {
        let Some(bytes) = self.bytes(part)? else { return Ok(None) };
        let decoded = crate::encoding::decode(&bytes)?;
        self.warnings.extend(decoded.warnings);
        Ok(Some(decoded.text))
    }

    /// Reads an optional part; a damaged one is left out, and noted.
    pub(super) fn part<T>(
        &mut self,
        part: &str,
        read: impl FnOnce(Node<'_, '_>) -> T,
    ) -> Result<Option<T>, Error> {
        let Some(text) = self.readable(part)? else { return Ok(None) };
        match xml::read(&text, self.format) {
            Ok(document) => Ok(Some(read(document.root_element()))),
            Err(_) => {
                self.miss(part);
                Ok(None)
            }
        }
    }

    /// As [`Package::text`]; a part that is not text is left out, and noted.
    pub(super) fn readable(&mut self, part: &str) -> Result<Option<String>, Error> {
        match self.text(part) {
            Err(Error::Broken { .. } | Error::Encoding(_)) => {
                self.miss(part);
                Ok(None)
            }
            read => read,
        }
    }

    pub(super) fn miss(&mut self, part: &str) {
        if !self.unread.iter().any(|own| own == part) {
            self.unread.push(part.to_owned());
        }
    }

    pub fn warnings(&mut self) -> Vec<Warning> {
        let mut warnings = std::mem::take(&mut self.warnings);
        let parts = std::mem::take(&mut self.unread);
        if !parts.is_empty() {
            warnings.push(Warning::PartsUnread { parts });
        }
        warnings
    }

    /// Reads a part that the document cannot do without.
    pub fn needed(&mut self, part: &str) -> Result<String, Error> {
        let missing = Error::broken(self.format, format!("a part is missing: {part}"));
        self.text(part)?.ok_or(missing)
    }

    pub(super) fn relations(&mut self, part: &str) -> Result<Relations, Error> {
        let (directory, name) = part.rsplit_once('/').unwrap_or(("", part));
        let path = match directory {
            "" => format!("_rels/{name}.rels"),
            directory => format!("{directory}/_rels/{name}.rels"),
        };
        let read = |root: Node<'_, '_>| {
            let nodes = root.children().filter(|node| xml::is(*node, "Relationship"));
            let inner = nodes.filter(|node| node.attribute("TargetMode") != Some("External"));
            let relations = inner.filter_map(|node| {
                let kind = node.attribute("Type").and_then(|kind| kind.rsplit('/').next());
                let relation = Relation {
                    part: resolved(directory, node.attribute("Target")?),
                    kind: kind.unwrap_or_default().to_owned(),
                };
                Some((node.attribute("Id")?.to_owned(), relation))
            });
            relations.collect::<Relations>()
        };
        Ok(self.part(&path, read)?.unwrap_or_default())
    }

    /// Returns the parts that a part is related to by a kind, in the order of their names.
    pub(super) fn related(&mut self, part: &str, kind: &str) -> Result<Vec<String>, Error> {
        let relations = self.relations(part)?;
        let mut parts: Vec<String> = relations
            .into_values()
            .filter(|relation| relation.kind == kind)
            .map(|relation| relation.part)
            .collect();
        parts.sort();
        Ok(parts)
    }

    pub fn properties(&mut self, part: &str) -> Result<(Option<String>, Vec<String>), Error> {
        let read = |root: Node<'_, '_>| {
            let words = |name: &'static str| {
                let nodes = root.descendants().filter(move |node| xml::is(*node, name));
                nodes.filter_map(|node| node.text().map(crate::builder::one_line))
            };
            (words("title").next(), author_names(words("creator")))
        };
        Ok(self.part(part, read)?.unwrap_or_default())
    }

    /// Returns to how many bytes the archive says that it unpacks.
    pub fn unpacks_to(&self) -> u64 {
        self.archive.decompressed_size().and_then(|bytes| bytes.try_into().ok()).unwrap_or(0)
    }

    pub fn sheet_parts(&mut self) -> Result<Vec<(String, String)>, Error> {
        const MAIN: &str = "xl/workbook.xml";
        let relations = self.relations(MAIN)?;
        let read = |root: Node<'_, '_>| {
            let sheets = root.descendants().filter(|node| xml::is(*node, "sheet"));
            let named = sheets.filter_map(|sheet| {
                let relation = relations.get(xml::relation(sheet, "id")?)?;
                Some((sheet.attribute("name")?.to_owned(), relation.part.clone()))
            });
            named.collect()
        };
        Ok(self.part(MAIN, read)?.unwrap_or_default())
    }
}

pub(super) fn resolved(directory: &str, target: &str) -> String {
    if let Some(absolute) = target.strip_prefix('/') {
        return absolute.to_owned();
    }
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn the_properties_name_title_and_authors() {
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        archive.start_file("docProps/core.xml", zip::write::SimpleFileOptions::default()).unwrap();
        let core = "<p xmlns:dc='http://purl.org/dc/elements/1.1/'><dc:title>The  lease</dc:title>\
            <dc:creator>Ann Archer; Ben Brook</dc:creator></p>";
        archive.write_all(core.as_bytes()).unwrap();
        let bytes = archive.finish().unwrap().into_inner();
        let limits = Limits::default();
        let mut package = Package::open(&bytes, Format::Docx, &limits).unwrap();
        let (title, authors) = package.properties(CORE).unwrap();
        assert_eq!(title.as_deref(), Some("The lease"));
        assert_eq!(authors, ["Ann Archer", "Ben Brook"]);
    }
}

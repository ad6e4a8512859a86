//! PDF: text, headings and tables page by page, in reading order.
//!
//! A page is painted onto a [`page::Painted`], which stores letters and their positions; [`rows`] makes rows of them,
//! [`columns`] orders the rows, and [`flow`] makes paragraphs, headings and tables of them.

mod columns;
mod direction;
mod flow;
mod names;
mod page;
mod picture;
mod rows;
mod twice;

use hayro_interpret::InterpreterCache;
use hayro_interpret::hayro_syntax::{DecryptionError, LoadPdfError, Pdf};

use std::collections::BTreeMap;

use self::rows::Row;
use crate::builder::Builder;
use crate::recognition::{self, Recognition, Recognized};
use crate::{Error, Format, Limits, Parsed, Warning};

/// Letters and digits below which a page counts as one without text.
const FEWEST: usize = 8;

/// Of this many letters one can be unknown without a warning, because signs of lists and ornaments often are.
const MOST_UNKNOWN: usize = 50;

pub(crate) fn parse(bytes: &[u8], limits: &Limits) -> Result<Parsed, Error> {
    let document = Pdf::new(bytes.to_vec()).map_err(refusal)?;
    let count = document.pages().len();
    if count == 0 {
        return Err(Error::broken(Format::Pdf, "it has no pages"));
    }
    limits.check_pages(count)?;
    let cache = InterpreterCache::new();
    let mut pages: Vec<Vec<Row>> = Vec::with_capacity(count);
    let mut bare = Vec::new();
    let mut recognition = Recognition::new(limits);
    let mut recognized: BTreeMap<u32, Recognized> = BTreeMap::new();
    let mut unread = Vec::new();
    let mut partial = Vec::new();
    let mut written = 0;
    let mut pictured = Vec::new();
    let mut cut = Vec::new();
    let mut names = names::Names::new(&document);
    for (page, number) in document.pages().iter().zip(1u32..) {
        let plain = names.plain();
        let mut painted = page::paint(page, document.xref(), &cache, &mut names, None);
        if painted.names.plain() > plain {
            // What came before the letter that told is read with it.
            painted = page::paint(page, document.xref(), &cache, &mut names, None);
        }
        if painted.unknown > painted.known {
            unread.push(number);
        } else if painted.is_scan() {
            let pictures = recognition.is_ready().then(picture::Pictures::default);
            let seen = pictures.and_then(|kept| {
                page::paint(page, document.xref(), &cache, painted.names, Some(kept)).kept
            });
            let shades = seen.and_then(|pictures| pictures.page(page.render_dimensions()));
            let is_read = shades.is_some();
            let text =
                shades.and_then(|(shades, dpi)| recognition.read(shades, Some(dpi)).remove(&1));
            match text {
                Some(text) => drop(recognized.insert(number, text)),
                // A picture under a short text can be one without words.
                None if painted.known >= FEWEST && is_read && recognition.found_nothing() => {}
                None => bare.push(number),
            }
        } else if painted.unknown * MOST_UNKNOWN > painted.known {
            partial.push(number);
        }
        if painted.is_cut() {
            cut.push(format!("page {number}"));
        }
        if painted.pictures > 0 {
            pictured.push(number);
        }
        let mut rows: Vec<Row> = Vec::new();
        for (index, side) in painted.sides().into_iter().enumerate() {
            let mut turned = rows::rows(side.letters, side.height);
            for row in &mut turned {
                // Lines of another direction are no neighbors; titles run along the sides of pages, too.
                row.baseline += 100_000.0 * index as f64;
                row.place = if index > 0 || side.is_slanted { 1.0 } else { row.place };
            }
            rows.extend(columns::in_order(turned, 0));
        }
        written += rows.iter().map(Row::len).sum::<usize>();
        limits.check_text(written)?;
        pages.push(rows);
    }
    let is_short = written == 0 || (written < FEWEST && !pictured.is_empty());
    if is_short && unread.is_empty() && recognized.is_empty() {
        return Err(Error::Scan { pages: count, why: recognition.why });
    }
    if unread.len() == count {
        return Err(Error::broken(Format::Pdf, "its fonts do not say which letters they show"));
    }
    rows::drop_running_titles(&mut pages);
    let mut builder = Builder::new(Format::Pdf);
    builder.title = title(&document);
    builder.authors =
        crate::builder::author_names(document.metadata().author.as_deref().map(property_text));
    let where_so = |is_so: fn(&[Row]) -> bool| -> Vec<u32> {
        let numbered = pages.iter().zip(1u32..).filter(|(rows, _)| is_so(rows));
        numbered.map(|(_, number)| number).collect()
    };
    let mut emptied = where_so(<[Row]>::is_empty);
    // All but their running titles is in pictures.
    emptied.retain(|page| {
        pictured.contains(page) && !recognized.contains_key(page) && !unread.contains(page)
    });
    bare.extend(emptied);
    bare.sort_unstable();
    bare.dedup();
    let doubtful = where_so(direction::is_doubtful);
    let misnamed = where_so(direction::is_misnamed);
    flow::write(&pages, &recognized, &mut builder);
    let warnings = [
        (!recognized.is_empty()).then(|| recognition::warning(&recognized)),
        (!bare.is_empty())
            .then_some(Warning::PagesWithoutText { pages: bare, why: recognition.why }),
        (!cut.is_empty()).then_some(Warning::PartsCut { parts: cut }),
        (!unread.is_empty()).then_some(Warning::PagesUnread { pages: unread }),
        (!partial.is_empty()).then_some(Warning::LettersUnread { pages: partial }),
        (!doubtful.is_empty()).then_some(Warning::DoubtfulOrder { pages: doubtful }),
        (!misnamed.is_empty()).then_some(Warning::DoubtfulLetters { pages: misnamed }),
    ];
    builder.warnings.extend(warnings.into_iter().flatten());
    Ok(builder.finish())
}

fn refusal(error: LoadPdfError) -> Error {
    match error {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => Error::Password,
        LoadPdfError::Decryption(error) => {
            Error::broken(Format::Pdf, format!("its encryption cannot be read: {error:?}"))
        }
        LoadPdfError::Invalid => Error::broken(Format::Pdf, "it is not a valid PDF file"),
    }
}

fn title(document: &Pdf) -> Option<String> {
    let title = property_text(document.metadata().title.as_deref()?);
    // Defaults of programs.
    let is_file = title.contains(".doc") || title.contains(".tex") || title.contains(".indd");
    let is_stated = title.chars().filter(|c| c.is_alphabetic()).count() > 2;
    (is_stated && !is_file && !title.eq_ignore_ascii_case("untitled")).then_some(title)
}

/// The letters of PDFDocEncoding from 0x80 to 0xA0, beyond which it is Latin-1 (ISO 32000-1, annex D.2).
const PDF_LETTERS: &str = "•†‡…—–ƒ⁄‹›−‰„“”‘’‚™ﬁﬂŁŒŠŸŽıłœšž\u{FFFD}€";

fn pdf_letter(byte: u8) -> char {
    let special = byte.checked_sub(0x80).and_then(|at| PDF_LETTERS.chars().nth(at.into()));
    special.unwrap_or(char::from(byte))
}

/// Reads a property: UTF-16 in either order, UTF-8 as it is by the letter or with its mark, or PDFDocEncoding.
fn property_text(bytes: &[u8]) -> String {
    let text = perihelion_mime::wide(bytes).unwrap_or_else(|| {
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let read = std::str::from_utf8(bytes).map(str::to_owned);
        read.unwrap_or_else(|_| bytes.iter().map(|byte| pdf_letter(*byte)).collect())
    });
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    crate::builder::one_line(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_read_in_each_of_their_encodings() {
        assert_eq!(property_text(b"\xFE\xFF\0M\0\xFC"), "Mü");
        assert_eq!(property_text(b"\xFF\xFEM\0\xFC\0"), "Mü");
        assert_eq!(property_text(b"M\0\xFC\0l\0l\0e\0r\0"), "Müller");
        assert_eq!(property_text("Müller".as_bytes()), "Müller");
        assert_eq!(property_text(b"\xEF\xBB\xBFM\xC3\xBCller"), "Müller");
        assert_eq!(property_text(b"M\xFCller \x8D\x8E \xA0 5\0"), "Müller “” € 5");
    }
}

//! RTF: text in the code pages of its fonts, headings by their styles, lists, tables, notes.

mod code_page;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use encoding_rs::Encoding;

use crate::builder::{Builder, Grid};
use crate::{Error, Format, Limits, Parsed, Warning};

/// How deeply groups nest at most.
const DEEPEST: usize = 10_000;

/// The role of a group's text.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Body,
    /// A note, a comment, a header or a footer: written behind the text.
    Aside,
    Fonts,
    Styles,
    Title,
    Author,
    /// The sign or number before an item of a list.
    Marker,
    Skipped,
}

/// A group's properties of its text; they end with it.
#[derive(Clone, Copy)]
struct Group {
    place: Place,
    font: i32,
    /// Replacement for a Unicode character that is unknown.
    instead: usize,
    is_hidden: bool,
    style: i32,
    level: Option<u8>,
    depth: usize,
    in_table: bool,
}

impl Default for Group {
    fn default() -> Self {
        Self {
            place: Place::Body,
            font: -1,
            instead: 1,
            is_hidden: false,
            style: 0,
            level: None,
            depth: 0,
            in_table: false,
        }
    }
}

#[derive(Default)]
struct Reader<'a> {
    rest: &'a [u8],
    groups: Vec<Group>,
    group: Group,
    /// The document's own font, in which a text begins.
    font: i32,
    /// Of the whole document; that of Windows by default.
    page: Option<&'static Encoding>,
    fonts: HashMap<i32, &'static Encoding>,
    /// Levels of the styles that are headings.
    headings: HashMap<i32, u8>,
    /// Bytes that are not decoded yet.
    bytes: Vec<u8>,
    /// The first half of a character of Unicode.
    high: Option<u16>,
    /// Characters that are left out since Unicode's came before.
    passed: usize,
    text: String,
    aside: String,
    asides: Vec<String>,
    style_name: String,
    marker: String,
    title: String,
    author: String,
    row: Vec<String>,
    grid: Grid,
    builder: Builder,
}

pub(crate) fn parse(bytes: &[u8], limits: &Limits) -> Result<Parsed, Error> {
    let builder = Builder::new(Format::Rtf);
    let mut reader = Reader { rest: bytes, builder, ..Reader::default() };
    while reader.step()? {
        limits.check_text(reader.builder.len() + reader.text.len())?;
    }
    let is_cut_off = !reader.groups.is_empty();
    reader.paragraph();
    reader.end_table();
    let Reader { mut builder, asides, title, author, .. } = reader;
    for aside in asides {
        builder.paragraph(&aside);
    }
    builder.title = Some(crate::builder::one_line(&title));
    builder.authors = crate::builder::author_names([author]);
    if is_cut_off {
        builder.warnings.push(Warning::PartsUnread { parts: vec!["the end of the file".into()] });
    }
    Ok(builder.finish())
}

impl Reader<'_> {
    /// Reads the next token; false at the end.
    fn step(&mut self) -> Result<bool, Error> {
        let Some((&first, after)) = self.rest.split_first() else {
            self.decode();
            return Ok(false);
        };
        self.rest = after;
        match first {
            b'{' => {
                self.decode();
                self.passed = 0;
                if self.groups.len() >= DEEPEST {
                    return Err(Error::broken(Format::Rtf, "its groups nest too deeply"));
                }
                self.groups.push(self.group);
            }
            b'}' => {
                self.decode();
                self.passed = 0;
                if self.groups.len() == 1 {
                    self.word("par", None);
                }
                self.close();
                // What follows the document's own group is no part of it.
                return Ok(!self.groups.is_empty());
            }
            b'\\' => self.control(),
            b'\r' | b'\n' => {}
            byte => self.byte(byte),
        }
        Ok(true)
    }

    fn close(&mut self) {
        let ended = self.group;
        let Some(outer) = self.groups.pop() else { return };
        self.group = outer;
        if ended.place == Place::Aside && outer.place != Place::Aside {
            let aside = crate::builder::one_line(&std::mem::take(&mut self.aside));
            if aside.chars().any(char::is_alphabetic) && !self.asides.contains(&aside) {
                self.asides.push(aside);
            }
        }
        if ended.place == Place::Styles {
            let name = std::mem::take(&mut self.style_name).to_lowercase();
            let level = name.trim().strip_prefix("heading ").map(|rest| rest.trim_end_matches(';'));
            if let Some(level) = level.and_then(|level| level.trim().parse().ok()) {
                self.headings.insert(ended.style, level);
            }
        }
    }

    fn control(&mut self) {
        let Some((&first, after)) = self.rest.split_first() else { return };
        if first == b'\'' {
            let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
            if let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
                self.rest = &after[2..];
                self.byte(byte);
            }
            return;
        }
        if !first.is_ascii_alphabetic() {
            self.rest = after;
            // The second byte of a letter is escaped as well.
            if matches!(first, b'\\' | b'{' | b'}') {
                return self.byte(first);
            }
            self.decode();
            match first {
                b'~' => self.push(' '),
                b'_' => self.push('-'),
                b'*' => self.starred(),
                b'\r' | b'\n' => self.word("par", None),
                _ => {}
            }
            return;
        }
        let end =
            self.rest.iter().position(|c| !c.is_ascii_alphabetic()).unwrap_or(self.rest.len());
        let (word, after) = self.rest.split_at(end);
        let signs = usize::from(after.first() == Some(&b'-'));
        let digits = after[signs..].iter().take_while(|c| c.is_ascii_digit()).count();
        let past = if digits > 0 { signs + digits } else { 0 };
        let number =
            std::str::from_utf8(&after[..past]).ok().and_then(|number| number.parse().ok());
        let after = &after[past..];
        self.rest = after.strip_prefix(b" ").unwrap_or(after);
        self.decode();
        if let Ok(word) = std::str::from_utf8(word) {
            self.word(word, number);
        }
    }

    /// Decides about a destination that readers need not know.
    fn starred(&mut self) {
        let known =
            [&b"\\footnote"[..], b"\\annotation", b"\\shptxt", b"\\shpinst", b"\\atnauthor"];
        if !known.iter().any(|word| self.rest.starts_with(word)) {
            self.group.place = Place::Skipped;
        }
    }

    fn word(&mut self, word: &str, number: Option<i32>) {
        let is_on = number != Some(0);
        match word {
            "u" => return self.unicode(number.unwrap_or(0)),
            "uc" => self.group.instead = number.and_then(|n| n.try_into().ok()).unwrap_or(1),
            "bin" => {
                let count = number.and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
                self.rest = self.rest.get(count..).unwrap_or_default();
            }
            "ansicpg" => self.page = code_page::of_number(number.unwrap_or(0)).or(self.page),
            "mac" => self.page = Some(encoding_rs::MACINTOSH),
            "deff" => {
                self.font = number.unwrap_or(0);
                self.group.font = self.font;
            }
            "f" => self.group.font = number.unwrap_or(0),
            "plain" => {
                self.group.font = self.font;
                self.group.is_hidden = false;
            }
            "fcharset" if self.group.place == Place::Fonts => {
                if let Some(page) = code_page::of_charset(number.unwrap_or(0)) {
                    self.fonts.insert(self.group.font, page);
                }
            }
            "v" | "deleted" => self.group.is_hidden = is_on,
            "fonttbl" => self.group.place = Place::Fonts,
            "stylesheet" => self.group.place = Place::Styles,
            "title" if self.group.place != Place::Body => self.group.place = Place::Title,
            "author" if self.group.place != Place::Body => self.group.place = Place::Author,
            "listtext" | "pntext" => self.group.place = Place::Marker,
            "footnote" | "annotation" | "header" | "headerl" | "headerr" | "headerf" | "footer"
            | "footerl" | "footerr" | "footerf" => self.group.place = Place::Aside,
            "colortbl" | "pict" | "objdata" | "info" | "nonshppict" | "fldinst" | "xe" | "tc"
            | "filetbl" | "revtbl" | "listtable" | "sp" => self.group.place = Place::Skipped,
            "s" => self.group.style = number.unwrap_or(0),
            "outlinelevel" => {
                self.group.level =
                    number.and_then(|n| u8::try_from(n).ok()).filter(|n| *n < 9).map(|n| n + 1);
            }
            "ilvl" => self.group.depth = number.and_then(|n| n.try_into().ok()).unwrap_or(0),
            "pard" => {
                let Group { style, level, depth, in_table, .. } = Group::default();
                self.group = Group { style, level, depth, in_table, ..self.group };
            }
            "intbl" => self.group.in_table = true,
            "par" | "sect" | "page" if self.group.place == Place::Body && !self.group.in_table => {
                self.end_table();
                self.paragraph();
            }
            "par" | "line" | "sect" | "page" => self.push('\n'),
            "cell" if self.group.place == Place::Body => {
                let text = crate::builder::one_line(&std::mem::take(&mut self.text));
                let marker = std::mem::take(&mut self.marker);
                self.row.push(crate::builder::one_line(&format!("{marker} {text}")));
            }
            "row" if !self.row.is_empty() => self.grid.push(std::mem::take(&mut self.row)),
            "nestcell" | "tab" => self.push('\t'),
            "nestrow" => self.push('\n'),
            "emdash" => self.push('—'),
            "endash" => self.push('–'),
            "bullet" => self.push('•'),
            "lquote" => self.push('‘'),
            "rquote" => self.push('’'),
            "ldblquote" => self.push('“'),
            "rdblquote" => self.push('”'),
            "emspace" | "enspace" | "qmspace" => self.push(' '),
            _ => {}
        }
        self.passed = self.passed.saturating_sub(1);
    }

    fn unicode(&mut self, number: i32) {
        let unit = (number & 0xFFFF) as u16;
        let decoded = match self.high.take() {
            Some(high) => char::decode_utf16([high, unit]).next().and_then(Result::ok),
            None => char::from_u32(unit.into()),
        };
        match decoded {
            Some(c) => self.push(c),
            None if (0xD800..0xDC00).contains(&unit) => self.high = Some(unit),
            None => self.push('\u{FFFD}'),
        }
        self.passed = self.group.instead;
    }

    fn byte(&mut self, byte: u8) {
        if self.passed > 0 {
            self.passed -= 1;
        } else {
            self.bytes.push(byte);
        }
    }

    /// Decodes the bytes read so far in the code page of their font.
    fn decode(&mut self) {
        if self.bytes.is_empty() {
            return;
        }
        let bytes = std::mem::take(&mut self.bytes);
        let page = self.fonts.get(&self.group.font).copied().or(self.page);
        let page = page.unwrap_or(encoding_rs::WINDOWS_1252);
        for c in page.decode_without_bom_handling(&bytes).0.chars() {
            self.push(c);
        }
    }

    fn push(&mut self, c: char) {
        if self.group.is_hidden || (c.is_control() && !matches!(c, '\n' | '\t')) {
            return;
        }
        match self.group.place {
            Place::Body => self.text.push(c),
            Place::Aside => self.aside.push(c),
            Place::Styles => self.style_name.push(c),
            Place::Title => self.title.push(c),
            Place::Author => self.author.push(c),
            Place::Marker => self.marker.push(c),
            Place::Fonts | Place::Skipped => {}
        }
    }

    fn paragraph(&mut self) {
        let text = std::mem::take(&mut self.text);
        let marker = crate::builder::one_line(&std::mem::take(&mut self.marker));
        let level = self.headings.get(&self.group.style).copied().or(self.group.level);
        // The signs of lists are letters of fonts that consist of signs.
        let is_sign = !marker.is_empty() && !marker.chars().any(char::is_alphanumeric);
        let marker = if is_sign { "-".to_owned() } else { marker };
        match level {
            Some(level) => self.builder.heading(level, &format!("{marker} {text}")),
            None if marker.is_empty() => self.builder.paragraph(&text),
            None => self.builder.item(self.group.depth, &marker, &text),
        }
    }

    fn end_table(&mut self) {
        if !self.row.is_empty() {
            self.grid.push(std::mem::take(&mut self.row));
        }
        let grid = std::mem::take(&mut self.grid);
        self.builder.table(&grid);
    }
}

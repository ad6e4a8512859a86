//! Word documents: paragraphs with their styles and numbers, tables, text boxes, formulas and notes.

use std::collections::{BTreeSet, HashMap};

use roxmltree::Node;

use super::numbering::Numbering;
use super::styles::{self, Styles};
use super::{CORE, Package, math, xml};
use crate::builder::{Builder, Grid};
use crate::{Error, Format, Limits, Parsed};

/// How deeply tables and content controls are followed.
const DEEPEST: usize = 40;

/// The element in whose place another document is read.
const INCLUDED: &str = "altChunk";

/// Most places that one cell may cover.
const WIDEST: usize = 500;

pub(crate) fn parse(bytes: &[u8], limits: &Limits) -> Result<Parsed, Error> {
    read(bytes, limits, true)
}

/// Reads a document; `includes` is false within another one, so that none includes itself.
fn read(bytes: &[u8], limits: &Limits, includes: bool) -> Result<Parsed, Error> {
    let mut package = Package::open(bytes, Format::Docx, limits)?;
    let main = package.related("", "officeDocument")?.into_iter().next();
    let main = main.unwrap_or_else(|| "word/document.xml".to_owned());
    let text = package.needed(&main)?;
    let mut reader = Reader {
        builder: Builder::new(Format::Docx),
        styles: package.part("word/styles.xml", Styles::read)?.unwrap_or_default(),
        numbering: package.part("word/numbering.xml", Numbering::read)?.unwrap_or_default(),
        included: HashMap::new(),
    };
    (reader.builder.title, reader.builder.authors) = package.properties(CORE)?;
    let document = xml::read(&text, Format::Docx)?;
    let body = xml::child(document.root_element(), "body")
        .ok_or_else(|| Error::broken(Format::Docx, "it has no body"))?;
    reader.included = included(&mut package, &main, body, limits, includes)?;
    reader.blocks(body, 0);
    for part in ["word/footnotes.xml", "word/endnotes.xml"] {
        package.part(part, |root| {
            let notes = root.children().filter(Node::is_element);
            for note in notes.filter(|node| xml::attribute(*node, "type").is_none()) {
                reader.builder.paragraph(&all_text(note));
            }
        })?;
    }
    reader.margins(&mut package, &main)?;
    reader.builder.warnings.extend(package.warnings());
    Ok(reader.builder.finish())
}

/// Reads the documents that a document includes as they are, by the IDs of their relations.
fn included(
    package: &mut Package<'_>,
    main: &str,
    body: Node<'_, '_>,
    limits: &Limits,
    includes: bool,
) -> Result<HashMap<String, Parsed>, Error> {
    let chunks = body.descendants().filter(|node| xml::is(*node, INCLUDED));
    let ids: BTreeSet<&str> = chunks.filter_map(|chunk| xml::relation(chunk, "id")).collect();
    let relations = if ids.is_empty() { HashMap::new() } else { package.relations(main)? };
    let mut included = HashMap::new();
    let mut written = 0;
    for (id, part) in ids.iter().filter_map(|id| Some((*id, &relations.get(*id)?.part))) {
        let bytes = match package.bytes(part) {
            Err(Error::Broken { .. }) => Vec::new(),
            read => read?.unwrap_or_default(),
        };
        let parsed = match crate::format::detect(&bytes, part) {
            Ok(Format::Docx) if includes => read(&bytes, limits, false),
            Ok(Format::Html | Format::Eml | Format::Rtf | Format::Text) => {
                crate::parse(&bytes, part, limits)
            }
            _ => Err(Error::NoText),
        };
        match parsed {
            Ok(parsed) => {
                written += parsed.text.len();
                limits.check_text(written)?;
                included.insert(id.to_owned(), parsed);
            }
            Err(_) => package.miss(part),
        }
    }
    Ok(included)
}

struct Reader {
    builder: Builder,
    styles: Styles,
    numbering: Numbering,
    /// The documents that are not written yet.
    included: HashMap<String, Parsed>,
}

/// A paragraph's text, and the text boxes that are anchored in it.
#[derive(Default)]
struct Inline<'a, 'i> {
    text: String,
    boxes: Vec<Node<'a, 'i>>,
}

impl Reader {
    /// Writes headers and footers, each text once, and comments with their authors.
    fn margins(&mut self, package: &mut Package<'_>, main: &str) -> Result<(), Error> {
        let mut seen: Vec<String> = Vec::new();
        for kind in ["header", "footer"] {
            for part in package.related(main, kind)? {
                package.part(&part, |root| {
                    let text = all_text(root);
                    // The number of a page is in its field.
                    if text.chars().any(char::is_alphabetic) && !seen.contains(&text) {
                        seen.push(text);
                        self.blocks(root, 0);
                    }
                })?;
            }
        }
        for part in package.related(main, "comments")? {
            package.part(&part, |root| {
                for comment in xml::children(root, "comment") {
                    let text = all_text(comment);
                    match xml::attribute(comment, "author").filter(|_| !text.is_empty()) {
                        Some(author) => self.builder.paragraph(&format!("{author}: {text}")),
                        None => self.builder.paragraph(&text),
                    }
                }
            })?;
        }
        Ok(())
    }

    fn blocks(&mut self, node: Node<'_, '_>, depth: usize) {
        if depth > DEEPEST {
            self.builder.paragraph(&all_text(node));
            return;
        }
        for child in node.children().filter(Node::is_element) {
            self.block(child, depth);
        }
    }

    fn block(&mut self, node: Node<'_, '_>, depth: usize) {
        let inner = match node.tag_name().name() {
            "p" => return self.paragraph(node, depth),
            "tbl" => return self.table(node, depth),
            INCLUDED => {
                let included = xml::relation(node, "id").and_then(|id| self.included.remove(id));
                return included.into_iter().for_each(|inner| self.builder.include(inner));
            }
            _ => wrapped(node),
        };
        if let Some(inner) = inner {
            self.blocks(inner, depth + 1);
        }
    }

    fn paragraph(&mut self, node: Node<'_, '_>, depth: usize) {
        let mut inline = Inline::default();
        collect(node, &mut inline, 0);
        let style = xml::value(node, &["pPr", "pStyle"]).unwrap_or_default();
        let outline = xml::value(node, &["pPr", "outlineLvl"]);
        let outline = outline.and_then(|level| level.parse::<u8>().ok()).filter(|level| *level < 9);
        let heading = self.styles.heading(style).or(outline.map(|level| level + 1));
        let listed = styles::numbering(node).or_else(|| self.styles.numbering(style));
        let text = inline.text.trim();
        let marker = match &listed {
            Some((id, level)) if !text.is_empty() && id != "0" => self.numbering.next(id, *level),
            _ => None,
        };
        match (heading, marker) {
            (Some(level), Some(marker)) if marker != "-" => {
                let number = marker.trim_end_matches('.');
                self.builder.heading(level, &format!("{number} {text}"));
            }
            (Some(level), _) => self.builder.heading(level, text),
            (None, Some(marker)) => {
                let level = listed.map_or(0, |(_, level)| level);
                self.builder.item(level, &marker, text);
            }
            (None, None) if self.styles.is_code(style) => self.builder.code(&inline.text),
            (None, None) => self.builder.paragraph(text),
        }
        for content in inline.boxes {
            self.blocks(content, depth + 1);
        }
    }

    fn table(&mut self, node: Node<'_, '_>, depth: usize) {
        let rows = unwrapped(node, "tr", 0);
        let cells = |row| unwrapped(row, "tc", 0);
        // A frame around blocks, not a table.
        if let [row] = rows[..]
            && let [cell] = cells(row)[..]
        {
            return self.blocks(cell, depth + 1);
        }
        let mut grid = Grid::default();
        for row in rows {
            let mut texts: Vec<String> = Vec::new();
            let skipped = xml::value(row, &["trPr", "gridBefore"]).and_then(|n| n.parse().ok());
            texts.resize(skipped.unwrap_or(0).min(WIDEST), String::new());
            for cell in cells(row) {
                let wide = xml::value(cell, &["tcPr", "gridSpan"]).and_then(|n| n.parse().ok());
                let wide: usize = wide.unwrap_or(1).clamp(1, WIDEST);
                let merge = xml::at(cell, &["tcPr", "vMerge"]);
                let continues =
                    merge.is_some_and(|merge| xml::attribute(merge, "val") != Some("restart"));
                // A merged cell says in every row what it says in the first.
                let text = match grid.last().filter(|_| continues) {
                    Some(above) => above.get(texts.len()).cloned().unwrap_or_default(),
                    None => self.cell(cell, depth + 1),
                };
                texts.extend(std::iter::repeat_n(text, wide));
            }
            grid.push(texts);
        }
        self.builder.table(&grid);
    }

    fn cell(&mut self, node: Node<'_, '_>, depth: usize) -> String {
        // The cell's blocks are written by a builder of their own, and put on one line.
        let outer = std::mem::replace(&mut self.builder, Builder::new(Format::Docx));
        for child in node.children().filter(Node::is_element) {
            match child.tag_name().name() {
                "tbl" => {
                    let text = all_text(child);
                    self.builder.paragraph(&text);
                }
                _ => self.block(child, depth),
            }
        }
        let cell = std::mem::replace(&mut self.builder, outer).finish();
        crate::builder::one_line(&cell.text)
    }
}

/// Collects a paragraph's text; deleted text is left out.
fn collect<'a, 'i>(node: Node<'a, 'i>, inline: &mut Inline<'a, 'i>, depth: usize) {
    if depth > DEEPEST {
        return;
    }
    for child in node.children().filter(|node| node.is_element() && !is_unseen(*node)) {
        match child.tag_name().name() {
            "t" => inline.text.push_str(child.text().unwrap_or_default()),
            "tab" | "ptab" => inline.text.push('\t'),
            "br" | "cr" => inline.text.push('\n'),
            "noBreakHyphen" => inline.text.push('-'),
            "sym" => inline.text.extend(symbol(child)),
            "checkBox" | "checkbox" => {
                let state = xml::child(child, "checked").or_else(|| xml::child(child, "default"));
                inline.text.push_str(if state.is_some_and(is_on) { "[x] " } else { "[ ] " });
            }
            "ddList" => {
                let chosen =
                    xml::value(child, &["result"]).or_else(|| xml::value(child, &["default"]));
                let chosen = chosen.and_then(|chosen| chosen.parse().ok()).unwrap_or(0);
                let entry = xml::children(child, "listEntry").nth(chosen);
                inline.text.extend(entry.and_then(|entry| xml::attribute(entry, "val")));
            }
            "oMathPara" => {
                let formulas = child.children().filter(|node| xml::is(*node, "oMath"));
                for formula in formulas {
                    inline.text.push_str(&format!("\n$${}$$\n", math::latex(formula)));
                }
            }
            "oMath" => inline.text.push_str(&format!(" ${}$ ", math::latex(child))),
            "txbxContent" => inline.boxes.push(child),
            "AlternateContent" => {
                if let Some(choice) = choice(child) {
                    collect(choice, inline, depth + 1);
                }
            }
            "instrText" | "pPr" | "rPr" | "delText" | "footnoteReference" => {}
            _ => collect(child, inline, depth + 1),
        }
    }
}

/// Returns the variant of some content that is read: the newest supported one.
fn choice<'a, 'i>(node: Node<'a, 'i>) -> Option<Node<'a, 'i>> {
    let says = |node: &Node<'_, '_>| node.descendants().any(|node| xml::is(node, "t"));
    let choice = xml::child(node, "Choice");
    choice.filter(says).or_else(|| xml::child(node, "Fallback")).or(choice)
}

fn symbol(node: Node<'_, '_>) -> Option<char> {
    let code = u32::from_str_radix(xml::attribute(node, "char")?, 16).ok()?;
    // Symbol fonts lie in the private area, above the characters that they replace.
    char::from_u32(if (0xF020..=0xF0FF).contains(&code) { code - 0xF000 } else { code })
}

/// Returns the value of a property that is on if it is written without one.
fn is_on(node: Node<'_, '_>) -> bool {
    !matches!(xml::attribute(node, "val"), Some("0" | "false" | "off"))
}

/// Returns whether an element is deleted, moved away, hidden, or the reading above a word.
fn is_unseen(node: Node<'_, '_>) -> bool {
    match node.tag_name().name() {
        "del" | "moveFrom" | "rt" => true,
        "r" => xml::at(node, &["rPr", "vanish"]).is_some_and(is_on),
        "tr" => xml::at(node, &["trPr", "del"]).is_some(),
        _ => false,
    }
}

/// Returns the element with the content of a content control and the like.
fn wrapped<'a, 'i>(node: Node<'a, 'i>) -> Option<Node<'a, 'i>> {
    match node.tag_name().name() {
        "sdt" => xml::child(node, "sdtContent"),
        "AlternateContent" => choice(node),
        "customXml" | "smartTag" | "ins" | "moveTo" => Some(node),
        _ => None,
    }
}

/// Returns the children of a name, those inside content controls too.
fn unwrapped<'a, 'i>(node: Node<'a, 'i>, name: &str, depth: usize) -> Vec<Node<'a, 'i>> {
    let mut found = Vec::new();
    for child in node.children().filter(|node| !is_unseen(*node)) {
        if xml::is(child, name) {
            found.push(child);
        } else if depth < DEEPEST {
            found.extend(
                wrapped(child).into_iter().flat_map(|inner| unwrapped(inner, name, depth + 1)),
            );
        }
    }
    found
}

fn all_text(node: Node<'_, '_>) -> String {
    let mut text = String::new();
    for node in node.descendants() {
        if xml::is(node, "p") {
            text.push(' ');
        }
        if xml::is(node, "t") && !node.ancestors().any(is_unseen) {
            text.push_str(node.text().unwrap_or_default());
        }
    }
    crate::builder::one_line(&text)
}

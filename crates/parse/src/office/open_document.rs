//! OpenDocument texts, slides and spreadsheets, packed or in one XML file.

use std::collections::HashSet;

use roxmltree::Node;

use super::{Package, xml};
use crate::builder::Builder;
use crate::sheet::{Sheet, finished, number_text};
use crate::{Error, Format, Limits, Parsed};

/// How deeply blocks are followed.
const DEEPEST: usize = 100;

pub(crate) fn parse(bytes: &[u8], format: Format, limits: &Limits) -> Result<Parsed, Error> {
    let mut reader = Reader {
        builder: Builder::new(format),
        limits,
        counted: HashSet::new(),
        notes: Vec::new(),
        is_empty: true,
    };
    if !bytes.starts_with(b"PK") {
        let decoded = crate::encoding::decode(bytes)?;
        reader.builder.warnings = decoded.warnings;
        reader.document(xml::read(&decoded.text, format)?.root_element())?;
    } else {
        let mut package = Package::open(bytes, format, limits)?;
        let is_encrypted = package.part("META-INF/manifest.xml", |root| {
            root.descendants().any(|node| xml::is(node, "encryption-data"))
        })?;
        if is_encrypted == Some(true) {
            return Err(Error::Password);
        }
        (reader.builder.title, reader.builder.authors) = package.properties("meta.xml")?;
        let text = package.needed("content.xml")?;
        reader.document(xml::read(&text, format)?.root_element())?;
        package.part("styles.xml", |root| reader.margins(root))?;
        reader.builder.warnings.extend(package.warnings());
    }
    match format {
        Format::Ods => finished(reader.builder, reader.is_empty),
        _ => Ok(reader.builder.finish()),
    }
}

struct Reader<'l> {
    builder: Builder,
    limits: &'l Limits,
    /// Styles of lists whose items have numbers.
    counted: HashSet<String>,
    /// The text after the body: notes and comments.
    notes: Vec<String>,
    is_empty: bool,
}

impl Reader<'_> {
    fn document(&mut self, root: Node<'_, '_>) -> Result<(), Error> {
        let styles = root.descendants().filter(|node| xml::is(*node, "list-style"));
        let counted = styles.filter(|style| {
            let first = style.children().find(Node::is_element);
            first.is_some_and(|level| xml::is(level, "list-level-style-number"))
        });
        let names = counted.filter_map(|style| xml::attribute(style, "name"));
        self.counted = names.map(str::to_owned).collect();
        let body = xml::child(root, "body")
            .and_then(|body| body.children().find(Node::is_element))
            .ok_or_else(|| Error::broken(self.builder.format(), "it has no body"))?;
        match body.tag_name().name() {
            "spreadsheet" => self.sheets(body)?,
            "presentation" => {
                for (page, number) in xml::children(body, "page").zip(1u32..) {
                    self.builder.page(number);
                    self.blocks(page, 0);
                    self.write_notes();
                }
            }
            _ => self.blocks(body, 0),
        }
        self.write_notes();
        Ok(())
    }

    /// Writes headers and footers, each text once.
    fn margins(&mut self, root: Node<'_, '_>) {
        let mut seen: Vec<String> = Vec::new();
        let is_margin = |node: &Node<'_, '_>| {
            let name = node.tag_name().name();
            name.starts_with("header") || name.starts_with("footer")
        };
        let pages = root.descendants().filter(|node| xml::is(*node, "master-page"));
        for margin in pages.flat_map(|page| page.children()).filter(is_margin) {
            let text = self.text(margin);
            if text.chars().any(char::is_alphabetic) && !seen.contains(&text) {
                self.builder.paragraph(&text);
                seen.push(text);
            }
        }
    }

    fn write_notes(&mut self) {
        for note in std::mem::take(&mut self.notes) {
            self.builder.paragraph(&note);
        }
    }

    fn blocks(&mut self, node: Node<'_, '_>, depth: usize) {
        if depth > DEEPEST {
            return;
        }
        for child in node.children().filter(Node::is_element) {
            match child.tag_name().name() {
                "h" => {
                    let level =
                        xml::attribute(child, "outline-level").and_then(|level| level.parse().ok());
                    let title = self.text(child);
                    self.builder.heading(level.unwrap_or(1), &title);
                }
                "p" => self.paragraph(child, depth),
                "list" => self.list(child, 0, None),
                "table" => self.table(child),
                "frame" if xml::attribute(child, "class") == Some("title") => {
                    let title = self.text(child);
                    self.builder.heading(1, &title);
                }
                "tracked-changes" | "forms" | "page-thumbnail" => {}
                _ => self.blocks(child, depth + 1),
            }
        }
    }

    fn paragraph(&mut self, node: Node<'_, '_>, depth: usize) {
        let mut text = String::new();
        let mut boxes = Vec::new();
        self.collect(node, &mut text, &mut boxes);
        self.builder.paragraph(&text);
        for content in boxes {
            self.blocks(content, depth + 1);
        }
    }

    fn list(&mut self, node: Node<'_, '_>, depth: usize, style: Option<&str>) {
        let style = xml::attribute(node, "style-name").or(style);
        let is_counted = style.is_some_and(|style| self.counted.contains(style));
        let mut number: usize = 0;
        for item in node.children().filter(Node::is_element) {
            number += usize::from(xml::is(item, "list-item"));
            let mut marker = if is_counted { format!("{number}.") } else { "-".to_owned() };
            for child in item.children().filter(Node::is_element) {
                match child.tag_name().name() {
                    "list" if depth < DEEPEST => self.list(child, depth + 1, style),
                    // Some lists only count headings.
                    "h" => self.blocks(item, depth),
                    _ => {
                        let text = self.text(child);
                        if !text.is_empty() {
                            self.builder.item(depth, &marker, &text);
                            marker = " ".to_owned();
                        }
                    }
                }
            }
        }
    }

    fn table(&mut self, node: Node<'_, '_>) {
        let mut sheet = Sheet::default();
        self.cells(node, &mut sheet);
        sheet.write_whole(&mut self.builder);
    }

    fn cells(&mut self, table: Node<'_, '_>, sheet: &mut Sheet) {
        let is = |name: &'static str| move |node: &Node<'_, '_>| xml::is(*node, name);
        let own = |row: &Node<'_, '_>| {
            row.ancestors().find(|node| is("table")(node)).is_some_and(|owner| owner == table)
        };
        let mut merged = Vec::new();
        let mut y: u32 = 0;
        for row in table.descendants().filter(is("table-row")).filter(own) {
            let times = count(row, "number-rows-repeated");
            let mut x: u32 = 0;
            for cell in row
                .children()
                .filter(|node| is("table-cell")(node) || is("covered-table-cell")(node))
            {
                let wide = count(cell, "number-columns-repeated");
                let text = self.cell(cell);
                if !text.is_empty() && !sheet.is_full() {
                    let columns = x..x.saturating_add(wide);
                    let rows = y..y.saturating_add(times);
                    let places = rows.flat_map(|y| columns.clone().map(move |x| (y, x)));
                    // More would be refused as too long.
                    for (y, x) in places.take(self.limits.text_bytes / text.len() + 1) {
                        sheet.put(y, x, text.clone());
                    }
                    let spans = ["number-rows-spanned", "number-columns-spanned"];
                    let [high, wide] = spans.map(|span| count(cell, span) - 1);
                    if high.saturating_add(wide) > 0 {
                        let end = (y.saturating_add(high), x.saturating_add(wide));
                        merged.push(((y, x), end));
                    }
                }
                x = x.saturating_add(wide);
            }
            y = y.saturating_add(times);
        }
        for (start, end) in merged {
            sheet.merge(start, end);
        }
    }

    fn cell(&mut self, node: Node<'_, '_>) -> String {
        let kinds = node.attributes().filter(|attribute| attribute.name() == "value-type");
        let is_error = kinds.clone().any(|kind| kind.value() == "error");
        let text = self.text(node);
        let value = match kinds.map(|kind| kind.value()).next() {
            // Its words have the sign or the currency.
            Some("percentage" | "currency") if !text.is_empty() => None,
            Some("float" | "percentage" | "currency") => xml::attribute(node, "value"),
            Some("date") => xml::attribute(node, "date-value"),
            Some("boolean") => xml::attribute(node, "boolean-value"),
            _ => None,
        };
        match value.filter(|_| !is_error) {
            Some("true") => "True".to_owned(),
            Some("false") => "False".to_owned(),
            Some(value) => value.parse().map_or(value.to_owned(), number_text),
            None => text,
        }
    }

    /// Returns the words in a node on one line.
    fn text(&mut self, node: Node<'_, '_>) -> String {
        let mut text = String::new();
        let mut boxes = Vec::new();
        self.collect(node, &mut text, &mut boxes);
        while let Some(content) = boxes.pop() {
            text.push(' ');
            self.collect(content, &mut text, &mut boxes);
        }
        crate::builder::one_line(&text)
    }

    /// Collects the text within a node; `boxes` are those with separate text.
    fn collect<'a, 'i>(
        &mut self,
        node: Node<'a, 'i>,
        text: &mut String,
        boxes: &mut Vec<Node<'a, 'i>>,
    ) {
        let mut open: Vec<Node<'a, 'i>> = node.children().rev().collect();
        while let Some(node) = open.pop() {
            if node.is_text() {
                text.push_str(&node.text().unwrap_or_default().replace('\n', " "));
                continue;
            }
            match node.tag_name().name() {
                "s" => text.push(' '),
                "tab" => text.push('\t'),
                "line-break" => text.push('\n'),
                "text-box" => boxes.push(node),
                "note" | "annotation" => {
                    let words = note(node);
                    if !words.is_empty() {
                        self.notes.push(words);
                    }
                }
                "tracked-changes" | "ruby-text" | "desc" | "title" => {}
                name => {
                    if matches!(name, "p" | "h" | "table-cell") && !text.is_empty() {
                        text.push(' ');
                    }
                    open.extend(node.children().rev());
                }
            }
        }
    }

    fn sheets(&mut self, body: Node<'_, '_>) -> Result<(), Error> {
        let count = xml::children(body, "table").count();
        self.limits.check_pages(count)?;
        for (table, number) in xml::children(body, "table").zip(1u32..) {
            let name = xml::attribute(table, "name").unwrap_or_default();
            self.builder.page(number);
            self.builder.heading(2, name);
            let before = self.builder.len();
            let mut sheet = Sheet::default();
            self.cells(table, &mut sheet);
            sheet.write(name, &mut self.builder, self.limits)?;
            self.write_notes();
            self.is_empty &= self.builder.len() == before;
        }
        Ok(())
    }
}

fn count(node: Node<'_, '_>, name: &str) -> u32 {
    xml::attribute(node, name).and_then(|count| count.parse().ok()).unwrap_or(1).max(1)
}

/// Returns the text of a note, or of a comment with its author.
fn note(node: Node<'_, '_>) -> String {
    let mut text = String::new();
    for node in node.descendants().filter(|node| xml::is(*node, "p") || xml::is(*node, "creator")) {
        let words = node.descendants().filter(|node| node.is_text()).filter_map(|node| node.text());
        text.extend(words);
        text.push_str(if xml::is(node, "creator") { ": " } else { " " });
    }
    crate::builder::one_line(&text)
}

//! PowerPoint documents: a page per slide, with its title, texts, tables, charts and notes.

use roxmltree::Node;

use super::{CORE, Package, chart, xml};
use crate::builder::{Builder, Grid};
use crate::{Error, Format, Limits, Parsed};

const MAIN: &str = "ppt/presentation.xml";

/// How deeply groups of shapes are followed.
const DEEPEST: usize = 30;

pub(crate) fn parse(bytes: &[u8], limits: &Limits) -> Result<Parsed, Error> {
    let mut package = Package::open(bytes, Format::Pptx, limits)?;
    let mut builder = Builder::new(Format::Pptx);
    (builder.title, builder.authors) = package.properties(CORE)?;
    let main = package.needed(MAIN)?;
    let relations = package.relations(MAIN)?;
    let document = xml::read(&main, Format::Pptx)?;
    let listed = xml::child(document.root_element(), "sldIdLst");
    let slides = listed.into_iter().flat_map(|list| xml::children(list, "sldId"));
    let parts = slides.filter_map(|slide| relations.get(xml::relation(slide, "id")?));
    for (index, relation) in parts.enumerate() {
        builder.page(u32::try_from(index + 1).unwrap_or(u32::MAX));
        slide(&mut package, &relation.part, &mut builder)?;
    }
    builder.warnings.extend(package.warnings());
    Ok(builder.finish())
}

fn slide(package: &mut Package<'_>, part: &str, builder: &mut Builder) -> Result<(), Error> {
    let mut reader = Reader { builder, related: Vec::new() };
    let read = package.part(part, |root| {
        if let Some(tree) = xml::at(root, &["cSld", "spTree"]) {
            reader.shapes(tree, 0);
        }
    })?;
    if read.is_none() {
        package.miss(part);
    }
    let related = reader.related;
    let relations = package.relations(part)?;
    for relation in related.iter().filter_map(|id| relations.get(id)) {
        package.part(&relation.part, |root| match relation.kind.as_str() {
            "diagramData" => diagram(root, builder),
            _ => chart::write(root, builder),
        })?;
    }
    for notes in package.related(part, "notesSlide")? {
        package.part(&notes, |root| {
            let bodies = root.descendants().filter(|node| {
                xml::is(*node, "sp") && placeholder(*node).is_some_and(|kind| kind == "body")
            });
            for body in bodies {
                let words = paragraphs(body).map(|(_, text)| text).collect::<Vec<_>>().join("\n");
                builder.paragraph(&words);
            }
        })?;
    }
    for comments in package.related(part, "comments")? {
        package.part(&comments, |root| {
            for node in root.descendants().filter(|node| xml::is(*node, "cm")) {
                let words = xml::child(node, "text").and_then(|text| text.text());
                builder.paragraph(&words.map_or_else(|| spoken(node), str::to_owned));
            }
        })?;
    }
    Ok(())
}

struct Reader<'b> {
    builder: &'b mut Builder,
    /// Relations of the slide's charts and diagrams.
    related: Vec<String>,
}

impl Reader<'_> {
    fn shapes(&mut self, tree: Node<'_, '_>, depth: usize) {
        if depth > DEEPEST {
            return;
        }
        for shape in tree.children().filter(Node::is_element) {
            match shape.tag_name().name() {
                "sp" => self.shape(shape),
                "grpSp" => self.shapes(shape, depth + 1),
                "graphicFrame" => self.frame(shape),
                "AlternateContent" => {
                    let choice =
                        xml::child(shape, "Choice").or_else(|| xml::child(shape, "Fallback"));
                    if let Some(choice) = choice {
                        self.shapes(choice, depth + 1);
                    }
                }
                _ => {}
            }
        }
    }

    fn shape(&mut self, shape: Node<'_, '_>) {
        let kind = placeholder(shape);
        match kind {
            Some("title" | "ctrTitle") => {
                let title: Vec<String> = paragraphs(shape).map(|(_, text)| text).collect();
                self.builder.heading(1, &title.join(" "));
            }
            Some("sldNum" | "dt" | "ftr") => {}
            _ => {
                let mut number = 0;
                for (node, text) in paragraphs(shape) {
                    let level = xml::child(node, "pPr").and_then(|own| xml::attribute(own, "lvl"));
                    let level = level.and_then(|level| level.parse().ok()).unwrap_or(0);
                    match marker(node, kind.is_some()) {
                        Some(true) => {
                            number += 1;
                            self.builder.item(level, &format!("{number}."), &text);
                        }
                        Some(false) => self.builder.item(level, "-", &text),
                        None => self.builder.paragraph(&text),
                    }
                }
            }
        }
    }

    fn frame(&mut self, frame: Node<'_, '_>) {
        let Some(data) = xml::at(frame, &["graphic", "graphicData"]) else { return };
        if let Some(table) = xml::child(data, "tbl") {
            self.builder.table(&grid(table));
            return;
        }
        let chart = xml::child(data, "chart").and_then(|node| xml::relation(node, "id"));
        let diagram = xml::child(data, "relIds").and_then(|node| xml::relation(node, "dm"));
        self.related.extend(chart.or(diagram).map(str::to_owned));
    }
}

/// Writes the texts of a diagram (SmartArt), in the order of its data.
fn diagram(root: Node<'_, '_>, builder: &mut Builder) {
    for point in root.descendants().filter(|node| xml::is(*node, "pt")) {
        let text = xml::child(point, "t").map(spoken).unwrap_or_default();
        if !text.is_empty() {
            builder.item(0, "-", &text);
        }
    }
}

/// Returns whether a paragraph is an item of a numbered list, of a plain one, or of none.
fn marker(paragraph: Node<'_, '_>, in_placeholder: bool) -> Option<bool> {
    let own = xml::child(paragraph, "pPr");
    let has = |name: &str| own.and_then(|own| xml::child(own, name)).is_some();
    if has("buAutoNum") {
        return Some(true);
    }
    (has("buChar") || has("buBlip") || (in_placeholder && !has("buNone"))).then_some(false)
}

fn placeholder<'a>(shape: Node<'a, '_>) -> Option<&'a str> {
    let properties = shape.children().find(|node| xml::is(*node, "nvSpPr"))?;
    let placeholder = xml::at(properties, &["nvPr", "ph"])?;
    Some(xml::attribute(placeholder, "type").unwrap_or("obj"))
}

fn paragraphs<'a, 'i>(shape: Node<'a, 'i>) -> impl Iterator<Item = (Node<'a, 'i>, String)> {
    let body = xml::child(shape, "txBody");
    let nodes = body.into_iter().flat_map(|body| xml::children(body, "p"));
    nodes.map(|node| (node, spoken(node))).filter(|(_, text)| !text.trim().is_empty())
}

fn spoken(node: Node<'_, '_>) -> String {
    let mut text = String::new();
    for node in node.descendants() {
        match node.tag_name().name() {
            "t" => text.push_str(node.text().unwrap_or_default()),
            "br" => text.push('\n'),
            _ => {}
        }
    }
    text.trim().to_owned()
}

fn grid(table: Node<'_, '_>) -> Grid {
    let mut grid = Grid::default();
    for row in xml::children(table, "tr") {
        let mut texts: Vec<String> = Vec::new();
        for cell in xml::children(row, "tc") {
            let place = texts.len();
            let merged = |name: &str| xml::attribute(cell, name).is_some_and(|value| value != "0");
            let text = if merged("hMerge") {
                texts.last().cloned()
            } else if merged("vMerge") {
                grid.last().and_then(|above: &Vec<String>| above.get(place).cloned())
            } else {
                None
            };
            texts.push(text.unwrap_or_else(|| {
                let body = xml::child(cell, "txBody");
                let words = body.into_iter().flat_map(|body| xml::children(body, "p")).map(spoken);
                words.collect::<Vec<_>>().join(" ")
            }));
        }
        grid.push(texts);
    }
    grid
}

//! HTML: the visible text of a page, as blocks; navigation, scripts and hidden parts are left out.

mod table;

use dom_query::{Document, NodeRef};

use crate::builder::Builder;
use crate::encoding::Decoded;
use crate::office::numbered;
use crate::{Error, Format, Limits, Parsed};

/// Depth of nested blocks; deeper content is running text.
const DEEPEST: usize = 200;

const SKIPPED: [&str; 23] = [
    "script", "style", "noscript", "template", "nav", "svg", "iframe", "object", "embed", "select",
    "datalist", "head", "canvas", "audio", "video", "map", "dialog", "textarea", "button", "link",
    "rt", "rp", "del",
];

const BLOCKS: &str = "html body p div section article main header footer aside figure figcaption blockquote address details summary \
    form fieldset legend dl dt dd center hr caption tbody thead tfoot tr td th hgroup";

pub(crate) fn parse(decoded: &Decoded, limits: &Limits) -> Result<Parsed, Error> {
    limits.check_text(decoded.text.len())?;
    let mut builder = Builder::new(Format::Html);
    builder.warnings.extend(decoded.warnings.iter().cloned());
    let is_xml = decoded.text.trim_start().starts_with("<?xml");
    let closed = is_xml.then(|| closed(&decoded.text));
    let page = write(closed.as_ref().unwrap_or(&decoded.text), &mut builder);
    builder.title = title(&page);
    builder.authors = authors(&page);
    Ok(builder.finish())
}

pub(crate) fn write(text: &str, builder: &mut Builder) -> Document {
    let page = Document::from(text);
    let mut walk = Walk { builder, inline: String::new(), item: None };
    walk.children(page.root(), 0, 0);
    walk.flush();
    page
}

/// Writes the empty elements of XML (`<title/>`) as HTML knows them: it would take what follows as their content.
pub(crate) fn closed(text: &str) -> String {
    const EMPTY: [&str; 8] = ["br", "hr", "img", "meta", "link", "input", "col", "wbr"];
    let mut closed = String::with_capacity(text.len());
    let mut parts = text.split("/>").peekable();
    while let Some(part) = parts.next() {
        closed.push_str(part);
        if parts.peek().is_none() {
            break;
        }
        let tag = part.rsplit_once('<').map_or("", |(_, tag)| tag);
        let name: String = tag.chars().take_while(|c| !c.is_whitespace()).collect();
        if name.is_empty() || name.starts_with(['!', '?', '/']) || EMPTY.contains(&name.as_str()) {
            closed.push_str("/>");
        } else {
            closed.push_str(&format!("></{name}>"));
        }
    }
    closed
}

struct Item {
    depth: usize,
    /// Taken by the first text; the following text belongs to the same item.
    marker: Option<String>,
}

struct Walk<'b> {
    builder: &'b mut Builder,
    inline: String,
    item: Option<Item>,
}

impl Walk<'_> {
    fn children(&mut self, node: NodeRef<'_>, level: usize, lists: usize) {
        for child in node.children_it(false) {
            self.node(child, level + 1, lists);
        }
    }

    fn node(&mut self, node: NodeRef<'_>, level: usize, lists: usize) {
        if node.is_text() {
            self.inline.push_str(&node.text());
            return;
        }
        let Some(name) = node.node_name() else { return };
        let name = &*name;
        if SKIPPED.contains(&name) || is_hidden(node) {
            return;
        }
        if level > DEEPEST {
            self.inline.push_str(&text_of(node));
            return;
        }
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.flush();
                let level = name.as_bytes()[1] - b'0';
                self.builder.heading(level, &text_of(node));
            }
            "ul" | "ol" | "menu" => {
                self.flush();
                self.list(node, name == "ol", level, lists);
            }
            "table" => {
                self.flush();
                match table::grid(node) {
                    Some(grid) => {
                        let inside = node.children_it(false);
                        for caption in inside.filter(|child| child.has_name("caption")) {
                            self.builder.paragraph(&crate::builder::one_line(&text_of(caption)));
                        }
                        self.builder.table(&grid);
                    }
                    // One that only arranges blocks.
                    None => self.children(node, level, lists),
                }
            }
            "pre" | "listing" => {
                self.flush();
                self.builder.code(&raw_text(node));
            }
            "br" => self.inline.push('\u{2028}'),
            name if is_block(name) || name == "li" => {
                self.flush();
                self.children(node, level, lists);
                self.flush();
            }
            _ => self.children(node, level, lists),
        }
    }

    fn list(&mut self, node: NodeRef<'_>, counted: bool, level: usize, lists: usize) {
        let number_in = |node: NodeRef<'_>, name: &str| node.attr(name)?.trim().parse::<i64>().ok();
        let is_reversed = node.has_attr("reversed");
        let items = || node.children_it(false).filter(|child| child.has_name("li")).count() as i64;
        let first = number_in(node, "start");
        let mut number = first.unwrap_or_else(|| if is_reversed { items() } else { 1 });
        let format = match &*node.attr_or("type", "") {
            "a" => "lowerLetter",
            "A" => "upperLetter",
            "i" => "lowerRoman",
            "I" => "upperRoman",
            _ => "decimal",
        };
        let outer = self.item.take();
        for child in node.children_it(false) {
            if is_one_of(child, &["ul", "ol", "menu"]) {
                self.node(child, level + 1, lists + 1);
                continue;
            }
            if child.has_name("li") && !is_hidden(child) {
                number = number_in(child, "value").unwrap_or(number);
                let shown = u32::try_from(number).ok().filter(|number| *number > 0);
                let shown = shown.map_or_else(
                    || number.to_string(),
                    |one| match format {
                        "lowerLetter" => letters(one),
                        "upperLetter" => letters(one).to_uppercase(),
                        _ => numbered(one, format),
                    },
                );
                let marker = if counted { format!("{shown}.") } else { "-".to_owned() };
                number = number.saturating_add(if is_reversed { -1 } else { 1 });
                self.item = Some(Item { depth: lists, marker: Some(marker) });
                self.children(child, level + 1, lists + 1);
                self.flush();
                self.item = None;
            } else {
                self.node(child, level + 1, lists);
            }
        }
        self.flush();
        self.item = outer;
    }

    /// Writes the running text read so far as a paragraph, or as the item it belongs to.
    fn flush(&mut self) {
        let inline = std::mem::take(&mut self.inline);
        let text = lines(&inline);
        if text.is_empty() {
            return;
        }
        match &mut self.item {
            Some(item) => {
                let marker = item.marker.take();
                self.builder.item(item.depth, marker.as_deref().unwrap_or(" "), &text);
            }
            None => self.builder.paragraph(&text),
        }
    }
}

/// Counts by letters as a browser does: `aa` and `ab` come after `z`, where an office program repeats letters.
fn letters(mut number: u32) -> String {
    let mut text = String::new();
    while number > 0 {
        number -= 1;
        text.extend(('a'..='z').nth((number % 26) as usize));
        number /= 26;
    }
    text.chars().rev().collect()
}

/// Collapses space as a browser does; only line breaks of the page stay.
fn lines(inline: &str) -> String {
    let lines = inline.split('\u{2028}').map(crate::builder::one_line);
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

fn is_block(name: &str) -> bool {
    BLOCKS.split(' ').any(|block| block == name)
}

fn is_one_of(node: NodeRef<'_>, names: &[&str]) -> bool {
    node.node_name().is_some_and(|name| names.contains(&&*name))
}

fn is_hidden(node: NodeRef<'_>) -> bool {
    let style = node.attr_or("style", "").replace(' ', "").to_lowercase();
    node.has_attr("hidden")
        || &*node.attr_or("aria-hidden", "") == "true"
        || &*node.attr_or("role", "") == "navigation"
        || style.contains("display:none")
        || style.contains("visibility:hidden")
}

/// Returns a node's text on one line, with a space between its blocks.
fn text_of(node: NodeRef<'_>) -> String {
    /// What a page shows apart from the text around it, besides blocks.
    const APART: [&str; 16] = [
        "li", "br", "ul", "ol", "menu", "table", "pre", "listing", "img", "input", "h1", "h2",
        "h3", "h4", "h5", "h6",
    ];
    let is_apart = |name: &str| is_block(name) || APART.contains(&name);
    let mut text = String::new();
    // A stack in memory: pages may nest deeper than a thread's stack. Nothing is the end of a block.
    let mut open = vec![Some(node)];
    while let Some(next) = open.pop() {
        let Some(node) = next else {
            text.push(' ');
            continue;
        };
        if node.is_text() {
            text.push_str(&node.text());
        } else if is_one_of(node, &SKIPPED) || (node.is_element() && is_hidden(node)) {
            continue;
        } else if node.node_name().is_some_and(|name| is_apart(&name)) {
            text.push(' ');
            open.push(None);
        }
        open.extend(node.children_it(true).map(Some));
    }
    crate::builder::one_line(&text)
}

fn raw_text(node: NodeRef<'_>) -> String {
    let mut text = String::new();
    for node in node.descendants_it() {
        if node.is_text() {
            text.push_str(&node.text());
        } else if node.has_name("br") {
            text.push('\n');
        }
    }
    text
}

fn title(page: &Document) -> Option<String> {
    let title = page.select_single("head title");
    title.exists().then(|| crate::builder::one_line(&title.text()))
}

fn authors(page: &Document) -> Vec<String> {
    let metas = page.select("head meta");
    let is_author =
        |meta: &&NodeRef<'_>| meta.attr_or("name", "").trim().eq_ignore_ascii_case("author");
    let named = metas.nodes().iter().filter(is_author);
    crate::builder::author_names(named.filter_map(|meta| Some(meta.attr("content")?.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(html: &str) -> String {
        let decoded = Decoded { text: html.into(), ..Decoded::default() };
        parse(&decoded, &Limits::default()).unwrap().text
    }

    #[test]
    fn blocks_lists_and_tables_are_read_as_they_are_seen() {
        let html = "<title>T</title><nav>Home</nav><h2>A <b>head</b></h2><p>One\n two<br>three<script>x()</script></p>\
            <ol start=3><li>a<ul><li>b</li></ul></li><li><p>c</p><p>d</p></li></ol>\
            <table><tr><th>x</th><th>y</th></tr><tr><td colspan=2>both</td></tr></table>\
            <pre>f(\n  x)</pre><p style='display: none'>no</p>";
        assert_eq!(
            text(html),
            "## A head\n\nOne two\nthree\n\n3. a\n    - b\n4. c\n  d\n\n| x | y |\n| - | - |\n| both | both |\n\n```\nf(\n  x)\n```\n"
        );
    }

    #[test]
    fn items_have_the_numbers_that_a_browser_shows_and_deleted_text_is_left_out() {
        for (list, expected) in [
            ("<ol type=a><li>x<li>y</ol>", "a. x\nb. y\n"),
            ("<ol type=a start=27><li>x<li>y</ol>", "aa. x\nab. y\n"),
            ("<ol type=A start=702><li>x<li>y</ol>", "ZZ. x\nAAA. y\n"),
            ("<ol type=I start=4><li>x<li>y</ol>", "IV. x\nV. y\n"),
            ("<ol><li value=7>x<li>y<li value=2>z</ol>", "7. x\n8. y\n2. z\n"),
            ("<ol reversed><li>x<li>y<li>z</ol>", "3. x\n2. y\n1. z\n"),
            ("<ol start=3 reversed><li>x<li>y</ol>", "3. x\n2. y\n"),
            ("<ol type=a start=0><li>x<li>y</ol>", "0. x\na. y\n"),
            ("<ul type=a><li value=3>x</ul>", "- x\n"),
            ("<p>pay <del>100</del> 300</p>", "pay 300\n"),
        ] {
            assert_eq!(text(list), expected, "{list}");
        }
    }

    #[test]
    fn signs_that_are_not_shown_do_not_divide_words() {
        let html = "<h1>Daten&shy;schutz</h1><p>Wort&#x2060;teil, 5&nbsp;kg</p>";
        assert_eq!(text(html), "# Datenschutz\n\nWortteil, 5 kg\n");
    }

    #[test]
    fn a_long_table_is_read_whole_and_spans_are_repeated_within_a_bound() {
        let rows = |row: &str, count: usize| format!("<table>{}</table>", row.repeat(count));
        let long = text(&rows(&format!("<tr>{}", "<td>a".repeat(10)), 20_001));
        assert_eq!(long.lines().count(), 20_002);
        let wide = format!("<tr><td colspan=1000>{}<td>end", "x".repeat(1000));
        let wide = text(&rows(&wide, 100));
        assert!(wide.len() < 6_000_000 && wide.matches("| end |").count() == 100);
    }

    #[test]
    fn hidden_rows_and_readings_above_words_are_left_out() {
        let rows = "<tr><td>a<td>b<tr hidden><td>no<td>no<tr><td>c<td>d";
        assert_eq!(
            text(&format!(
                "<ruby>東<rp>(<rt>とう<rp>)</ruby>京<table>{rows}<tbody style='display:none'><tr><td>no<td>no</table>"
            )),
            "東京\n\n| a | b |\n| - | - |\n| c | d |\n"
        );
    }

    #[test]
    fn words_in_a_heading_or_cell_are_divided_by_blocks_and_by_nothing_else() {
        for (inside, expected) in [
            ("<font size=5>T</font>he <small>e</small>nd", "The end"),
            ("<abbr>H<mark>TM</mark></abbr>L<x-y>5</x-y>", "HTML5"),
            ("a<p>b</p>c<br>d<div>e</div>f", "a b c d e f"),
            ("one<img src=x>two", "one two"),
            ("<ul><li>a</li><li>b</li></ul>c", "a b c"),
        ] {
            assert_eq!(text(&format!("<h1>{inside}</h1>")), format!("# {expected}\n"));
            let table = format!("<table><tr><td>x<td>y<tr><td>{inside}</td><td>z</td></table>");
            assert!(text(&table).ends_with(&format!("| {expected} | z |\n")), "{}", text(&table));
        }
    }

    #[test]
    fn a_page_nested_without_end_is_read_without_a_crash() {
        let html = format!("{}deep{}", "<div>".repeat(4_000), "</div>".repeat(4_000));
        assert_eq!(text(&html), "deep\n");
    }
}

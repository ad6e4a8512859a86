//! A page as a model reads it.

use schemars::JsonSchema;
use serde::Serialize;
use url::Url;

use crate::main_text::{MainText, main_text, squeezed};
use crate::{Document, Limits};

/// What was read of a page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Page {
    /// The address at which it was found, after redirects.
    pub url: String,
    pub title: String,
    /// The main text as Markdown.
    pub text: String,
    /// When it was published, as far as it says.
    pub published: Option<String>,
    pub author: Option<String>,
    pub language: Option<String>,
    /// Links of the page.
    pub links: Vec<Link>,
    /// The text, or the page itself, was longer than is read.
    pub truncated: bool,
    /// It was read before and kept.
    pub cached: bool,
}

/// A link of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Link {
    pub url: String,
    pub text: String,
}

/// Reads the main text of a document; a text that is no HTML stays as it is.
pub fn read(url: &Url, media: &str, text: &str, limits: &Limits) -> Page {
    let is_html =
        media.contains("html") || (media.is_empty() && text.trim_start().starts_with('<'));
    let page =
        if is_html { html(url, text) } else { Page { text: text.to_owned(), ..Page::default() } };
    bounded(page, url, limits)
}

pub fn of_document(url: &Url, document: Document, limits: &Limits) -> Page {
    let title = document.title.unwrap_or_default();
    bounded(Page { title, text: document.text, ..Page::default() }, url, limits)
}

fn bounded(mut page: Page, url: &Url, limits: &Limits) -> Page {
    page.url = url.to_string();
    if let Some((end, _)) = page.text.char_indices().nth(limits.characters) {
        page.text.truncate(end);
        page.truncated = true;
    }
    page
}

/// Elements within each other.
const DEEPEST: usize = 512;
/// Most links listed of a page.
const LINKS: usize = 100;

fn html(url: &Url, text: &str) -> Page {
    // Comparisons in scripts look like tags. The readers get only a text that is not too deep.
    let stripped = is_too_deep(text).then(|| without_scripts(text, |script| script.contains('<')));
    let read = stripped.as_deref().unwrap_or(text);
    if stripped.is_some() && is_too_deep(read) {
        let flat = dom_query::Document::from(without_tags(text, is_link).as_str());
        let links = links(&base_of(url, &flat), &flat);
        return Page { text: plain(text), links, ..Page::default() };
    }
    let page = dom_query::Document::from(read);
    let base = base_of(url, &page);
    let links = links(&base, &page);
    let MainText { text: body, metadata } = main_text(&base, &page);
    Page {
        title: metadata.title,
        // A page that is all navigation still says something.
        text: if body.trim().is_empty() { plain(text) } else { body.trim().to_owned() },
        published: metadata.published_time,
        author: metadata.byline,
        language: metadata.lang,
        links,
        ..Page::default()
    }
}

fn plain(text: &str) -> String {
    squeezed(&without_tags(text, |_| false))
}

fn is_link(tag: &str) -> bool {
    let lower = tag.to_ascii_lowercase();
    matches!(name_of(&lower, usize::from(tag.starts_with('/'))), "a" | "base")
}

/// Leaves out scripts, styles, and tags that are not wanted.
fn without_tags(text: &str, is_wanted: impl Fn(&str) -> bool) -> String {
    let text = without_scripts(text, |_| true);
    let mut made = String::new();
    let mut rest = text.as_str();
    while let Some((before, tag)) = rest.split_once('<') {
        made.push_str(before);
        made.push(' ');
        let (tag, behind) = tag.split_once('>').unwrap_or((tag, ""));
        if is_wanted(tag) {
            made.push_str(&format!("<{tag}>"));
        }
        rest = behind;
    }
    made.push_str(rest);
    made
}

/// Leaves out those scripts and styles of whose text it `is_unwanted`.
fn without_scripts(text: &str, is_unwanted: impl Fn(&str) -> bool) -> String {
    // Of the same length: only letters of ASCII change.
    let lower = text.to_ascii_lowercase();
    let mut made = String::new();
    let mut at = 0;
    for (start, _) in lower.match_indices('<') {
        let tag = name_of(&lower, start + 1);
        if start < at || !matches!(tag, "script" | "style") {
            continue;
        }
        let find = |what: &str, from: usize| {
            lower.get(from..).and_then(|rest| rest.find(what)).map(|place| from + place)
        };
        let end = find(&format!("</{tag}"), start);
        let inner = text.get(start + 1..end.unwrap_or(text.len()));
        if inner.is_some_and(&is_unwanted) {
            made.push_str(text.get(at..start).unwrap_or_default());
            made.push(' ');
            at = end.and_then(|end| find(">", end)).map_or(text.len(), |close| close + 1);
        }
    }
    made.push_str(text.get(at..).unwrap_or_default());
    made
}

fn name_of(lower: &str, at: usize) -> &str {
    let rest = lower.get(at..).unwrap_or_default();
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    rest.get(..end).unwrap_or_default()
}

/// Empty elements, and those that end without being closed.
const UNCLOSED: [&str; 35] = [
    "area", "base", "body", "br", "col", "colgroup", "dd", "doctype", "dt", "embed", "head", "hr",
    "html", "img", "input", "li", "link", "meta", "optgroup", "option", "p", "param", "path", "rp",
    "rt", "script", "source", "style", "tbody", "td", "tfoot", "th", "thead", "tr", "track",
];

/// Returns whether elements are nested deeper than browsers take them (Blink's and WebKit's bound), which takes readers forever.
fn is_too_deep(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut depth = 0_usize;
    for (start, _) in lower.match_indices('<') {
        let is_end = lower.get(start + 1..).is_some_and(|rest| rest.starts_with('/'));
        let name = name_of(&lower, start + 1 + usize::from(is_end));
        if name.is_empty() || UNCLOSED.contains(&name) {
            continue;
        }
        depth = if is_end { depth.saturating_sub(1) } else { depth + 1 };
        if depth > DEEPEST {
            return true;
        }
    }
    false
}

/// Returns the address that a page's links are relative to: its own, or the one that its first `base` names.
fn base_of(url: &Url, page: &dom_query::Document) -> Url {
    let bases = page.select("base[href]");
    let named = bases.nodes().iter().find_map(|base| url.join(&base.attr_or("href", "")).ok());
    let base = named.filter(|base| matches!(base.scheme(), "http" | "https"));
    base.unwrap_or_else(|| url.clone())
}

/// Lists the links of a document with their texts, each address once.
fn links(base: &Url, page: &dom_query::Document) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    for link in page.select("a[href]").nodes() {
        let Ok(mut target) = base.join(&link.attr_or("href", "")) else { continue };
        target.set_fragment(None);
        let is_new = matches!(target.scheme(), "http" | "https")
            && !links.iter().any(|link| link.url == target.as_str());
        if is_new {
            let text = squeezed(&link.text()).chars().take(120).collect();
            links.push(Link { url: target.into(), text });
        }
        if links.len() >= LINKS {
            break;
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_text_is_markdown_and_the_links_are_whole() {
        let text = format!(
            "<html><head><title>Tides</title></head><body><nav><a href='/home'>Home</a></nav><article><h1>Tides</h1><p>{}</p>\
             <table><tr><th>Port</th><th>Height</th></tr><tr><td>Brest</td><td>7 m</td></tr></table>\
             <p>See <a href=\"moon?a=1&amp;b=2#x\">the <b>moon</b></a>.</p></article><script>var x = '<p>no</p>';</script></body></html>",
            "The tide rises and falls twice a day, and the moon pulls at the sea. ".repeat(8)
        );
        let url = Url::parse("https://sea.test/a/b").unwrap();
        let page = read(&url, "text/html", &text, &Limits::default());
        assert_eq!(page.title, "Tides");
        assert!(
            page.text.contains("The tide rises")
                && page.text.contains("Brest")
                && !page.text.contains("var x"),
            "{}",
            page.text
        );
        let moon = Link { url: "https://sea.test/a/moon?a=1&b=2".into(), text: "the moon".into() };
        assert!(page.links.contains(&moon), "{:?}", page.links);
    }

    #[test]
    fn links_begin_at_the_base_that_the_page_names() {
        let url = Url::parse("https://sea.test/a/b").unwrap();
        let text =
            "The tide rises and falls twice a day, and the moon pulls at the sea. ".repeat(8);
        for (head, moon) in [
            ("", "https://sea.test/a/moon"),
            ("<basefont href='/x/'>", "https://sea.test/a/moon"),
            ("<BASE target=_top><base href='/c/'><base href='/d/'>", "https://sea.test/c/moon"),
            ("<base href=\"https://moon.test/e/\">", "https://moon.test/e/moon"),
            ("<base href='data:x'>", "https://sea.test/a/moon"),
        ] {
            let text = format!(
                "<html><head>{head}</head><body><article><p>{text}</p><p>See <a href='moon'>the moon</a>, {text}</p></article></body></html>"
            );
            let page = read(&url, "text/html", &text, &Limits::default());
            assert_eq!(page.links[0].url, moon, "{head}");
            assert!(page.text.contains(&format!("({moon})")), "{head}: {}", page.text);
        }
    }

    #[test]
    fn links_are_found_however_their_tags_are_written() {
        let url = Url::parse("https://sea.test/a").unwrap();
        let text = "<p><a\n  data-href='/no' class=x\n  href = \"/one\">One</a> <A HREF=/two>Two</A> <abbr href=/no>no</abbr></p>";
        let page = read(&url, "text/html", text, &Limits::default());
        let links: Vec<(&str, &str)> =
            page.links.iter().map(|link| (link.url.as_str(), link.text.as_str())).collect();
        assert_eq!(links, [("https://sea.test/one", "One"), ("https://sea.test/two", "Two")]);
    }

    #[test]
    fn an_article_whose_paragraphs_are_only_broken_lines_is_read_whole() {
        let part = |n: usize| {
            format!(
                "Part {n} tells of the tide, which rises and falls, and of the moon, which pulls at the sea, as sailors have known for long."
            )
        };
        let lines = |from: usize| {
            (from..from + 12)
                .map(|n| part(n) + " <a href='/more'>See more</a>")
                .collect::<Vec<_>>()
                .join("<br/><br/>")
        };
        let text = format!(
            "<html><head><title>Tides</title></head><body><nav><a href='/home'>Home</a> <a href='/b'>Other pages</a></nav><div class='main'>\
             <h1>Tides</h1><div class='post-body entry-content'>{}<h2>Later</h2>{}</div></div><div class='footer'>Copyright</div></body></html>",
            lines(10),
            lines(30)
        );
        let url = Url::parse("https://sea.test/tides").unwrap();
        let page = read(&url, "text/html", &text, &Limits::default());
        for word in ["Part 10", "Part 21", "Part 35"] {
            assert!(page.text.contains(word), "{word} is missing in {}", page.text);
        }
        assert!(!page.text.contains("Other pages"), "{}", page.text);
    }

    #[test]
    fn comparisons_in_scripts_are_no_elements() {
        let url = Url::parse("https://sea.test/tides").unwrap();
        let paragraph = "<p>The tide rises and falls with the moon, which pulls at the sea, as sailors have known for long.</p>".repeat(5);
        let compares = "for(i=0;i<n;i++)x(i<m);".repeat(DEEPEST);
        let text = format!(
            "<html><head><title>Tides</title><SCRIPT>{compares}</script><script>late()</script></head>\
             <body><nav><a href='/home'>Home</a></nav><article><h1>Tides</h1>{paragraph}</article></body></html>"
        );
        let page = read(&url, "text/html", &text, &Limits::default());
        assert_eq!(page.title, "Tides");
        assert!(page.text.contains("sailors have known"), "{}", page.text);
        assert!(!page.text.contains("Home") && !page.text.contains("i<m"), "{}", page.text);
        assert_eq!(page.links.len(), 1);
        // What a script hides of the depth is hidden from the readers as well.
        let hidden = format!("<svg><script/>{}</svg>high tide", "<g>".repeat(50_000));
        assert_eq!(read(&url, "text/html", &hidden, &Limits::default()).text, "");
        let kept = "<script>{\"a\": 1}</script><style>b</style><p>c</p>";
        assert_eq!(without_scripts(kept, |script| script.contains('<')), kept);
    }

    #[test]
    fn a_page_made_to_parse_forever_is_read_as_plain_text() {
        let url = Url::parse("https://sea.test/").unwrap();
        let deep = |tags: &str| format!("<html><body>{}high tide", tags.repeat(50_000));
        for text in [deep("<div>"), deep("<b><i><table><tr><td>"), deep("<font><a href=/x>")] {
            let page = read(&url, "text/html", &text, &Limits::default());
            assert_eq!(page.text, "high tide");
            assert_eq!(page.links.len(), usize::from(text.contains("href")));
        }
        let text = deep("<div>") + " <A HREF='x'>at <b>Brest</b></A><base href=/ports/>";
        let brest = Link { url: "https://sea.test/ports/x".into(), text: "at Brest".into() };
        assert_eq!(read(&url, "text/html", &text, &Limits::default()).links, [brest]);
        let scripts = "<script>var x</SCRIPT>".repeat(100_000) + "high tide";
        assert_eq!(plain(&scripts), "high tide");
        // Paragraphs and items that nobody closed lie beside each other.
        assert!(!is_too_deep(&"<p>one<br><ul><li>two<img></ul>".repeat(2_000)));
    }

    #[test]
    fn text_that_is_no_html_stays_and_long_text_is_cut() {
        let url = Url::parse("https://sea.test/x.txt").unwrap();
        let limits = Limits { characters: 4, ..Limits::default() };
        let page = read(&url, "text/plain", "täglich", &limits);
        assert_eq!((page.text.as_str(), page.truncated), ("tägl", true));
    }
}

//! The main text of a page, by two readers.
//!
//! One looks for the part that is named as the text and leaves out what is named otherwise ([`crate::boilerplate`]); the other scores the tree
//! for one article (Mozilla's Readability). Where the first found little, or no paragraphs, the second one counts; where both found little,
//! what the page says of itself to search engines, and all paragraphs.

use std::sync::LazyLock;

use dom_query::{Document, NodeRef};
use dom_smoothie::{Metadata, Readability};
use regex::Regex;
use serde_json::Value;
use url::Url;

use crate::boilerplate::{drop_comments, drop_elements, is_forum, prune};

/// Characters below which a text is doubtful.
const SHORT: usize = 250;

/// Characters from which on a text is taken for the whole.
const LONG: usize = 3_000;

/// What a page says, and what it says of itself.
#[derive(Debug, Default)]
pub struct MainText {
    /// As Markdown; empty where there is none.
    pub text: String,
    pub metadata: Metadata,
}

/// A part of a page that one of the readers took for its text.
struct Found {
    document: Document,
    length: usize,
}

impl Found {
    fn of(document: Document) -> Self {
        let length = document.root().normalized_char_count();
        Self { document, length }
    }
}

/// Reads the main text of a page.
pub fn main_text(url: &Url, html: &str) -> MainText {
    let whole = Document::from(html);
    let is_forum = is_forum(&whole);
    if !is_forum {
        drop_comments(&whole);
    }
    let bodies = bodies(&whole);
    let mut metadata = Metadata::default();
    let mut article = None;
    if let Ok(mut reader) = Readability::with_document(whole.clone(), Some(url.as_str()), None) {
        metadata = reader.get_article_metadata(reader.parse_json_ld());
        article = reader.parse().ok().map(|article| {
            metadata.lang = article.lang.clone();
            metadata.title.clone_from(&article.title);
            Found::of(Document::fragment(article.content))
        });
    }
    let cleaned = whole.clone();
    drop_elements(&cleaned);
    let mut found = Found::of(regions(&cleaned));
    if found.length < SHORT {
        let wild = Found::of(paragraphs(&cleaned));
        if wild.length > found.length {
            found = wild;
        }
    }
    if let Some(article) = article.filter(|article| is_better(article, &found)) {
        drop_elements(&article.document);
        found = Found::of(article.document);
    }
    if found.length < SHORT {
        let last = Found::of(last_resort(&whole, bodies));
        if last.length > found.length {
            found = last;
        }
    }
    if found.length < LONG || is_forum {
        let page = Found::of(everything(&Document::from(html)));
        let share = if is_forum { 1.5 } else { 5.0 };
        if found.length as f64 * share < page.length as f64 {
            found = page;
        }
    }
    MainText { text: markdown(&found.document, url), metadata }
}

fn is_better(article: &Found, found: &Found) -> bool {
    if article.length == 0 || found.length == article.length || found.length > 2 * article.length {
        return false;
    }
    let count = |name: &str| found.document.select(name).length();
    found.length == 0
        || article.length > 2 * found.length
        || (article.length > 2 * SHORT && (count("p") == 0 || count("table") > count("p")))
}

/// Names that a page gives to the part with its text, the most certain ones first.
static REGIONS: LazyLock<[(Regex, Regex); 4]> = LazyLock::new(|| {
    let pair = |id: &str, class: &str| {
        let made = |words| Regex::new(words).unwrap_or_else(|_| unreachable!("a fixed expression"));
        (made(id), made(class))
    };
    [
        pair(
            "^articleContent$|(?:entry|article|art)-content|article__content|article(?:-|__)?body|articleBody|body-text",
            "^(?:post|entry)$|post[-_]text|post-body|post-?entry|post[-_]?content|postContent|post_inner_wrapper|article-?text|\
             articleText|(?:entry|page|text|article|art)-content|article__content|article(?:-|__)?body|articleBody|ArticleContent|\
             body-text|article__container",
        ),
        pair(
            "^(?:article|story)$|^primary|story-body",
            "^(?:postarea|art-postcontent|text|cell|story)$|(?i:fulltext)|^article |post-bodycopy|story-?content|\
             (?:theme|blog|section|single)-content|single-post|main-column|wpb_text_column|story-body|field-body",
        ),
        pair(
            "^content$|content-main|content-body|contentBody|[cC]ontent-[mM]ain|[mM]ain-content",
            "^content$|content[-_]main|content(?:-|__)body|[mM]ain-content|[pP]age-[cC]ontent",
        ),
        pair("^main", "^main"),
    ]
});

fn regions(document: &Document) -> Document {
    let nodes: Vec<NodeRef<'_>> = document
        .root()
        .descendants()
        .into_iter()
        .filter(|node| ["article", "div", "main", "section"].iter().any(|name| node.has_name(name)))
        .collect();
    let named = |stage: usize| {
        let (id, class) = &REGIONS[stage];
        nodes.iter().find(|node| {
            id.is_match(&node.attr_or("id", ""))
                || class.is_match(&node.attr_or("class", ""))
                || match stage {
                    0 => &*node.attr_or("itemprop", "") == "articleBody",
                    1 => &*node.attr_or("role", "") == "article",
                    3 => node.attr_or("role", "").starts_with("main") || node.has_name("main"),
                    _ => false,
                }
        })
    };
    let article = || nodes.iter().find(|node| node.has_name("article"));
    let mut takes_all = false;
    for region in [named(0), article(), named(1), named(2), named(3)].into_iter().flatten() {
        prune(region, false);
        let of_paragraphs: usize =
            document.select("p").nodes().iter().map(NodeRef::normalized_char_count).sum();
        takes_all |= of_paragraphs < 3 * SHORT;
        let part = region.to_fragment();
        if !takes_all {
            drop_loose(&part.root());
        }
        drop_last_titles(&part.root());
        let blocks =
            part.select("p, ul, ol, dl, h1, h2, h3, h4, h5, h6, blockquote, pre, table, br");
        if part.root().normalized_char_count() > 0 && (blocks.length() > 1 || takes_all) {
            return part;
        }
    }
    Document::fragment("")
}

/// Elements whose text is a page's text.
const BLOCKS: [&str; 18] = [
    "p",
    "ul",
    "ol",
    "dl",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "blockquote",
    "pre",
    "q",
    "code",
    "table",
    "summary",
    "li",
    "hr",
];

fn is_block(node: &NodeRef<'_>) -> bool {
    BLOCKS.iter().any(|name| node.has_name(name))
}

/// Takes out text that is in no paragraph, list, title, quote or table, and behind no line break.
fn drop_loose(region: &NodeRef<'_>) {
    let mut is_broken = false;
    for child in region.children() {
        if child.has_name("br") {
            is_broken = true;
        } else if is_block(&child) {
            is_broken = false;
        } else if child.is_element()
            && child.descendants_it().any(|node| is_block(&node) || node.has_name("br"))
        {
            drop_loose(&child);
            is_broken = false;
        } else if ["div", "section", "article", "main"].iter().any(|name| child.has_name(name)) {
            child.remove_from_parent();
            is_broken = false;
        } else if !is_broken {
            child.remove_from_parent();
        }
    }
}

fn drop_last_titles(region: &NodeRef<'_>) {
    while let Some(last) =
        region.descendants().into_iter().filter(|node| node.is_nonempty_text()).last()
    {
        let title = last.ancestors_it(None).find(|node| {
            ["h1", "h2", "h3", "h4", "h5", "h6"].iter().any(|name| node.has_name(name))
        });
        let Some(title) = title else { break };
        title.remove_from_parent();
    }
}

fn paragraphs(document: &Document) -> Document {
    let copy = document.clone();
    prune(&copy.root(), false);
    let all = copy.select("p, pre, blockquote, table");
    let outer = all.nodes().iter().filter(|node| {
        !node
            .ancestors_it(None)
            .any(|one| ["p", "pre", "blockquote", "table"].iter().any(|name| one.has_name(name)))
    });
    Document::fragment(outer.map(|node| node.html().to_string()).collect::<String>())
}

/// Takes the whole page but for what is certainly around its text.
fn everything(document: &Document) -> Document {
    drop_elements(document);
    let root = document.root();
    prune(&root, true);
    document.body().map_or_else(|| Document::fragment(""), |body| body.to_fragment())
}

/// Collects the texts that a page gives search engines.
fn bodies(document: &Document) -> Vec<String> {
    let mut found = Vec::new();
    for script in document.select("script[type='application/ld+json']").nodes() {
        if let Ok(value) = serde_json::from_str::<Value>(&script.text()) {
            collect(&value, &mut found);
        }
    }
    found
}

fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(list) => list.iter().for_each(|value| collect(value, found)),
        Value::Object(fields) => {
            let texts = ["articleBody", "reviewBody"].map(|name| fields.get(name));
            found.extend(texts.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| collect(value, found));
        }
        _ => {}
    }
}

fn last_resort(document: &Document, bodies: Vec<String>) -> Document {
    let text: String = bodies.iter().map(|text| format!("<p>{text}</p>")).collect();
    if text.len() > 100 {
        return Document::fragment(text);
    }
    document.select("aside, footer, script, style, svg, template, noscript, nav").remove();
    let articles = document.select("article");
    let longest = articles.nodes().iter().max_by_key(|node| node.normalized_char_count());
    if let Some(article) = longest.filter(|node| node.normalized_char_count() > 100) {
        return article.to_fragment();
    }
    let all = document.select("p, pre, blockquote");
    let texts: String = all.nodes().iter().map(|node| node.html().to_string()).collect();
    let found = Document::fragment(texts);
    if found.root().normalized_char_count() > 100 {
        return found;
    }
    document.body().map_or_else(|| Document::fragment(""), |body| body.to_fragment())
}

fn markdown(document: &Document, url: &Url) -> String {
    document.select("img, picture, svg, source").remove();
    for link in document.select("a[href]").nodes() {
        if let Ok(target) = url.join(&link.attr_or("href", "")) {
            link.set_attr("href", target.as_str());
        }
    }
    document.root().md(None).to_string()
}

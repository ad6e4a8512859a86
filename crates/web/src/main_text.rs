//! The main text of a page, by two readers.
//!
//! One method finds the region that is named as the text and leaves out differently named parts ([`crate::regions`],
//! [`crate::boilerplate`]); the other one scores the tree for one article (Mozilla's Readability). If the first one
//! finds no region, little text, or no paragraphs, the second one counts. If both find little, the page's metadata for
//! search engines counts, with all paragraphs. If that is a small part of a page that is not an article, the page
//! counts, without its navigation. Invariant: the page is not parsed again.

use dom_query::Document;
use dom_smoothie::{Metadata, Readability};
use serde_json::Value;
use url::Url;

use crate::boilerplate::{drop_comments, drop_elements, is_forum, prune, prune_page};
use crate::regions::{drop_empty_titles, is_block, paragraphs, regions};

/// Characters below which a text is doubtful.
pub const SHORT: usize = 250;

/// Characters from which a text counts as complete.
const LONG: usize = 3_000;

/// Characters of a description that identify the paragraph from which it is taken.
const LEAD: usize = 50;

#[derive(Debug, Default)]
pub struct MainText {
    /// As Markdown; empty if there is none.
    pub text: String,
    pub metadata: Metadata,
}

struct Found {
    document: Document,
    length: usize,
}

impl Found {
    fn of(document: Document) -> Self {
        let length = document.root().normalized_char_count();
        Self { document, length }
    }

    fn or_if_longer(self, other: Document) -> Self {
        let other = Self::of(other);
        if other.length > self.length { other } else { self }
    }
}

pub fn main_text(url: &Url, page: &Document) -> MainText {
    let says = Says::of(page);
    let is_forum = is_forum(page);
    let whole = page.clone();
    if !is_forum {
        drop_comments(&whole);
    }
    let (metadata, article) = article(url, &whole);
    let cleaned = whole.clone();
    drop_elements(&cleaned);
    let mut found = Found::of(regions(&cleaned));
    let has_region = found.length >= SHORT;
    if !has_region {
        found = found.or_if_longer(paragraphs(&cleaned));
    }
    if let Some(article) = article.filter(|article| is_better(article, &found, has_region, &says)) {
        drop_elements(&article.document);
        found = Found::of(article.document);
    }
    if found.length < SHORT {
        found = found.or_if_longer(last_resort(&whole, &says.bodies));
    }
    if let Some(share) = share(&says, &found, has_region, is_forum) {
        let page = Found::of(everything(page.clone(), is_forum));
        if found.length as f64 * share < page.length as f64 {
            found = page;
        }
    }
    drop_empty_titles(&found.document.root());
    let mut text = markdown(&found.document, url);
    let plain = squeezed(&found.document.root().text());
    let lead = metadata.excerpt.as_deref().and_then(|about| lead(page, about));
    // An article tells of itself, and of several things the first is the one that the page is about.
    let about = says.descriptions.into_iter().filter(|_| says.kind != "article").take(1);
    for part in lead.into_iter().chain(about) {
        if !plain.contains(part.get(..part.floor_char_boundary(LEAD)).unwrap_or(&part)) {
            text = format!("{part}\n\n{text}");
        }
    }
    MainText { text, metadata }
}

fn article(url: &Url, page: &Document) -> (Metadata, Option<Found>) {
    let Ok(mut reader) = Readability::with_document(page.clone(), Some(url.as_str()), None) else {
        return (Metadata::default(), None);
    };
    let mut metadata = reader.get_article_metadata(reader.parse_json_ld());
    metadata.lang = page.select("html").attr("lang").map(|lang| lang.to_string());
    let Ok(article) = reader.parse() else { return (metadata, None) };
    metadata.title = article.title;
    (metadata, Some(Found::of(Document::fragment(article.content))))
}

fn is_better(article: &Found, found: &Found, has_region: bool, says: &Says) -> bool {
    if article.length == 0 || found.length == article.length {
        return false;
    }
    if !has_region && article.length >= SHORT && article.length * 5 >= found.length * 6 {
        return true;
    }
    if found.length > 2 * article.length {
        return false;
    }
    let count = |name: &str| found.document.select(name).length();
    let times = if says.is_article || says.kind == "article" { 4 } else { 3 };
    found.length == 0
        || article.length * 2 > found.length * times
        || (article.length > 2 * SHORT && (count("p") == 0 || count("table") > count("p")))
}

/// Returns the ratio of the page's length to the found text from which the whole page is used; `None` for never.
fn share(says: &Says, found: &Found, has_region: bool, is_forum: bool) -> Option<f64> {
    if is_forum {
        Some(1.5)
    } else if found.length < SHORT {
        Some(3.0)
    } else if says.kind == "article" || found.length >= LONG {
        None
    } else if found.length < LONG / 2 && !says.is_article && (says.kind == "website" || !has_region)
    {
        Some(2.0)
    } else {
        Some(5.0)
    }
}

/// Uses the whole page except parts that are certainly not its text.
fn everything(document: Document, is_forum: bool) -> Document {
    drop_elements(&document);
    if is_forum {
        prune(&document.root());
    } else {
        prune_page(&document.root());
    }
    document.body().map_or_else(|| Document::fragment(""), |body| body.to_fragment())
}

pub fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Finds the introductory paragraph, which many pages separate from their text.
fn lead(document: &Document, about: &str) -> Option<String> {
    let beginning: String = squeezed(about).chars().take(LEAD).collect();
    if beginning.chars().count() < LEAD {
        return None;
    }
    let body = document.body()?;
    let texts = body.descendants().into_iter().filter(|node| {
        node.is_element()
            && !["script", "style", "noscript"].iter().any(|name| node.has_name(name))
            && !node
                .descendants_it()
                .any(|one| is_block(&one) || one.has_name("div") || one.has_name("script"))
    });
    let mut texts = texts.map(|node| squeezed(&node.text()));
    texts.find(|text| text.starts_with(&beginning))
}

#[derive(Default)]
struct Says {
    /// Whole texts, perhaps with markup.
    bodies: Vec<String>,
    /// The kinds of things that it offers, in words.
    descriptions: Vec<String>,
    /// Whether it is one article, and not a list of things.
    is_article: bool,
    /// Its kind for pages that link to it.
    kind: String,
}

impl Says {
    fn of(document: &Document) -> Self {
        let kind = document.select("meta[property='og:type']").attr_or("content", "");
        let mut says = Self { kind: kind.to_string(), ..Self::default() };
        for script in document.select("script[type='application/ld+json']").nodes() {
            if let Ok(value) = serde_json::from_str::<Value>(&script.text()) {
                says.read(&value);
            }
        }
        says
    }

    fn read(&mut self, value: &Value) {
        match value {
            Value::Array(list) => list.iter().for_each(|value| self.read(value)),
            Value::Object(fields) => {
                let text = |name: &str| fields.get(name).and_then(Value::as_str);
                self.bodies.extend(text("articleBody").or(text("reviewBody")).map(str::to_owned));
                let kind = text("@type").unwrap_or_default();
                self.is_article |= matches!(kind, "Article" | "NewsArticle" | "BlogPosting");
                if matches!(kind, "Product" | "ProductGroup" | "VideoObject")
                    && let Some(about) = text("description")
                {
                    let about = squeezed(&Document::fragment(about).root().text());
                    let is_new = about.len() > 2 * LEAD && !self.descriptions.contains(&about);
                    self.descriptions.extend(is_new.then_some(about));
                }
                fields.values().for_each(|value| self.read(value));
            }
            _ => {}
        }
    }
}

fn last_resort(document: &Document, bodies: &[String]) -> Document {
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

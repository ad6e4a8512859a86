//! The main text of a page, by two readers.
//!
//! One weighs blocks and knows kinds of pages (trafilatura's rules), the other scores the tree for one article (Mozilla's). The first is the tighter
//! one and reads forums, lists and products better; sometimes it keeps a small part alone, and of an article the whole page. There the second one
//! counts.

use rs_trafilatura::{ExtractResult, Options};
use url::Url;

/// So much less than the other reader found is a part of the page's text.
const PART: f64 = 0.3;
/// Of an article, so much more than the other reader found is the page around it.
const WHOLE_PAGE: f64 = 2.0;
/// How sure it must be that a page is an article before less counts than more.
const SURE: f64 = 0.7;

/// The main text as Markdown, which is empty where there is none, and what the page says of itself.
pub fn main_text(url: &Url, html: &str) -> (String, Option<rs_trafilatura::Metadata>) {
    let options = Options {
        include_links: true,
        include_tables: true,
        output_markdown: true,
        url: Some(url.to_string()),
        ..Options::default()
    };
    let Ok(mut found) = rs_trafilatura::extract_with_options(html, &options) else {
        return (article(url, html).unwrap_or_default(), None);
    };
    let is_article = found.metadata.page_type.as_deref() == Some("article")
        && found.classification_confidence.unwrap_or_default() > SURE;
    let text = blocks(&mut found);
    let text = match article(url, html) {
        Some(other) if is_better(&other, &text, is_article) => other,
        _ => text,
    };
    (text, Some(found.metadata))
}

fn blocks(found: &mut ExtractResult) -> String {
    let markdown = found.content_markdown.take().filter(|markdown| !markdown.trim().is_empty());
    markdown.unwrap_or_else(|| std::mem::take(&mut found.content_text))
}

fn article(url: &Url, html: &str) -> Option<String> {
    let mut reader = dom_smoothie::Readability::new(html, Some(url.as_str()), None).ok()?;
    let article = reader.parse().ok()?;
    Some(quick_html2md::html_to_markdown(&article.content))
}

fn is_better(article: &str, blocks: &str, is_article: bool) -> bool {
    let article = words(article);
    let blocks = words(blocks);
    let is_part = blocks < PART * article;
    let is_whole_page = article > 0.0 && blocks > WHOLE_PAGE * article;
    is_part || (is_whole_page && is_article)
}

/// Counts words, without those of the addresses of links and pictures.
fn words(markdown: &str) -> f64 {
    let mut count = 0;
    let mut rest = markdown;
    while let Some((before, after)) = rest.split_once("](") {
        count += of_text(before);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    (count + of_text(rest)) as f64
}

fn of_text(text: &str) -> usize {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).count()
}

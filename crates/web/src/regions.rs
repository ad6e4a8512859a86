//! The region of a page that is named as its text, and the text in it.

use std::sync::LazyLock;

use dom_query::{Document, NodeRef};
use regex::Regex;

use crate::boilerplate::{prune, words};
use crate::main_text::SHORT;

/// Names that a page gives to the part with its text, the most certain ones first.
static REGIONS: LazyLock<[(Regex, Regex); 4]> = LazyLock::new(|| {
    let pair = |id: &str, class: &str| (words(id), words(class));
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

/// Returns the text of the most certain region with text; an empty document without one.
pub fn regions(document: &Document) -> Document {
    let is_part = |node: &NodeRef<'_>| {
        ["article", "div", "main", "section"].iter().any(|name| node.has_name(name))
    };
    let nodes: Vec<_> = document.root().descendants().into_iter().filter(is_part).collect();
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
        prune(region);
        let of_paragraphs: usize =
            document.select("p").nodes().iter().map(NodeRef::normalized_char_count).sum();
        takes_all |= of_paragraphs < 3 * SHORT;
        let part = region.to_fragment();
        if !takes_all {
            drop_loose(&part.root());
        }
        drop_empty_titles(&part.root());
        let blocks =
            part.select("p, ul, ol, dl, h1, h2, h3, h4, h5, h6, blockquote, pre, table, br");
        if part.root().normalized_char_count() > 0 && (blocks.length() > 1 || takes_all) {
            return part;
        }
    }
    Document::fragment("")
}

/// Elements whose text is a page's text.
const BLOCKS: &str = "p ul ol dl h1 h2 h3 h4 h5 h6 blockquote pre q code table summary li hr";

pub fn is_block(node: &NodeRef<'_>) -> bool {
    node.node_name().is_some_and(|name| BLOCKS.split(' ').any(|block| block == &*name))
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

const TITLES: [&str; 6] = ["h1", "h2", "h3", "h4", "h5", "h6"];

/// Removes titles without following text.
pub fn drop_empty_titles(region: &NodeRef<'_>) {
    let rank = |node: &NodeRef<'_>| TITLES.iter().position(|name| node.has_name(name));
    let mut open: Vec<(usize, NodeRef<'_>)> = Vec::new();
    for node in region.descendants() {
        if let Some(rank) = rank(&node) {
            while let Some((_, title)) = open.pop_if(|(other, _)| *other >= rank) {
                title.remove_from_parent();
            }
            open.push((rank, node));
        } else if node.is_nonempty_text()
            && !node.ancestors_it(None).any(|one| rank(&one).is_some())
        {
            open.clear();
        }
    }
    for (_, title) in open {
        title.remove_from_parent();
    }
}

pub fn paragraphs(document: &Document) -> Document {
    let copy = document.clone();
    prune(&copy.root());
    let all = copy.select("p, pre, blockquote, table");
    let outer = all.nodes().iter().filter(|node| {
        !node
            .ancestors_it(None)
            .any(|one| ["p", "pre", "blockquote", "table"].iter().any(|name| one.has_name(name)))
    });
    Document::fragment(outer.map(|node| node.html().to_string()).collect::<String>())
}

//! The parts of a page outside of its text, recognized by elements, by the words in IDs and classes, and by the share
//! of links.
//!
//! The rules and their numbers are trafilatura's (Adrien Barbaresi, Apache-2.0), which are chosen on thousands of pages.

use std::collections::HashSet;
use std::sync::LazyLock;

use dom_query::{Document, NodeRef};
use regex::Regex;

/// Elements that hold no text of an article.
const DROPPED: &str = "aside, embed, fencedframe, footer, iframe, menu, object, script, applet, audio, canvas, figure, map, picture, svg, \
     video, area, blink, button, datalist, dialog, frame, frameset, fieldset, link, input, ins, label, legend, marquee, math, menuitem, nav, \
     noindex, optgroup, option, output, param, progress, rp, rt, rtc, select, source, style, track, textarea, time, use, img, \
     template, meta";

/// Elements that are judged by their ids and classes.
const JUDGED: [&str; 10] = ["div", "dd", "dl", "dt", "li", "ol", "p", "section", "span", "ul"];

pub(crate) fn words(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|_| unreachable!("a fixed expression"))
}

static OF_BOTH: LazyLock<Regex> = LazyLock::new(|| {
    words(
        "^shar|social|viral|newsletter|syndication|tags|sidebar|banner|bread-?crumb|button|author",
    )
});
static OF_ID: LazyLock<Regex> = LazyLock::new(|| {
    words(
        "^(?:jp-|dpsp-content)|[fF]ooter|[sS]hare|[nN]av|menu|related|message-container|premium|caption",
    )
});
static OF_CLASS: LazyLock<Regex> = LazyLock::new(|| {
    words(
        "^(?:nav|post-nav|ZendeskForm)|subnav|avigation|navbar|navbox|menu|bar| ad |-ad-|outbrain|taboola|criteo|paid-?content|\
         widget|[fF]ooter|[bB]yline|share-|sociable|embed|tag-list|consent|modal-content|permission|elated|next-|-stories|\
         most-popular|meta|rating|attachment|timestamp|user-info|user-profile|-icon|article-infos|message-container|slide|\
         viewport|overlay|options|expand|obfuscated|blurred|caption",
    )
});
static HIDDEN: LazyLock<Regex> = LazyLock::new(|| {
    words(
        "^hide-|comments-title|nocomments|-reply-|message|akismet|suggest-links|-hide-|hide-print| hidden| hide|noprint|notloaded",
    )
});
static COMMENTS_ID: LazyLock<Regex> =
    LazyLock::new(|| words("^(?:[cC]omment|comol|disqus_thread|dsq-comments)"));
static COMMENTS_CLASS: LazyLock<Regex> =
    LazyLock::new(|| words("^[cC]omment|(?:article|post)-comments"));
static APPENDED: LazyLock<Regex> =
    LazyLock::new(|| words("mvp-post-add-(?:box|wrap)|infinite-?scroll"));

/// Programs that make forums, as their pages name them.
static FORUMS: LazyLock<Regex> = LazyLock::new(|| {
    words("(?i)phpbb|vbulletin|xenforo|discourse|smf|mybb|invision|flarum|nodebb")
});

/// Returns whether a page has questions and answers, whose text its readers write.
pub fn is_forum(document: &Document) -> bool {
    let says = |selector: &str, pattern: &Regex| {
        document.select(selector).nodes().iter().any(|node| {
            [node.text(), node.attr_or("content", ""), node.attr_or("itemtype", "")]
                .iter()
                .any(|text| pattern.is_match(text))
        })
    };
    says("script[type='application/ld+json'], [itemtype]", &THREADS)
        || says("meta[name='generator']", &FORUMS)
        || document.select("html#XF, body#phpbb").exists()
}

static THREADS: LazyLock<Regex> =
    LazyLock::new(|| words("DiscussionForumPosting|QAPage|schema.org/Question$"));

/// Takes out what readers write below an article, and the articles that are shown when it ends.
pub fn drop_comments(document: &Document) {
    for node in document.root().descendants() {
        let Some(name) = node.node_name() else { continue };
        let id = node.attr_or("id", "");
        let class = node.attr_or("class", "");
        let is_appended = matches!(&*name, "div" | "section" | "aside")
            && (APPENDED.is_match(&id) || APPENDED.is_match(&class));
        let is_comment = matches!(&*name, "div" | "dl" | "details" | "ol" | "section" | "ul")
            && (COMMENTS_ID.is_match(&id) || COMMENTS_CLASS.is_match(&class));
        if is_appended || is_comment {
            node.remove_from_parent();
        }
    }
}

/// Takes out the elements that hold no text.
pub fn drop_elements(document: &Document) {
    document.select("figure:has(table)").rename("div");
    document.select("table[role='presentation'], table[role='none']").rename("div");
    document.select(DROPPED).remove();
    let whole = document.root().normalized_char_count();
    for wrapper in document.select("form, noscript").nodes() {
        // Some sites put the whole page into one.
        if wrapper.normalized_char_count() * 2 > whole {
            wrapper.rename("div");
        } else {
            wrapper.remove_from_parent();
        }
    }
}

/// Takes out the parts of a page that are named as navigation and the like, and lists that are all links.
pub fn prune_page(page: &NodeRef<'_>) {
    drop_judged(page, is_unwanted);
    drop_links(page, &["p"], false);
}

/// Takes out the parts of a region that are not its text.
pub fn prune(region: &NodeRef<'_>) {
    drop_judged(region, |node| is_unwanted(node) || is_teaser(node));
    for _ in 0..2 {
        drop_links(region, &["div"], true);
        drop_links(region, &["ul", "ol", "dl"], false);
        drop_links(region, &["p"], false);
    }
    let tables = region.descendants().into_iter().filter(|node| node.has_name("table"));
    for table in tables.filter(is_table_of_links).collect::<Vec<_>>() {
        table.remove_from_parent();
    }
}

fn drop_judged(region: &NodeRef<'_>, is_unwanted: impl Fn(&NodeRef<'_>) -> bool) {
    let before = region.normalized_char_count();
    let mut within = HashSet::new();
    let mut unwanted = Vec::new();
    let mut taken = 0;
    for node in region.descendants() {
        let is_within = node.parent().is_some_and(|parent| within.contains(&parent.id));
        if is_within || is_unwanted(&node) {
            within.insert(node.id);
        }
        if !is_within && within.contains(&node.id) {
            taken += node.normalized_char_count();
            unwanted.push(node);
        }
    }
    // The rules do not fit a page if they remove nearly all of it.
    if before.saturating_sub(taken) > before / 7 {
        unwanted.iter().for_each(|node| node.remove_from_parent());
    }
}

fn is_teaser(node: &NodeRef<'_>) -> bool {
    let names = [node.attr_or("id", ""), node.attr_or("class", "")];
    node.node_name().is_some_and(|name| JUDGED.contains(&&*name))
        && names.iter().any(|name| name.contains("teaser") || name.contains("Teaser"))
}

fn is_unwanted(node: &NodeRef<'_>) -> bool {
    let Some(name) = node.node_name() else { return false };
    let get = |name: &str| node.attr_or(name, "");
    let id = get("id");
    let class = get("class");
    let style = get("style");
    let is_hidden = style.contains("display:none")
        || style.contains("display: none")
        || style.contains("hidden")
        || id.contains("hidden")
        || id.starts_with("reply-")
        || id.contains("reader-comments")
        || HIDDEN.is_match(&class)
        || &*get("aria-hidden") == "true";
    if is_hidden {
        return true;
    }
    JUDGED.contains(&&*name)
        && (OF_BOTH.is_match(&id)
            || OF_BOTH.is_match(&class)
            || OF_ID.is_match(&id)
            || OF_CLASS.is_match(&class)
            || get("role").to_ascii_lowercase().contains("nav")
            || (id.is_empty() && class.contains("cookie"))
            || id.contains("cookie"))
}

fn links(node: &NodeRef<'_>) -> Vec<usize> {
    let links = node.descendants().into_iter().filter(|node| node.has_name("a"));
    links.map(|link| link.normalized_char_count()).collect()
}

fn drop_links(region: &NodeRef<'_>, names: &[&str], backtracks: bool) {
    let nodes = region.descendants().into_iter();
    let judged = nodes.filter(|node| names.iter().any(|name| node.has_name(name)));
    let unwanted: Vec<_> = judged.filter(|node| is_of_links(node, backtracks)).collect();
    unwanted.iter().for_each(|node| node.remove_from_parent());
}

/// Returns whether an element is navigation and not text, by its links.
fn is_of_links(node: &NodeRef<'_>, backtracks: bool) -> bool {
    let all = links(node);
    let length = node.normalized_char_count();
    let is_paragraph = node.has_name("p");
    let is_last = node.next_element_sibling().is_none();
    if all.is_empty() || (is_paragraph && node.parent().is_some_and(|one| is_item(&one))) {
        return false;
    }
    if let [one] = all[..]
        && one > 100
        && one * 10 > length * 9
    {
        return true;
    }
    let limit = if is_paragraph {
        if is_last { 60 } else { 30 }
    } else if is_last {
        300
    } else {
        100
    };
    let filled: Vec<usize> = all.iter().copied().filter(|length| *length > 0).collect();
    let of_links: usize = filled.iter().sum();
    if length < limit {
        let short = filled.iter().filter(|length| **length < 10).count();
        return filled.is_empty()
            || of_links * 10 > length * 8
            || (filled.len() > 1 && short * 10 > filled.len() * 8)
            || (backtracks && length > 0 && length < 100 && node.element_children().len() >= 3);
    }
    all.len() > 4 && of_links * 10 > length * 9 && of_links < 100 * filled.len()
}

fn is_item(node: &NodeRef<'_>) -> bool {
    ["li", "dd", "dt", "td", "th"].iter().any(|name| node.has_name(name))
}

fn is_table_of_links(table: &NodeRef<'_>) -> bool {
    let length = table.normalized_char_count();
    let of_links: usize = links(table).iter().sum();
    let most = if length < 1_000 { 8 } else { 5 };
    length >= 200 && of_links * 10 > length * most
}

//! What of a page is its text, and what is around it.

use perihelion_web::{Limits, read};
use url::Url;

#[expect(clippy::unwrap_used, reason = "the address is right")]
fn text(head: &str, body: &str) -> String {
    let url = Url::parse("https://sea.test/tides").unwrap();
    let html = format!("<html><head><title>Tides</title>{head}</head><body>{body}</body></html>");
    read(&url, "text/html", &html, &Limits::default()).text
}

fn paragraphs(about: &str) -> String {
    let one = |n: usize| {
        format!(
            "<p>Part {n} of {about} says that the tide rises and falls with the moon, as sailors have known for long.</p>"
        )
    };
    (0..8).map(one).collect()
}

#[test]
fn elements_marked_as_other_content_are_left_out() {
    let main = paragraphs("the article");
    for extra in [
        "<div class='share-buttons'>WRONG share</div>",
        "<ul id='related-articles'><li>WRONG other</li></ul>",
        "<p class='byline'>WRONG author</p>",
        "<div class='wp-caption'>WRONG photograph</div>",
        "<figure><img src='a.png'><figcaption>WRONG photograph</figcaption></figure>",
        "<div style='display:none'>WRONG hidden</div>",
        "<span aria-hidden='true'>WRONG icon</span>",
        "<aside>WRONG aside</aside>",
        "<div class='teaser'>WRONG teaser</div>",
        "<div><a href='/a'>WRONG one</a> <a href='/b'>WRONG two</a></div>",
        "<form><label>WRONG search</label></form>",
        "<h2>WRONG title of nothing</h2>",
    ] {
        for page in [
            format!("<div class='article-body'>{main}{extra}</div>"),
            format!("<article>{extra}{main}</article>{extra}"),
        ] {
            let read = text("", &page);
            assert!(read.contains("Part 0 of the article") && read.contains("Part 7"), "{read}");
            let is_title = extra.starts_with("<h2>") && page.starts_with("<article>");
            assert!(is_title || !read.contains("WRONG"), "{extra}: {read}");
        }
    }
}

#[test]
fn comments_are_left_out_of_articles_and_are_the_text_of_forums() {
    let page = format!(
        "<article>{}</article><div class='comments'>{}</div>",
        paragraphs("the article"),
        paragraphs("a comment").repeat(3)
    );
    let read = text("", &page);
    assert!(read.contains("the article") && !read.contains("a comment"), "{read}");
    let forum =
        "<script type='application/ld+json'>{\"@type\": \"DiscussionForumPosting\"}</script>";
    let read = text(forum, &page);
    assert!(read.contains("the article") && read.contains("a comment"), "{read}");
}

#[test]
fn the_metadata_of_a_page_fills_missing_fields() {
    let about = "The moon pulls at the sea twice a day, and the sea follows it twice a day.";
    let described = format!("<meta name='description' content='{about}'>");
    let page =
        format!("<div class='intro'>{about} Slowly.</div><article>{}</article>", paragraphs("it"));
    let read = text(&described, &page);
    assert!(read.starts_with(&format!("{about} Slowly.")), "the lead is set apart: {read}");
    let product = format!(
        "<script type='application/ld+json'>{{\"@type\": \"Product\", \"description\": \"{about} {about}\"}}</script>"
    );
    let read = text(&product, "<h1>Tide table</h1><p>Buy it.</p>");
    assert!(read.contains(about), "{read}");
    let whole = format!(
        "<script type='application/ld+json'>{{\"@type\": \"Article\", \"articleBody\": \"{about} {about}\"}}</script>"
    );
    let read = text(&whole, "<div id='app'></div>");
    assert!(read.contains(about), "{read}");
}

#[test]
fn a_page_within_a_form_is_read() {
    let read = text("", &format!("<form><div id='content'>{}</div></form>", paragraphs("a form")));
    assert!(read.contains("Part 0 of a form") && read.contains("Part 7"), "{read}");
}

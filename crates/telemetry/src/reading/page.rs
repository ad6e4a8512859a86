//! A trace as one HTML file: no build, no network, no address outside it.
//!
//! The template, its style and its script lie in `web/trace/`. The page contains the data as JSON in which `<`, `>` and
//! `&` are escaped, so no text of a model or a tool can end its element; the content policy permits only the page's own
//! script.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::ids::hex;
use crate::{About, Span, SpanId};
use perihelion_llm::ChatMessage;

const TEMPLATE: &str = include_str!("../../../../web/trace/page.html");
const STYLE: &str = include_str!("../../../../web/trace/page.css");
const SCRIPT: &str = include_str!("../../../../web/trace/page.js");

/// Maximum bytes of a page's texts; a browser stays fast with that.
const PAGE_BYTES: usize = 24 * 1024 * 1024;

/// Bytes of spans in one element: few enough for a browser to parse quickly.
const PART_BYTES: usize = 64 * 1024;

/// Bytes of one text, however few there are.
const TEXT_BYTES: usize = 32 * 1024;

/// Bytes of one text, however many there are.
const LEAST_BYTES: usize = 256;

/// Writes the page: `head` is an object with the trace's metadata, in addition to its spans.
///
/// Messages of a model call that the previous call contains are counted instead of repeated, and texts are cut so that
/// a page has at most some tens of megabytes.
pub fn page(
    title: &str,
    head: &impl Serialize,
    spans: &[Span],
) -> Result<String, serde_json::Error> {
    let mut data = match serde_json::to_value(head)? {
        Value::Object(head) => head,
        other => Map::from_iter([("head".to_owned(), other)]),
    };
    data.remove("spans");
    let data = escaped(&serde_json::to_string(&data)?);
    let parts = parts(&slim(spans)?)?;
    // A digest of the data, so no text in the data can contain it.
    let digest = Sha256::new().chain_update(&data).chain_update(&parts).finalize();
    let nonce = hex(&digest[..16]);
    let own = TEMPLATE.len() + STYLE.len() + SCRIPT.len();
    let mut page = String::with_capacity(data.len() + parts.len() + own);
    let mut rest = TEMPLATE;
    // In one pass, so that a placeholder within what was put in stays what it is.
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        page.push_str(before);
        match name {
            "title" => page.push_str(&text(title)),
            "nonce" => page.push_str(&nonce),
            "style" => page.push_str(STYLE),
            "script" => page.push_str(SCRIPT),
            "data" => page.push_str(&data),
            "spans" => page.push_str(&parts),
            _ => {}
        }
        rest = after;
    }
    page.push_str(rest);
    Ok(page)
}

/// Writes spans as elements, each with an array of as many as fit.
fn parts(spans: &[Value]) -> Result<String, serde_json::Error> {
    let mut parts = String::new();
    let mut part = String::new();
    let mut end = |part: &mut String| {
        parts.push_str("<script type=\"application/json\" class=\"spans\">[");
        parts.push_str(&std::mem::take(part));
        parts.push_str("]</script>\n");
    };
    for span in spans {
        let span = escaped(&serde_json::to_string(span)?);
        if !part.is_empty() && part.len() + span.len() > PART_BYTES {
            end(&mut part);
        }
        if !part.is_empty() {
            part.push(',');
        }
        part.push_str(&span);
    }
    if !part.is_empty() {
        end(&mut part);
    }
    Ok(parts)
}

/// Escapes what could end a script element, in a way that JSON reads back.
fn escaped(json: &str) -> String {
    json.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
}

fn text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn slim(spans: &[Span]) -> Result<Vec<Value>, serde_json::Error> {
    let mut shown = Vec::with_capacity(spans.len());
    let mut before: HashMap<Option<SpanId>, &[ChatMessage]> = HashMap::new();
    for span in spans {
        let mut value = serde_json::to_value(span)?;
        if let About::Chat { input: Some(input), .. } = &span.about {
            let known = before.insert(span.parent, &input.messages).unwrap_or_default();
            let same =
                known.iter().zip(&input.messages).take_while(|(known, one)| known == one).count();
            value["input"] = json!(input.messages[same..]);
            value["input_before"] = json!(same);
        }
        shown.push(value);
    }
    let texts = shown.iter().map(count_long).sum::<usize>().max(1);
    let most = (PAGE_BYTES / texts).clamp(LEAST_BYTES, TEXT_BYTES);
    shown.iter_mut().for_each(|value| cut(value, most));
    Ok(shown)
}

fn count_long(value: &Value) -> usize {
    match value {
        Value::String(text) => usize::from(text.len() > LEAST_BYTES),
        Value::Array(list) => list.iter().map(count_long).sum(),
        Value::Object(map) => map.values().map(count_long).sum(),
        _ => 0,
    }
}

fn cut(value: &mut Value, most: usize) {
    match value {
        Value::String(text) if text.len() > most => {
            let end = text.floor_char_boundary(most);
            let whole = text.len();
            text.truncate(end);
            text.push_str(&format!("… (the first {end} of {whole} bytes)"));
        }
        Value::Array(list) => list.iter_mut().for_each(|value| cut(value, most)),
        Value::Object(map) => map.values_mut().for_each(|value| cut(value, most)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_data_can_close_the_element_that_contains_it() {
        let hostile = "</script><script>alert(1)</script><!--{{script}} & \u{2028}";
        let page = page(hostile, &json!({ "title": hostile }), &[]).unwrap();
        let (_, rest) =
            page.split_once("<script type=\"application/json\" id=\"trace-data\">").unwrap();
        let (data, _) = rest.split_once("</script>").unwrap();
        let read: Value = serde_json::from_str(data).unwrap();
        assert_eq!(read["title"], hostile);
        assert_eq!(page.matches("alert(1)").count(), 3, "in title, heading and data, as text");
        assert_eq!(page.matches("<script").count(), 2);
    }

    #[test]
    fn spans_are_grouped_into_elements_of_a_few_each() {
        assert_eq!(parts(&[]).unwrap(), "");
        let span =
            |index: usize| json!({ "name": format!("<{index}>"), "text": "x".repeat(20_000) });
        let spans: Vec<Value> = (0..10).map(span).collect();
        let written = parts(&spans).unwrap();
        let read: Vec<Vec<Value>> = written
            .lines()
            .map(|line| line.split_once('>').unwrap().1.strip_suffix("</script>").unwrap())
            .map(|json| serde_json::from_str(json).unwrap())
            .collect();
        assert_eq!(read.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 3, 1]);
        assert_eq!(read.concat(), spans);
    }

    #[test]
    fn long_texts_are_cut_between_characters_and_marked() {
        let mut value = json!({ "a": ["ä".repeat(1_000)] });
        assert_eq!(count_long(&value), 1);
        cut(&mut value, 257);
        assert_eq!(value["a"][0], format!("{}… (the first 256 of 2000 bytes)", "ä".repeat(128)));
    }
}

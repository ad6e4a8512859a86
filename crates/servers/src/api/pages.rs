//! Lists in pages: the position of the next one, and how two are joined.

use perihelion_openapi::Base;
use serde_json::Value;
use url::Url;

use super::client::Answer;

/// Fields of a body that hold the address of the next page.
const NEXT: [&str; 7] = [
    "/next",
    "/links/next",
    "/links/next/href",
    "/_links/next/href",
    "/@odata.nextLink",
    "/nextLink",
    "/paging/next",
];

/// Returns the address of the next page, if it is within the base.
pub fn next(answer: &Answer, current: &Url, base: &Base) -> Option<Url> {
    if !(200..300).contains(&answer.status) || answer.is_cut {
        return None;
    }
    let link = answer.headers.get("link").and_then(Value::as_str).and_then(linked);
    let named = || {
        let texts = NEXT.iter().filter_map(|pointer| answer.body.pointer(pointer)?.as_str());
        texts.into_iter().find(|text| is_address(text))
    };
    let next = current.join(link.or_else(named)?).ok()?;
    (base.contains(&next) && next != *current).then_some(next)
}

/// Adds a page to those before it; returns whether it had entries, or `None` if it does not fit.
pub fn join(body: &mut Value, page: Value) -> Option<bool> {
    match (body, page) {
        (Value::Array(list), Value::Array(more)) => Some(appended(list, more)),
        (Value::Object(entries), Value::Object(mut more)) => {
            // The one list of the body is what is paged.
            let mut lists = entries.iter().filter(|(_, value)| value.is_array());
            let (Some((name, _)), None) = (lists.next(), lists.next()) else { return None };
            let name = name.clone();
            let added = match more.remove(&name) {
                Some(Value::Array(added)) => added,
                None | Some(Value::Null) => Vec::new(),
                Some(_) => return None,
            };
            entries.extend(more);
            Some(appended(entries.get_mut(&name)?.as_array_mut()?, added))
        }
        (_, Value::Null) => Some(false),
        _ => None,
    }
}

fn appended(list: &mut Vec<Value>, more: Vec<Value>) -> bool {
    let has_more = !more.is_empty();
    list.extend(more);
    has_more
}

fn is_address(text: &str) -> bool {
    text.starts_with("http://")
        || text.starts_with("https://")
        || text.starts_with('/')
        || text.starts_with('?')
}

/// Reads the next page out of a Link header, whose addresses may contain commas.
fn linked(header: &str) -> Option<&str> {
    header.split('<').find_map(|link| {
        let (address, parameters) = link.split_once('>')?;
        let is_next = parameters.split(';').any(|parameter| {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let words = value.trim().trim_end_matches(',').trim_matches('"');
            name.trim().eq_ignore_ascii_case("rel")
                && words.split_whitespace().any(|word| word.eq_ignore_ascii_case("next"))
        });
        is_next.then(|| address.trim())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(link: &str, body: Value) -> Answer {
        let mut headers = serde_json::Map::new();
        headers.insert("link".into(), link.into());
        Answer { status: 200, headers, body, is_cut: false, size: 0 }
    }

    #[test]
    fn the_next_page_is_found_in_header_or_body_and_never_outside_the_base() {
        let base = Base::parse("https://a.test/v1").unwrap();
        let current = Url::parse("https://a.test/v1/x?page=1").unwrap();
        let next = |link: &str, body: Value| {
            super::next(&answer(link, body), &current, &base).map(String::from)
        };
        let header =
            "<https://a.test/v1/x?page=9>; rel=\"last\", </v1/x?page=2>; rel=\"prev next\"";
        assert_eq!(next(header, Value::Null).as_deref(), Some("https://a.test/v1/x?page=2"));
        let header = "</v1/x?ids=1,2&page=2>; title=\"a, b\"; rel=next, </v1/x?page=1>; rel=first";
        assert_eq!(
            next(header, Value::Null).as_deref(),
            Some("https://a.test/v1/x?ids=1,2&page=2")
        );
        assert_eq!(
            next("", json!({"@odata.nextLink": "https://a.test/v1/x?skip=2"})).as_deref(),
            Some("https://a.test/v1/x?skip=2")
        );
        assert_eq!(next("", json!({"next": "https://evil.test/v1/x"})), None);
        assert_eq!(next("</v2/x>; rel=next", Value::Null), None);
        assert_eq!(next("<https://a.test/v1/x?page=1>; rel=next", Value::Null), None);
        assert_eq!(next("", json!({"next": 7})), None);
    }

    #[test]
    fn pages_are_joined_as_lists_or_by_their_one_list() {
        let mut list = json!([1]);
        assert_eq!(join(&mut list, json!([2])), Some(true));
        assert_eq!(join(&mut list, json!([])), Some(false));
        let mut body = json!({"items": [1], "total": 2, "next": "x"});
        let page = json!({"items": [2], "total": 2, "next": null});
        assert_eq!(join(&mut body, page), Some(true));
        assert_eq!(body, json!({"items": [1, 2], "total": 2, "next": null}));
        assert_eq!(join(&mut body, json!({"total": 2})), Some(false));
        let mut body = json!({"a": [], "b": []});
        assert_eq!(join(&mut body, json!({"a": [1]})), None);
        assert_eq!(body, json!({"a": [], "b": []}));
    }
}

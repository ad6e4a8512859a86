//! What a call must not do although a model asks for it: turn a read into a write.

use perihelion_openapi::{Operation, Request};
use serde_json::{Map, Value};
use url::form_urlencoded;

use super::{Error, Result};

/// Names by which frameworks change the method of a request, without underscores, in addition to the headers that no
/// call can set.
const OVERRIDES: [&str; 4] =
    ["xhttpmethod", "xhttpmethodoverride", "xmethodoverride", "httpmethodoverride"];
/// Names that do so only with an underscore at their beginning.
const MARKED_OVERRIDES: [&str; 3] = ["method", "httpmethod", "methodoverride"];

/// Refuses a query or a field that would turn a request that reads into another one, unless the operation declares it.
pub fn check_override(operation: &Operation, request: &Request) -> Result<()> {
    let query = request.url.query_pairs().map(|(name, _)| name.into_owned());
    let body = request.body.as_ref().map(|body| fields(&body.bytes)).unwrap_or_default();
    let is_declared = |name: &str| operation.parameters.iter().any(|known| known.name == name);
    let mut names = query.chain(body);
    let found = names.find(|name| is_override(name) && !is_declared(name));
    found.map_or(Ok(()), |name| Err(Error::MethodOverride(name)))
}

fn is_override(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    // PHP reads any other character as an underscore.
    let is_marked = name.trim_start().starts_with(|c: char| !c.is_alphanumeric());
    OVERRIDES.contains(&plain.as_str()) || is_marked && MARKED_OVERRIDES.contains(&plain.as_str())
}

/// Returns the names of the fields of a body: JSON, a form, or a form of parts.
fn fields(body: &[u8]) -> Vec<String> {
    if let Ok(fields) = serde_json::from_slice::<Map<String, Value>>(body) {
        return fields.into_iter().map(|(name, _)| name).collect();
    }
    let text = String::from_utf8_lossy(body);
    let parts = text.split("form-data; name=\"").skip(1);
    let parts = parts.filter_map(|part| Some(part.split_once('"')?.0.to_owned()));
    let pairs = form_urlencoded::parse(body).map(|(name, _)| name.into_owned());
    pairs.chain(parts).collect()
}

#[cfg(test)]
mod tests {
    use perihelion_openapi::{Arguments, Base, Catalogue, render};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_read_with_a_part_that_changes_its_method_is_refused_however_it_is_written() {
        let content = |media: &str| json!({"content": {media: {"schema": {"type": "object"}}}});
        let operation = |media: &str| {
            let filter = json!({"name": "filter", "in": "query", "style": "form", "explode": true, "schema": {"type": "object"}});
            let open = json!({"name": "open", "in": "query", "allowReserved": true, "schema": {"type": "string"}});
            json!({"post": {"parameters": [filter, open], "requestBody": content(media)}})
        };
        let text = json!({
            "openapi": "3.0.0", "info": {"title": "x", "version": "1"},
            "paths": {
                "/json": operation("application/json"), "/form": operation("application/x-www-form-urlencoded"),
                "/parts": operation("multipart/form-data"), "/text": operation("text/plain"),
            },
        });
        let catalogue = Catalogue::read(&text.to_string()).unwrap();
        let base = Base::parse("http://api.test/").unwrap();
        let delete = json!({"_method": "DELETE"});
        for (path, query, body, is_refused) in [
            ("/json", json!({}), delete.clone(), true),
            ("/json", json!({}), json!(delete.to_string()), true),
            ("/json", json!({}), json!({"x_http_method_override": "DELETE"}), true),
            ("/json", json!({}), json!({"X-HTTP-Method": "DELETE"}), true),
            ("/json", json!({}), json!({".method": "DELETE"}), true),
            ("/json", json!({"filter": delete}), json!(null), true),
            ("/json", json!({"filter": {"X_Http-Method": "x"}}), json!(null), true),
            ("/json", json!({"open": "a;_method=DELETE"}), json!(null), false),
            ("/form", json!({}), json!(delete.to_string()), true),
            ("/form", json!({}), json!({".method": "DELETE"}), true),
            ("/parts", json!({}), json!(delete.to_string()), true),
            ("/parts", json!({}), json!({"a": "b", "_Method": "DELETE"}), true),
            ("/text", json!({}), json!(delete.to_string()), true),
            (
                "/json",
                json!({}),
                json!({"method": "card", "http_method": "GET", "a": delete}),
                false,
            ),
            ("/json", json!({"filter": {"method": "card"}}), json!(null), false),
            ("/form", json!({}), json!({"method": "a;_method=b"}), false),
        ] {
            let (operation, _) = catalogue.matched(&format!("POST {path}")).unwrap();
            let mut arguments = Arguments { body: Some(body.clone()), ..Arguments::default() };
            arguments.query = query.as_object().cloned().unwrap();
            let request = render(&catalogue, operation, &arguments, &base).unwrap();
            let refused = check_override(operation, &request);
            assert_eq!(refused.is_err(), is_refused, "{path} {query} {body}: {request:?}");
        }
    }
}

//! Which form a body and a parameter that is a document take, which headers a call may set, and when a server is unknown.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use perihelion_openapi::{Arguments, Base, BaseChoice, Catalogue, Error, Request, render};
use serde_json::{Map, Value, json};

const PATCH: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json";
const FORM: &str = "multipart/form-data";

fn call(content: Value, body: Value, headers: Map<String, Value>) -> Result<Request, Error> {
    let document = json!({"openapi": "3.0.0", "servers": [{"url": "https://a.test"}], "paths": {"/x": {"patch": {
        "operationId": "op", "requestBody": {"content": content}, "parameters": [
            {"name": "X-Forwarded-For", "in": "header", "schema": {"type": "string"}}]}}}});
    let catalogue = Catalogue::read(&document.to_string()).unwrap();
    let operation = catalogue.operation("op").unwrap();
    let base = Base::choose(&catalogue, operation, &BaseChoice::default()).unwrap();
    let arguments = Arguments { body: Some(body), headers, ..Arguments::default() };
    render(&catalogue, operation, &arguments, &base)
}

fn sent(content: Value, body: Value) -> Result<(String, String), Error> {
    let payload = call(content, body, Map::new())?.body.unwrap();
    Ok((payload.content_type(), String::from_utf8(payload.bytes).unwrap()))
}

#[test]
fn an_object_is_never_sent_as_a_json_patch_and_operations_are() {
    let object = json!({"name": "x"});
    let operations = json!([{"op": "replace", "path": "/name", "value": "x"}]);
    let forms = |names: &[&str]| {
        let forms: Map<String, Value> =
            names.iter().map(|name| ((*name).to_owned(), json!({"schema": {}}))).collect();
        Value::Object(forms)
    };
    for (names, body, media) in [
        (&[PATCH, MERGE][..], &object, MERGE),
        (&[PATCH, JSON], &object, JSON),
        (&[PATCH, "*/*"], &object, JSON),
        (
            &[PATCH, "application/strategic-merge-patch+json"],
            &object,
            "application/strategic-merge-patch+json",
        ),
        (
            &[PATCH, "application/x-www-form-urlencoded"],
            &object,
            "application/x-www-form-urlencoded",
        ),
        (
            &["Application/JSON-Patch+JSON; charset=utf-8", "application/vnd.api+json"],
            &object,
            "application/vnd.api+json",
        ),
        (&[JSON, MERGE, PATCH], &operations, PATCH),
        (&[MERGE, PATCH], &operations, PATCH),
        (&[PATCH], &operations, PATCH),
        (&[JSON], &operations, JSON),
        (&[JSON, PATCH], &json!([1]), JSON),
    ] {
        let chosen = sent(forms(names), body.clone()).unwrap().0;
        assert_eq!(chosen, media, "{names:?} for {body}");
    }
    let one = sent(forms(&[PATCH]), operations[0].clone()).unwrap().1;
    assert_eq!(one, operations.to_string());
    let refused = sent(forms(&[PATCH]), object.clone()).unwrap_err().to_string();
    assert!(refused.contains("give a list of operations"), "{refused}");
    // A description that says so takes an object.
    let content = json!({PATCH: {"schema": {"type": "object", "properties": {"name": {}}}}});
    assert_eq!(sent(content, object.clone()).unwrap().1, object.to_string());
}

#[test]
fn a_file_part_has_its_name_in_every_form() {
    let content = json!({JSON: {"schema": {}}, FORM: {"schema": {"type": "object", "properties": {
        "report": {"type": "string", "format": "binary"}, "note": {"type": "string"},
        "pages": {"type": "array", "items": {"type": "string", "format": "binary"}}}}}});
    for (body, head, bytes) in [
        (
            json!({"report": {"filename": "a.csv", "text": "1,2"}}),
            "name=\"report\"; filename=\"a.csv\"",
            "1,2",
        ),
        (
            json!({"report": {"filename": "ä 1.csv", "base64": "MSwy"}}),
            "name=\"report\"; filename=\"ä 1.csv\"",
            "1,2",
        ),
        (
            json!({"report": {"filename": "a.csv", "content": "1,2"}}),
            "name=\"report\"; filename=\"a.csv\"",
            "1,2",
        ),
        (
            json!({"pages": [{"filename": "1.txt", "text": "x"}, {"filename": "2.txt", "text": "y"}]}),
            "name=\"pages\"; filename=\"2.txt\"",
            "y",
        ),
    ] {
        let (media, text) = sent(content.clone(), body.clone()).unwrap();
        assert!(media.starts_with(FORM), "{body}: {media}");
        assert!(
            text.contains(&format!(
                "{head}\r\nContent-Type: application/octet-stream\r\n\r\n{bytes}\r\n"
            )),
            "{body}: {text}"
        );
    }
    let form = json!({FORM: content[FORM]});
    for (body, head) in [
        (json!({"report": "1,2"}), "name=\"report\"; filename=\"report\""),
        (json!({"report": {"base64": "MSwy"}}), "name=\"report\"; filename=\"report\""),
        (
            json!({"report": {"name": "b.csv", "data": "1,2"}}),
            "name=\"report\"; filename=\"b.csv\"",
        ),
        (json!({"pages": ["x", "y"]}), "name=\"pages\"; filename=\"pages\""),
        (json!({"note": "1,2"}), "name=\"note\"\r\n\r\n1,2"),
        (
            json!({"note": {"name": "b", "text": "t"}}),
            "name=\"note\"\r\nContent-Type: application/json",
        ),
    ] {
        let text = sent(form.clone(), body.clone()).unwrap().1;
        assert!(text.contains(head), "{body}: {text}");
    }
}

#[test]
fn no_header_makes_a_request_another_one() {
    for name in [
        "X-HTTP-Method-Override",
        "x-http-method",
        "X-Method-Override",
        "X_HTTP_METHOD_OVERRIDE",
        "X-Forwarded-For",
        "X-Forwarded-Host",
        "x-forwarded-proto",
        "X-Forwarded-Prefix",
        "X-Forwarded",
        "Forwarded",
        "X-Original-URL",
        "X-Original-Method",
        "X-Rewrite-URL",
        "X-Real-IP",
        "True-Client-IP",
        "CF-Connecting-IP",
        "X-Client-IP",
        "X-Remote-User",
        "X-Host",
        "Via",
        "Proxy-Connection",
        "X-Accel-Redirect",
        "X-Requested-HTTP-Method",
        "X-Forward-For",
        "Forwarded-For",
        "Fastly-Client-IP",
        "X-Azure-ClientIP",
        "X-ProxyUser-Ip",
        "X-Auth-Request-Email",
        "X-Envoy-External-Address",
        "X-MS-CLIENT-PRINCIPAL-NAME",
        "X-Goog-Authenticated-User-Email",
        "X-WEBAUTH-USER",
        "Impersonate-User",
        "X-SSL-Client-Verify",
        "X-Method",
    ] {
        let headers = Map::from_iter([(name.to_owned(), json!("DELETE"))]);
        let refused = call(json!({JSON: {"schema": {}}}), json!({}), headers);
        assert!(matches!(refused, Err(Error::ForbiddenHeader(_))), "{name}");
    }
    for name in ["X-Request-ID", "If-Match", "Idempotency-Key", "X-Api-Version", "Prefer", "Range"]
    {
        let headers = Map::from_iter([(name.to_owned(), json!("1"))]);
        assert!(call(json!({JSON: {"schema": {}}}), json!({}), headers).is_ok(), "{name}");
    }
}

#[test]
fn a_parameter_that_is_a_document_is_written_as_its_media_type_has_it() {
    for (media, schema, value, rendered) in [
        ("text/plain", json!({"type": "string"}), json!("hello"), "hello"),
        ("text/plain", json!({"type": "string"}), json!("5"), "5"),
        ("application/json", json!({"type": "integer"}), json!("5"), "5"),
        ("application/json", json!({"type": "boolean"}), json!("true"), "true"),
        ("application/json", json!({"type": "string"}), json!("5"), "%225%22"),
        ("application/json", json!({"type": "string"}), json!("hello"), "%22hello%22"),
        ("application/json", Value::Null, json!("[1]"), "%5B1%5D"),
        ("application/json", json!({}), json!("hello"), "%22hello%22"),
        ("application/json", json!({"type": "array"}), json!("[\"a\"]"), "%5B%22a%22%5D"),
        ("application/json", json!({"type": "array"}), json!("a,b"), "%22a%2Cb%22"),
        ("application/json", json!({"type": "object"}), json!({"a": 1}), "%7B%22a%22%3A1%7D"),
    ] {
        let mut content = json!({media: {}});
        if !schema.is_null() {
            content[media]["schema"] = schema.clone();
        }
        let document = json!({"openapi": "3.0.0", "servers": [{"url": "https://a.test"}], "paths": {"/x": {"get": {
            "operationId": "op", "parameters": [{"name": "p", "in": "query", "content": content}]}}}});
        let catalogue = Catalogue::read(&document.to_string()).unwrap();
        let operation = catalogue.operation("op").unwrap();
        let base = Base::choose(&catalogue, operation, &BaseChoice::default()).unwrap();
        let query = Map::from_iter([("p".to_owned(), value.clone())]);
        let arguments = Arguments { query, ..Arguments::default() };
        let request = render(&catalogue, operation, &arguments, &base).unwrap();
        let sent = request.url.query().unwrap();
        assert_eq!(sent, format!("p={rendered}"), "{media} {schema} {value}");
    }
}

#[test]
fn a_server_variable_without_a_default_is_the_operators_to_name() {
    for (url, base) in [
        ("http://{host}/v1", "http://eu.test/v1"),
        ("https://{host}:{port}", "https://eu.test:8443"),
    ] {
        let variables = json!({"host": {"description": "x"}, "port": {"default": 8443}});
        let document = json!({"openapi": "3.0.0", "servers": [{"url": url, "variables": variables}],
            "paths": {"/x": {"get": {"operationId": "op"}}}});
        let catalogue = Catalogue::read(&document.to_string()).unwrap();
        let operation = catalogue.operation("op").unwrap();
        let chosen = Base::choose(&catalogue, operation, &BaseChoice::default());
        assert!(matches!(chosen, Err(Error::NoBase)), "{chosen:?}");
        let variables = [("host".to_owned(), "eu.test".to_owned())];
        let named = BaseChoice { variables: &variables, ..BaseChoice::default() };
        assert_eq!(Base::choose(&catalogue, operation, &named).unwrap().as_str(), base);
    }
}

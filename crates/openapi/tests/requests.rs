//! Requests as they leave, over every style and kind of body, and the attacks that others fell for.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use base64::Engine as _;
use perihelion_openapi::{
    Arguments, Base, BaseChoice, Catalogue, Error, Finder, Request, describe, render,
};
use serde_json::{Value, json};

fn catalogue(document: Value) -> Catalogue {
    Catalogue::read(&document.to_string()).unwrap()
}

fn arguments(path: Value, query: Value, headers: Value, body: Value) -> Arguments {
    let map = |value: Value| value.as_object().cloned().unwrap_or_default();
    Arguments {
        path: map(path),
        query: map(query),
        headers: map(headers),
        body: Some(body).filter(|body| !body.is_null()),
    }
}

fn call(document: Value, operation: &str, arguments: &Arguments) -> Result<Request, Error> {
    let catalogue = catalogue(document);
    let operation = catalogue.operation(operation)?;
    let base = Base::choose(&catalogue, operation, &BaseChoice::default())?;
    render(&catalogue, operation, arguments, &base)
}

fn with_parameter(parameter: Value) -> Value {
    let path = if parameter["in"] == "path" { "/x/{p}/y" } else { "/x" };
    json!({"openapi": "3.0.0", "servers": [{"url": "https://api.test/v1"}],
           "paths": {path: {"get": {"operationId": "op", "parameters": [parameter]}}}})
}

fn url(parameter: Value, value: Value) -> String {
    let arguments = match parameter["in"].as_str() {
        Some("path") => arguments(json!({"p": value}), Value::Null, Value::Null, Value::Null),
        _ => arguments(Value::Null, json!({"p": value}), Value::Null, Value::Null),
    };
    call(with_parameter(parameter), "op", &arguments).unwrap().url.to_string()
}

#[test]
fn every_style_of_a_path_parameter_is_rendered_as_the_specification_has_it() {
    let list = json!([3, 4, "a/b"]);
    let object = json!({"r": 100, "g": 200});
    for (style, explode, value, rendered) in [
        ("simple", false, json!("a/b c"), "a%2Fb%20c"),
        ("simple", false, list.clone(), "3,4,a%2Fb"),
        ("simple", false, object.clone(), "r,100,g,200"),
        ("simple", true, object.clone(), "r=100,g=200"),
        ("simple", false, json!({"r": 100, "none": null}), "r,100"),
        ("label", false, json!(5), ".5"),
        ("label", true, list.clone(), ".3.4.a%2Fb"),
        ("label", true, object.clone(), ".r=100.g=200"),
        ("matrix", false, json!("x"), ";p=x"),
        ("matrix", false, list.clone(), ";p=3,4,a%2Fb"),
        ("matrix", true, list, ";p=3;p=4;p=a%2Fb"),
        ("matrix", true, object, ";r=100;g=200"),
    ] {
        let parameter = json!({"name": "p", "in": "path", "required": true, "style": style, "explode": explode, "schema": {}});
        assert_eq!(
            url(parameter, value),
            format!("https://api.test/v1/x/{rendered}/y"),
            "{style} {explode}"
        );
    }
}

#[test]
fn every_style_of_a_query_parameter_is_rendered_as_the_specification_has_it() {
    let list = json!(["a b", "c&d"]);
    let object = json!({"gte": 1, "in": ["x", "y"], "deep": {"er": true}, "none": null});
    for (style, explode, value, rendered) in [
        ("form", true, json!("a=b&c"), "p=a%3Db%26c"),
        ("form", true, list.clone(), "p=a%20b&p=c%26d"),
        ("form", false, list.clone(), "p=a%20b,c%26d"),
        ("spaceDelimited", false, list.clone(), "p=a%20b%20c%26d"),
        ("pipeDelimited", false, list.clone(), "p=a%20b%7Cc%26d"),
        ("form", true, json!({"a": 1, "b": 2}), "a=1&b=2"),
        ("form", false, json!({"a": 1, "b": 2}), "p=a,1,b,2"),
        ("deepObject", true, object, "p[gte]=1&p[in][]=x&p[in][]=y&p[deep][er]=true"),
    ] {
        let parameter =
            json!({"name": "p", "in": "query", "style": style, "explode": explode, "schema": {}});
        assert_eq!(
            url(parameter, value),
            format!("https://api.test/v1/x?{rendered}"),
            "{style} {explode}"
        );
    }
}

#[test]
fn a_list_that_arrives_as_text_becomes_a_list_if_the_parameter_is_a_list() {
    let parameter = json!({"name": "p", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}});
    assert_eq!(url(parameter.clone(), json!("[\"a\", \"b\"]")), "https://api.test/v1/x?p=a&p=b");
    assert_eq!(url(parameter, json!("a")), "https://api.test/v1/x?p=a");
    for (place, rendered) in [("query", "?p=1,2%202,3"), ("path", "/1,2%202,3/y")] {
        let list = json!({"name": "p", "in": place, "explode": false, "schema": {"type": "array", "items": {}}});
        assert_eq!(
            url(list.clone(), json!("1, 2 2,3")),
            format!("https://api.test/v1/x{rendered}")
        );
        let mut either = list;
        either["schema"]["type"] = json!(["array", "string"]);
        assert!(url(either, json!("1,2")).contains("1%2C2"));
    }
}

#[test]
fn a_path_value_never_becomes_a_step_or_a_second_segment() {
    let parameter =
        json!({"name": "p", "in": "path", "required": true, "schema": {"type": "string"}});
    let try_it = |value: Value| {
        call(
            with_parameter(parameter.clone()),
            "op",
            &arguments(json!({"p": value}), Value::Null, Value::Null, Value::Null),
        )
    };
    for value in ["..", ".", " .. "] {
        assert!(matches!(try_it(json!(value)), Err(Error::PathValue { .. })), "{value}");
    }
    assert!(try_it(json!("")).is_err());
    assert!(try_it(json!([])).is_err());
    for (value, segment) in [
        ("../../admin", "..%2F..%2Fadmin"),
        ("%2e%2e", "%252e%252e"),
        ("a?b#c", "a%3Fb%23c"),
        ("\\..\\", "%5C..%5C"),
        ("@evil.test", "%40evil.test"),
        ("\u{202e}\r\n", "%E2%80%AE%0D%0A"),
    ] {
        assert_eq!(
            try_it(json!(value)).unwrap().url.as_str(),
            format!("https://api.test/v1/x/{segment}/y")
        );
    }
}

#[test]
fn two_values_in_one_segment_cannot_make_a_step_together() {
    let document = json!({"openapi": "3.0.0", "servers": [{"url": "https://api.test/v1"}],
                          "paths": {"/x/{a}{b}": {"get": {"operationId": "op"}}}});
    let dots = arguments(json!({"a": ".", "b": "x"}), Value::Null, Value::Null, Value::Null);
    assert!(call(document.clone(), "op", &dots).is_err());
    let dots = arguments(json!({"a": ".b", "b": "."}), Value::Null, Value::Null, Value::Null);
    assert!(call(document, "op", &dots).is_err());
}

#[test]
fn everything_that_is_missing_is_named_at_once_and_unknown_names_get_the_nearest() {
    let document = json!({"openapi": "3.1.0", "servers": [{"url": "https://api.test"}], "paths": {"/u/{id}": {
        "parameters": [{"name": "q", "in": "query", "required": true, "schema": {}}],
        "put": {"operationId": "op", "requestBody": {"required": true, "content": {"application/json": {"schema":
            {"type": "object", "required": ["name", "created"], "properties": {"name": {}, "created": {"readOnly": true}}}}}}}}}});
    let none = Arguments::default();
    let message = call(document.clone(), "op", &none).unwrap_err().to_string();
    assert_eq!(message, "op needs values for: q (query), id (path), name (body)");
    let wrong = arguments(json!({"id": 1}), json!({"qq": 1}), Value::Null, Value::Null);
    assert!(
        call(document.clone(), "op", &wrong).unwrap_err().to_string().contains("did you mean q?")
    );
    let message = call(document, "opp", &none).unwrap_err().to_string();
    assert!(message.contains("did you mean op?"), "{message}");
}

#[test]
fn headers_are_checked_and_credentials_never_come_from_a_call() {
    let document = json!({"openapi": "3.0.0", "servers": [{"url": "https://api.test"}], "paths": {"/": {"get": {"operationId": "op",
        "parameters": [{"name": "X-Trace", "in": "header", "schema": {}}, {"name": "sid", "in": "cookie", "schema": {}}]}}}});
    let with = |headers: Value| {
        call(document.clone(), "op", &arguments(Value::Null, Value::Null, headers, Value::Null))
    };
    let request = with(json!({"x-trace": [1, 2], "sid": "a b", "X-Other": true})).unwrap();
    let find = |name: &str| {
        request.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    };
    assert_eq!(
        (find("x-trace"), find("cookie"), find("x-other")),
        (Some("1,2"), Some("sid=a%20b"), Some("true"))
    );
    for name in ["Authorization", "Host", "cookie", "Content-Length", "Proxy-Authorization"] {
        assert!(matches!(with(json!({name: "x"})), Err(Error::ForbiddenHeader(_))), "{name}");
    }
    assert!(matches!(with(json!({"X-A": "a\r\nHost: evil"})), Err(Error::Value { .. })));
    assert!(matches!(with(json!({"X A": "a"})), Err(Error::Value { .. })));
}

#[test]
fn every_kind_of_body_is_written() {
    let post = |media: &str, extra: Value, body: Value| {
        let mut content = json!({"schema": {"type": "object", "xml": {"name": "pet"},
            "properties": {"id": {"xml": {"attribute": true}}, "tags": {"type": "array", "xml": {"wrapped": true}, "items": {"xml": {"name": "tag"}}}}}});
        content["encoding"] = extra;
        let document = json!({"openapi": "3.0.0", "servers": [{"url": "https://api.test"}], "paths": {"/": {"post":
            {"operationId": "op", "requestBody": {"content": {media: content}}}}}});
        let request =
            call(document, "op", &arguments(Value::Null, Value::Null, Value::Null, body)).unwrap();
        let payload = request.body.unwrap();
        (payload.content_type(), String::from_utf8(payload.bytes).unwrap())
    };
    assert_eq!(
        post("application/json", Value::Null, json!({"a": [1]})),
        ("application/json".into(), "{\"a\":[1]}".into())
    );
    assert_eq!(post("application/json", Value::Null, json!("{\"a\": 1}")).1, "{\"a\":1}");
    let form = "application/x-www-form-urlencoded";
    assert_eq!(
        post(form, Value::Null, json!({"a": "x y", "b": [1, 2], "c": {"d": 1}})).1,
        "a=x%20y&b=1&b=2&c=%7B%22d%22%3A1%7D"
    );
    let deep = json!({"c": {"style": "deepObject", "explode": true}});
    assert_eq!(post(form, deep, json!({"c": {"d": 1}})).1, "c[d]=1");
    let xml = post("application/xml", Value::Null, json!({"id": 1, "tags": ["a", "<b>"]})).1;
    assert_eq!(
        xml,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><pet id=\"1\"><tags><tag>a</tag><tag>&lt;b&gt;</tag></tags></pet>"
    );
    let (media, parts) = post(
        "multipart/form-data",
        Value::Null,
        json!({"n": "v", "f": {"filename": "a\".txt", "text": "hi"}}),
    );
    assert_eq!(media, "multipart/form-data; boundary=perihelion-part");
    assert_eq!(
        parts,
        "--perihelion-part\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\nv\r\n\
        --perihelion-part\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a%22.txt\"\r\n\
        Content-Type: application/octet-stream\r\n\r\nhi\r\n--perihelion-part--\r\n"
    );
    // A file may contain the usual boundary, also encoded.
    let smuggled =
        "x\r\n--perihelion-part\r\nContent-Disposition: form-data; name=\"admin\"\r\n\r\n1";
    let base64 = base64::engine::general_purpose::STANDARD.encode(smuggled);
    for file in [json!({"base64": base64}), json!({"filename": "a", "text": smuggled})] {
        let (media, parts) = post("multipart/form-data", Value::Null, json!({"f": file}));
        let (_, boundary) = media.split_once("boundary=").unwrap();
        assert!(!smuggled.contains(boundary) && boundary.len() <= 70, "{boundary}");
        assert_eq!(parts.matches(boundary).count(), 2, "{parts}");
    }
    assert_eq!(post("text/plain", Value::Null, json!("hi")).1, "hi");
}

#[test]
fn servers_of_operation_path_and_document_count_in_this_order_with_variables() {
    let document = json!({"openapi": "3.0.0", "servers": [{"url": "http://a.test"}, {"url": "https://{region}.test/{v}",
        "variables": {"region": {"default": "eu"}, "v": {"default": "v2"}}}],
        "paths": {"/x": {"servers": [{"url": "https://path.test"}], "get": {"operationId": "own", "servers": [{"url": "//op.test/p/"}]},
                         "put": {"operationId": "path"}}, "/y": {"get": {"operationId": "root"}}}});
    let catalogue = catalogue(document);
    let base = |name: &str, choice: &BaseChoice<'_>| {
        Base::choose(&catalogue, catalogue.operation(name).unwrap(), choice)
            .unwrap()
            .as_str()
            .to_owned()
    };
    let plain = BaseChoice::default();
    assert_eq!(
        (base("own", &plain), base("path", &plain)),
        ("https://op.test/p".into(), "https://path.test".into())
    );
    assert_eq!(base("root", &plain), "https://eu.test/v2");
    let variables = [("region".to_owned(), "us".to_owned())];
    assert_eq!(
        base("root", &BaseChoice { variables: &variables, ..plain.clone() }),
        "https://us.test/v2"
    );
    let chosen = BaseChoice {
        context: Some(" "),
        environment: Some("https://env.test/z/"),
        configured: Some("https://c.test"),
        ..plain
    };
    assert_eq!(base("own", &chosen), "https://env.test/z");
}

#[test]
fn a_relative_server_needs_the_address_of_its_document() {
    let catalogue = catalogue(
        json!({"openapi": "3.0.0", "servers": [{"url": "/api"}], "paths": {"/x": {"get": {}}}}),
    );
    let operation = catalogue.operation("get /x").unwrap();
    assert!(matches!(
        Base::choose(&catalogue, operation, &BaseChoice::default()),
        Err(Error::NoBase)
    ));
    let choice =
        BaseChoice { document: Some("https://d.test/docs/openapi.json"), ..BaseChoice::default() };
    assert_eq!(
        Base::choose(&catalogue, operation, &choice).unwrap().as_str(),
        "https://d.test/api"
    );
    for bad in ["ftp://x", "http:///v1", "https://.example.com", "http:/v1", "https:x"] {
        assert!(matches!(Base::parse(bad), Err(Error::BadBase(_))), "{bad}");
    }
    assert!(!Base::parse("https://user:secret@x").unwrap_err().to_string().contains("secret"));
}

#[test]
fn swagger_2_is_read_with_its_bodies_forms_and_collections() {
    let document = json!({"swagger": "2.0", "host": "pets.test", "basePath": "/v2", "schemes": ["http", "https"],
        "paths": {"/pet/{id}": {"post": {"operationId": "update", "consumes": ["application/x-www-form-urlencoded"], "parameters": [
            {"name": "id", "in": "path", "required": true, "type": "integer"},
            {"name": "tags", "in": "query", "type": "array", "collectionFormat": "pipes", "items": {"type": "string"}},
            {"name": "status", "in": "formData", "required": true, "type": "string"}]}},
        "/pet": {"put": {"operationId": "put", "parameters": [{"$ref": "#/parameters/Pet"}]}}},
        "parameters": {"Pet": {"name": "body", "in": "body", "required": true, "schema": {"type": "object", "required": ["name"]}}}});
    let given = arguments(
        json!({"id": 7}),
        json!({"tags": ["a", "b"]}),
        Value::Null,
        json!({"status": "sold"}),
    );
    let request = call(document.clone(), "update", &given).unwrap();
    assert_eq!(request.url.as_str(), "https://pets.test/v2/pet/7?tags=a%7Cb");
    assert_eq!(request.body.unwrap().bytes, b"status=sold");
    let message = call(document, "put", &Arguments::default()).unwrap_err().to_string();
    assert_eq!(message, "put needs values for: name (body)");
}

#[test]
fn a_plain_yaml_list_is_read_with_groups_placeholders_and_passages() {
    let text = "base_url: https://shop.test/api\nendpoints:\n  - method: get\n    path: /products/:productId\n    description: One product\n\
                \x20   query_params:\n      - name: currency\n        description: ISO code\n  - POST /orders - Places an order\n\
                docs:\n  - title: Dates\n    text: Dates are YYYY-MM-DD.\n";
    let catalogue = Catalogue::read(text).unwrap();
    assert_eq!(
        catalogue.operations.iter().map(|o| o.id.as_str()).collect::<Vec<_>>(),
        ["GET /products/{productId}", "POST /orders"]
    );
    assert_eq!(catalogue.snippets[0].title, "Dates");
    let operation = catalogue.operation("GET /products/{productId}").unwrap();
    let base = Base::choose(&catalogue, operation, &BaseChoice::default()).unwrap();
    let given = arguments(
        json!({"productId": "a b"}),
        json!({"currency": "EUR", "undeclared": 1}),
        Value::Null,
        Value::Null,
    );
    let request = render(&catalogue, operation, &given, &base).unwrap();
    assert_eq!(
        request.url.as_str(),
        "https://shop.test/api/products/a%20b?currency=EUR&undeclared=1"
    );
}

#[test]
fn circles_of_references_end_and_are_named() {
    let document = json!({"openapi": "3.0.0", "servers": [{"url": "https://a.test"}], "paths": {"/n": {"post": {"operationId": "op",
        "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}}}}},
        "components": {"schemas": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}}},
                                   "A": {"allOf": [{"$ref": "#/components/schemas/A"}]}}}});
    let catalogue = catalogue(document);
    let described = describe(&catalogue, catalogue.operation("op").unwrap());
    assert_eq!(described["body"]["schema"]["properties"]["next"], json!({"schema": "Node"}));
}

#[test]
fn operations_that_return_an_id_are_found_with_operations_that_need_it() {
    let document = json!({"openapi": "3.0.0", "servers": [{"url": "https://a.test"}], "paths": {
        "/movie/{movie_id}/credits": {"get": {"operationId": "credits", "summary": "Cast and crew of a movie"}},
        "/search/movie": {"get": {"operationId": "search-movie", "summary": "Look up titles"}},
        "/tv/{id}": {"get": {"operationId": "tv", "summary": "A television show"}}}});
    let catalogue = catalogue(document);
    let finder = Finder::new(&catalogue);
    let found = finder.find(&catalogue, "who is in the cast and crew", 5);
    assert_eq!(found[0].operation.id, "credits");
    assert!(found.iter().any(|found| found.operation.id == "search-movie"));
}

#[test]
fn empty_and_invalid_descriptions_are_refused_by_name() {
    assert!(matches!(Catalogue::read("{\"openapi\": \"3.0.0\"}"), Err(Error::NoOperations)));
    let webhooks = Catalogue::read("{\"openapi\": \"3.1.0\", \"webhooks\": {}}").unwrap();
    assert_eq!(webhooks.operations.len(), 0);
    assert!(matches!(Catalogue::read("{\"a\": "), Err(Error::NotReadable(_))));
    assert!(matches!(Catalogue::read("a: [b"), Err(Error::NotReadable(_))));
    let odd = json!({"openapi": 3, "paths": {"/x": {"get": {"parameters": [7, {"in": "query"}, {"name": 1, "in": "path"}], "responses": []}}}});
    assert_eq!(catalogue(odd).operations.len(), 1);
}

#[test]
fn an_operation_is_found_by_a_path_with_its_values_in_it() {
    let document = json!({"openapi": "3.0.0", "servers": [{"url": "https://a.test"}], "paths": {
        "/users/me": {"get": {"operationId": "me"}}, "/users/{id}": {"get": {"operationId": "user"}}}});
    let catalogue = catalogue(document);
    let found = |name: &str| {
        catalogue.matched(name).map(|(operation, values)| (operation.id.clone(), values)).unwrap()
    };
    assert_eq!(found("GET /users/a%20b?x=1"), ("user".into(), vec![("id".into(), "a b".into())]));
    assert_eq!(found("get /users/me"), ("me".into(), vec![]));
    assert_eq!(found("GET /users/:id"), ("user".into(), vec![]));
    assert!(
        catalogue.matched("GET /users").is_err() && catalogue.matched("DELETE /users/7").is_err()
    );
}

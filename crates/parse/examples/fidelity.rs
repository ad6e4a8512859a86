//! Compares what is parsed with the ground truth of docling's fixtures, word by word.
//!
//! `cargo run --example fidelity -- DIR`, where DIR is docling's `tests/data`.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a report for a person, with its times"
)]

use std::collections::HashMap;
use std::path::Path;

use perihelion_parse::{Limits, parse};

fn words(text: &str) -> HashMap<String, usize> {
    let mut words = HashMap::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        *words.entry(word.to_lowercase()).or_insert(0) += 1;
    }
    words
}

fn f1(own: &str, truth: &str) -> f64 {
    let (own, truth) = (words(own), words(truth));
    let shared: usize =
        own.iter().map(|(word, count)| *count.min(truth.get(word).unwrap_or(&0))).sum();
    let all: usize = own.values().sum::<usize>() + truth.values().sum::<usize>();
    if all == 0 { 1.0 } else { 2.0 * shared as f64 / all as f64 }
}

/// Ground truth without what stands for pictures, and with its escapes undone.
fn truth(text: &str) -> String {
    text.replace("<!-- image -->", " ")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
        .replace('\\', "")
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let root = arguments.next().unwrap_or_else(|| "tests/data".to_owned());
    let shown = arguments.next();
    for format in ["docx", "xlsx", "html", "pdf", "pptx", "csv", "md"] {
        let sources = Path::new(&root).join(format).join("sources");
        let Ok(entries) = std::fs::read_dir(&sources) else { continue };
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        let mut scores = Vec::new();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let directory = Path::new(&root).join(format).join("groundtruth");
            let wanted = [format!("{name}.md"), format!("{stem}.md")];
            let Some(text) =
                wanted.iter().find_map(|name| std::fs::read_to_string(directory.join(name)).ok())
            else {
                continue;
            };
            let clock = std::time::Instant::now();
            let own = parse(&std::fs::read(&path)?, &name, &Limits::default());
            let took = clock.elapsed().as_millis();
            let score = match &own {
                Ok(parsed) => f1(&truth(&parsed.text), &truth(&text)),
                Err(_) => 0.0,
            };
            scores.push(score);
            let note = own.as_ref().err().map(|error| format!("  {error}")).unwrap_or_default();
            println!("{score:.3} {took:>6} ms  {format}/{name}{note}");
            if shown.as_deref() == Some(&name)
                && let Ok(parsed) = &own
            {
                println!("{}\n{:?}", parsed.text, parsed.warnings);
            }
        }
        let mean = scores.iter().sum::<f64>() / scores.len().max(1) as f64;
        println!("{mean:.3}  {format}: mean of {}\n", scores.len());
    }
    Ok(())
}

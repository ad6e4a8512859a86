//! Doc comments of the product are plain English, by the patterns of the documents.
//!
//! Schemas that go to models are made of doc comments too, and stay as they are: another text would be another request.

use std::collections::BTreeMap;

use super::english::{patterns, phrases, sentences};
use super::{Source, program, report};

/// Hits of the patterns per 1,000 words of a crate.
const HITS: f64 = 12.0;

/// No sentence has more words than this, except lists of names.
const LONGEST: usize = 45;

/// Words below which a crate has too few sentences for a density.
const LEAST_WORDS: usize = 1_000;

/// Returns the paragraphs of the doc comments of a file, without code, headings and tables.
fn paragraphs(source: &Source) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut is_code = false;
    for line in source.text.lines().map(str::trim) {
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let text = comment.map_or("", str::trim);
        let is_fence = text.starts_with("```");
        is_code = comment.is_some() && (is_code != is_fence);
        let item = text.strip_prefix("* ").or_else(|| text.strip_prefix("- "));
        let is_prose = !is_code && !is_fence && !text.starts_with(['#', '|']);
        if text.is_empty() || !is_prose || item.is_some() {
            all.push(String::new());
        }
        if let Some(paragraph) = all.last_mut().filter(|_| is_prose) {
            paragraph.push_str(item.unwrap_or(text));
            paragraph.push(' ');
        }
    }
    all
}

#[test]
fn doc_comments_are_plain_english() {
    let patterns = patterns();
    let mut crates: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in program() {
        let name = source.path.split("/src/").next().unwrap_or_default().to_owned();
        let all = paragraphs(&source);
        crates.entry(name).or_default().extend(all.iter().flat_map(|one| sentences(one)));
    }
    assert!(crates.len() > 20, "{:?}", crates.keys());
    let mut problems = Vec::new();
    for (name, all) in crates {
        let words: usize = all.iter().map(|one| one.split_whitespace().count()).sum();
        let found: Vec<String> = all
            .iter()
            .map(|one| (phrases(one, &patterns), one))
            .filter(|(found, _)| !found.is_empty())
            .map(|(found, one)| format!("    {found:?}: {one}"))
            .collect();
        let hits: usize = all.iter().map(|one| phrases(one, &patterns).len()).sum();
        let density = hits as f64 * 1_000.0 / words.max(LEAST_WORDS) as f64;
        if density > HITS {
            problems.push(format!("{name}: {density:.1} hits per 1,000 words; permitted: {HITS}"));
            problems.extend(found);
        }
        let is_long =
            |one: &&String| one.split_whitespace().count() > LONGEST && !one.contains("ptrace");
        problems.extend(all.iter().filter(is_long).map(|one| format!("{name}: too long: {one}")));
    }
    report(&problems, "Write doc comments as CONTRIBUTING.md (Language) has it.");
}

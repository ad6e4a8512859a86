//! Measures the main text of pages against what is expected of them: `make bench-web`.
//!
//! `WEB_PAGES` is the folder `test/test-pages` of a checkout of mozilla/readability: each case has a `source.html` and an `expected.html`. What is
//! compared is words with their counts, so that the form (Markdown here, HTML there) does not matter.
#![expect(clippy::print_stdout, reason = "its report")]
#![expect(clippy::unwrap_used, reason = "it stops at what it does not expect")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use perihelion_web::{Limits, read};
use url::Url;

fn main() {
    let Some(folder) = std::env::var_os("WEB_PAGES").filter(|value| !value.is_empty()) else {
        println!("absent: WEB_PAGES is not set, so that nothing is measured");
        return;
    };
    let mut cases: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    let address = Url::parse("http://fakehost/test/page.html").unwrap();
    let limits = Limits { characters: 10_000_000, ..Limits::default() };
    let mut scores: Vec<(f64, String)> = Vec::new();
    for case in cases {
        let (Ok(source), Ok(expected)) = (
            std::fs::read_to_string(case.join("source.html")),
            std::fs::read_to_string(case.join("expected.html")),
        ) else {
            continue;
        };
        let page = read(&address, "text/html", &source, &limits);
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        scores.push((f1(&without_targets(&page.text), &without_tags(&expected)), name));
    }
    assert!(!scores.is_empty(), "there are no cases in that folder");
    scores.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mean = scores.iter().map(|(score, _)| score).sum::<f64>() / scores.len() as f64;
    let median = scores[scores.len() / 2].0;
    println!(
        "main text: {} pages, F1 {mean:.3} on average, {median:.3} in the middle",
        scores.len()
    );
    for (score, name) in scores.iter().take(10) {
        println!("  {score:.3} {name}");
    }
}

fn f1(found: &str, expected: &str) -> f64 {
    let (found, expected) = (words(found), words(expected));
    let count = |words: &BTreeMap<String, usize>| words.values().sum::<usize>();
    let both: usize = found
        .iter()
        .map(|(word, times)| expected.get(word).map_or(0, |other| (*times).min(*other)))
        .sum();
    let all = count(&found) + count(&expected);
    if all == 0 { 1.0 } else { 2.0 * both as f64 / all as f64 }
}

fn words(text: &str) -> BTreeMap<String, usize> {
    let mut words = BTreeMap::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        *words.entry(word.to_lowercase()).or_default() += 1;
    }
    words
}

/// Leaves out where Markdown's links and pictures lead.
fn without_targets(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("](") {
        kept.push_str(&rest[..start]);
        kept.push(' ');
        let mut open = 0;
        let end = rest[start + 1..].find(|c| {
            open += i32::from(c == '(') - i32::from(c == ')');
            open == 0
        });
        rest = end.map_or("", |end| &rest[start + 1 + end + 1..]);
    }
    kept.push_str(rest);
    kept.replace("\\", "")
}

fn without_tags(html: &str) -> String {
    let mut kept = String::new();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        kept.push_str(&rest[..start]);
        kept.push(' ');
        rest = rest[start..].find('>').map_or("", |end| &rest[start + end + 1..]);
    }
    kept.push_str(rest);
    let entities = [
        ("&nbsp;", " "),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&#39;", "'"),
        ("&#x27;", "'"),
        ("&amp;", "&"),
    ];
    entities.iter().fold(kept, |text, (entity, char)| text.replace(entity, char))
}

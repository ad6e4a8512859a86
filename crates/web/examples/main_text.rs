//! Measures the main text of pages against what is expected of them: `make bench-web`.
//!
//! `WEB_PAGES` is the folder `test/test-pages` of a checkout of mozilla/readability: each case has a `source.html` and an `expected.html`.
//! `WEB_ARTICLES` is a checkout of scrapinghub/article-extraction-benchmark, `WEB_KINDS` one of Murrough-Foley/web-content-extraction-benchmark,
//! whose pages are of seven kinds. What is compared is words with their counts, so that the form (Markdown here, HTML there) does not matter.
//! `WEB_SNIPPETS` is a checkout of adbar/trafilatura, whose `tests/evaldata.json` says of each page which texts are in it and which are not.
#![expect(clippy::print_stdout, reason = "its report")]
#![expect(clippy::unwrap_used, reason = "it stops at what it does not expect")]

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use perihelion_web::{Limits, read};
use serde_json::Value;
use url::Url;

/// A page, what is expected of it, its name, and its kind where the cases tell it.
struct Case {
    name: String,
    kind: String,
    html: String,
    expected: String,
}

fn main() {
    if let Some(folder) = folder("WEB_PAGES") {
        report("mozilla/readability", mozilla(&folder), 10);
    }
    if let Some(folder) = folder("WEB_ARTICLES") {
        report("article-extraction-benchmark", articles(&folder), 0);
    }
    if let Some(folder) = folder("WEB_SNIPPETS") {
        snippets(&folder.join("tests"));
    }
    if let Some(folder) = folder("WEB_KINDS") {
        for part in ["dev", "test"] {
            let name = format!("web-content-extraction-benchmark, {part}");
            report(&name, kinds(&folder.join(part)), 0);
        }
    }
}

fn folder(name: &str) -> Option<PathBuf> {
    let found = std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if found.is_none() {
        println!("absent: {name} is not set, so that part is not measured");
    }
    found
}

fn report(pages: &str, cases: impl Iterator<Item = Case>, worst: usize) {
    let address = Url::parse("http://fakehost/test/page.html").unwrap();
    let limits = Limits { characters: 10_000_000, ..Limits::default() };
    let mut kinds: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut scores: Vec<(f64, String)> = cases
        .map(|case| {
            let page = read(&address, "text/html", &case.html, &limits);
            let score = f1(&without_targets(&page.text), &case.expected);
            kinds.entry(case.kind).or_default().push(score);
            (score, case.name)
        })
        .collect();
    assert!(!scores.is_empty(), "there are no cases in that folder");
    scores.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mean = scores.iter().map(|(score, _)| score).sum::<f64>() / scores.len() as f64;
    let median = scores[scores.len() / 2].0;
    let count = scores.len();
    println!("{pages}: {count} pages, F1 {mean:.3} on average, {median:.3} in the middle");
    for (kind, scores) in kinds.iter().filter(|(kind, _)| !kind.is_empty()) {
        let mean = scores.iter().sum::<f64>() / scores.len() as f64;
        println!("  {mean:.3} {kind}, {} pages", scores.len());
    }
    for (score, name) in scores.iter().take(worst) {
        println!("  {score:.3} {name}");
    }
}

/// Counts texts that are to be in a page and are (`both`), those that are missing, and those that are there and are not to be; by halves.
fn snippets(folder: &Path) {
    let limits = Limits { characters: 10_000_000, ..Limits::default() };
    let all = json(&folder.join("evaldata.json"));
    let mut halves = [[0_usize; 3]; 2];
    for (number, (address, case)) in all.as_object().unwrap().iter().enumerate() {
        let file = case["file"].as_str().unwrap();
        let bytes = ["cache", "eval"]
            .iter()
            .find_map(|part| std::fs::read(folder.join(part).join(file)).ok());
        let html = String::from_utf8(bytes.unwrap()).unwrap_or_else(|error| {
            error.into_bytes().iter().map(|byte| char::from(*byte)).collect()
        });
        let page = read(&Url::parse(address).unwrap(), "text/html", &html, &limits);
        let text = plain(&without_targets(&page.text));
        let is_there = |snippet: &Value| text.contains(&plain(snippet.as_str().unwrap()));
        let [wanted, unwanted] = ["with", "without"].map(|list| case[list].as_array().unwrap());
        let both = wanted.iter().filter(|one| is_there(one)).count();
        let [found, missing, wrong] = &mut halves[number % 2];
        *found += both;
        *missing += wanted.len() - both;
        *wrong += unwanted.iter().filter(|one| is_there(one)).count();
    }
    for (half, [both, missing, wrong]) in ["even", "odd"].iter().zip(halves) {
        let f = 2.0 * both as f64 / (2 * both + missing + wrong) as f64;
        println!(
            "trafilatura, {half} pages: F {f:.3} ({both} found, {missing} missing, {wrong} wrong)"
        );
    }
}

/// Leaves out what Markdown adds to a text, and squeezes its spaces.
fn plain(text: &str) -> String {
    let kept: String = text.chars().filter(|c| !"*_#|\\`[]>!".contains(*c)).collect();
    kept.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn mozilla(folder: &Path) -> impl Iterator<Item = Case> {
    entries(folder).into_iter().filter_map(|case| {
        let html = std::fs::read_to_string(case.join("source.html")).ok()?;
        let expected = std::fs::read_to_string(case.join("expected.html")).ok()?;
        Some(Case {
            name: stem(&case),
            kind: String::new(),
            html,
            expected: without_tags(&expected),
        })
    })
}

fn articles(folder: &Path) -> impl Iterator<Item = Case> {
    let truth = json(&folder.join("ground-truth.json"));
    entries(&folder.join("html")).into_iter().filter_map(move |path| {
        let name = stem(&path);
        let expected = truth.get(&name)?.get("articleBody")?.as_str()?.to_owned();
        Some(Case { html: unpacked(&path), expected, kind: String::new(), name })
    })
}

fn kinds(folder: &Path) -> impl Iterator<Item = Case> {
    let truths = folder.join("ground-truth");
    entries(&folder.join("html")).into_iter().filter_map(move |path| {
        let name = stem(&path);
        let truth = json(&truths.join(format!("{name}.json")));
        let expected = truth.pointer("/ground_truth/main_content")?.as_str()?.to_owned();
        let kind = truth.pointer("/_internal/page_type/primary")?.as_str()?.to_owned();
        Some(Case { html: unpacked(&path), expected, kind, name })
    })
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap().to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn unpacked(path: &Path) -> String {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).unwrap();
    flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn f1(found: &str, expected: &str) -> f64 {
    let found = words(found);
    let expected = words(expected);
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

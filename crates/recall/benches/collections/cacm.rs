//! The CACM collection: 3,204 titles and abstracts of articles, 52 questions that are judged.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use perihelion_recall::Item;

use crate::Collection;

pub fn read(root: &Path) -> Collection {
    let root = root.join("cacm");
    let mut items = Vec::new();
    for entry in std::fs::read_dir(&root).expect("a directory cacm") {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "html") {
            let id = path.file_stem().unwrap().to_string_lossy().into_owned();
            // Latin-1: each byte is a code point.
            let text: String = std::fs::read(&path).unwrap().into_iter().map(char::from).collect();
            items.push(Item::new(id, without_tags(&text)));
        }
    }
    items.sort_by(|one, other| one.id.cmp(&other.id));
    let topics = std::fs::read_to_string(root.join("topics.txt")).expect("topics.txt");
    let question = |part: &str| {
        let (_, rest) = part.split_once("<DOCNO>")?;
        let (number, text) = rest.split_once("</DOCNO>")?;
        Some((number.trim().parse().ok()?, text.to_owned()))
    };
    let questions = topics.split("</DOC>").filter_map(question).collect();
    let mut relevant: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
    for line in std::fs::read_to_string(root.join("qrels.txt")).expect("qrels.txt").lines() {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [question, _, document, _] = columns[..] else { continue };
        relevant.entry(question.parse().unwrap()).or_default().insert(document.to_owned());
    }
    Collection {
        name: "cacm",
        items,
        questions,
        relevant,
        least: (0.312, 0.0),
        least_by_meaning: &[("by meaning", (0.218, 0.321)), ("fused 1:1", (0.261, 0.387))],
    }
}

fn without_tags(text: &str) -> String {
    let outside = |part: &str| part.split_once('>').map_or("", |(_, rest)| rest).to_owned();
    let mut parts = text.split('<');
    let first = parts.next().unwrap_or_default().to_owned();
    std::iter::once(first).chain(parts.map(outside)).collect::<Vec<_>>().join(" ")
}

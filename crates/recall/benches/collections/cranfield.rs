//! The Cranfield collection: 1,400 abstracts on aerodynamics, 225 questions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use perihelion_recall::Item;

use crate::Collection;

pub fn read(root: &Path) -> Collection {
    let file = |name: &str| std::fs::read_to_string(root.join("cranfield").join(name)).expect(name);
    let documents = file("cran.all.1400.xml");
    let item = |part: &str| {
        let title = between(part, "title").unwrap_or_default();
        let text = between(part, "text").unwrap_or_default();
        Item::new(between(part, "docno").unwrap_or_default().trim(), format!("{title}\n{text}"))
    };
    let items =
        documents.split("</doc>").filter(|part| part.contains("<docno>")).map(item).collect();
    let topics = file("cran.qry.xml");
    // Numbered 1, 2, 4, 8, … and judged by their place.
    let questions = topics.split("</top>").filter_map(|part| between(part, "title"));
    let questions = (1..).zip(questions.map(str::to_owned)).collect();
    let mut relevant: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
    for line in file("cranqrel.trec.txt").lines() {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [question, _, document, grade] = columns[..] else { continue };
        if grade.parse::<i32>().unwrap_or(0) > 0 {
            relevant.entry(question.parse().unwrap()).or_default().insert(document.to_owned());
        }
    }
    Collection {
        name: "cranfield",
        items,
        questions,
        relevant,
        least: (0.306, 0.384),
        least_by_meaning: &[("by meaning", (0.349, 0.424)), ("fused 1:1", (0.347, 0.422))],
    }
}

fn between<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{tag}>"))?;
    rest.split_once(&format!("</{tag}>")).map(|(inside, _)| inside)
}

//! Links: what a document points to within the repository is there, down to the heading.

use std::path::Path;

use regex::Regex;

use super::{report, root, walk};

fn documents() -> Vec<std::path::PathBuf> {
    let mut paths = Vec::new();
    for place in ["docs", "crates", "examples", "deploy", "benches", "observability", "web/src"] {
        walk(&root().join(place), &mut paths);
    }
    let top = std::fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
    paths.extend(top.filter(|path| path.is_file()));
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths
}

/// Returns the anchors of a document's headings, as GitHub makes them.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |line: &str| -> String {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|at| at.is_alphanumeric() || " -_".contains(*at));
        kept.map(|at| if at == ' ' { '-' } else { at }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_link_of_a_document_leads_somewhere() {
    let link = Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    let fenced = Regex::new(r"(?s)```.*?```").unwrap();
    let (mut problems, mut seen) = (Vec::new(), 0);
    for document in documents() {
        let text = std::fs::read_to_string(&document).unwrap();
        let prose = fenced.replace_all(&text, "");
        for found in link.captures_iter(&prose) {
            let to = &found[1];
            if to.contains("://") || to.starts_with("mailto:") {
                continue;
            }
            seen += 1;
            let (path, anchor) = to.split_once('#').unwrap_or((to, ""));
            let target = match path {
                "" => document.clone(),
                path => document.parent().unwrap_or(Path::new("")).join(path),
            };
            let is_there = target.exists() && {
                let of_target = || anchors(&std::fs::read_to_string(&target).unwrap_or_default());
                anchor.is_empty() || of_target().iter().any(|known| known == anchor)
            };
            if !is_there {
                let place = document.strip_prefix(root()).unwrap().display();
                problems.push(format!("{place}: {to}"));
            }
        }
    }
    assert!(seen > 50, "links were found: {seen}");
    report(&problems, "Change the link, or bring back what it points to.");
}

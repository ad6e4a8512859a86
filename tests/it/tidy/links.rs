//! Links: what a document points to within the repository is there, down to the heading.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::{Captures, Regex};

use super::{report, root};

/// Returns every document that the repository holds.
fn documents() -> Vec<PathBuf> {
    let git = Command::new("git").args(["ls-files", "-z", "*.md"]).current_dir(root()).output();
    let listed = git.unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let names = String::from_utf8(listed.stdout).unwrap();
    let paths = names.split_terminator('\0').map(|name| root().join(name));
    // One that was just deleted is still listed.
    paths.filter(|path| path.exists()).collect()
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

/// Says what is wrong with a link of a document, if anything is; one to elsewhere is not looked at.
fn broken(document: &Path, to: &str) -> Option<String> {
    if to.contains("://") || to.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = to.split_once('#').unwrap_or((to, ""));
    let target = match path {
        "" => document.to_owned(),
        path => document.parent().unwrap_or(Path::new("")).join(path),
    };
    let of_target = || anchors(&std::fs::read_to_string(&target).unwrap_or_default());
    let is_there =
        target.exists() && (anchor.is_empty() || of_target().iter().any(|known| known == anchor));
    (!is_there).then(|| to.to_owned())
}

/// Returns the targets of a text's links, and the references that name none.
fn links(prose: &str) -> (Vec<String>, Vec<String>) {
    let link = Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    let definition = Regex::new(r"(?m)^ {0,3}\[([^\]]+)\]:\s*<?([^\s>]+)").unwrap();
    let reference = Regex::new(r"\[([^\[\]]+)\]\[([^\[\]]*)\]").unwrap();
    let defined: BTreeMap<String, String> = definition
        .captures_iter(prose)
        .map(|found| (found[1].to_lowercase(), found[2].to_owned()))
        .collect();
    let named = reference.captures_iter(prose).map(|found| match &found[2] {
        "" => found[1].to_lowercase(),
        name => name.to_lowercase(),
    });
    // [1][2] cites results by number, in prompts.
    let is_number = |name: &String| name.chars().all(|at| at.is_ascii_digit());
    let undefined = named.filter(|name| !is_number(name) && !defined.contains_key(name));
    let undefined = undefined.collect();
    let direct = link.captures_iter(prose).map(|found| found[1].to_owned());
    (direct.chain(defined.into_values()).collect(), undefined)
}

#[test]
fn every_link_of_a_document_leads_somewhere() {
    let code = Regex::new(r"(?s)```.*?```|`[^`\n]*`").unwrap();
    let mut problems = Vec::new();
    let mut seen = 0;
    for document in documents() {
        let place = document.strip_prefix(root()).unwrap().display();
        let text = std::fs::read_to_string(&document).unwrap();
        // A name between backticks may be a link's text; an index is none.
        let prose = code.replace_all(&text, |found: &Captures<'_>| {
            if found[0].contains('[') { String::new() } else { found[0].to_owned() }
        });
        let (targets, undefined) = links(&prose);
        seen += targets.len();
        let broken = targets.iter().filter_map(|to| broken(&document, to));
        problems.extend(broken.map(|to| format!("{place}: {to}")));
        problems.extend(undefined.iter().map(|name| format!("{place}: [{name}] is not defined")));
    }
    assert!(seen > 50, "links were found: {seen}");
    report(&problems, "Change the link, or bring back what it points to.");
}

/// A reference is a link: its definition leads somewhere, and there is one.
#[test]
fn references_are_read_as_links() {
    let (targets, undefined) =
        links("[a], [b][], [one][c] and [two][d], [1][2].\n\n[B]: x.md#y\n[c]: <z.md>\n");
    assert_eq!(targets, ["x.md#y", "z.md"]);
    assert_eq!(undefined, ["d"]);
}

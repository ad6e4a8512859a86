//! Finds the paths by which a source file names other modules.

/// Returns the paths that a tree names, as in a `use`.
pub(super) fn tree_of(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    tree(text, "", &mut found);
    found
}

/// Returns the paths that begin with one of these names, the name included: `super::super::Role`.
pub(super) fn rooted(source: &str, roots: &[&str]) -> Vec<String> {
    let code = without_comments(source);
    let mut found = Vec::new();
    for root in roots {
        for (at, _) in code.match_indices(&format!("{root}::")) {
            let before = code[..at].chars().next_back();
            if !before.is_some_and(|before| is_name(before) || before == ':') {
                tree(&code[at..], "", &mut found);
            }
        }
    }
    found
}

fn without_comments(source: &str) -> String {
    let code = |line| str::split_once(line, "//").map_or(line, |(code, _comment)| code);
    source.lines().map(code).collect::<Vec<_>>().join("\n")
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Reads one tree of paths and returns what follows it.
fn tree<'a>(text: &'a str, prefix: &str, found: &mut Vec<String>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = rest.trim_start().trim_start_matches(',').trim_start();
            match rest.strip_prefix('}') {
                Some(after) => return after,
                None if rest.is_empty() => return rest,
                None => {}
            }
            let after = tree(rest, prefix, found);
            if after.len() == rest.len() {
                return after;
            }
            rest = after;
        }
    }
    let end = text.find(|c| !is_name(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let path = match (prefix, name) {
        ("", name) => name.to_owned(),
        (prefix, "self") => prefix.to_owned(),
        (prefix, name) => format!("{prefix}::{name}"),
    };
    if let Some(deeper) = rest.strip_prefix("::")
        && deeper.starts_with(|c| is_name(c) || c == '{')
    {
        return tree(deeper, &path, found);
    }
    if !name.is_empty() {
        found.push(path);
    }
    let rest = rest.strip_prefix("::*").unwrap_or(rest).trim_start();
    match rest.strip_prefix("as ") {
        Some(alias) => alias.trim_start().trim_start_matches(is_name),
        None => rest,
    }
}

#[test]
fn paths_in_groups_are_split() {
    let source = "use crate::{clock, graph::{Engine as E, Node, frontier::*}, ids};\n\
                  // crate::cli is only spoken of\n\
                  fn f(x: &crate::llm::Usage) -> my_crate::Other { x.into() }\n\
                  use crate::config::strict::{self, Error};";
    let expected = [
        "crate::clock",
        "crate::graph::Engine",
        "crate::graph::Node",
        "crate::graph::frontier",
        "crate::ids",
        "crate::llm::Usage",
        "crate::config::strict",
        "crate::config::strict::Error",
    ];
    assert_eq!(rooted(source, &["crate"]), expected);
}

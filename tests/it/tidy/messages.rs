//! Messages: help, errors, texts of the page and names of tests are plain, by the patterns that documents are held to.
//!
//! [`TODAY`] has the figures of each kind, which may only fall. Messages also use the terms of the glossary.

use clap::CommandFactory as _;
use perihelion::cli::Cli;
use regex::Regex;

use super::english::{patterns, phrases, replaced_terms, sentences};
use super::{program, report, root, sources, walk};

/// No sentence of a message has more words than this.
const WORDS: usize = 25;

/// Hits of the patterns per 1,000 words.
const HITS: f64 = 5.0;

/// How much a new message may add to the hits, because it changes their density.
const SLACK: f64 = 1.0;

/// How much better than its figures a kind may be before they have to follow, in percent.
const MARGIN: f64 = 10.0;

/// Sentences that are too long, and hits per 1,000 words, of each kind of message.
const TODAY: [(&str, usize, f64); 4] =
    [("help", 0, 4.0), ("errors", 0, 2.5), ("page", 0, 0.0), ("test names", 0, 0.7)];

/// Returns the texts of a command, its arguments and its subcommands.
fn help_of(command: &clap::Command, texts: &mut Vec<String>) {
    let own = [command.get_about(), command.get_long_about(), command.get_after_help()];
    texts.extend(own.into_iter().flatten().map(|text| text.to_string()));
    for argument in command.get_arguments() {
        let own = [argument.get_help(), argument.get_long_help()];
        texts.extend(own.into_iter().flatten().map(|text| text.to_string()));
    }
    for inner in command.get_subcommands() {
        help_of(inner, texts);
    }
}

/// Returns the help without the examples, which are commands.
fn help() -> Vec<String> {
    let mut texts = Vec::new();
    help_of(&Cli::command(), &mut texts);
    let prose = texts.iter().flat_map(|text| text.split("\n\n"));
    prose.filter(|part| !part.starts_with("Examples:")).map(str::to_owned).collect()
}

/// Returns what a pattern captures first in texts.
fn found<'a>(pattern: &str, texts: impl Iterator<Item = &'a str>) -> Vec<String> {
    let pattern = Regex::new(pattern).unwrap();
    let all = texts.flat_map(|text| pattern.captures_iter(text));
    all.filter_map(|one| one.iter().skip(1).flatten().next().map(|text| text.as_str().to_owned()))
        .collect()
}

fn errors() -> Vec<String> {
    let sources = program();
    let placeholder = Regex::new(r"\{[^}]*\}").unwrap();
    let continued = Regex::new(r"\\\n\s*").unwrap();
    let texts =
        found(r#"(?s)#\[error\(\s*"((?:\\.|[^"\\])*)""#, sources.iter().map(|one| one.code()));
    let text = |text: &String| {
        let text = continued.replace_all(text, "");
        placeholder.replace_all(&text, "X").into_owned()
    };
    texts.iter().map(text).collect()
}

/// Returns texts of the page: between tags, and quoted ones that begin with a capital letter.
fn page() -> Vec<String> {
    let mut paths = Vec::new();
    walk(&root().join("web/app/src"), &mut paths);
    let is_code = |path: &&std::path::PathBuf| path.extension().is_some_and(|end| end == "tsx");
    let texts: Vec<String> =
        paths.iter().filter(is_code).map(|path| std::fs::read_to_string(path).unwrap()).collect();
    found(
        r#"(?:>\s*([A-Z][^<>{}"]{12,})\s*<)|(?:"([A-Z][^"\n<>{}]{12,})")"#,
        texts.iter().map(String::as_str),
    )
}

fn test_names() -> Vec<String> {
    let all: Vec<_> = ["src", "crates", "tests"].into_iter().flat_map(sources).collect();
    let test = r"test(?:\(.*?\))?\]\s*(?:#\[[^\n]*\]\s*)*(?:pub )?(?:async )?fn (\w+)";
    let names = found(test, all.iter().map(|source| source.text.as_str()));
    names.iter().map(|name| name.replace('_', " ")).collect()
}

#[test]
fn messages_are_plain_english() {
    let patterns = patterns();
    let kinds =
        [("help", help()), ("errors", errors()), ("page", page()), ("test names", test_names())];
    let is_lower = |now: f64, then: f64| now < then * (1.0 - MARGIN / 100.0);
    let mut problems = Vec::new();
    for ((kind, texts), (name, long, density)) in kinds.into_iter().zip(TODAY) {
        assert!(kind == name && texts.len() > 50, "{kind}: {} texts", texts.len());
        let all: Vec<String> = texts.iter().flat_map(|text| sentences(text)).collect();
        let length = |sentence: &String| sentence.split_whitespace().count();
        let words: usize = all.iter().map(length).sum();
        let too_long: Vec<&String> = all.iter().filter(|one| length(one) > WORDS).collect();
        let hits: Vec<String> = all
            .iter()
            .map(|one| (phrases(one, &patterns), one))
            .filter(|(found, _)| !found.is_empty())
            .map(|(found, one)| format!("    {found:?}: {one}"))
            .collect();
        let hit_count: usize = all.iter().map(|one| phrases(one, &patterns).len()).sum();
        let now = hit_count as f64 * 1_000.0 / words as f64;
        let figures =
            format!("{kind}: {} over {WORDS} words, {now:.1} hits per 1,000", too_long.len());
        if too_long.len() > long || now > density.max(HITS - SLACK) + SLACK {
            problems.push(format!("{figures}; permitted: {long}, {:.1}", density.max(HITS)));
            problems.extend(too_long.iter().map(|one| format!("    {one}")));
            problems.extend(hits);
        } else if is_lower(too_long.len() as f64, long as f64)
            || (density > HITS && is_lower(now, density))
        {
            problems.push(format!("{figures}: better than in TODAY, lower it there"));
        }
    }
    report(&problems, "Write messages as CONTRIBUTING.md (Language) has them.");
}

#[test]
fn messages_use_the_terms_of_the_glossary() {
    let refused = replaced_terms();
    let mut problems = Vec::new();
    for (kind, texts) in [("help", help()), ("errors", errors()), ("page", page())] {
        for text in &texts {
            let found = refused.find_iter(text);
            problems.extend(found.map(|term| format!("{kind}: {}: {text}", term.as_str())));
        }
    }
    report(&problems, "CONTRIBUTING.md (Glossary) has the term to write.");
}

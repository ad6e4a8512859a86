//! English: documents are plain, measured by sentence length and by fifteen patterns of convoluted phrases.
//!
//! [`NOT_YET`] lists documents above the limits with their present figures, which may only fall.

use std::fmt;
use std::process::Command;
use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};

use super::{read, report, root};

/// Words of an average sentence.
const AVERAGE: f64 = 18.0;

/// Percent of sentences that may be [`LONG`].
const LONG_PERCENT: f64 = 5.0;

/// A long sentence has more words than this.
const LONG: usize = 30;

/// No sentence has more words than this.
const LONGEST: usize = 45;

/// Hits of the patterns per 1,000 words.
const HITS: f64 = 5.0;

/// Words of a page without its code and tables.
const PAGE: usize = 1_500;

/// Words of the README with its code, which is its readers' first screen.
const README: usize = 1_300;

/// Shorter sentences are not counted: they are labels.
const LEAST_WORDS: usize = 5;

/// How much better than its entry a document may be before the entry has to follow, in percent.
const MARGIN: f64 = 10.0;

/// Documents that are not measured: history, and a list that is written from test names.
const EXCEPT: [&str; 2] = ["CHANGELOG.md", "docs/project/tests.md"];

/// Directories whose Markdown is data or prompts.
const NO_DOCUMENTS: [&str; 4] = ["prompts/", "examples/", "tests/", "web/"];

/// Documents above the limits: average, percent of long sentences, sentences that are too long, hits per 1,000 words.
const NOT_YET: [(&str, Figures); 0] = [];

/// What makes prose read as translated. Each has legitimate matches, so density is measured.
const PATTERNS: [(&str, &str); 15] = [
    ("clause as subject", r"(^|[;:] )(who(ever)?|what(ever)?|whose)\b(\W+\w+){4}"),
    (
        "clause as object",
        r".\bwhat (\w+ )?(is|was|were|are|has|had|stays|waits|needs|came|comes|happened|it|they|one|users?|servers?|agents?|models?|an?|the)\b",
    ),
    ("nobody, nothing", r"\b(nobody|anybody|somebody|everybody|nothing|none)\b"),
    ("stands", r"\b(stands?|stood|lies|lay)\b"),
    (
        "told, says",
        r"\b(told|tells?|hears?|heard|(is|are|be|was) said)\b|\b(says?|said) (so|it|what|how|which|when|why|who|where|nothing|of|all)\b",
    ),
    (
        "where for if",
        r"^where\b|\bwhere (there|it|they|you|nothing|none|no|one|an?|the|this|that|each|any|several|such)\b",
    ),
    ("of its own", r"\bof (its|their|your|our|one['’]s) own\b|\bby (itself|themselves)\b"),
    (
        "one that, those that",
        r"\bsuch (an? )?ones?\b|\bones? (that|who|which|whose)\b|\bthose (that|who|of|in|which)\b|\bothers\b",
    ),
    (
        "as far as",
        r"\bas (far|long|often|much|many) as\b|\bas (it|they) (stands?|stood|likes?|wish(es)?)\b",
    ),
    ("is kept", r"\b(is|are|was|were|be|been) (\w+ly )?(kept|taken|held|had|put|laid)\b"),
    (
        "old connectives",
        r"\b(besides?|but for|but that|meanwhile|for good|for ever|in any case|all the same|nor|no more|any more|any longer|so (much|many|long))\b",
    ),
    (
        "private nouns",
        r"\b(rooms?|faces?|heirs?|wish(es)?|strangers?|façade|lots|menus?|doors?|more hands)\b",
    ),
    (
        "noun of noun",
        r"\b(\w+s|api|server|client|token) of (langgraph|openai|a2a|mcp|postgres|others|servers|models|users|agents|runs|threads)\b",
    ),
    (
        "is to",
        r"\b(is|are|was|were) to (be|have|do|run|get|write|say|hold|take)\b|\bneeds? not\b|\bmay (name|ask|carry|rather|have|hold)\b",
    ),
    (
        "missing article",
        r"\b(of|with|by|from) (thread|step|run|key|tenant|user|call|node|cron|model)([,.;:)]| and\b| or\b)",
    ),
];

/// Patterns that are the ordinary way to ask a question.
const IN_QUESTIONS: [&str; 2] = ["clause as subject", "where for if"];

/// The measures of a document's prose.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    average: f64,
    long: f64,
    longest: f64,
    hits: f64,
}

impl Figures {
    const LIMITS: Self = Self { average: AVERAGE, long: LONG_PERCENT, longest: 0.0, hits: HITS };

    fn each(self) -> [f64; 4] {
        [self.average, self.long, self.longest, self.hits]
    }

    /// Returns whether every measure is within these limits, but for rounding.
    fn is_within(self, limits: Self) -> bool {
        self.each().iter().zip(limits.each()).all(|(one, limit)| *one <= limit + 0.05)
    }

    /// Returns the looser of the limits and a document's own entry, measure by measure.
    fn or_limits(self) -> Self {
        let limits = Self::LIMITS;
        Self {
            average: self.average.max(limits.average),
            long: self.long.max(limits.long),
            longest: self.longest.max(limits.longest),
            hits: self.hits.max(limits.hits),
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { average, long, longest, hits } = self;
        write!(
            out,
            "average {average:.1}, over {LONG}: {long:.1} %, over {LONGEST}: {longest}, hits per 1,000: {hits:.1}"
        )
    }
}

/// Returns the documents that people read, by their paths.
pub(super) fn documents() -> Vec<String> {
    let git = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(git.status.success(), "{}", String::from_utf8_lossy(&git.stderr));
    let names = String::from_utf8(git.stdout).unwrap();
    let is_document = |name: &&str| {
        let is_elsewhere = NO_DOCUMENTS.iter().any(|directory| name.starts_with(directory));
        !is_elsewhere && !EXCEPT.contains(name) && root().join(name).exists()
    };
    names.split_terminator('\0').filter(is_document).map(str::to_owned).collect()
}

/// What a document is taken apart by.
struct Markup {
    comment: Regex,
    item: Regex,
    code: Regex,
    link: Regex,
    sentence_end: Regex,
}

static MARKUP: LazyLock<Markup> = LazyLock::new(|| Markup {
    comment: Regex::new(r"(?s)<!--.*?-->").unwrap(),
    item: Regex::new(r"^([*\-+]|\d+\.) +").unwrap(),
    code: Regex::new("`[^`]*`").unwrap(),
    link: Regex::new(r"!?\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])").unwrap(),
    sentence_end: Regex::new(r#"[.!?]["”)]*\s+"#).unwrap(),
});

/// Returns a text without its fenced code and comments.
pub(super) fn without_code(text: &str) -> String {
    let mut prose = String::with_capacity(text.len());
    let mut is_code = false;
    for line in MARKUP.comment.replace_all(text, "").lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
            prose.push('\n');
        } else if !is_code {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    prose
}

/// Returns the paragraphs and list items of a document; tables, headings and pictures are none.
fn paragraphs(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    for line in without_code(text).lines().map(str::trim) {
        let is_break = line.is_empty() || ["#", "|", "!["].iter().any(|one| line.starts_with(one));
        if is_break {
            all.push(String::new());
            continue;
        }
        let content = MARKUP.item.replace(line, "");
        if content.len() < line.len() {
            all.push(String::new());
        }
        if let Some(paragraph) = all.last_mut() {
            paragraph.push_str(content.trim_start_matches("> "));
            paragraph.push(' ');
        }
    }
    all
}

/// Returns the comments of a settings file as paragraphs; keys that are commented out are none.
fn comments(text: &str) -> String {
    let no_prose = Regex::new(r"^# ([a-z_]+ = |\[|  )").unwrap();
    let variable = Regex::new(r"\[(PERIHELION|OTEL|OPENAI|DATABASE)[^\]]*\]").unwrap();
    let line = |line: &str| match line.strip_prefix("# ") {
        Some(comment) if !no_prose.is_match(line) => format!("{comment}\n"),
        _ => "\n".to_owned(),
    };
    variable.replace_all(&text.lines().map(line).collect::<String>(), "").into_owned()
}

/// Divides a paragraph after `.`, `!` and `?` before a capital letter; inline code counts as a word.
pub(super) fn sentences(paragraph: &str) -> Vec<String> {
    let Markup { code, link, sentence_end, .. } = &*MARKUP;
    let plain = code.replace_all(paragraph, "X");
    let plain = link.replace_all(&plain, "$1").replace('*', "");
    let mut all = Vec::new();
    let mut begin = 0;
    for found in sentence_end.find_iter(&plain) {
        let is_start = |letter: char| {
            letter.is_ascii_uppercase() || letter.is_ascii_digit() || "“\"(".contains(letter)
        };
        if plain[found.end()..].starts_with(is_start) {
            all.push(plain[begin..found.end()].trim().to_owned());
            begin = found.end();
        }
    }
    all.push(plain[begin..].trim().to_owned());
    all.retain(|sentence| sentence.split_whitespace().count() >= LEAST_WORDS);
    all
}

pub(super) struct Pattern {
    name: &'static str,
    regex: Regex,
}

pub(super) fn patterns() -> Vec<Pattern> {
    let compiled = PATTERNS.iter().map(|(name, pattern)| {
        let regex = RegexBuilder::new(pattern).case_insensitive(true).build().unwrap();
        Pattern { name, regex }
    });
    compiled.collect()
}

/// Returns the phrases of a sentence that the patterns find.
pub(super) fn phrases<'a>(sentence: &'a str, patterns: &[Pattern]) -> Vec<&'a str> {
    let is_question = sentence.contains('?');
    let asked = patterns.iter().filter(|one| !is_question || !IN_QUESTIONS.contains(&one.name));
    asked.flat_map(|one| one.regex.find_iter(sentence)).map(|found| found.as_str().trim()).collect()
}

/// Measures prose, and names what is wrong with it.
fn measure(text: &str, patterns: &[Pattern]) -> (Figures, Vec<String>) {
    let all: Vec<String> = paragraphs(text).iter().flat_map(|one| sentences(one)).collect();
    let lengths: Vec<usize> = all.iter().map(|one| one.split_whitespace().count()).collect();
    let words: usize = lengths.iter().sum();
    if words == 0 {
        return (Figures::default(), Vec::new());
    }
    let mut details = Vec::new();
    let mut hits = 0;
    for (sentence, length) in all.iter().zip(&lengths) {
        let found = phrases(sentence, patterns);
        hits += found.len();
        if *length > LONG || !found.is_empty() {
            details.push(format!("    {length} words, {found:?}: {sentence}"));
        }
    }
    let share = |least: usize| lengths.iter().filter(|length| **length > least).count() as f64;
    let figures = Figures {
        average: words as f64 / lengths.len() as f64,
        long: share(LONG) * 100.0 / lengths.len() as f64,
        longest: share(LONGEST),
        hits: hits as f64 * 1_000.0 / words as f64,
    };
    (figures, details)
}

#[test]
fn documents_are_plain_english() {
    let patterns = patterns();
    let settings = ["perihelion.toml", "mcp-servers.toml"];
    let documents = documents();
    assert!(documents.len() > 50, "documents were found: {documents:?}");
    let mut texts: Vec<(String, String)> =
        documents.into_iter().map(|name| (name.clone(), read(&name))).collect();
    texts.extend(settings.map(|name| (name.to_owned(), comments(&read(name)))));
    let mut problems = Vec::new();
    for (name, text) in texts {
        let (figures, details) = measure(&text, &patterns);
        let entry = NOT_YET.iter().find(|(entry, _)| *entry == name);
        let limits = entry.map_or(Figures::LIMITS, |(_, figures)| figures.or_limits());
        if !figures.is_within(limits) {
            problems.push(format!("{name}: {figures}; permitted: {limits}"));
            problems.extend(details);
        } else if let Some((_, known)) = entry {
            let lower = |now: f64, then: f64| now < then * (1.0 - MARGIN / 100.0);
            let is_lower =
                figures.each().iter().zip(known.each()).any(|(now, then)| lower(*now, then));
            if is_lower {
                problems
                    .push(format!("{name} became better, lower its entry in NOT_YET: {figures}"));
            }
        }
    }
    report(
        &problems,
        "Divide long sentences, and write subjects in place of clauses (CONTRIBUTING.md, Language).",
    );
}

#[test]
fn pages_are_short() {
    let mut problems = Vec::new();
    for name in documents().into_iter().filter(|name| name.starts_with("docs/")) {
        let text = without_code(&read(&name));
        let prose = text.lines().filter(|line| !line.starts_with('|'));
        let words = prose.flat_map(str::split_whitespace).count();
        if words > PAGE {
            problems.push(format!("{name}: {words} words, permitted: {PAGE}"));
        }
    }
    let readme = read("README.md");
    let is_word = |word: &&str| word.chars().any(char::is_alphanumeric);
    let words = readme.split_whitespace().filter(is_word).count();
    if words > README {
        problems.push(format!("README.md: {words} words, permitted: {README}"));
    }
    report(&problems, "Divide the page, or take out what another page has.");
}

/// Returns the terms that the glossary of CONTRIBUTING.md replaces: the left column of `| instead of | write |`.
pub(super) fn replaced_terms() -> Regex {
    let guide = read("CONTRIBUTING.md");
    let table = guide.split("| instead of | write |").nth(1).unwrap_or_default();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let refused: Vec<String> =
        rows.filter_map(|row| Some(regex::escape(row.split('|').nth(1)?.trim()))).collect();
    assert!(refused.len() >= 25, "the table was read: {refused:?}");
    Regex::new(&format!(r"(?i)\b({})\b", refused.join("|"))).unwrap()
}

#[test]
fn documents_use_the_terms_of_the_glossary() {
    let refused = replaced_terms();
    let mut problems = Vec::new();
    let documents = documents().into_iter();
    let not_yet = |name: &String| NOT_YET.iter().any(|(entry, _)| entry == name);
    for name in documents.filter(|name| name != "CONTRIBUTING.md" && !not_yet(name)) {
        for paragraph in paragraphs(&read(&name)) {
            let found = refused.find_iter(&paragraph);
            problems.extend(found.map(|term| format!("{name}: {}", term.as_str())));
        }
    }
    for name in ["perihelion.toml", "mcp-servers.toml"] {
        let text = comments(&read(name));
        let found = refused.find_iter(&text);
        problems.extend(found.map(|term| format!("{name}: {}", term.as_str())));
    }
    report(&problems, "CONTRIBUTING.md (Glossary) has the term to write.");
}

/// Every page is in the book's table of contents, and every entry of it is a page.
#[test]
fn the_book_has_every_page() {
    let link = Regex::new(r"\]\(([^)]+\.md)\)").unwrap();
    let summary = read("docs/SUMMARY.md");
    let mut listed: Vec<String> =
        link.captures_iter(&summary).map(|found| format!("docs/{}", &found[1])).collect();
    let mut pages: Vec<String> =
        documents().into_iter().filter(|name| name.starts_with("docs/")).collect();
    pages.extend(
        EXCEPT.iter().filter(|name| name.starts_with("docs/")).map(|one| (*one).to_owned()),
    );
    pages.retain(|name| name != "docs/SUMMARY.md");
    listed.sort();
    pages.sort();
    assert_eq!(listed, pages, "left: docs/SUMMARY.md, right: the pages below docs/");
}

#[test]
fn convoluted_sentences_are_found_and_plain_ones_are_not() {
    let patterns = patterns();
    for (text, hits) in [
        ("Who waits for a run is answered at once.", 1),
        ("The server responds at once to waiting clients.", 0),
        ("Nobody is asked while something runs here.", 1),
        ("Runs never prompt for a login while they work.", 0),
        ("Every setting stands with its default in the file.", 1),
        ("Who can approve a call that changes something?", 0),
        ("Where bubblewrap is missing the server is refused.", 1),
        ("Ids follow from thread and run number alone.", 1),
    ] {
        let found: usize = sentences(text).iter().map(|one| phrases(one, &patterns).len()).sum();
        assert_eq!(found, hits, "{text}");
    }
    let text = "# Title\n\nOne two three four `a. B` six. Seven eight nine ten [a link](x.md#y).\n\n```sh\nnobody nothing none\n```\n\n* An item with five words.\n| a table row that is not read |\n";
    let all: Vec<String> = paragraphs(text).iter().flat_map(|one| sentences(one)).collect();
    let expected =
        ["One two three four X six.", "Seven eight nine ten a link.", "An item with five words."];
    assert_eq!(all, expected);
    let comment = comments("# Seconds to wait for one answer. [PERIHELION_X]\n# wait = 1\n");
    assert_eq!(comment.trim(), "Seconds to wait for one answer.");
}

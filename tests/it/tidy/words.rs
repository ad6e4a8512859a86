//! Words: the field's terms and plain present-day English, as the table of CONTRIBUTING.md has them.

use std::path::Path;

use regex::Regex;

use super::{read, report, root, sources, walk};

/// Where the Rust is.
const CODE: [&str; 5] = ["src", "crates", "benches", "examples", "tests"];

/// Names of other libraries, which are called by them.
const OF_OTHERS: [&str; 1] = ["gather"];

/// Most words of a name that is no sentence.
const NAME_WORDS: usize = 4;

/// The entries of the first column of a table, by the table's head.
fn refused(head: &str) -> Vec<String> {
    let text = read("CONTRIBUTING.md");
    let table = text.split(head).nth(1).unwrap_or_default();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let words = rows.filter_map(|row| row.split('|').nth(1)).flat_map(|cell| cell.split(','));
    words.map(|word| word.trim().to_lowercase()).collect()
}

/// Returns a text in lower case, its names taken apart: `SpanBuilder` as `span_builder`.
fn taken_apart(text: &str) -> String {
    let mut apart = String::with_capacity(text.len());
    let mut was_lower = false;
    for letter in text.chars() {
        if letter.is_uppercase() && was_lower {
            apart.push('_');
        }
        was_lower = letter.is_lowercase();
        apart.extend(letter.to_lowercase());
    }
    apart
}

/// Makes the expression of words, and of phrases whatever joins their words.
fn any_of(refused: &[String]) -> Regex {
    let words: Vec<String> = refused.iter().map(|word| word.replace(' ', "[ _-]")).collect();
    Regex::new(&format!(r"(?:^|[^a-z])({})(?:[^a-z]|$)", words.join("|"))).unwrap()
}

/// Returns the files below a directory that end so, with their texts.
fn texts(directory: &str, endings: &[&str]) -> Vec<(String, String)> {
    let mut paths = Vec::new();
    walk(&root().join(directory), &mut paths);
    let is_wanted = |path: &Path| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        let is_installed = path.components().any(|part| part.as_os_str() == "node_modules");
        ending.is_some_and(|ending| endings.contains(&ending)) && !is_installed
    };
    let wanted = paths.into_iter().filter(|path| is_wanted(path));
    wanted
        .map(|path| {
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect()
}

/// Returns the names in Rust code, each with its line: what neither a comment nor a text is.
fn names(code: &str) -> Vec<(usize, &str)> {
    let comment = r"//[^\n]*|/\*.*?\*/";
    let raw = r###"\bb?r##".*?"##|\bb?r#".*?"#|\bb?r"[^"]*""###;
    let text = r#""(?:\\.|[^"\\])*"|'(?:\\[^']+|[^'\\])'"#;
    let name = "[A-Za-z_][A-Za-z_0-9]*";
    let token = Regex::new(&format!("(?s){comment}|{raw}|{text}|{name}")).unwrap();
    let mut line = 1;
    let mut read_to = 0;
    let mut found = Vec::new();
    for one in token.find_iter(code) {
        line += code[read_to..one.start()].matches('\n').count();
        read_to = one.start();
        let is_name = !one.as_str().contains(['"', '\'', '/']);
        if is_name {
            found.push((line, one.as_str()));
        }
    }
    found
}

#[test]
fn code_and_documents_use_the_fields_words() {
    let refused = refused("| not | but |");
    assert!(refused.len() > 15, "the table was read: {refused:?}");
    let refused = any_of(&refused);
    let code = CODE.into_iter().flat_map(sources);
    let mut all: Vec<(String, String)> = code.map(|source| (source.path, source.text)).collect();
    all.extend(texts("docs", &["md"]));
    all.extend(texts("prompts", &["md"]));
    all.extend(texts("web/app/src", &["ts", "tsx"]));
    all.extend(texts("tests", &["mjs"]));
    for name in ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "perihelion.toml"] {
        all.push((name.to_owned(), read(name)));
    }
    // What is stored or on a wire keeps its name.
    let kept = Regex::new(r#"rename = "[a-z_]+""#).unwrap();
    let mut problems = Vec::new();
    for (path, text) in all {
        for (number, line) in text.lines().enumerate() {
            let line = taken_apart(&kept.replace_all(line, ""));
            for word in refused.captures_iter(&line) {
                problems.push(format!("{path}:{}: {}", number + 1, &word[1]));
            }
        }
    }
    report(&problems, "CONTRIBUTING.md (Words) says what to write in its place.");
}

#[test]
fn names_contain_no_meaningless_words() {
    let refused = refused("| not as a name | but |");
    assert!(refused.len() > 20, "the table was read: {refused:?}");
    let mut problems = Vec::new();
    for source in CODE.into_iter().flat_map(sources) {
        for (line, name) in names(&source.text) {
            let apart = taken_apart(name);
            let words: Vec<&str> = apart.split('_').filter(|word| !word.is_empty()).collect();
            let says_nothing = words.iter().any(|word| refused.iter().any(|one| one == word));
            if says_nothing && words.len() <= NAME_WORDS && !OF_OTHERS.contains(&name) {
                problems.push(format!("{}:{line}: {name}", source.path));
            }
        }
    }
    report(&problems, "CONTRIBUTING.md (Words) says what to write in its place.");
}

#[test]
fn names_are_found_and_texts_are_not() {
    let code =
        "let told = \"held\"; // said\nmatch 'x' { Held { crowd: r#\"a \"desk\" \"#, .. } => 'd' }";
    let found: Vec<(usize, &str)> = names(code);
    let expected = [(1, "let"), (1, "told"), (2, "match"), (2, "Held"), (2, "crowd")];
    assert_eq!(found, expected);
    assert_eq!(taken_apart("SpanBuilder and span_builder"), "span_builder and span_builder");
    let phrase = any_of(&["run in".to_owned()]);
    for found in ["to run in", "may_run_in(", "run-in", &taken_apart("RunIn")] {
        assert!(phrase.is_match(found), "{found}");
    }
    for other in ["run_inner", "prune in", "run. in"] {
        assert!(!phrase.is_match(other), "{other}");
    }
}

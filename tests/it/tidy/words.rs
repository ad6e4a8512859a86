//! Words: the field's terms and plain present-day English, as the table of CONTRIBUTING.md has them.

use regex::Regex;

use super::{read, report, root, sources, walk};

/// The words of the first column of a table, by the table's head.
fn refused(head: &str) -> Vec<String> {
    let text = read("CONTRIBUTING.md");
    let table = text.split(head).nth(1).unwrap_or_default();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let words = rows.filter_map(|row| row.split('|').nth(1)).flat_map(|cell| cell.split(','));
    words.map(|word| word.trim().to_lowercase()).collect()
}

/// Returns the words of a text in lower case, names like `SpanBuilder` and `span_builder` taken apart.
fn words_of(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in line.chars() {
        if !letter.is_alphabetic() || (letter.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        was_lower = letter.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphabetic()) {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn code_and_documents_use_the_fields_words() {
    let refused = refused("| not | but |");
    assert!(refused.len() > 15, "the table was read: {refused:?}");
    let code = ["src", "crates", "benches", "examples", "tests"].into_iter().flat_map(sources);
    let mut texts: Vec<(String, String)> = code.map(|source| (source.path, source.text)).collect();
    let mut documents = Vec::new();
    walk(&root().join("docs"), &mut documents);
    let top = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"].map(|name| root().join(name));
    for path in documents.into_iter().chain(top) {
        if path.extension().is_some_and(|extension| extension == "md") {
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            texts.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
    let mut problems = Vec::new();
    for (path, text) in texts {
        for (number, line) in text.lines().enumerate() {
            let words = words_of(line);
            for word in refused.iter().filter(|word| words.contains(word)) {
                problems.push(format!("{path}:{}: {word}", number + 1));
            }
        }
    }
    report(&problems, "CONTRIBUTING.md (Words) says what to write in its place.");
}

#[test]
fn items_are_not_named_by_words_that_say_nothing_as_a_name() {
    let refused = refused("| not as a name | but |");
    assert!(refused.len() > 10, "the table was read: {refused:?}");
    let item = Regex::new(r"\b(?:fn|struct|enum|trait|type|mod|const|static) (\w+)").unwrap();
    let mut problems = Vec::new();
    for source in ["src", "crates", "benches", "examples"].into_iter().flat_map(sources) {
        for (number, line) in source.code().lines().enumerate() {
            let code = line.split_once("//").map_or(line, |(code, _)| code);
            let names = item.captures_iter(code).map(|found| words_of(&found[1]));
            for word in names.flatten().filter(|word| refused.contains(word)) {
                problems.push(format!("{}:{}: {word}", source.path, number + 1));
            }
        }
    }
    report(&problems, "CONTRIBUTING.md (Words) says what to write in its place.");
}

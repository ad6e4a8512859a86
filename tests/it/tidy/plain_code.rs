//! Plain code: a bool is asked by `if`, and a name is bound by a line of its own.

use regex::Regex;

use super::{Source, report, sources};

fn all() -> impl Iterator<Item = Source> {
    ["src", "crates", "tests", "benches", "examples"].into_iter().flat_map(sources)
}

/// Returns the places that a pattern finds and that are wanted, given what follows the start of the match, each with its first line.
fn places_of(pattern: &str, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let pattern = Regex::new(pattern).unwrap();
    let mut places = Vec::new();
    for source in all() {
        for found in pattern.find_iter(&source.text) {
            let line = source.text[..found.start()].matches('\n').count() + 1;
            let first = found.as_str().trim();
            if !first.starts_with("//") && is_wanted(&source.text[found.start()..]) {
                places.push(format!("{}:{line}: {first}", source.path));
            }
        }
    }
    places
}

/// Clippy's `match_bool` sees neither arms with guards nor a bool in a tuple.
#[test]
fn no_bool_is_matched_on() {
    let arm =
        r"(?m)^[ \t]*(true|false|\(([^()\n]*, )?(true|false)(, [^\n]*)?\))( if [^\n]*)? =>[^\n]*";
    report(&places_of(arm, |_| true), "Ask by if and else.");
}

/// A match on nothing, or one whose first arm takes no notice of the value, is a chain of ifs.
#[test]
fn no_match_is_a_chain_of_ifs() {
    let nothing = r"(?m)^[^\n]*\bmatch \(\) \{";
    let first_arm = r"(?m)^[^\n]*\bmatch [^{\n]* \{\n([ \t]*//[^\n]*\n)*[ \t]*_ if ";
    let mut found = places_of(nothing, |_| true);
    found.extend(places_of(first_arm, |_| true));
    report(&found, "Ask by if and else.");
}

/// Returns whether code begins with `let (…) = (…, …);`, whose right side is a tuple of several values.
fn binds_a_tuple(code: &str) -> bool {
    let Some((_, value)) = code.split_once('=') else { return false };
    let mut depth = 0_usize;
    let mut is_text = false;
    let mut is_of_several = false;
    let mut letters = value.trim_start().char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => is_text = !is_text,
            '\\' if is_text => drop(letters.next()),
            '(' | '[' | '{' if !is_text => depth += 1,
            ',' if !is_text && depth == 1 => is_of_several = true,
            ')' | ']' | '}' if !is_text => {
                depth -= 1;
                if depth == 0 {
                    let after = &value.trim_start()[at + 1..];
                    return is_of_several && after.starts_with(';');
                }
            }
            _ => {}
        }
    }
    false
}

/// What a function returns together is taken apart; what is made apart is not put together for that.
#[test]
fn no_tuple_binds_unrelated_values() {
    let binding = r"(?m)^[ \t]*let \([^=;]*\)(: [^=;]*)? =\s*\(";
    report(&places_of(binding, binds_a_tuple), "Bind each name by a line of its own.");
}

#[test]
fn a_tuple_is_distinguished_from_the_result_of_a_call() {
    assert!(binds_a_tuple("let (a, b) = (one(1, 2), \"x);\");\n"));
    assert!(binds_a_tuple("let (a, b): (A, B) =\n    (one,\n    two);\n"));
    assert!(!binds_a_tuple("let (a, b) = (one, two).sum();"));
    assert!(!binds_a_tuple("let (Some(a), Some(b)) = (one, two) else { return };"));
    assert!(!binds_a_tuple("let (a, b) = (pair);"));
}

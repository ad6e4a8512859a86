//! Plain code: a bool is asked by `if`, and a name is bound by a line of its own.

use regex::Regex;

use super::{Source, report, sources};

/// Returns the lines of sources that a pattern finds, comments left out.
fn lines_of(sources: impl Iterator<Item = Source>, pattern: &str) -> Vec<String> {
    let pattern = Regex::new(pattern).unwrap();
    let mut found = Vec::new();
    for source in sources {
        for (number, line) in source.text.lines().enumerate() {
            let is_comment = line.trim_start().starts_with("//");
            if !is_comment && pattern.is_match(line) {
                found.push(format!("{}:{}: {}", source.path, number + 1, line.trim()));
            }
        }
    }
    found
}

/// Clippy's `match_bool` sees neither arms with guards nor two bools at once; of more than two a table is read more easily.
#[test]
fn no_bool_is_matched_on() {
    let all = ["src", "crates", "tests", "benches", "examples"].into_iter().flat_map(sources);
    let arm = r"^\s*(true|false|\((true|false), (true|false)\))( if .*)? =>";
    report(&lines_of(all, arm), "Ask by if and else.");
}

/// What a function returns together is taken apart; what is made apart is not put together for that.
#[test]
fn no_tuple_binds_what_has_nothing_to_do_with_each_other() {
    let all = ["src", "crates", "benches"].into_iter().flat_map(sources);
    let program = all.filter(|source| !source.code().is_empty());
    let binding = r"^\s*let \((mut )?\w+(, (mut )?\w+)+\)(: [^=]*)? = \(.*\);$";
    let of_one_value = Regex::new(r" = \([^,]*\)(\.|\?|\[)").unwrap();
    let found = lines_of(program, binding);
    let problems: Vec<String> =
        found.into_iter().filter(|line| !of_one_value.is_match(line)).collect();
    report(&problems, "Bind each name by a line of its own.");
}

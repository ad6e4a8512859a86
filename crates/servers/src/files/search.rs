//! Finds lines: plain text without regard to case, or a regular expression.

use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Error, Result, Tree};
use perihelion_engine::clock;

/// Longest piece of a line that is shown, in bytes.
const MAX_LINE_BYTES: usize = 400;
/// Bytes of a line in which an expression is searched for; the rest is skipped.
const MAX_SEARCHED: usize = 16 * 1024;
/// Bound on the memory of a compiled expression.
const MAX_REGEX_BYTES: usize = 300_000;

/// A line that matched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Hit {
    pub path: String,
    /// From 1.
    pub line: usize,
    pub text: String,
}

/// What a search found, in the order of paths and lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Search {
    pub hits: Vec<Hit>,
    /// There are more matching lines than are shown, or more files or longer lines than were searched.
    pub truncated: bool,
    /// Number of text files that were looked through.
    pub files_searched: usize,
    /// Number of files that were not searched: they are not text, are too large or cannot be read.
    pub files_skipped: usize,
}

impl Tree {
    /// Searches the text files below a path; binary and oversized files are skipped and counted.
    ///
    /// # Errors
    /// When the query is empty or not an expression, or the path is not inside the directory.
    pub fn search(&self, query: &str, is_regex: bool, path: &str, most: usize) -> Result<Search> {
        let pattern = pattern(query, is_regex)?;
        let begun = clock::monotonic();
        let (files, truncated) = self.files(path)?;
        let mut found = Search { hits: Vec::new(), truncated, files_searched: 0, files_skipped: 0 };
        let mut bytes = 0;
        for path in files {
            let Ok(text) = self.text(&path) else {
                found.files_skipped += 1;
                continue;
            };
            found.files_searched += 1;
            for (index, line) in text.lines().enumerate() {
                if begun.elapsed() > self.search_time {
                    return Err(Error::TooLong(self.search_time.as_secs_f64()));
                }
                // An expression can take minutes on a very long line, and the search cannot be cancelled.
                let most_bytes = if is_regex { MAX_SEARCHED } else { line.len() };
                let Some(place) = pattern.find(&line[..line.floor_char_boundary(most_bytes)])
                else {
                    found.truncated |= line.len() > most_bytes;
                    continue;
                };
                if found.hits.len() == most || bytes > self.max_bytes {
                    found.truncated = true;
                    return Ok(found);
                }
                let text = excerpt(line, place.start());
                bytes += path.len() + text.len();
                found.hits.push(Hit { path: path.clone(), line: index + 1, text });
            }
        }
        Ok(found)
    }
}

fn pattern(query: &str, is_regex: bool) -> Result<Regex> {
    if query.trim().is_empty() {
        return Err(Error::EmptyQuery);
    }
    let source = if is_regex { query.to_owned() } else { regex::escape(query.trim()) };
    RegexBuilder::new(&source)
        .case_insensitive(!is_regex)
        .size_limit(MAX_REGEX_BYTES)
        .build()
        .map_err(Error::Regex)
}

/// Returns the line, or for a very long one a part that begins shortly before the match.
fn excerpt(line: &str, place: usize) -> String {
    if line.len() <= MAX_LINE_BYTES {
        return line.to_owned();
    }
    let start = line.floor_char_boundary(place.saturating_sub(MAX_LINE_BYTES / 4));
    let end = line.floor_char_boundary(start + MAX_LINE_BYTES);
    let mut part = line[start..end].to_owned();
    if start > 0 {
        part.insert(0, '…');
    }
    if end < line.len() {
        part.push('…');
    }
    part
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;

    fn tree() -> (tempfile::TempDir, Tree) {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("sub")).unwrap();
        std::fs::write(root.path().join("z.txt"), "Ramadan 2018\nnothing\nramadan again\n")
            .unwrap();
        std::fs::write(
            root.path().join("sub/a.txt"),
            format!("{}RAMADAN{}\n", "x".repeat(900), "ü".repeat(900)),
        )
        .unwrap();
        std::fs::write(root.path().join("sub/b.bin"), b"ramadan\0").unwrap();
        let tree = Tree::open(&Options { root: root.path().into(), max_bytes: 10_000 }).unwrap();
        (root, tree)
    }

    #[test]
    fn plain_text_is_found_without_regard_to_case_in_order_of_path_and_line() {
        let (_root, tree) = tree();
        let found = tree.search("ramadan", false, "", 10).unwrap();
        let places: Vec<_> = found.hits.iter().map(|hit| (hit.path.as_str(), hit.line)).collect();
        assert_eq!(places, [("sub/a.txt", 1), ("z.txt", 1), ("z.txt", 3)]);
        assert!(found.hits[0].text.len() < 500 && found.hits[0].text.contains("RAMADAN"));
        assert_eq!(found.files_searched, 2);
        assert!(!found.truncated);
    }

    /// One of 37 s on a long line still ran after its cancellation.
    #[test]
    fn a_search_ends_in_time_with_any_expression_and_any_lines() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("long.txt"), "a".repeat(3_000_000)).unwrap();
        std::fs::write(root.path().join("lines.txt"), "word\n".repeat(100)).unwrap();
        let options = Options { root: root.path().into(), max_bytes: 16_777_216 };
        let mut tree = Tree::open(&options).unwrap();
        let found = tree.search("(.*?,){12}z|(a+)+b", true, "long.txt", 10);
        assert!(found.is_ok_and(|found| found.hits.is_empty() && found.truncated));
        let mut line = "a".repeat(3_000_000);
        line.push_str(", item 7999");
        std::fs::write(root.path().join("item.txt"), line).unwrap();
        let found = tree.search("ITEM 7999", false, "", 10).unwrap();
        assert_eq!((found.hits.len(), found.truncated), (1, false));
        let found = tree.search("item [0-9]+", true, "item.txt", 10).unwrap();
        assert!(found.hits.is_empty() && found.truncated, "{found:?}");
        tree.search_time = std::time::Duration::ZERO;
        assert!(matches!(tree.search("z", true, "lines.txt", 10), Err(Error::TooLong(_))));
    }

    #[test]
    fn the_number_of_hits_is_bounded_and_the_answer_reports_it() {
        let (_root, tree) = tree();
        let found = tree.search("ramadan", false, "", 2).unwrap();
        assert_eq!((found.hits.len(), found.truncated), (2, true));
    }

    #[test]
    fn expressions_are_compiled_as_given_and_bad_ones_explained() {
        let (_root, tree) = tree();
        assert_eq!(tree.search(r"^Ramadan \d{4}$", true, "z.txt", 10).unwrap().hits.len(), 1);
        assert_eq!(tree.search("2018 (", false, ".", 10).unwrap().hits.len(), 0);
        assert!(matches!(tree.search("(", true, ".", 10), Err(Error::Regex(_))));
        assert!(matches!(tree.search(r"(\w{1000}){1000}", true, ".", 10), Err(Error::Regex(_))));
        assert!(matches!(tree.search(" ", false, ".", 10), Err(Error::EmptyQuery)));
    }
}

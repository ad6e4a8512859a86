//! The finding of an agent, and its citations: a number in brackets refers to a passage or a result; otherwise it is
//! removed and counted.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::result::{AgentResult, Chart, Source, Table};

/// Numbers from here on are no citations: `[2031]` is a year.
const TOO_LARGE: usize = 1_000;

/// An answer whose citations all name something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedCitations {
    pub text: String,
    /// The cited sources, in order, each once.
    pub cited: Vec<usize>,
    /// The sentences that end with a citation, by the cited source.
    pub statements: BTreeMap<usize, Vec<String>>,
    /// Number of removed citations without a source.
    pub removed: u64,
}

/// Removes citations of other things than the `known` ones, which are numbered from 1; `[1, 3]` and `[1][3]` are both
/// read.
///
/// Code, links, notes and indexes such as `rows[0]` stay as they are.
pub fn check_citations(answer: &str, known: usize) -> CheckedCitations {
    let of_known = |number: &usize| (1..=known).contains(number);
    rewritten(answer, |numbers| numbers.iter().copied().filter(of_known).collect())
}

impl CheckedCitations {
    /// Makes each number the place of its source among the cited ones, counted from 1.
    #[must_use]
    pub fn renumbered(self) -> Self {
        let place = |number: &usize| Some(self.cited.binary_search(number).ok()? + 1);
        let text = rewritten(&self.text, |numbers| numbers.iter().filter_map(place).collect()).text;
        Self { text, ..self }
    }
}

/// Removes an agent's citations of its own `sources`, whose numbers mean something else elsewhere.
fn without_own_citations(output: &str, sources: usize) -> String {
    let is_own = |numbers: &[usize]| numbers.iter().all(|number| (1..=sources).contains(number));
    rewritten(output, |numbers| if is_own(numbers) { Vec::new() } else { numbers.to_vec() }).text
}

impl AgentResult {
    /// Returns the output without citations of its own sources: in an answer, a number is that of a result.
    pub(super) fn uncited_output(&self) -> String {
        without_own_citations(&self.output, self.sources.len())
    }
}

/// Puts other numbers into the citations of a text; one without numbers goes.
fn rewritten(answer: &str, named: impl Fn(&[usize]) -> Vec<usize>) -> CheckedCitations {
    let mut text = String::with_capacity(answer.len());
    let mut cited = BTreeSet::new();
    let mut statements: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let mut statement = String::new();
    let mut last = 0;
    let mut removed = 0;
    let mut rest = answer;
    while let Some(next) = rest.find(['`', '[']) {
        let (before, from) = rest.split_at(next);
        text.push_str(before);
        let Some((numbers, length)) = citation(from, &text) else {
            let kept = code(from).unwrap_or(1);
            text.push_str(&from[..kept]);
            rest = &from[kept..];
            continue;
        };
        rest = &from[length..];
        let named = named(&numbers);
        // `[1][2]` are two sources of one statement.
        match last_sentence(&text[last..]) {
            "" => {}
            sentence => statement = sentence.to_owned(),
        }
        removed += (numbers.len() - named.len()) as u64;
        if named.is_empty() {
            // The space before it goes with it.
            text.truncate(text.trim_end_matches(' ').len());
        } else if named == numbers {
            text.push_str(&from[..length]);
        } else {
            let shown: Vec<String> = named.iter().map(usize::to_string).collect();
            text.push_str(&format!("[{}]", shown.join(", ")));
        }
        last = text.len();
        for number in named {
            cited.insert(number);
            statements.entry(number).or_default().push(statement.clone());
        }
    }
    text.push_str(rest);
    CheckedCitations { text, cited: cited.into_iter().collect(), statements, removed }
}

fn last_sentence(text: &str) -> &str {
    let text = text.trim_end_matches(|c: char| !c.is_alphanumeric());
    let ends = [". ", "! ", "? ", "\n", "。"].into_iter();
    let begin = ends.filter_map(|end| Some(text.rfind(end)? + end.len())).max();
    text[begin.unwrap_or(0)..].trim_start_matches(|c: char| !c.is_alphanumeric())
}

/// Returns how long the code is with which a text begins: as many backticks close it as opened it.
fn code(text: &str) -> Option<usize> {
    let ticks = |text: &str| text.len() - text.trim_start_matches('`').len();
    let opened = ticks(text);
    if opened == 0 {
        return None;
    }
    let mut at = opened;
    loop {
        at += text[at..].find('`')?;
        let run = ticks(&text[at..]);
        at += run;
        if run == opened {
            return Some(at);
        }
    }
}

/// Reads the numbers of `[n]` or `[n, m]` at the start of a text, and its length; `[n](…)` and `[n]:` are Markdown's own.
fn citation(text: &str, before: &str) -> Option<(Vec<usize>, usize)> {
    let inside = text.strip_prefix('[')?;
    let end = inside.find(|c: char| !c.is_ascii_digit() && !matches!(c, ',' | ' '))?;
    let (inside, after) = inside.split_at(end);
    if after.strip_prefix(']')?.starts_with(['(', ':']) {
        return None;
    }
    let number = |part: &str| part.trim().parse().ok().filter(|number| *number < TOO_LARGE);
    let numbers: Vec<usize> = inside.split(',').map(number).collect::<Option<_>>()?;
    (!is_index(before, &numbers)).then_some((numbers, end + 2))
}

/// Distinguishes `rows[7]` from a citation: an index follows a name in code-like text, or is 0, which is never a
/// citation.
fn is_index(before: &str, numbers: &[usize]) -> bool {
    let mut letters = before.chars().rev().take_while(|letter| !letter.is_whitespace());
    before.ends_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_')
        && (numbers == [0] || letters.any(|letter| matches!(letter, '_' | '.' | '(')))
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[must_use]
pub struct Finding {
    pub output: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<Table>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart: Option<Chart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// Citations of the output without a source, which were removed.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub citations_removed: u64,
}

impl Finding {
    pub fn text(output: impl Into<String>) -> Self {
        Self { output: output.into(), ..Self::default() }
    }

    pub fn table(mut self, table: Table) -> Self {
        self.table = Some(table);
        self
    }

    pub fn chart(mut self, chart: Chart) -> Self {
        self.chart = Some(chart);
        self
    }

    /// Sets the confidence of the agent, from 0 to 1.
    pub fn confidence(mut self, confidence: f64) -> Self {
        self.confidence = Some(confidence.clamp(0.0, 1.0));
        self
    }

    /// Sets the number of removed citations without a source.
    pub fn citations_removed(mut self, removed: u64) -> Self {
        self.citations_removed = removed;
        self
    }

    pub fn source(mut self, source: Source) -> Self {
        self.sources.push(source);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S1.13, S3.06
    #[test]
    fn a_citation_without_a_target_is_removed_and_counted_and_all_other_text_stays() {
        let kept = |answer| check_citations(answer, 2).text;
        assert_eq!(kept("It is 42 [1][3], or 43 [2] [9]."), "It is 42 [1], or 43 [2].");
        assert_eq!(kept("None [0]."), "None.");
        for same in [
            "`a[9]` and t.rows[9], a[0]",
            "```\nlist[9] ` [9]\n``` [1]",
            "[9](https://x.example)",
            "[9]: note",
            "[x] [] [ [1",
            "[2031] is a year",
            "Größe [1], 配置 [x], [1,2]",
        ] {
            let checked = check_citations(same, 2);
            assert_eq!((checked.text.as_str(), checked.removed), (same, 0));
        }
        assert_eq!(kept("One ` alone hides nothing [9]."), "One ` alone hides nothing.");
        assert_eq!(check_citations("[1]", 0).text, "");

        let words = "Rents rose [1]. Wages fell [4][2, 9]. See [the list](x).";
        let checked = check_citations(words, 3);
        assert_eq!(checked.text, "Rents rose [1]. Wages fell[2]. See [the list](x).");
        assert_eq!((checked.cited.as_slice(), checked.removed), (&[1, 2][..], 2));
    }

    /// S1.13, S3.06
    #[test]
    fn citations_are_numbered_as_the_sources_that_go_with_them_and_not_read_as_results() {
        let checked = check_citations("Rents rose [2]. Wages fell [5, 2] `x[5]`.", 8).renumbered();
        assert_eq!(checked.text, "Rents rose [1]. Wages fell [2, 1] `x[5]`.");
        assert_eq!(checked.cited, [2, 5]);
        let before = |number| checked.statements[&number].join(" | ");
        assert_eq!((before(2), before(5)), ("Rents rose | Wages fell".into(), "Wages fell".into()));
        let checked = check_citations("It rose. It fell by 5 %. [1][2] So\n- one [1]; two [2].", 2);
        let before = |number| checked.statements[&number].join(" | ");
        assert_eq!(
            (before(1), before(2)),
            ("It fell by 5 | one".into(), "It fell by 5 | two".into())
        );
        for (output, elsewhere) in [
            ("Rents rose [1][2].", "Rents rose."),
            ("Numbers [1, 2, 3] and [3]; one [2, 1].", "Numbers [1, 2, 3] and [3]; one."),
        ] {
            assert_eq!(without_own_citations(output, 2), elsewhere);
            assert_eq!(without_own_citations(output, 0), output);
        }
    }
}

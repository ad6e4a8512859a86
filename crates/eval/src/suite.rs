//! The suite as it is written: in YAML, or as a data set with one case in JSON per line.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde::Deserialize;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the suite cannot be read: {0}")]
    Yaml(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("line {line}: {source}")]
    Line { line: usize, source: Box<Self> },
    #[error("no valid JSON from column {0} on; write one object per line")]
    Json(usize),
    #[error("field `{field}`: {source}")]
    Field { field: String, source: serde_json::Error },
    #[error("the suite has no cases; add at least one")]
    NoCases,
    #[error("two cases have the same name: {0}")]
    Duplicate(String),
    #[error("the case has neither `question` (or `input`) nor `turns`, or both: {0}")]
    Questions(String),
    #[error("the case expects nothing, so it could not fail; add `expect` or `judge`: {0}")]
    NothingExpected(String),
    #[error("the case {case} has an invalid regular expression: {reason}")]
    Pattern { case: String, reason: String },
    #[error("the case {case}: {key} must be {wanted}")]
    Range { case: String, key: &'static str, wanted: &'static str },
}

/// Questions with what must be true of their answers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    pub name: String,
    /// Default for the number of runs of each case.
    #[serde(default = "one")]
    pub repeat: u32,
    /// Default for the share of a case's runs that must pass, from 0 to 1.
    #[serde(default = "all")]
    pub require: f64,
    pub cases: Vec<Case>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "an object")]
pub struct Case {
    /// In a data set, `line N` by default.
    pub name: String,
    /// The only question; in place of `turns`.
    #[serde(alias = "input")]
    pub question: Option<String>,
    /// Questions of one thread in order; `expect` applies to the last answer.
    pub turns: Vec<Turn>,
    pub context: BTreeMap<String, String>,
    pub prefer_agents: Vec<String>,
    pub disable_agents: Vec<String>,
    pub max_turns: Option<u32>,
    pub system_prompt: Option<String>,
    pub repeat: Option<u32>,
    pub require: Option<f64>,
    pub expect: Expect,
    /// The criterion by which a model judges the answer, in words.
    pub judge: Option<String>,
    /// A correct answer: the answer contains it, ignoring case and spaces, or the judge finds that it says the same.
    pub expected: Option<String>,
    /// As `expect.answer.contains`.
    pub contains: Vec<String>,
    pub tags: Vec<String>,
    pub note: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    pub question: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expect {
    /// `done`, `interrupted` or `failed`; `done` by default.
    pub status: Option<String>,
    pub finish_reason: Option<String>,
    pub answer: AnswerRules,
    /// Agents that worked, by name with or without `mcp_agent_`.
    pub agents: NameRules,
    /// Tools that were called, as `server.tool`.
    pub tools: NameRules,
    pub data: Option<DataRules>,
    pub citations_at_least: Option<usize>,
    /// The kind of the question that the run must end with, such as `approval`.
    pub asks: Option<String>,
    pub at_most: Budget,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AnswerRules {
    /// Texts that it contains, ignoring case.
    pub contains: Vec<String>,
    pub excludes: Vec<String>,
    /// Regular expressions that match somewhere in it.
    pub matches: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NameRules {
    #[serde(alias = "called")]
    pub used: Vec<String>,
    #[serde(alias = "not_called")]
    pub not_used: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataRules {
    /// Columns that are there, in any order.
    pub columns: Vec<String>,
    pub rows_at_least: Option<usize>,
    pub rows_at_most: Option<usize>,
    /// Rows that are there, each with these values among its own, compared as text.
    pub rows: Vec<Vec<String>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    pub tokens: Option<u64>,
    pub steps: Option<u64>,
    pub tool_calls: Option<u64>,
    pub cost_usd: Option<f64>,
    pub seconds: Option<f64>,
}

fn one() -> u32 {
    1
}

fn all() -> f64 {
    1.0
}

impl Suite {
    /// Reads a suite and checks that every case can be run and can fail.
    ///
    /// # Errors
    /// [`Error`] with the case and the problem.
    pub fn parse(yaml: &str) -> Result<Self, Error> {
        let options = serde_saphyr::options! { with_snippet: false };
        let suite: Self = serde_saphyr::from_str_with_options(yaml, options)
            .map_err(|error| Error::Yaml(error.into()))?;
        for case in &suite.cases {
            if case.expects_nothing() {
                return Err(Error::NothingExpected(case.name.clone()));
            }
            case.check()?;
            if !(0.0..=1.0).contains(&suite.require_of(case)) {
                return Err(case.out_of_range("require", "between 0 and 1"));
            }
            if !(1..=1_000).contains(&suite.repeat_of(case)) {
                return Err(case.out_of_range("repeat", "between 1 and 1000"));
            }
        }
        suite.named_apart()
    }

    /// Reads a data set: one case in JSON per line. Empty lines are skipped.
    ///
    /// A case without expectations passes if its run ends: other models' answers can be compared with its answer.
    ///
    /// # Errors
    /// [`Error`] with the line and the field.
    pub fn parse_lines(name: &str, text: &str) -> Result<Self, Error> {
        let lines = text.trim_start_matches('\u{feff}').lines().enumerate();
        let lines = lines.filter(|(_, line)| !line.trim().is_empty());
        let read = |(at, text): (usize, &str)| {
            let line = at + 1;
            Case::of_line(line, text).map_err(|error| Error::Line { line, source: error.into() })
        };
        let cases = lines.map(read).collect::<Result<_, _>>()?;
        let name = name.to_owned();
        Self { name, repeat: one(), require: all(), cases }.named_apart()
    }

    fn named_apart(mut self) -> Result<Self, Error> {
        for case in &mut self.cases {
            case.expect.answer.contains.append(&mut case.contains);
        }
        let mut names = BTreeSet::new();
        match self.cases.iter().find(|case| !names.insert(&case.name)) {
            Some(case) => Err(Error::Duplicate(case.name.clone())),
            None if self.cases.is_empty() => Err(Error::NoCases),
            None => Ok(self),
        }
    }

    pub fn repeat_of(&self, case: &Case) -> u32 {
        case.repeat.unwrap_or(self.repeat)
    }

    /// Returns the share of a case's runs that must pass.
    pub fn require_of(&self, case: &Case) -> f64 {
        case.require.unwrap_or(self.require)
    }
}

impl Case {
    pub fn questions(&self) -> Vec<&str> {
        match &self.question {
            Some(question) => vec![question],
            None => self.turns.iter().map(|turn| turn.question.as_str()).collect(),
        }
    }

    fn of_line(line: usize, text: &str) -> Result<Self, Error> {
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|error| Error::Json(error.column()))?;
        let mut case: Self = serde_path_to_error::deserialize(value).map_err(|error| {
            let field = error.path().to_string();
            Error::Field { field, source: error.into_inner() }
        })?;
        if case.name.is_empty() {
            case.name = format!("line {line}");
        }
        case.check()?;
        Ok(case)
    }

    fn out_of_range(&self, key: &'static str, wanted: &'static str) -> Error {
        Error::Range { case: self.name.clone(), key, wanted }
    }

    fn expects_nothing(&self) -> bool {
        let is_rule = self.expected.is_some() || self.judge.is_some() || !self.contains.is_empty();
        !is_rule && self.expect == Expect::default()
    }

    fn check(&self) -> Result<(), Error> {
        if self.question.is_some() != self.turns.is_empty() {
            return Err(Error::Questions(self.name.clone()));
        }
        if self.expected.as_ref().is_some_and(|text| text.trim().is_empty()) {
            return Err(self.out_of_range("expected", "a text that is not empty"));
        }
        for pattern in &self.expect.answer.matches {
            if let Err(error) = Regex::new(pattern) {
                return Err(Error::Pattern { case: self.name.clone(), reason: error.to_string() });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUITE: &str = "
name: shop
repeat: 2
cases:
  - name: best seller
    question: Which album sold best?
    expect:
      answer: { contains: [Blue], matches: ['2[.,]?328'] }
      agents: { used: [shop], not_used: [mail] }
      tools: { called: [shop.query] }
      at_most: { tokens: 5000, seconds: 20 }
  - name: follow-up
    repeat: 1
    turns: [{ question: Hello }, { question: And then? }]
    judge: The answer is polite.
";

    #[test]
    fn a_suite_is_read_with_its_defaults() {
        let suite = Suite::parse(SUITE).unwrap();
        assert_eq!(suite.cases[1].questions(), ["Hello", "And then?"]);
        assert_eq!((suite.repeat_of(&suite.cases[0]), suite.repeat_of(&suite.cases[1])), (2, 1));
        assert_eq!(suite.cases[0].expect.at_most.tokens, Some(5000));
    }

    #[test]
    fn a_case_that_cannot_fail_or_run_is_refused_by_name() {
        for (yaml, words) in [
            ("name: a\ncases: []", "no cases"),
            ("name: a\ncases: [{ name: x, question: q }]", "could not fail"),
            ("name: a\ncases: [{ name: x, judge: j }]", "neither"),
            (
                "name: a\ncases: [{ name: x, question: q, turns: [{question: r}], judge: j }]",
                "both",
            ),
            (
                "name: a\ncases: [{ name: x, question: q, judge: j }, { name: x, question: q, judge: j }]",
                "same name",
            ),
            (
                "name: a\ncases: [{ name: x, question: q, expect: { answer: { matches: ['('] } } }]",
                "regular expression",
            ),
            ("name: a\ncases: [{ name: x, question: q, expects: {} }]", "expects"),
            ("name: a\nrequire: 2\ncases: [{ name: x, question: q, judge: j }]", "between 0 and 1"),
            ("name: [", "cannot be read"),
        ] {
            let refused = Suite::parse(yaml).unwrap_err().to_string();
            assert!(refused.contains(words), "{yaml}: {refused}");
        }
    }

    #[test]
    fn a_data_set_has_a_case_per_line() {
        let lines = "\u{feff}{\"input\": \"How many?\", \"expected\": \"42\", \"tags\": [\"sums\"]}\r\n\r\n\
                     {\"name\": \"talk\", \"turns\": [{\"question\": \"a\"}, {\"question\": \"b\"}], \"expect\": \
                     {\"agents\": {\"used\": [\"shop\"]}}}\n{\"input\": \"Which?\"}";
        let suite = Suite::parse_lines("set", lines).unwrap();
        let names: Vec<&str> = suite.cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names, ["line 1", "talk", "line 4"]);
        assert_eq!(suite.cases[0].expected.as_deref(), Some("42"));
        assert_eq!(suite.cases[1].questions(), ["a", "b"]);
    }

    #[test]
    fn what_is_wrong_in_a_data_set_is_named_with_line_and_field() {
        const GOOD: &str = "{\"input\": \"q\"}\n\n";
        for (line, place, words) in [
            ("{\"input\": \"q\"", "line 3: no valid JSON from column 13", "one object per line"),
            ("{\"input\": \"q\"} {}", "line 3: no valid JSON from column 16", ""),
            ("{\"input\": \"q\", \"expected\": \" \"}", "line 3", "not empty"),
            ("7", "line 3", "expected an object"),
            ("{\"input\": 7}", "line 3: field `input`", "expected a string"),
            (
                "{\"input\": \"q\", \"contains\": [\"a\", 2]}",
                "line 3: field `contains[1]`",
                "integer `2`",
            ),
            (
                "{\"input\": \"q\", \"expect\": {\"at_most\": {\"tokens\": -1}}}",
                "line 3: field `expect.at_most.tokens`",
                "-1",
            ),
            ("{\"inputs\": \"q\"}", "line 3: field `inputs`", "unknown field"),
            ("{\"expected\": \"a\"}", "line 3", "`input`"),
            ("{\"input\": \"q\", \"turns\": [{\"question\": \"r\"}]}", "line 3", "or both"),
            (
                "{\"input\": \"q\", \"expect\": {\"answer\": {\"matches\": [\"(\"]}}}",
                "line 3",
                "regular expression",
            ),
            ("{\"name\": \"line 1\", \"input\": \"q\"}", "same name: line 1", ""),
        ] {
            let refused =
                Suite::parse_lines("set", &format!("{GOOD}{line}")).unwrap_err().to_string();
            assert!(refused.starts_with(place) || refused.ends_with(place), "{line}: {refused}");
            assert!(refused.contains(words), "{line}: {refused}");
        }
        assert!(matches!(Suite::parse_lines("set", "\n"), Err(Error::NoCases)));
    }
}

//! The suite as it is written, in YAML.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde::Deserialize;

/// Why a suite cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the suite cannot be read: {0}")]
    Yaml(String),
    #[error("the suite has no cases; add at least one under `cases:`")]
    NoCases,
    #[error("two cases have the same name: {0}")]
    Duplicate(String),
    #[error("the case has neither `question` nor `turns`, or both: {0}")]
    Questions(String),
    #[error("the case expects nothing, so it could not fail; add `expect` or `judge`: {0}")]
    NothingExpected(String),
    #[error("the case {case} has a pattern that is no regular expression: {reason}")]
    Pattern { case: String, reason: String },
    #[error("the case {case}: {key} must be {wanted}")]
    Range { case: String, key: &'static str, wanted: &'static str },
}

/// Questions with what must be true of their answers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    pub name: String,
    /// Times that each case is run, where it does not say itself.
    #[serde(default = "one")]
    pub repeat: u32,
    /// The share of a case's runs that must pass, from 0 to 1, where it does not say itself.
    #[serde(default = "all")]
    pub require: f64,
    pub cases: Vec<Case>,
}

/// One conversation and what is expected of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    /// The only question; in place of `turns`.
    pub question: Option<String>,
    /// Questions of one thread in their order; `expect` is held against the last answer.
    #[serde(default)]
    pub turns: Vec<Turn>,
    #[serde(default)]
    pub context: BTreeMap<String, String>,
    #[serde(default)]
    pub prefer_agents: Vec<String>,
    #[serde(default)]
    pub disable_agents: Vec<String>,
    pub max_turns: Option<u32>,
    pub system_prompt: Option<String>,
    pub repeat: Option<u32>,
    pub require: Option<f64>,
    #[serde(default)]
    pub expect: Expect,
    /// What a model is to judge the answer by, in words.
    pub judge: Option<String>,
}

/// One message of a conversation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    pub question: String,
}

/// What must be true of a run's result.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expect {
    /// `done`, `interrupted` or `failed`; `done` where nothing is said.
    pub status: Option<String>,
    pub finish_reason: Option<String>,
    pub answer: AnswerRules,
    /// Agents that worked, by name with or without `mcp_agent_`.
    pub agents: NameRules,
    /// Tools that were called, as `server.tool`.
    pub tools: ToolRules,
    pub data: Option<DataRules>,
    pub citations_at_least: Option<usize>,
    /// The kind of the question that the run must end with, such as `approval`.
    pub asks: Option<String>,
    pub at_most: Budget,
}

/// Rules for a text.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AnswerRules {
    /// Texts that stand in it, whatever their case.
    pub contains: Vec<String>,
    pub excludes: Vec<String>,
    /// Regular expressions that match somewhere in it.
    pub matches: Vec<String>,
}

/// Rules for names.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NameRules {
    pub used: Vec<String>,
    pub not_used: Vec<String>,
}

/// Rules for calls.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolRules {
    pub called: Vec<String>,
    pub not_called: Vec<String>,
}

/// Rules for the table of an answer.
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

/// Upper bounds.
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
    /// [`Error`] naming the case and what is wrong with it.
    pub fn parse(yaml: &str) -> Result<Self, Error> {
        let suite: Self =
            serde_saphyr::from_str(yaml).map_err(|error| Error::Yaml(error.to_string()))?;
        if suite.cases.is_empty() {
            return Err(Error::NoCases);
        }
        let mut names = BTreeSet::new();
        for case in &suite.cases {
            if !names.insert(case.name.as_str()) {
                return Err(Error::Duplicate(case.name.clone()));
            }
            case.check()?;
            if !(0.0..=1.0).contains(&case.require.unwrap_or(suite.require)) {
                let key = "require";
                let wanted = "between 0 and 1";
                return Err(Error::Range { case: case.name.clone(), key, wanted });
            }
            if !(1..=1_000).contains(&case.repeat.unwrap_or(suite.repeat)) {
                let key = "repeat";
                let wanted = "between 1 and 1000";
                return Err(Error::Range { case: case.name.clone(), key, wanted });
            }
        }
        Ok(suite)
    }

    /// Returns how often a case is run.
    pub fn repeat_of(&self, case: &Case) -> u32 {
        case.repeat.unwrap_or(self.repeat)
    }

    /// Returns the share of a case's runs that must pass.
    pub fn require_of(&self, case: &Case) -> f64 {
        case.require.unwrap_or(self.require)
    }
}

impl Case {
    /// Returns its questions in their order.
    pub fn questions(&self) -> Vec<&str> {
        match &self.question {
            Some(question) => vec![question],
            None => self.turns.iter().map(|turn| turn.question.as_str()).collect(),
        }
    }

    fn check(&self) -> Result<(), Error> {
        if self.question.is_some() != self.turns.is_empty() {
            return Err(Error::Questions(self.name.clone()));
        }
        if self.expect == Expect::default() && self.judge.is_none() {
            return Err(Error::NothingExpected(self.name.clone()));
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
}

//! Judges calls: what each was to do, what the receiver did, and what a person was asked.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use perihelion::checkpoint::{EffectKind, EffectRow, EffectStatus};
use serde_json::Value;
use uuid::Uuid;

use super::jobs::{BOOK, LOOK, RING};
use super::logs::{EFFECTS, Effect, QUESTIONS, Question, lines};
use super::oracle::Findings;

/// What the receiver did and what people were asked, by the line of the call.
#[derive(Debug, Default)]
pub struct Deeds {
    effects: HashMap<(String, String), u64>,
    /// Verdicts by question, by the line it was about.
    questions: HashMap<String, BTreeMap<String, String>>,
    verdicts: HashMap<String, String>,
}

impl Deeds {
    pub fn read(directory: &Path, findings: &mut Findings) -> Self {
        let mut deeds = Self::default();
        for Effect { tool, line, refused, .. } in lines(directory, EFFECTS) {
            if refused {
                findings.refused += 1;
                continue;
            }
            *findings.effects.entry(tool.clone()).or_default() += 1;
            *deeds.effects.entry((tool, line)).or_default() += 1;
        }
        for Question { interrupt, line, verdict } in lines(directory, QUESTIONS) {
            let of_line = deeds.questions.entry(line).or_default();
            of_line.insert(interrupt.clone(), verdict.clone());
            deeds.verdicts.insert(interrupt, verdict);
        }
        findings.questions = deeds.verdicts.len() as u64;
        deeds
    }

    /// Judges one call that a thread was to make; `row` is its record in the journal.
    pub fn judge(
        &mut self,
        tool: &str,
        line: &str,
        row: Option<&EffectRow>,
        findings: &mut Findings,
    ) {
        if tool == LOOK {
            return;
        }
        let done = self.effects.remove(&(tool.to_owned(), line.to_owned())).unwrap_or_default();
        let asked = self.questions.get(line);
        let count = |verdict: &str| {
            asked.map_or(0, |all| all.values().filter(|one| *one == verdict).count() as u64)
        };
        let excused = count("skip") + count("done") > 0
            || row.is_some_and(|row| row.status == EffectStatus::Failed);
        if row.is_none() {
            findings.violate("unrecorded", format!("{tool} {line}"));
        }
        if done == 0 && !excused {
            findings.violate("missing effect", format!("{tool} {line}"));
        }
        let more = done.saturating_sub(1);
        match tool {
            BOOK if more > 0 => {
                findings.violate("duplicate effect", format!("{tool} {line}: {done} times"));
            }
            RING => findings.unchecked_duplicates += more,
            _ if more > 0 => {
                findings.asked_duplicates += more;
                // A zombie's call may reach the receiver after the question about it was answered.
                if more > count("retry") {
                    let what = format!("{tool} {line}: {done} times, asked about: {asked:?}");
                    findings.violate("duplicate not asked about", what);
                }
            }
            _ => {}
        }
    }

    /// Checks that each question has the one answer that it was given.
    pub fn answers(&self, effects: &[EffectRow], findings: &mut Findings) {
        for row in effects.iter().filter(|row| row.kind == EffectKind::Interrupt) {
            let id = Uuid::from_slice(&row.key).unwrap_or_default().to_string();
            let answer: Option<Value> = row.outcome.as_ref().and_then(|one| one.decode().ok());
            let recorded = answer.as_ref().and_then(|one| one["outcome"].as_str());
            if recorded != self.verdicts.get(&id).map(String::as_str) {
                let what =
                    format!("{id}: {recorded:?} is recorded, {:?} given", self.verdicts.get(&id));
                findings.violate("answer", what);
            }
        }
    }

    /// Whatever is left was done without a thread that was to do it.
    pub fn finish(self, findings: &mut Findings) {
        for ((tool, line), _) in self.effects {
            findings.violate("effect of nobody", format!("{tool} {line}"));
        }
    }
}

/// Finds the record of the call with a line in its arguments.
pub fn find<'a>(rows: impl Iterator<Item = &'a EffectRow>, line: &str) -> Option<&'a EffectRow> {
    rows.into_iter().find(|row| {
        let request: Option<Value> = row.request.decode().ok();
        request.is_some_and(|request| request["arguments"]["line"] == line)
    })
}

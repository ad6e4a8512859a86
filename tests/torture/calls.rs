//! Judges calls: what each was to do, what the receiver did, and what a person was asked.
//!
//! What must have happened follows from the logs alone. The database is asked what it says of it, and excuses nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use perihelion::checkpoint::{EffectKind, EffectRow};
use perihelion::ids::ThreadId;
use serde_json::Value;
use uuid::Uuid;

use super::jobs::{BOOK, MAIL};
use super::logs::{ACCEPTED, Accepted, EFFECTS, Effect, QUESTIONS, Question, lines};
use super::oracle::Findings;
use super::turns::{Sent, Turns};

/// What the receiver saw of one call.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// Times that it was carried out.
    done: u64,
    /// Times that the receiver knew its key and did nothing.
    refused: u64,
    /// Every time that it came.
    sent: Vec<Sent>,
}

/// How often a thread was taken, by the harness's own notes and by its fencing token.
pub struct Taken<'a> {
    pub turns: &'a Turns,
    pub thread: ThreadId,
    /// Claims after the first one, each of which raised the token.
    pub takeovers: u64,
}

impl Taken<'_> {
    /// Says what is not explained by a lost answer or another turn in requests that were all the same.
    pub fn unexplained(&self, sent: &[Sent]) -> Option<String> {
        let lost = sent.iter().filter(|one| one.lost).count() as u64;
        let times = sent.len() as u64;
        let takeovers = self.takeovers;
        if times > 1 + lost + takeovers {
            return Some(format!("sent {times} times in {takeovers} takeovers"));
        }
        self.turns.unexplained(self.thread, sent.to_vec())
    }
}

/// What the receiver did and what people were asked.
#[derive(Debug, Default)]
pub struct Deeds {
    /// By tool and line of the call.
    seen: HashMap<(String, String), Seen>,
    /// Questions by the line that they were about.
    questions: HashMap<String, BTreeSet<String>>,
    /// Answers that were about to be given, by question.
    given: BTreeMap<String, BTreeSet<String>>,
    /// Answers that were accepted, by question.
    accepted: BTreeMap<String, BTreeSet<String>>,
    /// Questions of which a thread holds a record.
    recorded: HashSet<String>,
}

impl Deeds {
    pub fn read(directory: &Path, findings: &mut Findings) -> Self {
        let mut deeds = Self::default();
        for effect in lines(directory, EFFECTS) {
            let Effect { process, at, tool, line, key: _, refused, lost } = effect;
            if refused {
                findings.refused += 1
            } else {
                *findings.effects.entry(tool.clone()).or_default() += 1
            }
            let seen = deeds.seen.entry((tool, line)).or_default();
            seen.done += u64::from(!refused);
            seen.refused += u64::from(refused);
            seen.sent.push(Sent { process, at, lost });
        }
        for Question { interrupt, line, verdict } in lines(directory, QUESTIONS) {
            deeds.questions.entry(line).or_default().insert(interrupt.clone());
            deeds.given.entry(interrupt).or_default().insert(verdict);
        }
        for Accepted { interrupt, verdict } in lines(directory, ACCEPTED) {
            deeds.accepted.entry(interrupt).or_default().insert(verdict);
        }
        findings.questions = deeds.given.len() as u64;
        findings.contested = deeds.given.values().filter(|given| given.len() > 1).count() as u64;
        deeds
    }

    /// Counts the questions about a call to which this answer holds: the one accepted, or one of those given where
    /// nobody lived to hear which was.
    fn answered(&self, line: &str, verdict: &str) -> u64 {
        let questions = self.questions.get(line).into_iter().flatten();
        let waiting = questions.filter(|id| {
            let answers = self.accepted.get(*id).or_else(|| self.given.get(*id));
            answers.is_some_and(|answers| answers.contains(verdict))
        });
        waiting.count() as u64
    }

    /// Judges one call that a thread was to make; `row` is its record in the journal.
    pub fn judge(
        &mut self,
        tool: &str,
        line: &str,
        row: Option<&EffectRow>,
        taken: &Taken<'_>,
        findings: &mut Findings,
    ) {
        let seen = self.seen.remove(&(tool.to_owned(), line.to_owned())).unwrap_or_default();
        if row.is_none() {
            findings.violate("unrecorded", format!("{tool} {line}"));
        }
        // Only a person can say that a call is not to be made.
        let waived = self.answered(line, "skip") + self.answered(line, "done");
        if seen.done == 0 && waived == 0 {
            findings.violate("missing effect", format!("{tool} {line}: recorded as {row:?}"));
        }
        let retries = self.answered(line, "retry");
        let what = || format!("{tool} {line}: {seen:?}, {retries} retries");
        let more = seen.done.saturating_sub(1);
        match tool {
            BOOK if more > 0 => findings.violate("duplicate effect", what()),
            // A zombie's call may reach the receiver after the question about it was answered.
            MAIL if more > retries => findings.violate("duplicate not asked about", what()),
            MAIL => findings.asked_duplicates += more,
            BOOK => {}
            _ => findings.unchecked_duplicates += more,
        }
        // Nobody sends a repeatable call again but for a lost answer, or after the one who had sent it.
        if tool != MAIL
            && let Some(why) = taken.unexplained(&seen.sent)
        {
            findings.violate("sent for no reason", format!("{}: {why}", what()));
        }
    }

    /// Checks that each question has one answer: one that was given, and the one that was accepted.
    pub fn answers(&mut self, effects: &[EffectRow], findings: &mut Findings) {
        for row in effects.iter().filter(|row| row.kind == EffectKind::Interrupt) {
            let id = Uuid::from_slice(&row.key).unwrap_or_default().to_string();
            let answer: Option<Value> = row.outcome.as_ref().and_then(|one| one.decode().ok());
            let recorded = answer.as_ref().and_then(|one| one["outcome"].as_str());
            let given = self.given.get(&id);
            let accepted = self.accepted.get(&id);
            let was_given = recorded.is_some_and(|it| given.is_some_and(|all| all.contains(it)));
            let is_complete =
                accepted.is_none_or(|all| all.iter().map(String::as_str).eq(recorded));
            if !was_given || !is_complete {
                let what = format!(
                    "{id}: {recorded:?} is recorded, {given:?} given, {accepted:?} accepted"
                );
                findings.violate("answer", what);
            }
            self.recorded.insert(id);
        }
    }

    /// What is left was done without a thread that was to do it, or accepted and not kept.
    pub fn finish(self, findings: &mut Findings) {
        for ((tool, line), _) in self.seen {
            findings.violate("effect of nobody", format!("{tool} {line}"));
        }
        for (id, verdicts) in self.accepted {
            if !self.recorded.contains(&id) {
                findings
                    .violate("answer", format!("{id}: {verdicts:?} was accepted, none is kept"));
            }
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

//! A run's figures: printed, kept as JSON, and added up over runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

use super::options::Kind;
use super::oracle::Findings;
use super::points;
use super::storm::Storm;

/// Everything about one run, or about several added up.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Database and seed of each run.
    pub runs: Vec<String>,
    pub seconds: f64,
    /// What happened to processes and to the database.
    pub faults: BTreeMap<String, u64>,
    pub findings: Findings,
    /// How often each failpoint was reached.
    pub points: BTreeMap<String, u64>,
    /// Failpoints that were reached less often than asked for.
    pub unreached: Vec<String>,
}

impl Summary {
    pub fn of(storm: &Storm, findings: Findings) -> Self {
        let counts = &storm.counts;
        let faults: [(&str, &AtomicU64); 10] = [
            ("processes", &counts.processes),
            ("kills", &counts.kills),
            ("kills at failpoints", &counts.kills_at_points),
            ("zombies", &counts.zombies),
            ("zombies at failpoints", &counts.zombies_at_points),
            ("processes with a wrong clock", &counts.skewed),
            ("database crashes", &counts.crashes),
            ("disk full", &counts.fills),
            ("connections cut", &counts.cuts),
            ("processes that gave up", &counts.gave_up),
        ];
        let on_postgres = storm.options.database == Kind::Postgres;
        let points = points::counts(&storm.directory, on_postgres);
        let least = storm.options.least;
        let unreached = points.iter().filter(|(_, count)| *count < least);
        let unreached = unreached.map(|(name, count)| format!("{name}: {count}")).collect();
        Self {
            runs: vec![format!("{} {}", storm.options.database.name(), storm.seed)],
            seconds: storm.started.elapsed().as_secs_f64(),
            faults: faults.map(|(name, count)| (name.to_owned(), count.load(Relaxed))).into(),
            findings,
            points: points.into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
            unreached,
        }
    }

    fn add(mut self, other: Self) -> Self {
        fn sum(into: &mut BTreeMap<String, u64>, more: BTreeMap<String, u64>) {
            for (name, count) in more {
                *into.entry(name).or_default() += count;
            }
        }
        self.runs.extend(other.runs);
        self.seconds += other.seconds;
        sum(&mut self.faults, other.faults);
        sum(&mut self.points, other.points);
        self.unreached.extend(other.unreached);
        let mine = &mut self.findings;
        let its = other.findings;
        sum(&mut mine.effects, its.effects);
        mine.threads += its.threads;
        mine.steps += its.steps;
        mine.acks += its.acks;
        mine.refused += its.refused;
        mine.unchecked_duplicates += its.unchecked_duplicates;
        mine.questions += its.questions;
        mine.contested += its.contested;
        mine.model_calls += its.model_calls;
        mine.model_repeats += its.model_repeats;
        mine.asked_duplicates += its.asked_duplicates;
        mine.asked_twice += its.asked_twice;
        mine.spans += its.spans;
        mine.undated += its.undated;
        for (kind, examples) in its.violations {
            mine.violations.entry(kind).or_default().extend(examples);
        }
        self
    }

    /// Returns what makes the run a failed one; a run that proves nothing fails too.
    pub fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> = Vec::new();
        for (kind, examples) in &self.findings.violations {
            let shown = examples.iter().take(5).map(String::as_str).collect::<Vec<_>>();
            problems.push(format!(
                "{kind}, {} times:\n    {}",
                examples.len(),
                shown.join("\n    ")
            ));
        }
        if !self.unreached.is_empty() {
            problems.push(format!("failpoints hardly reached: {}", self.unreached.join(", ")));
        }
        // Of the counted points these three are what a run is for.
        for proof in ["write.fenced.after", "call.unknown.before", "commit.reread.after"] {
            if self.points.get(proof) == Some(&0) {
                problems.push(format!("the run proves nothing: {proof} was not reached"));
            }
        }
        problems
    }

    /// Writes the figures as a table for the documentation.
    pub fn table(&self) -> String {
        let findings = &self.findings;
        let violations = |kind: &str| findings.violations.get(kind).map_or(0, Vec::len) as u64;
        let point = |name: &str| self.points.get(name).copied().unwrap_or_default();
        let effects = |tool: &str| findings.effects.get(tool).copied().unwrap_or_default();
        let mut rows: Vec<(String, u64)> =
            self.faults.iter().map(|(name, count)| (name.clone(), *count)).collect();
        let more: [(&str, u64); 29] = [
            ("threads, each run to its end", findings.threads),
            ("steps", findings.steps),
            ("steps acknowledged to a listener", findings.acks),
            ("writes refused by the fence", point("write.fenced.after")),
            ("commits whose reply was lost, read back", point("commit.reread.after")),
            (
                "times that a process found a call with an unknown outcome",
                point("call.unknown.before"),
            ),
            ("questions put to a person", findings.questions),
            ("questions given two answers that differ", findings.contested),
            ("requests to the model", findings.model_calls),
            ("of these sent again after a takeover", findings.model_repeats),
            (
                "fewest times that any failpoint was reached",
                self.points.values().copied().min().unwrap_or_default(),
            ),
            ("effects at the receiver that checks keys", effects("book")),
            ("repetitions that it refused", findings.refused),
            ("**acknowledged steps lost**", violations("lost")),
            ("**gaps and broken chains**", violations("gap") + violations("chain")),
            ("**duplicate steps and results**", violations("duplicate") + violations("results")),
            (
                "**duplicate effects where the receiver checks the key**",
                violations("duplicate effect"),
            ),
            ("**effects missing**", violations("missing effect")),
            ("**answers lost or not the one accepted**", violations("answer")),
            ("**repeatable calls sent again for no reason**", violations("sent for no reason")),
            (
                "**answers of the model asked for again for no reason, or never**",
                violations("model asked for no reason") + violations("model never asked"),
            ),
            (
                "**unknown outcomes that nobody was asked about**",
                violations("duplicate not asked about"),
            ),
            ("**threads that did not end**", violations("unfinished")),
            ("**plans that are not the job's**", violations("tasks")),
            ("spans of their traces", findings.spans),
            ("threads whose traces were not judged, their clocks being at odds", findings.undated),
            ("**spans that did not reach the collector**", violations("trace")),
            (
                "duplicate effects of repeatable calls, receiver checks nothing",
                findings.unchecked_duplicates,
            ),
            ("duplicate effects after a person said: send again", findings.asked_duplicates),
        ];
        rows.extend(more.map(|(name, count)| (name.to_owned(), count)));
        let mut table = String::from("| | |\n|---|---:|\n");
        for (name, count) in rows {
            table.push_str(&format!("| {name} | {} |\n", grouped(count)));
        }
        let runs = self.runs.join(", ");
        table.push_str(&format!(
            "\nRuns (database and seed): {runs}; {:.0} s in all.\n",
            self.seconds
        ));
        table
    }

    pub fn save(&self, path: &Path) {
        std::fs::write(path, serde_json::to_vec_pretty(self).unwrap()).unwrap();
    }
}

/// Adds summaries up and prints their table.
pub fn merge(paths: &[PathBuf]) -> Summary {
    let read = |path: &PathBuf| -> Summary {
        let text =
            std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        serde_json::from_slice(&text).unwrap()
    };
    paths.iter().map(read).reduce(Summary::add).unwrap_or_default()
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

//! The judge: compares what the logs beside the database say with what the database holds.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use perihelion::checkpoint::ThreadStatus;
use perihelion::checkpoint::{EffectKind, EffectRow, EffectStatus, StepKind, StepRow, Store};
use perihelion::ids::ThreadId;
use perihelion::runner::StateView;
use perihelion::swarm::GraphState;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::calls::{self, Deeds, Taken};
use super::collector::Received;
use super::jobs::Job;
use super::logs::{ACKS, ASKS, Ack, digest, lines};
use super::models::ModelCalls;
use super::options::Kind;
use super::traces;
use super::turns::Turns;

/// What was found; everything but the violations is a figure.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Findings {
    pub threads: u64,
    pub steps: u64,
    pub acks: u64,
    /// Effects that the receiver carried out, by tool.
    pub effects: BTreeMap<String, u64>,
    /// Repetitions that the receiver refused by their key.
    pub refused: u64,
    /// Effects beyond the first of a call that was declared repeatable, at a receiver that checks nothing.
    pub unchecked_duplicates: u64,
    /// Questions about unknown outcomes.
    pub questions: u64,
    /// Of these, such as were given answers that differ.
    #[serde(default)]
    pub contested: u64,
    /// Requests that reached the model.
    #[serde(default)]
    pub model_calls: u64,
    /// Of these, such as had come before.
    #[serde(default)]
    pub model_repeats: u64,
    /// Effects beyond the first of a call that may not be repeated; each was asked about.
    pub asked_duplicates: u64,
    /// Threads that were given their job more than once, because the first giver died in between.
    pub asked_twice: u64,
    /// Spans of finished traces, each of which arrived.
    #[serde(default)]
    pub spans: u64,
    /// Threads whose traces were not judged, because the clocks that dated them disagree.
    #[serde(default)]
    pub undated: u64,
    /// Broken promises, by kind, with examples.
    pub violations: BTreeMap<String, Vec<String>>,
}

impl Findings {
    pub fn violate(&mut self, kind: &str, what: String) {
        self.violations.entry(kind.to_owned()).or_default().push(what);
    }
}

/// What a run leaves behind.
#[derive(Clone, Copy)]
pub struct Evidence<'a> {
    pub store: &'a dyn Store,
    pub database: Kind,
    /// Where the logs are.
    pub directory: &'a Path,
    /// Spans that reached the collector.
    pub received: &'a Received,
    pub seed: u64,
    pub jobs: u64,
}

/// Judges every job of a run that has come to rest.
pub async fn judge(evidence: Evidence<'_>) -> Findings {
    let Evidence { store, database, directory, received, seed, jobs } = evidence;
    let mut findings = Findings::default();
    let mut acks: HashMap<ThreadId, Vec<Ack>> = HashMap::new();
    for ack in lines::<Ack>(directory, ACKS) {
        findings.acks += 1;
        acks.entry(ack.thread).or_default().push(ack);
    }
    let mut asks: HashMap<u64, u64> = HashMap::new();
    for job in lines::<u64>(directory, ASKS) {
        *asks.entry(job).or_default() += 1;
    }
    let mut deeds = Deeds::read(directory, &mut findings);
    let mut models = ModelCalls::read(directory, &mut findings);
    let turns = Turns::read(directory);
    for job in 0..jobs {
        let asks = asks.get(&job).copied().unwrap_or_default();
        let case = Case { store, seed, job, asks, turns: &turns };
        let acks = acks.remove(&Job::thread(seed, job)).unwrap_or_default();
        if let Err(problem) = case.judge(&acks, &mut deeds, &mut models, &mut findings).await {
            findings.violate("unreadable", format!("job {job}: {problem}"));
        }
        let thread = Job::thread(seed, job);
        // SQLite's clock is that of the one who writes; what happened is filed under a trace by its time.
        if database == Kind::Sqlite && !traces::is_dated(store, thread).await.unwrap_or(true) {
            findings.undated += 1;
            continue;
        }
        if let Err(problem) = traces::judge(store, thread, received, &mut findings).await {
            findings.violate("trace", format!("job {job}: {problem}"));
        }
    }
    for (thread, _) in acks {
        findings.violate("lost", format!("thread {thread} was acknowledged, and is nobody's"));
    }
    deeds.finish(&mut findings);
    models.finish(&mut findings);
    traces::settled(store, &mut findings).await;
    findings
}

struct Case<'a> {
    store: &'a dyn Store,
    seed: u64,
    job: u64,
    asks: u64,
    turns: &'a Turns,
}

impl Case<'_> {
    /// Judges the rows as they lie there, and only then the state that the program makes of them.
    async fn judge(
        &self,
        acks: &[Ack],
        deeds: &mut Deeds,
        models: &mut ModelCalls,
        findings: &mut Findings,
    ) -> Result<(), perihelion::checkpoint::Error> {
        let thread = Job::thread(self.seed, self.job);
        let mut steps = self.store.history(thread, None, u32::MAX).await?;
        steps.reverse();
        let info = self.store.info(thread).await?;
        findings.threads += 1;
        findings.steps += steps.len() as u64;
        self.chain(&steps, info.head, findings)?;
        if info.status != ThreadStatus::Idle || info.owner.is_some() {
            findings.violate("unfinished", format!("job {}: {info:?}", self.job));
        }
        self.acknowledged(&steps, acks, findings)?;
        let inputs = steps.iter().filter(|step| step.kind == StepKind::Input).count() as u64;
        findings.asked_twice += u64::from(inputs > 1);
        if inputs > self.asks {
            let job = self.job;
            let asks = self.asks;
            findings.violate("duplicate", format!("job {job}: {inputs} inputs of {asks} asked"));
        }
        let effects = self.store.effects(thread, None).await?;
        self.settled(&effects, findings);
        // Each claim raises the token by one.
        let takeovers = info.fence.saturating_sub(1);
        let taken = Taken { turns: self.turns, thread, takeovers };
        self.calls(inputs, &effects, &taken, deeds, findings);
        deeds.answers(&effects, findings);
        models.judge(&taken, &effects, findings)?;
        let state = StateView::<GraphState>::read(self.store, thread, None).await?.state;
        self.tasks(&state, inputs, findings);
        self.results(&state, inputs, findings);
        Ok(())
    }

    /// Judges every call that the job asks for in each of its turns.
    fn calls(
        &self,
        inputs: u64,
        effects: &[EffectRow],
        taken: &Taken<'_>,
        deeds: &mut Deeds,
        findings: &mut Findings,
    ) {
        let job = Job::draw(self.seed, self.job);
        for turn in 0..inputs as usize {
            for task in &job.tasks {
                for (call, tool) in task.calls.iter().enumerate() {
                    let line = Job::line(self.job, turn, task.id, call);
                    let rows = effects.iter().filter(|row| row.kind == EffectKind::Tool);
                    deeds.judge(tool, &line, calls::find(rows, &line), taken, findings);
                }
            }
        }
    }

    /// The plan holds the tasks of the job, each once in every turn, and no other.
    fn tasks(&self, state: &GraphState, inputs: u64, findings: &mut Findings) {
        let mut planned: Vec<&str> = state.tasks.iter().map(|record| &*record.task).collect();
        let job = Job::draw(self.seed, self.job);
        let turns = 0..inputs as usize;
        let mut expected: Vec<String> = turns
            .flat_map(|turn| job.tasks.iter().map(move |task| (turn, task.id)))
            .map(|(turn, id)| Job::task(self.job, turn, id))
            .collect();
        planned.sort_unstable();
        expected.sort_unstable();
        if planned != expected {
            let what = format!("job {}: {planned:?} and not {expected:?}", self.job);
            findings.violate("tasks", what);
        }
    }

    /// No gap, no step twice, every hash follows from the one before.
    fn chain(
        &self,
        steps: &[StepRow],
        head: u64,
        findings: &mut Findings,
    ) -> Result<(), perihelion::checkpoint::Error> {
        let mut hash = [0; 32];
        for (step, expected) in steps.iter().zip(1..) {
            if step.seq != expected {
                let kind = if step.seq > expected { "gap" } else { "duplicate" };
                let what = format!("job {}: step {} stands at {expected}", self.job, step.seq);
                findings.violate(kind, what);
                return Ok(());
            }
            hash = fingerprint(&hash, step)?;
            if hash != step.hash {
                findings.violate("chain", format!("job {}: step {}", self.job, step.seq));
            }
        }
        if steps.len() as u64 != head {
            let what = format!("job {}: {} steps, head {head}", self.job, steps.len());
            findings.violate("gap", what);
        }
        Ok(())
    }

    /// Every step that a listener was told of is there, with the content that it was told.
    fn acknowledged(
        &self,
        steps: &[StepRow],
        acks: &[Ack],
        findings: &mut Findings,
    ) -> Result<(), perihelion::checkpoint::Error> {
        let mut digests = BTreeMap::new();
        let mut before = None;
        for step in steps {
            let json = step.delta.to_json_bytes()?;
            let delta: Vec<Value> = serde_json::from_slice(&json).unwrap_or_default();
            let written =
                delta.iter().map(|one| (one["n"].as_str().unwrap_or_default(), &one["u"]));
            let written = (!delta.is_empty()).then(|| digest(written));
            if written.is_some() && written == before {
                let what =
                    format!("job {}: step {} says what the one before says", self.job, step.seq);
                findings.violate("duplicate", what);
            }
            digests.insert(step.seq, written.clone().unwrap_or_else(|| digest(std::iter::empty())));
            before = written;
        }
        for ack in acks {
            if digests.get(&ack.step) != Some(&ack.digest) {
                let what = format!("job {}: step {} as told to a listener", self.job, ack.step);
                findings.violate("lost", what);
            }
        }
        Ok(())
    }

    /// Each task of each turn has one result, and the thread an answer.
    fn results(&self, state: &GraphState, inputs: u64, findings: &mut Findings) {
        let ids: Vec<&str> = state.results.iter().map(|result| result.id.as_str()).collect();
        let distinct: BTreeSet<&str> = ids.iter().copied().collect();
        let wanted = state.tasks.iter().count();
        if ids.len() != wanted || distinct.len() != wanted || wanted as u64 != 3 * inputs {
            let what = format!("job {}: results {ids:?} in {inputs} turns", self.job);
            findings.violate("results", what);
        }
        if state.answer.is_none() {
            findings.violate("unfinished", format!("job {}: no answer", self.job));
        }
    }

    /// Nothing is left open.
    fn settled(&self, effects: &[EffectRow], findings: &mut Findings) {
        for row in effects.iter().filter(|row| row.status == EffectStatus::Started) {
            let what = format!("job {}: step {} {} is open", self.job, row.step, row.name);
            findings.violate("unfinished", what);
        }
    }
}

/// Hashes a step as the format says: the hash before, the number in eight bytes (little-endian), what was written as JSON,
/// and what comes next.
///
/// Written once more here, so that a flaw of the program's own does not judge itself.
///
/// # Errors
/// When the step cannot be decoded.
pub fn fingerprint(
    before: &[u8; 32],
    step: &StepRow,
) -> Result<[u8; 32], perihelion::checkpoint::Error> {
    let mut text = before.to_vec();
    text.extend(step.seq.to_le_bytes());
    text.extend_from_slice(&step.delta.to_json_bytes()?);
    text.extend(&step.frontier);
    Ok(*blake3::hash(&text).as_bytes())
}

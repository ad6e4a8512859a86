//! Plays one seed: a scheduler that draws who continues, what breaks and when somebody answers.

use std::sync::Arc;

use perihelion_engine::checkpoint::{
    Encoded, Error as StoreError, MemoryStore, SnapshotRow, Store, ThreadStatus, restore,
};
use perihelion_engine::graph::{EngineError, Frontier};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::{Durability, Error, RunOutcome, RunResult, Runner, compact};
use serde_json::{Value, json};

use super::flaw::Flaw;
use super::plan::Plan;
use super::process::{Call, Process, runner};
use super::record::{Answered, End};
use super::rng::Rng;
use super::sim::{Sim, Verdict};
use super::tale::{Tale, result_of};

/// Decisions after which the weather ends; far more than any plan needs.
const LONGEST_STORM: usize = 2_000;

/// Resumes after which a thread that still does not end is taken to be stuck.
const MOST_ROUNDS: usize = 120;

/// A story under way.
pub struct Stage {
    pub sim: Arc<Sim>,
    pub truth: Arc<dyn Store>,
    pub thread: ThreadId,
    /// What everybody but the processes uses.
    pub reader: Runner<Tale>,
    processes: Vec<Process>,
    faults: usize,
    doom: Option<String>,
}

impl Stage {
    pub async fn new(plan: &Arc<Plan>, rng: Rng, flaw: Option<Flaw>, tells: bool) -> Self {
        let sim = Arc::new(Sim::new(plan, rng, flaw, tells));
        let truth: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let reader = runner(&sim, &truth, 0);
        let thread = ThreadId::new();
        reader.create(thread, None).await.unwrap();
        Self { sim, truth, thread, reader, processes: Vec::new(), faults: plan.faults, doom: None }
    }

    /// Plays on: through the storm, then in calm weather to the end.
    pub async fn play(&mut self) -> End {
        for _ in 0..LONGEST_STORM {
            self.settle().await;
            if self.faults == 0 || !self.storm().await {
                break;
            }
        }
        self.sim.board().calm_down();
        let end = self.calm().await;
        self.sim.board().record.end = end.clone();
        end
    }

    /// Plays the thread at hand to its end without any fault.
    pub async fn play_calmly(&mut self) -> End {
        self.sim.board().calm_down();
        self.calm().await
    }

    /// Lets everybody run until all wait for the scheduler.
    async fn settle(&mut self) {
        loop {
            let mut moved = false;
            let mut at = 0;
            while at < self.processes.len() {
                let (has_moved, ended) = self.processes[at].advance();
                moved |= has_moved;
                match ended {
                    Some(outcome) => {
                        let process = self.processes.remove(at);
                        self.hear(process.number, outcome);
                    }
                    None => at += 1,
                }
            }
            // Commits of the asynchronous mode run beside their run.
            tokio::task::yield_now().await;
            if !moved && !self.processes.iter().any(Process::is_awake) {
                return;
            }
        }
    }

    /// Hears how a process ended.
    fn hear(&mut self, number: usize, outcome: Result<RunOutcome<Tale>, Error>) {
        let mut board = self.sim.board();
        board.lives[number].is_dead = true;
        self.sim.tell(|| match &outcome {
            Ok(outcome) => {
                format!("{number}: ended at step {}: {:?}", outcome.head, outcome.result)
            }
            Err(error) => format!("{number}: {error}"),
        });
        match outcome {
            Ok(outcome) => {
                board.record.acknowledged.push(outcome.head);
                self.doom = None;
                match outcome.result {
                    RunResult::Failed(EngineError::Node { kind, node, .. }) if kind == "doom" => {
                        self.doom = Some(node);
                    }
                    RunResult::Failed(EngineError::Node { kind, .. }) if kind == "trip" => {}
                    RunResult::Failed(EngineError::Missing { .. } | EngineError::StepLimit(_)) => {}
                    RunResult::Failed(error) => board.record.surprises.push(error.to_string()),
                    _ => {}
                }
            }
            Err(Error::Unfinished { .. } | Error::Finished { .. } | Error::NeverAsked { .. }) => {}
            Err(Error::Store(
                StoreError::Fenced { .. } | StoreError::Busy { .. } | StoreError::Database(_),
            )) => {}
            Err(error) => board.record.surprises.push(error.to_string()),
        }
    }

    fn draw(&self, bound: usize) -> usize {
        self.sim.board().rng.below(bound)
    }

    fn chance(&self, percent: usize) -> bool {
        self.sim.board().rng.chance(percent)
    }

    fn fault(&mut self, name: &'static str) {
        self.faults -= 1;
        self.sim.board().count(name);
        self.sim.tell(|| format!("! {name}"));
    }

    /// Makes one decision; says whether there is anything left to decide.
    async fn storm(&mut self) -> bool {
        if !self.processes.is_empty() && self.chance(22) {
            self.break_something().await;
            return true;
        }
        if self.chance(8) {
            self.answer().await;
        }
        let movable: Vec<(u64, usize, &'static str)> = {
            let board = self.sim.board();
            let is_free = |number: usize| {
                self.processes.iter().any(|one| one.number == number && !one.is_paused)
            };
            let free = board.waiting().filter(|slot| is_free(slot.process));
            free.map(|slot| (slot.id, slot.process, slot.label)).collect()
        };
        if let Some((id, process, label)) = movable.get(self.draw(movable.len().max(1))).copied() {
            self.sim.tell(|| format!("  {process}: {label}"));
            self.sim.board().grant(id, Verdict::Go);
            return true;
        }
        if let Some(paused) = self.processes.iter_mut().find(|one| one.is_paused) {
            paused.is_paused = false;
            self.sim.tell(|| format!("{}: wakes up", paused.number));
            return true;
        }
        if !self.processes.is_empty() {
            return false;
        }
        match self.next_call().await {
            Some(call) => self.launch(call),
            None => return false,
        }
        if self.chance(60) {
            self.answer().await;
        }
        true
    }

    async fn break_something(&mut self) {
        let victim = self.draw(self.processes.len());
        let waiting = {
            let mut board = self.sim.board();
            let ids: Vec<(u64, &str)> = board
                .waiting()
                .filter(|slot| !matches!(slot.label, "pause" | "model" | "send" | "reply"))
                .map(|slot| (slot.id, slot.label))
                .collect();
            board.rng.pick(&ids).copied()
        };
        match (self.draw(100), waiting) {
            (0..30, _) => {
                let process = self.processes.remove(victim);
                self.fault("crash");
                self.sim.tell(|| format!("{}: is killed", process.number));
                self.sim.board().lives[process.number].is_dead = true;
            }
            (30..42, Some((id, _))) => {
                self.fault("refused");
                self.sim.board().grant(id, Verdict::Refuse);
            }
            (42..56, Some((id, label))) if label != "read" => {
                self.fault("lost reply");
                self.sim.board().grant(id, Verdict::Lose);
            }
            (56..80, _) if self.processes.len() < 3 => {
                if let Some(call) = self.next_call().await {
                    self.fault("takeover");
                    self.processes[victim].is_paused = self.chance(60);
                    self.launch(call);
                }
            }
            (80..85, _) => {
                self.fault("cancel");
                self.processes[victim].cancel.cancel();
            }
            (85..90, _) if self.sim.plan.guest.is_some() => {
                self.fault("vanish");
                let mut board = self.sim.board();
                board.is_guest_there = !board.is_guest_there;
            }
            (90..95, _) => self.snapshot().await,
            (95..98, _) if self.sim.plan.compacts => {
                let keep = 1 + self.draw(3) as u64;
                self.fault("compaction");
                compact::<Tale>(self.truth.as_ref(), self.thread, keep).await.unwrap();
            }
            _ => {}
        }
    }

    fn launch(&mut self, call: Call) {
        let durability = match self.draw(100) {
            0..70 => Durability::Sync,
            70..88 => Durability::Async,
            _ => Durability::Exit,
        };
        let process = Process::new(&self.sim, &self.truth, self.thread, call, durability);
        self.processes.push(process);
    }

    /// Says what a client would ask for next; nothing when the thread is through.
    async fn next_call(&self) -> Option<Call> {
        let loaded = self.truth.load(self.thread, None).await.unwrap();
        if loaded.info.head == 0 {
            return Some(Call::Start { turn: 0 });
        }
        let newest = self.truth.history(self.thread, None, 1).await.unwrap().remove(0);
        let frontier: Frontier = serde_json::from_slice(&newest.frontier).unwrap();
        if !frontier.tasks.is_empty() || loaded.info.status == ThreadStatus::Busy {
            return Some(Call::Resume);
        }
        let turn = restore::<Tale>(self.truth.as_ref(), self.thread, None).await;
        let turns =
            turn.map(|it| it.state.lines.iter().filter(|one| one.starts_with("input")).count());
        let turn = turns.unwrap_or(usize::MAX);
        (turn < self.sim.plan.turns).then_some(Call::Start { turn })
    }

    /// In calm weather somebody resumes and answers until the thread is through.
    async fn calm(&mut self) -> End {
        for _ in 0..MOST_ROUNDS {
            self.processes.iter_mut().for_each(|one| one.is_paused = false);
            self.settle().await;
            if let Some(process) = self.processes.first() {
                return End::Stuck(format!("process {} waits for nobody", process.number));
            }
            let Some(call) = self.next_call().await else { return End::Done };
            self.answer_all().await;
            let doom = self.doom.take();
            self.launch(call);
            self.settle().await;
            if self.doom.is_some() && self.doom == doom {
                return End::Doomed(doom.unwrap_or_default());
            }
        }
        let info = self.truth.info(self.thread).await.unwrap();
        End::Stuck(format!(
            "it is {} at step {}: {:?}",
            info.status.as_str(),
            info.head,
            info.error
        ))
    }

    /// Keeps a snapshot of some step, as a run does beside its steps.
    async fn snapshot(&self) {
        let info = self.truth.info(self.thread).await.unwrap();
        let at = 1 + self.draw(info.head.max(1) as usize) as u64;
        if let Ok(restored) = restore::<Tale>(self.truth.as_ref(), self.thread, Some(at)).await {
            let state = Encoded::json(&*restored.state, usize::MAX).unwrap();
            let row = SnapshotRow { seq: at, schema_version: 1, state, blobs: None };
            self.sim.board().count("snapshot");
            self.reader.store().put_snapshot(self.thread, &row).await.unwrap();
        }
    }

    /// A person answers one of the open questions, now and then a second time.
    async fn answer(&self) {
        let open = self.reader.open_interrupts(self.thread).await.unwrap();
        if open.is_empty() {
            return;
        }
        let question = &open[self.draw(open.len())];
        self.answer_one(question).await;
        if self.chance(40) {
            self.say(question.id, &question.kind, question_payload(question), json!("too late"))
                .await;
        }
    }

    async fn answer_all(&self) {
        for question in self.reader.open_interrupts(self.thread).await.unwrap() {
            self.answer_one(&question).await;
        }
    }

    async fn answer_one(&self, question: &perihelion_engine::checkpoint::OpenInterrupt) {
        let payload = question_payload(question);
        let answer = match question.kind.as_str() {
            "outcome_unknown" => self.verdict(&payload),
            _ => json!(format!("yes, {}", payload["which"])),
        };
        self.say(question.id, &question.kind, payload, answer).await;
    }

    /// Looks whether the action happened, or, in a careless mood, does not.
    fn verdict(&self, payload: &Value) -> Value {
        let mut board = self.sim.board();
        if !self.sim.plan.is_honest && !board.is_calm {
            let moods = [
                json!({"outcome": "retry"}),
                json!({"outcome": "skip"}),
                json!({"outcome": "done"}),
            ];
            return board.rng.pick(&moods).cloned().unwrap_or_default();
        }
        let key = payload["idempotency_key"].as_str().unwrap_or_default();
        match board.record.sent.iter().find(|sent| sent.key == key) {
            Some(sent) => json!({ "outcome": "done", "result": result_of(&sent.what) }),
            None => json!({ "outcome": "retry" }),
        }
    }

    async fn say(
        &self,
        id: perihelion_engine::ids::InterruptId,
        kind: &str,
        payload: Value,
        answer: Value,
    ) {
        let encoded = Encoded::json(&answer, usize::MAX).unwrap();
        let result = self.reader.store().answer(id, &encoded).await;
        self.sim.tell(|| format!("a person answers {kind} {payload}: {answer} ({result:?})"));
        let mut board = self.sim.board();
        match &result {
            Ok(()) | Err(StoreError::InterruptClosed(_)) => {}
            Err(error) => board.record.surprises.push(error.to_string()),
        }
        let kind = kind.to_owned();
        let is_accepted = result.is_ok();
        board.record.answers.push(Answered { id, kind, payload, answer, is_accepted });
    }
}

fn question_payload(question: &perihelion_engine::checkpoint::OpenInterrupt) -> Value {
    question.payload.decode().unwrap_or_default()
}

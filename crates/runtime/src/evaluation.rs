//! Runs a suite of questions on a runtime, checks and judges the results, and stores evaluations.

use perihelion_eval::{Case, CaseRecord, Evaluation, Record, RunRecord, Suite, check, is_expected};
use perihelion_service_rows::{Item, Kept};
use serde_json::{Value, json};

use super::{Error, Judge, RunReport, RunStatusView, Runtime};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_star::Request;
use perihelion_telemetry::reading::{NoteKind, notes};
use perihelion_telemetry::{About, View, spans_of};

/// The namespace of the stored figures; clients list them as items of the store.
const EVALUATIONS: &str = "evaluations";

/// The namespace of the stored runs, each under the key of its evaluation.
const RECORDS: &str = "evaluation_records";

/// The field of a thread's metadata that marks the threads of evaluations.
const EVALUATED: &str = "evaluation";

/// First names of the namespaces in which the program stores items of its own.
pub const OWN_NAMESPACES: [&str; 2] = [EVALUATIONS, RECORDS];

pub struct Evaluator<'a> {
    pub suite: &'a Suite,
    /// The role whose calls are measured; `None` for all.
    pub role: Option<&'a str>,
    /// The judge of criteria, and of expected answers if `is_strict` is not set.
    pub judge: &'a Judge,
    /// Whether an answer must contain the expected one, rather than say the same by the judge.
    pub is_strict: bool,
}

impl Runtime {
    /// Runs every case of a suite the requested number of times, in sequence, each on a separate thread.
    ///
    /// A run that fails is a run that did not pass. The threads stay, so that what went wrong can be inspected, traced and
    /// forked. The record is named after `model`; `progress` receives each run by its number in its case, from 1.
    ///
    /// # Errors
    /// [`Error`] when a question is refused, or the database fails.
    pub async fn evaluate(
        &self,
        evaluator: &Evaluator<'_>,
        model: &str,
        mut progress: impl FnMut(&Case, u32, &RunRecord),
    ) -> Result<Record, Error> {
        let suite = evaluator.suite;
        // Runs cost money, so all questions are checked before the first.
        for case in &suite.cases {
            for question in case.questions() {
                self.check_request(&self.runner().tenant, request(case, question)).await?;
            }
        }
        let mut cases = Vec::new();
        for case in &suite.cases {
            let mut runs = Vec::new();
            for run in 1..=suite.repeat_of(case) {
                let ended = self.run_case(evaluator, case, run).await?;
                progress(case, run, &ended);
                runs.push(ended);
            }
            let require = suite.require_of(case);
            cases.push(CaseRecord { name: case.name.clone(), require, runs });
        }
        Ok(Record { suite: suite.name.clone(), model: model.to_owned(), cases })
    }

    async fn run_case(
        &self,
        evaluator: &Evaluator<'_>,
        case: &Case,
        run: u32,
    ) -> Result<RunRecord, Error> {
        let thread = ThreadId::new();
        let mut record = RunRecord { thread_id: thread.to_string(), ..RunRecord::default() };
        let started = clock::now();
        let mut last: Option<RunReport> = None;
        let title = format!("{}: {} #{run}", evaluator.suite.name, case.name);
        self.create_evaluated(thread, title).await?;
        for question in case.questions() {
            let options = self.run_options();
            let report = self.ask(thread, None, request(case, question), options).await?;
            record.tokens = record.tokens.saturating_add(report.usage.total());
            record.cost_usd += report.cost_usd.unwrap_or_default();
            let calls = report.results.iter().map(|result| result.tools.len() as u64);
            record.tool_calls += calls.sum::<u64>();
            let is_done = report.status == RunStatusView::Done;
            last = Some(report);
            if !is_done {
                break;
            }
        }
        record.seconds = (clock::now() - started).as_seconds_f64();
        // Rules name fields of the report as it is shown.
        let shown = serde_json::to_value(&last).unwrap_or(Value::Null);
        record.findings = check(&case.expect, &shown, record.seconds);
        record.answer = last.as_ref().and_then(|report| report.answer.clone());
        let judged = evaluator.judged(case, record.answer.as_deref().unwrap_or("(none)")).await;
        record.findings.extend(judged);
        record.passed = record.findings.is_empty();
        self.measure(thread, evaluator.role, &mut record).await?;
        Ok(record)
    }

    /// Makes a thread that lists of conversations leave out.
    async fn create_evaluated(&self, thread: ThreadId, title: String) -> Result<(), Error> {
        let made = self.runner().create(thread, Some(title)).await?;
        let Some(database) = &self.database else { return Ok(()) };
        let noted = json!({ "graph_id": made.graph, EVALUATED: true });
        let kept = Kept::new(database.clone(), &self.runner().tenant);
        Ok(kept.note_thread(thread.0, &noted, None, clock::now()).await?)
    }

    /// Reads the durations and repairs of a thread's model calls from its journal.
    async fn measure(
        &self,
        thread: ThreadId,
        of_role: Option<&str>,
        record: &mut RunRecord,
    ) -> Result<(), Error> {
        let view = View::default();
        for run in self.store().runs(thread).await? {
            let spans = spans_of(self.store().as_ref(), thread, run.number, view).await?;
            let notes = notes(&spans);
            for span in &spans {
                let About::Chat { role, .. } = &span.about else { continue };
                if of_role.is_some_and(|of| of != role) {
                    continue;
                }
                let ms = span.duration().num_milliseconds();
                record.latencies_ms.push(ms.unsigned_abs());
                let is_repair = |id, kind| id == span.span_id && kind == NoteKind::Repair;
                record.repairs +=
                    u64::from(notes.iter().any(|note| is_repair(note.span_id, note.kind)));
            }
        }
        Ok(())
    }

    /// Stores an evaluation without its answers, which the threads have; returns whether there is a place for it.
    ///
    /// There is none if the threads are in memory, or if they are encrypted, because items are not.
    pub async fn keep_evaluation(&self, evaluation: &Evaluation) -> Result<bool, Error> {
        let Some(database) = &self.database else { return Ok(false) };
        if !self.settings().encryption.keys.is_empty() {
            return Ok(false);
        }
        let kept = Kept::new(database.clone(), &self.runner().tenant);
        let mut records = json!(evaluation.records);
        for run in records.as_array_mut().into_iter().flatten().flat_map(runs_of) {
            run["answer"].take();
        }
        let figures = json!(Evaluation { records: Vec::new(), ..evaluation.clone() });
        let key = ThreadId::new().to_string();
        let now = clock::now();
        for (namespace, value) in [(RECORDS, json!({ "records": records })), (EVALUATIONS, figures)]
        {
            let item = Item {
                namespace: vec![namespace.to_owned()],
                key: key.clone(),
                value,
                created_at: now,
                updated_at: now,
                expires_at: None,
            };
            kept.put_item(&item).await?;
        }
        Ok(true)
    }
}

impl Evaluator<'_> {
    async fn judged(&self, case: &Case, answer: &str) -> Vec<String> {
        let mut findings = Vec::new();
        if let Some(criterion) = &case.judge {
            let objection = self.judge.objection(case, criterion, answer).await;
            findings.extend(objection.map(|reason| format!("judged: {reason}")));
        }
        let Some(expected) = &case.expected else { return findings };
        if is_expected(expected, answer) {
            return findings;
        }
        if self.is_strict {
            findings.push(format!("the answer does not contain: {expected}"));
            return findings;
        }
        let criterion = format!("The answer says the same as this correct answer: {expected}");
        let objection = self.judge.objection(case, &criterion, answer).await;
        findings.extend(objection.map(|reason| format!("not as expected: {reason}")));
        findings
    }
}

fn runs_of(record: &mut Value) -> impl Iterator<Item = &mut Value> {
    let cases = record["cases"].as_array_mut().into_iter().flatten();
    cases.flat_map(|case| case["runs"].as_array_mut().into_iter().flatten())
}

fn request(case: &Case, question: &str) -> Request {
    Request {
        question: question.to_owned(),
        context: case.context.clone(),
        prefer_agents: case.prefer_agents.clone(),
        disable_agents: case.disable_agents.clone(),
        max_turns: case.max_turns,
        system_prompt: case.system_prompt.clone(),
        ..Request::default()
    }
}

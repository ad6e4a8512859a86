//! Runs a suite of questions on a runtime and judges what came of each.

use perihelion_eval::{Case, CaseRecord, Measured, Record, RunRecord, Suite, Verdict, check};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Error, RunReport, RunStatusView, Runtime};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_llm::{self as llm, ChatMessage, ChatRequest, OpenAiModel, Prompts, Role};
use perihelion_star::Request;

/// Schema name of what a model says of an answer.
const JUDGEMENT: &str = "judgement";

/// What a model says of an answer.
#[derive(Debug, Deserialize, JsonSchema)]
struct Judgement {
    /// Whether the answer is as the criterion wants it.
    passed: bool,
    /// Why, in a sentence.
    reason: String,
}

/// What is known while a suite runs.
#[derive(Clone, Copy, Debug)]
pub struct EvaluationProgress<'a> {
    pub case: &'a str,
    /// Number of the run among those of its case, from 1.
    pub run: u32,
    pub of: u32,
    pub ended: &'a RunRecord,
}

impl Runtime {
    /// Runs every case of a suite as often as it wants, one after the other, each on a thread of its own.
    ///
    /// A run that fails is a run that did not pass. The threads stay, so that what went wrong can be inspected, traced and
    /// forked.
    ///
    /// # Errors
    /// [`Error`] when a question is refused, or the database fails.
    pub async fn evaluate(
        &self,
        suite: &Suite,
        mut progress: impl FnMut(EvaluationProgress<'_>),
    ) -> Result<Record, Error> {
        let mut cases = Vec::new();
        for case in &suite.cases {
            let of = suite.repeat_of(case);
            let mut runs = Vec::new();
            for run in 1..=of {
                let ended = self.run_case(suite, case, run).await?;
                progress(EvaluationProgress { case: &case.name, run, of, ended: &ended });
                runs.push(ended);
            }
            let require = suite.require_of(case);
            cases.push(CaseRecord { name: case.name.clone(), require, runs });
        }
        let supervisor = self.settings().models.for_role(Role::Supervisor.as_str());
        Ok(Record { suite: suite.name.clone(), model: supervisor.model.clone(), cases })
    }

    async fn run_case(&self, suite: &Suite, case: &Case, run: u32) -> Result<RunRecord, Error> {
        let thread = ThreadId::new();
        let started = clock::now();
        let mut last: Option<RunReport> = None;
        let mut tokens = 0;
        let mut cost_usd = 0.0;
        for question in case.questions() {
            let title = format!("{}: {} #{run}", suite.name, case.name);
            let options = self.run_options();
            let report = self.ask(thread, Some(title), request(case, question), options).await?;
            tokens += report.usage.input_tokens + report.usage.output_tokens;
            cost_usd += report.cost_usd.unwrap_or_default();
            let is_done = report.status == RunStatusView::Done;
            last = Some(report);
            if !is_done {
                break;
            }
        }
        let seconds = (clock::now() - started).as_seconds_f64();
        // Rules name fields of the report as it is shown.
        let shown = serde_json::to_value(&last).unwrap_or(Value::Null);
        let found = check(&case.expect, &shown, Measured { seconds });
        let mut findings: Vec<String> = found.into_iter().map(|finding| finding.0).collect();
        if let Some(criterion) = &case.judge {
            let answer = last.as_ref().and_then(|report| report.answer.as_deref());
            let verdict = self.judge(thread, case, criterion, answer).await?;
            if !verdict.passed {
                findings.push(format!("judged: {}", verdict.reason));
            }
        }
        let results = last.iter().flat_map(|report| &report.results);
        let calls = results.map(|result| result.tools.len() as u64);
        Ok(RunRecord {
            thread_id: thread.to_string(),
            passed: findings.is_empty(),
            findings,
            seconds,
            tokens,
            cost_usd,
            tool_calls: calls.sum(),
        })
    }

    /// Asks a model whether an answer is as a criterion wants it; one that gives no verdict does not pass it.
    async fn judge(
        &self,
        thread: ThreadId,
        case: &Case,
        criterion: &str,
        answer: Option<&str>,
    ) -> Result<Verdict, Error> {
        let settings = self.settings();
        let dynamic = json!({
            "criterion": criterion,
            "question": case.questions().join("\n"),
            "answer": answer.unwrap_or("(none)"),
        });
        let messages = Prompts::new(settings.prompts.dir.as_deref())?.messages("judge", dynamic)?;
        let model = OpenAiModel::new(&settings.models)?;
        let asked = llm::ask::<Judgement>(&model, judge_request(thread, messages), JUDGEMENT).await;
        Ok(match asked {
            Ok(given) => Verdict { passed: given.value.passed, reason: given.value.reason },
            Err(error) => Verdict { passed: false, reason: format!("no verdict: {error}") },
        })
    }
}

fn judge_request(thread: ThreadId, messages: Vec<ChatMessage>) -> ChatRequest {
    ChatRequest {
        role: Role::Classifier,
        stage: Some("judge".to_owned()),
        thread: thread.to_string(),
        agent: None,
        messages,
        tools: Vec::new(),
        format: None,
    }
}

fn request(case: &Case, question: &str) -> Request {
    Request {
        question: question.to_owned(),
        context: case.context.clone(),
        prefer: case.prefer_agents.clone(),
        disable: case.disable_agents.clone(),
        ..Request::default()
    }
}

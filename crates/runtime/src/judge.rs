//! A model as the judge of answers: by a criterion, or beside each other.

use std::sync::Arc;

use perihelion_eval::{Better, Case, Judging, Outcome, Record, Suite};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Error;
use crate::metered::{Metered, ModelCost};
use perihelion_llm::{self as llm, ChatRequest, OpenAiModel, Prompts, Role};
use perihelion_settings::config::Settings;

/// A model's verdict on one answer.
#[derive(Debug, Deserialize, JsonSchema)]
struct Judgement {
    /// Whether the answer is as the criterion wants it.
    passed: bool,
    /// Why, in a sentence.
    #[schemars(length(max = 300))]
    reason: String,
}

/// A model's preference between two answers.
#[derive(Debug, Deserialize, JsonSchema)]
struct PairJudgement {
    /// Why, in a sentence.
    #[schemars(length(max = 300))]
    #[serde(rename = "reason")]
    _reason: String,
    better: Better,
}

/// Judges answers with the model of the role `classifier`.
pub struct Judge {
    model: Metered,
    prompts: Prompts,
}

impl Judge {
    /// Prepares the model and the prompts of the settings.
    ///
    /// # Errors
    /// [`Error::Model`] if they cannot be used.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        let prompts = Prompts::new(settings.prompts.dir.as_deref())?;
        let model = Arc::new(OpenAiModel::new(&settings.models)?);
        Ok(Self { model: Metered::new(model, settings.models.price_list()), prompts })
    }

    /// Returns what the calls since the last one of this took.
    pub fn take_cost(&self) -> Judging {
        let ModelCost { calls, tokens, nano_usd } = self.model.take();
        Judging { calls, tokens, cost_usd: nano_usd as f64 / 1e9 }
    }

    /// Asks whether an answer meets a criterion, and returns why not; without a verdict, the answer fails.
    pub(super) async fn objection(
        &self,
        case: &Case,
        criterion: &str,
        answer: &str,
    ) -> Option<String> {
        let question = case.questions().join("\n");
        let dynamic = json!({ "criterion": criterion, "question": question, "answer": answer });
        match self.ask::<Judgement>("judge", dynamic).await {
            Ok(given) => (!given.passed).then_some(given.reason),
            Err(error) => Some(format!("no verdict: {error}")),
        }
    }

    pub async fn compare_all(
        &self,
        suite: &Suite,
        record: &Record,
        other: &Record,
    ) -> Vec<Option<Outcome>> {
        let mut outcomes = Vec::new();
        for (case, (of, beside)) in suite.cases.iter().zip(record.cases.iter().zip(&other.cases)) {
            for (run, with) in of.runs.iter().zip(&beside.runs) {
                let outcome = self.compare(case, run.answer.as_deref(), with.answer.as_deref());
                outcomes.push(outcome.await);
            }
        }
        outcomes
    }

    /// Asks twice which of two answers is better, each shown first once; `None` without both verdicts.
    ///
    /// A missing answer loses to any, without a question.
    async fn compare(
        &self,
        case: &Case,
        answer: Option<&str>,
        other: Option<&str>,
    ) -> Option<Outcome> {
        let (answer, other) = match (answer, other) {
            (Some(answer), Some(other)) => (answer, other),
            (Some(_), None) => return Some(Outcome::Won),
            (None, Some(_)) => return Some(Outcome::Lost),
            (None, None) => return Some(Outcome::Tied),
        };
        let shown_second = self.better(case, other, answer).await?;
        Some(Outcome::of(shown_second, self.better(case, answer, other).await?))
    }

    async fn better(&self, case: &Case, first: &str, second: &str) -> Option<Better> {
        let question = case.questions().join("\n");
        let expected = case.expected.as_deref().unwrap_or_default();
        let dynamic = json!({
            "question": question, "expected": expected, "first": first, "second": second,
        });
        let asked = self.ask::<PairJudgement>("judge_pair", dynamic).await;
        asked
            .inspect_err(|error| tracing::warn!(%error, case = case.name, "no verdict"))
            .ok()
            .map(|given| given.better)
    }

    async fn ask<T: JsonSchema + DeserializeOwned + 'static>(
        &self,
        stage: &str,
        dynamic: Value,
    ) -> Result<T, llm::Error> {
        let messages = self.prompts.messages(stage, dynamic)?;
        let request = ChatRequest::new(Role::Classifier, "evaluation", messages).stage(stage);
        Ok(llm::ask::<T>(&self.model, request, stage).await?.value)
    }
}

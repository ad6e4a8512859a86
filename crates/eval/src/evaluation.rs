//! One suite with several models: the figures of each, side by side.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::{Record, RunRecord};
use crate::stats::{Estimate, bootstrap, quantile, wilson};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    pub suite: String,
    /// The role that each model took; `None` for every role without its own model.
    pub role: Option<String>,
    pub judge: Option<String>,
    /// The seed of the resamples behind the intervals.
    pub seed: u64,
    pub models: Vec<Figures>,
    /// Every run, by model.
    #[serde(default)]
    pub records: Vec<Record>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    pub model: String,
    pub runs: usize,
    /// Share of the runs that passed.
    pub passed: Estimate,
    /// US dollars of a run, by the prices of the settings.
    pub cost_usd: Estimate,
    /// Tokens of a run.
    pub tokens: Estimate,
    /// Model calls of all runs, of the role alone if there is one; the same for the next three.
    pub calls: usize,
    /// Calls that repaired an invalid answer.
    pub repairs: u64,
    pub latency_p50_ms: f64,
    pub latency_p95_ms: f64,
    /// How the judge found its answers beside the first model's.
    pub beside_first: Option<Preference>,
    #[serde(default)]
    pub judging: Judging,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Judging {
    pub calls: u64,
    pub tokens: u64,
    /// US dollars, by the prices of the settings.
    pub cost_usd: f64,
}

/// The judge's preferences between a model's answers and the first model's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preference {
    pub won: usize,
    pub tied: usize,
    pub lost: usize,
    /// Pairs without a verdict.
    pub undecided: usize,
    /// Share of the pairs won; a tie counts half.
    pub score: Estimate,
}

/// Which of two answers a judge prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    First,
    Second,
    Neither,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Won,
    Tied,
    Lost,
}

impl Outcome {
    /// Joins the verdicts on an answer that was shown second, and then first: a split verdict is a tie.
    ///
    /// Judges prefer a position, so an answer wins only if it wins in both. Source: L. Zheng et al., "Judging
    /// LLM-as-a-Judge with MT-Bench and Chatbot Arena" (2023), section 3.4.
    pub fn of(shown_second: Better, shown_first: Better) -> Self {
        match (shown_second, shown_first) {
            (Better::Second, Better::First) => Self::Won,
            (Better::First, Better::Second) => Self::Lost,
            _ => Self::Tied,
        }
    }
}

impl Preference {
    /// Counts outcomes; `None` is a pair without a verdict.
    pub fn of(outcomes: &[Option<Outcome>]) -> Self {
        let count = |wanted| outcomes.iter().filter(|one| **one == wanted).count();
        let points = |outcome: &Outcome| match outcome {
            Outcome::Won => 1.0,
            Outcome::Tied => 0.5,
            Outcome::Lost => 0.0,
        };
        let points: Vec<f64> = outcomes.iter().flatten().map(points).collect();
        Self {
            won: count(Some(Outcome::Won)),
            tied: count(Some(Outcome::Tied)),
            lost: count(Some(Outcome::Lost)),
            undecided: count(None),
            score: wilson(points.iter().sum(), points.len()),
        }
    }
}

impl Figures {
    pub fn of(record: &Record, seed: u64) -> Self {
        let runs: Vec<&RunRecord> = record.cases.iter().flat_map(|case| &case.runs).collect();
        let estimate = |figure: fn(&RunRecord) -> f64| {
            bootstrap(&runs.iter().map(|run| figure(run)).collect::<Vec<_>>(), seed)
        };
        let latencies: Vec<f64> =
            runs.iter().flat_map(|run| &run.latencies_ms).map(|ms| *ms as f64).collect();
        Self {
            model: record.model.clone(),
            runs: runs.len(),
            passed: wilson(runs.iter().filter(|run| run.passed).count() as f64, runs.len()),
            cost_usd: estimate(|run| run.cost_usd),
            tokens: estimate(|run| run.tokens as f64),
            calls: latencies.len(),
            repairs: runs.iter().map(|run| run.repairs).sum(),
            latency_p50_ms: quantile(&latencies, 0.5),
            latency_p95_ms: quantile(&latencies, 0.95),
            beside_first: None,
            judging: Judging::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Better::{First, Neither, Second};
    use super::*;

    #[test]
    fn an_answer_wins_only_in_both_positions() {
        for (shown_second, shown_first, outcome) in [
            (Second, First, Outcome::Won),
            (First, Second, Outcome::Lost),
            (First, First, Outcome::Tied),
            (Second, Second, Outcome::Tied),
            (Neither, Neither, Outcome::Tied),
            (Second, Neither, Outcome::Tied),
            (Neither, Second, Outcome::Tied),
        ] {
            assert_eq!(Outcome::of(shown_second, shown_first), outcome);
        }
        let outcomes = [
            Some(Outcome::Won),
            Some(Outcome::Won),
            Some(Outcome::Tied),
            Some(Outcome::Lost),
            None,
        ];
        let preference = Preference::of(&outcomes);
        let Preference { won, tied, lost, undecided, score } = preference;
        assert_eq!((won, tied, lost, undecided, score.mean), (2, 1, 1, 1, 0.625));
    }

    #[test]
    fn few_pairs_leave_much_open_even_if_all_are_won() {
        for (pairs, low) in [(1, 0.207), (5, 0.566)] {
            let score = Preference::of(&vec![Some(Outcome::Won); pairs]).score;
            assert!((score.low - low).abs() < 1e-3 && score.high == 1.0, "{score:?}");
        }
    }
}

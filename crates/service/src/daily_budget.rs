//! The daily budget of a tenant: the remaining amount, and the start of the next day.

use std::time::Duration;

use chrono::{Days, NaiveTime};
use serde::Serialize;

use super::{Asked, Error, Order, Result, Service};
use perihelion_engine::checkpoint::StepKind;
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_people::{EndedRun, Taken};
use perihelion_runtime::{AnswerAgain, ModelCost, TeamDesign};
use perihelion_settings::config;
use perihelion_star::Allowance;
use uuid::Uuid;

/// How long a tenant waits that has too much at once.
const SOON: Duration = Duration::from_secs(5);

/// A limit of a tenant, by the setting's name, with the usage if it is counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Limit {
    pub name: &'static str,
    pub most: u64,
    pub taken: Option<u64>,
}

/// The settings that bound a day, each with what it counts, in the order of an allowance.
const DAILY: [(&str, &str); 5] = [
    ("max_daily_steps", "steps"),
    ("max_daily_tokens", "tokens"),
    ("max_daily_cost_nano_usd", "billionths of a US dollar"),
    ("max_daily_tool_calls", "tool calls"),
    ("max_daily_seconds", "seconds"),
];

/// The maximum and the usage of a daily limit.
type Bound = (u64, u64);

impl Service {
    /// Returns the daily limits of the tenant with the usage of each, in the order of an allowance.
    async fn day(&self) -> Result<[Option<Bound>; 5]> {
        let settings = &self.runtime().settings().serve;
        let most = [
            settings.max_daily_steps,
            settings.max_daily_tokens,
            settings.max_daily_cost_usd.map(config::nano_usd),
            settings.max_daily_tool_calls,
            settings.max_daily_seconds,
        ];
        if most == [None; 5] {
            return Ok([None; 5]);
        }
        let taken = self.people().taken_on(self.tenant(), clock::now().date_naive()).await?;
        let parts =
            [taken.steps, taken.tokens, taken.nano_usd, taken.tool_calls, taken.millis / 1_000];
        Ok(std::array::from_fn(|number| most[number].map(|most| (most, parts[number]))))
    }

    /// Returns how much a run can use of the tenant's remaining daily budget; `None` without limits.
    pub(super) async fn left_of_day(&self) -> Result<Option<Allowance>> {
        let day = self.day().await?;
        let [steps, tokens, nano_usd, tool_calls, seconds] =
            day.map(|bound| bound.map(|(most, taken)| most.saturating_sub(taken)));
        let left = Allowance { steps, tokens, nano_usd, tool_calls, seconds };
        Ok(day.iter().any(Option::is_some).then_some(left))
    }

    /// Returns whether an order begins work, for which its tenant needs room: not an answer, and not the rest of what was
    /// under way.
    pub(super) async fn begins_work(&self, thread: ThreadId, order: &Order) -> Result<bool> {
        if order.at.is_some() {
            return Ok(true);
        }
        Ok(match &order.asked {
            Asked::Turn(_) | Asked::Input { .. } => true,
            Asked::Answer { .. } => false,
            Asked::Edit { goto, .. } => !goto.is_empty(),
            Asked::Resume(_) => order.along.as_ref().is_some_and(|along| !along.goto.is_empty()),
            Asked::Continue => {
                let newest = self.runtime().store().history(thread, None, 1).await?.pop();
                // From an edit or a return, work begins again.
                newest.is_some_and(|step| matches!(step.kind, StepKind::Edit | StepKind::Fork))
            }
        })
    }

    pub(super) async fn check_day(&self) -> Result<()> {
        for ((_, name), bound) in DAILY.into_iter().zip(self.day().await?) {
            if let Some((most, taken)) = bound.filter(|(most, taken)| taken >= most) {
                return Err(Error::DaySpent { name, most, taken });
            }
        }
        Ok(())
    }

    /// Returns the service limits for the tenant; empty without limits.
    pub async fn limits(&self) -> Result<Vec<Limit>> {
        let settings = &self.runtime().settings().serve;
        let mut limits = Vec::new();
        let rates = [
            ("requests_per_minute", settings.requests_per_minute),
            ("max_open_requests", settings.max_open_requests),
        ];
        for (name, most) in rates {
            limits.extend(most.map(|most| Limit { name, most: most.into(), taken: None }));
        }
        if let Some(most) = settings.max_runs {
            let open = self.kept().count_open_runs(most).await?;
            limits.push(Limit { name: "max_runs", most: most.into(), taken: Some(open.into()) });
        }
        for ((name, _), bound) in DAILY.into_iter().zip(self.day().await?) {
            limits.extend(bound.map(|(most, taken)| Limit { name, most, taken: Some(taken) }));
        }
        Ok(limits)
    }

    /// Returns how long a tenant must wait after a refusal: until the next day if this day's budget is spent.
    pub async fn until_room(&self) -> Duration {
        match self.check_day().await {
            Err(Error::DaySpent { .. }) => until_tomorrow(),
            _ => SOON,
        }
    }
}

/// Returns how long the present day of UTC still is.
fn until_tomorrow() -> Duration {
    let now = clock::now();
    let tomorrow = now.date_naive().checked_add_days(Days::new(1)).unwrap_or_default();
    let left = tomorrow.and_time(NaiveTime::MIN).and_utc() - now;
    left.to_std().unwrap_or(SOON) + Duration::from_secs(1)
}

impl Service {
    /// Asks a recorded model call again with another system prompt; `None` if the trace has no such call.
    ///
    /// # Errors
    /// [`Error::DaySpent`], [`Error::Runtime`].
    pub async fn ask_again(
        &self,
        thread: ThreadId,
        run: Option<u32>,
        call: &str,
        prompt: String,
    ) -> Result<Option<AnswerAgain>> {
        self.info(thread).await?;
        self.check_day().await?;
        let answer = self.runtime().ask_again(thread, run, call, prompt).await?;
        if let Some(AnswerAgain { usage, nano_usd, latency_ms, .. }) = &answer {
            let nano_usd = nano_usd.unwrap_or_default();
            self.note_cost(ModelCost { calls: 1, tokens: usage.total(), nano_usd }, *latency_ms)
                .await?;
        }
        Ok(answer)
    }

    /// Makes the architect design a team, whose calls of the model are counted, also without a valid design.
    ///
    /// # Errors
    /// [`Error::TooMuch`], [`Error::DaySpent`], [`Error::Runtime`].
    pub async fn design_team(&self, goal: &str) -> Result<TeamDesign> {
        self.check_room().await?;
        let began = clock::now();
        let model = self.runtime().metered_model();
        let design = self.runtime().design_team(self.tenant(), goal, &model).await;
        let millis = (clock::now() - began).num_milliseconds().unsigned_abs();
        self.note_cost(model.take(), millis).await?;
        Ok(design?)
    }

    /// Counts calls of a model that belong to no run, like a run on a separate thread.
    async fn note_cost(&self, cost: ModelCost, millis: u64) -> Result<()> {
        if cost.calls == 0 {
            return Ok(());
        }
        let tenant = self.tenant().to_owned();
        let thread = Uuid::new_v4();
        let run = EndedRun { tenant, thread, part: 0, run: Uuid::new_v4(), at: clock::now() };
        let ModelCost { tokens, nano_usd, .. } = cost;
        let taken = Taken { tokens, nano_usd, millis, ..Taken::default() };
        Ok(self.people().note_taken(&run, taken).await?)
    }
}

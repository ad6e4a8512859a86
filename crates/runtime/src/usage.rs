//! The usage of model calls of many threads, by day, agent, model and user.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;

use super::Error;
use perihelion_engine::checkpoint::Store;
use perihelion_engine::ids::ThreadId;
use perihelion_settings::config::Settings;
use perihelion_telemetry::{About, Spent, View, bill, spans_of};

#[derive(Clone, Debug, Default, Serialize)]
pub struct Usage {
    /// By the day (UTC) on which a call began.
    pub by_day: BTreeMap<NaiveDate, Spent>,
    pub parts_by_day: BTreeMap<NaiveDate, Parts>,
    #[serde(flatten)]
    pub parts: Parts,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Parts {
    /// By agent, or by role for calls without one.
    pub by_agent: BTreeMap<String, Spent>,
    pub by_model: BTreeMap<String, Spent>,
    pub by_user: BTreeMap<String, Spent>,
}

impl Usage {
    fn add(&mut self, start: DateTime<Utc>, about: &About, user: Option<&str>, spent: Spent) {
        let About::Chat { role, agent, model, .. } = about else { return };
        let worker = agent.as_ref().unwrap_or(role);
        let model = model.as_deref().unwrap_or("no answer");
        let user = user.unwrap_or("no user");
        let day = start.date_naive();
        self.by_day.entry(day).or_default().add(spent);
        for parts in [&mut self.parts, self.parts_by_day.entry(day).or_default()] {
            parts.by_agent.entry(worker.clone()).or_default().add(spent);
            parts.by_model.entry(model.to_owned()).or_default().add(spent);
            parts.by_user.entry(user.to_owned()).or_default().add(spent);
        }
    }
}

/// Adds up the usage of model calls since a time, of threads with their users; it reads the journals.
///
/// # Errors
/// Any error of the store for the threads' runs. A run whose steps cannot be read counts as zero.
pub async fn usage(
    store: &dyn Store,
    settings: &Settings,
    threads: &[(ThreadId, Option<String>)],
    since: DateTime<Utc>,
) -> Result<Usage, Error> {
    let prices = settings.models.price_list();
    let view = View::default();
    let mut usage = Usage::default();
    for (thread, user) in threads {
        // The first run of the trace that was read last: the runs that continued with it are in it.
        let mut read_from = u32::MAX;
        for run in store.runs(*thread).await?.iter().rev() {
            if run.ended_at.is_some_and(|end| end < since) {
                break;
            }
            if run.number >= read_from {
                continue;
            }
            let Ok(mut spans) = spans_of(store, *thread, run.number, view).await else { continue };
            read_from = spans.first().map_or(run.number, |root| root.run);
            bill(&mut spans, &prices);
            for span in spans.iter().filter(|span| span.start >= since) {
                if let (About::Chat { .. }, Some(spent)) = (&span.about, span.spent) {
                    usage.add(span.start, &span.about, user.as_deref(), spent);
                }
            }
        }
    }
    Ok(usage)
}

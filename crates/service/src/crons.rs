//! Begins runs by the clock: each time once, whichever processes find it due.
//!
//! The IDs of a scheduled thread and run derive from the cron and the time, so a process that continues another one's
//! work repeats no run. Times that passed while no process was there are made up for once, not one by one.

use chrono::TimeDelta;
use perihelion_people::{self as people, Principal, Scope};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::kept::{self, Cron, CronFilter, Multitask, NewDelivery};
use super::monitor::{PAGE, Place};
use super::schedule::Schedule;
use super::{Accept, Error, Order, Result, Service};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;

/// How long a process may take to begin a run before another one does.
const CLAIM: TimeDelta = TimeDelta::seconds(30);

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Work {
    pub order: Order,
    pub shown: Value,
    pub metadata: Value,
    pub multitask: Multitask,
    pub webhook: Option<String>,
}

impl Work {
    pub fn user(&self) -> Option<&str> {
        self.order.turn()?.user.as_deref()
    }
}

impl Service {
    pub(super) async fn begin_due(&self, place: &mut Place) -> Result<()> {
        let now = clock::now();
        let due = self.kept().due_crons(now, PAGE, place.passed).await?;
        let count = due.len();
        let is_mine = |cron: &Cron| self.drives(&cron.tenant);
        // What one process cannot open, such as with a key that it does not have yet, another one can.
        let warn = |error: &kept::Error| tracing::warn!(%error, "could not read a cron job");
        let due: Vec<Cron> = due
            .into_iter()
            .filter_map(|cron| cron.inspect_err(warn).ok())
            .filter(is_mine)
            .collect();
        place.move_on(count, count - due.len());
        for cron in due {
            if !self.kept().claim_cron(&cron, &self.parts.owner, now, CLAIM).await? {
                continue;
            }
            let maker = maker_of(&cron);
            let user = maker.user.clone();
            let who = self.people().still(maker, now).await.and_then(|who| {
                let why = "they can no longer start runs";
                if who.may(Scope::Run) { Ok(who) } else { Err(people::Error::NotAccepted(why)) }
            });
            let who = match who {
                Ok(who) => who,
                Err(people::Error::NotAccepted(why)) => {
                    let why = format!("it ran on behalf of {user}: {why}");
                    tracing::warn!(cron = %cron.id, %why, "paused a cron job");
                    self.kept().pause_cron(&cron, &self.parts.owner, &why).await?;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let service = self.seen_by(who);
            if let Err(error) = service.begin_by_clock(&cron).await {
                if error.is_passing() {
                    // The claim runs out, and it is tried again.
                    tracing::warn!(%error, cron = %cron.id, "could not start the run of a cron job; trying again");
                    continue;
                }
                tracing::error!(%error, cron = %cron.id, "could not start the run of a cron job");
            }
            let next = Schedule::read(&cron.schedule, cron.timezone.as_deref());
            let next = next.ok().and_then(|schedule| schedule.after(clock::now()));
            let next = next.filter(|next| cron.end_at.is_none_or(|end| *next <= end));
            self.kept().move_cron(&cron, &self.parts.owner, next).await?;
        }
        Ok(())
    }

    /// Counts the crons of an assistant that the caller cannot delete: those in threads of other users.
    pub async fn others_crons(&self, assistant: Uuid) -> Result<usize> {
        let mut filter =
            CronFilter { assistant: Some(assistant), limit: PAGE, ..CronFilter::default() };
        let mut others = 0;
        loop {
            let crons = self.kept().crons(&filter).await?;
            for thread in crons.iter().filter_map(|cron| cron.thread) {
                match self.user_on(ThreadId(thread), None).await {
                    Err(Error::OthersThread) => others += 1,
                    // Nothing is left of its thread.
                    Ok(_) | Err(Error::UnknownThread(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            if crons.len() < PAGE as usize {
                return Ok(others);
            }
            filter.offset += PAGE;
        }
    }

    async fn begin_by_clock(&self, cron: &Cron) -> Result<()> {
        let due = cron.next_at.map(|at| at.to_rfc3339()).unwrap_or_default();
        let id = Uuid::new_v5(&cron.id, due.as_bytes());
        if self.kept().find_run(id).await?.is_some() {
            return Ok(());
        }
        let work: Work = serde_json::from_value(cron.work.clone()).map_err(Error::Update)?;
        let thread = match cron.thread {
            Some(thread) => ThreadId(thread),
            None => {
                let thread = ThreadId(Uuid::new_v5(&id, b"thread"));
                self.thread_for_turn(Some(thread), &json!({})).await?.0
            }
        };
        let graph = &self.graph_noted(&work.metadata).about().name;
        self.note_assistant(thread, graph, cron.assistant).await?;
        let mut metadata = work.metadata;
        if let Some(fields) = metadata.as_object_mut() {
            fields.insert("cron_id".into(), json!(cron.id));
            fields.insert("cron_due_at".into(), json!(cron.next_at));
        }
        let webhook = work.webhook.map(NewDelivery::webhook);
        let accept = Accept {
            thread,
            assistant: cron.assistant,
            order: work.order,
            shown: work.shown,
            metadata,
            multitask: work.multitask,
            temporary: cron.thread.is_none() && !cron.keeps_thread,
            due_at: None,
            deliveries: webhook.into_iter().collect(),
        };
        match self.accept_as(id, accept).await {
            Ok(_) => Ok(()),
            // Another process has kept the same run.
            Err(Error::Rows(error)) if error.is_duplicate() => Ok(()),
            Err(error) => {
                // It is not tried again: the thread would stay empty.
                if cron.thread.is_none() && !error.is_passing() {
                    self.sweep_one(thread).await?;
                }
                Err(error)
            }
        }
    }
}

/// Returns who made a cron; one of an earlier version knows a name alone.
fn maker_of(cron: &Cron) -> Principal {
    let kept = cron.maker.clone().and_then(|maker| serde_json::from_value(maker).ok());
    kept.unwrap_or_else(|| {
        let who = Principal::loopback(&cron.tenant);
        let user = if cron.user.is_empty() { who.user.clone() } else { cron.user.clone() };
        Principal { user, ..who }
    })
}

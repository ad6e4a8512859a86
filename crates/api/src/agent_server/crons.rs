//! Crons: runs that begin by the clock.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use chrono::{DateTime, NaiveDateTime, Utc};
use schemars::JsonSchema;
use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{AppState, Refusal, accept, page, threads, wire};
use crate::http::{
    Body, JsonResult, OfThread, Raw, ResponseResult, StatusResult, read_object, uuid,
};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_service::kept::{Cron, CronFilter, CronOrder};
use perihelion_service::{Error, Schedule, assistant_of};
use perihelion_star::TEAM_PREFIX;

/// Crons of one answer at most.
const MOST: u32 = 1_000;

/// A cron, or its changes, and the body of its runs.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Create {
    /// Required for a new cron.
    schedule: Option<String>,
    timezone: Option<String>,
    #[serde(default, deserialize_with = "moment")]
    end_time: Option<DateTime<Utc>>,
    on_run_completed: Option<wire::OnCompletion>,
    enabled: Option<bool>,
    #[serde(flatten)]
    run: wire::RunBody,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Search {
    assistant_id: Option<String>,
    thread_id: Option<Uuid>,
    enabled: Option<bool>,
    metadata: Option<Map<String, Value>>,
    limit: Option<u32>,
    offset: Option<u32>,
    sort_by: Option<CronOrder>,
    sort_order: Option<wire::SortOrder>,
    select: Option<Vec<String>>,
}

pub(super) async fn create(app: State<AppState>, Raw(body, _): Raw<Create>) -> JsonResult {
    Ok(Json(shown(&put(&app, None, None, read_object(body)?).await?)))
}

pub(super) async fn create_for_thread(
    app: State<AppState>,
    OfThread(thread): OfThread,
    Raw(body, _): Raw<Create>,
) -> JsonResult {
    app.service.info(thread).await?;
    Ok(Json(shown(&put(&app, Some(thread), None, read_object(body)?).await?)))
}

pub(super) async fn update(
    app: State<AppState>,
    Path(id): Path<String>,
    Raw(body, _): Raw<Create>,
) -> JsonResult {
    let there = found_to_change(&app, &id).await?;
    let change: Map<String, Value> = read_object(body)?;
    let mut whole = there.payload.as_object().cloned().unwrap_or_default();
    whole.insert("metadata".into(), there.metadata.clone());
    whole.insert("enabled".into(), json!(there.enabled));
    let clears = |(name, value): &(String, Value)| !value.is_null() || name == "end_time";
    whole.extend(change.into_iter().filter(clears));
    let thread = there.thread.map(ThreadId);
    Ok(Json(shown(&put(&app, thread, Some(there), whole).await?)))
}

/// Checks a cron and keeps it, in place of an earlier state of it.
async fn put(
    app: &AppState,
    thread: Option<ThreadId>,
    there: Option<Cron>,
    mut payload: Map<String, Value>,
) -> Result<Cron, Refusal> {
    let create: Create = read_object(Value::Object(payload.clone()))?;
    let text = create.schedule;
    let text = text.ok_or_else(|| Refusal::invalid("\"schedule\" is a required property"))?;
    let schedule = Schedule::read(&text, create.timezone.as_deref());
    let schedule = schedule.map_err(Refusal::invalid)?;
    let metadata = Value::Object(create.run.metadata.clone().unwrap_or_default());
    let checked = accept::check(app, create.run).await?;
    let assistant = checked.assistant.id;
    let work = accept::work(checked)?;
    if let Some(thread) = thread {
        app.service.user_on(thread, work.user()).await?;
    }
    let now = clock::now();
    let id = there.as_ref().map_or_else(Uuid::now_v7, |there| there.id);
    let ever = schedule.after(now);
    let next = ever.filter(|next| create.end_time.is_none_or(|end| *next <= end));
    // An existing cron that has ended can still be changed.
    if ever.is_none() || next.is_none() && there.is_none() {
        let end = ever.and(create.end_time).map_or_else(String::new, |end| format!(" until {end}"));
        let why = format!("schedule: no date matches this expression{end}: {text}");
        return Err(Refusal(StatusCode::BAD_REQUEST, why));
    }
    let enabled = create.enabled.unwrap_or(true);
    payload.remove("metadata");
    payload.remove("enabled");
    payload.insert("assistant_id".into(), json!(assistant));
    payload.insert("config".into(), with_cron(payload.get("config"), id));
    let cron = Cron {
        id,
        tenant: app.service.tenant().to_owned(),
        assistant,
        thread: thread.map(|thread| thread.0),
        schedule: text,
        timezone: create.timezone,
        keeps_thread: create.on_run_completed == Some(wire::OnCompletion::Keep),
        user: app.service.who().user.clone(),
        maker: serde_json::to_value(app.service.who()).ok(),
        paused: None,
        payload: Value::Object(payload),
        work: serde_json::to_value(work).map_err(Refusal::invalid)?,
        metadata,
        enabled,
        next_at: next.filter(|_| enabled),
        end_at: create.end_time,
        created_at: there.as_ref().map_or(now, |there| there.created_at),
        updated_at: now,
    };
    app.service.kept().put_cron(&cron, there.is_none()).await?;
    // As it is kept: databases have times of microseconds.
    found(app, &id.to_string()).await
}

/// Reads a time; without a zone, as Python clients write it, it is in UTC.
fn moment<'de, D: Deserializer<'de>>(from: D) -> Result<Option<DateTime<Utc>>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
    let plain = || text.parse().map(|time: NaiveDateTime| time.and_utc());
    let time = text.parse().or_else(|_| plain());
    let unread = Unexpected::Str(&text);
    time.map(Some)
        .map_err(|_| D::Error::invalid_value(unread, &"an end_time such as 2026-12-31T18:00:00Z"))
}

fn with_cron(config: Option<&Value>, id: Uuid) -> Value {
    let mut config = config.filter(|config| config.is_object()).cloned().unwrap_or_default();
    if !config["configurable"].is_object() {
        config["configurable"] = json!({});
    }
    config["configurable"]["cron_id"] = json!(id);
    config
}

fn shown(cron: &Cron) -> Value {
    let ends = if cron.keeps_thread { "keep" } else { "delete" };
    let mut shown = json!({
        "cron_id": cron.id,
        "assistant_id": cron.assistant,
        "thread_id": cron.thread,
        "user_id": cron.user,
        "end_time": cron.end_at,
        "schedule": cron.schedule,
        "timezone": cron.timezone,
        "payload": wire::without_user(cron.payload.clone()),
        "next_run_date": cron.next_at,
        "metadata": cron.metadata,
        "on_run_completed": cron.thread.is_none().then_some(ends),
        "enabled": cron.enabled,
        "created_at": cron.created_at,
        "updated_at": cron.updated_at,
    });
    if let Some(why) = &cron.paused {
        shown["paused"] = json!(why);
    }
    shown
}

async fn found(app: &AppState, id: &str) -> Result<Cron, Refusal> {
    let cron = app.service.kept().cron(uuid("cron", id)?).await?;
    cron.ok_or_else(|| Refusal::missing(format!("Cron with ID {id} not found")))
}

/// Finds a cron to change: a cron in a user's thread belongs to that user.
async fn found_to_change(app: &AppState, id: &str) -> Result<Cron, Refusal> {
    let cron = found(app, id).await?;
    if let Some(thread) = cron.thread {
        match app.service.user_on(ThreadId(thread), None).await {
            // Nothing is left of its thread.
            Err(Error::UnknownThread(_)) => {}
            other => drop(other?),
        }
    }
    Ok(cron)
}

pub(super) async fn delete(app: State<AppState>, Path(id): Path<String>) -> StatusResult {
    let cron = found_to_change(&app, &id).await?;
    app.service.kept().delete_cron(cron.id).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn filter(app: &AppState, search: Search) -> Result<CronFilter, Refusal> {
    let assistant = match search.assistant_id.as_deref() {
        None => None,
        Some(name)
            if app.service.runtime().graph(name).is_ok() || name.starts_with(TEAM_PREFIX) =>
        {
            Some(assistant_of(name))
        }
        Some(id) => Some(uuid("assistant", id)?),
    };
    let metadata = threads::conditions(search.metadata, "metadata")?;
    Ok(CronFilter {
        assistant,
        thread: search.thread_id,
        enabled: search.enabled,
        metadata: Some(metadata).filter(|wanted| *wanted != json!({})),
        order: search.sort_by.unwrap_or_default(),
        ascending: search.sort_order == Some(wire::SortOrder::Asc),
        limit: search.limit.unwrap_or(10).clamp(1, MOST),
        offset: search.offset.unwrap_or(0),
    })
}

pub(super) async fn search(app: State<AppState>, Body(mut search): Body<Search>) -> ResponseResult {
    let fields = wire::Fields(search.select.take().unwrap_or_default());
    let filter = filter(&app, search)?;
    let kept = app.service.kept();
    let crons = kept.crons(&filter).await?;
    let total = kept.count_crons(&filter).await?;
    let shown = crons.iter().map(|cron| fields.only(shown(cron))).collect();
    Ok(page(shown, filter.offset, total))
}

pub(super) async fn count(
    app: State<AppState>,
    Body(search): Body<Search>,
) -> Result<Json<u64>, Refusal> {
    let filter = filter(&app, search)?;
    Ok(Json(app.service.kept().count_crons(&filter).await?))
}

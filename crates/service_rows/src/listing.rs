//! Finding threads, a page at a time, however many there are.
//!
//! Invariant: a page in the order of the last change, or of the beginning, is read off an index; of threads under way, which no
//! index orders, there are few. Deliberately absent: an index for the orders by id and by status.

use std::collections::BTreeSet;

use perihelion_database::{Dialect, FromColumn, Row};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value as Json;
use uuid::Uuid;

use crate::sql::Statement;
use crate::{Error, Kept, Result, ThreadMeta};

/// How many threads beyond a page are counted for its total; more are not, because each is looked at.
pub const COUNTED: u32 = 1_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum ThreadOrder {
    #[serde(rename = "thread_id")]
    Id,
    #[serde(rename = "created_at")]
    Created,
    #[default]
    #[serde(rename = "updated_at", alias = "state_updated_at")]
    Updated,
    #[serde(rename = "status")]
    Status,
}

/// The graph that adds documents: its threads are work of the program, and are not listed.
pub const DOCUMENTS: &str = "document";

/// Which threads are listed, of any other graph.
#[derive(Clone, Debug, Default)]
pub struct ThreadFilter {
    pub ids: Vec<Uuid>,
    pub metadata: Json,
    /// Fields that their metadata lacks.
    pub without: Vec<String>,
    /// Their statuses, in the engine's words; `failed` ones whose run was stopped are `stopped` here.
    pub statuses: Vec<String>,
    /// Words of their conversations, all of them, each by the numbers that it may be stored as.
    pub words: Vec<Vec<i64>>,
    pub order: ThreadOrder,
    pub ascending: bool,
    pub limit: u32,
    pub offset: u32,
}

#[derive(Clone, Debug)]
pub struct Listed {
    pub id: Uuid,
    pub meta: ThreadMeta,
    pub has_open_run: bool,
    pub user: Option<String>,
}

/// The status of a thread, as an expression: it distinguishes a stopped run from a failed one, and an idle thread whose
/// last run failed from other idle ones.
const STATUS: &str = "CASE WHEN t.status = 'failed' AND EXISTS (SELECT 1 FROM run r WHERE r.thread_id = t.id \
    AND r.number = t.runs AND r.status <> 'failed') THEN 'stopped' \
    WHEN t.status = 'idle' AND t.error IS NOT NULL THEN 'failed' ELSE t.status END";

/// Whether a run of a thread is under way or waits, as a number.
const HAS_OPEN_RUN: &str = "(SELECT count(*) FROM service_run r WHERE r.thread_id = t.id \
    AND r.status IN ('pending', 'running'))";

const PLACE: &str = " FROM thread t LEFT JOIN service_thread m ON m.thread_id = t.id WHERE ";

/// Threads that one index holds in order, or that are few.
struct Part {
    condition: &'static str,
    order: &'static str,
}

impl Kept {
    /// Lists threads, and their total number up to [`COUNTED`] behind the page.
    pub async fn threads(&self, filter: &ThreadFilter) -> Result<(Vec<Listed>, u64)> {
        let rows = self.of_tenant().fetch_all(&self.page(filter).build()).await?;
        let read = |row: &Row| {
            let meta = ThreadMeta::read(row, 1)?;
            Ok::<_, Error>(Listed {
                id: row.get(0)?,
                meta,
                has_open_run: row.get::<i64>(4)? != 0,
                user: row.get(5)?,
            })
        };
        let listed = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let count = listed.len() as u64;
        if filter.offset == 0 && count < u64::from(filter.limit) {
            return Ok((listed, count));
        }
        let most = filter.offset.saturating_add(filter.limit).saturating_add(COUNTED);
        let total = self.count(filter, Some(most)).await?;
        Ok((listed, total))
    }

    /// Counts threads: all of them, or all with some statuses, by stored counts; with another filter, row by row.
    pub async fn count_threads(&self, filter: &ThreadFilter) -> Result<u64> {
        let has_metadata = filter.metadata.as_object().is_some_and(|fields| !fields.is_empty());
        let is_of_status_alone =
            filter.ids.is_empty() && filter.words.is_empty() && filter.without.is_empty();
        if has_metadata || !is_of_status_alone {
            return self.count(filter, None).await;
        }
        let counts = self.threads_by_status().await?;
        let wanted =
            |status: &String| filter.statuses.is_empty() || filter.statuses.contains(status);
        Ok(counts.iter().filter(|(status, _)| wanted(status)).map(|(_, count)| count).sum())
    }

    /// Returns how many threads have each status, in the words of [`ThreadFilter::statuses`]; a status without threads is missing.
    pub async fn threads_by_status(&self) -> Result<Vec<(String, u64)>> {
        let mut counts: Vec<(String, u64)> = self.counts_of("thread").await?;
        let Some(failed) = counts.iter_mut().find(|(status, _)| status == "failed") else {
            return Ok(counts);
        };
        // Why a thread failed is read from its last run: of those alone whose own status is failed, which an index finds.
        let mut find = self.statement(
            "SELECT count(*) FROM thread t WHERE t.root_id IS NULL AND t.status <> 'busy' AND t.status <> 'idle' \
             AND t.status = 'failed' AND t.graph <> ",
        );
        find.value(DOCUMENTS).text(" AND t.tenant = ").value(&self.tenant);
        find.text(" AND ").text(STATUS).text(" = 'stopped'");
        let stopped = self.counted(find).await?;
        failed.1 = failed.1.saturating_sub(stopped);
        counts.push(("stopped".to_owned(), stopped));
        counts.retain(|(_, count)| *count > 0);
        Ok(counts)
    }

    /// Returns how many threads or runs have each status, as the database keeps it; a run has no graph.
    pub(crate) async fn counts_of<S: FromColumn>(&self, subject: &str) -> Result<Vec<(S, u64)>> {
        let mut find = self.statement(
            "SELECT status, CAST(SUM(number) AS bigint) FROM status_count WHERE subject = ",
        );
        find.value(subject).text(" AND graph <> ").value(DOCUMENTS);
        find.text(" AND tenant = ").value(&self.tenant);
        find.text(" GROUP BY status HAVING SUM(number) > 0 ORDER BY status");
        Ok(self.of_tenant().rows(&find.build()).await?)
    }

    async fn count(&self, filter: &ThreadFilter, most: Option<u32>) -> Result<u64> {
        let mut find = self.statement("SELECT count(*) FROM (SELECT 1");
        find.text(PLACE);
        self.conditions(&mut find, filter);
        if let Some(most) = most {
            find.text(" LIMIT ").value(most);
        }
        find.text(") AS counted");
        self.counted(find).await
    }

    /// Puts the question for a page together: the first rows of each part, and of those the page.
    pub(crate) fn page(&self, filter: &ThreadFilter) -> Statement {
        let direction = if filter.ascending { " ASC" } else { " DESC" };
        // Runs are counted for the page alone, not for what is left out before it.
        let mut find = self.statement("SELECT t.id, t.metadata, t.config, t.updated_at, ");
        find.text(HAS_OPEN_RUN);
        find.text(", t.user_id FROM (SELECT t.id, t.place, m.metadata, m.config, m.updated_at, m.user_id FROM (");
        for (index, Part { condition, order }) in parts(filter).iter().enumerate() {
            find.text(if index == 0 { "" } else { " UNION ALL " });
            find.text("SELECT * FROM (SELECT t.id, ").text(order).text(" AS place").text(PLACE);
            self.conditions(&mut find, filter);
            find.text(condition).text(" ORDER BY ").text(order).text(direction);
            find.text(", t.id").text(direction).text(" LIMIT ");
            find.value(filter.offset.saturating_add(filter.limit)).text(") AS part");
        }
        let in_order = format!(" ORDER BY t.place{direction}, t.id{direction}");
        find.text(") AS t LEFT JOIN service_thread m ON m.thread_id = t.id").text(&in_order);
        find.page(filter.limit, filter.offset).text(") AS t").text(&in_order);
        find
    }

    fn conditions(&self, find: &mut Statement, filter: &ThreadFilter) {
        find.text("t.root_id IS NULL AND t.tenant = ").value(&self.tenant);
        find.text(" AND t.graph <> ").value(DOCUMENTS);
        if !filter.ids.is_empty() {
            find.text(" AND ").one_of("t.id", filter.ids.iter().copied());
        }
        self.noted(find, &filter.metadata);
        let found = self
            .database
            .dialect()
            .pick("(SELECT f.key FROM json_each(m.metadata) f WHERE f.key = ", "(m.metadata -> ");
        for field in &filter.without {
            // A CASE, for the planner, as for metadata that is wanted.
            find.text(" AND CASE WHEN ").text(found).value(field);
            find.text(") IS NULL THEN true ELSE false END");
        }
        for word in &filter.words {
            find.with_word("t.id", word);
        }
        of_status(find, &filter.statuses);
    }

    fn noted(&self, find: &mut Statement, wanted: &Json) {
        let Some(fields) = wanted.as_object().filter(|fields| !fields.is_empty()) else { return };
        let dialect = self.database.dialect();
        // A thread that another face began has nothing noted; it is its graph's all the same.
        let is_of_graph = fields.keys().all(|name| name == "graph_id");
        let implied = dialect.pick(
            "COALESCE(m.metadata, json_object('graph_id', t.graph))",
            "COALESCE(m.metadata, jsonb_build_object('graph_id', t.graph))",
        );
        // A CASE, which the planner takes for half of the rows: by itself it expects one in a hundred, and reads the whole table.
        find.text(" AND CASE WHEN ")
            .contains(if is_of_graph { implied } else { "m.metadata" }, wanted)
            .text(" THEN true ELSE false END");
        if dialect == Dialect::Sqlite {
            return;
        }
        // Words have marks, which an index finds; the condition above remains what decides.
        let words = fields.iter().filter(|(name, _)| *name != "graph_id");
        for (name, word) in words.filter_map(|(name, value)| Some((name, value.as_str()?))) {
            find.add(
                " AND t.id IN (SELECT k.thread_id FROM thread_mark k WHERE k.mark = mark_of(?, ?, ?))",
                (&self.tenant, name, word),
            );
        }
    }
}

fn parts(filter: &ThreadFilter) -> Vec<Part> {
    // Some conditions imply others: SQLite takes an index for a part of the rows only where it reads that part's own words.
    let under_way = Part {
        condition: " AND t.status = 'busy' AND t.status IN ('queued', 'busy')",
        order: "t.updated_at",
    };
    let at_rest = Part { condition: " AND t.status <> 'busy'", order: "t.rested_at" };
    let unsettled =
        Part { condition: " AND t.status <> 'busy' AND t.status <> 'idle'", order: "t.rested_at" };
    let failed_at_rest =
        Part { condition: " AND t.status = 'idle' AND t.error IS NOT NULL", order: "t.rested_at" };
    let whole = |order| vec![Part { condition: "", order }];
    let wants = |status: &str| filter.statuses.iter().any(|wanted| wanted == status);
    match filter.order {
        ThreadOrder::Id => whole("t.id"),
        ThreadOrder::Created => whole("t.created_at"),
        ThreadOrder::Status => whole("t.status"),
        ThreadOrder::Updated if filter.statuses.is_empty() || wants("idle") => {
            vec![under_way, at_rest]
        }
        ThreadOrder::Updated => {
            let busy = wants("busy").then_some(under_way);
            let failed = wants("failed").then_some(failed_at_rest);
            busy.into_iter().chain([unsettled]).chain(failed).collect()
        }
    }
}

fn of_status(find: &mut Statement, statuses: &[String]) {
    if statuses.is_empty() {
        return;
    }
    // What the column says is found by an index; why a thread failed is read from its last run and its error.
    let columns = statuses.iter().flat_map(|status| match status.as_str() {
        "failed" => vec!["failed", "idle"],
        "stopped" => vec!["failed"],
        other => vec![other],
    });
    let columns: BTreeSet<&str> = columns.collect();
    find.text(" AND ").one_of("t.status", columns);
    if !statuses.iter().any(|status| matches!(&**status, "failed" | "stopped" | "idle")) {
        return;
    }
    find.text(" AND ").one_of(STATUS, statuses.iter().map(String::as_str));
}

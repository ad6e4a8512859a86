//! Searches the runs of all threads by the data stored with them, a page at a time.
//!
//! Invariant: no state, step or event of a thread is read. Deliberately absent: runs without a client, such as
//! those of the command line.

use chrono::{DateTime, Utc};
use perihelion_database::{FromRow as _, Row, StoredRow as _};
use serde_json::Value as Json;
use uuid::Uuid;

use crate::sql::Statement;
use crate::{Kept, Result, Run, RunStatus};

/// Which runs are wanted, newest first; each condition is optional.
#[derive(Clone, Debug, Default)]
pub struct RunSearch {
    pub thread: Option<Uuid>,
    pub statuses: Vec<RunStatus>,
    pub since: Option<DateTime<Utc>>,
    pub until: Option<DateTime<Utc>>,
    pub graph: Option<String>,
    pub agent: Option<String>,
    pub user: Option<String>,
    /// A part of the error message; case-insensitive.
    pub error: Option<String>,
    pub min_nano_usd: Option<u64>,
    /// Words of its messages, all of them, each by the numbers that it may be stored as.
    pub words: Vec<Vec<i64>>,
    /// The last run of the page before.
    pub after: Option<(DateTime<Utc>, Uuid)>,
    pub limit: u32,
}

#[derive(Clone, Debug)]
pub struct FoundRun {
    pub run: Run,
    /// Number of its first attempt in the thread, which names its trace.
    pub number: Option<u32>,
    pub graph: String,
    pub user: Option<String>,
    pub title: Option<String>,
    /// The agents that worked in it, by name.
    pub agents: Vec<String>,
    pub tokens: Option<u64>,
    /// Billionths of a US dollar.
    pub nano_usd: Option<u64>,
}

/// The number of the engine's run that made the first step of the run `r`; of an archived thread, it is stored with the run.
const NUMBER: &str = "COALESCE((SELECT e.number FROM step s JOIN run e ON e.thread_id = s.thread_id AND e.id = s.run \
    WHERE s.thread_id = r.thread_id AND s.seq = r.base_step + 1), r.first_number)";

/// The executions of agents in the run `r`, as the audit log has them since its first step: before that, it waited for
/// its turn while other runs worked in its thread.
const EXECUTED: &str = "FROM audit a WHERE a.thread_id = r.thread_id AND a.action = 'agent.executed' \
    AND a.at >= COALESCE((SELECT s.at FROM step s WHERE s.thread_id = r.thread_id AND s.seq = r.base_step + 1), \
        r.began_at, r.created_at) \
    AND r.base_step IS NOT NULL AND (r.status = 'running' OR a.at <= r.updated_at)";

impl Kept {
    pub async fn find_runs(&self, search: &RunSearch) -> Result<Vec<FoundRun>> {
        let rows = self.of_tenant().fetch_all(&self.page_of_runs(search).build()).await?;
        rows.iter().map(|row| self.read_found(row)).collect()
    }

    /// Puts the query for a page together: the runs, and then what is listed of each.
    pub(crate) fn page_of_runs(&self, search: &RunSearch) -> Statement {
        let columns = Run::COLUMNS;
        let list = self.database.dialect().pick("json_group_array", "jsonb_agg");
        let mut find = self.statement(&format!(
            "SELECT {columns}, graph_name, user_name, title, tokens, nano_usd, {NUMBER} AS number, \
             (SELECT {list}(DISTINCT a.details ->> 'agent') {EXECUTED}) AS agents FROM (SELECT r.*, t.graph AS graph_name, \
             m.user_id AS user_name, m.metadata ->> 'title' AS title FROM service_run r JOIN thread t ON t.id = r.thread_id \
             LEFT JOIN service_thread m ON m.thread_id = r.thread_id WHERE r.tenant = "
        ));
        find.value(&self.tenant);
        self.meets(&mut find, search);
        let order = " ORDER BY r.created_at DESC, r.id DESC";
        find.text(order).text(" LIMIT ").value(search.limit).text(") AS r").text(order);
        find
    }

    fn meets(&self, find: &mut Statement, search: &RunSearch) {
        if !search.statuses.is_empty() {
            find.text(" AND ").one_of("r.status", search.statuses.iter().map(|one| one.as_str()));
        }
        find.given(" AND r.thread_id = ", search.thread);
        find.given(" AND r.created_at >= ", search.since);
        find.given(" AND r.created_at < ", search.until);
        find.given(" AND t.graph = ", search.graph.as_ref());
        find.given(" AND m.user_id = ", search.user.as_ref());
        find.given(" AND r.nano_usd >= ", search.min_nano_usd);
        if let Some(agent) = &search.agent {
            find.text(" AND EXISTS (SELECT 1 ").text(EXECUTED);
            find.text(" AND a.details ->> 'agent' = ").value(agent).text(")");
        }
        if let Some(error) = &search.error {
            find.text(" AND ").mentions("CAST(r.error AS text)", error);
        }
        for word in &search.words {
            find.with_word_of_run(word);
        }
        if let Some((at, id)) = search.after {
            find.add(" AND (r.created_at, r.id) < (?, ?)", (at, id));
        }
    }

    fn read_found(&self, row: &Row) -> Result<FoundRun> {
        let agents: Option<Json> = row.get("agents")?;
        Ok(FoundRun {
            run: self.opened_run(Run::from_row(row)?)?,
            number: row.get("number")?,
            graph: row.get("graph_name")?,
            user: row.get("user_name")?,
            title: row.get("title")?,
            agents: agents.and_then(|list| serde_json::from_value(list).ok()).unwrap_or_default(),
            tokens: row.get("tokens")?,
            nano_usd: row.get("nano_usd")?,
        })
    }
}

//! Runs the statement on the server; its error goes to triage in its own words.

use perihelion_analysis::limit;
use serde_json::Value;

use super::super::PREVIEW_ROWS;
use super::super::turn::{Newest, Preview, Turn, TurnUpdate};
use super::super::{known, server};
use super::check::guarded;
use super::{attempted, surveyed};
use crate::pipeline::{AgentError, ErrorKind, Stage, StageError, StageResult, Step, Table};

/// Runs what was checked, and keeps the rows that may be shown.
pub async fn execute(stage: Stage<Turn>) -> StageResult<Turn> {
    let state = stage.state();
    let Some(checked) = &state.checked else {
        return Err(AgentError::new(ErrorKind::Query, "there is no statement to run").into());
    };
    stage.progress("running the query");
    let table = match server::query(&stage, &checked.sql, Some(PREVIEW_ROWS)).await? {
        Ok(table) => table,
        Err(error) => {
            let attempts = attempted(&stage, &checked.sql, "database", &error);
            return Ok(Step::goto("triage", TurnUpdate::new().attempts(attempts)));
        }
    };
    let truncated = is_truncated(&stage, &table).await?;
    let factor = match &checked.probe {
        Some(probe) => factor(&stage, probe).await?,
        None => None,
    };
    let freshness = freshness(&stage, &checked.tables).await?;
    let mut rows = table.rows;
    rows.truncate(PREVIEW_ROWS);
    let columns = table.columns;
    let preview = Preview { columns, rows, truncated, factor, freshness, ..Preview::default() };
    Ok(Step::next(TurnUpdate::new().preview(Some(preview))))
}

/// Says how up to date the tables are; a declared column that nobody described is asked for.
async fn freshness(stage: &Stage<Turn>, tables: &[String]) -> Result<Vec<String>, StageError> {
    let knowledge = known::of(stage)?;
    let mut newest =
        stage.state().pack.as_ref().map(|pack| pack.newest.clone()).unwrap_or_default();
    let today = stage.context().get("current_date").cloned();
    let mut text = Vec::new();
    for table in tables {
        let declared = knowledge.freshness_of(table);
        let column = declared.and_then(|declared| declared.column.clone());
        if let Some(column) = column
            && !newest.iter().any(|known| known.table == *table && known.column == column)
            && let Some(value) = ask_newest(stage, table, &column).await?
        {
            newest.push(Newest { table: table.clone(), column, value });
        }
        text.extend(known::freshness(table, declared, &newest, today.as_deref()));
    }
    Ok(text)
}

/// Asks for the newest value of a column, as a statement that passes the guard like any other.
async fn ask_newest(
    stage: &Stage<Turn>,
    table: &str,
    column: &str,
) -> Result<Option<String>, StageError> {
    let survey = surveyed(stage)?;
    let quoted = column.replace('"', "\"\"");
    let sql = format!("SELECT MAX(\"{quoted}\") AS newest FROM {table}");
    let Ok(guarded) = guarded(&sql, survey) else { return Ok(None) };
    let sent = if survey.guards_itself { &sql } else { &guarded };
    let Ok(table) = server::query(stage, sent, None).await? else { return Ok(None) };
    let value = table.rows.first().and_then(|row| row.first()).filter(|value| !value.is_null());
    Ok(value.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
}

/// Tells whether there are more rows; a server that does not say is asked to count, so that no further row is seen.
async fn is_truncated(stage: &Stage<Turn>, table: &Table) -> Result<bool, StageError> {
    if table.truncated || table.rows.len() > PREVIEW_ROWS {
        return Ok(true);
    }
    if surveyed(stage)?.guards_itself || table.rows.len() < PREVIEW_ROWS {
        return Ok(false);
    }
    let Some(checked) = &stage.state().checked else { return Ok(false) };
    let dialect = surveyed(stage)?.dialect.into();
    let one_more = limit::bounded(&checked.guarded, dialect, PREVIEW_ROWS + 1);
    let count = format!("SELECT COUNT(*) AS n FROM ({one_more}) AS counted");
    let counted = server::query(stage, &count, None).await?;
    let rows = counted.ok().and_then(|table| number(table.rows.first()?.first()?));
    Ok(rows.is_some_and(|rows| rows > PREVIEW_ROWS as f64))
}

/// Returns how many times a row is counted.
async fn factor(stage: &Stage<Turn>, probe: &str) -> Result<Option<f64>, StageError> {
    let Ok(table) = server::query(stage, probe, None).await? else { return Ok(None) };
    let counts =
        table.rows.first().map(|row| (row.first().and_then(number), row.get(1).and_then(number)));
    Ok(match counts {
        Some((Some(joined), Some(own))) if own > 0.0 => Some(joined / own),
        _ => None,
    })
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

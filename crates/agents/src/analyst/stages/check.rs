//! Guards the statement, bounds its rows and runs it, and looks for joins that count rows more than once.

use serde_json::{Value, json};

use super::{attempted, generate::secondary, surveyed};
use crate::analyst::turn::{Checked, Doubt, Newest, Preview, Survey, Turn, TurnUpdate};
use crate::analyst::{PREVIEW_ROWS, known, server};
use crate::pipeline::{AgentError, ErrorKind, Stage, StageError, StageResult, Step, Table};
use perihelion_analysis::fanout::{self, Verdict};
use perihelion_analysis::guard::{
    EXTENSION_FUNCTIONS, Permitted, Policy, Refusal, TableName, guard,
};
use perihelion_analysis::{Dialect, Knowledge, limit};

/// Most counts that are made for one statement.
const MAX_PROBES: usize = 4;

/// Checks the draft; a refusal of the guard goes to triage, like an error of the database.
pub async fn check(stage: Stage<Turn>) -> StageResult<Turn> {
    let survey = surveyed(&stage)?;
    let Some(draft) = &stage.state().draft else {
        return Err(AgentError::new(ErrorKind::Query, "there is no statement to check").into());
    };
    let checked = match examined(survey, &known::knowledge_of(stage.server())?, &draft.sql) {
        Ok(checked) => checked,
        Err(error) => {
            let attempts = attempted(&stage, &draft.sql, "guard", &error);
            return Ok(Step::goto("triage", TurnUpdate::new().attempts(attempts)));
        }
    };
    let secondary_problem = draft.secondary_sql.as_ref().and_then(|sql| {
        let dialect = secondary(survey.dialect);
        guard(sql, dialect, &anywhere(survey, dialect)).err().map(|e| e.to_string())
    });
    let plan = plan(&stage, &draft.sql).await?;
    let checked = Checked { secondary_problem, plan, ..checked };
    Ok(Step::next(TurnUpdate::new().checked(Some(checked))))
}

/// Guards a statement and looks for its doubts; `Err` is a refusal in words.
fn examined(survey: &Survey, knowledge: &Knowledge, sql: &str) -> Result<Checked, String> {
    let dialect = survey.dialect;
    let policy = policy(survey);
    let guarded = guard(sql, dialect, &policy).map_err(|refusal| format!("refused: {refusal}"))?;
    // Such a server answers with objects, of which a repeated name takes one away.
    if let Some(name) = guarded.repeated_column().filter(|_| !keeps_equal_names(survey)) {
        return Err(format!(
            "refused: several columns are called {name}; give each its own name with AS"
        ));
    }
    let doubts = doubts(sql, survey, &policy);
    let reported = doubts.iter().filter(|doubt| doubt.is_reported);
    Ok(Checked {
        // A server that guards itself knows its tables better, so it gets the model's text.
        sql: if survey.guards_itself {
            sql.to_owned()
        } else {
            limit::bounded(guarded.as_str(), dialect, PREVIEW_ROWS)
        },
        guarded: guarded.as_str().to_owned(),
        tables: guarded.tables().iter().map(TableName::shown).collect(),
        warnings: reported.map(|doubt| doubt.text.clone()).collect(),
        doubts,
        trusted: trusted(knowledge, sql, dialect),
        ..Checked::default()
    })
}

/// Lists the aggregates that may count a row more than once; a probe repeats the model's FROM, and is guarded like the
/// statement itself.
fn doubts(sql: &str, survey: &Survey, policy: &Policy) -> Vec<Doubt> {
    let mut findings = fanout::verdicts(sql, survey.dialect, &survey.catalogue);
    findings.retain(|finding| finding.effect.verdict != Verdict::NotMultiplied);
    let doubts = findings.into_iter().map(|finding| Doubt {
        text: finding.sentence(),
        is_reported: finding.is_reported(),
        probe: finding
            .effect
            .probe
            .and_then(|probe| guard(&probe, survey.dialect, policy).ok())
            .map(|probe| probe.as_str().to_owned()),
    });
    doubts.filter(|doubt| doubt.is_reported || doubt.probe.is_some()).collect()
}

/// Returns whether the server's answers have a place for two columns of one name.
fn keeps_equal_names(survey: &Survey) -> bool {
    survey.guards_itself || survey.dialect == Dialect::Postgres
}

/// Guards our own statement like one of a model; returns it as the guard wrote it.
pub fn guarded(sql: &str, survey: &Survey) -> Result<String, Refusal> {
    let guarded = guard(sql, survey.dialect, &policy(survey))?;
    Ok(guarded.as_str().to_owned())
}

/// Asks for the database's estimate, for the person who inspects the turn; its objections appear again when the
/// statement runs.
async fn plan(stage: &Stage<Turn>, sql: &str) -> Result<Option<String>, StageError> {
    // The last call is that of the statement.
    if !stage.has_tool("validate") || stage.budget().tool_calls < 2 {
        return Ok(None);
    }
    let reply = stage.call("validate", json!({ "sql": sql })).await?;
    Ok(Some(reply.text).filter(|_| !reply.is_error))
}

/// Names the metrics and verified queries in a statement.
fn trusted(knowledge: &Knowledge, sql: &str, dialect: Dialect) -> Vec<String> {
    let used = knowledge.used(sql, dialect);
    let queries = used.verified_queries.iter().map(|known| {
        let by = known.verified_by.as_ref().map(|by| format!(", verified by {by}"));
        format!("the verified query “{}”{}", known.question.trim(), by.unwrap_or_default())
    });
    let metrics =
        used.metrics.iter().map(|metric| format!("the metric {} = {}", metric.name, metric.sql));
    queries.chain(metrics).collect()
}

/// Permits every table that the server showed.
fn policy(survey: &Survey) -> Policy {
    let tables = survey.catalogue.tables.iter().map(|table| Permitted {
        name: table.name.clone(),
        columns: table.columns.iter().map(|column| column.name.clone()).collect(),
        filter: None,
    });
    // A server that guards by itself knows which extensions there are, and where.
    let extensions = EXTENSION_FUNCTIONS.iter().filter(|_| survey.guards_itself);
    let extensions = extensions.map(|(_, name, _)| ((*name).to_owned(), "public".to_owned()));
    Policy { tables: tables.collect(), extensions: extensions.collect() }
}

/// The same tables where another database would have them.
fn anywhere(survey: &Survey, dialect: Dialect) -> Policy {
    let mut policy = policy(survey);
    let home = if dialect == Dialect::TSql { "dbo" } else { "main" };
    for table in policy.tables.iter_mut().filter(|table| table.name.unqualified) {
        table.name.schema = home.to_owned();
    }
    policy
}

pub async fn execute(stage: Stage<Turn>) -> StageResult<Turn> {
    let state = stage.state();
    let Some(checked) = &state.checked else {
        return Err(AgentError::new(ErrorKind::Query, "there is no statement to run").into());
    };
    stage.progress("running the query");
    let mut update = TurnUpdate::new();
    let mut checked = checked.clone();
    let (answered, edited) =
        server::query_or_edited(&stage, &checked.sql, Some(PREVIEW_ROWS)).await?;
    if let Some(sql) = edited {
        // The statement as a person edited it was run, so the answer describes that one.
        let guarded = examined(surveyed(&stage)?, &known::knowledge_of(stage.server())?, &sql);
        let unknown = |_| Checked { guarded: sql.clone(), ..Checked::default() };
        checked = Checked { sql: sql.clone(), ..guarded.unwrap_or_else(unknown) };
        update = update.checked(Some(checked.clone()));
    }
    let table = match answered {
        Ok(table) => table,
        Err(error) => {
            let attempts = attempted(&stage, &checked.sql, "database", &error);
            return Ok(Step::goto("triage", update.attempts(attempts)));
        }
    };
    let truncated = is_truncated(&stage, &table, &checked.guarded).await?;
    let factors = factors(&stage, &checked.doubts).await?;
    let freshness = freshness(&stage, &checked.tables).await?;
    let mut rows = table.rows;
    rows.truncate(PREVIEW_ROWS);
    let columns = table.columns;
    let preview = Preview { columns, rows, truncated, factors, freshness, ..Preview::default() };
    Ok(Step::next(update.preview(Some(preview))))
}

/// Describes the freshness of the tables; the server is asked about a declared column without a description.
async fn freshness(stage: &Stage<Turn>, tables: &[String]) -> Result<Vec<String>, StageError> {
    let knowledge = known::knowledge_of(stage.server())?;
    let mut newest =
        stage.state().pack.as_ref().map(|pack| pack.newest.clone()).unwrap_or_default();
    let today = stage.context().get("current_date").cloned();
    let mut text = Vec::new();
    for table in tables {
        let declared = knowledge.freshness_of(table);
        // The profile covers only the first rows, so it says which columns are dates and not which are newest.
        let seen = newest.extract_if(.., |known| known.table == *table && known.is_sample);
        let mut unknown: Vec<String> = seen.map(|known| known.column).collect();
        if let Some(column) = declared.and_then(|declared| declared.column.clone()) {
            unknown.clear();
            if !newest.iter().any(|known| known.table == *table && known.column == column) {
                unknown.push(column);
            }
        }
        for column in unknown {
            if let Some(value) = ask_newest(stage, table, &column).await? {
                newest.push(Newest { table: table.clone(), column, value, is_sample: false });
            }
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
    let Some(table) = server::look_up(stage, sent).await? else { return Ok(None) };
    let value = table.rows.first().and_then(|row| row.first()).filter(|value| !value.is_null());
    Ok(value.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
}

/// Returns whether there may be more rows; a server that does not say must count, so that no further row is read.
async fn is_truncated(
    stage: &Stage<Turn>,
    table: &Table,
    guarded: &str,
) -> Result<bool, StageError> {
    if table.truncated || table.rows.len() > PREVIEW_ROWS {
        return Ok(true);
    }
    if surveyed(stage)?.guards_itself || table.rows.len() < PREVIEW_ROWS {
        return Ok(false);
    }
    let dialect = surveyed(stage)?.dialect;
    let one_more = limit::bounded(guarded, dialect, PREVIEW_ROWS + 1);
    let count = format!("SELECT COUNT(*) AS n FROM ({one_more}) AS counted");
    let counted = server::look_up(stage, &count).await?;
    let rows = counted.and_then(|table| number(table.rows.first()?.first()?));
    // Without a count there may be more.
    Ok(rows.is_none_or(|rows| rows > PREVIEW_ROWS as f64))
}

/// Measures how many times a row is counted, for each doubt.
async fn factors(stage: &Stage<Turn>, doubts: &[Doubt]) -> Result<Vec<Option<f64>>, StageError> {
    let mut measured: Vec<(&str, Option<f64>)> = Vec::new();
    let mut factors = Vec::new();
    for probe in doubts.iter().map(|doubt| doubt.probe.as_deref()) {
        let known = measured.iter().find(|(known, _)| probe == Some(*known)).map(|known| known.1);
        let mut found = known.flatten();
        if let Some(probe) = probe.filter(|_| known.is_none() && measured.len() < MAX_PROBES) {
            found = factor(stage, probe).await?;
            measured.push((probe, found));
        }
        factors.push(found);
    }
    Ok(factors)
}

/// Returns how many times a row is counted.
async fn factor(stage: &Stage<Turn>, probe: &str) -> Result<Option<f64>, StageError> {
    let Some(table) = server::look_up(stage, probe).await? else { return Ok(None) };
    let Some([joined, own, ..]) = table.rows.first().map(Vec::as_slice) else { return Ok(None) };
    let Some(own) = number(own) else { return Ok(None) };
    Ok(if own > 0.0 { number(joined).map(|joined| joined / own) } else { Some(1.0) })
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

//! Guards the statement, bounds its rows, and looks for joins that count rows more than once.

use perihelion_analysis::fanout::{self, Verdict};
use perihelion_analysis::guard::{Permitted, Policy, Refusal, TableName, guard};
use perihelion_analysis::{Catalogue, Dialect, Knowledge, limit};
use serde_json::json;

use super::super::PREVIEW_ROWS;
use super::super::known;
use super::super::turn::{Checked, Survey, Turn, TurnUpdate};
use super::generate::secondary;
use super::{attempted, surveyed};
use crate::pipeline::{AgentError, ErrorKind, Stage, StageError, StageResult, Step};

/// Checks the draft; what the guard refuses goes to triage, as an error of the database would.
pub async fn check(stage: Stage<Turn>) -> StageResult<Turn> {
    let survey = surveyed(&stage)?;
    let Some(draft) = &stage.state().draft else {
        return Err(AgentError::new(ErrorKind::Query, "there is no statement to check").into());
    };
    let dialect = Dialect::from(survey.dialect);
    let policy = policy(&survey.catalogue);
    let guarded = match guard(&draft.sql, dialect, &policy) {
        Ok(guarded) => guarded,
        Err(refusal) => {
            let error = format!("refused: {refusal}");
            let attempts = attempted(&stage, &draft.sql, "guard", &error);
            return Ok(Step::goto("triage", TurnUpdate::new().attempts(attempts)));
        }
    };
    let findings = fanout::verdicts(&draft.sql, dialect, &survey.catalogue);
    let multiplied = findings.iter().find(|finding| finding.verdict == Verdict::Multiplied);
    let secondary_problem = draft.secondary_sql.as_ref().and_then(|sql| {
        let dialect = Dialect::from(secondary(survey.dialect));
        guard(sql, dialect, &anywhere(&survey.catalogue, dialect)).err().map(|e| e.to_string())
    });
    // A server that guards by itself knows its tables better; what it is given is the model's text.
    let sql = if survey.guards_itself {
        draft.sql.clone()
    } else {
        limit::bounded(guarded.as_str(), dialect, PREVIEW_ROWS)
    };
    // The probe repeats the model's FROM, and is guarded like the statement itself.
    let probe = multiplied
        .and_then(|finding| finding.probe.as_ref())
        .and_then(|probe| guard(probe, dialect, &policy).ok());
    let checked = Checked {
        sql,
        guarded: guarded.as_str().to_owned(),
        tables: guarded.tables().iter().map(TableName::shown).collect(),
        warnings: fanout::warnings(&draft.sql, dialect, &survey.catalogue),
        probe: probe.map(|probe| probe.as_str().to_owned()),
        secondary_problem,
        plan: plan(&stage, &draft.sql).await?,
        trusted: trusted(&known::of(&stage)?, &draft.sql, dialect),
    };
    Ok(Step::next(TurnUpdate::new().checked(Some(checked))))
}

/// Guards a statement of our own like one of a model; returns it as the guard wrote it.
pub fn guarded(sql: &str, survey: &Survey) -> Result<String, Refusal> {
    let guarded = guard(sql, survey.dialect.into(), &policy(&survey.catalogue))?;
    Ok(guarded.as_str().to_owned())
}

/// Asks for the database's estimate, for the person who looks at the turn; what it objects to, it says again when the statement runs.
async fn plan(stage: &Stage<Turn>, sql: &str) -> Result<Option<String>, StageError> {
    if !stage.has_tool("validate") {
        return Ok(None);
    }
    let reply = stage.call("validate", json!({ "sql": sql })).await?;
    Ok(Some(reply.text).filter(|_| !reply.is_error))
}

/// Names the metrics and verified queries that stand in a statement.
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
fn policy(catalogue: &Catalogue) -> Policy {
    let tables = catalogue.tables.iter().map(|table| Permitted {
        name: table.name.clone(),
        columns: table.columns.iter().map(|column| column.name.clone()).collect(),
        filter: None,
    });
    Policy { tables: tables.collect() }
}

/// The same tables where another database would have them.
fn anywhere(catalogue: &Catalogue, dialect: Dialect) -> Policy {
    let mut policy = policy(catalogue);
    let home = if dialect == Dialect::TSql { "dbo" } else { "main" };
    for table in policy.tables.iter_mut().filter(|table| table.name.unqualified) {
        table.name.schema = home.to_owned();
    }
    policy
}

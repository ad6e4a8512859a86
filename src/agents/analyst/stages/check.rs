//! Guards the statement, bounds its rows, and looks for joins that count rows more than once.

use perihelion_analysis::fanout::{self, Verdict};
use perihelion_analysis::guard::{Permitted, Policy, TableName, guard};
use perihelion_analysis::{Catalogue, Dialect, limit};

use super::super::PREVIEW_ROWS;
use super::super::turn::{Checked, Turn, TurnUpdate};
use super::generate::secondary;
use super::{attempted, surveyed};
use crate::agents::pipeline::{AgentError, ErrorKind, Stage, StageResult, Step};

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
    };
    Ok(Step::next(TurnUpdate::new().checked(Some(checked))))
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

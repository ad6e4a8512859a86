//! Turns the preview into an answer, checks its numbers, draws its chart, and names its sources.

use serde_json::json;

use super::{asked, surveyed, tables_in_short};
use crate::analyst::panels;
use crate::analyst::turn::{Checked, Doubt, IntentKind, Interpretation, Preview, Turn, TurnUpdate};
use crate::pipeline::{Chart, Finding, Role, Source, Stage, StageResult, Step, Table};
use perihelion_analysis::chart;
use perihelion_analysis::numbers::{self, Number, Origin};

/// Asks for the answer from the preview alone; a general question is answered from the list of tables.
pub async fn interpret(stage: Stage<Turn>) -> StageResult<Turn> {
    let state = stage.state();
    let general = state.preview.is_none();
    let report =
        state.intent.as_ref().is_some_and(|intent| intent.intent == IntentKind::AnalyticsReport);
    let tables = general.then(|| surveyed(&stage).map(tables_in_short)).transpose()?;
    let seen = state.preview.as_ref().zip(state.checked.as_ref());
    let more = json!({
        "preview": state.preview,
        "sql": state.checked.as_ref().map(|checked| &checked.sql),
        "warnings": seen.map(|(preview, checked)| cautions(preview, checked)),
        "report": report,
        "tables": tables,
    });
    let reply: Interpretation =
        asked(&stage, Role::Agent, ("interpret", "interpretation"), more).await?;
    let given = given(&stage);
    let Some(mut preview) = state.preview.clone() else {
        let known = given + &tables.unwrap_or_default();
        let numbers = numbers::check(&reply.answer, &known, &[], &[]);
        let (text, confidence) = match unsupported(&numbers) {
            Some(note) => (format!("{}\n\n{note}", reply.answer.trim()), 0.4),
            None => (reply.answer, 0.7),
        };
        return Ok(Step::done(Finding::text(text).confidence(confidence)));
    };
    let words = format!("{}\n{}", reply.answer, reply.highlights.join("\n"));
    preview.numbers = numbers::check(&words, &given, &preview.columns, &preview.rows);
    let checked = state.checked.clone().unwrap_or_default();
    let draw = |wanted| chart::draw(wanted, &preview.columns, &preview.rows);
    let drawn = reply.chart.as_ref().map(draw).transpose();
    let mut notes = notes(&stage, &preview, &checked);
    notes.extend(drawn.as_ref().err().map(|error| format!("No chart was drawn: {error}")));
    let key = stage.keep(panels::NAME, panels::of(state, &state.triages, Some((&preview, &reply))));
    let mut text = reply.answer.trim().to_owned();
    for highlight in &reply.highlights {
        text.push_str(&format!("\n- {}", highlight.trim()));
    }
    if !notes.is_empty() {
        text.push_str(&format!("\n\n{}", notes.join("\n")));
    }
    if !reply.follow_ups.is_empty() {
        text.push_str(&format!("\n\nYou could ask next: {}", reply.follow_ups.join(" | ")));
    }
    let query = stage.tool("query").map(|tool| tool.name.clone()).unwrap_or_default();
    let mut finding = Finding::text(text)
        .confidence(confidence(&stage, &preview))
        .table(Table {
            truncated: preview.truncated,
            ..Table::new(preview.columns.clone(), preview.rows.clone())
        })
        .source(Source {
            source: format!("{}.{query}", stage.server().name),
            reference: Some(checked.tables.join(", ")),
            quote: Some(checked.sql.clone()),
            ..Source::default()
        })
        .source(Source {
            source: stage.agent().to_owned(),
            reference: Some(key),
            ..Source::default()
        });
    if let Ok(Some(drawn)) = drawn {
        finding = finding.chart(Chart { vega_lite: drawn.vega_lite, svg: drawn.svg });
    }
    Ok(Step::done_with(TurnUpdate::new().preview(Some(preview)), finding))
}

/// Returns all texts of the user, whose numbers an answer can contain.
fn given(stage: &Stage<Turn>) -> String {
    let mut text = format!("{}\n{}", stage.task(), stage.request());
    for answered in &stage.state().answers {
        text.push_str(&format!("\n{}", answered.answer));
    }
    for (key, value) in stage.context() {
        text.push_str(&format!("\n{key} {value}"));
    }
    text
}

/// Lists the caveats for the reader: assumptions, cuts, double counts, computed and missing values.
fn notes(stage: &Stage<Turn>, preview: &Preview, checked: &Checked) -> Vec<String> {
    let mut notes = Vec::new();
    let assumptions = &stage.state().assumptions;
    if !assumptions.is_empty() {
        notes.push(format!("Assumed: {}", assumptions.join("; ")));
    }
    if preview.truncated {
        notes.push(format!(
            "Only the first {} rows were fetched; there may be more.",
            preview.rows.len()
        ));
    }
    notes.extend(cautions(preview, checked).into_iter().map(|text| format!("Caution: {text}")));
    let mut computed = Vec::new();
    for number in &preview.numbers {
        if let Origin::Computed(how) = &number.origin {
            computed.push(format!("{} ({how})", number.text));
        }
    }
    if !computed.is_empty() {
        notes.push(format!("Computed from the result: {}", computed.join(", ")));
    }
    notes.extend(unsupported(&preview.numbers));
    if !checked.trusted.is_empty() {
        notes.push(format!("By {}", checked.trusted.join("; ")));
    }
    if !checked.tables.is_empty() {
        notes.push(format!("From: {}", checked.tables.join(", ")));
    }
    if !preview.freshness.is_empty() {
        notes.push(format!("Freshness: {}", preview.freshness.join("; ")));
    }
    notes
}

/// Names the numbers of an answer that nothing supports.
fn unsupported(numbers: &[Number]) -> Option<String> {
    let unsupported = numbers.iter().filter(|number| number.origin == Origin::Unsupported);
    let named: Vec<&str> = unsupported.map(|number| number.text.as_str()).collect();
    (!named.is_empty()).then(|| format!("Not found in the result: {}", named.join(", ")))
}

/// A row that is counted more often than this is counted more than once.
const ONCE: f64 = 1.000_001;

/// Returns the doubts that the data confirm, and those that no count of the data removed.
fn cautions(preview: &Preview, checked: &Checked) -> Vec<String> {
    let factors = preview.factors.iter().copied().chain(std::iter::repeat(None));
    let caution = |(doubt, factor): (&Doubt, Option<f64>)| {
        if let Some(factor) = factor.filter(|factor| *factor > ONCE) {
            return Some(format!("{} (by a factor of {factor:.2} here)", doubt.text));
        }
        (factor.is_none() && doubt.is_reported).then(|| doubt.text.clone())
    };
    checked.doubts.iter().zip(factors).filter_map(caution).collect()
}

fn confidence(stage: &Stage<Turn>, preview: &Preview) -> f64 {
    let state = stage.state();
    let mut confidence = 0.95 - 0.1 * state.attempts.len() as f64;
    if preview.numbers.iter().any(|number| number.origin == Origin::Unsupported) {
        confidence -= 0.3;
    }
    if preview.factors.iter().flatten().any(|factor| *factor > ONCE) {
        confidence -= 0.2;
    }
    if preview.rows.is_empty() {
        confidence -= 0.2;
    }
    confidence.clamp(0.05, 1.0)
}

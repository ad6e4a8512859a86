//! Draws what led to an analyst's answer, panel by panel, below the tree.

use std::fmt::Write as _;

use serde_json::Value;

use crate::cli::output::{brief, shown_value as text};
use perihelion_runtime::Analysis;

const LINE: usize = 200;
/// Rows of a preview that are drawn.
const ROWS: usize = 5;

/// Draws the analyses of a trace; texts of models and tools cannot control the terminal.
pub(super) fn render(analyses: &[Analysis]) -> String {
    let mut out = String::new();
    for analysis in analyses {
        let Analysis { agent, artifact, panels, .. } = analysis;
        let _ = writeln!(out, "\nANALYSIS of {agent} (whole: {artifact})");
        for (name, lines) in drawn(panels) {
            for (number, text) in lines.iter().filter(|line| !line.trim().is_empty()).enumerate() {
                let name = if number == 0 { name } else { "" };
                let _ = writeln!(out, "  {name:<15} {}", brief(text, LINE));
            }
        }
    }
    out
}

fn drawn(panels: &Value) -> Vec<(&'static str, Vec<String>)> {
    let pack = &panels["grounding_pack"];
    let guard = &panels["guard"];
    vec![
        ("intent", vec![pair(&panels["intent"]["intent"], &panels["intent"]["reason"])]),
        ("assumptions", texts(&panels["assumptions"])),
        ("grounding pack", grounding(pack)),
        ("draft", vec![text(&panels["draft"]["sql"]), text(&panels["draft"]["notes"])]),
        ("guard", guarded(guard)),
        ("plan", vec![text(&guard["plan"])]),
        (
            "attempts",
            list(&panels["attempts"], |one| {
                format!(
                    "refused by {}: {} -- {}",
                    text(&one["by"]),
                    text(&one["error"]),
                    text(&one["sql"])
                )
            }),
        ),
        ("triage", list(&panels["triages"], |one| pair(&one["decision"], &one["reason"]))),
        (
            "review",
            list(&panels["reviews"], |one| match one["approved"].as_bool() {
                Some(true) => "approved".to_owned(),
                _ => format!("objected: {}", texts(&one["problems"]).join("; ")),
            }),
        ),
        ("preview", preview(&panels["preview"])),
        ("chart", vec![chart(&panels["interpretation"]["chart"])]),
    ]
}

fn grounding(pack: &Value) -> Vec<String> {
    let mut lines = vec![texts(&pack["suggested_tables"]).join(", ")];
    for part in ["metric_docs", "verified_queries", "relationship_docs"] {
        lines.extend(list(&pack[part], |doc| {
            format!("[{}] {}", text(&doc["id"]), text(&doc["text"]))
        }));
    }
    lines.extend(texts(&pack["values"]));
    lines
}

fn guarded(guard: &Value) -> Vec<String> {
    if guard.is_null() {
        return Vec::new();
    }
    let mut lines = vec![format!("passed, reads {}", texts(&guard["tables"]).join(", "))];
    lines.extend(texts(&guard["trusted"]).into_iter().map(|text| format!("by {text}")));
    lines.extend(texts(&guard["warnings"]));
    lines
}

fn preview(preview: &Value) -> Vec<String> {
    if preview.is_null() {
        return Vec::new();
    }
    let rows = preview["rows"].as_array().map(Vec::as_slice).unwrap_or_default();
    let cut = if preview["truncated"] == true { ", cut" } else { "" };
    let mut lines =
        vec![format!("{} rows{cut}: {}", rows.len(), texts(&preview["columns"]).join(" | "))];
    lines.extend(rows.iter().take(ROWS).map(|row| texts(row).join(" | ")));
    if rows.len() > ROWS {
        lines.push(format!("… {} more", rows.len() - ROWS));
    }
    lines.extend(texts(&preview["freshness"]));
    lines
}

fn chart(chart: &Value) -> String {
    if chart.is_null() {
        return String::new();
    }
    format!("{}: {} by {}", text(&chart["kind"]), text(&chart["y"]), text(&chart["x"]))
}

fn texts(value: &Value) -> Vec<String> {
    list(value, text)
}

fn list(value: &Value, line: impl Fn(&Value) -> String) -> Vec<String> {
    value.as_array().into_iter().flatten().map(line).collect()
}

fn pair(what: &Value, why: &Value) -> String {
    match (text(what), text(why)) {
        (what, why) if why.is_empty() => what,
        (what, why) => format!("{what}: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// S4.10: each panel has its lines, and panels without content are left out.
    #[test]
    fn panels_are_drawn_in_order_and_empty_ones_left_out() {
        let panels = json!({
            "intent": { "intent": "DATA_QA", "reason": "orders" },
            "grounding_pack": { "suggested_tables": ["orders"], "metric_docs": [{ "id": "metric:revenue", "text": "SUM(total)" }] },
            "draft": { "sql": "SELECT 1", "notes": "" },
            "guard": { "tables": ["orders"], "trusted": ["the metric revenue"], "warnings": [], "plan": "SCAN orders" },
            "attempts": [{ "by": "database", "error": "no such column", "sql": "SELECT 2" }],
            "triages": [{ "decision": "RETRY_WITH_PATCH", "reason": "renamed" }],
            "preview": { "columns": ["n"], "rows": [[1], [2]], "truncated": true },
            "interpretation": { "chart": { "kind": "bar", "x": "a", "y": "n" } },
        });
        let analysis = Analysis {
            result: "t".into(),
            agent: "a".into(),
            artifact: "t/analysis.json".into(),
            panels,
        };
        let text = render(&[analysis]);
        let names: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
            .map(|line| line[2..17].trim())
            .collect();
        assert_eq!(
            names,
            [
                "intent",
                "grounding pack",
                "draft",
                "guard",
                "plan",
                "attempts",
                "triage",
                "preview",
                "chart"
            ]
        );
        assert!(text.contains("2 rows, cut: n") && text.contains("bar: n by a"), "{text}");
    }
}

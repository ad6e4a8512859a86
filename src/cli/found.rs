//! Shows the table and the chart of a run: drawn, paged if it is long, saved with its path.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::output;
use perihelion_runtime::RunReport;
use perihelion_settings::config::data_directory;

/// Rows that are shown without a pager.
const SHOWN_ROWS: usize = 30;

/// Shows the tables and charts of agents; a terminal that cannot is no failure.
pub(super) fn show(report: &RunReport) {
    if let Some(table) = &report.data {
        let rows: Vec<Vec<String>> =
            table.rows.iter().map(|row| row.iter().map(output::shown_value).collect()).collect();
        let drawn = output::rows(&table.columns, rows.iter().take(SHOWN_ROWS).cloned().collect());
        let left = rows.len().saturating_sub(SHOWN_ROWS);
        if left == 0 || !page(&output::rows(&table.columns, rows)) {
            output::note(&drawn);
            if left > 0 {
                output::note(&format!(
                    "… and {left} more rows; pass --json --include-data to get all rows"
                ));
            }
        }
        if table.truncated {
            output::note("(the result was truncated)");
        }
    }
    for (at, result) in report.results.iter().enumerate() {
        if let Some(chart) = &result.chart {
            match save(report, at, &chart.svg) {
                Ok(path) => output::note(&format!("chart: {}", path.display())),
                Err(error) => output::warning(&format!("cannot save the chart: {error}")),
            }
        }
    }
}

/// Shows a long text in the user's pager; returns false without one.
fn page(text: &str) -> bool {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return false;
    }
    let pager = std::env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
    let mut words = pager.split_whitespace();
    let Some(program) = words.next() else { return false };
    let started =
        Command::new(program).args(words).env("LESS", "FRSX").stdin(Stdio::piped()).spawn();
    let Ok(mut child) = started else { return false };
    if let Some(mut input) = child.stdin.take() {
        // Anyone who leaves the pager early has seen enough.
        let _ = input.write_all(output::plain(text).as_bytes());
    }
    child.wait().is_ok_and(|status| status.success())
}

/// Saves a chart below the user's data directory, and returns its path.
fn save(report: &RunReport, at: usize, svg: &str) -> std::io::Result<PathBuf> {
    let directory = data_directory().join("charts");
    std::fs::create_dir_all(&directory)?;
    let name = format!("{}-{}-{}.svg", report.thread_id, report.metadata.turn, at + 1);
    let path = directory.join(name);
    std::fs::write(&path, svg)?;
    Ok(path)
}

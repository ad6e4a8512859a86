//! Prints kept lines as Markdown tables.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context;
use serde_json::Value;

/// Prints every table that the file has lines for.
pub fn print(file: &Path) -> anyhow::Result<()> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let lines: Vec<Value> = text
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()
        .with_context(|| format!("not a file of JSON lines: {}", file.display()))?;
    if let Some(machine) = lines.iter().find_map(|line| line["machine"].as_str()) {
        println!("Machine: {machine}\n");
    }
    let commits: BTreeSet<&str> = lines.iter().filter_map(|line| line["commit"].as_str()).collect();
    if !commits.is_empty() {
        println!("Commit: {}\n", commits.into_iter().collect::<Vec<_>>().join(", "));
    }
    star(&medians(&lines, "star", "wall_s"));
    floor(&medians(&lines, "floor", "step_per_insert"));
    beside_writers(&medians(&lines, "crowd", "steps_per_insert"));
    resume(&medians(&lines, "resume", "process_to_state_ms"));
    takeover(&medians(&lines, "takeover", "after_lease_s"));
    ratios(&lines);
    Ok(())
}

/// Returns for each case and engine the run with the median of a figure, and how many runs there were.
fn medians<'a>(lines: &'a [Value], bench: &str, by: &str) -> Vec<(&'a Value, usize)> {
    let mut groups: Vec<(String, Vec<&Value>)> = Vec::new();
    for line in lines.iter().filter(|line| line["bench"] == bench) {
        let key = format!("{}/{}", text(&line["case"]), engine(line));
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(line),
            None => groups.push((key, vec![line])),
        }
    }
    let middle = |(_, mut group): (String, Vec<&'a Value>)| {
        group.sort_by(|a, b| number(&a[by]).total_cmp(&number(&b[by])));
        (group[group.len() / 2], group.len())
    };
    groups.into_iter().map(middle).collect()
}

/// Prints a table with a row for each line; nothing where there is none.
fn table(header: &str, lines: &[(&Value, usize)], row: impl Fn(&Value, usize) -> String) {
    if lines.is_empty() {
        return;
    }
    begin(header);
    for (line, runs) in lines {
        println!("{}", row(line, *runs));
    }
    println!();
}

/// Prints the header of a table and the rule below it.
fn begin(header: &str) {
    println!("{header}");
    println!("|{}", "---|".repeat(header.matches('|').count() - 1));
}

fn star(lines: &[(&Value, usize)]) {
    let header = "| rounds × threads | engine | events | runs | steps/s | first tenth p50 / p99 µs | last tenth p50 / p99 µs | last ÷ first | of means | database bytes | ÷ payload | resident MB | bound | CPU s | fsync µs | load |";
    table(header, lines, |line, runs| {
        let steps = |tenth: &str| {
            let of = |figure: &str| text(&line[format!("{tenth}_{figure}_us")]);
            format!("{} / {}", of("median"), of("p99"))
        };
        let last = |figure: &str| {
            let of = |tenth: &str| number(&line[format!("{tenth}_{figure}_us")]);
            of("last10") / of("first10")
        };
        format!(
            "| {} | {} | {} | {runs} | {:.0} | {} | {} | {:.2} | {:.2} | {} | {} | {} | {} | {} | {} | {} |",
            text(&line["case"]),
            engine(line),
            events(line),
            number(&line["steps_per_s"]),
            steps("first10"),
            steps("last10"),
            last("median"),
            last("mean"),
            text(&line["db_bytes"]),
            text(&line["db_per_payload"]),
            text(&line["max_rss_mb"]),
            text(&line["rss_bound_mb"]),
            text(&line["cpu_s"]),
            text(&line["fsync_probe_us"]),
            load(line),
        )
    });
}

fn floor(lines: &[(&Value, usize)]) {
    let header = "| store | events | runs | row bytes | step p50 / p99 µs | bare insert p50 / p99 µs | step ÷ insert | fsync µs | load |";
    table(header, lines, |line, runs| {
        format!(
            "| {} | {} | {runs} | {} | {} / {} | {} / {} | {} | {} | {} |",
            text(&line["backend"]),
            events(line),
            text(&line["row_bytes_mean"]),
            text(&line["step_median_us"]),
            text(&line["step_p99_us"]),
            text(&line["insert_median_us"]),
            text(&line["insert_p99_us"]),
            text(&line["step_per_insert"]),
            text(&line["fsync_probe_us"]),
            load(line),
        )
    });
}

fn beside_writers(lines: &[(&Value, usize)]) {
    let header = "| store | events | threads | runs | steps/s | bare inserts/s | steps ÷ inserts | least | fsync µs | load |";
    table(header, lines, |line, runs| {
        format!(
            "| {} | {} | {} | {runs} | {} | {} | {} | {} | {} | {} |",
            text(&line["backend"]),
            events(line),
            text(&line["threads"]),
            text(&line["steps_per_s"]),
            text(&line["inserts_per_s"]),
            text(&line["steps_per_insert"]),
            text(&line["steps_per_insert_least"]),
            text(&line["fsync_probe_us"]),
            load(line),
        )
    });
}

fn resume(lines: &[(&Value, usize)]) {
    let header = "| store | engine | stored results | process → state ms | process → next step ms | connect ms | open → state ms | state → step ms | resident MB |";
    table(header, lines, |line, _| {
        format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            text(&line["backend"]),
            engine(line),
            text(&line["stored_results"]),
            text(&line["process_to_state_ms"]),
            text(&line["process_to_step_ms"]),
            text(&line["connect_ms"]),
            text(&line["open_to_state_ms"]),
            text(&line["state_to_step_ms"]),
            text(&line["max_rss_mb"]),
        )
    });
}

fn takeover(lines: &[(&Value, usize)]) {
    let header = "| store | lost threads | others that wait | after the lease, median s | most s | a look, µs | beside those that wait, µs |";
    table(header, lines, |line, _| {
        let figures = [
            "backend",
            "threads",
            "parked",
            "after_lease_s",
            "after_lease_s_most",
            "look_us",
            "look_us_parked",
        ];
        format!("| {} |", figures.map(|figure| text(&line[figure])).join(" | "))
    });
}

/// Prints how many times less, or faster, ours is than each form of the peer.
fn ratios(lines: &[Value]) {
    let star = medians(lines, "star", "wall_s");
    let resume = medians(lines, "resume", "process_to_state_ms");
    if !star.iter().any(|(line, _)| line["engine"] != "perihelion") {
        return;
    }
    begin(
        "| case | beside | steps/s × | last tenth p50 ÷ | database bytes ÷ | resident ÷ | CPU ÷ | process → state ÷ | open → state ÷ |",
    );
    for (theirs, _) in star.iter().chain(&resume) {
        let Some((ours, _)) = star.iter().chain(&resume).find(|(line, _)| {
            line["engine"] == "perihelion"
                && line["case"] == theirs["case"]
                && theirs["engine"] != "perihelion"
        }) else {
            continue;
        };
        let ratio = |figure: &str, upper: &Value, lower: &Value| match (
            upper[figure].as_f64(),
            lower[figure].as_f64(),
        ) {
            (Some(upper), Some(lower)) if lower > 0.0 => format!("{:.1}", upper / lower),
            _ => "–".to_owned(),
        };
        println!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            text(&theirs["case"]),
            engine(theirs),
            ratio("steps_per_s", ours, theirs),
            ratio("last10_median_us", theirs, ours),
            ratio("db_bytes", theirs, ours),
            ratio("max_rss_mb", theirs, ours),
            ratio("cpu_s", theirs, ours),
            ratio("process_to_state_ms", theirs, ours),
            ratio("open_to_state_ms", theirs, ours),
        );
    }
    println!();
}

fn engine(line: &Value) -> String {
    let name = text(&line["engine"]);
    match line["variant"]["channels"].as_str() {
        Some(form) => format!("{name} {} {form}", text(&line["engine_version"])),
        None => name,
    }
}

fn events(line: &Value) -> &'static str {
    match line["publish"].as_bool() {
        Some(true) => "told",
        Some(false) => "none",
        None => "–",
    }
}

fn load(line: &Value) -> String {
    line["load1"].as_f64().map_or("–".to_owned(), |load| format!("{load:.0}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

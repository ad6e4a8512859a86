//! The instruments, as they are documented.

use perihelion::metrics::{DEFINITIONS, Definition, Kind};

/// Returns the name of an instrument at `/metrics`.
pub fn prometheus(one: &Definition) -> String {
    let name = one.name.replace('.', "_");
    match (one.kind, one.unit) {
        (Kind::Counter | Kind::Sum, _) => format!("{name}_total"),
        (_, "s") => format!("{name}_seconds"),
        _ => name,
    }
}

fn row(one: &Definition) -> String {
    let Definition { name, kind, unit, labels, meaning } = *one;
    let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
    let prometheus = prometheus(one);
    let kind = match kind {
        Kind::Counter | Kind::Sum => "counter",
        Kind::Duration | Kind::LongDuration => "histogram",
        Kind::UpDown | Kind::Gauge => "gauge",
    };
    format!("| `{name}` | `{prometheus}` | {kind} | `{unit}` | {} | {meaning} |", labels.join(", "))
}

/// S1.12, X7
#[test]
fn the_table_in_the_documentation_lists_the_metrics() {
    let text = include_str!("../../../docs/reference/metrics.md");
    let is_row = |line: &&str| line.starts_with("| `gen_ai.") || line.starts_with("| `perihelion.");
    let written: Vec<&str> = text.lines().filter(is_row).collect();
    let defined: Vec<String> = DEFINITIONS.iter().map(row).collect();
    assert_eq!(written.join("\n"), defined.join("\n"));
}

#[test]
fn no_label_can_hold_an_id_or_a_persons_words() {
    for one in DEFINITIONS {
        for label in one.labels {
            let last = label.rsplit('.').next().unwrap();
            assert!(!["id", "thread", "run", "session", "user", "key"].contains(&last), "{one:?}");
        }
    }
}

//! `observability/` hangs together: what one file names, another has.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use regex::Regex;
use serde_json::Value;

use super::{read, report, root, walk};

/// Bytes of a picture that a reader waits for gladly.
const MOST_BYTES: u64 = 150 * 1024;

fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&read(&format!("observability/{path}")))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect()
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn found(pattern: &str, text: &str) -> BTreeSet<String> {
    let pattern = Regex::new(pattern).unwrap();
    pattern.captures_iter(text).map(|one| one[1].to_owned()).collect()
}

#[test]
fn every_file_of_observability_can_be_read() {
    let mut paths = Vec::new();
    walk(&root().join("observability"), &mut paths);
    let mut seen = 0;
    for path in paths {
        let text = || std::fs::read_to_string(&path).unwrap();
        let problem = match path.extension().and_then(|end| end.to_str()) {
            Some("yaml" | "yml") => {
                serde_saphyr::from_str::<Value>(&text()).err().map(|e| e.to_string())
            }
            Some("json") => serde_json::from_str::<Value>(&text()).err().map(|e| e.to_string()),
            _ => continue,
        };
        seen += 1;
        assert_eq!(problem, None, "{}", path.display());
    }
    assert!(seen >= 8, "{seen}");
}

/// X7
#[test]
fn references_in_the_compose_file_exist() {
    let compose = yaml("compose.yaml");
    let services = keys(&compose["services"]);
    let volumes = keys(&compose["volumes"]);
    let mut problems = Vec::new();
    for name in &services {
        let service = &compose["services"][*name];
        let image = service["image"].as_str().unwrap_or_default();
        let tag = image.rsplit_once(':').map_or("", |(_, tag)| tag);
        if !tag.contains(|c: char| c.is_ascii_digit()) {
            problems.push(format!("{name}: the image has no version: {image}"));
        }
        if *name != "collector" && service["healthcheck"]["test"].is_null() {
            problems.push(format!("{name}: no health check"));
        }
        for volume in texts(&service["volumes"]) {
            let source = volume.split(':').next().unwrap();
            let is_there = match source.strip_prefix("./") {
                Some(path) => root().join("observability").join(path).exists(),
                None => volumes.contains(source),
            };
            if !is_there {
                problems.push(format!("{name}: there is no {source}"));
            }
        }
        for port in
            texts(&service["ports"]).into_iter().filter(|one| !one.starts_with("127.0.0.1:"))
        {
            problems.push(format!("{name}: open to the network: {port}"));
        }
        for other in keys(&service["depends_on"]).difference(&services) {
            problems.push(format!("{name}: waits for nothing: {other}"));
        }
    }
    report(&problems, "Fix observability/compose.yaml.");
}

#[test]
fn the_collector_and_prometheus_speak_to_services_that_exist() {
    let compose = yaml("compose.yaml");
    let services = keys(&compose["services"]);
    let collector = yaml("collector.yaml");
    let mut problems = Vec::new();
    for (signal, pipeline) in collector["service"]["pipelines"].as_object().unwrap() {
        for kind in ["receivers", "processors", "exporters"] {
            for name in texts(&pipeline[kind]) {
                if collector[kind].get(name).is_none() {
                    problems.push(format!("{signal}: {kind} has no {name}"));
                }
            }
        }
        assert_eq!(texts(&pipeline["processors"])[0], "memory_limiter", "it must come first");
    }
    let mut hosts = found(
        r"(?m)^ +(?:traces_)?endpoint: (?:http://)?([a-z-]+):\d",
        &read("observability/collector.yaml"),
    );
    hosts
        .extend(found(r"(?m)^[^#\n]*targets: \[([a-z-]+):", &read("observability/prometheus.yml")));
    hosts.extend(found(
        r"url: http://([a-z-]+):",
        &read("observability/grafana/provisioning/datasources/sources.yaml"),
    ));
    assert!(hosts.len() >= 4, "{hosts:?}");
    let unknown = hosts.iter().filter(|host| !services.contains(host.as_str()));
    problems.extend(unknown.map(|host| format!("no service is called {host}")));
    report(&problems, "Fix what observability/ names.");
}

#[test]
fn the_written_keys_are_the_required_ones() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("env");
    let write = || {
        let mut command = Command::new("bash");
        command.arg(root().join("observability/keys.sh")).arg(&file).output().unwrap()
    };
    assert!(write().status.success());
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let written = found(r"(?m)^([A-Z_]+)=.+$", &text);
    let mut wanted = found(r"\$\{([A-Z_]+)", &read("observability/compose.yaml"));
    // It has a default, and is there to try another.
    wanted.remove("LANGFUSE_VERSION");
    assert!(wanted.is_subset(&written), "missing: {:?}", wanted.difference(&written));
    assert!(!write().status.success(), "what is there is kept");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn the_guide_shows_pictures_that_are_there_and_small() {
    let guide = read("observability/README.md");
    let pictures = found(r"!\[[^\]]+\]\(([^)]+)\)", &guide);
    assert!(pictures.len() >= 4, "{pictures:?}");
    for picture in pictures {
        let path = root().join("observability").join(&picture);
        let size =
            std::fs::metadata(&path).unwrap_or_else(|error| panic!("{picture}: {error}")).len();
        assert!(size <= MOST_BYTES, "{picture}: {size} bytes");
    }
}

/// S1.12: nothing is drawn or told of a metric that there is not, and every metric is drawn.
#[test]
fn alerts_and_dashboard_ask_for_metrics_and_labels_that_are_documented() {
    let documented = read("docs/reference/metrics.md");
    let metrics = found(r"`((?:gen_ai|perihelion)_[a-z_]+)`", &documented);
    assert!(metrics.len() >= 20, "docs/reference/metrics.md lists the metrics: {metrics:?}");
    let labels = found(r"`([a-z_]+(?:\.[a-z_]+)+)`", &documented);
    let labels: BTreeSet<String> =
        labels.into_iter().map(|label| label.replace('.', "_")).collect();
    let alerts = yaml("alerts.yml");
    let board: Value =
        serde_json::from_str(&read("observability/grafana/dashboards/perihelion.json")).unwrap();
    let mut asked = Vec::new();
    expressions(&alerts, &mut asked);
    expressions(&board, &mut asked);
    assert!(asked.len() >= 40, "{asked:?}");
    let words = found(r"\b((?:gen_ai|perihelion|mcp)_[a-z_]+)", &asked.join("\n"));
    let part = |word: &String| {
        ["_bucket", "_count", "_sum"]
            .iter()
            .find_map(|end| word.strip_suffix(end).map(str::to_owned))
    };
    let metric = |word: &String| match part(word) {
        Some(whole) if metrics.contains(&whole) => whole,
        _ => word.clone(),
    };
    let used: BTreeSet<String> = words.iter().map(metric).collect();
    let unknown = used.iter().filter(|word| !metrics.contains(*word) && !labels.contains(*word));
    let mut problems: Vec<String> = unknown.map(|word| format!("unknown: {word}")).collect();
    problems.extend(metrics.difference(&used).map(|metric| format!("never shown: {metric}")));
    report(&problems, "docs/reference/metrics.md lists the metrics; observability/ shows them.");
}

/// Collects what is asked of Prometheus.
fn expressions(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            out.extend(map.get("expr").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|one| expressions(one, out));
        }
        Value::Array(list) => list.iter().for_each(|one| expressions(one, out)),
        _ => {}
    }
}

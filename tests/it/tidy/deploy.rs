//! `deploy/` hangs together with the program: what an operator relies on exists, and nothing secret stands in a file.

use std::collections::BTreeSet;
use std::process::Command;

use perihelion::config::{Overrides, Settings};
use regex::Regex;
use serde_json::Value;

use super::{program, read, report, root, walk};

/// Variables of the programs beside this one, and of the system.
const OF_OTHERS: [&str; 4] = ["POSTGRES_PASSWORD", "POSTGRES_USER", "POSTGRES_DB", "XDG_DATA_HOME"];

/// What the name of a variable ends with whose value is secret; an address may hold a password.
const SECRET: [&str; 5] = ["_KEY", "_TOKEN", "_PASSWORD", "_KEYS", "DATABASE_URL"];

fn yaml(path: &str) -> Vec<Value> {
    let text = read(path);
    let documents = serde_saphyr::from_multiple(&text);
    documents.unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn units() -> Vec<String> {
    files("deploy/systemd")
}

fn files(below: &str) -> Vec<String> {
    let mut paths = Vec::new();
    walk(&root().join(below), &mut paths);
    let name = |path: std::path::PathBuf| {
        path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/")
    };
    let mut names: Vec<String> = paths.into_iter().map(name).collect();
    names.sort();
    names
}

fn found(pattern: &str, text: &str) -> Vec<String> {
    let pattern = Regex::new(pattern).unwrap();
    pattern.captures_iter(text).map(|one| one[1].to_owned()).collect()
}

fn words(list: &Value) -> Vec<String> {
    let words = list.as_array().into_iter().flatten();
    words.map(|word| word.as_str().unwrap().to_owned()).collect()
}

/// Returns the containers of the manifests: what each starts, its ports and its probes.
fn containers() -> Vec<Value> {
    let manifests = yaml("deploy/kubernetes/perihelion.yaml");
    let deployments = manifests.iter().filter(|one| one["kind"] == "Deployment");
    let containers = deployments.flat_map(|one| {
        one["spec"]["template"]["spec"]["containers"].as_array().cloned().unwrap_or_default()
    });
    containers.collect()
}

fn settings_of_the_image() -> Vec<(String, String)> {
    let dockerfile = read("deploy/Dockerfile");
    let lines = dockerfile.lines().filter_map(|line| line.strip_prefix("ENV "));
    lines.map(|line| line.split_once('=').unwrap()).map(|(n, v)| (n.into(), v.into())).collect()
}

/// Returns every line that the files start the program with, and which file it is.
fn started() -> Vec<(String, Vec<String>)> {
    let mut all = Vec::new();
    let dockerfile = read("deploy/Dockerfile");
    let list = |instruction: &str| -> Vec<String> {
        let line = dockerfile.lines().find_map(|line| line.strip_prefix(instruction)).unwrap();
        serde_json::from_str(line).unwrap()
    };
    assert_eq!(list("ENTRYPOINT "), ["perihelion"]);
    all.push(("deploy/Dockerfile".to_owned(), list("CMD ")));
    let compose = yaml("deploy/compose.yaml").remove(0);
    for (name, service) in compose["services"].as_object().unwrap() {
        if service["image"] == "perihelion" {
            all.push((format!("deploy/compose.yaml, {name}"), words(&service["command"])));
        }
    }
    for container in containers() {
        all.push(("deploy/kubernetes".to_owned(), words(&container["args"])));
    }
    for unit in units() {
        for line in found(r"(?m)^ExecStart=/usr/local/bin/perihelion (.*)$", &read(&unit)) {
            all.push((unit.clone(), line.split(' ').map(str::to_owned).collect()));
        }
    }
    all
}

/// Returns the variables that the files set or pass on.
fn variables() -> BTreeSet<String> {
    let mut names: BTreeSet<String> = settings_of_the_image().into_iter().map(|(n, _)| n).collect();
    let compose = yaml("deploy/compose.yaml").remove(0);
    for service in compose["services"].as_object().unwrap().values() {
        names.extend(
            service["environment"].as_object().into_iter().flatten().map(|(n, _)| n.clone()),
        );
    }
    names.extend(found(r"(?m)^([A-Z_]+)=", &read("deploy/.env.example")));
    names.extend(found(r"--from-literal=([A-Z_]+)=", &read("deploy/kubernetes/perihelion.yaml")));
    for unit in units() {
        names.extend(found(r"(?m)^Environment=([A-Z_]+)=", &read(&unit)));
    }
    names
}

#[test]
fn every_command_line_in_the_manifests_is_valid() {
    let started = started();
    assert!(started.len() >= 7, "{started:?}");
    let mut problems = Vec::new();
    for (place, line) in started {
        let [command, rest @ ..] = line.as_slice() else { panic!("{place} starts nothing") };
        let mut help = Command::new(env!("CARGO_BIN_EXE_perihelion"));
        let help = help.args([command, "--help"]).output().unwrap();
        let text = String::from_utf8(help.stdout).unwrap();
        if !help.status.success() {
            problems.push(format!("{place}: there is no command {command}"));
        }
        let options = rest.iter().filter(|word| word.starts_with("--"));
        for option in options.filter(|option| !has_word(&text, option)) {
            problems.push(format!("{place}: {command} has no option {option}"));
        }
    }
    report(&problems, "deploy/ starts the program as `perihelion COMMAND --help` says");
}

/// Tells whether a help text has an option, and not only a longer one.
fn has_word(text: &str, option: &str) -> bool {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).any(|word| word == option)
}

#[test]
fn every_variable_is_known_to_the_program() {
    let variables = variables();
    assert!(variables.contains("DATABASE_URL") && variables.contains("PERIHELION_SERVE_ADDR"));
    let sources = program();
    let is_read = |name: &str| {
        let quoted = format!("\"{name}\"");
        sources.iter().any(|source| source.code().contains(&quoted))
    };
    let of_others = |name: &&String| !OF_OTHERS.contains(&name.as_str());
    let unread = variables.iter().filter(of_others).filter(|name| !is_read(name));
    let unread: Vec<String> = unread.map(|name| format!("{name} is read nowhere")).collect();
    report(&unread, "deploy/ sets variables that the program reads");
    // The program itself refuses a variable that begins with its name and is none of its own.
    let home = tempfile::tempdir().unwrap();
    let mut list = Command::new(env!("CARGO_BIN_EXE_perihelion"));
    list.args(["threads", "list", "--database", "memory:"]).current_dir(home.path());
    for name in variables.iter().filter(|name| name.starts_with("PERIHELION_")) {
        let value = if name.ends_with("_ADDR") {
            "0.0.0.0:2024"
        } else {
            "0123456789abcdef0123456789abcdef"
        };
        list.env(name, value);
    }
    let listed = list.output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
}

#[test]
fn the_port_is_the_same_in_every_file() {
    let settings = settings_of_the_image();
    let (_, addr) = settings.iter().find(|(name, _)| name == "PERIHELION_SERVE_ADDR").unwrap();
    let port = addr.rsplit_once(':').unwrap().1;
    assert_eq!(found(r"(?m)^EXPOSE (\d+)$", &read("deploy/Dockerfile")), [port]);
    let compose = yaml("deploy/compose.yaml").remove(0);
    for mapping in words(&compose["services"]["serve"]["ports"]) {
        assert!(mapping.ends_with(&format!(":{port}")), "{mapping}");
        assert!(mapping.starts_with("127.0.0.1:"), "nothing stands open by itself: {mapping}");
    }
    for container in containers() {
        let args = words(&container["args"]);
        let metrics = args.iter().skip_while(|arg| *arg != "--metrics").nth(1);
        let listens = metrics.map_or(port, |addr| addr.rsplit_once(':').unwrap().1);
        let ports = container["ports"].as_array().unwrap();
        let numbers: Vec<String> =
            ports.iter().map(|one| one["containerPort"].to_string()).collect();
        assert_eq!(numbers, [listens], "{args:?}");
        let names: Vec<&Value> = ports.iter().map(|one| &one["name"]).collect();
        for probe in ["livenessProbe", "readinessProbe"] {
            let asked = &container[probe]["httpGet"]["port"];
            assert!(asked.is_null() || names.contains(&asked), "{args:?} {probe}: {asked}");
        }
        assert!(!container["livenessProbe"].is_null(), "{args:?}");
    }
}

#[test]
fn secrets_come_from_secret_stores() {
    let is_secret = |name: &str| SECRET.iter().any(|end| name.ends_with(end));
    let mut problems = Vec::new();
    for (name, _) in settings_of_the_image() {
        if is_secret(&name) {
            problems.push(format!("deploy/Dockerfile: {name} stands in the image"));
        }
    }
    let compose = yaml("deploy/compose.yaml").remove(0);
    let examples = read("deploy/.env.example");
    for (service, its) in compose["services"].as_object().unwrap() {
        for (name, value) in its["environment"].as_object().into_iter().flatten() {
            let value = value.as_str().unwrap_or_default();
            if is_secret(name) && !value.contains("${") {
                problems.push(format!("deploy/compose.yaml, {service}: {name} is no reference"));
            }
        }
    }
    let given: BTreeSet<String> = found(r"(?m)^([A-Z_]+)=", &examples).into_iter().collect();
    let asked: BTreeSet<String> =
        found(r"\$\{([A-Z_]+)", &read("deploy/compose.yaml")).into_iter().collect();
    assert_eq!(given, asked, "deploy/.env.example has what compose.yaml asks for");
    for line in examples.lines().filter(|line| line.contains('=') && !line.starts_with('#')) {
        if !line.ends_with('=') {
            problems.push(format!("deploy/.env.example: a value is given: {line}"));
        }
    }
    for container in containers() {
        let from = container["envFrom"].as_array().into_iter().flatten();
        if !from.clone().any(|one| one["secretRef"]["name"].is_string()) {
            problems.push(format!("deploy/kubernetes: no secret: {}", container["args"]));
        }
        for one in container["env"].as_array().into_iter().flatten() {
            let name = one["name"].as_str().unwrap_or_default();
            if is_secret(name) && one["valueFrom"]["secretKeyRef"].is_null() {
                problems.push(format!("deploy/kubernetes: {name} is no reference"));
            }
        }
    }
    for unit in units() {
        let text = read(&unit);
        for name in found(r"(?m)^Environment=([A-Z_]+)=", &text).iter().filter(|n| is_secret(n)) {
            problems.push(format!("{unit}: {name} stands in the unit, which anyone may read"));
        }
        if found(r"(?m)^EnvironmentFile=-?(/etc/perihelion/\S+)$", &text).is_empty() {
            problems.push(format!("{unit}: there is no file for secrets"));
        }
    }
    report(&problems, "a secret is named in deploy/, and kept elsewhere");
}

/// Returns how many seconds a container listens after nobody is led to it any more, before it is asked to end.
fn pre_stop_seconds(container: &Value) -> f64 {
    container["lifecycle"]["preStop"]["sleep"]["seconds"].as_f64().unwrap_or_default()
}

#[test]
fn a_server_listens_until_no_traffic_is_routed_to_it() {
    let led_to = |container: &&Value| !container["readinessProbe"].is_null();
    let containers = containers();
    let servers: Vec<&Value> = containers.iter().filter(led_to).collect();
    assert!(!servers.is_empty());
    for container in servers {
        assert!(pre_stop_seconds(container) >= 5.0, "{}", container["args"]);
    }
}

#[test]
fn a_process_has_more_time_to_end_than_it_takes() {
    let settings = Settings::load(Overrides::default(), None, &|_| None).unwrap();
    let longest = containers().iter().map(pre_stop_seconds).fold(0.0, f64::max);
    let drain = settings.serve.drain_sec + longest;
    for (place, seconds) in times() {
        assert!(seconds > drain, "{place} kills after {seconds} s, and it takes {drain} s");
    }
}

fn times() -> Vec<(String, f64)> {
    let mut all = Vec::new();
    let compose = yaml("deploy/compose.yaml").remove(0);
    for (name, service) in compose["services"].as_object().unwrap() {
        if service["image"] == "perihelion" {
            let time = service["stop_grace_period"].as_str().unwrap().trim_end_matches('s');
            all.push((format!("compose.yaml, {name}"), time.parse().unwrap()));
        }
    }
    for manifest in yaml("deploy/kubernetes/perihelion.yaml") {
        if manifest["kind"] == "Deployment" {
            let time = &manifest["spec"]["template"]["spec"]["terminationGracePeriodSeconds"];
            all.push((manifest["metadata"]["name"].to_string(), time.as_f64().unwrap()));
        }
    }
    for unit in units() {
        let time = found(r"(?m)^TimeoutStopSec=(\d+)$", &read(&unit)).remove(0);
        all.push((unit, time.parse().unwrap()));
    }
    all
}

#[test]
fn the_units_are_valid_for_systemd() {
    let units = units();
    assert_eq!(units.len(), 2, "{units:?}");
    let place = tempfile::tempdir().unwrap();
    // What is verified is the unit: the program that it starts is not installed here, so another one stands for it.
    let stands_for = |text: String| text.replace("/usr/local/bin/perihelion", "/bin/true");
    for unit in units {
        let name = unit.rsplit('/').next().unwrap().replace('@', "@1");
        let path = place.path().join(name);
        std::fs::write(&path, stands_for(read(&unit))).unwrap();
        let verified = match Command::new("systemd-analyze").arg("verify").arg(&path).output() {
            Ok(verified) => verified,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let why = "units are not verified: systemd-analyze is not installed";
                assert!(std::env::var_os("CI").is_none(), "{why}");
                eprintln!("{why}");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let printed = String::from_utf8_lossy(&verified.stderr);
        let about_it: Vec<&str> =
            printed.lines().filter(|line| line.contains("perihelion")).collect();
        assert!(about_it.is_empty(), "{unit}: {printed}");
    }
}

//! Runs all cases, each in a process of its own, and keeps their lines.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::machine;
use crate::options::{Backend, Options};

/// The peer's forms: its documented one, and the one that stores changes only.
const PEER_FORMS: [&str; 2] = ["plain", "delta"];

const BACKENDS: [Backend; 3] = [Backend::Memory, Backend::Sqlite, Backend::Postgres];

/// Rounds of the stored thread that fresh processes open.
const STORED: usize = 1000;

/// One line to be measured, `runs` times.
struct Case {
    name: String,
    /// How to make the line: program arguments of ours, of the peer's runner otherwise.
    arguments: Vec<String>,
    peer: Option<&'static str>,
    runs: usize,
}

impl Case {
    fn star(backend: Backend, rounds: usize, threads: usize, runs: usize) -> Self {
        let name = format!("{}-{rounds}x{threads}", backend.name());
        let rounds = rounds.to_string();
        let threads = threads.to_string();
        let arguments = ["--backend", backend.name(), "--rounds", &rounds, "--threads", &threads];
        Self { name, arguments: arguments.map(str::to_owned).into(), peer: None, runs }
    }

    fn of_mode(backend: Backend, mode: &str, rounds: usize, runs: usize) -> Self {
        let rounds = rounds.to_string();
        let arguments = ["--bench", mode, "--backend", backend.name(), "--rounds", &rounds];
        let name = format!("{mode}-{}", backend.name());
        Self { name, arguments: arguments.map(str::to_owned).into(), peer: None, runs }
    }

    fn beside_writers(threads: usize, runs: usize) -> Self {
        let mut case = Self::of_mode(Backend::Postgres, "crowd", 100, runs);
        case.arguments.extend(["--threads".to_owned(), threads.to_string()]);
        case
    }

    /// Returns the same case with runs that tell nobody of their events.
    fn without_events(mut self) -> Self {
        self.name.push_str("-silent");
        self.arguments.extend(["--publish", "off"].map(str::to_owned));
        self
    }

    /// Returns the same case for the peer.
    fn for_peer(&self, form: &'static str) -> Self {
        let mut arguments = self.arguments.clone();
        arguments.extend(["--channels".to_owned(), form.to_owned()]);
        Self { name: self.name.clone(), arguments, peer: Some(form), runs: self.runs }
    }

    fn backend(&self) -> Option<&str> {
        let at = self.arguments.iter().position(|argument| argument == "--backend")?;
        self.arguments.get(at + 1).map(String::as_str)
    }
}

/// Returns our own cases.
fn own_cases(runs: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for backend in BACKENDS {
        for rounds in [10, 100, 1000, 10_000] {
            for threads in [1, 32] {
                // The largest case writes 0.8 GB of texts: once is enough.
                let runs = if rounds * threads > 100_000 { 1 } else { runs };
                cases.push(Case::star(backend, rounds, threads, runs));
            }
        }
        if backend != Backend::Memory {
            cases.push(Case::of_mode(backend, "floor", STORED, runs));
            cases.push(Case::of_mode(backend, "resume", STORED + 100, 1));
        }
    }
    for backend in [Backend::Sqlite, Backend::Postgres] {
        cases.push(Case::of_mode(backend, "floor", STORED, runs).without_events());
    }
    cases.push(Case::beside_writers(32, runs));
    cases.push(Case::beside_writers(32, runs).without_events());
    cases.push(Case::of_mode(Backend::Postgres, "takeover", STORED, 1));
    cases
}

/// Returns the cases that the peer can run in reasonable time, each beside ours.
fn peer_cases(runs: usize) -> Vec<Case> {
    let mut shared = Vec::new();
    for backend in BACKENDS {
        shared.extend([10, 100, 1000].map(|rounds| Case::star(backend, rounds, 1, runs)));
        if backend != Backend::Memory {
            shared.push(Case::of_mode(backend, "resume", STORED + 100, 1));
        }
    }
    shared.push(Case::star(Backend::Postgres, 20, 32, runs));
    let mut cases = Vec::new();
    for case in shared {
        let peers = PEER_FORMS.map(|form| case.for_peer(form));
        cases.push(case);
        cases.extend(peers);
    }
    cases
}

/// Runs the cases and appends their lines to the file, which is begun again.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let file = options.file()?;
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = File::create(file)
        .and_then(|_| OpenOptions::new().append(true).open(file))
        .with_context(|| format!("cannot write {}", file.display()))?;
    let cases = match &options.peer {
        None => own_cases(options.runs),
        Some(_) => peer_cases(options.runs),
    };
    let mut failed = Vec::new();
    for case in cases {
        if options.only.as_ref().is_some_and(|only| !case.name.contains(only.as_str())) {
            continue;
        }
        if case.backend() == Some("postgres") && options.dsn.is_none() {
            eprintln!("{}: left out, no server is named (--dsn or TEST_DATABASE_URL)", case.name);
            continue;
        }
        for run in 0..case.runs {
            // A case that fails must not hide the others; its line is missing from the tables.
            match measure(options, &case) {
                Ok(line) => keep(&mut file, &case, run, line)?,
                Err(error) => {
                    eprintln!("{} run {run}: {error:#}", case.name);
                    failed.push(format!("{} run {run}", case.name));
                }
            }
        }
    }
    anyhow::ensure!(failed.is_empty(), "these cases failed: {}", failed.join(", "));
    Ok(())
}

fn measure(options: &Options, case: &Case) -> anyhow::Result<Value> {
    let is_resume = case.name.starts_with("resume");
    let folder = tempfile::tempdir_in(machine::scratch())?;
    let mut arguments = case.arguments.clone();
    if is_resume {
        let file = folder.path().join("stored.db");
        arguments.extend(["--sqlite".to_owned(), file.display().to_string()]);
    }
    match (&options.peer, case.peer) {
        (Some(python), Some(_)) => {
            let mut command = Command::new(python);
            command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers/langgraph_star.py"));
            run_line(command.args(&arguments), options)
        }
        _ => {
            let ours = || std::env::current_exe().map(Command::new);
            if is_resume {
                let stored = STORED.to_string();
                let mut first = ours()?;
                // The same arguments, but the mode.
                first.args(&arguments[2..]).args(["--stop-after", &stored, "--keep"]);
                run_line(&mut first, options)?;
            }
            run_line(ours()?.args(&arguments), options)
        }
    }
}

/// Runs a program and reads the JSON line that it prints last.
fn run_line(command: &mut Command, options: &Options) -> anyhow::Result<Value> {
    if let Some(dsn) = &options.dsn {
        command.env("TEST_DATABASE_URL", dsn);
    }
    let output = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "it ended with {}", output.status);
    let text = String::from_utf8(output.stdout)?;
    Ok(serde_json::from_str(text.lines().last().context("it printed nothing")?)?)
}

fn keep(file: &mut File, case: &Case, run: usize, mut line: Value) -> anyhow::Result<()> {
    let engine = line["engine"].as_str().unwrap_or_default().to_owned();
    let reported = match line["steps_per_s"].as_f64() {
        Some(speed) => format!("{speed} steps/s"),
        None => "done".to_owned(),
    };
    eprintln!("{} run {run}, {engine} {}: {reported}", case.name, case.peer.unwrap_or_default());
    line["case"] = case.name.as_str().into();
    line["run"] = run.into();
    // The peer is the one that this commit pins.
    if line["commit"].is_null() {
        line["commit"] = machine::commit().into();
    }
    writeln!(file, "{line}")?;
    Ok(())
}

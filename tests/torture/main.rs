//! The torture harness: kills, stops and cuts off real processes, and checks what they leave behind.
//!
//! Enter at [`run`]. [`storm`] keeps processes ([`hand`]) running on one database; each has a [`plan`] drawn
//! from the seed: a failpoint at which it kills or stops itself, a time at which it is killed or stopped, a
//! clock that is off. It notes each turn that it has at a thread ([`listening`], [`turns`]). [`cluster`], [`proxy`] and [`disk`] trouble the database. The threads do [`jobs`] whose
//! tool calls leave lines in the log of the [`receiver`]. At the end the [`oracle`] compares the [`logs`], which
//! lie outside the database, with the database.
//!
//! `torture [OPTIONS]` is one run, `torture short` the one that `tests/all.sh` makes, `torture merge FILE…`
//! adds runs up. After a run the oracle is shown copies of its database and logs that were tampered with
//! ([`sabotage`]), and must object to each. A target of its own, because the processes are this very executable.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test: a panic fails the run, and it says what it does"
)]

mod calls;
mod cluster;
mod collector;
mod copies;
mod disk;
mod hand;
mod jobs;
mod listening;
mod logs;
mod models;
mod options;
mod oracle;
mod place;
mod plan;
mod points;
mod random;
mod receiver;
mod sabotage;
mod storm;
mod summary;
mod traces;
mod turns;

use perihelion_test_database::proxy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser as _;

use options::Options;
use oracle::Evidence;
use storm::Storm;
use summary::Summary;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("hand") => hand::main(&args[1..]),
        Some("merge") => {
            let paths: Vec<PathBuf> = args[1..].iter().map(PathBuf::from).collect();
            conclude(&summary::merge(&paths))
        }
        Some("short") => short(),
        _ => run(Options::parse(), true),
    }
}

/// X2: the runs that are part of every test, one on each database, some seconds of storm.
fn short() -> ExitCode {
    let common = "torture --crashes 2 --cut-one-of 200 --least 1 --seconds 240";
    for more in
        ["--database postgres --kills 60 --zombies 6", "--database sqlite --kills 30 --zombies 4"]
    {
        let options = format!("{common} {more}");
        let code = run(Options::parse_from(options.split(' ')), false);
        if code != ExitCode::SUCCESS {
            return code;
        }
    }
    ExitCode::SUCCESS
}

/// Runs, judges and prints; the figures of a run that `counts` are kept for the table.
fn run(options: Options, counts: bool) -> ExitCode {
    let drawn = || uuid::Uuid::new_v4().as_u64_pair().0 % 1_000_000;
    let seed = options.seed.unwrap_or_else(drawn);
    let name = format!("{}-{seed}", options.database.name());
    eprintln!(
        "torture {name}: the same again with --seed {seed} and the same options: {options:?}"
    );
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("torture");
    let directory = home.join(&name);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let result = runtime.block_on(storm_and_judge(options, seed, directory.clone()));
    match result {
        Err(problem) => {
            eprintln!(
                "torture {name} failed: {problem}\nEverything is kept in {}",
                directory.display()
            );
            ExitCode::FAILURE
        }
        Ok(summary) => {
            if counts {
                summary.save(&home.join(format!("{name}.json")));
            }
            let code = conclude(&summary);
            if code == ExitCode::SUCCESS {
                std::fs::remove_dir_all(&directory).unwrap()
            } else {
                eprintln!("Everything is kept in {}", directory.display())
            }
            code
        }
    }
}

async fn storm_and_judge(
    options: Options,
    seed: u64,
    directory: PathBuf,
) -> Result<Summary, String> {
    let storm = Storm::prepare(options, seed, directory).await;
    let places: Vec<_> = (0..storm.options.hands())
        .map(|place| tokio::spawn(place::keep(std::sync::Arc::clone(&storm), place)))
        .collect();
    let weathered = storm.weather().await;
    if weathered.is_ok() {
        for place in places {
            place.await.unwrap();
        }
        storm.stopped.close();
        storm.stopped.wait().await;
    }
    let judged = match weathered {
        Err(problem) => Err(problem),
        Ok(jobs) => {
            eprintln!("judging {jobs} threads");
            let store = storm.store.as_ref();
            traces::deliver_the_rest(store, &storm.directory, &storm.setup()).await;
            let received = storm.collector.received();
            let directory = &storm.directory;
            let database = storm.options.database;
            let evidence = Evidence { store, database, directory, received: &received, seed, jobs };
            let findings = oracle::judge(evidence).await;
            if findings.violations.is_empty() {
                sabotage::see_through_all(evidence, &storm.direct).await;
            }
            Ok(Summary::of(&storm, findings))
        }
    };
    storm.end().await;
    judged
}

/// Prints the figures, and what is wrong with them.
fn conclude(summary: &Summary) -> ExitCode {
    println!("{}", summary.table());
    let problems = summary.problems();
    if problems.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("The run failed:\n  {}", problems.join("\n  "));
    ExitCode::FAILURE
}

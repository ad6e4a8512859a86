//! Real MCP servers from npm and PyPI, each driven through the star by the real binary.
//!
//! Enter at [`main`]. [`catalogue`] says how each server is started and what is asked of it; [`drive`] lets a scripted
//! model choose the agent and call the tools, and checks what came back; [`left`] holds that no process of it
//! is left; [`report`] keeps the table. [`dialogue`] asks the analyst the same on every server that runs SQL. [`adversary`] is a server that does not keep what it promises. A target of its own, because
//! the servers have to be installed first: `make test-servers`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test: a panic fails it, and it says what it finds"
)]

mod adversary;
mod catalogue;
mod dialogue;
mod drive;
mod left;
mod report;
#[expect(dead_code, reason = "shared with the tests of the analyst, which use more of it")]
#[path = "../analyst/script.rs"]
mod script;
#[expect(dead_code, reason = "shared with the tests of the command line, which use more of it")]
#[path = "../it/cli/world.rs"]
mod world;

use std::path::Path;
use std::process::ExitCode;

use catalogue::{CASES, Place};
use report::Report;

#[tokio::main]
async fn main() -> ExitCode {
    let chosen: Vec<String> =
        std::env::args().skip(1).filter(|one| !one.starts_with('-')).collect();
    let servers = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("servers");
    left::adopt_orphans();
    let mut report = Report::default();
    // One of each, for a run with all of them.
    let mut places = Vec::new();
    let mut together = Vec::new();
    for (name, server, make) in CASES {
        if !chosen.is_empty() && !chosen.iter().any(|one| one == server) {
            continue;
        }
        let place = Place::new(server, &servers);
        match make(&place) {
            Err(missing) => report.leave_out(name, &place.package(), missing),
            Ok(case) if name == "postgres, writing" => {
                report.add(name, &place.package(), adversary::drive(case)).await;
            }
            Ok(case) if name.ends_with(", analyst") => {
                match server {
                    "postgres" => dialogue::postgres().await,
                    "motherduck" => dialogue::duckdb(&place),
                    _ => dialogue::sqlite(&place).await,
                }
                report.add(name, &place.package(), dialogue::drive(case)).await;
            }
            Ok(case) => report.add(name, &place.package(), drive::drive(vec![case])).await,
        }
        if name == server {
            let place = Place::new(server, &servers);
            together.extend(make(&place));
            places.push(place);
        }
    }
    let package = format!("all {}", together.len());
    report.add("together", &package, drive::drive(together)).await;
    report.conclude(places.len())
}

//! Real MCP servers from npm and PyPI, each driven through the star by the real binary.
//!
//! Enter at [`main`]. [`catalogue`] says how each server is started and what is asked of it; [`drive`] lets a scripted
//! model choose the agent and call the tools, and checks what came back; [`left`] holds that no process of it
//! is left. [`adversary`] is a server that does not keep what it promises. A target of its own, because
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
mod drive;
mod left;
#[expect(dead_code, reason = "shared with the tests of the command line, which use more of it")]
#[path = "../it/cli/world.rs"]
mod world;

use std::path::Path;
use std::process::ExitCode;

use catalogue::{CASES, Place};

/// Servers that must have been driven before one that needs a browser may be left out.
const ENOUGH: usize = 10;

#[tokio::main]
async fn main() -> ExitCode {
    let chosen: Vec<String> =
        std::env::args().skip(1).filter(|one| !one.starts_with('-')).collect();
    let servers = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("servers");
    left::adopt_orphans();
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(["server", "package", "protocol", "tools", "scanned in", "result"]);
    let (mut good, mut bad) = (0, 0);
    for (name, make) in CASES {
        if !chosen.is_empty() && !chosen.iter().any(|one| one == name) {
            continue;
        }
        eprintln!("{name} …");
        let place = Place::new(name, &servers).await;
        let Some(work) = make(&place) else {
            bad += usize::from(good < ENOUGH);
            table.add_row([name, &place.package(), "", "", "", "left out: no browser was found"]);
            continue;
        };
        // A panic is this server's alone: the others are still driven.
        let outcome = tokio::spawn(work).await.map_err(|error| error.to_string());
        let row = match left::nobody().and(outcome) {
            Ok(seen) => {
                good += 1;
                let scanned = format!("{:.1} s", seen.scanned.as_secs_f64());
                [seen.protocol, seen.tools.len().to_string(), scanned, seen.result]
            }
            Err(problem) => {
                bad += 1;
                eprintln!("{name}: {problem}");
                [String::new(), String::new(), String::new(), "FAILED, see above".to_owned()]
            }
        };
        let [protocol, tools, scanned, result] = row;
        table.add_row([name.to_owned(), place.package(), protocol, tools, scanned, result]);
    }
    println!("{table}\n{good} good, {bad} failed");
    if bad == 0 && good > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

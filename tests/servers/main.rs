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

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use catalogue::{CASES, Place};

/// Servers that must have been driven before a case that lacks something may be left out.
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
    let (mut driven, mut bad) = (BTreeSet::new(), 0);
    for (name, server, make) in CASES {
        if !chosen.is_empty() && !chosen.iter().any(|one| one == server) {
            continue;
        }
        eprintln!("{name} …");
        let place = Place::new(server, &servers);
        let work = match make(&place) {
            Ok(work) => work,
            Err(missing) => {
                bad += usize::from(driven.len() < ENOUGH);
                table.add_row([
                    name,
                    &place.package(),
                    "",
                    "",
                    "",
                    &format!("left out: {missing}"),
                ]);
                continue;
            }
        };
        // A panic is this server's alone: the others are still driven.
        let outcome = tokio::spawn(work).await.map_err(|error| error.to_string());
        let row = match left::nobody().and(outcome) {
            Ok(seen) => {
                driven.insert(server);
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
    println!("{table}\n{} servers driven, {bad} cases failed", driven.len());
    if bad == 0 && !driven.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

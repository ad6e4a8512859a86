//! The star benchmark: what the engine and its stores cost when the nodes cost nothing.
//!
//! Enter at [`options::Options`]; `docs/project/performance.md` says what is measured and what the goals are.
//! Invariant: a figure is printed only after the work was checked to have been done. Deliberately
//! absent: models, tools and any network but the database's.
#![expect(clippy::print_stdout, reason = "figures are printed as JSON lines")]
#![expect(clippy::print_stderr, reason = "progress goes beside the figures")]

mod cases;
mod databases;
mod figures;
mod floor;
mod graph;
mod machine;
mod options;
mod resume;
mod star;
mod table;
mod takeover;
mod texts;
mod writers;

use clap::Parser;
use options::{Mode, Options};

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match options.mode()? {
        // On the runtime's own threads: there a task is woken by the thread that reads the socket.
        Mode::Star => runtime.block_on(runtime.spawn(star::measure(options)))?,
        Mode::Floor => runtime.block_on(runtime.spawn(floor::measure(options)))?,
        Mode::Writers => runtime.block_on(runtime.spawn(writers::measure(options)))?,
        Mode::Takeover => runtime.block_on(runtime.spawn(takeover::measure(options)))?,
        Mode::Resume if options.child => runtime.block_on(runtime.spawn(resume::child(options)))?,
        Mode::Resume => resume::measure(&options),
        Mode::Matrix => cases::run(&options),
        Mode::Table => table::print(options.file()?),
    }
}

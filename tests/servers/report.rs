//! The table of what was driven, and the verdict.

use std::process::ExitCode;

use comfy_table::{Table, presets};

use super::drive::Seen;
use super::left;

/// Cases that must be good before one that lacks something may be left out.
const ENOUGH: usize = 10;

pub struct Report {
    table: Table,
    good: usize,
    bad: usize,
}

impl Default for Report {
    fn default() -> Self {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["server", "package", "protocol", "tools", "scanned in", "called"]);
        Self { table, good: 0, bad: 0 }
    }
}

impl Report {
    /// Does some work, looks for processes that it left, and notes both.
    pub async fn add(
        &mut self,
        name: &str,
        package: &str,
        work: impl Future<Output = Seen> + Send + 'static,
    ) {
        eprintln!("{name} …");
        // A panic is this server's alone: the others are still driven.
        let outcome = tokio::spawn(work).await.map_err(|error| error.to_string());
        match left::nobody().and(outcome) {
            Ok(seen) => {
                self.good += 1;
                let protocols = seen.protocols.into_iter().collect::<Vec<_>>().join(", ");
                let tools = seen.tools.values().map(Vec::len).sum::<usize>().to_string();
                let scanned = format!("{:.1} s", seen.scanned.as_secs_f64());
                let called = seen.result.join(", ");
                self.table.add_row([name, package, &protocols, &tools, &scanned, &called]);
            }
            Err(problem) => {
                self.bad += 1;
                eprintln!("{name}: {problem}");
                self.table.add_row([name, package, "", "", "", "FAILED, see above"]);
            }
        }
    }

    /// Notes that nothing could be done, which is a failure where too little was.
    pub fn leave_out(&mut self, name: &str, package: &str, missing: &str) {
        self.bad += usize::from(self.good < ENOUGH);
        self.table.add_row([name, package, "", "", "", &format!("left out: {missing}")]);
    }

    pub fn conclude(self, servers: usize) -> ExitCode {
        let Self { table, good, bad } = self;
        println!("{table}\n{servers} servers, {good} cases good, {bad} failed");
        if bad == 0 && good > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

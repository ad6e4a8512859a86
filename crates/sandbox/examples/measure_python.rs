//! Measures how long runs take, how much memory they need, and how far they overshoot their time limit: `make bench-python`.
//!
//! Each tier that this build and machine have is measured in a process of its own, which holds nothing else.
#![expect(clippy::print_stdout, reason = "its report")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]
#![expect(clippy::unwrap_used, reason = "it stops at what it does not expect")]

use std::process::Command;
use std::time::{Duration, Instant};

use perihelion_sandbox::{FaultType, Limits, Program, Python, Tier};
use serde_json::{Value, json};

/// What agents have computed: each as a program on the same table.
const PROGRAMS: [&str; 10] = [
    "sum(row['amount'] for row in rows)",
    "import statistics\nstatistics.quantiles([row['amount'] for row in rows], n=20)",
    "from collections import Counter\nCounter(row['region'] for row in rows).most_common(3)",
    "from decimal import Decimal\nsum((Decimal(str(row['amount'])) for row in rows), Decimal(0))",
    "import datetime\nstart = datetime.date(2024, 1, 1)\n[str(start + datetime.timedelta(days=row['n'])) for row in rows]",
    "import re\nsum(1 for row in rows if re.match(r'no.*h', row['region']))",
    "import json\nlen(json.dumps(sorted(rows, key=lambda row: row['amount'])))",
    "import csv\nwith open('rows.csv', 'w', newline='') as file:\n    writer = csv.DictWriter(file, ['n', 'region', 'amount'])\n    writer.writeheader()\n    writer.writerows(rows)",
    "import itertools\ntable = [{'region': key, 'total': sum(row['amount'] for row in group)} for key, group in itertools.groupby(sorted(rows, key=lambda row: row['region']), lambda row: row['region'])]",
    "primes = [n for n in range(2, 2000) if all(n % d for d in range(2, int(n ** 0.5) + 1))]\nlen(primes)",
];
/// How often each of them runs.
const RUNS: usize = 50;

/// What does not end by itself, in as many ways as there are to be stopped.
const ENDLESS: [&str; 9] = [
    "while True: pass",
    "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "import time\ntime.sleep(10 ** 6)",
    "10 ** (10 ** 9)",
    "import re\nre.match(r'(a|aa)+$', 'a' * 200 + 'b')",
    "while True: print('x' * 10 ** 6)",
    "x = {}\nn = 0\nwhile True:\n    n += 1\n    x[n % 100000] = str(n) * 10",
    "sum(range(10 ** 12))",
    "sorted(range(10 ** 7, 0, -1)) and [sorted(range(10 ** 6)) for _ in range(10 ** 6)]",
];
/// The limit that they overshoot.
const LIMIT: Duration = Duration::from_millis(500);

fn main() {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("wasm") => tier(Tier::Wasm),
        Some("system") => tier(Tier::System),
        _ => {
            println!(
                "| tier | runs | p50 ms | p95 ms | first ms | memory MB | stopped programs | worst overshoot ms |"
            );
            println!("|---|---|---|---|---|---|---|---|");
            let program = std::env::current_exe().unwrap();
            for name in ["wasm", "system"] {
                assert!(Command::new(&program).arg(name).status().unwrap().success());
            }
        }
    }
}

fn tier(tier: Tier) {
    let started = Instant::now();
    let python = match Python::open(tier, &[]) {
        Ok(python) => python,
        Err(error) => return println!("| {tier:?} | absent: {error} | | | | | | |"),
    };
    run(&python, PROGRAMS[0], &Limits::default());
    let first = started.elapsed();
    let mut times = Vec::new();
    for _ in 0..RUNS {
        for code in PROGRAMS {
            times.push(run(&python, code, &Limits::default()));
        }
    }
    if std::env::var_os("VERBOSE").is_some() {
        for (index, code) in PROGRAMS.iter().enumerate() {
            let mut own: Vec<&Duration> =
                times.iter().skip(index).step_by(PROGRAMS.len()).collect();
            own.sort();
            println!("{:?} in the middle: {code}", own[own.len() / 2]);
        }
    }
    times.sort();
    // Before anything is stopped: those programs take what they are given.
    let memory = memory(&python, tier);
    let limits = Limits { time: LIMIT, ..Limits::default() };
    let overshoots: Vec<Duration> =
        ENDLESS.iter().map(|code| stopped(&python, code, &limits)).collect();
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    println!(
        "| {tier:?} | {} | {:.1} | {:.1} | {:.0} | {memory:.0} | {} | {:.0} |",
        times.len(),
        ms(times[times.len() / 2]),
        ms(times[times.len() * 95 / 100]),
        ms(first),
        overshoots.len(),
        ms(*overshoots.iter().max().unwrap()),
    );
}

fn program(code: &str) -> Program {
    let regions = ["north", "south", "east", "west"];
    let rows: Vec<Value> = (0..200)
        .map(|n| json!({"n": n, "region": regions[n % 4], "amount": n as f64 * 1.25}))
        .collect();
    let inputs = json!({ "rows": rows }).as_object().unwrap().clone();
    Program { code: code.to_owned(), inputs, ..Program::default() }
}

fn run(python: &Python, code: &str, limits: &Limits) -> Duration {
    let program = program(code);
    let started = Instant::now();
    let outcome = python.run(&program, limits).unwrap();
    let time = started.elapsed();
    assert_eq!(outcome.error, None, "{code}");
    time
}

/// Returns by how much a program that does not end ran longer than it may.
fn stopped(python: &Python, code: &str, limits: &Limits) -> Duration {
    let program = program(code);
    let started = Instant::now();
    let outcome = python.run(&program, limits).unwrap();
    let time = started.elapsed();
    let kind = outcome.error.map(|fault| fault.kind);
    assert!(matches!(kind, Some(FaultType::Timeout | FaultType::MemoryLimit)), "{code}: {kind:?}");
    let late = time.saturating_sub(limits.time);
    if std::env::var_os("VERBOSE").is_some() {
        println!("late by {late:?}: {code}");
    }
    late
}

/// Returns the most megabytes that were resident: of this process, or of the system's Python as it knows itself.
fn memory(python: &Python, tier: Tier) -> f64 {
    if tier == Tier::System {
        let code = "import resource\nresource.getrusage(resource.RUSAGE_SELF).ru_maxrss";
        let outcome = python.run(&program(code), &Limits::default()).unwrap();
        return outcome.result.as_f64().unwrap() / 1024.0;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
}

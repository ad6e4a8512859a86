//! Programs that try to get out: to the host's files, environment, network and processes, or past the bounds.
//!
//! Each line of `escapes/ways.txt` reaches for a file in one way, and is tried on every target; the other files hold whole programs,
//! separated by lines of dashes. The escapes published for other sandboxes are
//! among them, written again for this one.
//!
//! Each is tried in each tier: WebAssembly where it was built, the system's Python where there is bubblewrap. `published.rs` runs the programs of
//! other projects as they stand.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]
#![expect(clippy::panic, reason = "a test ends at what it did not expect")]
#![expect(clippy::print_stderr, reason = "says why nothing was tested")]
#![expect(clippy::disallowed_methods, reason = "it measures how late a program was stopped")]

mod host;
mod published;

use std::time::Duration;

use host::Host;
use perihelion_sandbox::{FaultType, Tier};

fn programs(text: &str) -> Vec<&str> {
    text.split("\n----\n").filter(|program| !program.trim().is_empty()).collect()
}

#[cfg(feature = "wasm")]
#[test]
fn no_way_of_reading_or_changing_a_file_reaches_the_host() {
    files(Tier::Wasm);
}

#[test]
fn no_way_of_reading_or_changing_a_file_reaches_the_host_under_bubblewrap() {
    files(Tier::System);
}

fn files(tier: Tier) {
    let Some(host) = Host::new(tier) else { return };
    let targets = [
        "FOLDER/secret.txt",
        "../../../../../../../../FOLDER/secret.txt",
        "/work/../FOLDER/secret.txt",
        "/proc/self/environ",
        "/etc/passwd",
    ];
    let ways: Vec<&str> =
        include_str!("ways.txt").lines().filter(|line| !line.is_empty()).collect();
    assert!(ways.len() * targets.len() >= 200, "{}", ways.len());
    for way in ways {
        for target in targets {
            let code = way.replace("TARGET", target).replace(" // ", "\n");
            let outcome = host.run(&code);
            // Nothing of a file is there, whether the program gave up, was stopped or said something else.
            assert_eq!(outcome.table, None, "{code}");
        }
    }
}

#[cfg(feature = "wasm")]
#[test]
fn no_program_reaches_network_processes_or_the_inside_of_the_host() {
    let Some(host) = Host::new(Tier::Wasm) else { return };
    for code in programs(include_str!("reach.txt")) {
        let outcome = host.run(code);
        assert_ne!(outcome.result, serde_json::json!("escaped"), "{code}");
        assert!(!says(&outcome.stdout, "escaped"), "{code}: {}", outcome.stdout);
    }
    // The next program finds everything as the first one did.
    assert_eq!(host.run("6 * 7").result, serde_json::json!(42));
}

/// What a process may do with itself: have threads, or turn into another program of the system, which finds itself in the same place.
const OWN: [&str; 3] = ["os.execv(", "threading.Thread(", "_thread.start_new_thread("];

#[test]
fn no_program_reaches_network_processes_or_the_host_under_bubblewrap() {
    let Some(host) = Host::new(Tier::System) else { return };
    for code in programs(include_str!("reach.txt")) {
        // What is the process's own, as its memory, is there; what counts is that nothing else is, which the host checks.
        let outcome = host.run(code);
        if !OWN.iter().any(|own| code.contains(own)) {
            assert!(!says(&outcome.stdout, "escaped"), "{code}: {}", outcome.stdout);
        }
    }
}

/// Tells whether a process printed the word; a traceback may show it in the program's own line.
fn says(stdout: &str, word: &str) -> bool {
    stdout.lines().any(|line| line.trim() == word || line.trim() == format!("b'{word}\\n'"))
}

#[cfg(feature = "wasm")]
#[test]
fn no_program_exceeds_its_limits() {
    let Some(host) = Host::new(Tier::Wasm) else { return };
    for code in programs(include_str!("exhaust.txt")) {
        let outcome = host.run(code);
        let fault = outcome.error.unwrap_or_else(|| panic!("it ended well:\n{code}"));
        let bounds = [FaultType::Timeout, FaultType::MemoryLimit, FaultType::PythonError];
        assert!(bounds.contains(&fault.kind), "{code}: {fault:?}");
    }
    assert_eq!(host.run("6 * 7").result, serde_json::json!(42));
}

#[test]
fn no_program_exceeds_its_limits_under_bubblewrap() {
    let Some(host) = Host::new(Tier::System) else { return };
    for code in programs(include_str!("exhaust.txt")) {
        // Its memory is larger, so that some of them end well; what ends none of them is waited for.
        let outcome = host.run_for(code, Duration::from_secs(1));
        if let Some(fault) = outcome.error {
            let bounds = [FaultType::Timeout, FaultType::MemoryLimit, FaultType::PythonError];
            assert!(bounds.contains(&fault.kind), "{code}: {fault:?}");
        }
    }
    assert_eq!(host.run("6 * 7").result, serde_json::json!(42));
}

//! Programs that try to get out: to the host's files, environment, network and processes, or past the bounds.
//!
//! Each line of `escapes/ways.txt` reaches for a file in one way, and is tried on every target; the other files hold whole programs,
//! separated by lines of dashes. The escapes published for other sandboxes are among them, written again for this one.
//!
//! WebAssembly is tried where it was built; the ways to files are tried under bubblewrap as well, whose other bounds `system.rs` tries.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]
#![expect(clippy::panic, reason = "a test ends at what it did not expect")]
#![expect(clippy::print_stderr, reason = "says why nothing was tested")]

use std::io::ErrorKind;
use std::net::TcpListener;
use std::time::Duration;

use perihelion_sandbox::{Error, FaultType, Limits, Outcome, Program, Python, Tier};

const SECRET: &str = "canary-7f3a91c2";

struct Host {
    folder: tempfile::TempDir,
    listener: TcpListener,
    python: Python,
    tier: Tier,
}

impl Host {
    fn new(tier: Tier) -> Option<Self> {
        let python = match Python::open(tier) {
            Ok(python) => python,
            Err(error @ (Error::NotBuilt | Error::NoBubblewrap | Error::NoPython)) => {
                eprintln!("nothing was tested: {error}");
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("secret.txt"), SECRET).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Some(Self { folder, listener, python, tier })
    }

    fn run(&self, code: &str) -> Outcome {
        let limits =
            Limits { time: Duration::from_millis(500), output_bytes: 20_000, ..Limits::default() };
        let code = code
            .replace("FOLDER", &self.folder.path().to_string_lossy())
            .replace("PORT", &self.listener.local_addr().unwrap().port().to_string());
        let program = Program { code, ..Program::default() };
        let outcome = self.python.run(&program, &limits).unwrap();
        self.check(&program.code, &outcome);
        outcome
    }

    fn check(&self, code: &str, outcome: &Outcome) {
        let seen = serde_json::to_string(outcome).unwrap();
        // Of the system's own files, what stands in every one of them; a process sees which kernel it runs on.
        let kernel = if self.tier == Tier::Wasm { &["MemTotal", "Linux version"][..] } else { &[] };
        let leaks = [SECRET, "root:x:0:0", "CARGO_MANIFEST_DIR", "/.cargo"];
        for leak in leaks.iter().chain(kernel) {
            let is_named = code.contains(leak);
            assert!(is_named || !seen.contains(leak), "{leak} came out of:\n{code}\n{seen}");
        }
        let names: Vec<_> = std::fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["secret.txt"], "{code}");
        assert_eq!(
            std::fs::read_to_string(self.folder.path().join("secret.txt")).unwrap(),
            SECRET,
            "{code}"
        );
        let connected = self.listener.accept();
        assert_eq!(connected.unwrap_err().kind(), ErrorKind::WouldBlock, "{code}");
        assert!(seen.len() < 2 << 20, "{} bytes of:\n{code}", seen.len());
    }
}

fn programs(text: &str) -> Vec<&str> {
    text.split("\n----\n").filter(|program| !program.trim().is_empty()).collect()
}

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
        include_str!("escapes/ways.txt").lines().filter(|line| !line.is_empty()).collect();
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

#[test]
fn no_program_reaches_network_processes_or_the_inside_of_the_host() {
    let Some(host) = Host::new(Tier::Wasm) else { return };
    for code in programs(include_str!("escapes/reach.txt")) {
        let outcome = host.run(code);
        assert_ne!(outcome.result, serde_json::json!("escaped"), "{code}");
        // A traceback may show the program's own line; a process would print the word alone.
        let is_said =
            outcome.stdout.lines().any(|line| matches!(line.trim(), "escaped" | "b'escaped\\n'"));
        assert!(!is_said, "{code}: {}", outcome.stdout);
    }
}

#[test]
fn no_program_takes_more_than_its_bounds() {
    let Some(host) = Host::new(Tier::Wasm) else { return };
    for code in programs(include_str!("escapes/exhaust.txt")) {
        let outcome = host.run(code);
        let fault = outcome.error.unwrap_or_else(|| panic!("it ended well:\n{code}"));
        let bounds = [FaultType::Timeout, FaultType::MemoryLimit, FaultType::PythonError];
        assert!(bounds.contains(&fault.kind), "{code}: {fault:?}");
    }
    assert_eq!(host.run("6 * 7").result, serde_json::json!(42));
}

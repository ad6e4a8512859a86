//! A host that notices what gets out of the sandbox: a file with a secret, and a port that nobody may reach.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use perihelion_sandbox::{Error, Limits, Outcome, Program, Python, Tier};

/// How late a stopped program may be, on a machine that does much else; `make bench-python` measures it.
const LATE: Duration = Duration::from_secs(5);
const SECRET: &str = "canary-7f3a91c2";

/// What a program could reach, and the tier that it runs in.
pub struct Host {
    folder: tempfile::TempDir,
    listener: TcpListener,
    python: Python,
    tier: Tier,
}

impl Host {
    /// Opens a tier; none where this machine lacks it, which in CI it may not.
    pub fn new(tier: Tier) -> Option<Self> {
        let python = match Python::open(tier, &[]) {
            Ok(python) => python,
            Err(error @ (Error::NoBubblewrap | Error::NoPython)) => {
                assert!(
                    std::env::var_os("CI").is_none(),
                    "the tier {tier:?} is not tested: {error}"
                );
                eprintln!("the tier {tier:?} is not tested: {error}");
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

    /// Runs a program and sees to it that nothing got out; it has the time that its tier needs to start and to do something.
    pub fn run(&self, code: &str) -> Outcome {
        let time = if self.tier == Tier::Wasm { 500 } else { 5_000 };
        self.run_for(code, Duration::from_millis(time))
    }

    /// Does so within a time.
    pub fn run_for(&self, code: &str, time: Duration) -> Outcome {
        let limits = Limits { time, output_bytes: 20_000, ..Limits::default() };
        let code = code
            .replace("FOLDER", &self.folder.path().to_string_lossy())
            .replace("PORT", &self.listener.local_addr().unwrap().port().to_string());
        let program = Program { code, ..Program::default() };
        let started = Instant::now();
        let outcome = self.python.run(&program, &limits).unwrap();
        let time = started.elapsed();
        assert!(time < limits.time + LATE, "{time:?} for {}", program.code);
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

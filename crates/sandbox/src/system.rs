//! The system's Python under bubblewrap: with its packages, and no other part of the host.
//!
//! Invariant: programs never run without bubblewrap. The request goes in by standard input and the report comes out by
//! standard error, so no folder of the host is shared; the scratch folder is memory that ends with the namespace.

mod command;
mod filter;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::program::NO_REPORT;
use crate::request::{report, request};
use crate::{Error, Fault, FaultType, Limits, Outcome, Program, clock, find_program};

const REPORT_BYTES: usize = 16 << 20;
/// How long to wait for the last printed output, after the report, and after the time limit.
const PRINTED: Duration = Duration::from_secs(2);
const PRINTED_LATE: Duration = Duration::from_millis(20);
/// Memory below which the interpreter with its packages does not start.
const LEAST_MEMORY: usize = 1 << 30;

pub struct Interpreter {
    bubblewrap: PathBuf,
    /// The interpreter, and the folders that belong to it.
    python: PathBuf,
    folders: Vec<PathBuf>,
    packages: Vec<PathBuf>,
    /// The system call filter, which bubblewrap reads from an open file.
    filter: tempfile::NamedTempFile,
}

impl Interpreter {
    /// Finds both, and the packages.
    ///
    /// # Errors
    /// [`Error::NoBubblewrap`], [`Error::NoPython`], [`Error::NoPackages`], or [`Error::Scratch`] if the filter cannot be written.
    pub fn open(packages: &[PathBuf]) -> Result<Self, Error> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let find = |name: &str| find_program(Path::new(name), &path, Path::new(""));
        let bubblewrap = find("bwrap").ok_or(Error::NoBubblewrap)?;
        let python = find("python3").ok_or(Error::NoPython)?;
        let packages = packages.iter().map(|path| directory(path)).collect::<Result<_, _>>()?;
        let (python, folders) = command::installation(&python).ok_or(Error::NoPython)?;
        let scratch = |source| Error::Scratch { path: std::env::temp_dir(), source };
        let mut filter = tempfile::NamedTempFile::new().map_err(scratch)?;
        filter.write_all(&filter::program()?).map_err(scratch)?;
        let interpreter = Self { bubblewrap, python, folders, packages, filter };
        interpreter.check()?;
        Ok(interpreter)
    }

    pub fn run(&self, program: &Program, limits: &Limits) -> Result<Outcome, Error> {
        let limits = Limits { memory_bytes: limits.memory_bytes.max(LEAST_MEMORY), ..*limits };
        let started = clock::monotonic();
        let mut child = self
            .command(&limits)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(Error::Start)?;
        let packages = command::package_folders().take(self.packages.len()).collect();
        let written = request(program, &limits, false, packages)?;
        let input = child.stdin.take();
        let printed = collect(child.stdout.take(), limits.output_bytes);
        let reported = collect(child.stderr.take(), REPORT_BYTES);
        // A program that never reads its request must not hold up the clock.
        std::thread::spawn(move || input.map(|mut input| input.write_all(&written)));
        let in_time = wait(&mut child, &reported, started + limits.time);
        let patience = if in_time.is_some() { PRINTED } else { PRINTED_LATE };
        // The system can take long to free the memory of a large process, and with it the other end of the pipe.
        let (output, is_cut) = printed.whole(patience).unwrap_or_else(|| printed.so_far());
        let mut outcome = Outcome::printed(&output, is_cut);
        let Some((bytes, _)) = in_time else {
            outcome.error = Some(Fault::timeout(&limits));
            return Ok(outcome);
        };
        match report(&bytes) {
            Some(report) => report.into_outcome(&mut outcome, None),
            None => outcome.error = Some(unreported(&bytes)),
        }
        Ok(outcome)
    }

    fn check(&self) -> Result<(), Error> {
        let program = Program { code: "1".to_owned(), ..Program::default() };
        let outcome = self.run(&program, &Limits::default())?;
        match outcome.error {
            None => Ok(()),
            Some(fault) => Err(Error::Bubblewrap(fault.message)),
        }
    }
}

fn directory(path: &Path) -> Result<PathBuf, Error> {
    let real = path.canonicalize().and_then(|real| std::fs::read_dir(&real).map(|_| real));
    real.map_err(|source| Error::NoPackages { path: path.to_owned(), source })
}

/// The beginning of a stream, and whether there was more.
type Kept = (Vec<u8>, bool);

/// The data that a separate thread reads from a stream.
struct Collected {
    kept: Arc<Mutex<Kept>>,
    ended: mpsc::Receiver<()>,
}

impl Collected {
    /// Returns the data at the end of the stream; `None` if it does not end in that time.
    fn whole(&self, time: Duration) -> Option<Kept> {
        self.ended.recv_timeout(time).ok().map(|()| self.so_far())
    }

    fn so_far(&self) -> Kept {
        std::mem::take(&mut *self.kept.lock())
    }
}

/// Reads a stream to its end, keeping its beginning.
fn collect(stream: Option<impl Read + Send + 'static>, limit: usize) -> Collected {
    let (sender, ended) = mpsc::channel();
    let kept = Arc::new(Mutex::new(Kept::default()));
    let shared = Arc::clone(&kept);
    std::thread::spawn(move || {
        if let Some(mut stream) = stream {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(count) = stream.read(&mut buffer) {
                if count == 0 {
                    break;
                }
                let mut kept = shared.lock();
                let room = limit.saturating_sub(kept.0.len());
                kept.1 |= count > room;
                kept.0.extend(buffer.iter().take(count.min(room)));
            }
        }
        // There is no receiver after the time limit.
        let _ = sender.send(());
    });
    Collected { kept, ended }
}

/// Waits for the report; kills the processes at the deadline. The report is the last that a run writes.
fn wait(child: &mut Child, reported: &Collected, deadline: Instant) -> Option<Kept> {
    let rest = deadline.saturating_duration_since(clock::monotonic());
    let report = reported.whole(rest);
    // With bubblewrap its namespace goes, and every process in it.
    let _ = child.kill();
    let _ = child.wait();
    report
}

/// Returns what ended a run without a report: a failure of the program, because the program may have written that text.
fn unreported(bytes: &[u8]) -> Fault {
    let output_text = String::from_utf8_lossy(bytes);
    let last = output_text.lines().last().unwrap_or_default();
    let message = last.strip_prefix("bwrap: ").unwrap_or(NO_REPORT);
    let kind = if output_text.contains("MemoryError") {
        FaultType::MemoryLimit
    } else {
        FaultType::PythonError
    };
    Fault::new(kind, message)
}

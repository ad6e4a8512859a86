//! A program, its limits, and its result.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[cfg(feature = "wasm")]
use base64::Engine as _;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// CPython as WebAssembly: the standard library, without the host.
    Wasm,
    /// The system's Python with its packages, under bubblewrap.
    System,
}

/// A program and everything it may know.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Python source; the value of a last expression is its result.
    pub code: String,
    /// Values by name; the program finds them in `inputs` and, if the name is valid, as variables.
    pub inputs: Map<String, Value>,
    /// When the program starts, as time since the epoch. Its clock advances with its computation, so equal runs see
    /// equal times.
    pub clock: Duration,
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest run, sleep included.
    pub time: Duration,
    /// Most memory, in bytes, the interpreter's own 40 MB included.
    pub memory_bytes: usize,
    /// Maximum bytes of printed output; the rest is dropped, and the outcome notes it.
    pub output_bytes: usize,
    /// Most bytes of all files in the scratch folder together.
    pub file_bytes: usize,
    /// Most files and folders in the scratch folder.
    pub files: usize,
    pub rows: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(10),
            memory_bytes: 256 << 20,
            output_bytes: 64 << 10,
            file_bytes: 32 << 20,
            files: 256,
            rows: 10_000,
        }
    }
}

/// What a program left behind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Outcome {
    /// What it printed, on either stream; the end is cut off where it printed more than is kept.
    pub stdout: String,
    /// The value of the last expression, or of the variable `result`; null where there is neither.
    pub result: Value,
    /// The variables it set, long ones as the beginning of their text.
    pub locals: Map<String, Value>,
    /// The variable `table`, or the result where it has rows.
    pub table: Option<Table>,
    /// Files in the scratch folder at the end.
    pub files: Vec<File>,
    /// Why it did not end well.
    pub error: Option<Fault>,
}

impl Outcome {
    /// Begins with what was printed, which may be cut off.
    pub(crate) fn printed(output: &[u8], is_cut: bool) -> Self {
        let mut stdout = String::from_utf8_lossy(output).into_owned();
        if is_cut {
            stdout.push_str("\n… more was printed than is kept");
        }
        Self { stdout, ..Self::default() }
    }
}

/// Rows under named columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Table {
    pub columns: Vec<String>,
    /// One array of values per row, in the order of the columns.
    pub rows: Vec<Vec<Value>>,
    /// Number of rows that the program made.
    pub row_count: usize,
    /// Rows were left out.
    pub truncated: bool,
}

/// A file that the program wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct File {
    /// Path within the scratch folder.
    pub path: String,
    /// Size in bytes.
    pub size: usize,
    /// The content, where it is text and there is room for it.
    pub text: Option<String>,
    /// The content in base64, where it is not text and there is room for it.
    pub base64: Option<String>,
}

/// Why a program did not end well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fault {
    #[serde(rename = "type")]
    pub kind: FaultType,
    pub message: String,
    /// Line of the program, from 1, where one is to blame.
    pub line: Option<u32>,
}

impl Fault {
    pub(crate) fn new(kind: FaultType, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), line: None }
    }

    pub(crate) fn timeout(limits: &Limits) -> Self {
        let seconds = limits.time.as_secs_f64();
        let message = format!("the program ran longer than its limit of {seconds} s");
        Self::new(FaultType::Timeout, message)
    }
}

pub(crate) const NO_REPORT: &str = "the program ended the interpreter before its result was read";

/// What kind of failure it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FaultType {
    /// The program raised an exception or is not Python.
    PythonError,
    /// It asked for what the sandbox does not give: network, processes, files of the host.
    SandboxViolation,
    /// It ran, or meant to sleep, longer than it may.
    Timeout,
    /// It needed more memory than it may.
    MemoryLimit,
}

/// Largest content shown of one file, and of all files together.
pub const FILE_SHOWN: usize = 64 << 10;
pub const FILES_SHOWN: usize = 256 << 10;

/// Lists files, with their contents while there is space.
#[cfg(feature = "wasm")]
pub fn shown_files<'a>(files: impl Iterator<Item = (&'a str, &'a [u8])>) -> Vec<File> {
    let mut room = FILES_SHOWN;
    files
        .map(|(path, bytes)| {
            let mut file = File { path: path.to_owned(), size: bytes.len(), ..File::default() };
            if bytes.len() <= FILE_SHOWN.min(room) {
                room -= bytes.len();
                match std::str::from_utf8(bytes) {
                    Ok(text) => file.text = Some(text.to_owned()),
                    Err(_) => {
                        file.base64 = Some(base64::engine::general_purpose::STANDARD.encode(bytes))
                    }
                }
            }
            file
        })
        .collect()
}

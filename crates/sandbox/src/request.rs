//! The input and output of the driver inside the interpreter.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::program::{FILE_SHOWN, FILES_SHOWN};
use crate::{Error, Fault, FaultType, File, Limits, Outcome, Program, Table};

/// Runs one program inside the interpreter.
pub const DRIVER: &str = include_str!("driver.py");
/// Most values in a result, and in a table.
const VALUES: usize = 200_000;
/// Most variables shown.
const LOCALS: usize = 100;

#[derive(Serialize)]
struct Request<'a> {
    code: &'a str,
    inputs: &'a Map<String, Value>,
    /// The driver rejects names, because no layer below it does.
    strict: bool,
    seed: u64,
    /// Directories of packages, as the interpreter sees them.
    packages: Vec<String>,
    limits: RequestLimits,
}

#[derive(Serialize)]
struct RequestLimits {
    values: usize,
    locals: usize,
    rows: usize,
    files: usize,
    file_shown: usize,
    file_bytes_shown: usize,
}

#[derive(Deserialize)]
pub struct Report {
    result: Value,
    locals: Map<String, Value>,
    table: Option<Table>,
    error: Option<Fault>,
    /// If the host cannot see the files itself.
    #[serde(default)]
    files: Vec<File>,
    /// The failure is an operating system's error, which the host may know to be a violation.
    #[serde(default)]
    denied: bool,
}

pub fn request(
    program: &Program,
    limits: &Limits,
    strict: bool,
    packages: Vec<String>,
) -> Result<Vec<u8>, Error> {
    let limits = RequestLimits {
        values: VALUES,
        locals: LOCALS,
        rows: limits.rows,
        files: limits.files,
        file_shown: FILE_SHOWN,
        file_bytes_shown: FILES_SHOWN,
    };
    let request = Request {
        code: &program.code,
        inputs: &program.inputs,
        strict,
        seed: program.seed,
        packages,
        limits,
    };
    Ok(serde_json::to_vec(&request)?)
}

/// Reads the driver's report; `None` if the program ended before it was written.
pub fn report(bytes: &[u8]) -> Option<Report> {
    serde_json::from_slice(bytes).ok()
}

impl Report {
    /// Moves the report into an outcome; `violation` is the request that the sandbox refused, if any.
    pub fn into_outcome(self, outcome: &mut Outcome, violation: Option<&str>) {
        outcome.result = self.result;
        outcome.locals = self.locals;
        outcome.table = self.table;
        outcome.error = self.error;
        outcome.files.extend(self.files);
        let (Some(fault), Some(violation)) = (&mut outcome.error, violation) else { return };
        if self.denied {
            fault.kind = FaultType::SandboxViolation;
            fault.message = format!("{violation} ({})", fault.message);
        }
    }
}

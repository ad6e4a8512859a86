//! The only tool: a program as the input, its result as the output.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use perihelion_sandbox::{Fault, Limits, Outcome, Program, Python, Tier};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use super::{Error, MAX_CODE_BYTES, Options};
use perihelion_toolbox::prelude::*;
use perihelion_toolbox::{Serving, answer, config, failure};

/// The field for the program's start time, in milliseconds since the epoch; the result repeats it.
pub const CLOCK: &str = "dev.perihelion/clock";
/// The field for the seed of the program's randomness; the result repeats it.
pub const SEED: &str = "dev.perihelion/seed";
/// Runs at once; each may take the whole memory limit.
const RUNS: usize = 2;
/// Characters of a value shown to a model with the structured result.
const SHOWN: usize = 4_000;

#[derive(Deserialize, JsonSchema)]
struct Run {
    /// Python source. The value of a last expression is the result; assign rows (a list of dicts) to `table` to return a table.
    code: String,
    /// Values for the program: each is a variable of its name, and all are in the dict `inputs`.
    inputs: Option<Map<String, Value>>,
    /// Longest run in seconds, within the server's own limit.
    timeout_sec: Option<f64>,
}

pub struct Server {
    python: Arc<Python>,
    options: Options,
    runs: Arc<Semaphore>,
}

impl Server {
    pub fn open(options: &Options) -> Result<Serving, Error> {
        let tier = options.tier();
        let python = Arc::new(Python::open(tier, &options.site_packages)?);
        let runs = Arc::new(Semaphore::new(RUNS));
        let server = Self { python, options: options.clone(), runs };
        let packages = match tier {
            Tier::Wasm => {
                "the standard library (with sqlite3, decimal, statistics), no numpy or pandas"
            }
            Tier::System => "the packages of the system's Python",
        };
        let text = format!(
            "Runs Python programs for calculation and data: {packages}. Nothing is kept between runs; there is no network."
        );
        Ok(Serving::fixed(server, Self::tool_router(), config("python", "Python", text)))
    }

    async fn run(&self, input: Run, meta: &RequestMetaObject) -> Result<CallToolResult, Error> {
        let number = |name| meta.get(name).and_then(Value::as_u64);
        let options = &self.options;
        let clock = number(CLOCK).unwrap_or_else(|| {
            let fixed = options.clock.map(|clock| clock.to_utc());
            let clock = fixed.unwrap_or_else(perihelion_engine::clock::now);
            u64::try_from(clock.timestamp_millis()).unwrap_or(0)
        });
        let seed = number(SEED).unwrap_or(options.seed);
        if input.code.len() > MAX_CODE_BYTES {
            return Err(Error::TooLong(input.code.len()));
        }
        let limits = limits(options, input.timeout_sec)?;
        let program = Program {
            code: input.code,
            inputs: input.inputs.unwrap_or_default(),
            clock: Duration::from_millis(clock),
            seed,
        };
        let python = Arc::clone(&self.python);
        // The semaphore is never closed; without a place the run would only be slower.
        let place = Arc::clone(&self.runs).acquire_owned().await.ok();
        let running = tokio::task::spawn_blocking(move || {
            // A run outlives a caller that stops waiting, and keeps its place until then.
            let _place = place;
            python.run(&program, &limits)
        });
        let outcome = running.await??;
        let mut result = answer(&outcome, text(&outcome));
        let mut meta = rmcp::model::MetaObject::default();
        meta.insert(CLOCK.into(), clock.into());
        meta.insert(SEED.into(), seed.into());
        result.meta = Some(meta);
        Ok(result)
    }
}

#[tool_router]
impl Server {
    #[tool(
        description = "Runs a Python program in a sandbox without network, processes or files of the host, and returns what it printed, the value of its last expression, its variables, a table and its files. Each run starts from nothing; pass data in `inputs`. A failed program is returned with `error` {type, message, line}.",
        output_schema = schema_for_output::<Outcome>(),
        annotations(title = "Run Python", read_only_hint = true, destructive_hint = false, idempotent_hint = true, open_world_hint = false)
    )]
    async fn run_python(
        &self,
        meta: RequestMetaObject,
        Parameters(input): Parameters<Run>,
    ) -> CallToolResult {
        self.run(input, &meta).await.unwrap_or_else(|error| failure(&error))
    }
}

fn limits(options: &Options, asked: Option<f64>) -> Result<Limits, Error> {
    let limits = options.limits();
    let Some(asked) = asked else { return Ok(limits) };
    match Duration::try_from_secs_f64(asked) {
        Ok(time) if !time.is_zero() => Ok(Limits { time: time.min(limits.time), ..limits }),
        _ => Err(Error::Timeout { most: options.timeout_sec, asked }),
    }
}

fn text(outcome: &Outcome) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    if let Some(Fault { kind, message, line }) = &outcome.error {
        let place = line.map_or_else(String::new, |line| format!(" (line {line})"));
        let _ = writeln!(text, "error: {kind:?}{place}: {message}");
    }
    if !outcome.result.is_null() {
        let _ = writeln!(text, "result: {}", cut(&outcome.result.to_string()));
    }
    if !outcome.stdout.is_empty() {
        let _ = writeln!(text, "stdout:\n{}", cut(&outcome.stdout));
    }
    if let Some(table) = &outcome.table {
        let _ = writeln!(text, "table: {} rows of {}", table.row_count, table.columns.join(", "));
    }
    if !outcome.locals.is_empty() {
        let _ = writeln!(text, "locals: {}", cut(&Value::from(outcome.locals.clone()).to_string()));
    }
    for file in &outcome.files {
        let _ = writeln!(text, "file: {} ({} bytes)", file.path, file.size);
    }
    if text.is_empty() { "The program ended and left nothing behind.".to_owned() } else { text }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => {
            format!("{}… ({} bytes in all)", text.get(..end).unwrap_or_default(), text.len())
        }
        None => text.to_owned(),
    }
}

//! Parsing in a separate process: a document can harm only that process.
//!
//! The process that parses reads the document from standard input and writes one line of JSON to standard
//! output. It bounds itself first, so that any document has limits on memory and time.

use std::io::{Read, Write};

use nix::sys::resource::{Resource, setrlimit};
use serde::{Deserialize, Serialize};

use crate::{Error, Limits, Parsed};

#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Bytes of address space.
    pub memory: u64,
    pub cpu_seconds: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { memory: 3 << 30, cpu_seconds: 120 }
    }
}

/// Stack of the thread that parses; documents nest deeply.
const STACK: usize = 256 << 20;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Parsed(Box<Parsed>),
    Refused { class: String, message: String },
}

/// Parses standard input and writes the answer to standard output.
///
/// # Errors
/// When the bounds cannot be set, or the streams cannot be used.
pub fn answer(name: &str, limits: &Limits, bounds: Bounds) -> std::io::Result<()> {
    setrlimit(Resource::RLIMIT_AS, bounds.memory, bounds.memory)?;
    setrlimit(Resource::RLIMIT_CPU, bounds.cpu_seconds, bounds.cpu_seconds)?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    setrlimit(Resource::RLIMIT_FSIZE, 0, 0)?;
    let mut bytes = Vec::new();
    let most = u64::try_from(limits.input_bytes).unwrap_or(u64::MAX).saturating_add(1);
    std::io::stdin().lock().take(most).read_to_end(&mut bytes)?;
    let outcome = std::thread::scope(|scope| {
        let parsing = std::thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, || crate::parse(&bytes, name, limits))?;
        Ok::<_, std::io::Error>(parsing.join())
    })?;
    let answer = match outcome {
        Ok(Ok(parsed)) => Answer::Parsed(Box::new(parsed)),
        Ok(Err(error)) => {
            Answer::Refused { class: error.class().to_owned(), message: error.to_string() }
        }
        // The library below gave up; the message went to standard error.
        Err(_) => Answer::Refused {
            class: "broken".to_owned(),
            message: "the document is damaged: the parser gave up on it".to_owned(),
        },
    };
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, &answer)?;
    out.write_all(b"\n")?;
    out.flush()
}

/// Reads a process's output; `ended` describes its end.
///
/// # Errors
/// [`Error`] as the process reported it, or [`Error::Died`] if it could not.
pub fn read(output: &[u8], ended: &str) -> Result<Parsed, Error> {
    match serde_json::from_slice(output) {
        Ok(Answer::Parsed(parsed)) => Ok(*parsed),
        Ok(Answer::Refused { class, message }) => Err(Error::Reported { class, message }),
        Err(_) => Err(Error::Died(ended.to_owned())),
    }
}

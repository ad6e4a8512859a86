//! Reads SQLite in a separate process, which is killed if a query exceeds its time.
//!
//! SQLite looks at no clock inside a function: `instr` over two long texts runs for minutes, and no handler ends it.
//! Enter at [`Workers::ask`] on the one side and [`serve`] on the other; they exchange lines of JSON. Invariant: a
//! question without a waiting caller has no process.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use perihelion_analysis::guard::TableName;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex, Semaphore};

use crate::answer::Limits;
use crate::{Error, Result, sqlite};

/// Extra time for a worker beyond a query's own limit.
const GRACE: Duration = Duration::from_secs(1);
/// Longest time for reading the catalogue, starting included.
const CATALOGUE_LIMIT: Duration = Duration::from_secs(30);
/// Processes that read one database at a time.
const AT_ONCE: usize = 2;

/// Relations that show rows of others, each with one of these; `None` if they may be of any.
pub type Sources = Vec<(TableName, Option<TableName>)>;

#[derive(Debug, Serialize, Deserialize)]
pub enum Question {
    Open { path: String, only: Vec<String> },
    Catalogue,
    Sources,
    Run { sql: String, limits: Limits },
}

#[derive(Debug, Serialize, Deserialize)]
enum Reply<T> {
    Done(T),
    /// The database's own words.
    Failed(String),
    /// The database's own look at the clock stopped it.
    TimedOut,
}

pub struct Workers {
    program: (PathBuf, Vec<String>),
    path: String,
    only: Vec<String>,
    idle: Mutex<Vec<Worker>>,
    room: Semaphore,
}

struct Worker {
    /// Killed with this value.
    _child: Child,
    /// The file that it opened.
    file: Option<(u64, u64)>,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Workers {
    pub fn new(program: (PathBuf, Vec<String>), path: String, only: Vec<String>) -> Self {
        let room = Semaphore::new(AT_ONCE);
        Self { program, path, only, idle: Mutex::new(Vec::new()), room }
    }

    /// Asks a worker; a caller that stops waiting, or waits past the limit, ends its process.
    ///
    /// # Errors
    /// [`Error::Timeout`], [`Error::Database`] in the database's words, or [`Error::Worker`].
    pub async fn ask<T: DeserializeOwned>(&self, question: &Question) -> Result<T> {
        let limit = match question {
            Question::Run { limits, .. } => limits.timeout,
            _ => CATALOGUE_LIMIT,
        };
        let _room = self.room.acquire().await.map_err(failed)?;
        let idle = self.idle.lock().await.pop();
        // From here on the worker is this call's own: dropping the call kills it.
        let mut worker = match idle {
            // Another file may have taken the name since.
            Some(worker) if worker.file == self.file() => worker,
            _ => self.start().await?,
        };
        let asked = tokio::time::timeout(limit + GRACE, worker.ask(question)).await;
        let reply = asked.map_err(|_| Error::Timeout { limit })??;
        self.idle.lock().await.push(worker);
        match reply {
            Reply::Done(answer) => Ok(answer),
            Reply::Failed(message) => Err(Error::Database { message, hint: String::new() }),
            Reply::TimedOut => Err(Error::Timeout { limit }),
        }
    }

    /// Returns the device and the number of the file that has the name now.
    fn file(&self) -> Option<(u64, u64)> {
        std::fs::metadata(&self.path).ok().map(|found| (found.dev(), found.ino()))
    }

    async fn start(&self) -> Result<Worker> {
        let file = self.file();
        let mut child = Command::new(&self.program.0)
            .args(&self.program.1)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::Worker("it has no standard streams".into()));
        };
        let output = BufReader::new(output).lines();
        let mut worker = Worker { _child: child, file, input, output };
        let open = Question::Open { path: self.path.clone(), only: self.only.clone() };
        let late = || Error::Worker("it did not open the database in time".into());
        let opened = tokio::time::timeout(CATALOGUE_LIMIT, worker.ask(&open)).await;
        match opened.map_err(|_| late())?? {
            Reply::Done(()) => Ok(worker),
            Reply::Failed(message) => Err(Error::Connect(message)),
            Reply::TimedOut => Err(late()),
        }
    }
}

impl Worker {
    async fn ask<T: DeserializeOwned>(&mut self, question: &Question) -> Result<Reply<T>> {
        let mut line = serde_json::to_vec(question).map_err(failed)?;
        line.push(b'\n');
        self.input.write_all(&line).await.map_err(failed)?;
        self.input.flush().await.map_err(failed)?;
        match self.output.next_line().await.map_err(failed)? {
            Some(line) => serde_json::from_str(&line).map_err(failed),
            None => Err(Error::Worker("it ended, probably for want of memory".into())),
        }
    }
}

fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Worker(error.into())
}

/// Answers questions on standard input until it closes: the whole life of a worker process.
pub fn serve() -> Result<(), std::io::Error> {
    sqlite::contain_process();
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let mut input = BufReader::new(tokio::io::stdin()).lines();
        let mut output = tokio::io::stdout();
        let mut reader = None;
        while let Some(line) = input.next_line().await? {
            let question = serde_json::from_str(&line).map_err(std::io::Error::other)?;
            let mut line = answer(&mut reader, question).await.map_err(std::io::Error::other)?;
            line.push(b'\n');
            output.write_all(&line).await?;
            output.flush().await?;
        }
        Ok(())
    })
}

async fn answer(
    reader: &mut Option<sqlite::Reader>,
    question: Question,
) -> serde_json::Result<Vec<u8>> {
    match (question, reader.as_ref()) {
        (Question::Open { path, only }, _) => {
            let opened = sqlite::Reader::open(&path, &only).await;
            reply(opened.map(|opened| *reader = Some(opened)))
        }
        (Question::Catalogue, Some(reader)) => reply(reader.catalogue().await),
        (Question::Sources, Some(reader)) => reply(reader.sources().await),
        (Question::Run { sql, limits }, Some(reader)) => reply(reader.run(&sql, limits).await),
        (_, None) => reply::<()>(Err(Error::Worker("no database is open".into()))),
    }
}

fn reply<T: Serialize>(answered: Result<T>) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&match answered {
        Ok(answer) => Reply::Done(answer),
        Err(Error::Timeout { .. }) => Reply::TimedOut,
        Err(Error::Database { message, .. } | Error::Connect(message)) => Reply::Failed(message),
        Err(other) => Reply::Failed(other.to_string()),
    })
}

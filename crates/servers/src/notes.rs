//! Appends notes to a file: a small write tool, honest about its side effect.
//!
//! Enter at [`Server::open`]. Each note is one line of JSON, `{"key": …, "text": …}`, on the disk before the
//! call is answered. Invariant: a line is never changed or removed. With `--dedupe` a call whose idempotency
//! key was seen is acknowledged without a second line; without it every call that arrives appends, so that
//! a repeated call shows.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use perihelion_toolbox::prelude::*;
use perihelion_toolbox::{Serving, config, lines, respond};

/// The field for a caller's idempotency key in `_meta`.
pub const IDEMPOTENCY_KEY: &str = "dev.perihelion/idempotency-key";
/// Longest note, in bytes.
const MAX_NOTE_BYTES: usize = 16 * 1024;
/// Most notes listed, the newest ones.
const MAX_LISTED: usize = 500;

/// Options of `perihelion mcp notes`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// File that notes are appended to. Created if missing.
    #[arg(long, value_name = "PATH")]
    pub file: PathBuf,
    /// Acknowledge a repeated idempotency key without appending a second line.
    #[arg(long)]
    pub dedupe: bool,
}

/// Why a note was not taken or the file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot use the notes file {}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("the note is longer than {MAX_NOTE_BYTES} bytes: {0}")]
    TooLong(usize),
    #[error("the note is empty")]
    Empty,
    #[error("the writing task was aborted: {0}")]
    Aborted(#[from] tokio::task::JoinError),
}

/// One line of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
struct Note {
    /// The idempotency key of the call that wrote it, where it sent one.
    key: Option<String>,
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Append {
    /// The note, one paragraph of plain text.
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct Appended {
    /// Number of the note's line in the file, from 1.
    line: usize,
    /// The same call had been carried out before; nothing was appended this time.
    repeated: bool,
}

#[derive(Serialize, JsonSchema)]
struct Notes {
    /// In the order in which they were taken.
    notes: Vec<Note>,
    /// Older notes were left out.
    truncated: bool,
}

pub struct Server {
    book: Arc<Options>,
}

impl Server {
    /// Opens the file, making it if needed.
    ///
    /// # Errors
    /// [`Error::File`] when it cannot be written.
    pub fn open(options: &Options) -> Result<Serving, Error> {
        options.file()?;
        let mut tool_router = Self::tool_router();
        // The hint must be as true as the promise: only deduplication makes a repeated call harmless.
        if let Some(route) = tool_router.map.get_mut("append_note") {
            let annotations = ToolAnnotations::from_raw(
                Some("Append a note".into()),
                Some(false),
                Some(false),
                Some(options.dedupe),
                Some(false),
            );
            route.attr.annotations = Some(annotations);
        }
        let server = Self { book: Arc::new(options.clone()) };
        let text =
            "Keeps notes in a file. append_note writes for good; list_notes shows what is there.";
        Ok(Serving::fixed(server, tool_router, config("notes", "Notes", text.to_owned())))
    }
}

#[tool_router]
impl Server {
    #[tool(
        description = "Appends one note to the notes file. This is a lasting side effect: the note stays, and calling twice writes two notes.",
        output_schema = schema_for_output::<Appended>(),
        annotations(title = "Append a note", read_only_hint = false, destructive_hint = false, open_world_hint = false)
    )]
    async fn append_note(
        &self,
        meta: RequestMetaObject,
        Parameters(input): Parameters<Append>,
    ) -> CallToolResult {
        let key = meta.get(IDEMPOTENCY_KEY).and_then(|key| key.as_str()).map(str::to_owned);
        let book = Arc::clone(&self.book);
        let done = tokio::task::spawn_blocking(move || book.append(Note { key, text: input.text }));
        respond(done.await.map_err(Error::from).flatten(), |appended| {
            let done = if appended.repeated { "Already noted" } else { "Noted" };
            format!("{done} as line {}.", appended.line)
        })
    }

    #[tool(
        description = "Lists the notes in the order in which they were taken.",
        output_schema = schema_for_output::<Notes>(),
        annotations(title = "List notes", read_only_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn list_notes(&self) -> CallToolResult {
        let book = Arc::clone(&self.book);
        let read = tokio::task::spawn_blocking(move || book.notes()).await;
        let mut first = 0;
        let newest = read.map_err(Error::from).flatten().map(|mut notes| {
            first = notes.len().saturating_sub(MAX_LISTED);
            Notes { notes: notes.split_off(first), truncated: first > 0 }
        });
        respond(newest, |Notes { notes, truncated }| {
            let older = truncated.then(|| format!("(the first {first} notes are not listed)"));
            let numbered = (first + 1..).zip(notes);
            let numbered = numbered.map(|(line, note)| format!("{line}. {}", note.text));
            lines(older.into_iter().chain(numbered), "\n", "No notes yet.")
        })
    }
}

impl Options {
    fn append(&self, note: Note) -> Result<Appended, Error> {
        if note.text.trim().is_empty() {
            return Err(Error::Empty);
        }
        if note.text.len() > MAX_NOTE_BYTES {
            return Err(Error::TooLong(note.text.len()));
        }
        let mut file = self.file()?;
        // One writer at a time, in any process, until the file is closed: a repeat must see the first.
        file.lock().map_err(|source| self.failed(source))?;
        let bytes = self.bytes()?;
        let notes = notes(&bytes);
        let same = |known: &Note| known.key.is_some() && known.key == note.key;
        let known = notes.iter().position(same).filter(|_| self.dedupe);
        if let Some(index) = known {
            return Ok(Appended { line: index + 1, repeated: true });
        }
        let mut line = serde_json::to_string(&note).map_err(|error| self.failed(error.into()))?;
        line.push('\n');
        // A write that was torn off ends without one, and must not take this note along.
        if bytes.last().is_some_and(|last| *last != b'\n') {
            line.insert(0, '\n');
        }
        file.write_all(line.as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(|e| self.failed(e))?;
        Ok(Appended { line: notes.len() + 1, repeated: false })
    }

    fn notes(&self) -> Result<Vec<Note>, Error> {
        self.bytes().map(|bytes| notes(&bytes))
    }

    fn bytes(&self) -> Result<Vec<u8>, Error> {
        std::fs::read(&self.file).map_err(|error| self.failed(error))
    }

    fn file(&self) -> Result<File, Error> {
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.file)
            .map_err(|error| self.failed(error))
    }

    fn failed(&self, source: std::io::Error) -> Error {
        Error::File { path: self.file.clone(), source }
    }
}

/// Reads the lines. A line in another format (a torn write, an edit by hand) is shown unchanged.
fn notes(bytes: &[u8]) -> Vec<Note> {
    let text = String::from_utf8_lossy(bytes);
    let read = |line: &str| {
        serde_json::from_str(line).unwrap_or_else(|_| Note { key: None, text: line.to_owned() })
    };
    text.lines().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book(dedupe: bool) -> (tempfile::TempDir, Options) {
        let home = tempfile::tempdir().unwrap();
        let options = Options { file: home.path().join("notes.jsonl"), dedupe };
        options.file().unwrap();
        (home, options)
    }

    fn note(key: &str, text: &str) -> Note {
        Note { key: Some(key.into()), text: text.into() }
    }

    #[test]
    fn every_call_appends_a_line_unless_duplicates_are_detected() {
        let (_home, plain) = book(false);
        plain.append(note("k", "a\nb")).unwrap();
        assert_eq!(plain.append(note("k", "a\nb")).unwrap().line, 2);
        assert_eq!(plain.notes().unwrap(), [note("k", "a\nb"), note("k", "a\nb")]);

        let (_home, careful) = book(true);
        careful.append(note("k", "a")).unwrap();
        assert!(careful.append(note("k", "a")).unwrap().repeated);
        assert!(!careful.append(note("l", "a")).unwrap().repeated);
        assert!(!careful.append(Note { key: None, text: "a".into() }).unwrap().repeated);
        assert!(!careful.append(Note { key: None, text: "a".into() }).unwrap().repeated);
        assert_eq!(careful.notes().unwrap().len(), 4);
    }

    #[test]
    fn a_torn_write_spoils_no_other_note() {
        let (_home, book) = book(true);
        book.append(note("k", "whole")).unwrap();
        let mut file = book.file().unwrap();
        file.write_all(b"{\"key\":\"t\",\"text\":\"gr\xc3").unwrap();
        assert_eq!(book.append(note("l", "next")).unwrap().line, 3);
        assert!(book.append(note("l", "next")).unwrap().repeated);
        let notes = book.notes().unwrap();
        assert_eq!((&notes[0], &notes[2]), (&note("k", "whole"), &note("l", "next")));
        assert_eq!(notes.len(), 3);
    }

    #[test]
    fn two_servers_on_one_file_take_a_repeated_note_once() {
        let (_home, book) = book(true);
        let other = book.clone();
        let lines: Vec<usize> = std::thread::scope(|scope| {
            let hands: Vec<_> = [&book, &other, &book, &other]
                .map(|book| scope.spawn(|| book.append(note("k", "once")).unwrap().line))
                .into_iter()
                .collect();
            hands.into_iter().map(|hand| hand.join().unwrap()).collect()
        });
        assert_eq!(lines, [1, 1, 1, 1]);
        assert_eq!(book.notes().unwrap(), [note("k", "once")]);
    }

    #[test]
    fn empty_and_oversized_notes_are_refused() {
        let (_home, book) = book(false);
        assert!(matches!(book.append(note("k", "  ")), Err(Error::Empty)));
        assert!(matches!(book.append(note("k", &"x".repeat(20_000))), Err(Error::TooLong(20_000))));
        assert_eq!(book.notes().unwrap(), []);
    }
}

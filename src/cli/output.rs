//! The streams of output: answers and JSON to standard output, everything else to standard error.

use std::io::{BufRead as _, ErrorKind, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::SecondsFormat;
use comfy_table::{Cell, ContentArrangement, Table, presets};
use serde::Serialize;
use serde_json::{Value, json};
use terminal_size::{Width, terminal_size_of};

use super::bars::Bars;
use super::escape::shown_json;
use super::{Error, Result};
use perihelion_engine::clock;

/// The progress bars of the process; lines on standard error go above them.
pub(super) static BARS: Bars = Bars::new();

/// The target of JSON lines on standard error that are no log lines: they can contain text of models and tools.
const FOR_PEOPLE: &str = "perihelion::terminal";

static WRITTEN: AtomicBool = AtomicBool::new(false);

/// Whether lines on standard error are JSON, as the log's are.
static JSON_LINES: AtomicBool = AtomicBool::new(false);

/// Writes lines on standard error as JSON from now on, or as text.
pub(super) fn set_json_lines(json: bool) {
    JSON_LINES.store(json, Ordering::Relaxed);
    if json {
        // A panic is one line as well, with the place where it happened.
        std::panic::set_hook(Box::new(|panic| error(&panic.to_string())));
    }
}

pub(super) fn has_json_lines() -> bool {
    JSON_LINES.load(Ordering::Relaxed)
}

pub(super) fn has_written() -> bool {
    WRITTEN.load(Ordering::Relaxed)
}

/// Writes to standard output; a reader that has seen enough is no error.
pub(super) fn bytes(bytes: &[u8]) -> Result<()> {
    WRITTEN.store(true, Ordering::Relaxed);
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Error::Output(error)),
        _ => Ok(()),
    }
}

/// Writes lines to standard output, without what could steer a terminal: a pipe may well end in one.
pub(super) fn text(text: &str) -> Result<()> {
    bytes(format!("{}\n", plain(text).trim_end_matches('\n')).as_bytes())
}

/// Writes one JSON value to standard output: indented for people, on one line for programs.
pub(super) fn json<T: Serialize>(value: &T) -> Result<()> {
    let text = if std::io::stdout().is_terminal() {
        shown_json(&pretty(value)?)
    } else {
        serde_json::to_string(value).map_err(|error| Error::Output(error.into()))?
    };
    bytes(format!("{text}\n").as_bytes())
}

pub(super) fn pretty<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string_pretty(value).map_err(|error| Error::Output(error.into()))
}

/// Writes a value as JSON to programs, and as a text to people.
pub(super) fn either<T: Serialize>(
    is_json: bool,
    value: &T,
    text: impl FnOnce() -> String,
) -> Result<()> {
    if is_json { json(value) } else { self::text(&text()) }
}

/// Reports a change that was made: as JSON to programs, and as a note to people.
pub(super) fn done(is_json: bool, value: &Value, text: &str) -> Result<()> {
    if is_json {
        return json(value);
    }
    note(text);
    Ok(())
}

/// Writes a list as [`either`] does; an empty one is replaced by a note for people.
pub(super) fn listed<T: Serialize>(
    is_json: bool,
    all: &[T],
    none: &str,
    text: impl FnOnce() -> String,
) -> Result<()> {
    if all.is_empty() && !is_json {
        note(none);
        return Ok(());
    }
    either(is_json, &all, text)
}

pub(super) fn lines<T>(all: &[T], line: impl FnMut(&T) -> String) -> String {
    all.iter().map(line).collect::<Vec<_>>().join("\n")
}

pub(super) fn json_line<T: Serialize>(value: &T) -> Result<()> {
    let text = serde_json::to_string(value).map_err(|error| Error::Output(error.into()))?;
    bytes(format!("{}\n", shown_json(&text)).as_bytes())
}

/// Writes lines to standard error; a failure of that is ignored.
pub(super) fn note(text: &str) {
    let shown = plain(text);
    written("INFO", shown.trim_end_matches('\n'), str::to_owned);
}

pub(super) fn error(message: &str) {
    labelled("ERROR", "error:", RED, message);
}

pub(super) fn coded_error(code: &str, message: &str) {
    labelled("ERROR", &format!("error[{code}]:"), RED, message);
}

pub(super) fn warning(message: &str) {
    labelled("WARN", "warning:", YELLOW, message);
}

const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";

fn labelled(level: &str, label: &str, color: &str, message: &str) {
    written(level, &one_line(message), |message| {
        let label = painted(label, color, std::io::stderr().is_terminal());
        format!("{label} {message}")
    });
}

/// Writes to standard error, as a JSON line if the log is JSON.
fn written(level: &str, message: &str, as_text: impl FnOnce(&str) -> String) {
    let line = if has_json_lines() {
        let now = clock::now().to_rfc3339_opts(SecondsFormat::Micros, true);
        let fields = json!({ "message": message });
        let line =
            json!({ "timestamp": now, "level": level, "fields": fields, "target": FOR_PEOPLE });
        shown_json(&line.to_string())
    } else {
        as_text(message)
    };
    BARS.suspend(|| {
        let _ = writeln!(std::io::stderr().lock(), "{line}");
    });
}

/// Asks a person on the terminal; anything but yes is no.
pub(super) fn confirmed(question: &str) -> Result<bool> {
    eprint!("{} [y/N] ", one_line(question));
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(Error::Input)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Asks as [`confirmed`] does, unless there is no terminal.
pub(super) fn agreed(what: &'static str, name: &str, question: &str) -> Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Err(Error::Unconfirmed { what, name: name.to_owned() });
    }
    confirmed(question)
}

/// Writes lines that begin with ✓, ! or ✗ to standard output, with the marks in their colors.
pub(super) fn marked(lines: &[String]) -> Result<()> {
    let mut shown = String::new();
    for line in lines {
        let line = plain(line);
        let (mark, rest) = line.split_at(line.chars().next().map_or(0, char::len_utf8));
        let color = match mark {
            "✓" => GREEN,
            "!" => YELLOW,
            _ => RED,
        };
        shown.push_str(&painted(mark, color, std::io::stdout().is_terminal()));
        shown.push_str(rest);
        shown.push('\n');
    }
    bytes(shown.as_bytes())
}

/// Colors a word on a terminal, unless `NO_COLOR` is set.
fn painted(word: &str, color: &str, is_terminal: bool) -> String {
    if is_terminal && !is_colour_refused() {
        format!("\u{1b}[{color}m{word}\u{1b}[0m")
    } else {
        word.to_owned()
    }
}

/// Returns whether the user wants no colours, as <https://no-color.org> has it.
pub(super) fn is_colour_refused() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// Counts things: `1 tool`, `3 tools`.
pub(super) fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Removes control sequences, because models and servers write some of the text.
pub(super) fn plain(text: &str) -> String {
    let shown = |letter: &char| match letter {
        '\n' | '\t' => true,
        // Turns of direction and Unicode tags: they make a text read as another one than it is.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}' => false,
        other => !other.is_control(),
    };
    text.chars().filter(shown).collect()
}

pub(super) fn one_line(text: &str) -> String {
    plain(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Cuts a text to a number of characters, as one line; between two words unless they are long.
pub(super) fn brief(text: &str, characters: usize) -> String {
    let line = one_line(text);
    if line.char_indices().nth(characters).is_none() {
        return line;
    }
    let end = line.char_indices().nth(characters.saturating_sub(1)).map_or(0, |(at, _)| at);
    let (head, rest) = line.split_at(end);
    let is_between = rest.starts_with(' ') || head.ends_with(' ');
    let word = head.rfind(' ').filter(|at| !is_between && *at > end / 2);
    format!("{}…", head.split_at(word.unwrap_or(end)).0.trim_end())
}

/// Returns a value as people read it: a text without quotes, nothing for null.
pub(super) fn shown_value(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Lays rows out as a table: framed on a terminal, aligned elsewhere.
pub(super) fn table<const N: usize>(head: [&str; N], rows: Vec<[String; N]>) -> String {
    let is_framed = std::io::stdout().is_terminal();
    let table = laid_out(is_framed, head, rows.into_iter().map(Vec::from)).to_string();
    table.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// Lays rows out as a framed table, at most as wide as the terminal.
pub(super) fn rows(head: &[String], rows: Vec<Vec<String>>) -> String {
    laid_out(true, head.iter().map(|name| one_line(name)), rows.into_iter()).to_string()
}

fn laid_out(
    is_framed: bool,
    head: impl IntoIterator<Item: Into<Cell>>,
    rows: impl Iterator<Item = Vec<String>>,
) -> Table {
    let mut table = Table::new();
    if is_framed {
        table.load_style(presets::UTF8_HORIZONTAL_ONLY);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        if let Some((Width(columns), _)) = terminal_size_of(std::io::stdout()) {
            table.set_width(columns);
        }
    } else {
        table.load_style(presets::NOTHING);
    }
    table.set_header(head.into_iter().map(Into::into).collect::<Vec<Cell>>());
    table.add_rows(rows.map(|row| row.iter().map(|cell| one_line(cell)).collect::<Vec<_>>()));
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_a_model_cannot_steer_the_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\u{9b}1mc\rd\n\te"), "a[2Jb1mcd\n\te");
        assert_eq!(brief("one\n two  three", 9), "one two…");
        assert_eq!(brief("one two three", 12), "one two…");
        assert_eq!(brief("abcdefghij", 5), "abcd…");
    }

    #[test]
    fn things_are_counted_in_singular_and_plural() {
        assert_eq!((&*count(1, "tool"), &*count(0, "tool")), ("1 tool", "0 tools"));
        assert_eq!(painted("error:", RED, false), "error:", "a pipe is given no colours");
    }
}

//! The moving part of the terminal: one line with the present activity, and above it the answer while it is written.

use std::io::IsTerminal as _;

use crate::cli::bars::{Bar, Form, size, width};
use crate::cli::output::{BARS, one_line, plain};
use crate::cli::{markdown, output};

/// The answer is drawn again when it grew by this part of itself.
const GROWTH: usize = 32;
const FREE_LINES: usize = 4;

pub(super) struct Live {
    line: Bar,
    last: String,
    /// The streamed part of the answer, and where it is drawn; not drawn if it goes into a file.
    answer: Option<Bar>,
    writing: String,
    /// How much of it was drawn last, in bytes.
    drawn: usize,
}

impl Live {
    pub(super) fn begin() -> Option<Self> {
        if BARS.is_hidden() {
            return None;
        }
        let answer = std::io::stdout().is_terminal().then(|| BARS.add(Form::Message));
        let line = BARS.add(Form::Spinner);
        Some(Self { line, last: String::new(), answer, writing: String::new(), drawn: 0 })
    }

    /// Accepts an event, which is shown until the next one.
    pub(super) fn passing(&mut self, text: String) {
        self.last = text;
    }

    /// Updates the line; it is cut at the width of the terminal.
    pub(super) fn refresh<'a>(&self, running: impl Iterator<Item = &'a str>, tokens: u64) {
        let words = self.last.split_once(": ").map(|(who, _)| who);
        // The author of the last line is already shown.
        let others: Vec<&str> = running.filter(|node| Some(*node) != words).collect();
        let parts = [one_line(&self.last), others.join(", "), output::count(tokens, "token")];
        let parts: Vec<&str> =
            parts.iter().map(String::as_str).filter(|one| !one.is_empty()).collect();
        self.line.set_message(parts.join(" · "));
    }

    pub(super) fn write(&mut self, piece: &str) {
        self.writing.push_str(piece);
        let is_due = self.writing.len() > self.drawn + self.drawn / GROWTH;
        // An object is for programs; what is shown of it comes at the end.
        let is_prose = !self.writing.trim_start().starts_with('{');
        if let Some(answer) = self.answer.as_ref().filter(|_| is_due && is_prose) {
            self.drawn = self.writing.len();
            let (rows, columns) = size();
            let shown = markdown::shown(&plain(&self.writing));
            answer.set_message(last_lines(&shown, rows.saturating_sub(FREE_LINES), columns));
        }
    }

    /// Forgets the answer, which is written again.
    pub(super) fn write_again(&mut self) {
        self.writing.clear();
        self.drawn = 0;
        if let Some(answer) = &self.answer {
            answer.set_message(String::new());
        }
    }

    /// Restores the terminal; the complete answer follows.
    pub(super) fn end(self) {
        if let Some(answer) = self.answer {
            answer.end();
        }
        self.line.end();
    }
}

fn last_lines(text: &str, rows: usize, columns: usize) -> String {
    let mut left = rows.max(1);
    let mut lines = Vec::new();
    for line in text.lines().rev() {
        let rows = width(line).div_ceil(columns).max(1);
        let Some(rest) = left.checked_sub(rows) else { break };
        left = rest;
        lines.push(line);
    }
    lines.reverse();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_of_the_last_lines_are_shown_as_fit() {
        let text = "one\ntwo\nthree three three\n\nfour";
        assert_eq!(last_lines(text, 9, 80), text);
        assert_eq!(last_lines(text, 3, 80), "three three three\n\nfour");
        assert_eq!(last_lines(text, 3, 10), "\nfour");
        assert_eq!(last_lines("\u{1b}[1mtwo\u{1b}[0m words", 1, 9), "\u{1b}[1mtwo\u{1b}[0m words");
    }
}

//! Notices a text that repeats itself without end, as small models write it.

use crate::Manner;

/// Bytes at the end of a decision that must be one repetition.
const OF_DECISION: usize = 1_500;

/// Bytes at the end of any other text that must be one repetition: somebody may have asked for equal rows.
const OF_TEXT: usize = 6_000;

/// The longest part that is repeated, in bytes.
const PERIOD: usize = 300;

/// Bytes that arrive between two checks.
const STEP: usize = 256;

pub(super) struct Watch {
    most: usize,
    tail: Vec<u8>,
    unchecked: usize,
}

impl Watch {
    pub(super) fn new(manner: Manner) -> Self {
        let most = if manner.is_watched { OF_DECISION } else { OF_TEXT };
        Self { most, tail: Vec::new(), unchecked: 0 }
    }

    /// Takes a piece in; returns whether the text repeats itself by now.
    pub(super) fn push(&mut self, piece: &str) -> bool {
        self.tail.extend_from_slice(piece.as_bytes());
        self.unchecked += piece.len();
        if self.unchecked < STEP || self.tail.len() < self.most {
            return false;
        }
        self.unchecked = 0;
        self.tail.drain(..self.tail.len() - self.most);
        (1..=PERIOD).any(|period| self.tail[period..] == self.tail[..self.most - period])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeats(text: &str) -> bool {
        let mut watch = Watch::new(Manner { is_watched: true, ..Manner::default() });
        text.as_bytes().chunks(7).any(|piece| watch.push(&String::from_utf8_lossy(piece)))
    }

    #[test]
    fn a_text_that_repeats_itself_is_noticed_and_a_long_table_is_not() {
        assert!(repeats(&"{\"plan\": [\"look it up\", ".repeat(200)));
        assert!(repeats(&" ".repeat(2_000)));
        let rows: String = (0..500).map(|row| format!("| {row} | 0 | 0 | 0 |\n")).collect();
        assert!(!repeats(&rows));
        assert!(!repeats(&"-".repeat(1_000)), "a rule between two parts of a text");
    }
}

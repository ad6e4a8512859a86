//! The text of a run as it is sent to a client piece by piece.
//!
//! Invariant: a client gets no message without its beginning, and no two messages mixed.

const BETWEEN: &str = "\n\n";

/// The text that was sent piece by piece: of each step, the message that began first.
#[derive(Default)]
pub(crate) struct SentText {
    pub text: String,
    /// The message of the step under way.
    message: Option<String>,
    /// Whether another message of a step was left out.
    is_partial: bool,
}

impl SentText {
    /// Accepts a piece of a message, and returns the words to send.
    pub fn add(&mut self, message: &str, piece: String) -> Option<String> {
        let is_new = self.message.is_none();
        if self.message.get_or_insert_with(|| message.to_owned()) != message {
            self.is_partial = true;
            return None;
        }
        let is_further = is_new && !self.text.is_empty();
        let piece = if is_further { format!("{BETWEEN}{piece}") } else { piece };
        self.text.push_str(&piece);
        Some(piece)
    }

    pub fn end_step(&mut self) {
        self.message = None;
    }

    /// Returns the words of the whole text that were not sent: its end, or all of it where another message was sent.
    pub fn rest(&self, whole: &str) -> Option<String> {
        let rest = match whole.strip_prefix(self.text.as_str()) {
            Some(rest) => rest.to_owned(),
            None if self.is_partial && !self.text.ends_with(whole) => format!("{BETWEEN}{whole}"),
            None => String::new(),
        };
        Some(rest).filter(|rest| !rest.is_empty())
    }

    /// Whether the whole text is another one than that which was sent, and is not sent as well.
    pub fn is_replaced_by(&self, whole: &str) -> bool {
        !self.is_partial && !whole.starts_with(&self.text) && !self.text.ends_with(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(pieces: &[(&str, &str)]) -> (SentText, String) {
        let mut sent = SentText::default();
        let mut heard = String::new();
        for (message, piece) in pieces {
            match *message {
                "" => sent.end_step(),
                message => heard.extend(sent.add(message, (*piece).to_owned())),
            }
        }
        (sent, heard)
    }

    #[test]
    fn messages_are_sent_one_after_another_and_none_without_its_beginning() {
        let (two, heard) =
            sent(&[("1", "It "), ("1", "rains."), ("", ""), ("2", "Take "), ("2", "care.")]);
        assert_eq!(heard, "It rains.\n\nTake care.");
        assert_eq!(two.rest("Take care."), None);
        // At once: the first is sent as it is written, and the answer at the end.
        let (at_once, heard) =
            sent(&[("1", "It "), ("2", "Take "), ("1", "rains."), ("2", "care.")]);
        assert_eq!(heard, "It rains.");
        assert_eq!(at_once.rest("Take care.").as_deref(), Some("\n\nTake care."));
        assert_eq!(at_once.rest("It rains."), None);
    }

    /// A process died while the message was written, and the model answers in other words then.
    #[test]
    fn an_answer_in_other_words_than_its_beginning_is_sent_whole() {
        let (begun, heard) =
            sent(&[("qa", "The answer "), ("qa.1", "An answer of"), ("qa.1", " version 2")]);
        assert_eq!(heard, "The answer ");
        let whole = "An answer of version 2";
        assert_eq!(begun.rest(whole), Some(format!("\n\n{whole}")));
    }

    #[test]
    fn the_end_of_an_answer_is_sent_where_it_was_not_streamed() {
        let (begun, _) = sent(&[("qa", "Pay 100")]);
        assert_eq!(begun.rest("Pay 100 to Ann.").as_deref(), Some(" to Ann."));
        assert_eq!(begun.rest("Pay."), None, "a state that has less changes nothing");
    }
}

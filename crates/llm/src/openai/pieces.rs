//! The text of a stream, of whose pieces each may repeat what came before.

/// The pieces of a text, from endpoints that send them and from those that repeat the whole text with each.
#[derive(Default)]
pub(super) struct Pieces {
    /// The text so far; the last piece while the form of the pieces is uncertain.
    pub whole: String,
    /// The pieces one after the other, while their form is uncertain.
    joined: String,
    /// Whether each piece is the whole text so far.
    repeats: Option<bool>,
    /// The first piece was long enough to be given at once.
    is_given: bool,
}

impl Pieces {
    /// Letters and digits that no piece repeats by accident.
    const CERTAIN: usize = 8;

    /// Accepts a piece and returns what is new in it; `is_whole` means that it is sent as the whole text.
    pub fn take(&mut self, piece: String, is_whole: bool) -> String {
        if piece.is_empty() {
            return piece;
        }
        let is_certain =
            |text: &str| text.chars().filter(|c| c.is_alphanumeric()).count() >= Self::CERTAIN;
        let before = std::mem::take(&mut self.whole);
        let fresh = piece.strip_prefix(before.as_str()).map(str::to_owned);
        match (self.repeats, fresh) {
            (None, _) if before.is_empty() => {
                self.is_given = is_certain(&piece);
                self.joined.clone_from(&piece);
                self.whole = piece;
                if self.is_given { self.whole.clone() } else { String::new() }
            }
            (Some(repeats), Some(fresh)) if repeats || is_whole && is_certain(&before) => {
                self.whole = piece;
                fresh
            }
            (None, Some(fresh)) if !fresh.is_empty() || is_certain(&before) => {
                self.repeats = is_certain(&before).then_some(true);
                self.joined.push_str(&piece);
                self.whole = piece;
                match self.repeats {
                    None => String::new(),
                    Some(_) if self.is_given => fresh,
                    Some(_) => self.whole.clone(),
                }
            }
            (None, _) => {
                self.repeats = Some(false);
                self.whole = std::mem::take(&mut self.joined) + &piece;
                if self.is_given { piece } else { self.whole.clone() }
            }
            _ => {
                self.whole = before + &piece;
                piece
            }
        }
    }

    /// Returns the remaining text at the end of the stream.
    pub fn rest(&mut self) -> String {
        if self.repeats.replace(false).is_some() || self.is_given {
            return String::new();
        }
        if !self.whole.chars().any(char::is_alphabetic) {
            self.whole = std::mem::take(&mut self.joined);
        }
        self.whole.clone()
    }
}

//! Bytes and characters of a text: the parser counts the first, readers the second.

/// Turns places counted in bytes into places counted in characters; they must be asked for in ascending order for speed.
pub(crate) struct Places<'a> {
    text: &'a str,
    byte: usize,
    character: usize,
}

impl<'a> Places<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, byte: 0, character: 0 }
    }

    /// Returns the place in characters of a place in bytes, which lies on a character boundary.
    pub fn character(&mut self, byte: usize) -> usize {
        if byte < self.byte {
            self.byte = 0;
            self.character = 0;
        }
        let between = self.text.get(self.byte..byte).unwrap_or_default();
        self.character += between.chars().count();
        self.byte = byte;
        self.character
    }

    /// Returns the place in bytes of a place in characters; none beyond the end of the text.
    pub fn byte(&mut self, character: usize) -> Option<usize> {
        if character < self.character {
            self.byte = 0;
            self.character = 0;
        }
        let rest = self.text.get(self.byte..)?;
        let mut steps = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
        self.byte += steps.nth(character - self.character)?;
        self.character = character;
        Some(self.byte)
    }

    /// Returns the part between two places counted in characters; none where it does not lie in the text.
    pub fn part(&mut self, start: usize, end: usize) -> Option<&'a str> {
        let first = self.byte(start)?;
        let last = if end < start { return None } else { self.byte(end)? };
        self.text.get(first..last)
    }
}

/// Returns the part of a text between two places counted in characters; none where it does not lie in it.
pub(crate) fn part(text: &str, start: usize, end: usize) -> Option<&str> {
    Places::new(text).part(start, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_counted_and_not_bytes() {
        let text = "größer € 10";
        let byte = text.find('€').unwrap();
        let mut places = Places::new(text);
        assert_eq!(places.character(byte), 7);
        assert_eq!(places.byte(7), Some(byte));
        assert_eq!(places.character(0), 0);
        assert_eq!(part(text, 7, 8), Some("€"));
        assert_eq!(part(text, 0, 11), Some(text));
        assert_eq!(part(text, 11, 11), Some(""));
        assert_eq!(part(text, 0, 12), None);
        assert_eq!(part(text, 3, 2), None);
    }
}

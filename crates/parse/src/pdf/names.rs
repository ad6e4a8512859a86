//! What glyphs are where a file does not say it in words: their fonts know, or the codes are those of Unicode.

use std::collections::HashMap;

use hayro_interpret::font::Glyph;
use skrifa::{FontRef, MetadataProvider as _};

/// Letters of glyphs, by the fonts that were asked.
#[derive(Default)]
pub(super) struct Names(HashMap<u128, HashMap<u32, char>>);

impl Names {
    pub fn of(&mut self, glyph: &Glyph<'_>) -> Option<char> {
        let Glyph::Outline(outline) = glyph else { return None };
        let id = outline.glyph_id().to_u32();
        let code = glyph.char_code();
        let own = outline.font_data().and_then(|font| {
            let letters =
                self.0.entry(font.cache_key).or_insert_with(|| letters((*font.data).as_ref()));
            letters.get(&id).copied()
        });
        // Where codes are not the numbers of glyphs, and no map says what they are, they are those of Unicode.
        let plain = char::from_u32(code).filter(|_| id != code && id != 0 && code > 0xFF);
        own.or(plain.filter(|c| c.is_alphanumeric()))
    }
}

/// Returns which letters the glyphs of a font show: the plain ones where several share one.
fn letters(font: &[u8]) -> HashMap<u32, char> {
    let mut letters: HashMap<u32, char> = HashMap::new();
    let Ok(font) = FontRef::new(font) else { return letters };
    for (code, glyph) in font.charmap().mappings() {
        let Some(c) = char::from_u32(code) else { continue };
        let is_private = matches!(code, 0xE000..=0xF8FF);
        if !is_private && glyph.to_u32() != 0 {
            letters.entry(glyph.to_u32()).and_modify(|own| *own = (*own).min(c)).or_insert(c);
        }
    }
    letters
}

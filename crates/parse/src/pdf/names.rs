//! What glyphs are where a file does not say it in words: their fonts know, or the codes are those of Unicode.

use std::collections::{HashMap, HashSet};

use hayro_interpret::font::Glyph;
use skrifa::{FontRef, MetadataProvider as _};

/// What fonts say of their glyphs.
#[derive(Default)]
pub(super) struct Names {
    /// Letters of glyphs, by the fonts that were asked.
    letters: HashMap<u128, HashMap<u32, char>>,
    /// Fonts whose codes are those of Unicode.
    plain: HashSet<u128>,
}

impl Names {
    pub fn of(&mut self, glyph: &Glyph<'_>) -> Option<char> {
        let Glyph::Outline(outline) = glyph else { return None };
        let font = outline.font_data()?;
        let id = outline.glyph_id().to_u32();
        let code = glyph.char_code();
        let read = || letters((*font.data).as_ref());
        let letters = self.letters.entry(font.cache_key).or_insert_with(read);
        if let Some(own) = letters.get(&id) {
            return Some(*own);
        }
        // Where codes are not the numbers of glyphs, those of Unicode are known by letters of another script.
        let told = char::from_u32(code).filter(|_| id != code && id != 0)?;
        if told.is_alphabetic() && matches!(code, 0x370..=0x52F | 0x590..=0x6FF | 0xFB1D..=0xFEFC) {
            self.plain.insert(font.cache_key);
        }
        self.plain.contains(&font.cache_key).then_some(told)
    }

    /// Returns how many fonts are known to have the codes of Unicode.
    pub fn plain(&self) -> usize {
        self.plain.len()
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

//! The letters of glyphs that the font reader does not know: by damaged maps, by their fonts, or by Unicode codes.

use std::collections::{HashMap, HashSet};

use hayro_interpret::font::Glyph;
use hayro_interpret::hayro_cmap::CMap;
use hayro_interpret::hayro_syntax::Pdf;
use hayro_interpret::hayro_syntax::object::{Object, Stream};
use skrifa::{FontRef, MetadataProvider as _};

type Map = HashMap<u32, String>;

pub(super) struct Names<'d> {
    document: &'d Pdf,
    /// Maps with a bad entry, which the font reader ignores completely; read if a letter is missing.
    damaged: Option<Vec<Map>>,
    /// Letters of glyphs, by the fonts that were asked.
    letters: HashMap<u128, HashMap<u32, char>>,
    /// Fonts whose codes are those of Unicode.
    plain: HashSet<u128>,
}

impl<'d> Names<'d> {
    pub fn new(document: &'d Pdf) -> Self {
        Self { document, damaged: None, letters: HashMap::new(), plain: HashSet::new() }
    }

    pub fn of(&mut self, glyph: &Glyph<'_>) -> Option<String> {
        let code = glyph.char_code();
        let font = match glyph {
            Glyph::Outline(outline) => outline.font_data().map(|font| (font, outline.glyph_id())),
            Glyph::Type3(_) => None,
        };
        let Some((font, id)) = font else { return self.mapped(code) };
        let id = id.to_u32();
        let read = || letters((*font.data).as_ref());
        let letters = self.letters.entry(font.cache_key).or_insert_with(read);
        if let Some(own) = letters.get(&id) {
            return Some(own.to_string());
        }
        if let Some(mapped) = self.mapped(code) {
            return Some(mapped);
        }
        // Where codes are not the numbers of glyphs, those of Unicode are known by letters of another script.
        let unicode = char::from_u32(code).filter(|_| id != code && id != 0)?;
        if unicode.is_alphabetic()
            && matches!(code, 0x370..=0x52F | 0x590..=0x6FF | 0xFB1D..=0xFEFC)
        {
            self.plain.insert(font.cache_key);
        }
        self.plain.contains(&font.cache_key).then(|| unicode.to_string())
    }

    /// Returns how many fonts are known to have the codes of Unicode.
    pub fn plain(&self) -> usize {
        self.plain.len()
    }

    /// Returns the letters of a code if the damaged maps agree on it.
    fn mapped(&mut self, code: u32) -> Option<String> {
        let maps = self.damaged.get_or_insert_with(|| damaged(self.document));
        let mut found = maps.iter().filter_map(|map| map.get(&code));
        let first = found.next()?;
        found.all(|other| other == first).then(|| first.clone())
    }
}

fn damaged(document: &Pdf) -> Vec<Map> {
    let maps = document.objects().into_iter().filter_map(|object| {
        let Object::Dict(font) = object else { return None };
        let data = font.get::<Stream<'_>>("ToUnicode")?.decoded().ok()?;
        let is_read = CMap::parse(&data, |_| None::<&[u8]>).is_some();
        (!is_read).then(|| entries(&String::from_utf8_lossy(&data)))
    });
    maps.collect()
}

/// Reads the entries of a map that can be read (ISO 32000-1, 9.10.3).
fn entries(text: &str) -> Map {
    let mut map = Map::new();
    let bodies = |kind: &str| -> Vec<&str> {
        let ends = text.split(&format!("begin{kind}")).skip(1).collect::<Vec<_>>();
        ends.into_iter().filter_map(|body| body.split(&format!("end{kind}")).next()).collect()
    };
    // Each text in angle brackets, and the text behind it.
    let parts = |body: &'_ str| -> Vec<(String, String)> {
        let parts = body.split('<').skip(1).filter_map(|part| part.split_once('>'));
        parts.map(|(hex, after)| (hex.split_whitespace().collect(), after.to_owned())).collect()
    };
    let code = |hex: &str| u32::from_str_radix(hex, 16).ok();
    for body in bodies("bfchar") {
        for pair in parts(body).chunks_exact(2) {
            map.extend(code(&pair[0].0).zip(units(&pair[1].0, 0)));
        }
    }
    for body in bodies("bfrange") {
        let parts = parts(body);
        let mut rest = parts.as_slice();
        while let [(first, _), (last, after), more @ ..] = rest {
            let (Some(first), Some(last)) = (code(first), code(last)) else { break };
            let codes = first..=last.min(first.saturating_add(0xFFFF));
            if after.contains('[') {
                let count = more.iter().position(|(_, after)| after.contains(']'));
                let (listed, more) = more.split_at(count.map_or(more.len(), |at| at + 1));
                map.extend(
                    codes.zip(listed).filter_map(|(code, (hex, _))| Some((code, units(hex, 0)?))),
                );
                rest = more;
            } else {
                let [(base, _), more @ ..] = more else { break };
                map.extend(codes.zip(0..).filter_map(|(code, at)| Some((code, units(base, at)?))));
                rest = more;
            }
        }
    }
    map
}

/// Reads letters, and adds a distance to the last one.
fn units(hex: &str, further: u16) -> Option<String> {
    let digits = hex.as_bytes().chunks(if hex.len() == 2 { 2 } else { 4 });
    let read = |digits: &[u8]| u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
    let mut units: Vec<u16> = digits.map(read).collect::<Option<_>>()?;
    let last = units.last_mut()?;
    *last = last.checked_add(further)?;
    String::from_utf16(&units).ok()
}

/// Returns the letters of a font's glyphs: the plain ones if several share one.
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

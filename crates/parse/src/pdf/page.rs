//! Paints a page and keeps its letters with their places.

use std::collections::HashSet;

use hayro_interpret::font::{Glyph, GlyphRun};
use hayro_interpret::hayro_cmap::BfString;
use hayro_interpret::hayro_syntax::page::Page;
use hayro_interpret::hayro_syntax::xref::XRef;
use hayro_interpret::kurbo::{BezPath, Point, Rect};
use hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps,
    InterpreterCache, InterpreterSettings, SoftMask, TransformExt as _, interpret_page,
};

/// Most letters of a page.
const MOST_LETTERS: usize = 200_000;

/// A letter (or ligature) on a page; lengths are in points, and y grows downwards.
#[derive(Clone, Debug)]
pub(super) struct Letter {
    pub text: String,
    pub left: f64,
    pub right: f64,
    pub baseline: f64,
    pub size: f64,
}

/// What a page shows.
#[derive(Default)]
pub(super) struct Painted {
    pub letters: Vec<Letter>,
    pub pictures: usize,
    /// Letters whose font does not say what they are.
    pub unknown: usize,
    /// Where each letter was painted: some are painted twice, for a shadow or a bold look.
    seen: HashSet<(String, i64, i64, i64)>,
}

pub(super) fn paint<'a>(
    page: &'a Page<'a>,
    xref: &'a XRef,
    cache: &InterpreterCache<'a>,
) -> Painted {
    let mut painted = Painted::default();
    let (width, height) = page.render_dimensions();
    let bounds = Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
    let transform = page.initial_transform(true).to_kurbo();
    let settings = InterpreterSettings::default();
    let mut context = Context::new(transform, bounds, cache, xref, settings);
    interpret_page(page, &mut context, &mut painted);
    painted
}

impl<'a> Device<'a> for Painted {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, _: &DrawMode) {
        for glyph in run.glyphs() {
            if self.letters.len() >= MOST_LETTERS {
                return;
            }
            let (advance, unit) = match &**glyph {
                Glyph::Outline(outline) => (outline.advance_width(), 1000.0),
                Glyph::Type3(own) => (own.advance_width(), 1000.0),
            };
            let transform = props.transform * glyph.transform();
            let advance = f64::from(advance.unwrap_or(500.0));
            let origin = transform * Point::ZERO;
            let end = transform * Point::new(advance, 0.0);
            let top = transform * Point::new(0.0, unit);
            let text = match glyph.as_unicode() {
                Some(BfString::Char(c)) => c.to_string(),
                Some(BfString::String(text)) => text,
                None => {
                    self.unknown += 1;
                    continue;
                }
            };
            let text = super::direction::painted(&text);
            if text.is_empty() {
                continue;
            }
            let size = (top - origin).hypot();
            if !size.is_finite() || size < 0.5 {
                continue;
            }
            // Turned text is laid as though it were not: its own line becomes a row at its place.
            let turned = (end.y - origin.y).abs() > (end.x - origin.x).abs();
            let (left, right, baseline) = if turned {
                (origin.y.min(end.y), origin.y.max(end.y), origin.x + 100_000.0)
            } else {
                (origin.x.min(end.x), origin.x.max(end.x), origin.y)
            };
            // Narrow letters stand close to each other: some Arabic lines are lengthened by many of one kind.
            let near = |at: f64, step: f64| (at / step).round() as i64;
            let beside = (size / 8.0).min((right - left) * 0.6).max(size / 100.0);
            // Forms of one letter that differ in width have grids of their own.
            let grid = near(beside, size / 1000.0);
            let place = (text.clone(), grid, near(left, beside), near(baseline, size / 8.0));
            if !self.seen.insert(place) && text != " " {
                continue;
            }
            self.letters.push(Letter { text, left, right, baseline, size });
        }
    }

    fn draw_image(&mut self, _: Image<'a, '_>, _: ImageDrawProps<'a>) {
        self.pictures += 1;
    }

    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {}
    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {}
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}

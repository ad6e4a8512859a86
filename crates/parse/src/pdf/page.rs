//! Paints a page and keeps its letters with their places.

use std::collections::BTreeMap;

use hayro_interpret::font::{Glyph, GlyphRun};
use hayro_interpret::hayro_cmap::BfString;
use hayro_interpret::hayro_syntax::page::Page;
use hayro_interpret::hayro_syntax::xref::XRef;
use hayro_interpret::kurbo::{BezPath, Point, Rect, Vec2};
use hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps,
    InterpreterCache, InterpreterSettings, SoftMask, TransformExt as _, interpret_page,
};

use super::FEWEST;
use super::names::Names;
use super::picture::Pictures;

const MOST_LETTERS: usize = 200_000;

/// Lines that are turned by fewer degrees count as level.
const ASKEW: f64 = 2.0;

/// A letter (or ligature) on a page; lengths are in points along the line and across it, downwards.
#[derive(Clone, Debug)]
pub(super) struct Letter {
    pub text: String,
    pub left: f64,
    pub right: f64,
    pub baseline: f64,
    pub size: f64,
    /// The font size in horizontal direction: less than `size` for condensed letters.
    pub em: f64,
    /// The string that it was painted with.
    pub string: usize,
    /// A space was painted before it.
    pub is_apart: bool,
}

/// Letters whose lines run in one direction.
pub(super) struct Side {
    pub letters: Vec<Letter>,
    /// The page's height for a reader of these lines.
    pub height: f64,
    /// Its lines are neither level nor upright.
    pub is_slanted: bool,
}

pub(super) struct Painted<'n, 'd> {
    /// Letters by the degrees by which their lines are turned.
    turned: BTreeMap<i64, Vec<Letter>>,
    bounds: Rect,
    pub names: &'n mut Names<'d>,
    strings: usize,
    count: usize,
    /// The page has letters beyond the limit, which are not read.
    has_more: bool,
    pub pictures: usize,
    /// The area of the pictures, in square points; those under others count, too.
    covered: f64,
    pub kept: Option<Pictures>,
    /// Letters whose font does not name them.
    pub unknown: usize,
    /// Letters and digits.
    pub known: usize,
}

pub(super) fn paint<'a, 'n, 'd>(
    page: &'a Page<'a>,
    xref: &'a XRef,
    cache: &InterpreterCache<'a>,
    names: &'n mut Names<'d>,
    kept: Option<Pictures>,
) -> Painted<'n, 'd> {
    let (width, height) = page.render_dimensions();
    let bounds = Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
    let mut painted = Painted {
        turned: BTreeMap::new(),
        bounds,
        names,
        strings: 0,
        count: 0,
        has_more: false,
        pictures: 0,
        covered: 0.0,
        kept,
        unknown: 0,
        known: 0,
    };
    let transform = page.initial_transform(true).to_kurbo();
    let settings = InterpreterSettings::default();
    let mut context = Context::new(transform, bounds, cache, xref, settings);
    interpret_page(page, &mut context, &mut painted);
    painted
}

impl Painted<'_, '_> {
    /// Returns whether the page is a picture, with no more text than a stamp or a footer has.
    pub fn is_scan(&self) -> bool {
        /// Letters and digits of a stamp at most.
        const STAMP: usize = 200;
        let is_covered = self.covered * 2.0 > self.bounds.area();
        self.pictures > 0 && (self.known < FEWEST || (self.known < STAMP && is_covered))
    }

    /// Returns whether the page has more letters than are read.
    pub fn is_cut(&self) -> bool {
        self.has_more
    }

    /// Returns the letters by the direction of their lines, the most frequent first; letters that were painted twice
    /// appear once.
    pub fn sides(&mut self) -> Vec<Side> {
        let bounds = self.bounds;
        let sides = std::mem::take(&mut self.turned).into_iter().map(|(degrees, letters)| {
            let corners = [
                (bounds.x0, bounds.y0),
                (bounds.x1, bounds.y0),
                (bounds.x0, bounds.y1),
                (bounds.x1, bounds.y1),
            ];
            let seen = corners.map(|corner| along(degrees, corner.into()));
            let left = seen.iter().map(|corner| corner.x).fold(f64::MAX, f64::min);
            let top = seen.iter().map(|corner| corner.y).fold(f64::MAX, f64::min);
            let bottom = seen.iter().map(|corner| corner.y).fold(f64::MIN, f64::max);
            let moved = letters.into_iter().map(|letter| Letter {
                left: letter.left - left,
                right: letter.right - left,
                baseline: letter.baseline - top,
                ..letter
            });
            Side {
                letters: super::twice::once(moved.collect()),
                height: bottom - top,
                is_slanted: degrees % 90 != 0,
            }
        });
        let mut sides: Vec<Side> = sides.collect();
        sides.sort_by_key(|side| std::cmp::Reverse(side.letters.len()));
        sides
    }
}

/// Returns the position of a point for a reader of lines that are turned by a number of degrees.
fn along(degrees: i64, point: Point) -> Point {
    let (sin, cos) = match degrees {
        0 => (0.0, 1.0),
        90 => (1.0, 0.0),
        180 => (0.0, -1.0),
        270 => (-1.0, 0.0),
        degrees => (degrees as f64).to_radians().sin_cos(),
    };
    Point::new(point.x * cos + point.y * sin, point.y * cos - point.x * sin)
}

/// Returns by how many degrees, from 0 to 359, a line in this direction is turned.
fn turn(direction: Vec2) -> i64 {
    let degrees = direction.atan2().to_degrees();
    let quarter = (degrees / 90.0).round() * 90.0;
    let degrees = if (degrees - quarter).abs() < ASKEW { quarter } else { degrees.round() };
    (degrees as i64).rem_euclid(360)
}

impl<'a> Device<'a> for Painted<'_, '_> {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, _: &DrawMode) {
        self.strings += 1;
        for glyph in run.glyphs() {
            if self.count >= MOST_LETTERS {
                self.has_more = true;
                return;
            }
            let (advance, unit) = match &**glyph {
                Glyph::Outline(outline) => (outline.advance_width(), 1000.0),
                Glyph::Type3(own) => (own.advance_width(), 1000.0),
            };
            let transform = props.transform * glyph.transform();
            let advance = f64::from(advance.unwrap_or(500.0));
            let origin = transform * Point::ZERO;
            let size = (transform * Point::new(0.0, unit) - origin).hypot();
            let direction = transform * Point::new(unit, 0.0) - origin;
            let text = match glyph.as_unicode() {
                Some(BfString::Char(c)) => c.to_string(),
                Some(BfString::String(text)) => text,
                None => match self.names.of(glyph) {
                    Some(text) => text,
                    None => {
                        self.unknown += 1;
                        continue;
                    }
                },
            };
            let text = super::direction::painted(&text);
            // Letters far beyond the page are not visible.
            let near = self.bounds.inflate(self.bounds.width(), self.bounds.height());
            if text.is_empty() || !size.is_finite() || size < 0.5 || !near.contains(origin) {
                continue;
            }
            let degrees = turn(direction);
            let start = along(degrees, origin);
            let end = along(degrees, transform * Point::new(advance, 0.0));
            self.count += 1;
            self.known += usize::from(text.chars().any(char::is_alphanumeric));
            self.turned.entry(degrees).or_default().push(Letter {
                text,
                left: start.x.min(end.x),
                right: start.x.max(end.x),
                baseline: start.y,
                size,
                em: direction.hypot().clamp(size / 10.0, size),
                string: self.strings,
                is_apart: false,
            });
        }
    }

    fn draw_image(&mut self, image: Image<'a, '_>, props: ImageDrawProps<'a>) {
        self.pictures += 1;
        let size = Rect::new(0.0, 0.0, f64::from(image.width()), f64::from(image.height()));
        let seen = props.transform.transform_rect_bbox(size).intersect(self.bounds);
        self.covered += seen.area().max(0.0);
        if let Some(kept) = &mut self.kept {
            kept.add(&image, props.transform);
        }
    }

    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {}
    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {}
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}

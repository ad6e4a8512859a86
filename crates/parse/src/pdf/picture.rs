//! Puts the pictures of a page together, as they lie on it.

use hayro_interpret::kurbo::{Affine, Point, Rect};
use hayro_interpret::{Image, ImageData, LumaData, Paint};

/// Pixels of a page at most; its pictures together may have twice as many.
const MOST_PIXELS: f64 = 40e6;

/// Pixels that are painted at most, those under others too.
const MOST_PAINTED: f64 = 4.0 * MOST_PIXELS;

/// Dots per inch at most: letters do not become clearer with more.
const MOST_DPI: f64 = 400.0;

/// Points per inch.
const POINTS: f64 = 72.0;

/// Shades, or opacities, of a picture's dots.
struct Dots {
    width: usize,
    height: usize,
    shades: Vec<u8>,
}

impl Dots {
    fn of(luma: LumaData) -> Self {
        Self { width: luma.width as usize, height: luma.height as usize, shades: luma.data }
    }

    /// Returns the dot at a place in the unit square.
    fn at(&self, place: Point) -> u8 {
        let column = ((place.x * self.width as f64) as usize).min(self.width.saturating_sub(1));
        let row = ((place.y * self.height as f64) as usize).min(self.height.saturating_sub(1));
        self.shades.get(row * self.width + column).copied().unwrap_or(u8::MAX)
    }
}

struct Placed {
    shades: Dots,
    opacity: Option<Dots>,
    /// From the unit square to the page.
    transform: Affine,
}

#[derive(Default)]
pub(super) struct Pictures {
    placed: Vec<Placed>,
    pixels: usize,
}

impl Pictures {
    /// Returns the page in shades of grey as a portable graymap, and its dots per inch.
    pub fn page(&self, (width, height): (f32, f32)) -> Option<(Vec<u8>, u32)> {
        let bounds = Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
        let finest = self.placed.iter().map(Placed::density).fold(0.0, f64::max);
        let room = (MOST_PIXELS / bounds.area().max(1.0)).sqrt();
        let scale = finest.min(MOST_DPI / POINTS).min(room);
        let columns = (bounds.width() * scale) as usize;
        let rows = (bounds.height() * scale) as usize;
        if columns == 0 || rows == 0 {
            return None;
        }
        let mut page = format!("P5\n{columns} {rows}\n255\n").into_bytes();
        let start = page.len();
        page.resize(start + columns * rows, u8::MAX);
        let whole = Rect::new(0.0, 0.0, columns as f64, rows as f64);
        let mut left = MOST_PAINTED;
        for placed in &self.placed {
            let to_page = Affine::scale(scale) * placed.transform;
            let seen = to_page.transform_rect_bbox(Rect::new(0.0, 0.0, 1.0, 1.0));
            let seen = seen.expand().intersect(whole);
            left -= seen.area();
            if left < 0.0 {
                break;
            }
            let inverse = to_page.inverse();
            for row in seen.y0 as usize..seen.y1 as usize {
                for column in seen.x0 as usize..seen.x1 as usize {
                    let middle = Point::new(column as f64 + 0.5, row as f64 + 0.5);
                    placed.paint(inverse * middle, &mut page[start + row * columns + column]);
                }
            }
        }
        Some((page, (scale * POINTS).round() as u32))
    }

    pub fn add(&mut self, image: &Image<'_, '_>, transform: Affine) {
        let size = (f64::from(image.width()), f64::from(image.height()));
        let transform = transform * Affine::scale_non_uniform(size.0, size.1);
        match image {
            Image::Raster(raster) => raster.with_rgba(
                |data, opacity| {
                    let shades = match data {
                        ImageData::Luma(luma) => Dots::of(luma),
                        ImageData::Rgb(rgb) => Dots {
                            width: rgb.width as usize,
                            height: rgb.height as usize,
                            shades: rgb
                                .data
                                .as_chunks()
                                .0
                                .iter()
                                .map(|&[r, g, b]| grey(r, g, b))
                                .collect(),
                        },
                    };
                    self.keep(shades, opacity.map(Dots::of), transform);
                },
                None,
            ),
            Image::Stencil(stencil) => stencil.with_stencil(
                |mask, paint| {
                    let shade = match paint {
                        Paint::Color(color) => {
                            let [red, green, blue, _] = color.to_rgba().to_rgba8();
                            grey(red, green, blue)
                        }
                        Paint::Pattern(_) => 0,
                    };
                    let shades = Dots { width: 1, height: 1, shades: vec![shade] };
                    self.keep(shades, Some(Dots::of(mask)), transform);
                },
                None,
            ),
        }
    }

    fn keep(&mut self, shades: Dots, opacity: Option<Dots>, transform: Affine) {
        let dots = shades.shades.len() + opacity.as_ref().map_or(0, |dots| dots.shades.len());
        let is_flat = transform.determinant().abs() < f64::EPSILON || !transform.is_finite();
        if dots > 0 && !is_flat && ((self.pixels + dots) as f64) < 2.0 * MOST_PIXELS {
            self.pixels += dots;
            self.placed.push(Placed { shades, opacity, transform });
        }
    }
}

impl Placed {
    /// Returns the dots per point across it.
    fn density(&self) -> f64 {
        let across = self.opacity.as_ref().map_or(0, |dots| dots.width).max(self.shades.width);
        let length = (self.transform * Point::new(1.0, 0.0) - self.transform * Point::ZERO).hypot();
        across as f64 / length.max(1.0)
    }

    fn paint(&self, place: Point, shade: &mut u8) {
        if (0.0..1.0).contains(&place.x) && (0.0..1.0).contains(&place.y) {
            let opacity = u32::from(self.opacity.as_ref().map_or(u8::MAX, |dots| dots.at(place)));
            let own = u32::from(self.shades.at(place)) * opacity;
            *shade = ((own + u32::from(*shade) * (255 - opacity)) / 255) as u8;
        }
    }
}

fn grey(red: u8, green: u8, blue: u8) -> u8 {
    ((u32::from(red) * 77 + u32::from(green) * 150 + u32::from(blue) * 29) >> 8) as u8
}

//! Paints the picture as pixels, for places that show no SVG: mail, chats, slides.
//!
//! It reads the few elements that `svg` writes. Text is set in the font of the program, so every machine paints the same.

use std::io::Write as _;

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use roxmltree::{Document, Node};
use skrifa::instance::{LocationRef, Size};
use skrifa::outline::{DrawSettings, OutlinePen};
use skrifa::{FontRef, GlyphId, MetadataProvider as _};
use zeno::{Command, Fill, Mask, PathBuilder as _, PathData as _, Stroke, Style, Transform};

/// Pixels for each unit of the drawing, so that it is sharp on dense screens.
const SCALE: f32 = 2.0;

/// Most pixels of a side; a drawing of [`draw`](super::draw) has 1,440 by 840.
const MOST: f32 = 4_096.0;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot draw the chart as PNG: the SVG is not valid")]
    Xml(#[from] roxmltree::Error),
    #[error("cannot draw the chart as PNG: its sides must have 1 to 2,048 units")]
    Size,
    #[error("cannot draw the chart as PNG: the font is not readable")]
    Font(#[from] skrifa::raw::ReadError),
    #[error("cannot draw the chart as PNG: compression failed")]
    Compress(#[from] std::io::Error),
}

/// Paints a drawing of [`draw`](super::draw) as PNG, at two pixels for each unit.
///
/// # Errors
/// [`Error`] if the text is not a drawing.
pub fn png(svg: &str) -> Result<Vec<u8>, Error> {
    let drawing = Document::parse(svg)?;
    let root = drawing.root_element();
    let font = FontRef::new(notosans::REGULAR_TTF)?;
    let mut picture = Picture::new(number(root, "width"), number(root, "height"))?;
    for node in root.children().filter(Node::is_element) {
        let path = if node.has_tag_name("text") { text(node, &font) } else { shape(node) };
        if let Some(color) = color(node.attribute("fill").unwrap_or("black")) {
            let opacity = node.attribute("fill-opacity").and_then(|text| text.parse().ok());
            picture.paint(&path, Fill::NonZero, color, opacity.unwrap_or(1.0));
        }
        if let Some(color) = node.attribute("stroke").and_then(color) {
            let width = number(node, "stroke-width").max(1.0);
            picture.paint(&path, Stroke::new(width), color, 1.0);
        }
    }
    Ok(picture.encoded()?)
}

fn number(node: Node<'_, '_>, name: &str) -> f32 {
    node.attribute(name).and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Reads `white`, `black` and `#rrggbb`; anything else, as `none`, is no color.
fn color(text: &str) -> Option<[u8; 3]> {
    let rgb = match text {
        "white" => 0xff_ff_ff,
        "black" => 0,
        other => u32::from_str_radix(other.strip_prefix('#')?, 16).ok()?,
    };
    let [_, red, green, blue] = rgb.to_be_bytes();
    Some([red, green, blue])
}

fn shape(node: Node<'_, '_>) -> Vec<Command> {
    let of = |name| number(node, name);
    let mut path = Vec::new();
    match node.tag_name().name() {
        "rect" => {
            path.add_rect((of("x"), of("y")), of("width"), of("height"));
        }
        "circle" => {
            path.add_circle((of("cx"), of("cy")), of("r"));
        }
        "line" => {
            path.move_to((of("x1"), of("y1"))).line_to((of("x2"), of("y2")));
        }
        "polyline" | "polygon" => {
            let points = node.attribute("points").unwrap_or_default();
            format!("M {points}").as_str().copy_to(&mut path);
        }
        "path" => node.attribute("d").unwrap_or_default().copy_to(&mut path),
        _ => {}
    }
    path
}

/// Outlines words at their place; a transformation turns them around it.
fn text(node: Node<'_, '_>, font: &FontRef<'_>) -> Vec<Command> {
    let size = node.ancestors().find_map(|node| node.attribute("font-size")?.parse().ok());
    let size = Size::new(size.unwrap_or(12.0));
    let words = node.text().unwrap_or_default();
    let glyphs: Vec<_> =
        words.chars().map(|c| font.charmap().map(c).unwrap_or(GlyphId::NOTDEF)).collect();
    let metrics = font.glyph_metrics(size, LocationRef::default());
    let width = |glyph| metrics.advance_width(glyph).unwrap_or_default();
    let whole: f32 = glyphs.iter().map(|glyph| width(*glyph)).sum();
    let before = match node.attribute("text-anchor") {
        Some("middle") => whole / 2.0,
        Some("end") => whole,
        _ => 0.0,
    };
    let turned = node.attribute("transform").and_then(|text| text.strip_prefix("rotate("));
    let degrees = turned.and_then(|text| text.split(' ').next()?.parse().ok());
    let mut pen = Pen {
        path: Vec::new(),
        at: (number(node, "x"), number(node, "y")),
        turn: degrees.unwrap_or(0.0_f32).to_radians().sin_cos(),
        along: -before,
    };
    for glyph in glyphs {
        if let Some(outline) = font.outline_glyphs().get(glyph) {
            let settings = DrawSettings::unhinted(size, LocationRef::default());
            // A glyph that the font cannot draw is left out.
            let _ = outline.draw(settings, &mut pen);
        }
        pen.along += width(glyph);
    }
    pen.path
}

/// Takes outlines of glyphs, whose y points upwards, to their place in the drawing.
struct Pen {
    path: Vec<Command>,
    at: (f32, f32),
    /// Sine and cosine of the angle by which the text is turned.
    turn: (f32, f32),
    /// How far along the text the glyph begins.
    along: f32,
}

impl Pen {
    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        let x = x + self.along;
        (
            self.at.0 + self.turn.1 * x + self.turn.0 * y,
            self.at.1 + self.turn.0 * x - self.turn.1 * y,
        )
    }
}

impl OutlinePen for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        self.path.move_to(self.place(x, y));
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.path.line_to(self.place(x, y));
    }

    fn quad_to(&mut self, cx: f32, cy: f32, x: f32, y: f32) {
        self.path.quad_to(self.place(cx, cy), self.place(x, y));
    }

    fn curve_to(&mut self, cx: f32, cy: f32, dx: f32, dy: f32, x: f32, y: f32) {
        self.path.curve_to(self.place(cx, cy), self.place(dx, dy), self.place(x, y));
    }

    fn close(&mut self) {
        self.path.close();
    }
}

/// Pixels, three bytes each, by rows.
struct Picture {
    width: u32,
    height: u32,
    rgb: Vec<u8>,
}

impl Picture {
    fn new(width: f32, height: f32) -> Result<Self, Error> {
        let [width, height] = [width, height].map(|side| (side * SCALE).ceil());
        if !(1.0..=MOST).contains(&width) || !(1.0..=MOST).contains(&height) {
            return Err(Error::Size);
        }
        let rgb = vec![255; width as usize * height as usize * 3];
        Ok(Self { width: width as u32, height: height as u32, rgb })
    }

    fn paint<'s>(
        &mut self,
        path: &[Command],
        style: impl Into<Style<'s>>,
        color: [u8; 3],
        opacity: f32,
    ) {
        let scale = Transform::scale(SCALE, SCALE);
        let (mask, place) = Mask::new(path).style(style).transform(Some(scale)).render();
        for (y, row) in (place.top..).zip(mask.chunks(place.width.max(1) as usize)) {
            for (x, coverage) in (place.left..).zip(row) {
                let inside =
                    (0..self.width as i32).contains(&x) && (0..self.height as i32).contains(&y);
                if *coverage == 0 || !inside {
                    continue;
                }
                let at = (y as usize * self.width as usize + x as usize) * 3;
                let alpha = f32::from(*coverage) / 255.0 * opacity;
                for (below, above) in self.rgb[at..at + 3].iter_mut().zip(color) {
                    let mixed = f32::from(*below) * (1.0 - alpha) + f32::from(above) * alpha;
                    *below = mixed.round() as u8;
                }
            }
        }
    }

    /// Writes the file: a header, the compressed rows, and an end, each with its checksum.
    fn encoded(&self) -> std::io::Result<Vec<u8>> {
        let mut rows = ZlibEncoder::new(Vec::new(), Compression::default());
        for row in self.rgb.chunks(self.width as usize * 3) {
            // Rows are not filtered.
            rows.write_all(&[0])?;
            rows.write_all(row)?;
        }
        let mut header = [self.width.to_be_bytes(), self.height.to_be_bytes()].concat();
        // Eight bits for each of red, green and blue; the usual compression and filters; rows from top to bottom.
        header.extend([8, 2, 0, 0, 0]);
        let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
        for (kind, data) in [(b"IHDR", header), (b"IDAT", rows.finish()?), (b"IEND", Vec::new())] {
            let mut sum = Crc::new();
            sum.update(kind);
            sum.update(&data);
            file.extend((data.len() as u32).to_be_bytes());
            file.extend(kind);
            file.extend(data);
            file.extend(sum.sum().to_be_bytes());
        }
        Ok(file)
    }
}

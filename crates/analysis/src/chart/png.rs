//! Paints the picture as pixels, for places that show no SVG: mail, chats, slides.

use std::sync::{Arc, LazyLock};

use resvg::usvg::fontdb::Database;
use resvg::{tiny_skia, usvg};

/// Pixels for each unit of the drawing, so that it is sharp on dense screens.
const SCALE: f32 = 2.0;

/// The font that comes with the program: a machine without fonts paints the same picture.
static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut fonts = Database::new();
    fonts.load_font_data(notosans::REGULAR_TTF.to_vec());
    fonts.set_sans_serif_family("Noto Sans");
    Arc::new(fonts)
});

/// Why a picture could not be painted.
#[derive(Debug, thiserror::Error)]
#[error("the chart could not be painted: {0}")]
pub struct Error(String);

/// Paints a drawing of [`draw`](super::draw) as PNG, at two pixels for each unit.
///
/// # Errors
/// [`Error`] where the text is no drawing.
pub fn png(svg: &str) -> Result<Vec<u8>, Error> {
    let options = usvg::Options { fontdb: Arc::clone(&FONTS), ..usvg::Options::default() };
    let failed = |why: &dyn std::fmt::Display| Error(why.to_string());
    let tree = usvg::Tree::from_str(svg, &options).map_err(|error| failed(&error))?;
    let size = tree.size();
    let width = (size.width() * SCALE).ceil();
    let height = (size.height() * SCALE).ceil();
    // The size is ours, 1,440 by 840; a larger one was not drawn here.
    if width > 4_096.0 || height > 4_096.0 {
        return Err(failed(&"it is larger than 2,048 units"));
    }
    let mut pixels = tiny_skia::Pixmap::new(width as u32, height as u32)
        .ok_or_else(|| failed(&"it has no size"))?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| failed(&error))
}

//! EPUB: the chapters of a book in the order of its spine, each read as the page that it is.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use roxmltree::Node;

use super::package::resolved;
use super::{Package, xml};
use crate::builder::Builder;
use crate::{Error, Format, Limits, Parsed};

pub(crate) fn parse(bytes: &[u8], limits: &Limits) -> Result<Parsed, Error> {
    let mut package = Package::open(bytes, Format::Epub, limits)?;
    let root = package.part("META-INF/container.xml", |root| {
        let file = root.descendants().find(|node| xml::is(*node, "rootfile"))?;
        file.attribute("full-path").map(str::to_owned)
    })?;
    let root = root.flatten().ok_or_else(|| Error::broken(Format::Epub, "it names no book"))?;
    let text = package.needed(&root)?;
    let document = xml::read(&text, Format::Epub)?;
    let mut builder = Builder::new(Format::Epub);
    (builder.title, builder.authors) = package.properties(&root)?;
    let directory = root.rsplit_once('/').map_or("", |(directory, _)| directory);
    for href in spine(document.root_element()) {
        let href = href.split('#').next().unwrap_or_default();
        let part = resolved(directory, &percent_decode_str(href).decode_utf8_lossy());
        match package.readable(&part)? {
            Some(page) => drop(crate::html::write(&crate::html::closed(&page), &mut builder)),
            None => package.miss(&part),
        }
        limits.check_text(builder.len())?;
    }
    let is_protected = package.part("META-INF/rights.xml", |_| ())?.is_some()
        || package.part("META-INF/encryption.xml", |_| ())?.is_some();
    if builder.len() == 0 && is_protected {
        return Err(Error::Unsupported("a book with copy protection".into()));
    }
    builder.warnings.extend(package.warnings());
    Ok(builder.finish())
}

/// Returns the chapters' places in the order of reading.
fn spine<'a>(root: Node<'a, '_>) -> Vec<&'a str> {
    let items = root.descendants().filter(|node| xml::is(*node, "item"));
    let pages = items.filter(|item| item.attribute("media-type") != Some("image/svg+xml"));
    let named = pages.filter_map(|item| Some((item.attribute("id")?, item.attribute("href")?)));
    let named: HashMap<&str, &str> = named.collect();
    let chapters = root.descendants().filter(|node| xml::is(*node, "itemref"));
    chapters.filter_map(|chapter| named.get(chapter.attribute("idref")?).copied()).collect()
}

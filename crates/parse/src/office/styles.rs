//! Paragraph styles of a Word document: which are headings, which are items of lists.

use std::collections::HashMap;

use roxmltree::Node;

use super::xml;

#[derive(Default)]
pub(super) struct Style {
    name: String,
    based_on: Option<String>,
    outline: Option<u8>,
    numbering: Option<(String, usize)>,
}

#[derive(Default)]
pub(super) struct Styles(HashMap<String, Style>);

/// How far a style's ancestry is followed.
const DEEPEST: usize = 20;

impl Styles {
    pub fn read(root: Node<'_, '_>) -> Self {
        let styles = xml::children(root, "style").filter_map(|node| {
            let id = xml::attribute(node, "styleId")?;
            let outline = xml::value(node, &["pPr", "outlineLvl"]);
            let style = Style {
                name: xml::value(node, &["name"]).unwrap_or(id).to_lowercase(),
                based_on: xml::value(node, &["basedOn"]).map(str::to_owned),
                outline: outline.and_then(|level| level.parse().ok()).filter(|level| *level < 9),
                numbering: numbering(node),
            };
            Some((id.to_owned(), style))
        });
        Self(styles.collect())
    }

    /// Returns the heading level (1 for the outermost) of a style.
    pub fn heading(&self, id: &str) -> Option<u8> {
        self.ancestry(id).find_map(|style| {
            if style.name == "title" {
                return Some(1);
            }
            let named =
                style.name.strip_prefix("heading ").and_then(|level| level.trim().parse().ok());
            named
                .or_else(|| style.outline.map(|level| level + 1))
                .filter(|level| (1..=9).contains(level))
        })
    }

    pub fn numbering(&self, id: &str) -> Option<(String, usize)> {
        self.ancestry(id).find_map(|style| style.numbering.clone())
    }

    pub fn is_code(&self, id: &str) -> bool {
        self.ancestry(id).any(|style| {
            matches!(style.name.as_str(), "source code" | "code" | "html preformatted" | "verbatim")
        })
    }

    fn ancestry(&self, id: &str) -> impl Iterator<Item = &Style> {
        let parent = |style: &&Style| self.0.get(style.based_on.as_deref()?);
        std::iter::successors(self.0.get(id), parent).take(DEEPEST)
    }
}

/// Returns the numbering that a paragraph or style asks for: its id and level.
pub(super) fn numbering(node: Node<'_, '_>) -> Option<(String, usize)> {
    let asked = xml::at(node, &["pPr", "numPr"])?;
    let id = xml::value(asked, &["numId"])?;
    let level = xml::value(asked, &["ilvl"]).and_then(|level| level.parse().ok()).unwrap_or(0);
    Some((id.to_owned(), level))
}

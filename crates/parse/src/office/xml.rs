//! Reading XML by local names: the same element has another namespace in strict and transitional documents.

use roxmltree::{Document, Node, ParsingOptions};

use crate::{Error, Format};

const MOST_NODES: u32 = 8_000_000;

pub(super) fn read<'a>(text: &'a str, format: Format) -> Result<Document<'a>, Error> {
    // A document type may name its file, but define no entity, so that none can grow.
    let allow_dtd = !text.contains("<!ENTITY");
    let options = ParsingOptions { allow_dtd, nodes_limit: MOST_NODES, ..Default::default() };
    Document::parse_with_options(text, options).map_err(|error| Error::broken(format, error))
}

pub(super) fn is(node: Node<'_, '_>, name: &str) -> bool {
    node.is_element() && node.tag_name().name() == name
}

pub(super) fn child<'a, 'i>(node: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    node.children().find(|child| is(*child, name))
}

pub(super) fn children<'a, 'i>(
    node: Node<'a, 'i>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(move |child| is(*child, name))
}

pub(super) fn at<'a, 'i>(node: Node<'a, 'i>, path: &[&str]) -> Option<Node<'a, 'i>> {
    path.iter().try_fold(node, |node, name| child(node, name))
}

pub(super) fn attribute<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    node.attributes().find(|attribute| attribute.name() == name).map(|attribute| attribute.value())
}

/// Returns the `val` of a child, as most properties are written.
pub(super) fn value<'a>(node: Node<'a, '_>, path: &[&str]) -> Option<&'a str> {
    attribute(at(node, path)?, "val")
}

/// Returns an attribute of the relationships' namespace, such as `r:id`.
pub(super) fn relation<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    let of_relations = |attribute: &roxmltree::Attribute<'_, '_>| {
        attribute.name() == name
            && attribute.namespace().is_some_and(|space| space.ends_with("/relationships"))
    };
    node.attributes().find(of_relations).map(|attribute| attribute.value())
}

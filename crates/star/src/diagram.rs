//! Draws graphs: nodes in layers, edges between them, as SVG.
//!
//! Drawings are self-contained: they have no font, script, image or link, and every label is escaped.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::window::one_line;

/// Width of a character, and the space left and right of a label, in pixels.
const CHARACTER: f64 = 7.2;
const PADDING: f64 = 14.0;

/// Height of a line, and the space above and below a label, in pixels.
const LINE: f64 = 16.0;
const MARGIN: f64 = 10.0;

/// Distances between neighbours and between layers.
const BESIDE: f64 = 28.0;
const BETWEEN: f64 = 56.0;

/// Characters of a line of a label; the rest is left out.
const LABEL_CHARS: usize = 40;

/// Times that layers are ordered by their neighbours.
const SWEEPS: usize = 4;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    #[default]
    Box,
    /// Something that decides or ends.
    Round,
    /// Something outside, such as a server.
    Store,
}

#[derive(Clone, Debug)]
struct DiagramNode {
    id: String,
    lines: Vec<String>,
    shape: Shape,
}

#[derive(Clone, Debug)]
struct Edge {
    from: usize,
    to: usize,
    is_dashed: bool,
    is_both_ways: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Diagram {
    title: String,
    nodes: Vec<DiagramNode>,
    edges: Vec<Edge>,
}

#[derive(Clone, Copy, Default)]
struct Laid {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Diagram {
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Adds a node with an ID; of two with the same ID, the first one stays.
    pub fn node(&mut self, id: &str, lines: &[&str], shape: Shape) -> &mut Self {
        if self.find(id).is_none() {
            let lines = lines
                .iter()
                .map(|line| one_line(line, LABEL_CHARS))
                .filter(|line| !line.is_empty());
            self.nodes.push(DiagramNode { id: id.to_owned(), lines: lines.collect(), shape });
        }
        self
    }

    /// Adds an arrow between two nodes; ignored if one of them is missing.
    pub fn edge(&mut self, from: &str, to: &str) -> &mut Self {
        self.connect(from, to, false, false)
    }

    /// Adds a dashed arrow: something that is used.
    pub fn uses(&mut self, from: &str, to: &str) -> &mut Self {
        self.connect(from, to, true, false)
    }

    /// Adds an arrow with a head at both of its ends.
    pub fn both_ways(&mut self, from: &str, to: &str) -> &mut Self {
        self.connect(from, to, false, true)
    }

    fn connect(&mut self, from: &str, to: &str, is_dashed: bool, is_both_ways: bool) -> &mut Self {
        if let Some((from, to)) = self.find(from).zip(self.find(to)) {
            self.edges.push(Edge { from, to, is_dashed, is_both_ways });
        }
        self
    }

    fn find(&self, id: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.id == id)
    }

    /// Returns the layer of each node: one below the lowest that leads to it, arrows that lead back not counted.
    fn layers(&self) -> Vec<usize> {
        let mut layer = vec![0; self.nodes.len()];
        let mut is_back = BTreeSet::new();
        let mut done = vec![false; self.nodes.len()];
        for start in 0..self.nodes.len() {
            self.find_back(start, &mut Vec::new(), &mut done, &mut is_back);
        }
        // As often as there are nodes, which is how long the longest way can be.
        for _ in 0..self.nodes.len() {
            for (number, edge) in self.edges.iter().enumerate() {
                if !is_back.contains(&number) {
                    layer[edge.to] = layer[edge.to].max(layer[edge.from] + 1);
                }
            }
        }
        layer
    }

    fn find_back(
        &self,
        node: usize,
        way: &mut Vec<usize>,
        done: &mut [bool],
        is_back: &mut BTreeSet<usize>,
    ) {
        if done[node] {
            return;
        }
        way.push(node);
        for (number, edge) in self.edges.iter().enumerate().filter(|(_, edge)| edge.from == node) {
            if way.contains(&edge.to) {
                is_back.insert(number);
            } else {
                self.find_back(edge.to, way, done, is_back)
            }
        }
        way.pop();
        done[node] = true;
    }

    /// Orders each layer by the positions of its neighbors, so that few arrows cross.
    fn rows(&self) -> Vec<Vec<usize>> {
        let layer = self.layers();
        let count = layer.iter().max().map_or(0, |last| last + 1);
        let mut rows: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (node, layer) in layer.iter().enumerate() {
            rows[*layer].push(node);
        }
        for _ in 0..SWEEPS {
            let places: BTreeMap<usize, f64> = rows
                .iter()
                .flat_map(|row| {
                    let middle = row.len() as f64 / 2.0;
                    row.iter().enumerate().map(move |(place, node)| (*node, place as f64 - middle))
                })
                .collect();
            let neighbours = |node: usize| {
                let all = self.edges.iter().filter_map(move |edge| match node {
                    node if node == edge.from => Some(edge.to),
                    node if node == edge.to => Some(edge.from),
                    _ => None,
                });
                let all: Vec<f64> = all.filter_map(|other| places.get(&other).copied()).collect();
                if all.is_empty() {
                    places.get(&node).copied().unwrap_or_default()
                } else {
                    all.iter().sum::<f64>() / all.len() as f64
                }
            };
            for row in &mut rows {
                row.sort_by(|one, other| neighbours(*one).total_cmp(&neighbours(*other)));
            }
        }
        rows
    }

    fn lay_out(&self) -> (Vec<Laid>, f64, f64) {
        let sized = |node: &DiagramNode| {
            let longest = node.lines.iter().map(|line| line.chars().count()).max();
            let width = longest.unwrap_or_default() as f64 * CHARACTER + 2.0 * PADDING;
            let height = node.lines.len() as f64 * LINE + 2.0 * MARGIN;
            Laid { width, height, ..Laid::default() }
        };
        let mut laid: Vec<Laid> = self.nodes.iter().map(sized).collect();
        let rows = self.rows();
        let wide = |row: &Vec<usize>| {
            row.iter().map(|node| laid[*node].width + BESIDE).sum::<f64>() - BESIDE
        };
        let widths: Vec<f64> = rows.iter().map(wide).collect();
        let width = widths.iter().copied().fold(0.0, f64::max) + 2.0 * BESIDE;
        let mut y = BESIDE;
        for (row, row_width) in rows.iter().zip(widths) {
            let mut x = (width - row_width) / 2.0;
            let height = row.iter().map(|node| laid[*node].height).fold(0.0, f64::max);
            for node in row {
                (laid[*node].x, laid[*node].y) = (x, y);
                x += laid[*node].width + BESIDE;
            }
            y += height + BETWEEN;
        }
        (laid, width, (y - BETWEEN + BESIDE).max(2.0 * BESIDE))
    }

    pub fn svg(&self) -> String {
        let (laid, width, height) = self.lay_out();
        let title = escaped(&one_line(&self.title, LABEL_CHARS));
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\">\n<title>{title}</title>\n\
             <defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
             orient=\"auto-start-reverse\"><path d=\"M0 0L8 4L0 8z\" fill=\"#555\"/></marker></defs>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        );
        for edge in &self.edges {
            svg.push_str(&arrow(edge, &laid));
        }
        for (node, at) in self.nodes.iter().zip(&laid) {
            svg.push_str(&drawn(node, at));
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// Draws an arrow from the lower edge of the upper node to the upper edge of the lower node.
fn arrow(edge: &Edge, laid: &[Laid]) -> String {
    let from = laid[edge.from];
    let to = laid[edge.to];
    let middle = |one: Laid| one.x + one.width / 2.0;
    let x1 = middle(from);
    let x2 = middle(to);
    let (y1, y2) =
        if from.y < to.y { (from.y + from.height, to.y) } else { (from.y, to.y + to.height) };
    let bend = (y1 + y2) / 2.0;
    let dashes = if edge.is_dashed { " stroke-dasharray=\"5 4\"" } else { "" };
    let start = if edge.is_both_ways { " marker-start=\"url(#head)\"" } else { "" };
    format!(
        "<path d=\"M{x1:.0} {y1:.0}C{x1:.0} {bend:.0} {x2:.0} {bend:.0} {x2:.0} {y2:.0}\" fill=\"none\" stroke=\"#555\"\
         {dashes}{start} marker-end=\"url(#head)\"/>\n"
    )
}

fn drawn(node: &DiagramNode, at: &Laid) -> String {
    let Laid { x, y, width, height } = at;
    let (round, fill) = match node.shape {
        Shape::Box => (4.0, "#eef3fb"),
        Shape::Round => (height / 2.0, "#fdf3dc"),
        Shape::Store => (10.0, "#eaf6ec"),
    };
    let mut svg = format!(
        "<g><rect x=\"{x:.0}\" y=\"{y:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" rx=\"{round:.0}\" fill=\"{fill}\" \
         stroke=\"#555\"/>"
    );
    let middle = x + width / 2.0;
    for (number, line) in node.lines.iter().enumerate() {
        let y = y + MARGIN + LINE * (number as f64 + 0.75);
        let line = escaped(line);
        let _ = write!(
            svg,
            "<text x=\"{middle:.0}\" y=\"{y:.0}\" text-anchor=\"middle\">{line}</text>"
        );
    }
    svg.push_str("</g>\n");
    svg
}

fn escaped(text: &str) -> String {
    let safe = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    safe.replace('"', "&quot;").replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S1.10
    #[test]
    fn a_graph_is_drawn_in_layers_and_back_edges_do_not_count() {
        let mut diagram = Diagram::new("a <loop>");
        for id in ["start", "left", "right", "end"] {
            diagram.node(id, &[id], Shape::Box);
        }
        diagram
            .edge("start", "left")
            .edge("start", "right")
            .edge("left", "end")
            .edge("right", "end");
        diagram.edge("end", "start").uses("end", "nobody");
        assert_eq!(diagram.layers(), [0, 1, 1, 2]);
        let svg = diagram.svg();
        assert!(svg.contains("<title>a &lt;loop&gt;</title>"), "{svg}");
        assert_eq!((svg.matches("<path d=\"M").count() - 1, svg.matches("<text ").count()), (5, 4));
        let (laid, width, height) = diagram.lay_out();
        for (one, other) in [(0, 1), (1, 2), (2, 3)] {
            let one = laid[one];
            let other = laid[other];
            let apart = one.x + one.width < other.x || one.y + one.height < other.y;
            assert!(apart, "nodes do not overlap");
        }
        assert!(
            laid.iter()
                .all(|one| one.x > 0.0 && one.x + one.width < width && one.y + one.height < height)
        );
    }

    #[test]
    fn a_label_breaks_no_drawing() {
        let mut diagram = Diagram::new("t");
        diagram.node("a", &["</text><script>alert(1)</script>", &"x".repeat(100)], Shape::Store);
        let svg = diagram.svg();
        assert!(!svg.contains("<script"), "{svg}");
        assert!(svg.contains(&format!("{}…", "x".repeat(LABEL_CHARS))));
        assert!(Diagram::new("empty").svg().ends_with("</svg>\n"));
    }
}

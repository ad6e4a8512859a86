//! The layers of `mcp`: each of its rooms uses only those before it, in the order of `ARCHITECTURE.md`.

use std::collections::BTreeSet;

use super::{Source, program, read, report, use_tree};

/// Returns the layers as the map draws them, lowest first.
fn layers() -> Vec<String> {
    let map = read("ARCHITECTURE.md");
    let line = map.lines().find(|line| line.contains("`types` ←")).unwrap_or_default();
    let names = line.split('←').filter_map(|part| part.split('`').nth(1));
    names.map(str::to_owned).collect()
}

/// The sources of a layer, with the number of the layer.
fn layered(layers: &[String]) -> Vec<(usize, Source)> {
    let place = |source: &Source| {
        let layer = source.path.strip_prefix("crates/mcp/src/")?.split('/').next()?;
        layers.iter().position(|one| one == layer)
    };
    program().into_iter().filter_map(|source| Some((place(&source)?, source))).collect()
}

#[test]
fn the_map_names_the_layers_that_there_are() {
    let room = read("crates/mcp/src/lib.rs");
    let modules = room.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
    let modules: BTreeSet<String> = modules.map(str::to_owned).collect();
    let layers: BTreeSet<String> = layers().into_iter().collect();
    assert_eq!(
        layers, modules,
        "left: the layers in ARCHITECTURE.md, right: crates/mcp/src/lib.rs"
    );
}

#[test]
fn a_layer_of_mcp_uses_only_those_before_it() {
    let layers = layers();
    let mut problems = Vec::new();
    for (layer, source) in layered(&layers) {
        // Who may see something is no import.
        let code = source.code().replace("pub(in crate", "pub(");
        for path in use_tree::rooted(&code, &["crate"]) {
            // What the crate re-exports would hide which layer a name is from.
            let used = path.split("::").nth(1).unwrap_or_default();
            if !layers.iter().take(layer + 1).any(|one| one == used) {
                problems.push(format!("{} uses {path}", source.path));
            }
        }
    }
    report(
        &problems,
        "Name the layer, and only one before yours; pass what a later one knows as a value or a trait.",
    );
}

#[test]
fn no_layer_of_mcp_is_left_through_the_roof() {
    let climbs = |source: &Source| {
        let inside = source.path.strip_prefix("crates/mcp/src/").unwrap_or_default();
        let depth = inside.matches('/').count() + 1 - usize::from(inside.ends_with("/mod.rs"));
        let climb = "super::".repeat(depth.max(1));
        let mut code = source.code().lines();
        code.any(|line| line.split_once("//").map_or(line, |(code, _)| code).contains(&climb))
    };
    let sources = layered(&layers());
    assert!(!sources.is_empty(), "ARCHITECTURE.md has no line of layers: `types` ← …");
    let problems: Vec<String> =
        sources.iter().filter(|(_, one)| climbs(one)).map(|(_, one)| one.path.clone()).collect();
    report(&problems, "Name another layer as crate::layer, not through super.");
}

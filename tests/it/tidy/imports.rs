//! The arrows of `ARCHITECTURE.md` are those between the crates, and those between the modules of the engine.

use std::collections::{BTreeMap, BTreeSet};

use super::{ENGINE, GROUND, program, read, small_crates, use_tree};

pub(super) type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Returns the arrows of one of the diagrams of the map: that of the crates, or that of the engine's modules.
fn drawn(diagram: usize) -> Arrows {
    let mut arrows = Arrows::new();
    for line in diagrams()[diagram].lines() {
        let Some((from, to)) = line.split_once("-->") else { continue };
        for from in from.split('&') {
            let to = to.split('&').map(|to| to.trim().to_owned());
            arrows.entry(from.trim().to_owned()).or_default().extend(to);
        }
    }
    arrows
}

/// Returns what the diagrams show.
pub(super) fn shown() -> BTreeSet<String> {
    let is_name = |word: &str| word.chars().all(|c| c.is_alphanumeric() || c == '_');
    let diagrams = diagrams();
    let lines = diagrams.iter().flat_map(|diagram| diagram.lines().map(str::trim));
    let arrows_and_nodes =
        lines.filter(|line| line.contains("-->") || (is_name(line) && *line != "end"));
    let names = arrows_and_nodes.flat_map(|line| line.split(['&', '>', '-', ' ']));
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn diagrams() -> Vec<String> {
    let map = read("ARCHITECTURE.md");
    let blocks = map.split("```mermaid\nflowchart TD\n").skip(1);
    let diagrams: Vec<String> =
        blocks.filter_map(|rest| rest.split("```").next()).map(str::to_owned).collect();
    assert_eq!(diagrams.len(), 2, "ARCHITECTURE.md draws the crates and the engine's modules");
    diagrams
}

/// Returns the crates of this project that a manifest names for more than its tests.
fn needed_by(manifest: &str) -> BTreeSet<String> {
    let manifest: toml::Table = read(manifest).parse().unwrap();
    let names = manifest["dependencies"].as_table().unwrap().keys();
    names.filter_map(|name| Some(name.strip_prefix("perihelion-")?.replace('-', "_"))).collect()
}

#[test]
fn the_map_draws_the_dependencies_between_crates() {
    let mut arrows: Arrows = small_crates()
        .chain(["engine".to_owned()])
        .map(|name| (name.clone(), needed_by(&format!("crates/{name}/Cargo.toml"))))
        .collect();
    for beside in ["clock", "settings", "http", "llm", "mcp", "embeddings"] {
        let late = arrows[beside].contains("engine");
        assert!(!late, "{beside} is built beside the engine and needs `clock` at most");
    }
    arrows
        .values_mut()
        .for_each(|to| to.retain(|to| !GROUND.contains(&to.as_str()) && to != "engine"));
    arrows.retain(|name, to| !to.is_empty() && name != "settings");
    assert_eq!(
        drawn(0),
        arrows,
        "left: the first diagram of ARCHITECTURE.md, right: the manifests"
    );
}

#[test]
fn the_map_draws_the_imports_between_engine_modules() {
    let mut arrows = Arrows::new();
    let mut modules = super::rooms_of_the_engine();
    modules.push("clock".to_owned());
    for source in program().iter().filter(|source| source.path.starts_with(ENGINE)) {
        for path in use_tree::rooted(source.code(), &["crate"]) {
            let to = path.split("::").nth(1).unwrap_or_default().to_owned();
            if modules.contains(&to) && to != source.room() {
                arrows.entry(source.room().to_owned()).or_default().insert(to);
            }
        }
    }
    assert!(!arrows.contains_key("ids"), "ids uses {:?}", arrows["ids"]);
    assert_eq!(arrows["graph"], BTreeSet::from(["ids".to_owned()]), "graph is pure");
    arrows.values_mut().for_each(|to| to.retain(|to| !GROUND.contains(&to.as_str())));
    arrows.retain(|name, to| !to.is_empty() && modules.contains(name));
    assert_eq!(drawn(1), arrows, "left: the second diagram of ARCHITECTURE.md, right: the code");
}

//! Imports run one way, and the arrows of `ARCHITECTURE.md` are all there are.

use std::collections::{BTreeMap, BTreeSet};

use super::{GROUND, Source, program, report, rooms, use_tree};

/// What an edge may name of rooms below the façade: data that the façade takes and hands out, and the
/// store that it opens, for looking at threads and clearing them away. Nothing here runs anything.
const PLAIN_DATA: [(&str, &[&str]); 7] = [
    (
        "checkpoint",
        &[
            "EffectKind",
            "EffectRow",
            "EffectStatus",
            "Error",
            "OpenInterrupt",
            "RunRow",
            "RunStatus",
            "StepKind",
            "StepRow",
            "Store",
            "ThreadFilter",
            "ThreadInfo",
            "ThreadStatus",
            "read_dump",
            "redact_url",
            "write_dump",
        ],
    ),
    ("graph", &["END", "Interrupt", "Nodes", "RunEvent", "StreamMode", "Wants"]),
    ("llm", &["Usage"]),
    ("mcp", &["LOG_DIRECTIVE", "ServerInfo", "ToolDefinition"]),
    ("runner", &["Error", "RunOptions"]),
    (
        "swarm",
        &[
            "AGENT_PREFIX",
            "AgentEvent",
            "MessagePiece",
            "AgentResult",
            "Attachment",
            "Citation",
            "GRAPH",
            "TEAM_PREFIX",
            "GraphState",
            "GraphUpdate",
            "Message",
            "ReflectionVerdict",
            "Request",
            "ResultStatus",
            "node_names",
            "question",
        ],
    ),
    (
        "telemetry",
        &[
            "About",
            "Reason",
            "RunOfTrace",
            "Span",
            "SpanId",
            "Spent",
            "Status",
            "TraceId",
            "reading",
        ],
    ),
];

/// The edges of the program: they know the façade.
const EDGES: [&str; 3] = ["api", "cli", "worker"];

type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Returns which room uses which, by the arrows of the diagram.
pub(super) fn drawn() -> Arrows {
    let mut arrows = Arrows::new();
    for line in diagram().lines() {
        let Some((from, to)) = line.split_once("-->") else { continue };
        for from in from.split('&') {
            for to in to.split('&') {
                arrows.entry(name(from)).or_default().insert(name(to));
            }
        }
    }
    assert!(!arrows.is_empty(), "ARCHITECTURE.md has no diagram with arrows");
    arrows
}

/// Returns the rooms that stand in the diagram by themselves.
pub(super) fn nodes() -> Vec<String> {
    let diagram = diagram();
    let lines = diagram.lines().map(str::trim).filter(|line| !line.is_empty() && *line != "end");
    lines
        .filter(|line| line.chars().all(|c| c.is_alphanumeric() || c == '_'))
        .map(str::to_owned)
        .collect()
}

fn diagram() -> String {
    let map = super::read("ARCHITECTURE.md");
    let diagram = map.split("```mermaid").nth(1).and_then(|rest| rest.split("```").next());
    diagram.unwrap_or_default().to_owned()
}

fn name(node: &str) -> String {
    node.trim().split(['[', '(']).next().unwrap_or_default().trim().to_owned()
}

/// A path in a file that leads into another room.
struct Import {
    file: String,
    from: String,
    to: String,
    path: String,
}

fn imports() -> Vec<Import> {
    let rooms = rooms();
    let mut imports = Vec::new();
    for source in program().iter().filter(|source| rooms.contains(source.room())) {
        let paths = if source.is_of_a_small_crate() {
            use_tree::crates(source.code())
        } else {
            use_tree::paths(source.code())
        };
        for path in paths {
            let to = path.split("::").next().unwrap_or_default().to_owned();
            if !rooms.contains(&to) || to == source.room() {
                continue;
            }
            // A room that is imported by its name is used by what stands after that name.
            let named = if path == to { named_after(&to, source.code()) } else { vec![path] };
            for path in named {
                let file = source.path.clone();
                let from = source.room().to_owned();
                imports.push(Import { file, from, to: to.clone(), path });
            }
        }
    }
    imports
}

/// Returns the paths that begin with a room's bare name: `llm::Usage`.
fn named_after(room: &str, code: &str) -> Vec<String> {
    let prefix = format!("{room}::");
    let uses = code.match_indices(&prefix).filter(|(at, _)| {
        !code[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':')
    });
    let item = |at: usize| code[at..].split(|c: char| !c.is_alphanumeric() && c != '_').next();
    let found: BTreeSet<String> =
        uses.filter_map(|(at, _)| Some(format!("{prefix}{}", item(at + prefix.len())?))).collect();
    if found.is_empty() { vec![room.to_owned()] } else { found.into_iter().collect() }
}

fn is_plain_data(import: &Import) -> bool {
    let item = import.path.split("::").nth(1).unwrap_or_default();
    EDGES.contains(&import.from.as_str())
        && PLAIN_DATA.iter().any(|(room, items)| *room == import.to && items.contains(&item))
}

#[test]
fn every_import_follows_an_arrow_of_the_map() {
    let arrows = drawn();
    let allowed = |import: &Import| {
        GROUND.contains(&import.to.as_str())
            || arrows.get(&import.from).is_some_and(|to| to.contains(&import.to))
            || is_plain_data(import)
    };
    let wrong = imports().into_iter().filter(|import| !allowed(import));
    let problems: Vec<String> =
        wrong.map(|one| format!("{} uses {}", one.file, one.path)).collect();
    report(&problems, "Imports follow the arrows in ARCHITECTURE.md; turn the dependency around.");
}

#[test]
fn every_arrow_of_the_map_is_used() {
    let written: BTreeSet<String> = program()
        .iter()
        .filter(|source| source.is_written())
        .map(|source| source.room().to_owned())
        .collect();
    let used: BTreeSet<(String, String)> =
        imports().into_iter().map(|import| (import.from, import.to)).collect();
    let mut problems = Vec::new();
    for (from, to) in drawn() {
        // A room that is still empty may show what it will stand on.
        for to in to.into_iter().filter(|_| written.contains(&from)) {
            if !used.contains(&(from.clone(), to.clone())) {
                problems.push(format!("{from} --> {to}"));
            }
        }
    }
    report(&problems, "No import stands behind these arrows; strike them from ARCHITECTURE.md.");
}

#[test]
fn the_arrows_lead_downwards_only() {
    let mut arrows = drawn();
    // Rooms that use nothing (any more) are taken away until none is left, or only circles are.
    loop {
        let resting: Vec<String> = arrows
            .values()
            .flatten()
            .filter(|to| arrows.get(*to).is_none_or(BTreeSet::is_empty))
            .cloned()
            .collect();
        if resting.is_empty() {
            break;
        }
        arrows.values_mut().for_each(|to| to.retain(|name| !resting.contains(name)));
        arrows.retain(|_, to| !to.is_empty());
    }
    assert!(arrows.is_empty(), "these rooms use each other in a circle: {arrows:?}");
}

#[test]
fn the_heart_the_parts_beside_it_and_the_edges_keep_their_distance() {
    let imports = imports();
    let only = |room: &str, allowed: &[&str]| {
        let outside = imports.iter().filter(|import| import.from == room && !is_plain_data(import));
        let wrong: Vec<String> = outside
            .filter(|import| !allowed.contains(&import.to.as_str()))
            .map(|import| format!("{} uses {}", import.file, import.path))
            .collect();
        report(&wrong, &format!("{room} may use: {}", allowed.join(", ")));
    };
    only("ids", &[]);
    only("clock", &[]);
    only("observer", &["clock"]);
    only("metrics", &["clock", "observer"]);
    only("config", &["clock", "ids"]);
    only("graph", &["ids"]);
    only("checkpoint", &["database", "graph", "failpoint", "ids", "clock"]);
    only("journal", &["checkpoint", "graph", "failpoint", "observer", "ids", "clock"]);
    only("bus", &["checkpoint", "graph", "database", "failpoint", "ids", "clock"]);
    only(
        "runner",
        &["bus", "journal", "checkpoint", "graph", "failpoint", "observer", "ids", "clock"],
    );
    only("llm", &["recall", "config", "metrics", "clock", "ids"]);
    only("mcp", &["http", "config", "metrics", "clock", "ids"]);
    let crates = ["sql", "analysis", "documents", "embeddings", "database", "http", "mail"];
    // What adds documents is deleted with them.
    let more = ["openapi", "sandbox", "web", "ingest", "checkpoint", "config", "clock"];
    only("servers", &[&crates[..], &more[..]].concat());
    let engine = ["runner", "journal", "checkpoint", "graph", "clock", "ids"];
    only("swarm", &[&engine[..], &["llm", "mcp", "recall", "config", "metrics"]].concat());
    only("dispatch", &["runner", "checkpoint", "database", "failpoint", "clock", "ids"]);
    only("worker", &["runtime", "clock", "ids"]);
    only("api", &["runtime", "service", "servers", "people", "http", "config", "clock", "ids"]);
    let edges = ["worker", "api", "service", "runtime", "servers", "http"];
    only("cli", &[&edges[..], &["config", "clock", "ids"]].concat());
}

#[test]
fn no_room_is_entered_through_the_roof() {
    // `super` from the top of a room is the crate: it would hide an import from the tests above.
    let escapes = |source: &Source| {
        let inside = source.inside().unwrap_or_default();
        let depth = inside.matches('/').count() + 1 - usize::from(inside.ends_with("/mod.rs"));
        let climb = "super::".repeat(depth.max(1));
        let code = source.code();
        code.lines().any(|line| {
            let line = line.split_once("//").map_or(line, |(code, _)| code);
            line.contains(&climb)
        })
    };
    let program = program();
    let rooms_only = program.iter().filter(|source| !source.is_of_a_small_crate());
    let problems: Vec<String> =
        rooms_only.filter(|one| escapes(one)).map(|one| one.path.clone()).collect();
    report(&problems, "Name other rooms as crate::room, not through super.");
}

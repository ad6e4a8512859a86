//! Files of a room import in one direction: a circle of files means that a type lives in the wrong one.
//!
//! A `mod.rs` or `lib.rs` is a room's sign and hands out what its files make, so it is left out: what it re-exports is followed to where it is made.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

use super::{Source, program, report, use_tree};

/// The largest circle that a room may have.
const MOST: usize = 5;

/// A room whose files import each other in no circle at all, and so that of which the others are made.
const STRICT: [&str; 1] = ["star"];

/// The files of one room by the paths of their modules, that of the room itself empty.
struct Room {
    is_crate: bool,
    sources: BTreeMap<String, Source>,
    /// By module and name, the path of what a module hands out under that name.
    handed_out: BTreeMap<(String, String), String>,
}

impl Room {
    fn of(name: &str, files: Vec<Source>) -> Self {
        let is_crate = files.iter().all(Source::is_of_a_small_crate);
        let mut sources = BTreeMap::new();
        for source in files {
            let inside = source.inside().unwrap_or_default().trim_end_matches(".rs");
            let below = if source.is_of_a_small_crate() { "lib" } else { name };
            let inside = match inside.strip_prefix(below) {
                Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                    rest.trim_start_matches('/')
                }
                _ => inside,
            };
            let module = inside.trim_end_matches("mod").trim_end_matches('/').replace('/', "::");
            sources.insert(module, source);
        }
        let mut room = Self { is_crate, sources, handed_out: BTreeMap::new() };
        let reexport = Regex::new(r"pub(?:\([^)]*\))? use ([^;]+);").unwrap();
        let mut handed_out = BTreeMap::new();
        for (module, source) in &room.sources {
            for found in reexport.captures_iter(source.code()) {
                for path in use_tree::tree_of(&found[1]) {
                    let item = path.rsplit("::").next().unwrap_or_default().to_owned();
                    let path = room.absolute(name, module, &path);
                    handed_out.extend(path.map(|path| ((module.clone(), item), path)));
                }
            }
        }
        room.handed_out = handed_out;
        room
    }

    /// Returns a path as it reads from the room; none where it leads out of it.
    fn absolute(&self, room: &str, module: &str, path: &str) -> Option<String> {
        let mut parts: Vec<&str> = module.split("::").filter(|part| !part.is_empty()).collect();
        let mut rest = path.split("::").peekable();
        match rest.peek() {
            Some(&"crate") => {
                rest.next();
                // In the engine and the program a module is a room.
                if !self.is_crate && rest.next() != Some(room) {
                    return None;
                }
                parts.clear();
            }
            Some(&"super") => {
                while rest.next_if_eq(&"super").is_some() {
                    parts.pop()?;
                }
            }
            Some(&"self") => drop(rest.next()),
            Some(child) => {
                let child = [&parts[..], &[child]].concat().join("::");
                self.sources.get(&child)?;
            }
            None => return None,
        }
        parts.extend(rest);
        Some(parts.join("::"))
    }

    /// Returns the module in which what a path names is made.
    fn made_in(&self, path: &str) -> Option<String> {
        let mut path = path.to_owned();
        // A chain of names that are handed on has an end.
        for _ in 0..8 {
            let parts: Vec<&str> = path.split("::").collect();
            let depth = (0..=parts.len())
                .rev()
                .find(|depth| self.sources.contains_key(&parts[..*depth].join("::")))?;
            let name = parts[..depth].join("::");
            let item = parts.get(depth).map(|item| (*item).to_owned()).unwrap_or_default();
            match self.handed_out.get(&(name.clone(), item)) {
                Some(next) => path.clone_from(next),
                None => return Some(name),
            }
        }
        None
    }

    /// Returns which files use which, by their modules; a sign is used by all and counts for none.
    fn uses(&self, room: &str) -> BTreeMap<&str, BTreeSet<String>> {
        let is_file = |module: &str| {
            let path = &self.sources[module].path;
            !path.ends_with("/mod.rs") && !path.ends_with("/lib.rs")
        };
        let mut uses: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for (module, source) in self.sources.iter().filter(|(module, _)| is_file(module)) {
            for path in use_tree::rooted(source.code(), &["crate", "super", "self"]) {
                let made = self.absolute(room, module, &path).and_then(|path| self.made_in(&path));
                let made = made.filter(|made| made != module && is_file(made));
                uses.entry(module).or_default().extend(made);
            }
        }
        uses
    }
}

/// Returns what can be reached from a file over what it uses.
fn reached(uses: &BTreeMap<&str, BTreeSet<String>>, from: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from.to_owned()];
    while let Some(file) = next.pop() {
        for used in uses.get(file.as_str()).into_iter().flatten() {
            if reached.insert(used.clone()) {
                next.push(used.clone());
            }
        }
    }
    reached
}

#[test]
fn files_of_a_module_import_in_one_direction() {
    let mut rooms: BTreeMap<String, Vec<Source>> = BTreeMap::new();
    for source in program() {
        rooms.entry(source.room().to_owned()).or_default().push(source);
    }
    let mut problems = Vec::new();
    for (name, files) in rooms {
        let room = Room::of(&name, files);
        let uses = room.uses(&name);
        let all: BTreeMap<&str, BTreeSet<String>> =
            uses.keys().map(|file| (*file, reached(&uses, file))).collect();
        let mut circles: BTreeSet<Vec<&str>> = BTreeSet::new();
        for (file, reached) in &all {
            let is_back = |other: &&str| all[*other].contains(*file);
            let others = reached.iter().map(String::as_str);
            let circle: Vec<&str> =
                others.filter(|other| all.contains_key(other)).filter(is_back).collect();
            circles.insert(circle);
        }
        let most = if STRICT.contains(&name.as_str()) { 0 } else { MOST };
        let large = circles.into_iter().filter(|circle| circle.len() > most.max(1));
        problems.extend(large.map(|circle| format!("{name}: {}", circle.join(", "))));
    }
    report(&problems, "Move the type that both need to a file of its own.");
}

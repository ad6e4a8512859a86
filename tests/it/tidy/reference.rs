//! Reference pages are what the code has: every command with its help, every event with its fields.
//!
//! The commands are written by the test itself: `UPDATE_COMMANDS_PAGE=1 cargo test --test it reference`.

use std::fmt::Write as _;

use clap::CommandFactory as _;
use perihelion::cli::Cli;
use regex::Regex;

use super::{program, read, report, root};

/// The page with the help of every command.
pub(super) const COMMANDS: &str = "docs/reference/commands.md";

/// Columns of the help on that page.
const WIDTH: usize = 100;

/// Returns the help of a command without the options that all commands share.
fn help(command: &mut clap::Command) -> String {
    let text = command.render_long_help().to_string();
    let Some((own, rest)) = text.split_once("\nGlobal options:\n") else { return text };
    let is_shared = |line: &&str| line.is_empty() || line.starts_with(' ');
    let rest: Vec<&str> = rest.lines().skip_while(is_shared).collect();
    format!("{own}\n{}", rest.join("\n"))
}

/// Writes a command and its subcommands to the page.
fn describe(command: &mut clap::Command, depth: usize, page: &mut String) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
    let help = match depth {
        1 => command.render_long_help().to_string(),
        _ => help(command),
    };
    let help: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    let _ =
        write!(page, "\n{} {name}\n\n```text\n{}\n```\n", "#".repeat(depth + 1), help.join("\n"));
    for inner in command.get_subcommands_mut() {
        if !inner.is_hide_set() && inner.get_name() != "help" {
            describe(inner, depth + 1, page);
        }
    }
}

#[test]
fn the_reference_has_the_help_of_every_command() {
    let mut page = String::from(
        "# Commands\n\n\
         The help of every command, as `perihelion COMMAND --help` prints it. Every command also takes the global options.\n\
         A test compares this page with the program; `UPDATE_COMMANDS_PAGE=1 cargo test --test it reference` updates it.\n",
    );
    let mut command = Cli::command().term_width(WIDTH);
    command.build();
    describe(&mut command, 1, &mut page);
    if std::env::var_os("UPDATE_COMMANDS_PAGE").is_some() {
        std::fs::write(root().join(COMMANDS), &page).unwrap();
    }
    let is_same = std::fs::read_to_string(root().join(COMMANDS)).unwrap_or_default() == page;
    assert!(
        is_same,
        "{COMMANDS} is out of date: UPDATE_COMMANDS_PAGE=1 cargo test --test it reference"
    );
}

/// Returns a name as it is in JSON: `ToolCall` as `tool_call`.
fn in_json(name: &str) -> String {
    let capital = Regex::new("([a-z])([A-Z])").unwrap();
    capital.replace_all(name, "${1}_$2").to_lowercase()
}

/// The types whose variants are events.
const EVENTS: [&str; 2] = ["pub enum RunEvent<S: State> {", "pub enum AgentEvent {"];

/// Returns how the page's row of each variant of an enum begins: its name and its fields.
fn rows_of(body: &str) -> Vec<String> {
    let attribute = Regex::new(r"#\[[^\n]*\]|///[^\n]*").unwrap();
    let variant = Regex::new(r"(?s)([A-Z]\w+) \{(.*?)\}").unwrap();
    let field = Regex::new(r"(\w+):").unwrap();
    let body = attribute.replace_all(body, "");
    let row = |found: regex::Captures<'_>| {
        let fields: Vec<String> =
            field.captures_iter(&found[2]).map(|one| format!("`{}`", &one[1])).collect();
        format!("| `{}` | {} |", in_json(&found[1]), fields.join(", "))
    };
    variant.captures_iter(&body).map(row).collect()
}

#[test]
fn the_reference_has_every_event_with_its_fields() {
    let sources = program();
    let page = read("docs/reference/events.md");
    for event in EVENTS {
        let source = sources.iter().find(|source| source.text.contains(event)).unwrap();
        let body = source.text.split(event).nth(1).and_then(|rest| rest.split("\n}").next());
        let rows = rows_of(body.unwrap());
        assert!(rows.len() >= 10, "{event}: {rows:?}");
        let is_listed = |row: &String| page.lines().any(|line| line.starts_with(row.as_str()));
        let missing: Vec<String> = rows.into_iter().filter(|row| !is_listed(row)).collect();
        report(
            &missing,
            "docs/reference/events.md has a row for each event: these are missing or differ.",
        );
    }
}

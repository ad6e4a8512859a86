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

/// Areas of error codes, and the files that define their errors.
const ERRORS: [(&str, &[&str]); 10] = [
    ("cli", &["src/cli/error.rs", "src/demo/mod.rs"]),
    ("runtime", &["crates/runtime/src/error.rs"]),
    ("run", &["crates/engine/src/runner/outcome.rs"]),
    ("store", &["crates/engine/src/checkpoint/error.rs"]),
    ("database", &["crates/database/src/error.rs"]),
    ("model", &["crates/llm/src/error.rs"]),
    ("server", &["crates/mcp/src/types/error.rs"]),
    ("documents", &["crates/documents/src/error.rs"]),
    ("people", &["crates/people/src/error.rs"]),
    ("service", &["crates/service/src/error.rs"]),
];

/// Returns the codes of the errors in a file, each with whether its message is that of another error.
fn codes_of(area: &str, text: &str) -> Vec<(String, bool)> {
    let body = text.split("pub enum Error {").nth(1).unwrap().split("\n}").next().unwrap();
    let variant = Regex::new(
        r#"(?s)#\[error\(\s*(transparent|".*?").*?\)\]\s*(?:///[^\n]*\n\s*)*([A-Z]\w*)"#,
    );
    let capital = Regex::new("([a-z])([A-Z])").unwrap();
    let code = |name: &str| capital.replace_all(name, "${1}-$2").to_lowercase();
    let found = variant.unwrap();
    let found = found.captures_iter(body);
    found.map(|one| (format!("{area}.{}", code(&one[2])), &one[1] == "transparent")).collect()
}

#[test]
fn the_reference_has_every_error_code_with_its_remedy() {
    let page = read("docs/reference/errors.md");
    let row = Regex::new(r"(?m)^\| `([a-z-]+\.[a-z-]+)` \| [^|]+\. \| [^|]+\. \|$").unwrap();
    let listed: Vec<&str> = row.captures_iter(&page).map(|row| row.extract::<1>().1[0]).collect();
    let mut problems = Vec::new();
    let mut known = Vec::new();
    for (area, files) in ERRORS {
        let codes = files.iter().flat_map(|file| codes_of(area, &read(file)));
        for (code, is_transparent) in codes {
            let count = listed.iter().filter(|one| **one == code).count();
            if count > 1 || (count == 0 && !is_transparent) {
                problems.push(format!("{code}: {count} rows"));
            }
            known.push(code);
        }
    }
    problems.extend(
        listed.iter().filter(|code| !known.iter().any(|one| one == *code)).map(|it| it.to_string()),
    );
    assert!(listed.len() > 100, "{listed:?}");
    report(&problems, "docs/reference/errors.md has one row for each error code: these differ.");
}

/// Wrong arguments have no code, because clap words them, and neither do panics.
const WITHOUT_CODE: [&str; 2] = ["src/cli/mod.rs", "src/cli/output.rs"];

#[test]
fn the_command_line_prints_errors_with_their_codes() {
    let printed = Regex::new(r"\berror\(&|output::error\(").unwrap();
    let all = super::sources("src/cli");
    let is_printed = |source: &&super::Source| printed.is_match(&source.text);
    let found: Vec<&str> = all.iter().filter(is_printed).map(|source| &*source.path).collect();
    assert_eq!(found, WITHOUT_CODE, "use output::coded_error");
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

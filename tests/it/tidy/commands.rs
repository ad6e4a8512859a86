//! Commands in documents are commands of the program: each is parsed as it is written.

use clap::Parser as _;
use clap::error::ErrorKind;
use perihelion::cli::Cli;
use regex::Regex;

use super::english::{documents, without_code};
use super::reference::COMMANDS;
use super::{read, report};

/// Prose may leave out what a command requires, and `--help` ends the parsing.
const IN_PROSE: [ErrorKind; 3] = [
    ErrorKind::MissingRequiredArgument,
    ErrorKind::MissingSubcommand,
    ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
];

/// Returns why the program would refuse a command, if it would.
fn refused(words: &[String], is_prose: bool) -> Option<String> {
    let error = Cli::try_parse_from(words).err()?;
    let is_fine = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
        // `perihelion mcp NAME` stands for any of them.
        ErrorKind::InvalidSubcommand => is_prose && error.to_string().contains("'1'"),
        kind => is_prose && IN_PROSE.contains(&kind),
    };
    (!is_fine).then(|| {
        format!("{}: {}", words.join(" "), error.to_string().lines().next().unwrap_or_default())
    })
}

/// Divides lines as a shell does: into commands at `|`, `;`, `&&`, `>` and `<`, and into words; comments are left out.
fn commands(line: &str) -> Vec<Vec<String>> {
    let token =
        Regex::new(r#"(?:^|\s)#.*$|&&|[|;<>]|(?:'[^']*'|"(?:\\.|[^"])*"|\\.|[^\s'"|;<>&\\])+"#);
    let token = token.unwrap();
    let mut all = vec![Vec::new()];
    for found in token.find_iter(line) {
        let word = found.as_str().trim_start();
        if word.starts_with('#') {
            break;
        }
        if ["&&", "|", ";", "<", ">"].contains(&word) {
            all.push(Vec::new());
        } else if let Some(command) = all.last_mut() {
            command.push(word.replace(['\'', '"', '\\'], ""));
        }
    }
    all.into_iter().map(|words| own(&words).to_vec()).filter(|words| !words.is_empty()).collect()
}

/// Returns the words from the program's name on, after a prompt and variables; none of another program.
fn own(words: &[String]) -> &[String] {
    let is_before = |word: &String| word == "$" || word.contains('=');
    let begin = words.iter().position(|word| !is_before(word)).unwrap_or(words.len());
    let words = &words[begin..];
    if words.first().is_some_and(|word| word == "perihelion") { words } else { &[] }
}

/// Returns the code blocks of a document in some languages.
fn blocks(text: &str, languages: &[&str]) -> Vec<String> {
    let block = Regex::new(r"(?ms)^ *```([a-z]*)\n(.*?)^ *```").unwrap();
    let blocks = block.captures_iter(text).filter(|found| languages.contains(&&found[1]));
    blocks.map(|found| found[2].replace("\\\n", " ")).collect()
}

/// Returns what bundled servers of a servers file are started with.
fn bundled(file: &str) -> Vec<Vec<String>> {
    let Ok(table) = file.parse::<toml::Table>() else { return Vec::new() };
    let servers = table.get("mcp_servers").and_then(toml::Value::as_table).into_iter().flatten();
    let bundled = servers.filter(|(_, server)| {
        server.get("command").and_then(toml::Value::as_str) == Some("perihelion")
    });
    let arguments = bundled.map(|(_, server)| {
        let given = server.get("args").and_then(toml::Value::as_array).into_iter().flatten();
        let given = given.filter_map(toml::Value::as_str).map(str::to_owned);
        std::iter::once("perihelion".to_owned()).chain(given).collect()
    });
    arguments.collect()
}

/// A reader of a document types what the program understands.
#[test]
fn commands_of_documents_are_commands_of_the_program() {
    let inline = Regex::new(r"`(perihelion [^`…]+)`").unwrap();
    let choice = Regex::new(r"\b([a-z]+)(\|[a-z]+)+\b").unwrap();
    let placeholder = Regex::new(r"\b[A-Z]{1,}\b").unwrap();
    let mut seen = 0;
    let mut problems = Vec::new();
    let mut documents = documents();
    // Examples of the help have remarks beside them.
    documents.retain(|name| name != COMMANDS);
    documents.push("mcp-servers.toml".to_owned());
    for name in documents {
        let text = read(&name);
        let mut found: Vec<(Vec<String>, bool)> = Vec::new();
        for block in blocks(&text, &["sh", "console", "text", "toml", ""]) {
            found.extend(block.lines().flat_map(commands).map(|words| (words, false)));
            found.extend(bundled(&block).into_iter().map(|words| (words, false)));
        }
        found.extend(bundled(&text).into_iter().map(|words| (words, false)));
        for one in inline.captures_iter(&without_code(&text)) {
            let line = choice.replace_all(&one[1], "$1").replace(['[', ']'], "");
            let line = line.replace("URL", "http://localhost");
            let line = placeholder.replace_all(&line, "1");
            found.extend(commands(&line).into_iter().map(|words| (words, true)));
        }
        seen += found.len();
        let refused = found.iter().filter_map(|(words, is_prose)| refused(words, *is_prose));
        problems.extend(refused.map(|why| format!("{name}: {why}")));
    }
    assert!(seen > 150, "commands were found: {seen}");
    report(&problems, "Write the command as `perihelion COMMAND --help` has it.");
}

#[test]
fn a_command_is_found_among_a_shells_words() {
    let words = |line: &str| commands(line).iter().map(|one| one.join(" ")).collect::<Vec<_>>();
    assert_eq!(
        words("perihelion run \"a b\" --thread x    # a comment"),
        ["perihelion run a b --thread x"]
    );
    assert_eq!(words("$ A=… perihelion serve > out"), ["perihelion serve"]);
    assert_eq!(
        words("perihelion threads && perihelion agents | less"),
        ["perihelion threads", "perihelion agents"]
    );
    assert!(words("cargo run --bin perihelion").is_empty());
    assert!(
        refused(
            &["perihelion", "threads", "fork", "x", "--at", "3", "--name", "y"].map(str::to_owned),
            false
        )
        .is_some()
    );
    assert!(refused(&["perihelion", "resume"].map(str::to_owned), false).is_none());
    let file = "[mcp_servers.a]\ncommand = \"perihelion\"\nargs = [\"mcp\", \"notes\"]\n[mcp_servers.b]\ncommand = \"npx\"\n";
    assert_eq!(bundled(file), [["perihelion", "mcp", "notes"].map(str::to_owned).to_vec()]);
}

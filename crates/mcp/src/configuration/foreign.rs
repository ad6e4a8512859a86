//! Reads the servers that other programs are configured with: Claude, VS Code, and what writes like them.
//!
//! Their files are JSON, with comments where people wrote them. Unknown keys are noted, not rejected, because the files
//! belong to other programs.

use std::path::Path;

use serde_json::{Map, Value};
use toml_edit::{Array, InlineTable, Table, value as item};

use super::{Error, Result, expand::EntryLocation};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `mcpServers` in JSON: Claude's `.mcp.json`, and many more.
    Claude,
    /// `servers` and `inputs` in JSON: VS Code's `mcp.json`.
    VsCode,
    /// `[mcp_servers.<name>]` in TOML: Codex's `config.toml`, and Perihelion's own file.
    Codex,
}

impl Format {
    pub(super) fn section(self) -> &'static str {
        match self {
            Self::Claude => "mcpServers",
            Self::VsCode => "servers",
            Self::Codex => "mcp_servers",
        }
    }
}

/// One server of such a file.
#[derive(Default)]
pub(super) struct Foreign {
    pub name: String,
    /// As the servers file would have it.
    pub table: Table,
    /// The parts that were not imported, one sentence each.
    pub notes: Vec<String>,
    pub unusable: Option<String>,
}

/// Detects the format of a file: by its name if possible, otherwise by its keys.
pub(super) fn detect(path: &Path, text: &str) -> Option<Format> {
    if path.extension().is_some_and(|extension| extension == "toml") {
        return Some(Format::Codex);
    }
    let keys: Map<String, Value> = serde_json::from_str(&without_comments(text)).ok()?;
    if keys.contains_key("mcpServers") {
        Some(Format::Claude)
    } else if keys.contains_key("servers") {
        Some(Format::VsCode)
    } else {
        None
    }
}

/// Reads the servers of a JSON file, in its order.
pub(super) fn read(path: &Path, text: &str, format: Format) -> Result<Vec<Foreign>> {
    let keys: Map<String, Value> = serde_json::from_str(&without_comments(text))
        .map_err(|error| Error::of_json(path, &error, "JSON", ""))?;
    let section = format.section();
    let servers = keys.get(section).and_then(Value::as_object).ok_or_else(|| {
        let reason =
            "this key is missing or not an object; if the file has another form, pass --format";
        Error::value(path, section, reason)
    })?;
    let folder = (format == Format::VsCode).then(|| folder(path));
    let read = |(name, entry): (&String, &Value)| {
        let place = EntryLocation { path, section, server: name };
        Reader { place, folder: folder.as_deref() }.server(entry)
    };
    servers.iter().map(read).collect()
}

/// Blanks out comments, and commas at the end of lists, which editors permit in JSON; everything else keeps its place.
fn without_comments(text: &str) -> String {
    let mut bytes = text.trim_start_matches('\u{feff}').as_bytes().to_vec();
    let mut at = 0;
    let mut comma = None;
    // A comma ends a list only after a value: JSON's parser refuses the others.
    let mut previous = b',';
    while at < bytes.len() {
        let rest = &bytes[at..];
        let ends_at = |end: &[u8]| rest.windows(end.len()).position(|part| part == end);
        let comment = match rest {
            [b'/', b'/', ..] => Some(ends_at(b"\n").unwrap_or(rest.len())),
            [b'/', b'*', ..] => Some(ends_at(b"*/").map_or(rest.len(), |end| end + 2)),
            _ => None,
        };
        let start = rest[0];
        match (start, comment) {
            (_, Some(length)) => {
                let comment = bytes[at..at + length].iter_mut();
                comment.filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
                at += length;
                continue;
            }
            (b'"', _) => {
                while let Some(byte) = bytes.get(at + 1).filter(|byte| **byte != b'"') {
                    at += if *byte == b'\\' { 2 } else { 1 };
                }
                at += 1;
                comma = None;
            }
            (b',', _) => comma = (!b"{[,:".contains(&previous)).then_some(at),
            (b'}' | b']', _) => {
                if let Some(comma) = comma.take() {
                    bytes[comma] = b' ';
                }
            }
            (byte, _) if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        if !start.is_ascii_whitespace() {
            previous = start;
        }
        at += 1;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns what VS Code calls the workspace's folder.
fn folder(path: &Path) -> String {
    let here = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let directory = here.parent().unwrap_or(Path::new("/"));
    let directory = match directory.file_name() {
        Some(name) if name == ".vscode" => directory.parent().unwrap_or(directory),
        _ => directory,
    };
    directory.display().to_string()
}

struct Reader<'a> {
    place: EntryLocation<'a>,
    /// The workspace's folder, of a file of VS Code.
    folder: Option<&'a str>,
}

impl Reader<'_> {
    fn text(&self, key: &str, value: &Value) -> Result<String> {
        match (value, self.folder) {
            (Value::String(text), Some(folder)) => Ok(vs_code(text, folder)),
            (Value::String(text), None) => Ok(text.clone()),
            (Value::Number(_) | Value::Bool(_), _) => Ok(value.to_string()),
            _ => Err(self.place.error(key, "expected a text")),
        }
    }

    fn texts(&self, key: &str, value: &Value) -> Result<Array> {
        let texts = value.as_array().map(|texts| texts.iter().map(|text| self.text(key, text)));
        texts.ok_or_else(|| self.place.error(key, "expected a list of texts"))?.collect()
    }

    fn pairs(&self, key: &str, value: &Value) -> Result<InlineTable> {
        let pairs = value
            .as_object()
            .ok_or_else(|| self.place.error(key, "expected an object of texts"))?;
        // VS Code writes null for a variable that is to be unset, which is what it is here anyway.
        let given = pairs.iter().filter(|(_, value)| !value.is_null());
        given.map(|(name, text)| Ok((name, self.text(&format!("{key}.{name}"), text)?))).collect()
    }

    fn server(&self, entry: &Value) -> Result<Foreign> {
        let name = self.place.server;
        let entry = entry.as_object().ok_or_else(|| self.place.error("", "expected an object"))?;
        let mut server = Foreign { name: server_name(name), ..Foreign::default() };
        if server.name != name {
            server.notes.push(format!("it is called {} here, and was called: {name}", server.name));
        }
        for (key, value) in entry {
            let (key, item) = match key.as_str() {
                "command" | "cwd" | "url" => (key.as_str(), item(self.text(key, value)?)),
                "args" => ("args", item(self.texts(key, value)?)),
                "env" => ("env", item(self.pairs(key, value)?)),
                "headers" => ("http_headers", item(self.pairs(key, value)?)),
                "disabled" if value == &Value::Bool(true) => ("enabled", item(false)),
                "type" | "transport" => {
                    server.unusable = self.unusable(key, value)?.or(server.unusable);
                    continue;
                }
                "disabled" | "description" | "gallery" | "version" | "dev" => continue,
                other => {
                    server.notes.push(format!("this key was not taken over: {other}"));
                    continue;
                }
            };
            server.table.insert(key, item);
        }
        Ok(server)
    }

    fn unusable(&self, key: &str, transport: &Value) -> Result<Option<String>> {
        match transport.as_str().unwrap_or_default() {
            "stdio" | "http" | "streamable-http" | "streamableHttp" => Ok(None),
            "sse" => {
                let reason = "the old HTTP+SSE transport is not supported; ask the server's maker for its streamable \
                              HTTP address";
                let EntryLocation { section, server, .. } = self.place;
                Ok(Some(format!("{reason}: {section}.{server}.{key}")))
            }
            other => Err(self.place.error(key, format!("unknown transport: {other}"))),
        }
    }
}

fn server_name(name: &str) -> String {
    let plain = |letter: char| match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => letter,
        _ => '-',
    };
    name.chars().map(plain).take(64).collect()
}

/// Writes VS Code's variables as environment variables: an input becomes one in capital letters.
fn vs_code(text: &str, folder: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        written.push_str(before);
        let Some((reference, tail)) = after.split_once('}') else {
            rest = after;
            written.push_str("${");
            continue;
        };
        match reference.split_once(':') {
            Some(("input", id)) => written.push_str(&format!("${{{}}}", variable(id))),
            Some(("env", name)) => written.push_str(&format!("${{{name}:-}}")),
            None if reference == "workspaceFolder" => written.push_str(folder),
            None if reference == "userHome" => written.push_str("${HOME}"),
            None if reference == "pathSeparator" || reference == "/" => written.push('/'),
            _ => written.push_str(&format!("${{{reference}}}")),
        }
        rest = tail;
    }
    written.push_str(rest);
    written
}

pub(super) fn variable(words: &str) -> String {
    let letter = |letter: char| {
        if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' }
    };
    let name: String = words.chars().map(letter).collect();
    let name = name.trim_matches('_');
    if name.starts_with(|first: char| first.is_ascii_digit()) || name.is_empty() {
        format!("V_{name}")
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_vs_code_become_environment_variables() {
        assert_eq!(vs_code("Bearer ${input:api-key}", "/w"), "Bearer ${API_KEY}");
        assert_eq!(vs_code("${workspaceFolder}/x:${env:HOME}$", "/w"), "/w/x:${HOME:-}$");
        assert_eq!(vs_code("${open", "/w"), "${open");
        assert_eq!(variable("3 keys!"), "V_3_KEYS");
    }
}

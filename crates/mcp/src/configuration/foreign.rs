//! Reads the servers that other programs are configured with: Claude, VS Code, and what writes like them.
//!
//! Their files are JSON, with comments where people wrote them. Keys that mean nothing here are noted, not refused:
//! the files belong to others.

use std::path::Path;

use serde_json::{Map, Value};

use super::{Error, table::Table};

/// Whose form a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `mcpServers` in JSON: Claude's `.mcp.json`, and many more.
    Claude,
    /// `servers` and `inputs` in JSON: VS Code's `mcp.json`.
    VsCode,
    /// `[mcp_servers.<name>]` in TOML: Codex's `config.toml`, and Perihelion's own file.
    Codex,
}

/// One server of such a file.
#[derive(Default)]
pub(super) struct Foreign {
    pub name: String,
    pub command: Option<String>,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    pub cwd: Option<String>,
    pub url: Option<String>,
    pub headers: Vec<(String, String)>,
    pub disabled: bool,
    /// What was not taken over, one sentence each.
    pub notes: Vec<String>,
    /// Why it cannot be used at all.
    pub unusable: Option<String>,
}

impl Foreign {
    pub fn into_table(self) -> Table {
        Table {
            command: self.command,
            args: self.args,
            env: self.env.into_iter().collect(),
            cwd: self.cwd,
            url: self.url,
            http_headers: self.headers.into_iter().collect(),
            enabled: Some(!self.disabled),
            ..Table::default()
        }
    }
}

/// Finds out whose form a file has: by its name where that says it, else by its keys.
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
pub(super) fn read(path: &Path, text: &str, format: Format) -> Result<Vec<Foreign>, Error> {
    let file = File { path };
    let keys: Map<String, Value> =
        serde_json::from_str(&without_comments(text)).map_err(|error| Error::Parse {
            path: path.to_owned(),
            line: error.line(),
            column: error.column(),
            message: format!("not JSON: {error}"),
            hint: String::new(),
        })?;
    let key = if format == Format::VsCode { "servers" } else { "mcpServers" };
    let servers = keys.get(key).and_then(Value::as_object);
    let servers = servers.ok_or_else(|| {
        file.error(
            key,
            "this key is missing or no object; say --format if it is another form".into(),
        )
    })?;
    let folder = folder(path);
    let entries = servers.iter();
    entries.map(|(name, entry)| file.server(key, name, entry, format, &folder)).collect()
}

/// Blanks out comments, and commas at the end of lists, which editors permit in JSON; everything else keeps its place.
fn without_comments(text: &str) -> String {
    let mut bytes = text.trim_start_matches('\u{feff}').as_bytes().to_vec();
    let mut at = 0;
    let mut comma = None;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let ends_at = |end: &[u8]| rest.windows(end.len()).position(|part| part == end);
        let comment = match rest {
            [b'/', b'/', ..] => Some(ends_at(b"\n").unwrap_or(rest.len())),
            [b'/', b'*', ..] => Some(ends_at(b"*/").map_or(rest.len(), |end| end + 2)),
            _ => None,
        };
        match (rest[0], comment) {
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
            (b',', _) => comma = Some(at),
            (b'}' | b']', _) => {
                if let Some(comma) = comma.take() {
                    bytes[comma] = b' ';
                }
            }
            (byte, _) if byte.is_ascii_whitespace() => {}
            _ => comma = None,
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

struct File<'a> {
    path: &'a Path,
}

impl File<'_> {
    fn error(&self, key: &str, message: String) -> Error {
        Error::Value { path: self.path.to_owned(), key: key.to_owned(), message }
    }

    fn server(
        &self,
        section: &str,
        name: &str,
        entry: &Value,
        format: Format,
        folder: &str,
    ) -> Result<Foreign, Error> {
        let at = |key: &str| format!("{section}.{name}.{key}");
        let entry = entry
            .as_object()
            .ok_or_else(|| self.error(&format!("{section}.{name}"), "expected an object".into()))?;
        let text = |key: &str, value: &Value| match value {
            Value::String(text) if format == Format::VsCode => Ok(vs_code(text, folder)),
            Value::String(text) => Ok(text.clone()),
            Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
            _ => Err(self.error(&at(key), "expected a text".into())),
        };
        let pairs = |key: &str, value: &Value| {
            let pairs = value
                .as_object()
                .ok_or_else(|| self.error(&at(key), "expected an object of texts".into()))?;
            // VS Code writes null for a variable that is to be unset, which is what it is here anyway.
            let given = pairs.iter().filter(|(_, value)| !value.is_null());
            given
                .map(|(name, value)| Ok((name.clone(), text(&format!("{key}.{name}"), value)?)))
                .collect::<Result<Vec<_>, Error>>()
        };
        let mut server = Foreign { name: server_name(name), ..Foreign::default() };
        if server.name != name {
            server.notes.push(format!("it is called {} here, and was called: {name}", server.name));
        }
        for (key, value) in entry {
            match key.as_str() {
                "command" => server.command = Some(text(key, value)?),
                "args" => {
                    let args = value
                        .as_array()
                        .ok_or_else(|| self.error(&at(key), "expected a list of texts".into()))?;
                    server.args =
                        args.iter().map(|arg| text(key, arg)).collect::<Result<_, _>>()?;
                }
                "env" => server.env = pairs(key, value)?,
                "cwd" => server.cwd = Some(text(key, value)?),
                "url" => server.url = Some(text(key, value)?),
                "headers" => server.headers = pairs(key, value)?,
                "disabled" => server.disabled = value == &Value::Bool(true),
                "type" | "transport" => match value.as_str().unwrap_or_default() {
                    "stdio" | "http" | "streamable-http" | "streamableHttp" => {}
                    "sse" => {
                        let reason = "the old HTTP+SSE transport is not spoken here; ask the server's \
                                      maker for its streamable HTTP address";
                        server.unusable = Some(format!("{reason}: {}", at(key)));
                    }
                    other => {
                        return Err(self.error(&at(key), format!("unknown transport: {other}")));
                    }
                },
                "description" | "gallery" | "version" | "dev" => {}
                other => server.notes.push(format!("this key was not taken over: {other}")),
            }
        }
        Ok(server)
    }
}

/// Makes a name that a table can have.
fn server_name(name: &str) -> String {
    let plain = |letter: char| match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => letter,
        _ => '-',
    };
    name.chars().map(plain).take(64).collect()
}

/// Writes VS Code's variables as those of the environment: an input becomes one in capital letters.
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

/// Makes the name of an environment variable of any words.
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
    fn variables_of_vs_code_become_those_of_the_environment() {
        assert_eq!(vs_code("Bearer ${input:api-key}", "/w"), "Bearer ${API_KEY}");
        assert_eq!(vs_code("${workspaceFolder}/x:${env:HOME}$", "/w"), "/w/x:${HOME:-}$");
        assert_eq!(vs_code("${open", "/w"), "${open");
        assert_eq!(variable("3 keys!"), "V_3_KEYS");
    }
}

//! Turns the servers of another program's file into tables of the servers file, secrets left out.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use toml_edit::{DocumentMut, Item, Table, TableLike, value};

use super::foreign::{self, Foreign, Format, variable};
use super::table::{CodexFile, File};
use super::{Error, Result, secret};
use perihelion_settings::config::strict;

#[derive(Debug)]
pub struct Imported {
    /// The tables, as TOML.
    pub tables: String,
    /// The servers file with the tables added at its end, otherwise unchanged.
    pub file: String,
    pub servers: Vec<String>,
    /// Secrets in plain text, which were not copied.
    pub secrets: Vec<LeftOut>,
    /// The parts that were not imported, one sentence each, after the server's name.
    pub notes: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    pub server: String,
    /// The key that contained it, such as `env.TOKEN`.
    pub key: String,
    /// The environment variable that is referred to instead, and must be set.
    pub variable: String,
}

/// Reads the file of another program and adds its servers to the text of a servers file.
///
/// Without a `format` it is found out. Nothing is written.
///
/// # Errors
/// [`Error::Parse`] and [`Error::Value`] for files that cannot be read or have invalid values, also for a server whose
/// name exists.
pub fn import(
    servers: (&Path, &str),
    from: (&Path, &str),
    format: Option<Format>,
) -> Result<Imported> {
    let (path, text) = from;
    let format = format.or_else(|| foreign::detect(path, text)).ok_or_else(|| {
        let reason = "no MCP servers are found in this file; expected `mcpServers`, `servers` or \
                      `[mcp_servers.<name>]`; pass --format if it has another form";
        Error::value(path, "(the whole file)", reason)
    })?;
    let mut import = Import::default();
    let document = match format {
        Format::Codex => import.codex(path, text)?,
        Format::Claude | Format::VsCode => import.json(foreign::read(path, text, format)?),
    };
    let Import { names, secrets, notes, .. } = import;
    let known: File = strict::parse(servers.0, servers.1)?;
    if let Some(taken) = names.iter().find(|name| known.mcp_servers.contains_key(*name)) {
        let reason = format!(
            "there is a server of this name already; rename one of the two, the other is in {}",
            path.display()
        );
        return Err(Error::value(servers.0, format!("mcp_servers.{taken}"), reason));
    }
    let tables = document.to_string().trim_start().to_owned();
    let end = match servers.1.trim_end() {
        "" => String::new(),
        text => format!("{text}\n\n"),
    };
    let file = format!("{end}{tables}");
    // What is to be written must be readable again.
    let _: File = strict::parse(servers.0, &file)?;
    Ok(Imported { tables, file, servers: names, secrets, notes })
}

#[derive(Default)]
struct Import {
    names: Vec<String>,
    secrets: Vec<LeftOut>,
    /// The secrets, by the variables that replace them.
    values: HashMap<String, String>,
    notes: Vec<(String, String)>,
}

impl Import {
    fn json(&mut self, servers: Vec<Foreign>) -> DocumentMut {
        let mut all = Table::new();
        all.set_implicit(true);
        for mut server in servers {
            if let Some(reason) = server.unusable {
                self.notes.push((server.name, format!("it was left out: {reason}")));
                continue;
            }
            let name = self.free_name(std::mem::take(&mut server.name));
            let notes = server.notes.drain(..).map(|note| (name.clone(), note));
            self.notes.extend(notes);
            self.take_out(&name, &mut server.table);
            all.insert(&name, Item::Table(server.table));
            self.names.push(name);
        }
        let mut document = DocumentMut::new();
        document.insert("mcp_servers", Item::Table(all));
        document
    }

    /// Keeps the tables as they are written, comments included.
    fn codex(&mut self, path: &Path, text: &str) -> Result<DocumentMut> {
        let checked: CodexFile = strict::parse(path, text)?;
        if checked.mcp_servers.is_empty() {
            return Err(Error::value(path, "mcp_servers", "there is no server in this file"));
        }
        // It was just parsed.
        let mut document: DocumentMut = text.parse().unwrap_or_default();
        let others: Vec<String> = document
            .iter()
            .map(|(key, _)| key.to_owned())
            .filter(|key| key != "mcp_servers")
            .collect();
        for key in others {
            document.remove(&key);
        }
        let servers = document.get_mut("mcp_servers").and_then(Item::as_table_like_mut);
        for (name, item) in servers.into_iter().flat_map(TableLike::iter_mut) {
            let name = name.get().to_owned();
            if let Some(table) = item.as_table_like_mut() {
                self.take_out(&name, table);
            }
            self.names.push(name);
        }
        Ok(document)
    }

    fn take_out(&mut self, server: &str, table: &mut dyn TableLike) {
        for key in ["env", "http_headers"] {
            let pairs = table.get_mut(key).and_then(Item::as_table_like_mut);
            for (name, item) in pairs.into_iter().flat_map(TableLike::iter_mut) {
                self.replace(server, &format!("{key}.{}", name.get()), name.get(), item);
            }
        }
        if let Some(args) = table.get_mut("args").and_then(Item::as_array_mut) {
            let texts: Vec<String> =
                args.iter().map(|arg| arg.as_str().unwrap_or_default().to_owned()).collect();
            let found = secret::in_args(&texts);
            for (index, text) in texts.iter().enumerate() {
                let parts = found.iter().filter(|one| one.index == index);
                let parts: Vec<_> = parts.map(|one| (one.part.clone(), one.name.clone())).collect();
                if !parts.is_empty() {
                    args.replace(index, self.refer_to(server, "args", text, parts));
                }
            }
        }
        if let Some(item) = table.get_mut("url") {
            self.replace(server, "url", "url", item);
        }
    }

    /// Writes references in the place of the secrets in an item.
    fn replace(&mut self, server: &str, key: &str, name: &str, item: &mut Item) {
        let Some(text) = item.as_str() else { return };
        let parts = secret::in_value(name, text);
        if !parts.is_empty() {
            *item = value(self.refer_to(server, key, text, parts));
        }
    }

    fn refer_to(
        &mut self,
        server: &str,
        key: &str,
        text: &str,
        parts: Vec<(Range<usize>, String)>,
    ) -> String {
        let mut written = String::with_capacity(text.len());
        let mut end = 0;
        for (part, name) in parts {
            let secret = text.get(part.clone()).unwrap_or_default();
            let variable = self.refer(server, key, &name, secret);
            written.push_str(text.get(end..part.start).unwrap_or_default());
            written.push_str(&format!("${{{variable}}}"));
            end = part.end;
        }
        written.push_str(text.get(end..).unwrap_or_default());
        written
    }

    /// Distinguishes two servers whose names are the same here, and reports it.
    fn free_name(&mut self, name: String) -> String {
        if !self.names.contains(&name) {
            return name;
        }
        let stem: String = name.chars().take(60).collect();
        let mut free = (2..).map(|number| format!("{stem}-{number}"));
        let free = free.find(|free| !self.names.contains(free)).unwrap_or_default();
        let note = format!("another server is called {name} as well, so this one is called {free}");
        self.notes.push((free.clone(), note));
        free
    }

    /// Notes a secret and returns the variable that replaces it, named after the server; different secrets get different
    /// variables.
    fn refer(&mut self, server: &str, key: &str, name: &str, secret: &str) -> String {
        let own = variable(server);
        let name = variable(name);
        let stem = if name.contains(&own) { name } else { format!("{own}_{name}") };
        let mut variable = stem.clone();
        let mut number = 1;
        while self.values.get(&variable).is_some_and(|known| known != secret) {
            number += 1;
            variable = format!("{stem}_{number}");
        }
        self.values.insert(variable.clone(), secret.to_owned());
        let server = server.to_owned();
        let key = key.to_owned();
        self.secrets.push(LeftOut { server, key, variable: variable.clone() });
        variable
    }
}

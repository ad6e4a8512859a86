//! The servers file as a whole: its own tables, the imported ones, and excluded servers with the reason.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml_edit::DocumentMut;

use super::expand::{self, EntryLocation, Environment, missing as missing_in};
use super::foreign::{self, Format};
use super::server::{ServerConfig, Warning};
use super::table::{self, Table};
use super::{redact::Secrets, resolve};
use perihelion_settings::config::strict::{self, Error};

/// The servers file, checked and with every variable expanded.
#[derive(Clone, Debug, Default)]
pub struct ServersFile {
    /// All servers, the disabled ones too, in the order in which they are written, imported ones last.
    pub servers: Vec<ServerConfig>,
    /// Servers that cannot be used at present; the rest can.
    pub unusable: Vec<Unusable>,
    /// Warnings about entries without effect, or in the wrong place.
    pub warnings: Vec<Warning>,
    /// The files that it was read from: itself and its imports.
    pub sources: Vec<PathBuf>,
}

impl ServersFile {
    /// Reads and checks the file at `path` and those it imports; `env` looks up environment variables.
    ///
    /// # Errors
    /// [`Error::Read`] when the file cannot be read; otherwise as [`ServersFile::parse`].
    pub fn load(path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, Error> {
        Self::parse(path, &strict::read(path)?, env)
    }

    /// Checks the text of a servers file; `path` names it in errors, and is where imports start.
    ///
    /// # Errors
    /// [`Error::Parse`] with line and column for broken TOML, unknown keys and values that cannot be used;
    /// [`Error::Read`] and [`Error::Value`] for a file that is imported.
    pub fn parse(
        path: &Path,
        text: &str,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let located = |error| expand::locate(path, text, error);
        let file: table::File = strict::parse(path, text)?;
        let mut tables: Vec<_> = file.mcp_servers.into_iter().collect();
        tables.sort_by_key(|(_, table)| table.span().start);
        let mut read = Self { sources: vec![path.to_owned()], ..Self::default() };
        for (name, table) in tables {
            let place = EntryLocation { path, section: "mcp_servers", server: &name };
            read.add(&place, table.into_inner(), env).map_err(located)?;
        }
        for from in &file.import {
            read.import(path, from, env).map_err(located)?;
        }
        Ok(read)
    }

    fn add(
        &mut self,
        place: &EntryLocation<'_>,
        table: table::Table,
        env: expand::Environment<'_>,
    ) -> Result<(), Error> {
        let is_taken = self.unusable.iter().any(|one| one.server == place.server);
        if is_taken || self.get(place.server).is_some() {
            let message = "there is a server of this name already; rename or remove one of the two";
            return Err(place.error("", message));
        }
        let missing = missing(&table, env);
        if !missing.is_empty() {
            let reason = reason(place, &missing);
            let server = place.server.to_owned();
            self.unusable.push(Unusable { server, reason, required: table.required });
            return Ok(());
        }
        let server = resolve::server(place, table, env, &mut self.warnings)?;
        self.servers.push(server);
        Ok(())
    }

    fn import(
        &mut self,
        path: &Path,
        from: &str,
        env: expand::Environment<'_>,
    ) -> Result<(), Error> {
        let written = expand::expand(from, env, &mut Secrets::default())
            .map_err(|reason| Error::value(path, "import", reason))?;
        let source = path.parent().unwrap_or(Path::new("")).join(written);
        let text = strict::read(&source).map_err(|error| Error::value(path, "import", error))?;
        let format = foreign::detect(&source, &text).ok_or_else(|| {
            let reason = format!("there are no MCP servers in a form that is known here: {from}");
            Error::value(path, "import", reason)
        })?;
        self.sources.push(source.clone());
        let path = &source;
        let section = format.section();
        if format == Format::Codex {
            let file: table::CodexFile = strict::parse(path, &text)?;
            // Their order is of no importance, but must be the same each time.
            let tables: BTreeMap<_, _> = file.mcp_servers.into_iter().collect();
            for (name, table) in tables {
                self.add(&EntryLocation { path, section, server: &name }, table, env)?;
            }
            return Ok(());
        }
        for foreign::Foreign { name, table, notes, unusable } in foreign::read(path, &text, format)?
        {
            let in_file = |text: String| format!("{text} (in {})", path.display());
            let notes = notes.into_iter().map(in_file);
            self.warnings.extend(notes.map(|text| Warning { server: name.clone(), text }));
            if let Some(reason) = unusable.map(in_file) {
                self.unusable.push(Unusable { server: name, reason, required: false });
                continue;
            }
            let place = EntryLocation { path, section, server: &name };
            let table = place.at("", toml_edit::de::from_document(DocumentMut::from(table)))?;
            self.add(&place, table, env)?;
        }
        Ok(())
    }

    pub fn get(&self, name: &str) -> Option<&ServerConfig> {
        self.servers.iter().find(|server| server.name == name)
    }
}

/// A server that is excluded until a person fixes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    pub server: String,
    /// The problem, and the fix.
    pub reason: String,
    /// The start of the program fails because of it.
    pub required: bool,
}

/// Lists the unset variables of a table; a disabled server needs none.
pub(super) fn missing(table: &Table, env: Environment<'_>) -> Vec<String> {
    if !table.is_enabled() {
        return Vec::new();
    }
    let texts = table.command.iter().chain(&table.args).chain(&table.cwd).chain(&table.url);
    let values = table.env.values().chain(table.http_headers.values());
    let sandbox = table.sandbox.iter();
    let paths = sandbox.flat_map(|sandbox| sandbox.read_only.iter().chain(&sandbox.writable));
    let mut names: Vec<String> =
        texts.chain(values).chain(paths).flat_map(|text| missing_in(text, env)).collect();
    let secret = table.oauth.as_ref().and_then(|oauth| oauth.client_secret_env_var.as_ref());
    let tokens = table.bearer_token_env_var.iter().chain(secret);
    let is_unset = |name: &&String| env(name).is_none_or(|value| value.trim().is_empty());
    names.extend(tokens.filter(is_unset).cloned());
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

pub(super) fn reason(place: &EntryLocation<'_>, missing: &[String]) -> String {
    let path = place.path.display();
    match missing {
        [name] => format!(
            "set it, or give a default as in ${{{name}:-value}} in {path}; this environment variable is not set: {name}"
        ),
        names => format!(
            "set them, or give defaults as in ${{NAME:-value}} in {path}; these environment variables are not set: {}",
            names.join(", ")
        ),
    }
}

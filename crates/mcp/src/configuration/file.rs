//! The servers file as a whole: its own tables and those that it imports.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use toml_edit::DocumentMut;

use super::{
    entry_location::{self, EntryLocation},
    expand, foreign,
    foreign::Format,
    left_out::{self, Unusable},
    redact::Secrets,
    resolve,
    server::{ServerConfig, Warning},
    table,
};
use perihelion_settings::config::strict::{self, Error};

/// The servers file, checked and with every variable expanded.
#[derive(Clone, Debug, Default)]
pub struct ServersFile {
    /// All servers, the disabled ones too, in the order in which they are written, imported ones last.
    pub servers: Vec<ServerConfig>,
    /// Servers that cannot be used as things stand; the others can.
    pub unusable: Vec<Unusable>,
    /// What was understood but has no effect or should not stand there, for the operator's eyes.
    pub warnings: Vec<Warning>,
    /// The files that it was read from: itself and what it imports.
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
        let located = |error| entry_location::locate(path, text, error);
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
        let missing = left_out::missing(&table, env);
        if !missing.is_empty() {
            let reason = left_out::reason(place, &missing);
            let server = place.server.to_owned();
            self.unusable.push(Unusable { server, reason, required: table.required });
            return Ok(());
        }
        let server = resolve::server(place, table, env, &mut self.warnings)?;
        self.servers.push(server);
        Ok(())
    }

    /// Adds the servers of another program's file as they stand there now.
    fn import(
        &mut self,
        path: &Path,
        from: &str,
        env: expand::Environment<'_>,
    ) -> Result<(), Error> {
        let written = expand::expand(from, env, &mut Secrets::default())
            .map_err(|reason| Error::value(path, "import", reason))?;
        let source = path.parent().unwrap_or(Path::new("")).join(written);
        let text = strict::read(&source)?;
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

    /// Returns the server of that name.
    pub fn get(&self, name: &str) -> Option<&ServerConfig> {
        self.servers.iter().find(|server| server.name == name)
    }
}

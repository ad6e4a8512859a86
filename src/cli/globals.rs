//! The options of every command, as settings and as words for commands to be typed next.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;

use perihelion_runtime::LOCAL_TENANT;
use perihelion_settings::config::{DatabaseUrl, Overrides};

/// Options of every command; each goes before the environment variable in brackets, that before the settings file.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Global options")]
pub struct Globals {
    /// Settings file. Defaults to ./perihelion.toml if it exists [env: PERIHELION_CONFIG]
    #[arg(long, global = true, hide_short_help = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// MCP servers file. Defaults to ./mcp-servers.toml [env: PERIHELION_SERVERS]
    #[arg(long, global = true, hide_short_help = true, value_name = "FILE")]
    pub servers: Option<PathBuf>,
    /// Database: sqlite:PATH, postgres://… or memory:. Defaults to a file in the user's data directory [env: DATABASE_URL]
    #[arg(long, global = true, hide_short_help = true, value_name = "URL")]
    pub database: Option<String>,
    /// Base URL of an OpenAI-compatible endpoint. The key comes from OPENAI_API_KEY [env: OPENAI_BASE_URL]
    #[arg(long, global = true, hide_short_help = true, value_name = "URL")]
    pub model_url: Option<String>,
    /// Model name [env: OPENAI_MODEL]
    #[arg(long, global = true, hide_short_help = true, value_name = "NAME")]
    pub model: Option<String>,
    /// Log filter, such as info or perihelion=debug,warn [env: PERIHELION_LOG]
    #[arg(long, global = true, hide_short_help = true, value_name = "FILTER")]
    pub log: Option<String>,
}

impl Globals {
    /// Returns the options as what goes before environment and file.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            servers: self.servers.clone(),
            database: self.database.clone(),
            model_url: self.model_url.clone(),
            model: self.model.clone(),
            log: self.log.clone(),
            ..Overrides::default()
        }
    }

    /// Returns what an option replaces an environment variable by, for processes that are started with it.
    pub fn variable(&self, name: &str) -> Option<String> {
        let path = |path: &Option<PathBuf>| {
            Some(std::path::absolute(path.as_ref()?).ok()?.to_string_lossy().into_owned())
        };
        match name {
            "PERIHELION_CONFIG" => path(&self.config),
            "PERIHELION_SERVERS" => path(&self.servers),
            "DATABASE_URL" => self.database.clone(),
            "OPENAI_BASE_URL" => self.model_url.clone(),
            "OPENAI_MODEL" => self.model.clone(),
            "PERIHELION_LOG" => self.log.clone(),
            _ => None,
        }
    }

    /// Returns the program's name with the options given, for commands to be typed next; no password in it.
    pub fn invocation(&self) -> String {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let database = self.database.as_ref().map(|given| {
            DatabaseUrl::new(given.clone()).map_or_else(|_| given.clone(), |url| url.to_string())
        });
        let options = [
            ("--config", path(&self.config)),
            ("--servers", path(&self.servers)),
            ("--database", database),
            ("--model-url", self.model_url.clone()),
            ("--model", self.model.clone()),
        ];
        let mut line = "perihelion".to_owned();
        for (option, value) in options {
            if let Some(value) = value {
                line.push_str(&format!(" {option} {}", quoted(&value)));
            }
        }
        line
    }
}

/// Options of commands on the data of one tenant.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(super) struct TenantOptions {
    /// Tenant of the data, keys or users
    #[arg(long, global = true, value_name = "TENANT", default_value = LOCAL_TENANT, value_parser = NonEmptyStringValueParser::new())]
    pub tenant: String,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// Quotes a word for a POSIX shell, if necessary.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_command_repeats_the_options_without_the_password() {
        let globals = Globals {
            database: Some("postgres://ann:s3cret@db/p".into()),
            config: Some("my settings.toml".into()),
            ..Globals::default()
        };
        let line = globals.invocation();
        assert_eq!(line, "perihelion --config 'my settings.toml' --database postgres://ann@db/p");
    }
}

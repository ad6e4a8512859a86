//! `perihelion agents approve`: one server beside its pin, and the pin made again.

use serde_json::json;

use super::output;
use crate::cli::Error;
use crate::cli::shown::shown;
use perihelion_runtime::Review;
use perihelion_star::AGENT_PREFIX;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Agent name, with or without its prefix
    name: String,
    /// Show the differences without accepting them
    #[arg(long)]
    dry_run: bool,
}

impl Args {
    /// Returns the server's name.
    pub fn server(&self) -> &str {
        let name = self.name.trim();
        name.strip_prefix(AGENT_PREFIX).unwrap_or(name)
    }
}

/// Shows the differences and, unless they were only to be shown, accepts them.
pub(super) fn run(found: Review, args: &Args, json: bool) -> Result<(), Error> {
    let server = found.server.clone();
    let nothing = found.nothing();
    let headings = found.headings.clone();
    let text = found.text.clone();
    let path = found.path().display().to_string();
    let accepted = nothing.is_none() && !args.dry_run;
    if accepted {
        found.accept()?;
    }
    if json {
        return output::json(&json!({
            "server": server, "changes": headings, "text": text, "accepted": accepted,
        }));
    }
    if !text.is_empty() {
        output::text(&shown(&text))?;
    }
    output::note(&match nothing {
        Some(why) => format!("MCP server {server}: {why}"),
        None if args.dry_run => format!(
            "no changes were accepted. To accept them, run: perihelion agents approve {server}"
        ),
        None => format!("MCP server {server} is pinned as shown; the pin is in {path}"),
    });
    Ok(())
}

//! `perihelion teams create`: the architect designs, a person agrees, the team is kept.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use super::shown;
use crate::cli::{Error, Exit, environment, looking, output};
use perihelion_runtime::{Runtime, TeamDesign};
use perihelion_settings::config::Settings;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What the team is to achieve, in quotes
    #[arg(value_name = "GOAL")]
    goal: String,
    /// Keep the team without asking
    #[arg(long, short)]
    yes: bool,
    /// Print the team as JSON in place of the drawing and the table
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(settings: Settings, args: Args, tenant: &str) -> Result<Exit, Error> {
    let opening = looking::shown(false, async |looks| {
        Runtime::builder(settings).environment(&environment).with_progress(looks).open().await
    });
    let runtime = opening.await?;
    for problem in runtime.agents().problems().iter() {
        output::warning(&format!("MCP server {}: {}", problem.server, problem.problem));
    }
    let done = create(&runtime, &args, tenant).await;
    runtime.close().await;
    done
}

async fn create(runtime: &Runtime, args: &Args, tenant: &str) -> Result<Exit, Error> {
    let design = runtime.design_team(tenant, &args.goal).await?;
    if args.json {
        output::json(&design)?
    } else {
        output::text(&shown::proposal(&design))?
    }
    if !args.yes && !agreed(&design)? {
        output::note("nothing was saved");
        return Ok(Exit::Done);
    }
    output::note(&shown::saved(&runtime.save_team(tenant, design).await?));
    Ok(Exit::Done)
}

fn agreed(design: &TeamDesign) -> Result<bool, Error> {
    if !std::io::stdin().is_terminal() {
        return Err(Error::Unconfirmed { what: "save the team", name: design.name.clone() });
    }
    eprint!("save the team {}? [y/N] ", design.name);
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(Error::Input)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

//! `perihelion teams create`: the architect designs, a person agrees, the team is kept.

use std::io::IsTerminal as _;

use super::shown;
use crate::cli::{Error, Exit, environment, looking, output, plugins};
use perihelion_agents::kinds;
use perihelion_runtime::{Runtime, TeamDesign};
use perihelion_settings::config::Settings;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Goal of the team, in quotes
    #[arg(value_name = "GOAL")]
    goal: String,
    /// Save the team without asking
    #[arg(long, short)]
    yes: bool,
    /// Print the team as JSON instead of the diagram and the table
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(settings: Settings, args: Args, tenant: &str) -> Result<Exit, Error> {
    let opening = looking::shown(false, async |looks| {
        Runtime::builder(settings, kinds())
            .environment(&environment)
            .with_progress(looks)
            .open()
            .await
    });
    let runtime = opening.await?;
    plugins::warn(&runtime);
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
        output::note("the team was not saved");
        return Ok(Exit::Done);
    }
    output::note(&shown::saved(&runtime.save_team(tenant, design).await?));
    Ok(Exit::Done)
}

fn agreed(design: &TeamDesign) -> Result<bool, Error> {
    if !std::io::stdin().is_terminal() {
        return Err(Error::Unconfirmed { what: "save the team", name: design.name.clone() });
    }
    output::confirmed(&format!("save the team {}?", design.name))
}

//! `perihelion teams`: teams of agents for goals, designed by the architect, seen and kept by people.

mod create;
mod shown;

use std::path::{Path, PathBuf};

use super::{Error, Exit, Globals, environment, files, output, run};
use perihelion_runtime::{
    Error as RuntimeError, LOCAL_TENANT, TeamDesign, Workflows, find_team, import_team,
    open_workflows, star_as_team,
};
use perihelion_settings::config::Settings;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The supervisor sees each team as one agent, team_NAME, and assigns suitable tasks to it.

Examples:
  perihelion teams create \"Write release notes from the changes in the notes\"
  perihelion teams
  perihelion teams show release_notes
  perihelion teams run release_notes \"What changed in 1.4?\"
  perihelion teams draw release_notes > team.mmd
  perihelion teams draw --svg > supervisor.svg
  perihelion teams export release_notes > team.json
  perihelion teams import team.json")]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Tenant that owns the teams
    #[arg(long, global = true, value_name = "TENANT", default_value = LOCAL_TENANT)]
    tenant: String,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List teams, by name.
    List,
    /// Let the model design a team for a goal, and save it if you agree.
    Create(create::Args),
    /// Show a team with the goals and servers of its agents.
    Show { name: String },
    /// Ask a team a question, like `perihelion run --team NAME`.
    Run {
        name: String,
        #[command(flatten)]
        run: Box<run::Args>,
    },
    /// Delete a team with all of its versions.
    Delete { name: String },
    /// Print the design of a team as JSON.
    Export { name: String },
    /// Save a team from a design file, such as the output of `export`. Use - for standard input.
    Import { file: PathBuf },
    /// Draw a team as a Mermaid diagram. Without a name, draw the supervisor graph with all agents.
    Draw {
        name: Option<String>,
        /// Draw SVG instead
        #[arg(long)]
        svg: bool,
    },
}

pub(super) async fn run(globals: &Globals, settings: Settings, args: Args) -> Result<Exit, Error> {
    match args.command.unwrap_or(Command::List) {
        Command::Create(create) => create::run(settings, create, &args.tenant).await,
        Command::Run { name, run: mut args } => {
            args.team = Some(name);
            run::run(globals, settings, *args).await
        }
        other => {
            let kept = open_workflows(&settings).await?.for_tenant(&args.tenant);
            let done = perform(&kept, &settings, other, args.json).await;
            kept.close().await;
            done.map(|()| Exit::Done)
        }
    }
}

async fn perform(
    kept: &Workflows,
    settings: &Settings,
    command: Command,
    json: bool,
) -> Result<(), Error> {
    match command {
        Command::List => {
            let teams = kept.list().await.map_err(RuntimeError::from)?;
            if json {
                return output::json(&teams.iter().map(shown::json).collect::<Vec<_>>());
            }
            if teams.is_empty() {
                output::note("no teams yet; create one with `perihelion teams create GOAL`");
                return Ok(());
            }
            output::text(&shown::list(&teams))
        }
        Command::Show { name } => {
            let team = find_team(kept, &name).await?;
            if json {
                output::json(&shown::json(&team))
            } else {
                output::text(&shown::whole(&team))
            }
        }
        Command::Delete { name } => {
            let team = find_team(kept, &name).await?.team;
            kept.delete(&team.design.name).await.map_err(RuntimeError::from)?;
            output::note(&format!("deleted the team {}", team.design.name));
            Ok(())
        }
        Command::Export { name } => {
            let design = find_team(kept, &name).await?.team.design;
            let text = serde_json::to_string_pretty(&design);
            let text = text.map_err(|error| Error::Output(error.into()))?;
            output::bytes(format!("{text}\n").as_bytes())
        }
        Command::Import { file } => {
            let design = read(&file)?;
            let servers = &settings.servers.file;
            let team = import_team(kept, design, servers, &environment).await?;
            output::note(&shown::saved(&team));
            Ok(())
        }
        Command::Draw { name, svg } => {
            let design = match name {
                Some(name) => find_team(kept, &name).await?.team.design,
                None => star_as_team(kept, &settings.servers.file, &environment).await?,
            };
            output::text(&if svg { design.svg() } else { design.mermaid() })
        }
        // They open more than the teams.
        Command::Create(_) | Command::Run { .. } => Ok(()),
    }
}

fn read(file: &Path) -> Result<TeamDesign, Error> {
    let text = files::read_or_input(file)?;
    serde_json::from_str(&text)
        .map_err(|error| Error::Design { path: file.to_owned(), reason: error.to_string() })
}

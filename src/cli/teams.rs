//! `perihelion teams`: teams of agents for goals, designed by the architect, reviewed and saved by people.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::globals::TenantOptions;
use super::{Error, Exit, Globals, Result, environment, files, opening, output, run};
use perihelion_runtime::{
    KeptTeam, Runtime, Team, TeamDesign, TeamMember, TeamStore, find_team, import_team,
    open_team_store, star_as_team, to_read,
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
  perihelion teams export release_notes > team.json
  perihelion teams import team.json")]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    options: TenantOptions,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List teams, by name.
    List,
    /// Let the model design a team for a goal, and save it if you agree.
    Create(CreateArgs),
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
    Draw { name: Option<String> },
}

pub(super) async fn run(globals: &Globals, settings: Settings, args: Args) -> Result<Exit> {
    let Args { command, options: TenantOptions { tenant, json } } = args;
    match command.unwrap_or(Command::List) {
        Command::Create(args) => create(settings, &args, &tenant, json).await,
        Command::Run { name, run: mut args } => {
            args.team = Some(name);
            run::run(globals, settings, *args).await
        }
        other => {
            let creates = matches!(other, Command::Import { .. });
            let settings = if creates { settings } else { to_read(settings)? };
            let kept = open_team_store(&settings).await?.for_tenant(&tenant);
            let done = perform(&kept, &settings, other, json).await;
            kept.close().await;
            done.map(Exit::from)
        }
    }
}

async fn perform(
    kept: &TeamStore,
    settings: &Settings,
    command: Command,
    json: bool,
) -> Result<()> {
    match command {
        Command::List => {
            let teams = kept.list().await?;
            let shown: Vec<Value> = teams.iter().map(as_json).collect();
            let none = "no teams yet; create one with `perihelion teams create GOAL`";
            output::listed(json, &shown, none, || table(&teams))
        }
        Command::Show { name } => {
            let team = find_team(kept, &name).await?;
            output::either(json, &as_json(&team), || whole(&team))
        }
        Command::Delete { name } => {
            let team = find_team(kept, &name).await?.team;
            kept.delete(&team.design.name).await?;
            let name = &team.design.name;
            let shown = json!({ "name": name, "deleted": true });
            output::done(json, &shown, &format!("deleted the team {name}"))
        }
        Command::Export { name } => {
            let design = find_team(kept, &name).await?.team.design;
            output::bytes(format!("{}\n", output::pretty(&design)?).as_bytes())
        }
        Command::Import { file } => {
            let design = read(&file)?;
            let servers = &settings.servers.file;
            let team = import_team(kept, design, servers, &environment).await?;
            let shown = json!({ "name": team.design.name, "version": team.version });
            output::done(json, &shown, &saved(&team))
        }
        Command::Draw { name } => {
            let design = match name {
                Some(name) => find_team(kept, &name).await?.team.design,
                None => star_as_team(kept, &settings.servers.file, &environment).await?,
            };
            output::text(&design.mermaid())
        }
        // They open more than the teams.
        Command::Create(_) | Command::Run { .. } => Ok(()),
    }
}

fn read(file: &Path) -> Result<TeamDesign> {
    let text = files::read_or_input(file)?;
    serde_json::from_str(&text)
        .map_err(|error| Error::Design { path: file.to_owned(), reason: error })
}

#[derive(Debug, clap::Args)]
struct CreateArgs {
    /// Goal of the team, in quotes
    #[arg(value_name = "GOAL")]
    goal: String,
    /// Save the team without asking
    #[arg(long, short)]
    yes: bool,
}

async fn create(settings: Settings, args: &CreateArgs, tenant: &str, json: bool) -> Result<Exit> {
    let runtime = opening::runtime(settings, false).await?;
    opening::warn_of_servers(&runtime);
    let done = design(&runtime, args, tenant, json).await;
    runtime.close().await;
    done.map(Exit::from)
}

async fn design(runtime: &Runtime, args: &CreateArgs, tenant: &str, json: bool) -> Result<()> {
    let design = runtime.design_team(tenant, &args.goal, &**runtime.model()).await?;
    output::either(json, &design, || proposal(&design))?;
    let question = format!("save the team {}?", design.name);
    if !args.yes && !output::agreed("save the team", &design.name, &question)? {
        output::note("the team was not saved");
        return Ok(());
    }
    output::note(&saved(&runtime.save_team(tenant, design).await?));
    Ok(())
}

fn as_json(kept: &KeptTeam) -> Value {
    let Team { version, design } = &kept.team;
    json!({
        "name": design.name,
        "version": version,
        "agent": kept.team.agent_name(),
        "description": design.description,
        "agents": design.agents,
        "created_at": kept.created_at.to_rfc3339(),
    })
}

fn table(teams: &[KeptTeam]) -> String {
    let row = |kept: &KeptTeam| {
        let Team { version, design } = &kept.team;
        let agents: Vec<&str> = design.agents.iter().map(|agent| agent.name.as_str()).collect();
        [
            design.name.clone(),
            version.to_string(),
            agents.join(", "),
            output::brief(&design.description, 80),
        ]
    };
    output::table(["TEAM", "VERSION", "AGENTS", "DESCRIPTION"], teams.iter().map(row).collect())
}

fn whole(kept: &KeptTeam) -> String {
    let Team { version, design } = &kept.team;
    let made = kept.created_at.format("%Y-%m-%d %H:%M");
    format!(
        "{}  version {version}, {made}\n{}\n\n{}",
        design.name,
        design.description,
        agents(design)
    )
}

/// Returns the display of a design before it is saved: the drawing, then the table.
fn proposal(design: &TeamDesign) -> String {
    let drawing = design.mermaid();
    let agents = agents(design);
    format!("{}\n{}\n\n{drawing}\n\n{agents}", design.name, design.description)
}

fn agents(design: &TeamDesign) -> String {
    let row = |agent: &TeamMember| {
        [agent.name.clone(), agent.role.clone(), agent.servers.join(", "), agent.goal.clone()]
    };
    output::table(["AGENT", "ROLE", "SERVERS", "GOAL"], design.agents.iter().map(row).collect())
}

fn saved(team: &Team) -> String {
    let name = &team.design.name;
    let version = team.version;
    format!(
        "saved the team {name}, version {version}; ask it with: perihelion teams run {name} QUESTION"
    )
}

//! `perihelion skills`: the skills of agents, for people to see, share and delete.

use std::path::PathBuf;

use serde_json::json;

use super::globals::TenantOptions;
use super::{Exit, Result, files, output};
use perihelion_engine::clock;
use perihelion_runtime::{Skill, Skills, open_skills, to_read};
use perihelion_settings::config::Settings;

/// Skills that a search shows.
const FOUND: usize = 20;

const TASK_CHARS: usize = 80;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
You can shorten an ID to an unambiguous beginning.

Examples:
  perihelion skills
  perihelion skills search \"orders by city\"
  perihelion skills show 3f2a
  perihelion skills export > skills.jsonl
  perihelion skills import skills.jsonl")]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    options: TenantOptions,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List skills, newest first.
    List,
    /// Find skills with keyword search.
    Search { text: String },
    /// Show a skill with its task, calls and usage.
    Show { id: String },
    /// Delete a skill.
    #[command(alias = "forget")]
    Delete { id: String },
    /// Print all skills as JSON Lines.
    Export,
    /// Import skills from a file written by `export`. Use - for standard input.
    Import { file: PathBuf },
}

pub(super) async fn run(settings: Settings, args: Args) -> Result<Exit> {
    let Args { command, options: TenantOptions { tenant, json } } = args;
    let command = command.unwrap_or(Command::List);
    let creates = matches!(command, Command::Import { .. });
    let settings = if creates { settings } else { to_read(settings)? };
    let skills = open_skills(&settings).await?;
    let done = perform(&skills, &tenant, command, json).await;
    skills.index.database().close().await;
    done.map(Exit::from)
}

async fn perform(skills: &Skills, tenant: &str, command: Command, json: bool) -> Result<()> {
    match command {
        Command::List => {
            let none = "no skills yet; agents learn skills from approved results";
            let all = skills.list(tenant).await?;
            output::listed(json, &all, none, || output::lines(&all, line))
        }
        Command::Search { text } => {
            let found = skills.search(tenant, &text, FOUND).await?;
            let none = format!("no skills match: {text}");
            output::listed(json, &found, &none, || output::lines(&found, line))
        }
        Command::Show { id } => {
            let skill = skills.show(tenant, &id).await?;
            output::either(json, &skill, || described(&skill))
        }
        Command::Delete { id } => {
            let gone = skills.forget(tenant, &id).await?;
            let shown = json!({ "id": gone.id, "deleted": true });
            output::done(json, &shown, &format!("deleted: {}", gone.task))
        }
        Command::Export => output::bytes(skills.export(tenant).await?.as_bytes()),
        Command::Import { file } => {
            let text = files::read_or_input(&file)?;
            let learned = skills.import(tenant, &text, clock::now()).await?;
            let text = format!("imported {}", output::count(learned, "skill"));
            output::done(json, &json!({ "imported": learned }), &text)
        }
    }
}

fn line(skill: &Skill) -> String {
    let stale = if skill.is_stale { "  stale" } else { "" };
    let score = (skill.score(clock::now()) * 100.0).round();
    let task = output::brief(&skill.task, TASK_CHARS);
    format!("{}  {}  {score}%{stale}  {task}", skill.id, skill.agent)
}

fn described(skill: &Skill) -> String {
    format!(
        "{}\n\nagent     {}\nserver    {}\nsucceeded {}\nfailed    {}\nscore     {:.0}%{}\nlearned   {}\nused      {}\n\n{}",
        skill.task,
        skill.agent,
        skill.server,
        skill.successes,
        skill.failures,
        skill.score(clock::now()) * 100.0,
        if skill.is_stale { ", stale because one of its tools changed" } else { "" },
        skill.made_at.format("%Y-%m-%d %H:%M"),
        skill.used_at.format("%Y-%m-%d %H:%M"),
        skill.solution()
    )
}

//! `perihelion skills`: what agents learned, for people to see, share and forget.

use std::path::{Path, PathBuf};

use super::{Error, Exit, output};
use perihelion_engine::clock;
use perihelion_runtime::{LOCAL_TENANT, MemoryError, Skill, Skills, open_skills};
use perihelion_settings::config::Settings;

/// Skills that a search shows.
const FOUND: usize = 20;

/// Characters of a task in a list.
const TASK_CHARS: usize = 80;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
An ID may be shortened as long as one skill alone begins so.

Examples:
  perihelion skills
  perihelion skills search \"orders by city\"
  perihelion skills show 3f2a
  perihelion skills export > skills.jsonl
  perihelion skills import skills.jsonl")]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: ListArgs,
    /// Whose skills; the command line's own by default
    #[arg(long, global = true, value_name = "TENANT", default_value = LOCAL_TENANT)]
    tenant: String,
}

#[derive(Debug, Default, clap::Args)]
struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List skills, newest first.
    List(ListArgs),
    /// Find skills by words.
    Search {
        text: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a skill: its task, its calls, how often it served.
    Show {
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Forget a skill for good.
    Forget { id: String },
    /// Write all skills to standard output, one JSON object a line.
    Export,
    /// Learn skills from a file that `export` wrote; - reads standard input.
    Import { file: PathBuf },
}

pub(super) async fn run(settings: Settings, args: Args) -> Result<Exit, Error> {
    let skills = open_skills(&settings).await?;
    let command = args.command.unwrap_or(Command::List(args.list));
    let done = perform(&skills, &args.tenant, command).await;
    skills.index().database().close().await;
    done.map(|()| Exit::Done)
}

async fn perform(skills: &Skills, tenant: &str, command: Command) -> Result<(), Error> {
    let refused = |error: MemoryError| Error::from(perihelion_runtime::Error::from(error));
    match command {
        Command::List(ListArgs { json }) => {
            show_all(&skills.list(tenant).await.map_err(refused)?, json)
        }
        Command::Search { text, json } => {
            let found = skills.search(tenant, &text, FOUND).await.map_err(refused)?;
            show_all(&found, json)
        }
        Command::Show { id, json: true } => {
            output::json(&skills.show(tenant, &id).await.map_err(refused)?)
        }
        Command::Show { id, json: false } => {
            output::text(&described(&skills.show(tenant, &id).await.map_err(refused)?))
        }
        Command::Forget { id } => {
            let gone = skills.forget(tenant, &id).await.map_err(refused)?;
            output::note(&format!("forgotten: {}", gone.task));
            Ok(())
        }
        Command::Export => output::bytes(skills.export(tenant).await.map_err(refused)?.as_bytes()),
        Command::Import { file } => {
            let text = read(&file)?;
            let learned = skills.import(tenant, &text, clock::now()).await.map_err(refused)?;
            output::note(&format!("learned {learned} skills"));
            Ok(())
        }
    }
}

fn read(file: &Path) -> Result<String, Error> {
    if file.as_os_str() == "-" {
        return std::io::read_to_string(std::io::stdin()).map_err(Error::Input);
    }
    std::fs::read_to_string(file).map_err(|source| Error::Read { path: file.to_owned(), source })
}

fn show_all(skills: &[Skill], json: bool) -> Result<(), Error> {
    if json {
        return output::json(&skills);
    }
    if skills.is_empty() {
        output::note("no skills; agents learn them from results that were approved");
        return Ok(());
    }
    let lines: Vec<String> = skills.iter().map(line).collect();
    output::text(&lines.join("\n"))
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
        if skill.is_stale { ", stale: a tool that it calls changed" } else { "" },
        skill.made_at.format("%Y-%m-%d %H:%M"),
        skill.used_at.format("%Y-%m-%d %H:%M"),
        skill.solution()
    )
}

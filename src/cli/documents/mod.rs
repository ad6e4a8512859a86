//! `perihelion documents`: adds, lists, searches and deletes documents; no servers are needed, and a model only to describe
//! and rank.

mod add;
mod list;
mod search;
mod watch;

use super::globals::TenantOptions;
use super::{Exit, Result, output};
use perihelion_runtime::{DEFAULT_COLLECTION, Documents, to_read};
use perihelion_settings::config::Settings;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
You can shorten an ID to its beginning, or use a path. Files without text are rejected.
You can interrupt `add` at any time. Run the same command again to continue without repeated cost.

Examples:
  perihelion documents add contract.pdf minutes/ --collection work
  perihelion documents add minutes/ --watch --pattern '*.pdf' --prune
  perihelion documents search \"notice period\" --collection work
  perihelion documents show 4f6c2a
  perihelion documents export --collection work > work.jsonl
  perihelion documents prune --older-than 365d --dry-run
  perihelion documents evaluate judgements.jsonl")]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    options: TenantOptions,
    #[command(flatten)]
    place: InCollection,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Add files and directories.
    Add(add::Args),
    /// List documents.
    List(InCollection),
    /// Show the metadata and text of a document.
    Show(list::ShowArgs),
    /// Find passages with keyword search and vector search.
    Search(search::Args),
    /// Print documents with their texts as JSON Lines.
    Export(InCollection),
    /// Delete a document with its text, index entries and vectors.
    Delete(list::DeleteArgs),
    /// Delete documents that have not changed for a long time.
    Prune(list::PruneArgs),
    /// Embed documents of all collections with the configured model, and search with that model.
    Reindex(list::ReindexArgs),
    /// Measure retrieval with your own judgements.
    Evaluate(search::EvaluateArgs),
}

pub(super) async fn run(settings: Settings, args: Args) -> Result<Exit> {
    let max_age = settings.documents.max_age;
    let command = args.command.unwrap_or(Command::List(args.place));
    let creates = matches!(command, Command::Add(_));
    let settings = if creates { settings } else { to_read(settings)? };
    let TenantOptions { tenant, json } = args.options;
    let documents = Documents::open(&settings).await?.for_tenant(&tenant)?;
    let done = match command {
        Command::Add(args) => add::run(&documents, &args).await,
        Command::List(place) => list::run(&documents, &place, json).await.map(Exit::from),
        Command::Show(args) => list::show(&documents, &args, json).await.map(Exit::from),
        Command::Search(args) => search::run(&documents, &args, json).await.map(Exit::from),
        Command::Export(place) => list::export(&documents, &place).await.map(Exit::from),
        Command::Delete(args) => list::delete(&documents, &args, json).await.map(Exit::from),
        Command::Prune(args) => list::prune(&documents, max_age, &args, json).await.map(Exit::from),
        Command::Reindex(args) => list::reindex(&documents, &args, json).await.map(Exit::from),
        Command::Evaluate(args) => search::evaluate(&documents, &args, json).await,
    };
    documents.close().await;
    done
}

/// The option that names a collection.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
struct InCollection {
    /// Collection. Defaults to `default` for `add`, and to all collections otherwise
    #[arg(long, value_name = "NAME")]
    collection: Option<String>,
}

impl InCollection {
    fn to_add(&self) -> &str {
        self.collection.as_deref().unwrap_or(DEFAULT_COLLECTION)
    }

    fn named(&self) -> Option<&str> {
        self.collection.as_deref()
    }
}

/// Returns what a document is known by: what was given, or the whole path of the file if only that is known.
async fn known_as(documents: &Documents, given: &str) -> String {
    if documents.begun(given).await.is_err()
        && let Some(whole) = whole(given)
        && documents.begun(&whole).await.is_ok()
    {
        return whole;
    }
    given.to_owned()
}

/// Resolves a path as adding a file does, also if the file is gone.
fn whole(given: &str) -> Option<String> {
    let path = std::path::absolute(given).ok()?;
    let gone = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    let whole = path.canonicalize().ok().or_else(gone)?;
    Some(whole.to_string_lossy().into_owned())
}

fn placed(page: Option<u32>, section: Option<&str>, recognized: Option<u8>) -> String {
    let page = page.map(|page| format!("page {page}"));
    let how = recognized.map(|percent| format!("recognized text ({percent} %)"));
    let parts: Vec<String> =
        page.into_iter().chain(section.map(output::one_line)).chain(how).collect();
    parts.join(", ")
}

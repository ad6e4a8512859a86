//! `perihelion documents`: adds, lists, searches and deletes documents; no servers are needed, and a model only to describe
//! and rank.

mod add;
mod evaluate;
mod list;
mod reindex;
mod search;
mod watch;

use super::{Error, Exit, output};
use perihelion_runtime::{DEFAULT_COLLECTION, Documents, LOCAL_TENANT};
use perihelion_settings::config::Settings;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
An ID may be shortened to its beginning; a path will do, too. Files without text (scans, passwords) are refused
by name. Adding can be interrupted at any point: the same command continues and pays for nothing twice.

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
    /// Without a command it lists.
    #[command(flatten)]
    list: list::Args,
    /// Whose documents; the command line's own by default
    #[arg(long, global = true, value_name = "TENANT", default_value = LOCAL_TENANT)]
    tenant: String,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Add files, and the files of directories.
    Add(add::Args),
    /// List documents.
    List(list::Args),
    /// Show what is known of a document, and its text.
    Show(list::ShowArgs),
    /// Find passages by words and by meaning.
    Search(search::Args),
    /// Write documents with their texts as lines of JSON.
    Export(list::ExportArgs),
    /// Delete a document for good: text, index and vectors.
    Delete(list::DeleteArgs),
    /// Delete documents that were not changed for long, as `delete` does.
    Prune(list::PruneArgs),
    /// Embed what has no vector by the configured model yet, in all collections, and search by that model.
    Reindex(reindex::Args),
    /// Measure retrieval on your own judgements: lines of JSON with `question`, and `quote`, `document` or both.
    Evaluate(evaluate::Args),
}

pub(super) async fn run(settings: Settings, args: Args) -> Result<Exit, Error> {
    let max_age = settings.documents.max_age;
    let documents = Documents::open(&settings).await?.for_tenant(&args.tenant)?;
    let done = match args.command.unwrap_or(Command::List(args.list)) {
        Command::Add(args) => add::run(&documents, &args).await,
        Command::List(args) => list::run(&documents, &args).await,
        Command::Show(args) => list::show(&documents, &args).await,
        Command::Search(args) => search::run(&documents, &args).await,
        Command::Export(args) => list::export(&documents, &args).await,
        Command::Delete(args) => list::delete(&documents, &args).await,
        Command::Prune(args) => list::prune(&documents, max_age, &args).await,
        Command::Reindex(args) => reindex::run(&documents, &args).await,
        Command::Evaluate(args) => evaluate::run(&documents, &args).await,
    };
    documents.close().await;
    done
}

/// The option that names a collection.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
struct InCollection {
    /// Name of the collection; `default` for adding, and all of them otherwise
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

/// Writes a source as a person reads it.
fn placed(page: Option<u32>, section: Option<&str>) -> String {
    let page = page.map(|page| format!("page {page}"));
    let parts: Vec<String> = page.into_iter().chain(section.map(output::one_line)).collect();
    parts.join(", ")
}

//! Keeps documents and finds what answers a question in them, with page, section and quote.
//!
//! Enter at [`Server::open`]; the tools are in `tools`, what they answer in `answers`. Invariants: a quote is the text
//! between `start` and `end`, counted in characters; with a directory no file outside of it is read; documents are
//! parsed in a process of their own. Deliberately absent: answers; texts are found by meaning where an
//! embeddings endpoint is configured, and by words otherwise, and a model that is configured says what a document is about.

mod answers;
mod tools;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use perihelion_database::Database;
use perihelion_documents::{
    Docling, EmbeddingModel, External, Library, Limits, Parser, Quotas, Reader, Scope, Weights,
};

use perihelion_engine::checkpoint;
use perihelion_ingest as ingest;
use perihelion_settings::config::{OtherParser, Overrides, Settings};
pub use tools::Server;

/// Whose documents are kept unless another owner is named.
pub const OWNER: &str = "local";

/// The tenant of a program that serves one.
pub const TENANT: &str = "default";

/// Where a call of the program that started the server says whose it is.
pub const TENANT_META: &str = "dev.perihelion/tenant";

/// The hidden command that parses a document and ends.
pub const PARSE_COMMAND: &str = "parse-document";

/// How long a document may take to be parsed.
const PARSING: Duration = Duration::from_secs(300);

/// How long a parser of somebody else's may take to be reached.
const CONNECTING: Duration = Duration::from_secs(10);

/// What `perihelion mcp documents` is given.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Database that keeps the documents; by default the one of the threads [env: DATABASE_URL]
    #[arg(long, value_name = "URL")]
    pub database: Option<String>,
    /// Collection that documents are added to and searched in; by default added to `default` and searched in all
    #[arg(long, value_name = "NAME")]
    pub collection: Option<String>,
    /// Whose documents they are
    #[arg(long, value_name = "NAME", default_value = OWNER)]
    pub owner: String,
    /// Directory whose files alone may be added; by default every file that this user can read
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Ask no embeddings endpoint: documents are found by words
    #[arg(long)]
    pub words_only: bool,
    /// Ask no model what documents are about
    #[arg(long)]
    pub undescribed: bool,
    /// Neither add nor delete
    #[arg(long)]
    pub read_only: bool,
}

/// Why documents cannot be served, or a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Documents(#[from] perihelion_documents::Error),
    #[error(transparent)]
    Database(#[from] perihelion_database::Error),
    #[error(transparent)]
    Threads(#[from] checkpoint::Error),
    #[error(transparent)]
    Adding(#[from] ingest::Error),
    #[error(transparent)]
    Settings(#[from] perihelion_settings::config::Error),
    #[error("cannot serve the directory {}: {source}", path.display())]
    Root { path: PathBuf, source: std::io::Error },
    #[error("no HTTP client can be made for the embeddings endpoint and the parser: {0}")]
    Client(#[from] reqwest::Error),
    #[error("pass either `path` or `text`")]
    PathOrText,
    #[error("cannot read {path}: {source}")]
    File { path: String, source: std::io::Error },
    #[error("this server only reads: it was started with --read-only")]
    ReadOnly,
}

/// Returns the parser: this program again, as a process that bounds itself.
pub fn parser() -> Parser {
    match std::env::current_exe() {
        Ok(program) => Parser::Process {
            program,
            arguments: vec![OsString::from(PARSE_COMMAND), OsString::from("--")],
            limits: Limits::default(),
            timeout: PARSING,
        },
        // Without a name of its own the program cannot start itself.
        Err(_) => Parser::Here(Limits::default()),
    }
}

/// Returns the parser as the settings have it: helped by another one where they name one.
///
/// # Errors
/// When no HTTP client can be made.
fn parser_of(settings: &Settings) -> Result<Parser, reqwest::Error> {
    let own = &settings.documents;
    let reader = match &own.parser {
        None => return Ok(parser()),
        Some(OtherParser::Program(program)) => Reader::Program(program.clone()),
        Some(OtherParser::Docling(url)) => {
            let http = client().connect_timeout(CONNECTING).build()?;
            Reader::Docling(Docling::new(http, url, settings.documents_parser_key.clone()))
        }
    };
    let by = External {
        reader,
        endings: own.parser_for.0.clone(),
        timeout: Duration::try_from_secs_f64(own.parser_timeout_sec).unwrap_or(PARSING),
    };
    Ok(Parser::Helped { own: Box::new(parser()), by })
}

/// Begins a client of an address that the operator named.
fn client() -> reqwest::ClientBuilder {
    perihelion_settings::config::tls::install();
    reqwest::Client::builder()
        // A redirect would carry texts to a host that nobody configured.
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("perihelion/", env!("CARGO_PKG_VERSION")))
}

/// Returns the embeddings endpoint that the settings name, if any.
///
/// # Errors
/// When no HTTP client can be made.
pub fn embeddings(
    settings: &Settings,
) -> Result<Option<perihelion_embeddings::Endpoint>, reqwest::Error> {
    let Some(own) = &settings.embeddings else { return Ok(None) };
    let http = client().connect_timeout(own.connect_timeout).build()?;
    let settings = perihelion_embeddings::Settings {
        url: own.url.clone(),
        model: own.model.clone(),
        api_key: own.api_key.clone(),
        dimension: own.dimension,
        batch: own.batch,
        timeout: own.timeout,
        retries: own.max_retries,
        backoff: own.backoff,
    };
    Ok(Some(perihelion_embeddings::Endpoint::new(http, settings)))
}

/// Returns what the settings permit each tenant to keep.
fn quotas(settings: &Settings) -> Quotas {
    let own = &settings.documents;
    Quotas {
        documents: Some(own.max_documents),
        text_bytes: own.max_text_bytes,
        chunks: own.max_chunks,
    }
}

/// Makes the library on a database as the settings have it.
///
/// # Errors
/// When no HTTP client can be made for the parser.
pub fn library_of(settings: &Settings, database: Database) -> Result<Library, reqwest::Error> {
    let own = &settings.documents;
    let weights = Weights { words: own.weight_of_words, meaning: own.weight_of_meaning };
    let library = Library::new(database, parser_of(settings)?);
    Ok(library.with_quotas(quotas(settings)).with_weights(weights))
}

/// What the options name.
struct Opened {
    library: Library,
    /// That of a caller that does not say whose call it is.
    scope: Scope,
    embeddings: Option<Arc<dyn EmbeddingModel>>,
    settings: Settings,
}

async fn open(options: &Options) -> Result<Opened, Error> {
    let env = |name: &str| std::env::var(name).ok();
    let overrides = Overrides { database: options.database.clone(), ..Overrides::default() };
    let file = Settings::file(None, &env);
    let settings = Settings::load(overrides, file.as_deref(), &env)?;
    let database = Database::open(settings.store.database.expose()).await?;
    let scope = Scope::new(TENANT, &options.owner).map_err(perihelion_documents::Error::from)?;
    let embeddings = if options.words_only { None } else { embeddings(&settings)? };
    let library = library_of(&settings, database)?;
    let embeddings = embeddings.map(|endpoint| Arc::new(endpoint) as Arc<dyn EmbeddingModel>);
    Ok(Opened { library, scope, embeddings, settings })
}

//! A custom kind of agent: a pipeline that answers from files with a quote and its position.
//!
//! `librarian DATABASE SERVERS THREAD [QUESTION]` asks a question on a thread, or continues the thread.
//! `docs/guides/custom-agents.md` explains kinds. Set the model with `OPENAI_BASE_URL`, and `agent = "librarian"` in the
//! servers file for a server with the tools `search` and `read`, such as the bundled `files`.

use std::path::Path;
use std::sync::Arc;

use perihelion::agents;
use perihelion::agents::pipeline::{
    AgentError, Ask, Clarification, ErrorKind, Finding, Kind, Pipeline, Role, Source, Stage,
    StageResult, Step,
};
use perihelion::config::{Overrides, Settings};
use perihelion::ids::ThreadId;
use perihelion::llm::OpenAiModel;
use perihelion::mcp::{Pool, PoolOptions, ServersFile};
use perihelion::runtime::{RunReport, Runtime};
use perihelion::swarm::Request;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

perihelion::graph_state! {
    /// The state that the stages pass on.
    pub struct Shelf, update ShelfUpdate, version 1 {
        words: String => overwrite,
        /// The file that was chosen.
        path: String => overwrite,
        text: String => overwrite,
    }
}

/// What the model answers in the stage `words`.
#[derive(Debug, Deserialize, JsonSchema)]
struct SearchWords {
    /// One or two words that must stand in the file.
    words: String,
}

/// What the model answers in the stage `answer`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Quotation {
    answer: String,
    /// The line that says so, word for word.
    quote: String,
    confidence: f64,
    /// What the file leaves open, if anything.
    gap: Option<String>,
}

/// The kind `librarian`.
pub fn kind() -> Arc<dyn Kind> {
    Pipeline::<Shelf>::new("librarian")
        .about("answers from files, with a quote and its position")
        .tool("search", "finds lines that contain a text")
        .tool("read", "reads a file")
        .profile("files", &[("search", "search"), ("read", "read")])
        .template("librarian_words", include_str!("librarian/words.md"))
        .template("librarian_answer", include_str!("librarian/answer.md"))
        .stage("words", words)
        .stage("search", search)
        .stage("read", read)
        .stage("answer", answer)
        .into_kind()
}

/// Asks the model what to look for.
async fn words(stage: Stage<Shelf>) -> StageResult<Shelf> {
    let prompt = json!({ "task": stage.task(), "feedback": stage.feedback() });
    let ask = Ask::new(Role::Agent, "words", "search_words").prompt("librarian_words", prompt);
    let found: SearchWords = stage.ask(ask).await?;
    Ok(Step::next(ShelfUpdate::new().words(found.words)))
}

/// Searches for files with these words, and asks the user to choose if there are several.
async fn search(stage: Stage<Shelf>) -> StageResult<Shelf> {
    let reply = stage.call("search", json!({ "query": stage.state().words })).await?;
    if reply.is_error {
        return Err(AgentError::new(ErrorKind::Tool, reply.text).into());
    }
    let found = reply.structured.unwrap_or_default();
    let hits = found["hits"].as_array().into_iter().flatten();
    let mut paths: Vec<&str> = hits.filter_map(|hit| hit["path"].as_str()).collect();
    paths.dedup();
    let path = match paths.as_slice() {
        [] => return Step::decline("no file holds these words"),
        [path] => (*path).to_owned(),
        several => {
            let question = Clarification::new("Several files fit. Which one do you mean?");
            let question = several.iter().fold(question, |question, path| question.option(*path));
            stage.clarify(question).await?
        }
    };
    Ok(Step::next(ShelfUpdate::new().path(path)))
}

/// Reads the file.
async fn read(stage: Stage<Shelf>) -> StageResult<Shelf> {
    let reply = stage.call("read", json!({ "path": stage.state().path })).await?;
    if reply.is_error {
        Err(AgentError::new(ErrorKind::PathResolution, reply.text).into())
    } else {
        Ok(Step::next(ShelfUpdate::new().text(reply.text)))
    }
}

/// Asks the model to answer from the text, and cites the position of the quote.
async fn answer(stage: Stage<Shelf>) -> StageResult<Shelf> {
    let prompt =
        json!({ "task": stage.task(), "path": stage.state().path, "text": stage.state().text });
    let ask = Ask::new(Role::Agent, "answer", "quotation").prompt("librarian_answer", prompt);
    let response: Quotation = stage.ask(ask).await?;
    let source = Source {
        source: format!("{}.read", stage.server().name),
        reference: Some(stage.state().path.clone()),
        quote: Some(response.quote),
        ..Source::default()
    };
    Ok(Step::done(Finding::text(response.answer).confidence(response.confidence).source(source)))
}

/// Opens a runtime that knows the kind.
pub async fn open(
    database: &str,
    servers: &Path,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Runtime, Box<dyn std::error::Error>> {
    let settings = Settings::load(Overrides::default(), None, env)?;
    let model = Arc::new(OpenAiModel::new(&settings.models)?);
    let pool = Pool::new(ServersFile::load(servers, env)?, PoolOptions::default());
    let store = perihelion::checkpoint::open(database).await?;
    let kinds = agents::kinds().with(kind());
    let builder = Runtime::builder(settings, kinds).with_model(model).with_pool(pool);
    Ok(builder.with_store(store).open().await?)
}

/// Asks a thread a question, or continues it.
pub async fn run(
    runtime: Runtime,
    thread: ThreadId,
    question: Option<String>,
) -> Result<RunReport, Box<dyn std::error::Error>> {
    let report = match question {
        Some(question) => {
            let request = Request { question, ..Request::default() };
            runtime.ask(thread, None, request, runtime.run_options()).await
        }
        None => runtime.resume(thread, runtime.run_options()).await,
    };
    runtime.close().await;
    Ok(report?)
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it did")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.is_empty() {
        println!("The kinds of agents of this program, with its own:");
        for kind in agents::kinds().with(kind()).iter() {
            println!("  {}: {}", kind.card().name, kind.card().about);
        }
        println!("To ask: librarian DATABASE SERVERS THREAD [QUESTION]");
        return Ok(());
    }
    let [database, servers, thread, question @ ..] = arguments.as_slice() else {
        return Err("usage: librarian DATABASE SERVERS THREAD [QUESTION]".into());
    };
    let runtime = open(database, servers.as_ref(), &|name| std::env::var(name).ok()).await?;
    let report = run(runtime, thread.parse()?, question.first().cloned()).await?;
    let shown: Value = serde_json::to_value(&report)?;
    println!("{shown:#}");
    Ok(())
}

//! The demo of documents: two agents with documents of their own, and one with tables that stands on both.
//!
//! The course: a plan in the form of a diamond's lower half, where the count waits for what the two others found. The documents are
//! the time zone database's own, added to a database of the demo; what the scripted model writes is put together from the passages and
//! rows that stand in its requests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use perihelion_database::Database;
use perihelion_documents::{Input, Library, Limits, Parser, Scope, Step};
use serde_json::json;

use super::reading::{section, tool_results, unescape};
use super::{Options, TENANT};
use crate::checkpoint::Store;
use crate::clock;
use crate::config::Settings;
use crate::llm::scripted::{RecordedRequest, Reply, Script, ScriptedModel};
use crate::llm::{ChatModel, OpenAiModel};
use crate::mcp::{Pool, ServersFile};
use crate::runtime::{Error, Runtime};
use crate::servers::demo_data::{self, DemoData};
use crate::servers::documents::TENANT as KEPT_UNDER;

/// The question of the demo of documents.
pub const DOCUMENTS_QUESTION: &str = "What do the documents say of Morocco's clocks and Ramadan, how does the database decide on names of zones, and how often did Morocco's clocks change?";

/// Title of the demo's threads, by which a later process knows which demo they are of.
pub const DOCUMENTS_TITLE: &str = "demo of documents";

const NEWS: &str = "news";
const THEORY: &str = "theory";

/// Milliseconds before each reply, so that a person can follow.
const PACE_MS: u64 = 100;

/// Opens the runtime of the demo of documents; they are added first, and unchanged ones cost nothing.
///
/// # Errors
/// As [`Runtime::open`], and [`Error::Demo`] when the data cannot be written.
pub async fn open_documents(
    mut settings: Settings,
    store: Arc<dyn Store>,
    Options { home, pool, goes_on }: Options,
    tell: &(dyn Fn(&str) + Send + Sync),
) -> Result<Runtime, Error> {
    let failed = |source| Error::Demo { path: home.clone(), source };
    let data = demo_data::install(&home).await.map_err(failed)?;
    let kept = home.join("documents.db");
    add(&data, &kept, tell).await?;
    let server = ScriptedModel::start(Script::new().respond_with(respond)).await?;
    settings.models = settings.models.at(server.url(), "scripted");
    let model: Arc<dyn ChatModel> = Arc::new(OpenAiModel::new(&settings.models)?);
    let file = ServersFile::parse(Path::new("(demo)"), &servers(&data, &kept), &|_| None)?;
    let pool = Pool::new(file, pool);
    let runtime = Runtime::going_on(settings, model, pool, store, goes_on).await?;
    Ok(runtime.beside(TENANT, server))
}

/// Adds the documents: the news of each year for one agent, theory and calendars for the other.
async fn add(
    data: &DemoData,
    kept: &Path,
    tell: &(dyn Fn(&str) + Send + Sync),
) -> Result<(), Error> {
    let database = Database::open(&kept.display().to_string()).await?;
    let library = Library::new(database, Parser::Here(Limits::default()));
    let mut files: Vec<(PathBuf, &str)> = Vec::new();
    let failed = |source| Error::Demo { path: data.documents.clone(), source };
    for entry in std::fs::read_dir(data.documents.join("news")).map_err(failed)? {
        files.push((entry.map_err(failed)?.path(), NEWS));
    }
    for name in ["theory.txt", "calendars.txt"] {
        files.push((data.documents.join(name), THEORY));
    }
    files.sort();
    for (path, owner) in files {
        let scope = Scope::new(KEPT_UNDER, owner).map_err(perihelion_documents::Error::from)?;
        let input = Input {
            bytes: std::fs::read(&path).map_err(failed)?,
            path: path.display().to_string(),
            collection: owner.to_owned(),
            title: path.file_stem().map(|name| format!("{owner} {}", name.to_string_lossy())),
            now: clock::now(),
        };
        let added = library.add(&scope, input, None, None, &|_: Step| {}).await?;
        if !added.unchanged {
            tell(&format!("added {}: {} pieces", added.document.title, added.document.chunks));
        }
    }
    library.close().await;
    Ok(())
}

fn servers(data: &DemoData, kept: &Path) -> String {
    let quote = |path: &Path| toml::Value::String(path.display().to_string()).to_string();
    let documents = |name: &str, about: &str| {
        format!(
            "[mcp_servers.{name}]\n\
             description = \"{about}\"\n\
             command = \"perihelion\"\n\
             args = [\"mcp\", \"documents\", \"--database\", {}, \"--owner\", \"{name}\", \"--read-only\", \"--words-only\"]\n\
             default_tools_effect = \"read_only\"\n\
             agent = \"documents\"\n\n",
            quote(kept)
        )
    };
    format!(
        "{}{}[mcp_servers.sql]\n\
         description = \"the IANA time zone database as tables: zones, their countries, every change of offset since 1970\"\n\
         command = \"perihelion\"\n\
         args = [\"mcp\", \"sql\", \"--database\", {}]\n\
         agent = \"tools\"\n\
         default_tools_effect = \"read_only\"\n",
        documents(NEWS, "the time zone database's announcements, year by year"),
        documents(THEORY, "how the time zone database is made: theory, calendars"),
        quote(&data.database),
    )
}

/// Answers one request.
fn respond(request: &RecordedRequest) -> Option<Reply> {
    let agent = request.agent.as_deref().unwrap_or_default();
    let reply = match request.role.as_str() {
        "supervisor" => supervisor(request),
        "reranker" => rerank(request),
        "agent" if agent.ends_with("sql") => count(request),
        "agent" => Reply::text(quoted(request)),
        "reflector" => Reply::json(json!({
            "status": "APPROVED", "refined_output": null, "feedback": null,
        })),
        "qa" => Reply::text(answer(request)),
        _ => return None,
    };
    Some(reply.delay_ms(PACE_MS))
}

fn supervisor(request: &RecordedRequest) -> Reply {
    let names = [NEWS, THEORY, "sql"].map(|name| format!("mcp_agent_{name}"));
    let [news, theory, sql] = &names;
    if request.contains("<result number=\"3\"") {
        return Reply::json(json!({
            "thought_process": "Passages and counts are there.",
            "plan": ["done: read the announcements", "done: read the theory", "done: count", "answer"],
            "selected_agents": ["qa"], "tasks": [], "clarification": null, "confidence": 0.9,
        }));
    }
    Reply::json(json!({
        "thought_process": "Two sets of documents can be read side by side; the count stands on what they name.",
        "plan": ["read the announcements", "read the theory", "count", "answer"],
        "selected_agents": names,
        "tasks": [
            { "id": "t1", "agent": news, "depends_on": [], "task": "Morocco clocks suspended during Ramadan" },
            { "id": "t2", "agent": theory, "depends_on": [], "task": "rules for the names of timezones: use of a location's name" },
            { "id": "t3", "agent": sql, "depends_on": ["t1", "t2"], "task": "Count how often the clocks of Africa/Casablanca changed from 2010 to 2025." },
        ],
        "clarification": null, "confidence": 0.9,
    }))
}

/// Puts passages that name the places of the question first.
fn rerank(request: &RecordedRequest) -> Reply {
    let text = unescape(request.last_text());
    let passages: Vec<&str> = text.split("<passage number=").skip(1).collect();
    let fits = |passage: &&str| passage.contains("Ramadan") || passage.contains("location");
    let (first, rest): (Vec<usize>, Vec<usize>) =
        (1..=passages.len()).partition(|number| passages.get(number - 1).is_some_and(fits));
    let ranking = [first, rest].concat();
    Reply::json(json!({ "ranking": ranking }))
}

/// Quotes the sentence of the best passage in which the matter is named, and cites it.
fn quoted(request: &RecordedRequest) -> String {
    let text = unescape(request.last_text());
    let mut said = Vec::new();
    for (number, passage) in (1..=2).zip(text.split("<passage number=").skip(1)) {
        let inside = passage.split_once('>').map_or(passage, |(_, inside)| inside);
        let inside = inside.split("</passage>").next().unwrap_or_default();
        let words = inside.split_whitespace().collect::<Vec<_>>().join(" ");
        let sentences = words.split_inclusive(". ");
        let chosen =
            sentences.clone().find(|one| one.contains("Ramadan") || one.contains("location"));
        let sentence = chosen.or_else(|| sentences.clone().next()).unwrap_or_default();
        let sentence: String = sentence.trim().trim_end_matches('.').chars().take(400).collect();
        if !sentence.is_empty() {
            said.push(format!("“{sentence}” [{number}]."));
        }
    }
    said.join(" ")
}

fn count(request: &RecordedRequest) -> Reply {
    let sql = "SELECT COUNT(*) AS changes FROM transitions WHERE zone = 'Africa/Casablanca' AND changed_at >= '2010-01-01' \
               AND changed_at < '2026-01-01' AND offset_before <> offset_after";
    match request.tool_results() {
        0 => Reply::call("query", json!({ "sql": sql })),
        _ => {
            let last = tool_results(request).pop().unwrap_or_default();
            let count =
                super::reading::rows(&last).into_iter().flatten().next().unwrap_or_default();
            Reply::text(format!(
                "The clocks of Africa/Casablanca changed {count} times from 2010 to 2025."
            ))
        }
    }
}

fn answer(request: &RecordedRequest) -> String {
    let results = section(request.last_text(), "<results>", "</results>");
    let cited = |number: usize| {
        let result = section(results, &format!("<result number=\"{number}\""), "</result>");
        let output = unescape(section(result, "<output>", "</output>").trim());
        // The passages' own numbers mean nothing here.
        let output = perihelion_documents::check(&output, 0).text;
        (!output.is_empty()).then(|| format!("{output} [{number}]"))
    };
    (1..=3).filter_map(cited).collect::<Vec<_>>().join("\n\n")
}

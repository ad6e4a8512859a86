//! Tries the parts that a run needs, one by one, without running anything.

use std::collections::BTreeMap;

use perihelion_database::Database;

use super::Error;
use perihelion_embeddings::Endpoint;
use perihelion_engine::checkpoint::{self, NewThread, ThreadFilter};
use perihelion_engine::ids::ThreadId;
use perihelion_llm::{self as llm, EmbeddingModel as _, Role, openai};
use perihelion_mcp::{ServersFile, Transport};
use perihelion_runtime::{self as runtime, collector as collector_of, open_store};
use perihelion_servers::{Bundled, Finding};
use perihelion_settings::config::Settings;
use perihelion_telemetry::otlp;

/// An endpoint and a model name that some role uses.
#[derive(Debug)]
pub struct EndpointCheck {
    /// Without query.
    pub url: String,
    pub model: String,
    /// Whether the endpoint lists the model; `None` when it lists none at all.
    pub listed: Result<Option<bool>, llm::Error>,
    /// What more there is to say of an error.
    pub advice: &'static str,
}

/// Asks about the end of an address at which nothing is found.
fn without_version(error: &llm::Error, url: &str) -> &'static str {
    let is_versioned = url.trim_end_matches('/').ends_with("/v1");
    match error {
        llm::Error::Refused { status: 404, .. } if is_versioned => {
            "; there is no /models under this address: is it that of an OpenAI-compatible endpoint?"
        }
        llm::Error::Refused { status: 404, .. } => {
            "; there is no /models under this address: should it end in /v1?"
        }
        _ => "",
    }
}

/// Opens the database, writes a thread and removes it again; returns where the data lies.
///
/// # Errors
/// As the store reports it.
pub async fn store(settings: &Settings) -> Result<String, Error> {
    let store = open_store(settings).await?;
    let thread = ThreadId::new();
    let new = NewThread {
        id: thread,
        graph: "checkup".into(),
        title: Some("checkup".into()),
        root: None,
        namespace: String::new(),
        tenant: "default".into(),
    };
    let written = async {
        store.create(new).await?;
        store.delete(thread).await
    };
    let written = written.await;
    let place = store.describe();
    store.close().await;
    Ok(written.map(|()| place)?)
}

/// Tells whether the database's role sees the rows of all tenants whatever row-level security says.
///
/// # Errors
/// [`Error::Database`].
pub async fn is_exempt(settings: &Settings) -> Result<bool, Error> {
    let opened = Database::open(settings.store.database.expose()).await;
    let database = opened.map_err(runtime::Error::from)?;
    let found = database.is_exempt().await;
    database.close().await;
    Ok(found.map_err(runtime::Error::from)?)
}

/// Threads that [`contents`] looks at.
const LOOKED_AT: u32 = 20;

/// Reads the newest threads, so that a missing or wrong key shows; returns what encrypts, if anything does.
///
/// # Errors
/// [`Error::Store`] with the first thread that cannot be read.
pub async fn contents(settings: &Settings) -> Result<Option<String>, Error> {
    let store = open_store(settings).await?;
    let read = async {
        let filter = ThreadFilter { limit: Some(LOOKED_AT), ..ThreadFilter::default() };
        for info in store.list(&filter).await? {
            for step in store.history(info.id, None, 1).await? {
                step.delta.to_json_bytes()?;
            }
        }
        Ok(())
    };
    let read: Result<(), checkpoint::Error> = read.await;
    store.close().await;
    read?;
    let names: Vec<&str> = settings.encryption.keys.iter().map(|key| key.name.as_str()).collect();
    Ok(names.split_first().map(|(first, older)| match older {
        [] => format!("with the key {first}"),
        older => format!("with the key {first}; also read: {}", older.join(", ")),
    }))
}

/// Why an embedding model returned no vector.
type EmbeddingFailure = Box<dyn std::error::Error + Send + Sync>;

/// Requests one vector from the embedding model, if one is configured.
pub async fn embeddings(settings: &Settings) -> Option<Result<String, EmbeddingFailure>> {
    let settings = settings.embeddings.as_ref()?;
    let asked = async {
        let model = Endpoint::new(settings).map_err(llm::Error::from)?;
        let vectors = model.embed(&["checkup".to_owned()]).await;
        let length = vectors?.first().map_or(0, Vec::len);
        Ok(format!("{} at {}, vectors of {length}", model.model(), settings.url))
    };
    Some(asked.await)
}

/// What stands between the runs and the collector that the settings name.
#[derive(Debug)]
pub struct CollectorCheck {
    pub endpoint: String,
    /// Whether it takes an empty request.
    pub answer: Result<(), otlp::Error>,
    /// Threads with traces that did not arrive yet; none where the database cannot tell.
    pub pending: Option<usize>,
}

/// Sends the collector an empty request and counts what it has not got yet; none where none is named.
pub async fn collector(settings: &Settings) -> Option<CollectorCheck> {
    let collector = collector_of(settings)?;
    let answer = match otlp::Sink::new(&collector) {
        Ok(sink) => sink.check().await,
        Err(error) => Err(error),
    };
    let pending = async {
        let store = open_store(settings).await.ok()?;
        let pending = store.outbox()?.pending(1_000).await.ok();
        store.close().await;
        Some(pending?.len())
    };
    Some(CollectorCheck { endpoint: collector.endpoint, answer, pending: pending.await })
}

/// Returns what should be changed about the roles with which bundled SQL servers read Postgres: server and warning.
pub async fn sql_roles(
    settings: &Settings,
    env: &dyn Fn(&str) -> Option<String>,
) -> Vec<(String, String)> {
    let Ok(file) = ServersFile::load(&settings.servers.file, env) else { return Vec::new() };
    let mut found = Vec::new();
    for server in file.servers.iter().filter(|server| server.enabled) {
        let Transport::Stdio { args, .. } = &server.transport else { continue };
        if let [mcp, sql, rest @ ..] = args.as_slice()
            && mcp == "mcp"
            && sql == "sql"
            // A server that cannot be opened is reported as one.
            && let Ok(warnings) = perihelion_servers::sql::warnings(rest).await
        {
            found.extend(warnings.into_iter().map(|warning| (server.name.clone(), warning)));
        }
    }
    found
}

/// Longest check of a server.
const CHECK: std::time::Duration = std::time::Duration::from_secs(60);

/// Has each bundled server that needs more than to be started try what it needs, in the environment that its table gives it.
pub async fn bundled(
    settings: &Settings,
    env: &dyn Fn(&str) -> Option<String>,
) -> Vec<(String, Finding)> {
    let Ok(file) = ServersFile::load(&settings.servers.file, env) else { return Vec::new() };
    let Ok(program) = std::env::current_exe() else { return Vec::new() };
    let mut checks = Vec::new();
    for server in file.servers.iter().filter(|server| server.enabled) {
        let Transport::Stdio { args, env, cwd, .. } = &server.transport else { continue };
        let [mcp, name, ..] = args.as_slice() else { continue };
        if mcp != "mcp" || !Bundled::CHECKED.contains(&name.as_str()) {
            continue;
        }
        let mut command = tokio::process::Command::new(&program);
        command.args(["mcp", "--check"]).args(args.iter().skip(1)).env_clear().envs(env);
        command.stdin(std::process::Stdio::null()).kill_on_drop(true);
        if let Some(cwd) = cwd {
            command.current_dir(cwd);
        }
        checks.push(async move { (server.name.clone(), check(command).await) });
    }
    let checked = futures::future::join_all(checks).await.into_iter();
    checked
        .flat_map(|(name, found)| found.into_iter().map(move |one| (name.clone(), one)))
        .collect()
}

/// A server whose arguments cannot be read is reported where it is scanned.
async fn check(mut command: tokio::process::Command) -> Vec<Finding> {
    match tokio::time::timeout(CHECK, command.output()).await {
        Ok(Ok(output)) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.lines().filter_map(Finding::read).collect()
        }
        Ok(Err(error)) => vec![Finding::Bad(format!("cannot be checked: {error}"))],
        Err(_) => vec![Finding::Bad(format!("gave no word within {} s", CHECK.as_secs()))],
    }
}

/// Asks every endpoint that a role of a run uses for its models; nothing is generated.
pub async fn models(settings: &Settings) -> Vec<EndpointCheck> {
    let mut wanted = BTreeMap::new();
    for role in [Role::Supervisor, Role::Agent, Role::Reflector, Role::Qa] {
        let role = settings.models.for_role(role.as_str());
        if let Some(url) = role.url.clone() {
            wanted.entry((url, role.model.clone())).or_insert(role);
        }
    }
    let mut checks = Vec::new();
    for ((url, model), role) in wanted {
        let listed = openai::list_models(&url, &role).await;
        let listed = listed.map(|names| names.map(|names| names.contains(&model)));
        let url = url.split('?').next().unwrap_or_default().to_owned();
        let advice = listed.as_ref().err().map_or("", |error| without_version(error, &url));
        checks.push(EndpointCheck { url, model, listed, advice });
    }
    checks
}

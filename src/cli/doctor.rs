//! `perihelion doctor`: tries everything that a run needs, one by one and without running anything, and suggests fixes.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use tokio::process::Command;

use super::args::VERSION;
use super::init::no_agents;
use super::parts::{self, Part};
use super::reached::{self, ANSWER};
use super::{Exit, Globals, Result, Signals, endpoints, environment, logging, opening, output};
use perihelion_agents::{kinds, knowledge_of};
use perihelion_database::postgres::Server;
use perihelion_database::{Database, address};
use perihelion_engine::checkpoint::{self, NewThread, ThreadFilter};
use perihelion_engine::ids::ThreadId;
use perihelion_http::reach;
use perihelion_mcp::{ServersFile, Transport};
use perihelion_runtime::{Error as RuntimeError, database_exists, open_store, read_prompts};
use perihelion_servers::Finding::{self, Bad, Good, Odd};
use perihelion_servers::{Bundled, sql};
use perihelion_settings::config::Settings;
use perihelion_settings::config::strict::did_you_mean;

const CHECK: Duration = Duration::from_secs(60);

/// Threads that are read, the newest.
const LOOKED_AT: u32 = 20;

#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Check only whether a running service or worker is ready, for health checks. The URL defaults to serve.addr
    #[arg(long, value_name = "URL", num_args = 0..=1)]
    service: Option<Option<String>>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(globals: &Globals, args: &Args) -> Result<Exit> {
    if let Some(url) = &args.service {
        let url = match url {
            Some(url) => url.clone(),
            None => local_url(globals.settings()?.serve.addr),
        };
        return report(args, vec![ask(&url).await], &[]);
    }
    let signals = Signals::listen()?;
    let file = Settings::file(globals.config.as_deref(), &environment);
    let settings = match globals.settings() {
        Ok(settings) => settings,
        Err(error) => return report(args, vec![Bad(format!("settings: {error}"))], &[]),
    };
    let read = file.map(|file| file.display().to_string());
    let read = read.unwrap_or_else(|| "defaults and environment variables, no file".to_owned());
    let mut found = vec![Good(format!("settings: {read}"))];
    found.extend(logging::filter(&settings.log).err().map(|error| Bad(format!("log: {error}"))));
    let prompts = read_prompts(&settings, &kinds()).err();
    found.extend(prompts.map(|error| Bad(format!("prompts: {error}; correct prompts.dir"))));
    let looking = async {
        database(&settings, &mut found).await;
        found.extend(archive(&settings));
        endpoints::check(&settings, &mut found).await;
        reached::check(&settings, &mut found).await;
        servers(&settings, &mut found).await;
    };
    signals.unless_stopped(looking).await?;
    report(args, found, &parts::of_system(&settings))
}

/// Prints the checks in order, and the parts of the system; a failed check determines the exit code.
fn report(args: &Args, checks: Vec<Finding>, parts: &[Part]) -> Result<Exit> {
    let checks: Vec<Finding> =
        checks.into_iter().map(|check| check.map(|text| output::one_line(&text))).collect();
    if args.json {
        let version = VERSION.as_str();
        output::json(&json!({ "version": version, "checks": checks, "parts": parts }))?;
    } else {
        let parts = parts.iter().map(|part| part.finding().line());
        let lines: Vec<String> = checks.iter().map(Finding::line).chain(parts).collect();
        output::marked(&lines)?;
    }
    Ok(if checks.iter().any(Finding::is_bad) { Exit::Failed } else { Exit::Done })
}

/// Returns the URL of a service that listens on an address of this machine.
fn local_url(mut addr: SocketAddr) -> String {
    if addr.ip().is_unspecified() {
        let v4 = addr.is_ipv4();
        addr.set_ip(if v4 { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
    }
    format!("http://{addr}")
}

async fn ask(url: &str) -> Finding {
    perihelion_settings::config::tls::install();
    let url = format!("{}/readyz", url.trim_end_matches('/'));
    let answer = async {
        let answer = reach::client(ANSWER, &url)?.get(&url).timeout(ANSWER).send().await?;
        let is_ready = answer.status().is_success();
        Ok::<_, reqwest::Error>((is_ready, answer.text().await?))
    };
    match answer.await {
        Ok((true, text)) => Good(format!("service: {text}")),
        Ok((false, text)) => Bad(format!("service: not ready: {text}")),
        Err(error) => Bad(format!("service: {url} does not answer: {}", reach::cause(&error))),
    }
}

async fn database(settings: &Settings, found: &mut Vec<Finding>) {
    let url = settings.store.database.expose();
    // First: a product that refuses the migration is named all the same.
    if let Ok(server) = Server::read(url, "perihelion doctor")
        && let Ok(product) = server.product().await
    {
        found.push(Good(format!("database: {product}")));
    }
    if let Some(missing) = missing(settings) {
        return found.push(missing);
    }
    let place = match writable(settings).await {
        Ok(place) => place,
        Err(error) => return found.push(Bad(format!("database: {error}"))),
    };
    found.push(Good(format!("database: {place} is writable")));
    if let Ok(true) = is_exempt(settings).await {
        let why = "database: the role is a superuser or has BYPASSRLS, so row-level security does not separate tenants. \
                   Connect as the owner of the database without these privileges";
        found.push(Odd(why.to_owned()));
    }
    match contents(settings).await {
        Ok(None) => {}
        Ok(Some(keys)) => found.push(Good(format!("encryption: {keys}"))),
        Err(error) => found.push(Bad(format!("stored threads: {error}"))),
    }
}

/// Checks the directory of archived threads, if there is one.
fn archive(settings: &Settings) -> Option<Finding> {
    let directory = settings.archive.dir.as_deref()?;
    let shown = directory.display();
    Some(match can_write(directory) {
        Ok(()) => Good(format!("archive: {shown} is writable")),
        Err(error) => {
            Bad(format!("archive: {shown}: {error}; create the directory, or correct archive.dir"))
        }
    })
}

/// Reports a named database that does not exist. The name may be mistyped, so the check does not create it.
fn missing(settings: &Settings) -> Option<Finding> {
    let missing = database_exists(settings).err()?;
    let RuntimeError::Store(checkpoint::Error::NoDatabase { url }) = missing else { return None };
    let path = address::path_of(settings.store.database.expose()).unwrap_or_default();
    let directory = path.ancestors().skip(1).find(|directory| directory.is_dir());
    Some(match directory.map_or(Ok(()), can_write) {
        Ok(()) => Odd(format!("database: {url} does not exist yet; the first run creates it")),
        Err(error) => Bad(format!("database: cannot open {url}: {error}")),
    })
}

/// Opens the database, writes a thread and removes it again; returns the location of the data.
async fn writable(settings: &Settings) -> Result<String> {
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

/// Writes a file to a directory and removes it again.
fn can_write(directory: &Path) -> std::io::Result<()> {
    let path = directory.join(format!("checkup-{}", std::process::id()));
    std::fs::write(&path, "checkup")?;
    std::fs::remove_file(path)
}

/// Returns whether the database's role sees the rows of all tenants in spite of row-level security.
async fn is_exempt(settings: &Settings) -> Result<bool, perihelion_database::Error> {
    let database = Database::open(settings.store.database.expose()).await?;
    let found = database.is_exempt().await;
    database.close().await;
    found
}

/// Reads the newest threads, so that a missing or wrong key shows; returns what encrypts, if anything does.
async fn contents(settings: &Settings) -> Result<Option<String>> {
    let store = open_store(settings).await?;
    let read = async {
        let filter = ThreadFilter { limit: Some(LOOKED_AT), ..ThreadFilter::default() };
        for info in store.list(&filter).await? {
            if info.archived.is_some() {
                continue;
            }
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

async fn servers(settings: &Settings, found: &mut Vec<Finding>) {
    let survey = match opening::survey(settings, true).await {
        Ok(survey) => survey,
        Err(error) => return found.push(Bad(format!("servers: {error}"))),
    };
    if survey.agents.is_empty() && survey.failed.is_empty() {
        found.push(Odd(no_agents(settings)));
    }
    for agent in &survey.agents {
        let server = &agent.server.name;
        let tools = output::count(agent.server.tools.len() as u64, "tool");
        found.push(Good(format!("server {server}: {tools}, agent {}", agent.name)));
        found.extend(agent.undeclared().map(|what| Odd(format!("server {server} {what}"))));
        if agent.kind == "analyst" {
            let unread = knowledge_of(&agent.server).err();
            found.extend(unread.map(|why| Bad(format!("server {server}: {why}"))));
        }
    }
    if let Ok(file) = ServersFile::load(&settings.servers.file, &environment) {
        bundled(&file, found).await;
        sql_roles(&file, found).await;
        found.extend(settings.models.agents.keys().filter_map(|name| unused(name, &file)));
    }
    for warning in &survey.warnings {
        found.push(Odd(format!("server {}: {}", warning.server, warning.text)));
    }
    for one in &survey.rejected {
        found.push(Odd(format!("server {}: {}", one.server, one.problem)));
    }
    let file = settings.servers.file.display();
    for one in &survey.failed {
        found.push(Bad(format!("server {}: {}; see {file}", one.server, one.problem)));
    }
}

/// Reports a table of an agent's model whose server does not exist.
fn unused(name: &str, file: &ServersFile) -> Option<Finding> {
    let unusable = file.unusable.iter().map(|one| one.server.as_str());
    let mut names = file.servers.iter().map(|server| server.name.as_str()).chain(unusable);
    let hint = did_you_mean(name, names.clone());
    let is_known = names.any(|known| known == name);
    (!is_known).then(|| {
        Odd(format!("models.agents.{name} has no effect: there is no server of this name{hint}"))
    })
}

/// Finds what should be changed about the roles with which bundled SQL servers read Postgres.
async fn sql_roles(file: &ServersFile, found: &mut Vec<Finding>) {
    for server in file.servers.iter().filter(|server| server.enabled) {
        let Transport::Stdio { args, .. } = &server.transport else { continue };
        if let [mcp, name, rest @ ..] = args.as_slice()
            && mcp == "mcp"
            && name == "sql"
            // A server that cannot be opened is reported as one.
            && let Ok(warnings) = sql::warnings(rest).await
        {
            let odd = |warning| Odd(format!("server {}: {warning}", server.name));
            found.extend(warnings.into_iter().map(odd));
        }
    }
}

/// Makes each bundled server with requirements try them, in the environment of its table.
async fn bundled(file: &ServersFile, found: &mut Vec<Finding>) {
    let Ok(program) = std::env::current_exe() else { return };
    let mut checks = Vec::new();
    for server in file.servers.iter().filter(|server| server.enabled) {
        let Transport::Stdio { args, env, cwd, .. } = &server.transport else { continue };
        let [mcp, name, ..] = args.as_slice() else { continue };
        if mcp != "mcp" || !Bundled::CHECKED.contains(&name.as_str()) {
            continue;
        }
        let mut command = Command::new(&program);
        command.args(["mcp", "--check"]).args(args.iter().skip(1)).env_clear().envs(env);
        command.stdin(std::process::Stdio::null()).kill_on_drop(true);
        if let Some(cwd) = cwd {
            command.current_dir(cwd);
        }
        checks.push(async move { (&server.name, check(command).await) });
    }
    for (name, findings) in join_all(checks).await {
        found.extend(
            findings.into_iter().map(|one| one.map(|text| format!("server {name}: {text}"))),
        );
    }
}

/// A server whose arguments cannot be read is reported by its scan.
async fn check(mut command: Command) -> Vec<Finding> {
    match tokio::time::timeout(CHECK, command.output()).await {
        Ok(Ok(output)) => {
            String::from_utf8_lossy(&output.stdout).lines().filter_map(Finding::read).collect()
        }
        Ok(Err(error)) => vec![Bad(format!("cannot be checked: {error}"))],
        Err(_) => vec![Bad(format!("did not answer within {} s", CHECK.as_secs()))],
    }
}

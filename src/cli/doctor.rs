//! `perihelion doctor`: checks everything that a run needs and suggests fixes.

use std::time::Duration;

use serde_json::json;

use super::args::VERSION;
use super::init::no_agents;
use super::parts::{self, Part};
use super::{Error, Exit, Globals, Signals, checkup, environment, looking, output};
use perihelion_agents::kinds;
use perihelion_http::reach;
use perihelion_servers::Finding;
use perihelion_settings::config::Settings;

/// How long a service may take to accept a connection.
const CONNECTING: Duration = Duration::from_secs(5);

/// What was looked at, in order, and the parts of the system.
#[derive(Default)]
struct Report {
    checks: Vec<Finding>,
    parts: Vec<Part>,
}

impl Report {
    fn good(&mut self, what: &str) {
        self.checks.push(Finding::Good(output::one_line(what)));
    }

    fn odd(&mut self, what: &str) {
        self.checks.push(Finding::Odd(output::one_line(what)));
    }

    fn bad(&mut self, what: &str) {
        self.checks.push(Finding::Bad(output::one_line(what)));
    }

    /// Prints the report; a failed check is the exit code.
    fn end(&self, json: bool) -> Result<Exit, Error> {
        let Self { checks, parts } = self;
        if json {
            let version = VERSION.as_str();
            output::json(&json!({ "version": version, "checks": checks, "parts": parts }))?;
        } else {
            let parts = parts.iter().map(|part| part.finding().line());
            let lines: Vec<String> = checks.iter().map(Finding::line).chain(parts).collect();
            output::marked(&lines)?;
        }
        let failed = checks.iter().any(|check| matches!(check, Finding::Bad(_)));
        Ok(if failed { Exit::Failed } else { Exit::Done })
    }
}

#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Check only whether a running service or worker is ready, for health checks
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "http://127.0.0.1:2024")]
    service: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Asks a service or worker whether it is ready.
async fn ask(url: &str, findings: &mut Report) {
    perihelion_settings::config::tls::install();
    let url = format!("{}/readyz", url.trim_end_matches('/'));
    let answer = async {
        let answer = reach::client(CONNECTING, &url)?.get(&url).send().await?;
        let is_ready = answer.status().is_success();
        Ok::<_, reqwest::Error>((is_ready, answer.text().await?))
    };
    match answer.await {
        Ok((true, text)) => findings.good(&format!("service: {text}")),
        Ok((false, text)) => findings.bad(&format!("service: not ready: {text}")),
        Err(error) => findings.bad(&format!("service: {url} does not answer: {error}")),
    }
}

pub(super) async fn run(globals: &Globals, args: &Args) -> Result<Exit, Error> {
    let mut findings = Report::default();
    if let Some(url) = &args.service {
        ask(url, &mut findings).await;
        return findings.end(args.json);
    }
    let signals = Signals::listen()?;
    let file = Settings::file(globals.config.as_deref(), &environment);
    match globals.settings() {
        Err(error) => findings.bad(&format!("settings: {error}")),
        Ok(settings) => {
            match file {
                Some(file) => findings.good(&format!("settings: {}", file.display())),
                None => findings.good("settings: defaults and environment variables, no file"),
            }
            if signals.unless_stopped(look(&settings, &mut findings)).await.is_none() {
                return Ok(Exit::Aborted);
            }
            findings.parts = parts::of_system(&settings);
        }
    }
    findings.end(args.json)
}

async fn look(settings: &Settings, findings: &mut Report) {
    match checkup::store(settings).await {
        Ok(place) => {
            findings.good(&format!("database: {place} is writable"));
            if let Ok(true) = checkup::is_exempt(settings).await {
                findings.odd(
                    "database: the role is a superuser or has BYPASSRLS, so row-level security does not separate tenants. \
                     Connect as the owner of the database without these privileges",
                );
            }
            match checkup::contents(settings).await {
                Ok(None) => {}
                Ok(Some(keys)) => findings.good(&format!("encryption: {keys}")),
                Err(error) => findings.bad(&format!("stored threads: {error}")),
            }
        }
        Err(error) => findings.bad(&format!("database: {error}")),
    }
    for endpoint in checkup::models(settings).await {
        let name = format!("model: {} at {}", endpoint.model, endpoint.url);
        match endpoint.listed {
            Ok(Some(true)) => findings.good(&name),
            Ok(Some(false)) => findings.odd(&format!(
                "{name}: the endpoint responds, but does not list this model; check --model or OPENAI_MODEL"
            )),
            Ok(None) => findings.odd(&format!(
                "{name}: the endpoint responds, but lists no models, so the name was not checked"
            )),
            Err(error) => findings.bad(&format!("model: {error}{}", endpoint.advice)),
        }
    }
    if let Err(error) = perihelion_runtime::Runtime::check_model(settings) {
        findings.bad(&format!("model: {error}"));
    }
    match checkup::embeddings(settings).await {
        None => findings.good("embeddings: not configured, using keyword search only"),
        Some(Ok(found)) => findings.good(&format!("embeddings: {found}")),
        Some(Err(error)) => {
            findings.odd(&format!("embeddings: {error}; using keyword search only"));
        }
    }
    if let Some(found) = checkup::collector(settings).await {
        let endpoint = found.endpoint;
        match found.answer {
            Ok(()) => findings.good(&format!("traces: the collector at {endpoint} accepts traces")),
            Err(error) => findings.bad(&format!("traces: {endpoint}: {error}")),
        }
        if let Some(pending @ 1..) = found.pending {
            findings.odd(&format!(
                "traces: {} unsent traces; the next run sends them",
                if pending == 1 {
                    "1 thread has".to_owned()
                } else {
                    format!("{pending} threads have")
                }
            ));
        }
    }
    let survey = looking::shown(false, async |looks| {
        perihelion_runtime::Agents::survey(settings, &environment, &kinds(), true, looks).await
    });
    match survey.await {
        Err(error) => findings.bad(&format!("servers: {error}")),
        Ok(found) => {
            let file = settings.servers.file.display();
            if found.agents.is_empty() && found.failed.is_empty() {
                findings.odd(&no_agents(settings));
            }
            for agent in &found.agents {
                let server = &agent.server.name;
                let tools = agent.server.tools.len();
                let tools = output::count(tools as u64, "tool");
                findings.good(&format!("server {server}: {tools}, agent {}", agent.name));
                if let Some(what) = agent.undeclared() {
                    findings.odd(&format!("server {server} {what}"));
                }
            }
            for (server, finding) in checkup::bundled(settings, &environment).await {
                let named = |text| format!("server {server}: {text}");
                findings.checks.push(match finding {
                    Finding::Good(text) => Finding::Good(named(text)),
                    Finding::Odd(text) => Finding::Odd(named(text)),
                    Finding::Bad(text) => Finding::Bad(named(text)),
                });
            }
            for (server, warning) in checkup::sql_roles(settings, &environment).await {
                findings.odd(&format!("server {server}: {warning}"));
            }
            for warning in &found.warnings {
                findings.odd(&format!("server {}: {}", warning.server, warning.text));
            }
            for one in &found.rejected {
                findings.odd(&format!("server {}: {}", one.server, one.problem));
            }
            for one in &found.failed {
                findings.bad(&format!("server {}: {}; see {file}", one.server, one.problem));
            }
        }
    }
}

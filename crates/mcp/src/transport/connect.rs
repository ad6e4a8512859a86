//! Opens a connection: starts or reaches the server and agrees on a protocol version, in bounded time.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{InitializeResult, ProtocolVersion, ServerResult};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::Value;
use tokio::time::timeout;

use super::delivery::{self, ConnectError, Delivery};
use super::session::{DESCRIBE, Kind, Listener, Session};
use super::{
    http_session, line_sanitizer::LineSanitizer, oauth::Access, open_calls::MessageFilter,
    process::Process, program::Program, sandbox, stderr::Tail,
};
use crate::configuration::{ServerConfig, Transport};
use crate::types::text;
use perihelion_clock as clock;

/// Longest line accepted over stdio, unless the result limit requires more.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;
/// A longer version is invalid.
const VERSION_CHARS: usize = 40;
/// Characters of an answer that an error shows.
const SHOWN_CHARS: usize = 200;

/// How a server wants to be greeted; learnt once and kept, because a wrong guess costs a timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Era {
    /// Not known: `server/discover`, then `initialize` when the server refuses it.
    #[default]
    Unknown,
    /// `server/discover` (2026-07-28 and later).
    Modern,
    /// `initialize` (2025-11-25 and earlier).
    Legacy,
}

impl Era {
    pub fn of(version: &ProtocolVersion) -> Self {
        if version.has_initialize() { Self::Legacy } else { Self::Modern }
    }

    fn lifecycle(self) -> ClientLifecycleMode {
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        match self {
            Era::Unknown => ClientLifecycleMode::Auto {
                preferred_versions,
                legacy_version: Some(ProtocolVersion::V_2025_11_25),
            },
            Era::Modern => ClientLifecycleMode::Discover { preferred_versions },
            Era::Legacy => ClientLifecycleMode::Initialize,
        }
    }
}

/// Connects within the server's start-up timeout; returns the era as well, to be remembered.
///
/// A server that does not answer `server/discover` within half of the time is greeted in the old way: over stdio on the
/// same connection, because it may only be slow to start.
pub(crate) async fn connect(
    config: &ServerConfig,
    era: Era,
    executable: Option<&PathBuf>,
    access: Option<&Arc<Access>>,
) -> Result<(Session, Era), ConnectError> {
    let started = clock::monotonic();
    let left = || config.startup_timeout.saturating_sub(started.elapsed());
    let is_http = matches!(config.transport, Transport::Http { .. });
    let half = config.startup_timeout / 2;
    let first = if is_http && era == Era::Unknown { half } else { left() };
    let next = match attempt(config, era, executable, access, first).await {
        Ok(session) => {
            let era = learnt(era, &session);
            return Ok((session, era));
        }
        Err(Failed { retry: Some(next), .. }) => next,
        Err(Failed { error, .. }) => return Err(error),
    };
    // A server that answered late is there now.
    match attempt(config, next, executable, access, left().max(half)).await {
        Ok(session) => Ok((session, next)),
        Err(Failed { error, .. }) => Err(error),
    }
}

fn learnt(era: Era, session: &Session) -> Era {
    session.peer.peer_info().map_or(era, |info| Era::of(&info.protocol_version))
}

/// A failed attempt, and how to try again where another greeting may succeed.
struct Failed {
    error: ConnectError,
    retry: Option<Era>,
}

impl<E: Into<ConnectError>> From<E> for Failed {
    fn from(error: E) -> Self {
        Self { error: error.into(), retry: None }
    }
}

async fn attempt(
    config: &ServerConfig,
    era: Era,
    executable: Option<&PathBuf>,
    access: Option<&Arc<Access>>,
    limit: Duration,
) -> Result<Session, Failed> {
    let listener = Listener::default();
    let max_message = config.max_result_bytes.saturating_mul(2).max(MAX_LINE_BYTES);
    match &config.transport {
        Transport::Stdio { command, args, env, cwd } => {
            if let Some(cwd) = cwd.as_ref().filter(|cwd| !Path::new(cwd).is_dir()) {
                return Err(ConnectError::Cwd(cwd.clone()).into());
            }
            let own = config.own_program(executable.map(PathBuf::as_path));
            let program = own.unwrap_or(Path::new(command)).to_owned();
            let server = Program { program, args: args.clone(), env, cwd: cwd.as_deref() };
            let program = match &config.sandbox {
                Some(sandbox) => sandbox.confine(server)?,
                None => server,
            };
            let tail = Tail::new(&config.name, config.secrets.clone());
            let spawned = Process::spawn(program, config.memory_mb, tail);
            let (process, stdin, stdout) = spawned
                .map_err(|source| ConnectError::Spawn { command: command.clone(), source })?;
            let stdout = LineSanitizer::new(stdout, max_message);
            let transport =
                AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(max_message);
            let changes = listener.changes.clone();
            let transport = MessageFilter::new(transport, changes, limit / 2);
            let greeting = listener.serve_with_lifecycle(transport, era.lifecycle());
            match judge(timeout(limit, greeting).await, era, config, false) {
                Ok(service) => Ok(Session::new(service, Kind::Stdio(Box::new(process)))),
                Err(mut failed) => {
                    if failed.retry.is_none() {
                        let end = process.describe_end(DESCRIBE).await;
                        let words = process.last_words();
                        let confined = words.as_deref().filter(|_| config.sandbox.is_some());
                        let way_out = confined.and_then(sandbox::way_out);
                        let known = [end, words, way_out.map(str::to_owned)];
                        let known: Vec<String> = known.into_iter().flatten().collect();
                        if !known.is_empty() {
                            let error = Box::new(failed.error);
                            failed.error = ConnectError::Ended { error, end: known.join("; ") };
                        }
                    }
                    process.end(Duration::ZERO).await;
                    Err(failed)
                }
            }
        }
        Transport::Http { url, bearer_token, headers, .. } => {
            let token = bearer_token.as_deref();
            let access = access.cloned();
            let changes = listener.changes.clone();
            let (transport, session) =
                http_session::transport(url, token, headers, access, limit, max_message, changes)?;
            let transport = MessageFilter::new(transport, listener.changes.clone(), limit);
            let greeting = listener.serve_with_lifecycle(transport, era.lifecycle());
            judge(timeout(limit, greeting).await, era, config, true)
                .map(|service| Session::new(service, Kind::Http(session)))
        }
    }
}

type Greeted = Result<RunningService<RoleClient, Listener>, ClientInitializeError>;

/// Decides whether a failed greeting is worth another one.
fn judge(
    greeted: Result<Greeted, tokio::time::error::Elapsed>,
    era: Era,
    config: &ServerConfig,
    is_http: bool,
) -> Result<RunningService<RoleClient, Listener>, Failed> {
    let probing = era == Era::Unknown;
    let error = match greeted {
        Ok(Ok(service)) => match unknown_version(&service) {
            None => return Ok(service),
            Some(words) => return Err(ConnectError::Greeting { words, source: None }.into()),
        },
        Ok(Err(error)) => error,
        Err(_) => {
            let error = ConnectError::Late(config.startup_timeout.as_secs_f64());
            let retry = (probing && is_http).then_some(Era::Legacy);
            return Err(Failed { error, retry });
        }
    };
    let another = match &error {
        // The answer to discover came after rmcp had given up on it.
        ClientInitializeError::ConflictInitResponseId(..) => Some(Era::Modern),
        ClientInitializeError::UncorrelatedErrorResponse { .. }
        | ClientInitializeError::ExpectedInitResult(_)
        | ClientInitializeError::ExpectedInitResponse(_) => Some(Era::Legacy),
        // Old HTTP servers answer an unknown method with a bare status.
        ClientInitializeError::TransportError { error, .. } if is_http => {
            let error = error.error.as_ref();
            let is_answered =
                delivery::of(error) != Delivery::NotSent && !delivery::wants_token(error);
            is_answered.then_some(Era::Legacy)
        }
        // Some old servers end at the first unknown message.
        ClientInitializeError::ConnectionClosed(_) if !is_http => Some(Era::Legacy),
        _ => None,
    };
    let retry = another.filter(|_| probing);
    // Of two greetings that failed, the second one's answer says why.
    let mut last = &error;
    while let ClientInitializeError::LegacyFallbackFailed { fallback, .. } = last {
        last = fallback;
    }
    let mut words = match last {
        // Its own words name the types of the library.
        ClientInitializeError::TransportError { error, context } => {
            format!("{} ({context})", delivery::chain(error.error.as_ref()))
        }
        ClientInitializeError::ExpectedInitResult(Some(result)) => not_a_greeting(result),
        ClientInitializeError::ExpectedInitResponse(Some(message)) => {
            let words = serde_json::to_string(message).unwrap_or_default();
            format!("it did not answer the greeting but sent: {}", shown(&words))
        }
        other => delivery::chain(other),
    };
    if error.auth_challenge().is_some() {
        words.push_str("; give it a token with bearer_token_env_var");
    }
    let error = ConnectError::Greeting { words, source: Some(Box::new(error)) };
    Err(Failed { error, retry })
}

fn not_a_greeting(result: &ServerResult) -> String {
    let answer = serde_json::to_value(result).unwrap_or_default();
    let is_text: fn(&Value) -> bool = Value::is_string;
    let is_object: fn(&Value) -> bool = Value::is_object;
    let fields = [
        ("protocolVersion", "a string", is_text),
        ("capabilities", "an object", is_object),
        ("serverInfo", "an object", is_object),
        ("serverInfo.name", "a string", is_text),
        ("serverInfo.version", "a string", is_text),
    ];
    let wrong = fields.iter().find_map(|(field, kind, is_right)| {
        let found = answer.pointer(&format!("/{}", field.replace('.', "/")));
        match found {
            None => Some(format!("`{field}` is missing, which must be {kind}")),
            Some(value) if !is_right(value) => {
                Some(format!("`{field}` must be {kind}: {}", shown(&value.to_string())))
            }
            Some(_) => None,
        }
    });
    let wrong = wrong.or_else(|| {
        let read = serde_path_to_error::deserialize::<_, InitializeResult>(&answer);
        read.err().map(|error| format!("`{}`: {}", error.path(), error.inner()))
    });
    let wrong = wrong.unwrap_or_else(|| shown(&answer.to_string()));
    format!("its answer to initialize cannot be used: {wrong}")
}

fn shown(words: &str) -> String {
    text::cut(&text::one_line(words), SHOWN_CHARS)
}

/// Describes the problem with the version that a server chose, if there is one: the protocol requires a refusal.
fn unknown_version(service: &RunningService<RoleClient, Listener>) -> Option<String> {
    let info = service.peer().peer_info()?;
    let chosen = &info.protocol_version;
    if ProtocolVersion::KNOWN_VERSIONS.contains(chosen) {
        return None;
    }
    let known: Vec<&str> = ProtocolVersion::KNOWN_VERSIONS.iter().map(|one| one.as_str()).collect();
    let chosen = text::cut(&text::one_line(chosen.as_str()), VERSION_CHARS);
    Some(format!(
        "it speaks version {chosen} of the protocol, which is not known here (known: {}); \
         use a release of the server that speaks one of them",
        known.join(", ")
    ))
}

//! `perihelion keys`: API keys of the service, made, listed and revoked.

use chrono::{DateTime, Utc};
use serde_json::json;

use super::{Error, Exit, environment, output};
use perihelion_engine::clock;
use perihelion_runtime::{Accounts, ApiKey, LOCAL_TENANT, NewKey, Permission};
use perihelion_settings::config::{Age, Settings};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perihelion keys create reports
  perihelion keys create ci --scopes read,run --expires 90d
  perihelion keys create acme-app --tenant acme --scopes read,run,act_as
  perihelion keys list
  perihelion keys revoke reports

A key is printed once, alone on standard output, and kept as a hash. Clients send it as `x-api-key` or as
`Authorization: Bearer`. Once there is a key, `perihelion serve` lets nobody in without one, a login or the token.")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
    /// Whose threads the key sees; the command line's own by default
    #[arg(long, global = true, value_name = "TENANT", default_value = LOCAL_TENANT)]
    tenant: String,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Make a key and print it; it cannot be shown again.
    Create {
        /// What it is called; unique among the keys of the tenant that are in force
        name: String,
        /// What it may do: read, run, approve, manage, act_as (work in the name of the users whom requests name), operate
        /// (see what the runs of every tenant took)
        #[arg(long, value_name = "SCOPE,…", value_delimiter = ',', value_parser = scope, default_value = "read,run,approve")]
        scopes: Vec<Permission>,
        /// When it ends: a length of time such as 90d, or a time such as 2027-01-31T00:00:00Z; never by default
        #[arg(long, value_name = "WHEN", value_parser = when)]
        expires: Option<Until>,
        /// Whom it acts for; the key's own name by default
        #[arg(long, value_name = "USER")]
        user: Option<String>,
    },
    /// List keys, newest first, the revoked ones too.
    List,
    /// Refuse a key from now on, on streams that it holds open as well.
    Revoke { name: String },
}

/// The end of a key.
#[derive(Clone, Copy, Debug)]
enum Until {
    In(Age),
    At(DateTime<Utc>),
}

pub(super) fn scope(word: &str) -> Result<Permission, String> {
    Permission::parse(word.trim())
        .ok_or_else(|| "expected read, run, approve, manage, act_as or operate".to_owned())
}

fn when(text: &str) -> Result<Until, String> {
    if let Ok(at) = text.parse() {
        return Ok(Until::At(at));
    }
    text.parse().map(Until::In)
}

/// Returns who sits at the command line, for the audit.
pub(super) fn actor() -> String {
    let name = environment("USER").or_else(|| environment("LOGNAME"));
    name.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| "command line".to_owned())
}

pub(super) async fn run(settings: Settings, args: Args) -> Result<Exit, Error> {
    let accounts = Accounts::open(&settings, &args.tenant, &actor()).await?;
    let done = perform(&accounts, args).await;
    accounts.close().await;
    done.map(|()| Exit::Done)
}

async fn perform(accounts: &Accounts, args: Args) -> Result<(), Error> {
    let Args { command, json, .. } = args;
    let now = clock::now();
    match command {
        Command::Create { name, scopes, expires, user } => {
            let expires_at = expires.and_then(|until| match until {
                Until::At(at) => Some(at),
                Until::In(age) => age.after(now),
            });
            let new = NewKey {
                name: &name,
                user: user.as_deref(),
                made_by: None,
                scopes: &scopes,
                expires_at,
            };
            let created = accounts.create_key(new).await?;
            if json {
                let mut shown = json!(created.key);
                shown["key"] = json!(created.secret.expose());
                return output::json(&shown);
            }
            output::note("keep it now: the key is not shown again");
            output::text(created.secret.expose())
        }
        Command::List => {
            let keys = accounts.keys().await?;
            if json {
                return output::json(&keys);
            }
            if keys.is_empty() {
                output::note("there are no keys; `perihelion keys create NAME` makes one");
                return Ok(());
            }
            output::text(&keys.iter().map(|key| line(key, now)).collect::<Vec<_>>().join("\n"))
        }
        Command::Revoke { name } => {
            accounts.revoke_key(&name).await?;
            output::note(&format!("revoked: {name}"));
            Ok(())
        }
    }
}

fn line(key: &ApiKey, now: DateTime<Utc>) -> String {
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
    let day = |at: DateTime<Utc>| at.format("%Y-%m-%d").to_string();
    let stands = match (key.revoked_at, key.expires_at) {
        (Some(at), _) => format!("revoked {}", day(at)),
        (None, Some(end)) if end <= now => format!("expired {}", day(end)),
        (None, Some(end)) => format!("until {}", day(end)),
        (None, None) => "in force".to_owned(),
    };
    let user = key.user.as_ref().map_or_else(String::new, |user| format!("  for {user}"));
    format!("{}  {}  made {}  {stands}{user}", key.name, scopes.join(","), day(key.created_at))
}

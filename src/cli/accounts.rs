//! `perihelion keys` and `perihelion users`: API keys of the service, and who can log in to it.

use std::io::{BufRead as _, IsTerminal as _, Read as _};

use chrono::{DateTime, Utc};
use serde_json::json;

use super::globals::TenantOptions;
use super::{Error, Exit, Result, environment, output};
use perihelion_engine::clock;
use perihelion_runtime::{Accounts, ApiKey, NewKey, Permission, User};
use perihelion_settings::config::{Age, Settings};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perihelion keys create reports
  perihelion keys create ci --scopes read,run --expires 90d
  perihelion keys create acme-app --tenant acme --scopes read,run,act_as
  perihelion keys list
  perihelion keys revoke reports

A key is printed once on standard output, and only its hash is stored. Clients send it as `x-api-key` or \
`Authorization: Bearer`. Once a key exists, `perihelion serve` requires a key, a login or the service token.")]
pub struct KeysArgs {
    #[command(subcommand)]
    command: KeyCommand,
    #[command(flatten)]
    options: TenantOptions,
}

#[derive(Debug, clap::Subcommand)]
enum KeyCommand {
    /// Create a key and print it. It cannot be shown again.
    Create {
        /// Name of the key, unique among the active keys of the tenant
        name: String,
        /// Scopes: read, run, approve, manage, act_as (act on behalf of users) and operate (read the usage of all tenants)
        #[arg(long, value_name = "SCOPE,…", value_delimiter = ',', value_parser = scope, default_value = "read,run,approve")]
        scopes: Vec<Permission>,
        /// Expiry: a duration such as 90d, or a time such as 2027-01-31T00:00:00Z. Defaults to never
        #[arg(long, value_name = "WHEN", value_parser = when)]
        expires: Option<DateTime<Utc>>,
        /// User that the key acts for. By default, it acts for no user
        #[arg(long, value_name = "USER")]
        user: Option<String>,
    },
    /// List all keys, newest first, including revoked keys.
    List,
    /// Revoke a key and close its open streams.
    Revoke { name: String },
}

fn scope(word: &str) -> Result<Permission, &'static str> {
    Permission::from_name(word.trim())
        .ok_or("expected read, run, approve, manage, act_as or operate")
}

fn when(text: &str) -> Result<DateTime<Utc>, &'static str> {
    let now = clock::now();
    let after = || text.parse::<Age>().ok()?.after(now);
    let at = text.parse().ok().or_else(after).filter(|at| *at > now);
    at.ok_or("expected a later time, such as 12h, 30d, 8w or 2027-01-31T00:00:00Z")
}

pub(super) fn actor() -> String {
    let name = environment("USER").or_else(|| environment("LOGNAME"));
    name.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| "command line".to_owned())
}

pub(super) async fn keys(settings: Settings, args: KeysArgs) -> Result<Exit> {
    let KeysArgs { command, options } = args;
    let creates = matches!(command, KeyCommand::Create { .. });
    let accounts = open(&settings, &options.tenant, creates).await?;
    let done = of_keys(&accounts, command, options.json).await;
    accounts.close().await;
    done.map(Exit::from)
}

/// Opens the accounts of a tenant; only a command that creates one can create the database.
async fn open(settings: &Settings, tenant: &str, creates: bool) -> Result<Accounts> {
    let actor = actor();
    Ok(if creates {
        Accounts::open(settings, tenant, &actor).await?
    } else {
        Accounts::open_to_read(settings, tenant, &actor).await?
    })
}

async fn of_keys(accounts: &Accounts, command: KeyCommand, json: bool) -> Result<()> {
    let now = clock::now();
    match command {
        KeyCommand::Create { name, scopes, expires, user } => {
            let user = match user {
                Some(typed) => Some(accounts.user_meant(&typed).await?),
                None => None,
            };
            let new = NewKey {
                name: &name,
                user: user.as_deref(),
                made_by: None,
                scopes: &scopes,
                expires_at: expires,
            };
            let created = accounts.create_key(new).await?;
            if json {
                let mut shown = json!(created.key);
                shown["key"] = json!(created.secret.expose());
                return output::json(&shown);
            }
            output::note("store the key now; it cannot be shown again");
            output::text(created.secret.expose())
        }
        KeyCommand::List => {
            let keys = accounts.keys().await?;
            let none = "no keys yet; create one with `perihelion keys create NAME`";
            let text = || output::lines(&keys, |key| key_line(key, now));
            output::listed(json, &keys, none, text)
        }
        KeyCommand::Revoke { name } => {
            accounts.revoke_key(&name).await?;
            let shown = json!({ "name": name, "revoked": true });
            output::done(json, &shown, &format!("revoked: {name}"))
        }
    }
}

fn words(scopes: &[Permission]) -> String {
    scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(",")
}

fn key_line(key: &ApiKey, now: DateTime<Utc>) -> String {
    let scopes = words(&key.scopes);
    let day = |at: DateTime<Utc>| at.format("%Y-%m-%d").to_string();
    let status = match (key.revoked_at, key.expires_at) {
        (Some(at), _) => format!("revoked {}", day(at)),
        (None, Some(end)) if end <= now => format!("expired {}", day(end)),
        _ if key.user_disabled => "user disabled".to_owned(),
        (None, Some(end)) => format!("until {}", day(end)),
        (None, None) => "active".to_owned(),
    };
    let user = key.user.as_ref().map_or_else(String::new, |user| format!("  for {user}"));
    format!("{}  {}  created {}  {status}{user}", key.name, scopes, day(key.created_at))
}

/// Bytes read for a password; it has its own, lower bound.
const INPUT_BYTES: u64 = 64 * 1024;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perihelion users add ada < password.txt
  perihelion users add ada --scopes read,run,approve,manage < password.txt
  perihelion users list
  perihelion users disable ada")]
pub struct UsersArgs {
    #[command(subcommand)]
    command: UserCommand,
    #[command(flatten)]
    options: TenantOptions,
}

#[derive(Debug, clap::Subcommand)]
enum UserCommand {
    /// Add a user. The password is the first line of standard input.
    Add {
        name: String,
        /// Scopes: read, run, approve, manage and operate (read the usage of all tenants)
        #[arg(long, value_name = "SCOPE,…", value_delimiter = ',', value_parser = user_scope, default_value = "read,run,approve")]
        scopes: Vec<Permission>,
    },
    /// List users.
    List,
    /// Disable a user, and end their sessions and runs. The name cannot be used again.
    Disable { name: String },
}

/// Reads a scope that a user can have: users act for themselves alone.
fn user_scope(word: &str) -> Result<Permission, &'static str> {
    match scope(word)? {
        Permission::ActAs => {
            Err("act_as is only for keys without a user; users always act for themselves")
        }
        scope => Ok(scope),
    }
}

pub(super) async fn users(settings: Settings, args: UsersArgs) -> Result<Exit> {
    let UsersArgs { command, options } = args;
    let creates = matches!(command, UserCommand::Add { .. });
    let accounts = open(&settings, &options.tenant, creates).await?;
    let done = of_users(&accounts, command, options.json).await;
    accounts.close().await;
    done.map(Exit::from)
}

async fn of_users(accounts: &Accounts, command: UserCommand, json: bool) -> Result<()> {
    match command {
        UserCommand::Add { name, scopes } => {
            let user = accounts.add_user(&name, &password()?, &scopes).await?;
            if json {
                return output::json(&user);
            }
            output::note(&format!("added: {}", user.name));
            Ok(())
        }
        UserCommand::List => {
            let users = accounts.users().await?;
            let none = "no users yet; add one with `perihelion users add NAME`";
            output::listed(json, &users, none, || output::lines(&users, user_line))
        }
        UserCommand::Disable { name } => {
            let name = accounts.disable_user(&name).await?;
            let shown = json!({ "name": name, "disabled": true });
            output::done(json, &shown, &format!("disabled: {name}"))
        }
    }
}

/// Reads a password as the first line of standard input.
fn password() -> Result<String> {
    let input = std::io::stdin();
    if input.is_terminal() {
        output::note("type the password and press Enter; it is visible as you type");
    }
    let mut line = String::new();
    input.lock().take(INPUT_BYTES).read_line(&mut line).map_err(Error::Input)?;
    let password = line.trim_end_matches(['\r', '\n']);
    if password.is_empty() { Err(Error::NoPassword) } else { Ok(password.to_owned()) }
}

fn user_line(user: &User) -> String {
    format!("{}  {}  since {}", user.name, words(&user.scopes), user.created_at.format("%Y-%m-%d"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_expires_later_or_is_refused() {
        for (text, is_later) in [
            ("90d", true),
            ("2999-01-31T00:00:00Z", true),
            ("0d", false),
            ("2020-01-01T00:00:00Z", false),
            // Beyond the end of time.
            ("99999999d", false),
            ("2999-01-31", false),
            ("soon", false),
        ] {
            assert_eq!(when(text).is_ok(), is_later, "{text}");
        }
    }
}

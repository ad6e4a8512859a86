//! `perihelion users`: who can log in to the service with a name and a password.

use std::io::Read as _;

use super::{Error, Exit, keys, output};
use perihelion_runtime::{Accounts, LOCAL_TENANT, Permission, User};
use perihelion_settings::config::Settings;

/// Bytes read for a password; it has its own, lower bound.
const INPUT_BYTES: u64 = 64 * 1024;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perihelion users add ada < password.txt
  perihelion users add ada --scopes read,run,approve,manage < password.txt
  perihelion users list
  perihelion users disable ada")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
    /// Tenant of the user
    #[arg(long, global = true, value_name = "TENANT", default_value = LOCAL_TENANT)]
    tenant: String,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Add a user. The password is the first line of standard input.
    Add {
        name: String,
        /// Scopes: read, run, approve, manage and operate (read the usage of all tenants)
        #[arg(long, value_name = "SCOPE,…", value_delimiter = ',', value_parser = scope, default_value = "read,run,approve")]
        scopes: Vec<Permission>,
    },
    /// List users.
    List,
    /// Disable a user, and end their sessions and runs. The name cannot be used again.
    Disable { name: String },
}

/// Reads a scope that a user can have: one works in one's own name.
fn scope(word: &str) -> Result<Permission, String> {
    match keys::scope(word)? {
        Permission::ActAs => {
            Err("act_as is only for keys without a user; users always act for themselves"
                .to_owned())
        }
        scope => Ok(scope),
    }
}

pub(super) async fn run(settings: Settings, args: Args) -> Result<Exit, Error> {
    let accounts = Accounts::open(&settings, &args.tenant, &keys::actor()).await?;
    let done = perform(&accounts, args).await;
    accounts.close().await;
    done.map(|()| Exit::Done)
}

async fn perform(accounts: &Accounts, args: Args) -> Result<(), Error> {
    let Args { command, json, .. } = args;
    match command {
        Command::Add { name, scopes } => {
            let user = accounts.add_user(&name, &password()?, &scopes).await?;
            if json {
                return output::json(&user);
            }
            output::note(&format!("added: {}", user.name));
            Ok(())
        }
        Command::List => {
            let users = accounts.users().await?;
            if json {
                return output::json(&users);
            }
            if users.is_empty() {
                output::note("no users yet; add one with `perihelion users add NAME`");
                return Ok(());
            }
            output::text(&users.iter().map(line).collect::<Vec<_>>().join("\n"))
        }
        Command::Disable { name } => {
            accounts.disable_user(&name).await?;
            output::note(&format!("disabled: {name}"));
            Ok(())
        }
    }
}

fn password() -> Result<String, Error> {
    let mut text = String::new();
    let mut input = std::io::stdin().lock().take(INPUT_BYTES);
    input.read_to_string(&mut text).map_err(Error::Input)?;
    match text.lines().collect::<Vec<_>>().as_slice() {
        [line] if !line.is_empty() => Ok((*line).to_owned()),
        _ => Err(Error::NoPassword),
    }
}

fn line(user: &User) -> String {
    let scopes: Vec<&str> = user.scopes.iter().map(|scope| scope.as_str()).collect();
    format!("{}  {}  since {}", user.name, scopes.join(","), user.created_at.format("%Y-%m-%d"))
}

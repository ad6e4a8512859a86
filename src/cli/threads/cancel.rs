//! `threads cancel`.

use std::time::Duration;

use serde_json::json;

use super::{Error, found};
use crate::checkpoint::Store;
use crate::cli::args::quoted;
use crate::cli::{naming, output};
use crate::config::Settings;
use crate::ids::ThreadId;
use crate::runtime;
use crate::service;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The thread; by default the newest
    pub(super) thread: Option<String>,
    /// Seconds that a service has to stop it by itself before it is taken from it
    #[arg(long, value_name = "SEC", default_value_t = 10.0, value_parser = seconds)]
    wait: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=3_600.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected seconds, from 0 to 3600".to_owned()),
    }
}

pub(super) async fn run(
    store: &dyn Store,
    settings: &Settings,
    args: &Args,
    invocation: &str,
) -> Result<(), Error> {
    let thread = found(store, args.thread.as_deref()).await?;
    let name = args.thread.clone().unwrap_or_else(|| thread.to_string());
    let has_stopped = stopped_by_service(store, settings, args, thread).await?;
    let had = match runtime::cancel(store, thread).await? {
        Some(had) => had.as_deref().map(naming::holder),
        None if has_stopped => None,
        None => return Err(Error::NothingUnderWay(name)),
    };
    if args.json {
        let shown = json!({
            "thread_id": thread, "cancelled": true, "was_run_by": had, "by_force": !has_stopped,
        });
        return output::json(&shown);
    }
    output::note(&match (had, has_stopped) {
        (_, true) => "cancelled; the service that ran it has stopped".to_owned(),
        (Some(who), false) => {
            format!("cancelled; the thread was taken from {who}, which writes nothing more of it")
        }
        (None, false) => "cancelled; nobody had begun with it".to_owned(),
    });
    output::note(&format!("go on from there with: {invocation} resume {}", quoted(&name)));
    Ok(())
}

/// Asks the services of the database to stop a thread; returns whether one of them ran it and did.
async fn stopped_by_service(
    store: &dyn Store,
    settings: &Settings,
    args: &Args,
    thread: ThreadId,
) -> Result<bool, Error> {
    let url = settings.store.database.expose();
    let tenant = store.info(thread).await?.tenant;
    let asked = service::ask_to_stop(url, &tenant, thread).await;
    if asked.map_err(|error| Error::Service(error.into()))? == 0 {
        return Ok(false);
    }
    Ok(runtime::at_rest_within(store, thread, Duration::from_secs_f64(args.wait)).await?)
}

//! `threads cancel`.

use std::time::Duration;

use serde_json::json;

use super::{Error, found};
use crate::checkpoint::Store;
use crate::cli::globals::quoted;
use crate::cli::{naming, output};
use crate::config::Settings;
use crate::runtime;
use crate::service;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The thread; by default the newest
    pub(super) thread: Option<String>,
    /// Seconds that the process which has it may take to stop by itself before the thread is taken from it
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
    let before = store.info(thread).await?.owner;
    let url = settings.store.database.expose();
    let wait = Duration::from_secs_f64(args.wait);
    let asked = service::ask_to_stop(url, store, thread, wait).await;
    let has_stopped = asked.map_err(Error::Service)?;
    let had = match runtime::cancel(store, thread).await? {
        Some(had) => had,
        None if has_stopped => before,
        None => return Err(Error::NothingUnderWay(name)),
    };
    let had = had.as_deref().map(naming::holder);
    if args.json {
        let shown = json!({
            "thread_id": thread, "cancelled": true, "was_run_by": had, "by_force": !has_stopped,
        });
        return output::json(&shown);
    }
    output::note(&match (had, has_stopped) {
        (Some(who), true) => format!("cancelled; {who} has stopped what it did"),
        (None, true) => "cancelled; who worked on it has stopped".to_owned(),
        (Some(who), false) => {
            format!("cancelled; the thread was taken from {who}, which writes nothing more of it")
        }
        (None, false) => "cancelled; nobody had begun with it".to_owned(),
    });
    output::note(&format!("go on from there with: {invocation} resume {}", quoted(&name)));
    Ok(())
}

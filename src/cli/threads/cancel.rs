//! `threads cancel`.

use std::time::Duration;

use serde_json::json;

use super::Error;
use crate::cli::globals::quoted;
use crate::cli::output;
use perihelion_runtime::Threads;
use perihelion_service::{self as service, Stopped};
use perihelion_settings::config::Settings;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Thread. Defaults to the newest thread
    pub(super) thread: Option<String>,
    /// Seconds to wait until the running process stops. After that, its lease is revoked
    #[arg(long, value_name = "SEC", default_value_t = 10.0, value_parser = seconds)]
    wait: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=3_600.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected a number of seconds from 0 to 3600".to_owned()),
    }
}

pub(super) async fn run(
    threads: &Threads,
    settings: &Settings,
    args: &Args,
    invocation: &str,
) -> Result<(), Error> {
    let thread = threads.find(args.thread.as_deref()).await?;
    let name = args.thread.clone().unwrap_or_else(|| thread.to_string());
    let wait = Duration::from_secs_f64(args.wait);
    let stopped = service::stop(settings, threads, thread, wait).await.map_err(Error::Service)?;
    let Stopped { had, by_force } = stopped.ok_or_else(|| Error::NothingUnderWay(name.clone()))?;
    let had = had.map(|holder| holder.to_string());
    if args.json {
        let shown = json!({
            "thread_id": thread, "cancelled": true, "was_run_by": had, "by_force": by_force,
        });
        return output::json(&shown);
    }
    output::note(&match had {
        Some(who) if by_force => {
            format!("cancelled; the lease of {who} was revoked, so it cannot write to the thread")
        }
        Some(who) => format!("cancelled; {who} has stopped the run"),
        None if by_force => "cancelled; the run had not started".to_owned(),
        None => "cancelled; the run has stopped".to_owned(),
    });
    output::note(&format!("to continue from there, run: {invocation} resume {}", quoted(&name)));
    Ok(())
}

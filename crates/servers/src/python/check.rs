//! Runs a program, to see that the sandbox stands.

use perihelion_sandbox::{Program, Python, Tier};

use super::{Error, Options};
use crate::Finding;

/// Opens the tier and runs one program in it.
pub async fn check(options: &Options) -> Vec<Finding> {
    match run(options).await {
        Ok(finding) => vec![finding],
        Err(error) => vec![Finding::bad(&error)],
    }
}

async fn run(options: &Options) -> Result<Finding, Error> {
    let tier = options.tier();
    let limits = options.limits();
    let name = match tier {
        Tier::Wasm => "the bundled Python",
        Tier::System => "the system's Python under bubblewrap",
    };
    let program = Program { code: "6 * 7".to_owned(), ..Program::default() };
    let outcome = tokio::task::spawn_blocking(move || -> Result<_, perihelion_sandbox::Error> {
        Python::open(tier)?.run(&program, &limits)
    })
    .await??;
    Ok(match outcome.error {
        None => Finding::Good(format!("{name} runs programs")),
        Some(error) => Finding::Bad(format!("{name} fails at 6 * 7: {}", error.message)),
    })
}

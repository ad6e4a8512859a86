//! Runs a program, to see that the sandbox stands.

use perihelion_sandbox::{Program, Python, Tier};

use super::{Error, Options};
use crate::Finding;

/// Opens the tier and runs one program in it.
pub async fn check(options: &Options) -> Result<Vec<Finding>, Error> {
    let tier = options.tier();
    let limits = options.limits();
    let packages = options.site_packages.clone();
    let name = match tier {
        Tier::Wasm => "the bundled Python",
        Tier::System => "the system's Python under bubblewrap",
    };
    let program = Program { code: "6 * 7".to_owned(), ..Program::default() };
    let outcome = tokio::task::spawn_blocking(move || -> Result<_, perihelion_sandbox::Error> {
        Python::open(tier, &packages)?.run(&program, &limits)
    })
    .await??;
    Ok(vec![match outcome.error {
        None => Finding::Good(format!("{name} runs programs")),
        Some(error) => Finding::Bad(format!("{name} fails at 6 * 7: {}", error.message)),
    }])
}

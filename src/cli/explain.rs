//! `perihelion explain`: the cause of an error and its remedy, by its code.

use std::fmt::Debug;

use serde_json::json;

use super::{Error, Exit, Result, output};
use crate::demo;
use perihelion_engine::checkpoint;
use perihelion_runtime as runtime;
use perihelion_service as service;

/// The reference page, whose tables list the code, cause and remedy of every error.
const PAGE: &str = include_str!("../../docs/reference/errors.md");

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perihelion explain
  perihelion explain store.busy")]
pub struct Args {
    /// Code of an error. Without a code, all codes are listed
    #[arg(value_name = "CODE")]
    code: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<Exit> {
    let Some(wanted) = &args.code else {
        let all: Vec<_> = entries().collect();
        let rows = all.iter().map(|[code, cause, _]| [code, cause].map(|it| (*it).to_owned()));
        let shown: Vec<_> = all.iter().map(as_json).collect();
        let table = || output::table(["code", "cause"], rows.collect());
        return output::either(args.json, &shown, table).map(Exit::from);
    };
    let found = entries().find(|[code, ..]| code == wanted);
    let entry = found.ok_or_else(|| Error::UnknownCode(wanted.clone()))?;
    let [code, cause, remedy] = entry;
    let text = || format!("{code}\n  cause   {cause}\n  remedy  {remedy}");
    output::either(args.json, &as_json(&entry), text).map(Exit::from)
}

fn as_json([code, cause, remedy]: &[&str; 3]) -> serde_json::Value {
    json!({ "code": code, "cause": cause, "remedy": remedy })
}

/// Returns code, cause and remedy of each row of the page.
fn entries() -> impl Iterator<Item = [&'static str; 3]> {
    PAGE.lines().filter_map(|line| {
        let row = line.strip_prefix("| `")?.strip_suffix(" |")?;
        let mut cells = row.split(" | ");
        Some([cells.next()?.trim_end_matches('`'), cells.next()?, cells.next()?])
    })
}

impl Error {
    /// Returns the code of the error, such as `store.busy`: its area, and the name of its kind.
    pub(super) fn code(&self) -> String {
        match self {
            Self::Runtime(error) => of_runtime(error),
            Self::Demo(error @ demo::Error::Data { .. }) => named("cli", error),
            Self::Demo(demo::Error::Runtime(error)) => of_runtime(error),
            Self::Service(service::Error::Runtime(error)) => of_runtime(error),
            Self::Service(service::Error::People(error)) => named("people", error),
            Self::Service(service::Error::Rows(_)) => "runtime.rows".to_owned(),
            Self::Service(error) => named("service", error),
            Self::CannotCompare(error) => error.code(),
            own => named("cli", own),
        }
    }
}

fn of_runtime(error: &runtime::Error) -> String {
    match error {
        runtime::Error::Store(checkpoint::Error::Database(error)) => named("database", error),
        runtime::Error::Store(error) => named("store", error),
        runtime::Error::Run(error) => named("run", error),
        runtime::Error::Model(error) => named("model", error),
        runtime::Error::Server(error) => named("server", error),
        runtime::Error::Documents(error) => named("documents", error),
        runtime::Error::Database(error) => named("database", error),
        runtime::Error::People(error) => named("people", error),
        own => named("runtime", own),
    }
}

/// Returns an area with the name of an error's variant, in kebab case.
fn named(area: &str, error: &impl Debug) -> String {
    let shown = format!("{error:?}");
    let name = shown.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
    let mut code = format!("{area}.");
    for (at, letter) in name.char_indices() {
        if at > 0 && letter.is_uppercase() {
            code.push('-');
        }
        code.extend(letter.to_lowercase());
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_the_code_of_its_kind() {
        let id = perihelion_engine::ids::ThreadId::new();
        let unknown = perihelion_engine::checkpoint::Error::UnknownThread(id);
        for (error, code) in [
            (Error::NoUser, "cli.no-user"),
            (Error::Runtime(runtime::Error::NoThread), "runtime.no-thread"),
            (Error::from(unknown), "store.unknown-thread"),
        ] {
            assert_eq!(error.code(), code);
            assert!(entries().any(|[listed, ..]| listed == code), "{code}");
        }
    }
}

//! Programs that were published as escapes from other sandboxes, and as what these must bear.
//!
//! `ESCAPE_PROGRAMS` is a folder of checkouts: huggingface/smolagents with `tests/test_local_python_executor.py`, zopefoundation/RestrictedPython
//! with `tests`, everruns/bashkit with `crates/bashkit/tests/integration/python_security_tests.rs` (`make test-escapes`). Every text in them that is
//! a program runs in each tier. What they hold is found by a program in the sandbox.

use std::path::{Path, PathBuf};

use perihelion_sandbox::{Limits, Program, Python, Tier};
use serde_json::{Value, json};

use super::host::Host;

const FILES: [&str; 2] = [".py", "python_security_tests.rs"];

#[cfg(feature = "wasm")]
#[test]
#[ignore = "needs checkouts of other projects: make test-escapes"]
fn no_published_program_gets_out() {
    published(Tier::Wasm);
}

#[test]
#[ignore = "needs checkouts of other projects: make test-escapes"]
fn no_published_program_gets_out_under_bubblewrap() {
    published(Tier::System);
}

fn published(tier: Tier) {
    let Some(folder) = std::env::var_os("ESCAPE_PROGRAMS").filter(|folder| !folder.is_empty())
    else {
        eprintln!("nothing was tested: ESCAPE_PROGRAMS is not set");
        return;
    };
    let Some(host) = Host::new(tier) else { return };
    let python = Python::open(tier, &[]).unwrap();
    let mut paths = Vec::new();
    files(Path::new(&folder), &mut paths);
    assert!(!paths.is_empty(), "{} holds no such files", folder.display());
    let mut count = 0;
    for path in paths {
        for code in programs(&python, &path) {
            let outcome = host.run(&code);
            // Where it says `echo hacked`, a process would have said the word.
            let words = code.split("echo ").skip(1).filter_map(|rest| {
                rest.split(|c: char| !c.is_alphanumeric()).next().filter(|word| !word.is_empty())
            });
            for word in words {
                let is_stated = outcome.stdout.lines().any(|line| line.trim() == word);
                assert!(!is_stated, "{code}: {}", outcome.stdout);
            }
            count += 1;
        }
    }
    eprintln!("{tier:?}: {count} published programs, none got out");
    assert!(count >= 300, "only {count} programs were found");
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.to_string_lossy();
        if path.is_dir() {
            files(&path, found);
        } else if FILES.iter().any(|ending| name.ends_with(ending)) {
            found.push(path);
        }
    }
}

fn programs(python: &Python, path: &Path) -> Vec<String> {
    let inputs =
        json!({"name": path.to_string_lossy(), "text": std::fs::read_to_string(path).unwrap()});
    let program = Program {
        code: format!("{}\nresult", include_str!("collect.py")),
        inputs: inputs.as_object().unwrap().clone(),
        ..Program::default()
    };
    let outcome = python.run(&program, &Limits::default()).unwrap();
    assert_eq!(outcome.error, None, "{}", path.display());
    outcome.result.as_array().unwrap().iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

//! The system's Python under bubblewrap; where bubblewrap is missing, only that it is refused.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]
#![expect(clippy::print_stderr, reason = "says why nothing was tested")]

use std::time::Duration;

use perihelion_sandbox::{Error, FaultType, Limits, Outcome, Program, Python, Tier};
use serde_json::json;

fn python() -> Option<Python> {
    match Python::open(Tier::System) {
        Ok(python) => Some(python),
        Err(error) => {
            let is_missing = matches!(error, Error::NoBubblewrap | Error::NoPython);
            assert!(is_missing && std::env::var_os("CI").is_none(), "{error}");
            eprintln!("nothing was tested: {error}");
            None
        }
    }
}

fn run(python: &Python, code: &str) -> Outcome {
    let limits = Limits { time: Duration::from_secs(5), output_bytes: 20_000, ..Limits::default() };
    let inputs = json!({"n": 20}).as_object().unwrap().clone();
    python.run(&Program { code: code.to_owned(), inputs, ..Program::default() }, &limits).unwrap()
}

#[test]
fn a_program_of_the_systems_python_leaves_the_same_data() {
    let Some(python) = python() else { return };
    let code = "import sys\nprint('out')\nprint('err', file=sys.stderr)\ntable = [{'a': n}]\nwith open('x.txt', 'w') as f: f.write('hi')\nn + 1";
    let outcome = run(&python, code);
    assert_eq!(outcome.error, None, "{outcome:?}");
    assert_eq!((outcome.stdout.as_str(), &outcome.result), ("out\nerr\n", &json!(21)));
    assert_eq!(outcome.table.unwrap().rows, [[json!(20)]]);
    assert_eq!(
        (outcome.files[0].path.as_str(), outcome.files[0].text.as_deref()),
        ("x.txt", Some("hi"))
    );
}

#[test]
fn network_processes_and_files_of_the_host_are_out_of_reach() {
    let Some(python) = python() else { return };
    for code in [
        "open('/etc/passwd').read()",
        "open('/home/ada/.bashrc').read()",
        "import socket\nsocket.create_connection(('127.0.0.1', 55432))",
        "import os\nos.fork()",
        "import subprocess\nsubprocess.run(['id'])",
        "import os\nos.system('id') and 1 / 0",
    ] {
        let outcome = run(&python, code);
        let kind = outcome.error.as_ref().map(|fault| fault.kind);
        assert!(
            matches!(kind, Some(FaultType::SandboxViolation | FaultType::PythonError)),
            "{code}: {outcome:?}"
        );
        let words = serde_json::to_string(&outcome).unwrap();
        assert!(!words.contains("root:x:0") && !words.contains("uid="), "{code}: {words}");
    }
    let environment = run(&python, "import os\nsorted(os.environ)").result;
    assert!(!environment.to_string().contains("CARGO"), "{environment}");
}

#[test]
fn time_memory_output_and_files_are_bounded() {
    let Some(python) = python() else { return };
    for (code, kind) in [
        ("while True: pass", FaultType::Timeout),
        ("import time\ntime.sleep(100)", FaultType::Timeout),
        ("x = bytearray(10 ** 10)", FaultType::MemoryLimit),
        (
            "with open('big', 'wb') as f:\n  while True: f.write(b'x' * 10 ** 6)",
            FaultType::PythonError,
        ),
    ] {
        let outcome = run(&python, code);
        assert_eq!(
            outcome.error.as_ref().map(|fault| fault.kind),
            Some(kind),
            "{code}: {outcome:?}"
        );
    }
    assert!(run(&python, "print('x' * 10 ** 7)").stdout.len() < 21_000);
}

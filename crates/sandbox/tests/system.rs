//! The system's Python under bubblewrap; where bubblewrap is missing, only that it is refused.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]
#![expect(clippy::print_stderr, reason = "says why nothing was tested")]

use std::path::PathBuf;
use std::time::Duration;

use perihelion_sandbox::{Error, FaultType, Limits, Outcome, Program, Python, Tier};
use serde_json::json;

fn python() -> Option<Python> {
    python_with(&[])
}

fn python_with(packages: &[PathBuf]) -> Option<Python> {
    match Python::open(Tier::System, packages) {
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
fn a_program_that_ends_the_interpreter_is_no_failure_of_the_sandbox_whatever_it_writes() {
    let Some(python) = python() else { return };
    let outcome = run(&python, "import os\nos.write(2, b'bwrap: no\\n')\nos._exit(1)");
    assert_eq!(outcome.error.unwrap().kind, FaultType::PythonError);
}

#[test]
fn network_processes_and_files_of_the_host_are_out_of_reach() {
    let Some(python) = python() else { return };
    for code in [
        "open('/etc/passwd').read()",
        "open('/home/ada/.bashrc').read()",
        "open('/usr/bin/env', 'a')",
        "open('/new', 'w')",
        "import socket\nsocket.create_connection(('127.0.0.1', 55432))",
        "import socket\nsocket.create_connection(('example.org', 80))",
        "import socket\nsocket.gethostbyname('example.org')",
        "import socket\nsocket.socket().bind(('127.0.0.1', 0))",
        "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 53))",
        "import socket\nsocket.socket(socket.AF_UNIX)",
        "import urllib.request\nurllib.request.urlopen('http://example.org/')",
        "import http.client\nhttp.client.HTTPConnection('127.0.0.1', 80).request('GET', '/')",
        "import smtplib\nsmtplib.SMTP('mail.example.org')",
        "import asyncio\nasyncio.run(asyncio.open_connection('127.0.0.1', 80))",
        "import asyncio\nasync def main():\n  await asyncio.gather(asyncio.open_connection('example.org', 80))\nasyncio.run(main())",
        "from concurrent.futures import ThreadPoolExecutor\nimport socket\nThreadPoolExecutor().submit(socket.create_connection, ('::1', 80)).result()",
        "import socket\ntry:\n  socket.create_connection(('::1', 80))\nexcept OSError as error:\n  raise RuntimeError('no data') from None",
        "import socket\ntry:\n  socket.create_connection(('::1', 80))\nexcept OSError as error:\n  cause = error\nraise ValueError('no data', cause)",
        "import os\nos.fork()",
        "import subprocess\nsubprocess.run(['id'])",
        "import os\nos.system('id') and 1 / 0",
        "import os\nos.memfd_create('x')",
    ] {
        let outcome = run(&python, code);
        let kind = outcome.error.as_ref().map(|fault| fault.kind);
        assert_eq!(kind, Some(FaultType::SandboxViolation), "{code}: {outcome:?}");
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

#[test]
fn the_kernels_settings_cannot_be_opened_for_writing() {
    let Some(python) = python() else { return };
    // Opened alone and never written, in case it succeeds.
    let code = "import os\nos.close(os.open(path, os.O_WRONLY))";
    for path in ["/proc/sys/kernel/domainname", "/proc/self/comm", "/proc/self/oom_score_adj"] {
        let outcome = run(&python, &code.replace("path", &format!("{path:?}")));
        let kind = outcome.error.as_ref().map(|fault| fault.kind);
        assert_eq!(kind, Some(FaultType::SandboxViolation), "{path}: {outcome:?}");
    }
}

#[test]
fn all_written_files_count_against_the_file_limit() {
    let Some(python) = python() else { return };
    // Fills each mount, and each directory that a program might expect to be writable.
    let code = r#"
import os
places = [line.split()[4] for line in open("/proc/self/mountinfo")]
places += ["/", "/etc", "/dev", "/dev/shm", "/home", "/root", "/run", "/tmp", "/var/tmp", "/work", os.environ["HOME"]]
written = {}
for place in dict.fromkeys(places):
    try:
        with open(place + "/fill", "wb", buffering=0) as file:
            while written.get(place, 0) < 2 ** 22:
                written[place] = written.get(place, 0) + file.write(b"x" * 4096)
    except OSError:
        pass
written
"#;
    let limits = Limits { file_bytes: 1 << 20, ..Limits::default() };
    let program = Program { code: code.to_owned(), ..Program::default() };
    let outcome = python.run(&program, &limits).unwrap();
    assert_eq!(outcome.error, None, "{outcome:?}");
    let written = outcome.result.as_object().unwrap();
    let total: u64 = written.values().filter_map(serde_json::Value::as_u64).sum();
    assert!((900 << 10..=1 << 20).contains(&total), "{written:?}");
}

#[test]
fn a_missing_module_error_lists_the_available_ones_and_packages_can_be_mounted() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ledger.py"), "TOTAL = 7").unwrap();
    let Some(python) = python() else { return };
    let message = |outcome: Outcome| outcome.error.map(|fault| fault.message).unwrap_or_default();
    let missing = message(run(&python, "import ledger"));
    assert!(missing.starts_with("ModuleNotFoundError: No module named 'ledger'; "), "{missing}");
    assert!(missing.contains("the sandbox has the standard library and"), "{missing}");
    let misspelt = message(run(&python, "import statistic"));
    assert!(misspelt.contains("did you mean statistics?"), "{misspelt}");
    let inner = message(run(&python, "import json.nothing"));
    assert_eq!(inner, "ModuleNotFoundError: No module named 'json.nothing'");

    let python = python_with(&[folder.path().to_owned()]).unwrap();
    assert_eq!(run(&python, "import ledger\nledger.TOTAL").result, json!(7));
    let missing = message(run(&python, "import nothing_of_the_kind"));
    assert!(missing.contains("ledger"), "{missing}");
    let written = run(&python, "import ledger\nopen(ledger.__file__, 'a')");
    let kind = written.error.as_ref().map(|fault| fault.kind);
    assert_eq!(kind, Some(FaultType::SandboxViolation), "{written:?}");
    for path in [folder.path().join("ledger.py"), folder.path().join("nowhere")] {
        let refused = Python::open(Tier::System, &[path]).err().unwrap().to_string();
        assert!(refused.contains("pass the site-packages directory"), "{refused}");
    }
    let refused = Python::open(Tier::Wasm, &[folder.path().to_owned()]).err().unwrap();
    assert!(matches!(refused, Error::BundledPackages), "{refused}");
}

#[test]
fn threads_pools_and_temporary_files_work_and_leave_no_result() {
    let Some(python) = python() else { return };
    let code = "import tempfile\nfrom multiprocessing.pool import ThreadPool\nimport asyncio\n\
                asyncio.run(asyncio.sleep(0))\nkept = tempfile.NamedTemporaryFile(delete=False)\n\
                kept.write(b'x')\nkept.flush()\nThreadPool(2).map(abs, [-1])";
    let outcome = run(&python, code);
    assert_eq!((&outcome.error, &outcome.result), (&None, &json!([1])), "{outcome:?}");
    assert_eq!(outcome.files, [], "{outcome:?}");
}

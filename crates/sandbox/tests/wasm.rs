//! What programs get from the bundled Python, and what they do not.
#![cfg(feature = "wasm")]

use std::sync::OnceLock;
use std::time::Duration;

use perihelion_sandbox::{FaultType, Limits, Outcome, Program, Python, Tier};
use serde_json::{Value, json};

fn python() -> &'static Python {
    static PYTHON: OnceLock<Python> = OnceLock::new();
    PYTHON.get_or_init(|| Python::open(Tier::Wasm, &[]).unwrap())
}

fn run(code: &str) -> Outcome {
    run_with(code, json!({}), &Limits::default())
}

fn run_with(code: &str, inputs: Value, limits: &Limits) -> Outcome {
    let program = Program {
        code: code.to_owned(),
        inputs: inputs.as_object().unwrap().clone(),
        clock: Duration::from_secs(1_700_000_000),
        seed: 7,
    };
    python().run(&program, limits).unwrap()
}

fn fault(code: &str) -> (FaultType, String, Option<u32>) {
    let fault = run(code).error.unwrap_or_else(|| panic!("no error of: {code}"));
    (fault.kind, fault.message, fault.line)
}

#[test]
fn a_program_returns_its_output_result_variables_table_and_files() {
    let code = "import statistics\nmean = statistics.mean(values)\nprint('mean', mean)\n\
                table = [{'n': n, 'square': n * n} for n in values]\nopen('a.txt', 'w').write('x')\nmean * 2";
    let outcome = run_with(code, json!({"values": [1, 2, 6]}), &Limits::default());
    assert_eq!(outcome.error, None);
    assert_eq!(outcome.stdout, "mean 3\n");
    assert_eq!(outcome.result, json!(6));
    assert_eq!(outcome.locals["mean"], json!(3));
    let table = outcome.table.unwrap();
    assert_eq!(table.columns, ["n", "square"]);
    assert_eq!(table.rows, [[json!(1), json!(1)], [json!(2), json!(4)], [json!(6), json!(36)]]);
    assert_eq!(
        (outcome.files[0].path.as_str(), outcome.files[0].text.as_deref()),
        ("a.txt", Some("x"))
    );
}

#[test]
fn an_exception_names_its_type_message_and_line() {
    assert_eq!(
        fault("x = 1\ny = 0\nx / y"),
        (FaultType::PythonError, "ZeroDivisionError: division by zero".into(), Some(3))
    );
    let (kind, message, line) = fault("def f(:\n  pass");
    assert_eq!((kind, line), (FaultType::PythonError, Some(1)), "{message}");
}

#[test]
fn network_processes_and_files_of_the_host_are_violations() {
    for code in [
        "open('/etc/passwd').read()",
        "open('/proc/self/environ').read()",
        "open('../etc/shadow')",
        "open('/usr/local/lib/x', 'w')",
        "import os\nos.system('id')",
        "import subprocess\nsubprocess.run(['id'])",
        "import socket\nsocket.create_connection(('127.0.0.1', 80))",
        "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:1/')",
        "import ctypes",
    ] {
        let (kind, message, _) = fault(code);
        assert_eq!(kind, FaultType::SandboxViolation, "{code}: {message}");
    }
}

#[test]
fn endless_loops_long_sleeps_and_long_host_calls_end_at_the_time_limit() {
    let limits = Limits { time: Duration::from_millis(300), ..Limits::default() };
    for code in [
        "while True: pass",
        "import time\ntime.sleep(3600)",
        "10 ** (10 ** 9)",
        "import re\nre.match('(a+)+$', 'a' * 60 + 'b')",
    ] {
        let error = run_with(code, json!({}), &limits).error.unwrap();
        assert_eq!(error.kind, FaultType::Timeout, "{code}");
    }
}

#[test]
fn memory_is_bounded() {
    for code in [
        "x = 'a' * 10 ** 10",
        "x = []\nwhile True: x.append(bytearray(10 ** 6))",
        "bytearray(2 ** 30)",
    ] {
        let (kind, message, _) = fault(code);
        assert_eq!(kind, FaultType::MemoryLimit, "{code}: {message}");
    }
}

#[test]
fn deep_recursion_is_an_error_and_the_next_run_is_untouched() {
    for code in [
        "def f(): return f()\nf()",
        "import sys\nsys.setrecursionlimit(10 ** 8)\ndef f(): return f()\nf()",
    ] {
        let (kind, message, _) = fault(code);
        assert!(
            matches!(kind, FaultType::PythonError | FaultType::MemoryLimit),
            "{code}: {message}"
        );
    }
    assert_eq!(run("1 + 1").result, json!(2));
}

#[test]
fn printed_and_written_output_is_bounded() {
    let limits = Limits { output_bytes: 1000, file_bytes: 1000, files: 3, ..Limits::default() };
    let outcome = run_with("print('x' * 10 ** 6)", json!({}), &limits);
    assert!(
        outcome.stdout.len() < 1100 && outcome.stdout.contains("more was printed"),
        "{}",
        outcome.stdout
    );
    let full = run_with("with open('a', 'wb') as f: f.write(b'x' * 10 ** 5)", json!({}), &limits);
    assert!(full.error.as_ref().is_some_and(|fault| fault.message.contains("OSError")), "{full:?}");
    let many = run_with("for n in range(9): open(str(n), 'w').close()", json!({}), &limits);
    assert!(many.error.is_some());
    assert_eq!(many.files.len(), 3);
}

/// `tempfile` removes a file as soon as it is open.
#[test]
fn an_open_file_is_used_without_its_name() {
    let code = "import os\nwith open('a', 'w+') as file:\n    os.remove('a')\n    file.write('text')\n    file.seek(0)\n\
                    content = file.read()\n[content, os.listdir()]";
    let outcome = run(code);
    assert_eq!(outcome.error, None);
    assert_eq!(outcome.result, json!(["text", []]));
}

#[test]
fn equal_runs_give_equal_bytes() {
    let code = "import random, time, os, datetime, uuid, hashlib\n\
                [random.random(), time.time(), os.urandom(8).hex(), str(datetime.datetime.now()), str(uuid.uuid4()), list({'a', 'b', 'c'})]";
    let first = run(code);
    assert_eq!(first.error, None);
    assert_eq!(first, run(code));
    assert!(
        first.result[3].as_str().unwrap().starts_with("2023-11-14 22:13:20"),
        "{}",
        first.result
    );
}

#[test]
fn a_sleep_ends_at_once_and_advances_the_clock() {
    let outcome = run("import time\na = time.time()\ntime.sleep(5)\nround(time.time() - a)");
    assert_eq!(outcome.result, json!(5));
}

#[test]
fn ending_the_interpreter_is_an_error_and_leaving_the_program_is_not() {
    assert_eq!(fault("import os\nos._exit(3)").0, FaultType::PythonError);
    assert_eq!(fault("import os\nos.abort()").0, FaultType::PythonError);
    assert_eq!(run("import sys\nsys.exit()").error, None);
    assert!(fault("raise SystemExit(3)").1.contains('3'));
}

/// As pandas has them, as far as they are read.
const FRAMES: &str = r#"
class Type:
    def __init__(self, kind):
        self.kind = kind

class Index(list):
    def __init__(self, values, names=(None,), kind="O"):
        super().__init__(values)
        self.names, self.dtype, self.is_unique = list(names), Type(kind), len(set(values)) == len(values)

class DataFrame:
    def __init__(self, columns, rows, index):
        self.columns, self.rows, self.index = columns, rows, index

    def itertuples(self, index, name):
        return iter(self.rows)

class Series:
    def __init__(self, values, index):
        self.values, self.index = values, index

    def tolist(self):
        return self.values

    def to_frame(self):
        return DataFrame(["value"], [(value,) for value in self.values], self.index)

"#;

#[test]
fn groups_of_frames_and_series_keep_their_names() {
    let frame = |index: &str| format!("DataFrame(['amount'], [(15,), (20,)], Index({index}))");
    let series = |index: &str| format!("Series([15, 20], Index({index}))");
    for (value, expected) in [
        (series("['north', 'south'], ['region']"), json!({"north": 15, "south": 20})),
        (series("[5, 7], ['year'], 'i'"), json!({"5": 15, "7": 20})),
        (series("[3, 1], kind='i'"), json!([15, 20])),
        (series("['a', 'a']"), json!([{"index": "a", "value": 15}, {"index": "a", "value": 20}])),
        (
            frame("['north', 'south'], ['region']"),
            json!([{"region": "north", "amount": 15}, {"region": "south", "amount": 20}]),
        ),
        (
            frame("['north', 'south'], ['amount']"),
            json!([{"amount_index": "north", "amount": 15}, {"amount_index": "south", "amount": 20}]),
        ),
        (
            frame("[('a', 1), ('a', 2)], ['x', None]"),
            json!([{"x": "a", "index": 1, "amount": 15}, {"x": "a", "index": 2, "amount": 20}]),
        ),
        (frame("[3, 1], kind='i'"), json!([{"amount": 15}, {"amount": 20}])),
    ] {
        let outcome = run(&format!("{FRAMES}{value}"));
        assert_eq!(outcome.error, None, "{value}");
        assert_eq!(outcome.result, expected, "{value}");
    }
    let code = format!("{FRAMES}{}", frame("['north', 'south'], ['region']"));
    let table = run(&code).table.unwrap();
    assert_eq!(table.columns, ["region", "amount"]);
    assert_eq!(table.rows, [[json!("north"), json!(15)], [json!("south"), json!(20)]]);
}

#[test]
fn a_result_that_is_cut_off_says_so() {
    let outcome = run("list(range(300_000))");
    assert_eq!(outcome.result.as_array().unwrap().len(), 200_000);
    assert_eq!(outcome.stdout, "The result is cut off after 200000 values.\n");
    assert_eq!(run("list(range(100_000))").stdout, "");
    let outcome = run("list(range(199_999)) + [[1]]");
    assert_eq!(outcome.stdout, "The result is cut off after 200000 values.\n");
    assert_eq!(run("list(range(199_998)) + [[]]").stdout, "");
}

#[test]
fn values_that_json_lacks_become_text() {
    let outcome = run("from decimal import Decimal\nfrom datetime import date\n\
                       {'d': Decimal('1.10'), 't': date(2024, 1, 2), 'n': float('nan'), 'b': 2 ** 70, 's': {3, 1}, (1, 2): 1j}");
    assert_eq!(outcome.error, None);
    assert_eq!(
        outcome.result,
        json!({"d": "1.10", "t": "2024-01-02", "n": "nan", "b": "1180591620717411303424", "s": [1, 3], "(1, 2)": "1j"})
    );
}

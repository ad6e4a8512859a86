//! Documents that ruin the process that parses them: the error has a name, and the next document is parsed.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use perihelion_documents::{Error, Limits, Parser};

/// Runs as the process that parses: what the document's name says happens to it, and others are parsed by the program itself.
const PROGRAM: &str = r#"
for name; do :; done
case "$name" in
    abort*) kill -ABRT $$ ;;
    silent*) exit 0 ;;
    talking*) echo '{"parsed": {"format"'; exit 0 ;;
    greedy*) ulimit -v 65536; eaten=xxxxxxxxxxxxxxxx; while :; do eaten="$eaten$eaten"; done ;;
    busy*) ulimit -t 1; while :; do :; done ;;
    stalled*) echo $$ > "$0.pid"; exec sleep 600 ;;
    *) exec PERIHELION parse-document -- "$name" ;;
esac
"#;

fn parser(directory: &Path, timeout: Duration) -> Parser {
    let script = directory.join("parse.sh");
    std::fs::write(&script, PROGRAM.replace("PERIHELION", env!("CARGO_BIN_EXE_perihelion")))
        .unwrap();
    let program = "/bin/sh".into();
    let arguments = vec![OsString::from(script)];
    Parser::Process { program, arguments, limits: Limits::default(), timeout }
}

/// Returns the class of the error that a document gives, and its message; the next document is parsed as ever.
async fn refused(parser: &Parser, name: &str) -> (String, String) {
    let bytes = b"# Lease\n\nThe rent is due.\n";
    let error = parser.parse(name, bytes).await.unwrap_err();
    let after = parser.parse("lease.md", bytes).await.unwrap();
    assert_eq!(after.title.as_deref(), Some("Lease"), "after {name}");
    let class = match &error {
        Error::Parse { path, source } if path == name => source.class(),
        _ => "another error",
    };
    (class.to_owned(), error.to_string())
}

/// S3.05: a process that dies, says nothing or half of something, or takes too much memory or processor time.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_or_exceeds_its_limits_is_named_and_the_next_document_is_parsed() {
    let directory = tempfile::tempdir().unwrap();
    let parser = parser(directory.path(), Duration::from_secs(60));
    for (name, ended) in [
        ("abort.pdf", "signal: 6"),
        ("silent.pdf", "exit status: 0"),
        ("talking.pdf", "exit status: 0"),
        ("greedy.pdf", "ended without a result"),
        ("busy.pdf", "signal: "),
    ] {
        let (class, message) = refused(&parser, name).await;
        assert_eq!(class, "died", "{message}");
        assert!(
            message.contains(ended) && message.contains("too much memory or time"),
            "{message}"
        );
    }
}

/// S3.05: a process that does nothing is ended when its time is over, and is gone then.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_stalls_is_ended_and_named() {
    let directory = tempfile::tempdir().unwrap();
    let parser = parser(directory.path(), Duration::from_secs(5));
    let bytes = vec![b'x'; 10 << 20];
    let error = parser.parse("stalled.pdf", &bytes).await.unwrap_err();
    assert!(error.to_string().contains("not done within 5 s"), "{error}");
    let pid = std::fs::read_to_string(directory.path().join("parse.sh.pid")).unwrap();
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "the process {pid} is still there");
}

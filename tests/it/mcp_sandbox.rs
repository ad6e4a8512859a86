//! The sandbox: with bubblewrap a server sees what it is given; without it, it is not started.
//!
//! Where this machine has no bubblewrap, or its kernel gives no namespaces, the tests hold that the server is
//! refused and the operator is told the way out: nothing is ever run unconfined in silence.

use std::path::PathBuf;

use perihelion::mcp::{CallContext, Error, Pool, PoolOptions, ServersFile, ToolHost as _};
use serde_json::{Map, Value, json};

/// Opens the bundled `files` or `notes` server in a sandbox.
fn pool(args: &[&str], sandbox: &str) -> Pool {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("perihelion");
    assert!(program.exists(), "build it with `cargo build --bins`: {}", program.display());
    let text = format!(
        "[mcp_servers.x]\ncommand = {program:?}\nargs = {args:?}\nsandbox = {{ {sandbox} }}\n"
    );
    let env = |name: &str| std::env::var(name).ok();
    let file = ServersFile::parse("mcp-servers.toml".as_ref(), &text, &env).unwrap();
    Pool::new(file, PoolOptions::default())
}

/// Tells whether this machine can confine at all; what it says otherwise is checked here.
#[expect(
    clippy::print_stderr,
    reason = "anyone who reads the output of tests is told what was not tested"
)]
async fn can_confine() -> bool {
    let pool = pool(&["mcp", "notes", "--file", "/tmp/n.jsonl"], "");
    let outcome = pool.scan().await.remove(0).outcome;
    pool.close().await;
    let Err(error) = outcome else { return true };
    let message = error.to_string();
    eprintln!("this machine confines nothing: {message}");
    let way_out = ["install the package bubblewrap", "allow unprivileged user namespaces"];
    assert!(way_out.iter().any(|words| message.contains(words)), "{message}");
    assert!(message.contains("remove `sandbox`"), "{message}");
    assert!(std::env::var_os("CI").is_none(), "the sandbox is tested nowhere: {message}");
    false
}

async fn call(pool: &Pool, tool: &str, arguments: Value) -> Result<String, Error> {
    let arguments: Map<String, Value> = arguments.as_object().unwrap().clone();
    Ok(pool.call("x", tool, arguments, CallContext::default()).await?.text)
}

fn directory() -> (tempfile::TempDir, PathBuf) {
    // Not below /tmp, which is the sandbox's own.
    let home = tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap();
    let path = home.path().to_owned();
    (home, path)
}

/// X6
#[tokio::test]
async fn a_confined_server_reads_only_the_listed_paths() {
    if !can_confine().await {
        return;
    }
    let (_home, path) = directory();
    for name in ["shown", "secret"] {
        std::fs::create_dir(path.join(name)).unwrap();
        std::fs::write(path.join(name).join("a.txt"), "The answer is 42.\n").unwrap();
    }
    let shown = path.join("shown");
    let secret = path.join("secret");
    let read_only = format!("read_only = [{shown:?}]");
    let root = shown.display().to_string();
    let open = pool(&["mcp", "files", "--root", &root], &read_only);
    let text = call(&open, "read", json!({ "path": "a.txt" })).await.unwrap();
    assert!(text.contains("42"), "{text}");
    open.close().await;

    let root = secret.display().to_string();
    let closed = pool(&["mcp", "files", "--root", &root], &read_only);
    let error = closed.scan().await.remove(0).outcome.unwrap_err().to_string();
    assert!(error.contains("secret"), "{error}");
    closed.close().await;
}

#[tokio::test]
async fn a_relative_program_starts_in_the_directory_of_the_server_with_and_without_a_sandbox() {
    use std::os::unix::fs::PermissionsExt as _;
    if !can_confine().await {
        return;
    }
    let (_home, path) = directory();
    let program = path.join("server.sh");
    std::fs::write(&program, "#!/bin/sh\necho it ran >&2\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    for sandbox in ["", "sandbox = { read_only = [\".\"] }"] {
        let text =
            format!("[mcp_servers.x]\ncommand = \"./server.sh\"\ncwd = {path:?}\n{sandbox}\n");
        let env = |name: &str| std::env::var(name).ok();
        let file = ServersFile::parse("mcp-servers.toml".as_ref(), &text, &env).unwrap();
        let pool = Pool::new(file, PoolOptions::default());
        let error = pool.scan().await.remove(0).outcome.unwrap_err().to_string();
        pool.close().await;
        assert!(error.contains("it ran"), "{sandbox}: {error}");
    }
}

/// X6
#[tokio::test]
async fn a_confined_server_writes_only_to_permitted_paths_and_a_private_scratch_directory() {
    if !can_confine().await {
        return;
    }
    let (_home, path) = directory();
    let file = path.join("notes.jsonl");
    let args = ["mcp", "notes", "--file", file.to_str().unwrap()];
    let note = json!({ "text": "remember" });

    let may = pool(&args, &format!("writable = [{path:?}]"));
    call(&may, "append_note", note.clone()).await.unwrap();
    may.close().await;
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(kept.contains("remember"), "{kept}");

    // Read-only is read-only.
    let may_not = pool(&args, &format!("read_only = [{path:?}]"));
    let outcome = call(&may_not, "append_note", note.clone()).await;
    may_not.close().await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), kept, "{outcome:?}");

    let name = format!("/tmp/perihelion-{}.jsonl", uuid::Uuid::new_v4());
    let scratch = pool(&["mcp", "notes", "--file", &name], "");
    call(&scratch, "append_note", note).await.unwrap();
    scratch.close().await;
    assert!(!PathBuf::from(name).exists(), "what it wrote is gone with it");
}

/// X6
#[tokio::test]
async fn a_confined_server_has_no_network_unless_it_is_given_one() {
    if !can_confine().await {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // A shell as the "server": it dies with what it found, and its last words are told.
    let probe = |network: bool| {
        let script = format!(
            "exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached >&2 || echo unreachable >&2"
        );
        let text = format!(
            "[mcp_servers.x]\ncommand = \"bash\"\nargs = [\"-c\", {script:?}]\nsandbox = {{ network = {network} }}\n"
        );
        let env = |name: &str| std::env::var(name).ok();
        let file = ServersFile::parse("mcp-servers.toml".as_ref(), &text, &env).unwrap();
        Pool::new(file, PoolOptions::default())
    };
    for (network, message) in [(false, "unreachable"), (true, "reached")] {
        let pool = probe(network);
        let error = pool.scan().await.remove(0).outcome.unwrap_err().to_string();
        pool.close().await;
        assert!(error.contains(message), "{error}");
    }
}

#[tokio::test]
async fn the_ends_of_a_confined_server_leave_no_process_behind() {
    if !can_confine().await {
        return;
    }
    let mark = uuid::Uuid::new_v4().to_string();
    let text = format!(
        "[mcp_servers.x]\ncommand = \"bash\"\nargs = [\"-c\", \"sleep 600 & exec sleep 600\"]\n\
         env = {{ MARK = {mark:?} }}\nstartup_timeout_sec = 1\nsandbox = {{}}\n"
    );
    let env = |name: &str| std::env::var(name).ok();
    let file = ServersFile::parse("mcp-servers.toml".as_ref(), &text, &env).unwrap();
    let pool = Pool::new(file, PoolOptions::default());
    assert!(pool.scan().await.remove(0).outcome.is_err());
    pool.close().await;
    crate::support::hostile::assert_none_left(&mark).await;
}

#[test]
fn a_sandbox_of_a_server_elsewhere_is_refused() {
    let text = "[mcp_servers.x]\nurl = \"http://127.0.0.1:1/mcp\"\nsandbox = {}\n";
    let error = ServersFile::parse("mcp-servers.toml".as_ref(), text, &|_| None).unwrap_err();
    assert!(error.to_string().contains("sandbox"), "{error}");
    let text = "[mcp_servers.x]\ncommand = \"x\"\nsandbox = { writeable = [] }\n";
    let error = ServersFile::parse("mcp-servers.toml".as_ref(), text, &|_| None).unwrap_err();
    assert!(error.to_string().contains("did you mean `writable`"), "{error}");
}

//! Bad input on the command line: one line that names the thing and the way out, nothing on standard output.

use perihelion::checkpoint::Store as _;
use perihelion::llm::scripted::Script;

use super::pruning::store;
use super::world::{Ended, World, answering};

/// Checks that nothing was printed and that the error is one line.
fn plain_refusal(ended: Ended) -> String {
    if !ended.stdout.is_empty() {
        assert!(ended.json()["error"]["message"].is_string(), "{ended:#?}");
    }
    let lines: Vec<&str> = ended.stderr.lines().collect();
    let [line] = lines.as_slice() else { panic!("not one line: {ended:#?}") };
    let line = line.strip_prefix("error[").and_then(|rest| rest.split_once("]: "));
    let (code, line) = line.unwrap_or_else(|| panic!("no error: {ended:#?}"));
    assert!(
        include_str!("../../../docs/reference/errors.md").contains(&format!("| `{code}` |")),
        "{code}"
    );
    assert!(!line.contains("panicked") && !line.contains("backtrace"), "{line}");
    line.to_owned()
}

#[tokio::test]
async fn unknown_threads_are_named_as_they_were_called() {
    let world = World::new(Script::new()).await;
    let id = "0197a000-0000-7000-8000-000000000001";
    for name in ["nowhere", id] {
        for args in [
            &["resume", name][..],
            &["resume", name, "--message", "x"],
            &["resume", name, "--approve", "--json"],
            &["threads", "show", name],
            &["threads", "history", name],
            &["threads", "state", name],
            &["threads", "fork", name, "--at", "1"],
            &["threads", "export", name],
            &["threads", "cancel", name],
            &["threads", "delete", name, "--yes"],
            &["threads", "prune", "--keep-steps", "1", name],
        ] {
            let message = plain_refusal(world.run(args).await.code(2));
            assert_eq!(
                message,
                format!("unknown thread: {name}; run `perihelion threads` to list threads")
            );
        }
    }
}

#[tokio::test]
async fn mistyped_names_and_places_lead_to_the_command_that_lists_or_sets_them() {
    let world = World::new(Script::new()).await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (args, code, words) in [
        (&["keys", "revoke", "x"][..], 2, "run `perihelion keys list`"),
        (&["users", "disable", "x"], 2, "run `perihelion users list`"),
        (&["documents", "show", "nowhere"], 1, "list the documents"),
        (&["--config", "no.toml", "threads"], 2, "`perihelion init`"),
    ] {
        let message = plain_refusal(world.run(args).await.code(code));
        assert!(message.contains(words), "{message}");
    }
    for args in [&["approvals", "approve", "x"][..], &["resume", "--interrupt", "x", "--approve"]] {
        world.run(args).await.code(2).says("expected the ID of a request");
    }
    let serve = world.run(&["serve", "--addr", &taken]).await.code(1);
    serve.says("choose another address or port with --addr or serve.addr");
}

#[tokio::test]
async fn a_finished_thread_refuses_resume_and_answers() {
    let world = World::new(answering()).await;
    world.run(&["run", "Hi", "--thread", "t", "-q"]).await.code(0);
    let message = plain_refusal(world.run(&["resume", "t"]).await.code(2));
    assert!(
        message.contains("is finished") && message.contains("perihelion run --thread"),
        "{message}"
    );
    let message = plain_refusal(world.run(&["resume", "t", "--approve"]).await.code(2));
    assert!(message.contains("no open question"), "{message}");
    let id = "0197a000-0000-7000-8000-000000000001";
    let args = ["resume", "t", "--interrupt", id, "--answer", "x"];
    let message = plain_refusal(world.run(&args).await.code(2));
    assert!(message.contains(id) && message.contains("Open questions: none"), "{message}");
    let message = plain_refusal(world.run(&["threads", "state", "t", "--at", "99"]).await.code(2));
    assert!(message.contains("no step 99"), "{message}");
}

#[tokio::test]
async fn wrong_options_are_refused_before_anything_happens() {
    let world = World::new(answering()).await;
    for (args, words) in [
        (&["run"][..], "QUESTION"),
        (&["run", "Hi", "--context", "foo"], "expected KEY=VALUE"),
        (&["run", "Hi", "--context", "=foo"], "expected KEY=VALUE"),
        (&["run", "Hi", "--jsn"], "--json"),
        (&["rum", "Hi"], "run"),
        (&["resume", "t", "--approve", "--deny"], "cannot be used with"),
        (&["resume", "t", "--reason", "x"], "--approve"),
        (&["resume", "t", "--interrupt", "x", "--approve"], "--interrupt"),
        (&["resume", "t", "--outcome", "maybe"], "done, retry, skip"),
        (&["resume", "t", "--outcome", "skip", "--result", "1"], "--outcome done"),
        (&["threads", "prune"], "--older-than"),
        (&["threads", "prune", "--older-than", "soon"], "30d"),
        (&["threads", "prune", "--keep-steps", "0", "t"], "0"),
        (&["threads", "list", "--status", "lazy"], "interrupted"),
        (&["mcp", "sqll"], "sql"),
    ] {
        let ended = world.run(args).await.code(2);
        assert_eq!(ended.stdout, "", "{args:?}");
        ended.says("error").says(words);
    }
    assert!(world.model.requests().is_empty());
    assert!(!world.path("data").exists(), "no database was made");
}

/// Each document has its own reason, which a program tells from others by its code.
#[tokio::test]
async fn a_document_that_cannot_be_added_is_refused_with_a_code() {
    let world = World::new(answering()).await;
    let refused = world.run(&["documents", "add", "nothing.pdf", "--json"]).await.code(1);
    let one = &refused.json()["documents"][0];
    let code = one["code"].as_str().unwrap();
    assert!(code.starts_with("documents."), "{one}");
    refused.says(&format!("error[{code}]: {}", one["error"].as_str().unwrap()));
    // A file of a terabyte, of which the disk has nothing, is not read.
    std::fs::File::create(world.path("huge.csv")).unwrap().set_len(1 << 40).unwrap();
    let refused = world.run(&["documents", "add", "huge.csv", "--json"]).await.code(1);
    let one = &refused.json()["documents"][0];
    assert_eq!(one["code"], "runtime.document", "{one}");
    assert!(one["error"].as_str().unwrap().contains("the document is too large"), "{one}");
}

#[tokio::test]
async fn an_empty_question_and_an_unknown_agent_are_refused_and_no_thread_is_made() {
    let world = World::new(answering()).await;
    let message = plain_refusal(world.run(&["run", "  "]).await.code(2));
    assert!(message.contains("the question is empty"), "{message}");
    let message = plain_refusal(world.run(&["run", "Hi", "--prefer", "fiels"]).await.code(2));
    assert!(message.contains("unknown agent: fiels (did you mean files?)"), "{message}");
    let message =
        plain_refusal(world.run(&["run", "Hi", "--disable", "files,notes"]).await.code(2));
    assert!(message.contains("every agent is disabled"), "{message}");
    let message = plain_refusal(world.run(&["agents", "show", "fiels"]).await.code(2));
    assert!(message.contains("did you mean files?"), "{message}");
    let list = world.run(&["threads", "list", "--json"]).await.code(0);
    assert_eq!(list.stdout, "[]\n");
    assert!(world.model.requests().is_empty());
}

/// A program that waits for the JSON object gets one, also if the store fails during the run.
#[tokio::test]
async fn a_run_that_breaks_off_prints_its_error_as_json() {
    let world = World::new(answering()).await;
    world.run(&["run", "Hi", "--thread", "t", "-q"]).await.code(0);
    let store = store(&world).await;
    let refuse = async |connection: &mut sqlx::SqliteConnection| {
        let trigger = "CREATE TRIGGER refuse BEFORE INSERT ON step WHEN new.seq > 1 \
            BEGIN SELECT RAISE(ABORT, 'no more steps'); END";
        sqlx::query(trigger).execute(connection).await.map(|_| ())
    };
    store.with_connection(refuse).await.unwrap();
    store.close().await;
    for option in ["--json", "--events"] {
        let thread = format!("with{option}");
        let ended = world.run(&["run", "Hi", "--thread", &thread, "-q", option]).await.code(1);
        let last: serde_json::Value =
            serde_json::from_str(ended.stdout.lines().last().unwrap_or_default()).unwrap();
        assert!(last["error"]["code"].is_string(), "{ended:#?}");
        assert!(last["thread_id"].is_string(), "{ended:#?}");
    }
    let refused = world.run(&["run", " ", "--events"]).await.code(2).json();
    assert_eq!(refused["error"]["type"], "usage");
}

#[tokio::test]
async fn a_thread_is_deleted_only_after_confirmation() {
    let world = World::new(answering()).await;
    world.run(&["run", "Hi", "--thread", "t", "-q"]).await.code(0);
    let message = plain_refusal(world.run(&["threads", "delete", "t"]).await.code(2));
    assert!(message.contains("--yes"), "{message}");
    world.run(&["threads", "show", "t"]).await.code(0);
    world.run(&["threads", "delete", "t", "--yes"]).await.code(0);
    world.run(&["threads", "show", "t"]).await.code(2);
}

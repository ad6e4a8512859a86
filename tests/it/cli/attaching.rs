//! `run --attach`: files that come with a question.

use perihelion::llm::Role;
use serde_json::Value;

use super::world::{World, answering};

const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n";

/// S1.02, S2.01
#[tokio::test]
async fn a_file_goes_to_the_roles_that_accept_it_and_is_stored_as_an_artifact() {
    let mut world = World::new(answering()).await;
    world.set("PERIHELION_MODELS_ROLES_QA_INPUT", "text,image");
    std::fs::write(world.path("scan.png"), PIXEL).unwrap();
    world.write("notes.csv", "year,zone\n1945,MEZ\n");
    let args = [
        "run",
        "What is it?",
        "--thread",
        "a",
        "--attach",
        "scan.png",
        "--attach",
        "notes.csv",
        "-q",
    ];
    world.run(&args).await.code(0);
    let requests = world.model.requests();
    let of = |role: Role| requests.iter().find(|one| one.role == role.as_str()).unwrap();
    let supervisor = of(Role::Supervisor);
    assert!(supervisor.contains("attached: scan.png, 8 bytes; this model takes no images"));
    assert!(supervisor.contains("1945,MEZ"), "a text is for every model");
    let sent = |body: &Value| body.to_string().contains("data:image/png;base64,iVBORw0KGgo=");
    assert!(!sent(&supervisor.body) && sent(&of(Role::Qa).body));

    // What is recorded refers to it and does not repeat it.
    let state = world.run(&["threads", "show", "a", "--json"]).await.code(0).json();
    assert!(state.to_string().matches("iVBORw0KGgo=").count() <= 1, "{state}");
    // It is there for what is asked next, and when the thread is read again.
    world.run(&["run", "And now?", "--thread", "a", "-q"]).await.code(0);
    let last = world.model.requests().pop().unwrap();
    assert!(sent(&last.body), "{}", last.body);
    world.run(&["replay", "a"]).await.code(0);
}

/// S2.01
#[tokio::test]
async fn a_file_that_is_not_there_or_too_large_is_refused_before_anything_runs() {
    let world = World::new(answering()).await;
    world.run(&["run", "Hi", "--attach", "nowhere.png"]).await.says("cannot read nowhere.png");
    std::fs::write(world.path("large.png"), vec![0; 11 * 1024 * 1024]).unwrap();
    let refused = world.run(&["run", "Hi", "--attach", "large.png"]).await;
    assert_ne!(refused.status.code(), Some(0));
    refused.says("large.png: a file may have 10485760 bytes");
    assert!(world.model.requests().is_empty());
}

//! What the program says of itself.

use perihelion::llm::scripted::Script;

use super::world::World;

#[tokio::test]
async fn help_names_every_option_with_its_variable_and_shows_examples() {
    let world = World::new(Script::new()).await;
    for command in [
        "",
        "run",
        "resume",
        "threads",
        "trace",
        "replay",
        "diff",
        "agents",
        "eval",
        "documents",
        "serve",
        "skills",
        "teams",
        "memory",
        "keys",
        "users",
        "approvals",
        "mcp",
        "doctor",
        "completions",
        "worker",
    ] {
        let args: Vec<&str> =
            [command, "--help"].into_iter().filter(|arg| !arg.is_empty()).collect();
        let help = world.run(&args).await.code(0);
        let name = if command.is_empty() { "perihelion" } else { command };
        insta::assert_snapshot!(format!("help_of_{name}"), help.stdout);
    }
}

#[tokio::test]
async fn help_of_logins() {
    let world = World::new(Script::new()).await;
    for command in ["login", "logout"] {
        let help = world.run(&["agents", command, "--help"]).await.code(0);
        let own = help.stdout.split("\nGlobal options:").next().unwrap().to_owned();
        insta::assert_snapshot!(format!("help_of_agents_{command}"), own);
    }
}

#[tokio::test]
async fn help_of_the_thread_commands() {
    let world = World::new(Script::new()).await;
    for command in
        ["list", "show", "history", "state", "fork", "export", "import", "delete", "prune"]
    {
        let help = world.run(&["threads", command, "--help"]).await.code(0);
        // The global options are the same everywhere.
        let own = help.stdout.split("\nGlobal options:").next().unwrap().to_owned();
        insta::assert_snapshot!(format!("help_of_threads_{command}"), own);
    }
}

#[tokio::test]
async fn help_of_the_trace_commands() {
    let world = World::new(Script::new()).await;
    for command in ["diff", "export", "serve"] {
        let help = world.run(&["trace", command, "--help"]).await.code(0);
        let own = help.stdout.split("\nGlobal options:").next().unwrap().to_owned();
        insta::assert_snapshot!(format!("help_of_trace_{command}"), own);
    }
}

#[tokio::test]
async fn the_version_and_the_completions_come_on_standard_output() {
    let world = World::new(Script::new()).await;
    let version = world.run(&["--version"]).await.code(0);
    assert_eq!(version.stdout, concat!("perihelion ", env!("CARGO_PKG_VERSION"), "\n"));
    for shell in ["bash", "zsh", "fish"] {
        let script = world.run(&["completions", shell]).await.code(0);
        assert!(script.stdout.contains("perihelion") && script.stderr.is_empty(), "{script:?}");
    }
}

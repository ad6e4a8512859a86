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
        "init",
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
    for command in [
        "list", "show", "history", "state", "fork", "cancel", "update", "export", "import",
        "delete", "prune", "archive",
    ] {
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
async fn the_version_and_the_completions_are_printed_on_standard_output() {
    let world = World::new(Script::new()).await;
    let version = world.run(&["--version"]).await.code(0);
    let expected = concat!("perihelion ", env!("CARGO_PKG_VERSION"), " (");
    assert!(version.stdout.starts_with(expected), "{}", version.stdout);
    assert!(version.stdout.ends_with("features: none)\n"), "{}", version.stdout);
    for shell in ["bash", "zsh", "fish"] {
        let script = world.run(&["completions", shell]).await.code(0);
        assert!(script.stdout.contains("perihelion") && script.stderr.is_empty(), "{script:?}");
    }
}

/// What a command itself takes is not lost among what every command takes.
#[tokio::test]
async fn short_help_leaves_the_global_options_out() {
    let world = World::new(Script::new()).await;
    let short = world.run(&["run", "-h"]).await.code(0).stdout;
    assert!(short.contains("--thread") && !short.contains("--database"), "{short}");
    assert!(world.run(&["run", "--help"]).await.code(0).stdout.contains("--database"));
}

/// Threads, agents and statuses are completed by name.
#[tokio::test]
async fn completions_know_threads_agents_and_statuses() {
    let world = World::new(super::world::answering()).await;
    world.run(&["run", "Hi", "--thread", "weekly", "-q"]).await.code(0);
    let id = world.run(&["run", "Hi", "--json", "-q"]).await.code(0).json();
    let id = id["thread_id"].as_str().unwrap();
    let threads = world.run(&["complete", "threads"]).await.code(0).stdout;
    assert_eq!(threads, format!("{}\nweekly\n", &id[id.len() - 8..]));
    assert_eq!(world.run(&["complete", "agents"]).await.code(0).stdout, "files\nnotes\n");
    for (shell, asks) in [
        ("bash", "perihelion complete"),
        ("zsh", ":_perihelion_threads"),
        ("fish", "(perihelion complete threads"),
    ] {
        let script = world.run(&["completions", shell]).await.code(0).stdout;
        assert!(script.contains(asks) && script.contains("interrupted"), "{shell}: {script}");
    }
}

//! Threads carried between databases as files.

use super::world::{SERVERS, World, noting};
use crate::support::postgres;

/// X4
#[tokio::test]
async fn threads_travel_to_postgres_and_back_and_their_questions_are_answered_there() {
    let world = World::new(noting()).await;
    world
        .write("mcp-servers.toml", &format!("{SERVERS}default_tools_approval_mode = \"prompt\"\n"));
    world.run(&["run", "Note it", "--thread", "t", "-q"]).await.code(3);
    world.run(&["threads", "fork", "t", "--at", "2", "--thread", "f"]).await.code(0);
    let server = postgres::server().await.fresh().await;
    for thread in ["t", "f"] {
        let mut dumps = Vec::new();
        let places = ["sqlite:data/perihelion/perihelion.db", &server.url, "sqlite:back.db"];
        for (at, place) in places.iter().enumerate() {
            if at > 0 {
                let import = ["threads", "import", "it.jsonl", "--database", place];
                world.run(&import).await.code(0);
            }
            let export = ["threads", "export", thread, "-o", "it.jsonl", "--database", place];
            world.run(&export).await.code(0);
            dumps.push(world.read("it.jsonl"));
        }
        assert_eq!(dumps[0], dumps[1]);
        assert_eq!(dumps[0], dumps[2]);
    }
    // The question is answered in each place; the fork runs to its own.
    for (place, of_fork) in [(server.url.as_str(), 3), ("sqlite:back.db", 0)] {
        let there = |args: &[&'static str]| -> Vec<String> {
            args.iter()
                .chain(&["--database"])
                .map(|it| (*it).to_owned())
                .chain([place.to_owned()])
                .collect()
        };
        let run = |args: Vec<String>| {
            let world = &world;
            async move { world.run(&args.iter().map(String::as_str).collect::<Vec<_>>()).await }
        };
        let done = run(there(&["resume", "t", "--approve", "-q"])).await.code(0);
        assert_eq!(done.stdout, "It is noted.\n");
        run(there(&["replay", "t"])).await.code(0);
        // The script's model answers a thread that asks for the second time otherwise.
        run(there(&["resume", "f", "-q"])).await.code(of_fork);
    }
}

#[tokio::test]
async fn a_damaged_cut_or_newer_file_is_refused_and_no_thread_is_written() {
    let world = World::new(super::world::reading()).await;
    world.run(&["run", "What is it?", "--thread", "t", "-q"]).await.code(0);
    let whole = world.run(&["threads", "export", "t"]).await.code(0).stdout;
    let cut = whole[..whole.len() * 2 / 3].to_owned();
    for (text, words) in [
        (cut, "damaged"),
        (whole.replacen("\"version\":2", "\"version\":7", 1), "format version 7"),
        (whole.replacen("What is it?", "What was it?", 1), "the lines before it were altered"),
        (whole.lines().take(5).map(|line| format!("{line}\n")).collect(), "the file ends before"),
        (String::new(), "the file is empty"),
    ] {
        let import = ["threads", "import", "-", "--database", "sqlite:other.db"];
        let refused = world.run_with_input(&import, &text).await;
        assert!([Some(1), Some(2)].contains(&refused.status.code()), "{refused:?}");
        assert_eq!(refused.stdout, "");
        refused.says(words);
    }
    let list = world.run(&["threads", "--json", "--database", "sqlite:other.db"]).await.code(0);
    assert_eq!(list.stdout, "[]\n");
}

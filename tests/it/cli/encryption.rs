//! Encryption at rest, as it is switched on: two lines of settings and a key.

use super::world::{World, reading};

const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// Words that must not stand in the database: of the person, the model and the tool.
const STATED: [&str; 4] = ["What is it?", "a.txt says 42", "It is 42 [1].", "The answer is 42."];

fn stands_in_the_database(world: &World, words: &str) -> bool {
    let files = std::fs::read_dir(world.path("data/perihelion")).unwrap();
    let contains = |content: Vec<u8>| content.windows(words.len()).any(|it| it == words.as_bytes());
    files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).any(contains)
}

#[tokio::test]
async fn an_encrypted_thread_is_run_traced_replayed_forked_and_exported_like_any_other() {
    let world = World::new(reading()).await;
    world.write("one.key", &format!("{KEY}\n"));
    world.write("perihelion.toml", "[encryption]\nkeys = [\"one=file:one.key\"]\n");
    world.run(&["run", "What is it?", "--thread", "t", "-q"]).await.code(0);
    for words in STATED {
        assert!(!stands_in_the_database(&world, words), "{words}");
    }
    world.run(&["replay", "t"]).await.code(0);
    let trace = world.run(&["trace", "t"]).await.code(0);
    assert!(trace.stdout.contains("mcp_agent_files"), "{trace:?}");
    world.run(&["threads", "fork", "t", "--at", "3", "--thread", "f"]).await.code(0);
    world.run(&["resume", "f", "-q"]).await.code(0);
    world.run(&["threads", "delete", "t", "--yes"]).await.code(0);
    let state = world.run(&["threads", "state", "f"]).await.code(0);
    assert!(state.stdout.contains("It is 42 [1]."), "{state:?}");
    let dump = world.run(&["threads", "export", "f"]).await.code(0).stdout;
    assert!(STATED.iter().all(|words| dump.contains(words)), "a dump is plain");
    let doctor = world.run(&["doctor"]).await.code(0);
    assert!(doctor.stdout.contains("✓ encryption: with the key one"), "{doctor:?}");
}

#[tokio::test]
async fn a_missing_or_wrong_key_is_named_and_threads_from_before_open() {
    let mut world = World::new(reading()).await;
    world.run(&["run", "What is it?", "--thread", "before", "-q"]).await.code(0);
    world.set("KEY_ONE", KEY);
    world.set("PERIHELION_ENCRYPTION_KEYS", "one=env:KEY_ONE");
    world.run(&["run", "What is it?", "--thread", "t", "-q"]).await.code(0);
    let before = world.run(&["threads", "state", "before"]).await.code(0);
    assert!(before.stdout.contains("What is it?"), "{before:?}");

    world.set("PERIHELION_ENCRYPTION_KEYS", "");
    world.run(&["threads", "state", "before"]).await.code(0);
    for args in
        [&["threads", "state", "t"][..], &["replay", "t"], &["run", "more", "--thread", "t"]]
    {
        world.run(args).await.code(2).says("encrypted with the key one, which is not configured");
    }
    let doctor = world.run(&["doctor"]).await.code(1);
    assert!(
        doctor.stdout.contains("✗ stored threads:") && doctor.stdout.contains("the key one"),
        "{doctor:?}"
    );

    world.set("KEY_ONE", &KEY.replace("00", "ff"));
    world.set("PERIHELION_ENCRYPTION_KEYS", "one=env:KEY_ONE");
    world
        .run(&["threads", "state", "t"])
        .await
        .code(2)
        .says("another key than the one configured under the name one");
    world.set("KEY_ONE", &KEY[1..]);
    let short = world.run(&["threads"]).await.code(2).says("64 hexadecimal digits");
    assert!(!short.stderr.contains(&KEY[1..]), "{short:?}");
    world.set("PERIHELION_ENCRYPTION_KEYS", KEY);
    let inline = world.run(&["threads"]).await.code(2).says("never the key itself");
    assert!(!inline.stderr.contains(KEY), "{inline:?}");

    world.set("KEY_ONE", KEY);
    world.set("KEY_TWO", &KEY.replace("00", "aa"));
    world.set("PERIHELION_ENCRYPTION_KEYS", "two=env:KEY_TWO,one=env:KEY_ONE");
    world.run(&["run", "And?", "--thread", "t", "-q"]).await.code(0);
    world.run(&["replay", "t"]).await.code(0);
}

#[tokio::test]
async fn a_process_without_the_key_writes_no_plain_text_and_shows_only_readable_fields() {
    let mut world = World::new(reading()).await;
    world.run(&["run", "What is it?", "--thread", "before", "-q"]).await.code(0);
    world.run(&["threads", "export", "before", "--output", "before.jsonl"]).await.code(0);
    world.set("KEY_ONE", KEY);
    world.set("PERIHELION_ENCRYPTION_KEYS", "one=env:KEY_ONE");
    world.run(&["run", "What is it?", "--thread", "t", "-q"]).await.code(0);
    world.run(&["threads", "delete", "before", "--yes"]).await.code(0);
    world.run(&["threads", "import", "before.jsonl"]).await.code(0);

    world.set("KEY_TWO", &KEY.replace("00", "aa"));
    for keys in ["", "two=env:KEY_TWO"] {
        world.set("PERIHELION_ENCRYPTION_KEYS", keys);
        for args in [
            &["run", "in the open", "--thread", "new", "-q"][..],
            &["run", "in the open", "--thread", "new", "--detach", "-q"],
            &["threads", "fork", "before", "--at", "3", "--thread", "new"],
            &["threads", "import", "before.jsonl"],
            &["worker", "--drain"],
        ] {
            world.run(args).await.code(2).says("encrypted with the key one").says("[encryption]");
        }
        assert!(!stands_in_the_database(&world, "in the open"));
        let list = world.run(&["threads", "list"]).await.code(0);
        assert!(list.stdout.contains("(encrypted with the key one)"), "{list:?}");
        let json = world.run(&["threads", "list", "--json"]).await.code(0);
        assert!(!json.stdout.contains("perihelion-sealed:"), "{json:?}");
    }
    world.set("PERIHELION_ENCRYPTION_KEYS", "two=env:KEY_TWO,one=env:KEY_ONE");
    world.run(&["run", "And?", "--thread", "new", "-q"]).await.code(0);
}

//! Databases that earlier releases wrote, in `tests/golden/releases`: this program reads them and finishes what a crash left.

use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use sqlx::AssertSqlSafe;

use super::world::{World, answering};
use crate::support::postgres::server;

/// A database as a release left it.
struct Written {
    release: String,
    bytes: Vec<u8>,
    /// The thread that a crash left in the middle of a step.
    crashed: String,
}

/// Reads the databases of a kind, each with the thread of its kind.
fn written(kind: &str) -> Vec<Written> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/releases");
    let mut found = Vec::new();
    for file in std::fs::read_dir(place).unwrap() {
        let file = file.unwrap().path();
        let name = file.file_name().unwrap().to_str().unwrap();
        let Some(release) = name.strip_suffix(&format!(".{kind}.gz")) else { continue };
        let threads =
            std::fs::read_to_string(file.with_file_name(format!("{release}.{kind}.thread")));
        let mut bytes = Vec::new();
        GzDecoder::new(std::fs::File::open(&file).unwrap()).read_to_end(&mut bytes).unwrap();
        let crashed = threads.unwrap().trim().to_owned();
        found.push(Written { release: release.to_owned(), bytes, crashed });
    }
    assert!(!found.is_empty(), "no release has a database: {kind}");
    found
}

/// Finishes the thread that a crash left, and reads what else the release stored.
async fn is_usable(world: &World, written: &Written) {
    let Written { release, crashed: thread, .. } = written;
    let thread = thread.as_str();
    let listed = world.run(&["threads", "list", "--json"]).await.code(0).stdout;
    assert!(listed.contains(thread), "{release}: {listed}");
    let resumed = world.run(&["resume", thread, "--quiet"]).await.code(0);
    assert!(resumed.stdout.contains("Africa/Casablanca"), "{release}: {resumed:?}");
    let keys = world.run(&["keys", "list"]).await.code(0);
    assert!(keys.stdout.contains("reader"), "{release}: {keys:?}");
    let memory = world.run(&["memory", "list", "--user", "ada"]).await.code(0);
    assert!(memory.stdout.contains("answers in German"), "{release}: {memory:?}");
}

#[tokio::test]
async fn the_sqlite_databases_of_earlier_releases_are_read_and_continued() {
    for written in written("sqlite") {
        let mut world = World::new(answering()).await;
        std::fs::write(world.path("release.db"), &written.bytes).unwrap();
        world.set("DATABASE_URL", &format!("sqlite:{}", world.path("release.db").display()));
        is_usable(&world, &written).await;
    }
}

#[tokio::test]
async fn the_postgres_databases_of_earlier_releases_are_read_and_continued() {
    for written in written("postgres") {
        let mut world = World::new(answering()).await;
        let database = server().await.fresh().await;
        let dump = String::from_utf8(written.bytes.clone()).unwrap();
        let mut owner = database.connect_as_owner().await;
        sqlx::raw_sql(AssertSqlSafe(dump)).execute(&mut owner).await.unwrap();
        world.set("DATABASE_URL", &database.url);
        is_usable(&world, &written).await;
    }
}

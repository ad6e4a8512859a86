//! Both databases, and a thread in one.

use perihelion_database::{Database, query};
use perihelion_test_database::TestDatabase;
use uuid::Uuid;

use super::support::now;

/// Makes an empty database of each kind; of SQLite alone without a server.
pub async fn databases() -> Vec<(Database, tempfile::TempDir, Option<TestDatabase>)> {
    let mut databases = Vec::new();
    for server in [None, TestDatabase::make().await] {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("t.db").to_string_lossy().into_owned();
        let url = server.as_ref().map_or(file, |server| server.url.clone());
        if databases.is_empty() || server.is_some() {
            databases.push((Database::open(&url).await.unwrap(), place, server));
        }
    }
    databases
}

/// Makes a thread.
pub async fn thread_in(database: &Database) -> Uuid {
    let thread = Uuid::now_v7();
    let insert = query(
        "INSERT INTO thread (id, created_at, updated_at, graph, namespace, tenant) VALUES ($1, $2, $2, 'swarm', '', 'default')",
    );
    let insert = insert.bind(thread).bind(now());
    database.of_tenant("default").execute(&insert).await.unwrap();
    thread
}

//! Databases of both kinds for one test.

use std::future::Future;

use perihelion_database::Database;
use perihelion_recall::StoredIndex;
use perihelion_test_database::TestDatabase;

/// Runs a test on SQLite, and on Postgres where `TEST_DATABASE_URL` names a server.
pub async fn on_each<F: Future<Output = ()>>(test: impl Fn(StoredIndex) -> F) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("p.db");
    let database = Database::open(path.to_str().unwrap()).await.unwrap();
    test(StoredIndex::new(database.clone())).await;
    database.close().await;
    if let Some(server) = TestDatabase::make().await {
        let database = Database::open(&server.url).await.unwrap();
        test(StoredIndex::new(database.clone())).await;
        database.close().await;
    }
}

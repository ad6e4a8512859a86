//! Databases of both kinds for one test.

use std::future::Future;

use perihelion_database::Database;
use perihelion_recall::StoredIndex;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use uuid::Uuid;

/// Runs a test on SQLite, and on Postgres where `TEST_DATABASE_URL` names a server.
pub async fn on_each<F: Future<Output = ()>>(test: impl Fn(StoredIndex) -> F) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("p.db");
    let database = Database::open(path.to_str().unwrap()).await.unwrap();
    test(StoredIndex::new(database.clone())).await;
    database.close().await;
    if let Some(server) = Server::make().await {
        let database = Database::open(&server.url).await.unwrap();
        test(StoredIndex::new(database.clone())).await;
        database.close().await;
        server.drop_database().await;
    }
}

/// A Postgres database that no other test uses.
pub struct Server {
    pub url: String,
    admin: String,
    name: String,
}

impl Server {
    pub async fn make() -> Option<Self> {
        let admin = std::env::var("TEST_DATABASE_URL").ok().filter(|url| !url.is_empty())?;
        let name = format!("recall_{}", Uuid::new_v4().simple());
        let mut connection = PgConnection::connect(&admin).await.unwrap();
        let create = AssertSqlSafe(format!("CREATE DATABASE {name}"));
        sqlx::raw_sql(create).execute(&mut connection).await.unwrap();
        let at = admin.rfind('/').unwrap();
        Some(Self { url: format!("{}/{name}", &admin[..at]), admin, name })
    }

    pub async fn drop_database(self) {
        let mut connection = PgConnection::connect(&self.admin).await.unwrap();
        let drop = AssertSqlSafe(format!("DROP DATABASE {} WITH (FORCE)", self.name));
        sqlx::raw_sql(drop).execute(&mut connection).await.unwrap();
    }
}

//! The stores under test.

use std::{path::Path, str::FromStr, sync::Arc};

use perihelion_engine::{
    checkpoint::{
        self, Archive, Keyring, MemoryStore, PostgresStore, SealedStore, SqliteStore, Store,
    },
    ids::ThreadId,
};
use sqlx::{ConnectOptions, PgConnection, postgres::PgConnectOptions};
use tempfile::TempDir;

use perihelion_test_database::TestDatabase;
use perihelion_test_database::postgres::server;

/// A store, and what it takes to reach its data a second time.
pub struct Fixture {
    pub store: Arc<dyn Store>,
    /// `None` for memory.
    pub url: Option<String>,
    directory: Option<TempDir>,
    is_sealed: bool,
}

/// The keys of the sealed stores; the first writes.
pub fn keyring(names: &[&str]) -> Keyring {
    let key = |name: &&str| ((*name).to_owned(), *blake3::hash(name.as_bytes()).as_bytes());
    Keyring::new(names.iter().map(key)).unwrap()
}

/// Puts encryption in front of a store.
pub fn sealed(store: Arc<dyn Store>, keys: &[&str]) -> Arc<dyn Store> {
    Arc::new(SealedStore::new(store, keyring(keys)))
}

impl Fixture {
    /// Opens the same data as another process would; memory has only the one store.
    pub async fn another(&self) -> Arc<dyn Store> {
        match &self.url {
            Some(url) if self.is_sealed => sealed(checkpoint::open(url).await.unwrap(), &["suite"]),
            Some(url) => checkpoint::open(url).await.unwrap(),
            None => Arc::clone(&self.store),
        }
    }

    /// Opens the same data as a process does that has an archive.
    pub async fn archiving(&self, directory: &Path) -> Arc<dyn Store> {
        let keys = self.is_sealed.then(|| keyring(&["suite"]));
        let archive = Some(Archive::new(directory.to_owned()));
        checkpoint::open_with(self.url.as_deref().unwrap(), keys, archive).await.unwrap()
    }

    /// Returns a store of the same kind that no other test uses, and what keeps its database.
    pub async fn alone(&self) -> (Arc<dyn Store>, Option<TestDatabase>) {
        if self.url.is_none() || self.directory.is_some() {
            return (Arc::clone(&self.store), None);
        }
        let database = server().await.fresh().await;
        let store: Arc<dyn Store> = Arc::new(PostgresStore::open(&database.url).await.unwrap());
        (if self.is_sealed { sealed(store, &["suite"]) } else { store }, Some(database))
    }

    /// Counts the steps stored under a thread itself, shared ones left out; `None` for memory.
    pub async fn own_steps(&self, thread: ThreadId) -> Option<i64> {
        let url = self.url.as_deref()?;
        let count = if self.directory.is_some() {
            let options = sqlx::sqlite::SqliteConnectOptions::from_str(url).unwrap();
            let mut connection = options.connect().await.unwrap();
            sqlx::query_scalar("SELECT count(*) FROM step WHERE thread_id = ?1")
                .bind(thread.0)
                .fetch_one(&mut connection)
                .await
        } else {
            let mut connection = connect(url).await;
            sqlx::query_scalar("SELECT count(*) FROM step WHERE thread_id = $1")
                .bind(thread.0)
                .fetch_one(&mut connection)
                .await
        };
        Some(count.unwrap())
    }
}

pub async fn memory() -> Fixture {
    Fixture { store: Arc::new(MemoryStore::new()), url: None, directory: None, is_sealed: false }
}

pub async fn sqlite() -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("deep/in/threads.db").display());
    let store = Arc::new(SqliteStore::open(&url).await.unwrap());
    Fixture { store, url: Some(url), directory: Some(directory), is_sealed: false }
}

/// One database for all tests of the suite: each makes threads of its own.
pub async fn postgres() -> Fixture {
    postgres_in("perihelion_store_suite").await
}

async fn postgres_in(database: &str) -> Fixture {
    let url = postgres_database(database).await;
    let store = Arc::new(PostgresStore::open(&url).await.unwrap());
    Fixture { store, url: Some(url), directory: None, is_sealed: false }
}

pub async fn sealed_sqlite() -> Fixture {
    let plain = sqlite().await;
    Fixture { store: sealed(plain.store, &["suite"]), is_sealed: true, ..plain }
}

/// In a database of its own: processes without a key refuse to write to one that is encrypted.
pub async fn sealed_postgres() -> Fixture {
    let plain = postgres_in("perihelion_sealed_suite").await;
    Fixture { store: sealed(plain.store, &["suite"]), is_sealed: true, ..plain }
}

/// Makes a database on the test server unless it is there, and returns its address.
async fn postgres_database(name: &str) -> String {
    let server = server().await;
    let mut connection = connect(&server.url("postgres")).await;
    // Another test process may be making it at the same moment; then either statement may fail.
    let made = sqlx::raw_sql(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}")))
        .execute(&mut connection)
        .await;
    if let Err(error) = made {
        let code = error.as_database_error().and_then(|e| e.code()).unwrap_or_default();
        assert!(["42P04", "23505", "55006"].contains(&&*code), "{error}");
    }
    server.url(name)
}

pub async fn connect(url: &str) -> PgConnection {
    PgConnectOptions::from_str(url).unwrap().connect().await.unwrap()
}

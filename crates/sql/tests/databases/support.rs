//! A fresh database of each kind, and how it is opened.

use std::path::PathBuf;
use std::time::Duration;

use perihelion_sql::{Database, Limits, Options};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection, SqliteConnection};

pub const LIMITS: Limits = Limits {
    max_rows: 100,
    max_columns: 20,
    max_cell_bytes: 2_000,
    timeout: Duration::from_secs(20),
};

/// Returns what a database is opened with where a test says nothing else.
pub fn options(database: &str) -> Options {
    Options {
        database: database.to_owned(),
        tables: Vec::new(),
        filters: Vec::new(),
        tenant: None,
        limits: LIMITS,
        max_cost: None,
        profile: true,
        worker: (PathBuf::from(env!("CARGO_BIN_EXE_perihelion-sql-worker")), Vec::new()),
    }
}

pub fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|name| (*name).to_owned()).collect()
}

/// A SQLite file with some tables, deleted with this value.
pub struct File {
    _home: tempfile::TempDir,
    pub path: String,
}

impl File {
    pub async fn with(schema: &'static str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("test.db").to_str().unwrap().to_owned();
        let file = Self { path, _home: home };
        file.run(schema).await;
        file
    }

    /// Runs statements as the owner of the file.
    pub async fn run(&self, sql: &'static str) {
        let options =
            sqlx::sqlite::SqliteConnectOptions::new().filename(&self.path).create_if_missing(true);
        let mut connection: SqliteConnection = options.connect().await.unwrap();
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    pub async fn open(&self) -> Database {
        Database::open(options(&self.path)).await.unwrap()
    }

    pub async fn open_only(&self, tables: &[&str]) -> Database {
        let options = Options { tables: names(tables), ..options(&self.path) };
        Database::open(options).await.unwrap()
    }
}

/// A Postgres database with a role that may only read what it was granted.
pub struct Server {
    admin_url: String,
    name: String,
    role: String,
    pub url: String,
}

impl Server {
    /// Creates the database and role; nothing where no server is named by `TEST_DATABASE_URL`.
    ///
    /// `{role}` in the schema stands for the role.
    pub async fn with(schema: &str) -> Option<Self> {
        let Ok(admin_url) = std::env::var("TEST_DATABASE_URL") else {
            assert!(std::env::var("CI").is_err(), "TEST_DATABASE_URL is not set");
            eprintln!("no Postgres: TEST_DATABASE_URL is not set");
            return None;
        };
        let name = format!("sql_{}", uuid::Uuid::new_v4().simple());
        let role = format!("reader_{}", uuid::Uuid::new_v4().simple());
        let mut admin: PgConnection = PgConnection::connect(&admin_url).await.unwrap();
        let create = format!("CREATE DATABASE {name}");
        admin.execute(AssertSqlSafe(create)).await.unwrap();
        admin.close().await.unwrap();
        let (base, _) = admin_url.rsplit_once('/').unwrap();
        let own = format!("{base}/{name}");
        let mut owner: PgConnection = PgConnection::connect(&own).await.unwrap();
        let create = format!("CREATE ROLE {role} LOGIN PASSWORD 'sesame'");
        owner.execute(AssertSqlSafe(create)).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(schema.replace("{role}", &role)))
            .execute(&mut owner)
            .await
            .unwrap();
        owner.close().await.unwrap();
        let (scheme, rest) = own.split_once("://").unwrap();
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        let url = format!("{scheme}://{role}:sesame@{host}");
        Some(Self { admin_url, name, role, url })
    }

    pub async fn open(&self) -> Database {
        Database::open(options(&self.url)).await.unwrap()
    }

    pub async fn owner(&self) -> PgConnection {
        let (base, _) = self.admin_url.rsplit_once('/').unwrap();
        PgConnection::connect(&format!("{base}/{}", self.name)).await.unwrap()
    }

    /// Drops the database and the role.
    pub async fn drop(self) {
        let mut admin: PgConnection = PgConnection::connect(&self.admin_url).await.unwrap();
        for sql in [
            format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name),
            format!("DROP ROLE IF EXISTS {}", self.role),
        ] {
            admin.execute(AssertSqlSafe(sql)).await.unwrap();
        }
    }
}

//! Databases as earlier programs left them.

use std::path::PathBuf;

use perihelion::ids::ThreadId;
use perihelion_test_database::TestDatabase;
use sqlx::migrate::Migrator;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, SqliteConnection};
use tempfile::TempDir;
use uuid::Uuid;

use crate::support::postgres::server;

/// The thread that the golden files hold.
pub const THREAD: ThreadId = ThreadId(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0002));

/// Marks a file as ours ("peri").
const MARK: i64 = 0x7065_7269;

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Sqlite,
    Postgres,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }

    /// Returns the migrations in order.
    fn migrations(self) -> Vec<PathBuf> {
        let directory = root().join("migrations").join(self.name());
        let files = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
        let mut files: Vec<PathBuf> = files.collect();
        files.sort();
        files
    }

    /// Returns how many migrations there are.
    pub fn newest(self) -> i64 {
        self.migrations().len() as i64
    }

    /// Returns the number that a migration has, counted from 1: one of the databases may need none of some number.
    fn number_of(self, level: i64) -> i64 {
        let file = &self.migrations()[usize::try_from(level - 1).unwrap()];
        let name = file.file_name().unwrap().to_str().unwrap();
        name.split('_').next().unwrap().parse().unwrap()
    }

    /// Returns the rows that a program of the first migration had written, in the middle of a step.
    pub fn golden(self) -> PathBuf {
        root().join("tests/golden").join(format!("threads_0001.{}.sql", self.name()))
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A database at an earlier migration; gone with this value.
pub struct Older {
    pub url: String,
    _file: Option<TempDir>,
    _database: Option<TestDatabase>,
}

/// Makes a database as it was at a migration, with the golden thread in it.
pub async fn older(kind: Kind, level: i64) -> Older {
    let golden = std::fs::read_to_string(kind.golden()).unwrap();
    match kind {
        Kind::Sqlite => {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("threads.db");
            let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
            let mut connection = options.connect().await.unwrap();
            for (number, migration) in (1..=level).zip(kind.migrations()) {
                run(&mut connection, std::fs::read_to_string(migration).unwrap()).await;
                if number == 1 {
                    run(&mut connection, golden.clone()).await;
                }
            }
            let marks = format!("PRAGMA application_id = {MARK}; PRAGMA user_version = {level}");
            run(&mut connection, marks).await;
            connection.close().await.unwrap();
            let url = format!("sqlite:{}", path.display());
            Older { url, _file: Some(directory), _database: None }
        }
        Kind::Postgres => {
            let database = server().await.fresh().await;
            let mut connection = database.connect_as_owner().await;
            let directory = root().join("migrations").join(kind.name());
            let migrator = Migrator::new(directory).await.unwrap();
            migrator.run_direct(Some(1), &mut connection, false).await.unwrap();
            sqlx::raw_sql(AssertSqlSafe(golden)).execute(&mut connection).await.unwrap();
            migrator.run_direct(Some(kind.number_of(level)), &mut connection, false).await.unwrap();
            connection.close().await.unwrap();
            Older { url: database.url.clone(), _file: None, _database: Some(database) }
        }
    }
}

async fn run(connection: &mut SqliteConnection, sql: String) {
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await.unwrap();
}

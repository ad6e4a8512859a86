//! Copies of the database that a run left, to be tampered with.

use std::path::PathBuf;

use perihelion::ids::ThreadId;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, SqliteConnection};
use tempfile::TempDir;

/// Makes copies of one database, each with an address of its own.
pub enum Copies {
    Sqlite {
        original: String,
        home: TempDir,
    },
    Postgres {
        /// Connected to the database `template1`, since nobody may be connected to one that is copied.
        server: PgConnection,
        address: String,
    },
}

/// The name of the database that copies are made of.
const PRISTINE: &str = "pristine";

impl Copies {
    /// Prepares copies of the database at an address; those who are connected to it are cut off once.
    pub async fn of(address: &str) -> Self {
        if let Some(original) = address.strip_prefix("sqlite:") {
            let original = original.to_owned();
            let home = tempfile::tempdir().unwrap();
            return Self::Sqlite { original, home };
        }
        let mut server = PgConnection::connect(&named(address, "template1")).await.unwrap();
        let mut source = PgConnection::connect(address).await.unwrap();
        let name: String =
            sqlx::query_scalar("SELECT current_database()").fetch_one(&mut source).await.unwrap();
        source.close().await.unwrap();
        for statement in [
            format!("ALTER DATABASE \"{name}\" WITH ALLOW_CONNECTIONS false"),
            format!(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
            ),
            format!("CREATE DATABASE {PRISTINE} TEMPLATE \"{name}\""),
            format!("ALTER DATABASE \"{name}\" WITH ALLOW_CONNECTIONS true"),
        ] {
            // A connection that was ended may take a moment to be gone.
            while let Err(error) = server.execute(AssertSqlSafe(statement.clone())).await {
                let is_busy = error.to_string().contains("is being accessed by other users");
                assert!(is_busy, "{statement}: {error}");
                tokio::task::yield_now().await;
            }
        }
        Self::Postgres { server, address: address.to_owned() }
    }

    /// Makes a copy and returns its address.
    pub async fn one(&mut self, number: usize) -> String {
        match self {
            Self::Sqlite { original, home } => {
                let copy = home.path().join(format!("{number}.db"));
                let mut original =
                    SqliteConnection::connect(&format!("sqlite:{original}")).await.unwrap();
                // One file, whatever the log beside the original holds.
                let into = format!("VACUUM INTO '{}'", copy.display());
                original.execute(AssertSqlSafe(into)).await.unwrap();
                original.close().await.unwrap();
                format!("sqlite:{}", copy.display())
            }
            Self::Postgres { server, address } => {
                let name = format!("copy_{number}");
                let create = format!("CREATE DATABASE {name} TEMPLATE {PRISTINE}");
                server.execute(AssertSqlSafe(create)).await.unwrap();
                named(address, &name)
            }
        }
    }

    /// Executes statements on a copy; `:thread` stands for a thread's id.
    pub async fn tamper(&self, copy: &str, sql: &str, thread: ThreadId) {
        for statement in sql.split(';') {
            let affected = match self {
                Self::Sqlite { .. } => {
                    let id = format!("x'{}'", thread.to_string().replace('-', ""));
                    let statement = AssertSqlSafe(statement.replace(":thread", &id));
                    let mut connection = SqliteConnection::connect(copy).await.unwrap();
                    let done = connection.execute(statement).await.unwrap().rows_affected();
                    connection.close().await.unwrap();
                    done
                }
                Self::Postgres { .. } => {
                    let statement = statement.replace(":thread", &format!("'{thread}'::uuid"));
                    let mut connection = PgConnection::connect(copy).await.unwrap();
                    let done = connection.execute(AssertSqlSafe(statement)).await.unwrap();
                    connection.close().await.unwrap();
                    done.rows_affected()
                }
            };
            assert!(affected > 0, "no such row: {statement}");
        }
    }

    /// Removes a copy that nobody is connected to any more.
    pub async fn remove(&mut self, copy: &str) {
        match self {
            Self::Sqlite { .. } => {
                std::fs::remove_file(PathBuf::from(copy.trim_start_matches("sqlite:"))).unwrap();
            }
            Self::Postgres { server, .. } => {
                let name = copy.rsplit('/').next().unwrap();
                let remove = format!("DROP DATABASE {name} WITH (FORCE)");
                server.execute(AssertSqlSafe(remove)).await.unwrap();
            }
        }
    }
}

/// Returns the address of another database on the same server.
fn named(address: &str, name: &str) -> String {
    let (server, _) = address.rsplit_once('/').unwrap();
    format!("{server}/{name}")
}

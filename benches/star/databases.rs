//! Databases to measure on: made fresh, measured, removed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, ensure};
use perihelion::checkpoint::{self, Store};
use serde_json::{Map, Value, json};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection, Executor, Row};

use crate::machine;
use crate::options::{Backend, Options};

/// The database that the benchmark makes beside the one it is given.
const DATABASE: &str = "perihelion_bench";
const CREATE: &str = "CREATE DATABASE perihelion_bench";
const DROP: &str = "DROP DATABASE IF EXISTS perihelion_bench WITH (FORCE)";

/// Where a run's data lies.
pub struct Place {
    backend: Backend,
    /// The server's own address; empty where there is none.
    server: String,
    address: String,
    file: Option<PathBuf>,
    /// Removed when dropped.
    _folder: Option<tempfile::TempDir>,
    keep: bool,
}

/// Bytes of a run's data, in all and by table.
#[derive(Default)]
pub struct Size {
    pub bytes: Option<i64>,
    pub tables: Option<Value>,
}

impl Place {
    /// Names the place without touching what lies there.
    pub fn existing(options: &Options) -> anyhow::Result<Self> {
        let (address, file) = match options.backend {
            Backend::Memory => ("memory:".to_owned(), None),
            Backend::Postgres => (own_address(options.server()?)?, None),
            Backend::Sqlite => {
                let file = options.sqlite.clone().context("name the file: --sqlite FILE")?;
                (format!("sqlite:{}", file.display()), Some(file))
            }
        };
        let server = options.dsn.clone().unwrap_or_default();
        Ok(Self {
            backend: options.backend,
            server,
            address,
            file,
            _folder: None,
            keep: options.keep,
        })
    }

    /// Makes an empty place.
    pub async fn fresh(options: &Options) -> anyhow::Result<Self> {
        let mut options = options.clone();
        let mut folder = None;
        match (options.backend, &options.sqlite) {
            (Backend::Memory, _) => {}
            (Backend::Postgres, _) => {
                let mut server = connect(options.server()?).await?;
                require_flushing(&mut server).await?;
                for statement in [DROP, CREATE, "CHECKPOINT"] {
                    server.execute(statement).await?;
                }
            }
            (Backend::Sqlite, Some(file)) => remove(file)?,
            (Backend::Sqlite, None) => {
                let made = tempfile::tempdir_in(machine::scratch())?;
                options.sqlite = Some(made.path().join("star.db"));
                folder = Some(made);
            }
        }
        Ok(Self { _folder: folder, ..Self::existing(&options)? })
    }

    pub async fn open(&self) -> anyhow::Result<Arc<dyn Store>> {
        Ok(checkpoint::open(&self.address).await?)
    }

    /// Returns the database's address.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Opens a connection of the benchmark's own to the Postgres database.
    pub async fn connect(&self) -> anyhow::Result<PgConnection> {
        connect(&self.address).await
    }

    /// Returns how many bytes of write-ahead log the Postgres server has written since it was made.
    pub async fn wal(&self) -> anyhow::Result<Option<i64>> {
        if self.backend != Backend::Postgres {
            return Ok(None);
        }
        let row = sqlx::query("SELECT (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint")
            .fetch_one(&mut self.connect().await?)
            .await?;
        Ok(Some(row.try_get(0)?))
    }

    /// Returns the bytes stored; to be asked when the store is closed.
    pub async fn size(&self) -> anyhow::Result<Size> {
        match (self.backend, &self.file) {
            (Backend::Postgres, _) => self.size_of_tables().await,
            (_, Some(file)) => {
                let parts = [file.clone(), beside(file, "-wal")];
                let bytes = parts.iter().filter_map(|part| part.metadata().ok());
                let bytes = bytes.map(|part| part.len() as i64).sum();
                Ok(Size { bytes: Some(bytes), tables: None })
            }
            (_, None) => Ok(Size::default()),
        }
    }

    async fn size_of_tables(&self) -> anyhow::Result<Size> {
        let mut connection = self.connect().await?;
        let rows = sqlx::query(
            "SELECT relname::text, pg_total_relation_size(oid)::bigint FROM pg_class
             WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 2 DESC",
        )
        .fetch_all(&mut connection)
        .await?;
        let mut tables = Map::new();
        let mut sum = 0;
        for row in rows {
            let name: String = row.try_get(0)?;
            let bytes: i64 = row.try_get(1)?;
            let count = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM \"{name}\""));
            let count: i64 = sqlx::query_scalar(count).fetch_one(&mut connection).await?;
            sum += bytes;
            tables.insert(name, json!({ "bytes": bytes, "rows": count }));
        }
        Ok(Size { bytes: Some(sum), tables: Some(tables.into()) })
    }

    /// Removes everything, unless it is to be kept.
    pub async fn remove(self) -> anyhow::Result<()> {
        if self.keep {
            return Ok(());
        }
        match (self.backend, &self.file) {
            (Backend::Postgres, _) => {
                connect(&self.server).await?.execute(DROP).await?;
            }
            (Backend::Sqlite, Some(file)) => remove(file)?,
            (Backend::Memory, _) | (Backend::Sqlite, None) => {}
        }
        Ok(())
    }
}

async fn connect(address: &str) -> anyhow::Result<PgConnection> {
    let options: PgConnectOptions = address.parse()?;
    Ok(PgConnection::connect_with(&options.disable_statement_logging()).await?)
}

/// Refuses a server that acknowledges commits before they are on disk: its figures would be false.
async fn require_flushing(server: &mut PgConnection) -> anyhow::Result<()> {
    for setting in ["fsync", "synchronous_commit"] {
        let value: String = sqlx::query_scalar("SELECT current_setting($1)")
            .bind(setting)
            .fetch_one(&mut *server)
            .await?;
        ensure!(value == "on", "the server does not wait for the disk: {setting} = {value}");
    }
    Ok(())
}

/// Names the benchmark's own database on a server.
fn own_address(server: &str) -> anyhow::Result<String> {
    let options: PgConnectOptions = server.parse()?;
    Ok(options.database(DATABASE).to_url_lossy().to_string())
}

fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn remove(file: &Path) -> std::io::Result<()> {
    for part in [file.to_owned(), beside(file, "-wal"), beside(file, "-shm")] {
        match std::fs::remove_file(part) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

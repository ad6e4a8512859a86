//! Every place that the program writes to, as bytes.

use nix::sys::signal::Signal;
use perihelion_test_database::TestDatabase;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Column as _, Connection as _, Executor as _, Row as _};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::super::world::{World, signal};
use crate::support::postgres;

/// Something that was written.
pub struct Place {
    pub name: String,
    pub bytes: Vec<u8>,
}

impl Place {
    pub fn new(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self { name: name.into(), bytes }
    }

    /// Returns whether it is a file of the embedded database.
    pub fn is_database(&self) -> bool {
        self.name.contains("perihelion.db")
    }
}

/// Returns all files of the machine that the program made, but for the person's own configuration.
pub fn files(world: &World) -> Vec<Place> {
    let mut places = Vec::new();
    let mut waiting = vec![world.home.path().to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_none_or(|end| end != "toml" && end != "key") {
                places.push(Place::new(path.display().to_string(), std::fs::read(&path).unwrap()));
            }
        }
    }
    assert!(!places.is_empty());
    places
}

/// Asks the read API of Jaeger for everything it has.
pub async fn jaeger(world: &World) -> Vec<Place> {
    let trace = world.run(&["trace", "t", "--json"]).await.code(0).json();
    let id = trace["trace_id"].as_str().unwrap().to_owned();
    let mut server = world.start(&["trace", "serve", "--addr", "127.0.0.1:0", "--log", "trace"]);
    let mut output = BufReader::new(server.stderr.take().unwrap()).lines();
    let mut log = Vec::new();
    let url = loop {
        let line = output.next_line().await.unwrap().unwrap();
        log.extend(line.bytes());
        let url = line.split_whitespace().find(|word| word.starts_with("http://127.0.0.1:"));
        if let Some(url) = url {
            break url.trim_end_matches(';').to_owned();
        }
    };
    perihelion::config::tls::install();
    let mut places = Vec::new();
    for path in [
        "/api/v3/services".to_owned(),
        "/api/v3/operations?service=perihelion".to_owned(),
        "/api/v3/trace-summaries".to_owned(),
        format!("/api/v3/traces/{id}"),
        "/api/services".to_owned(),
        "/api/services/perihelion/operations".to_owned(),
        "/api/traces?service=perihelion".to_owned(),
        format!("/api/traces/{id}"),
        "/api/traces/00000000000000000000000000000001".to_owned(),
        "/metrics".to_owned(),
    ] {
        let answer = reqwest::get(format!("{url}{path}")).await.unwrap();
        places.push(Place::new(path, answer.bytes().await.unwrap().to_vec()));
    }
    signal(&server, Signal::SIGTERM);
    while let Some(line) = output.next_line().await.unwrap() {
        log.extend(line.bytes());
    }
    assert!(server.wait().await.unwrap().success());
    places.push(Place::new("the log of trace serve", log));
    places
}

/// Where the threads are kept.
pub enum Database {
    Sqlite,
    Postgres { database: TestDatabase, role: String, url: String },
}

impl Database {
    pub fn sqlite() -> Self {
        Self::Sqlite
    }

    /// Makes one that a role with this password owns.
    pub async fn postgres(password: &str) -> Self {
        let database = postgres::server().await.fresh().await;
        let role = format!("owner_of_{}", database.name);
        let mut connection = database.connect().await;
        for sql in [
            format!("CREATE ROLE {role} LOGIN PASSWORD '{password}'"),
            format!("ALTER DATABASE {} OWNER TO {role}", database.name),
        ] {
            connection.execute(AssertSqlSafe(sql)).await.unwrap();
        }
        let url = database.url_as(&role, password);
        Self::Postgres { database, role, url }
    }

    pub fn url(&self) -> Option<&str> {
        match self {
            Self::Sqlite => None,
            Self::Postgres { url, .. } => Some(url),
        }
    }

    /// Returns every column of every table, decompressed where that is needed.
    pub async fn rows(&self, world: &World) -> Vec<Place> {
        match self {
            Self::Sqlite => sqlite_rows(world).await,
            Self::Postgres { database, .. } => postgres_rows(database).await,
        }
    }

    pub async fn close(self) {
        let Self::Postgres { database, role, .. } = self else { return };
        let mut connection = database.connect().await;
        for sql in [
            format!("REASSIGN OWNED BY {role} TO CURRENT_USER"),
            format!("DROP OWNED BY {role}"),
            format!("DROP ROLE {role}"),
        ] {
            connection.execute(AssertSqlSafe(sql)).await.unwrap();
        }
    }
}

async fn sqlite_rows(world: &World) -> Vec<Place> {
    let path = world.path("data/perihelion/perihelion.db");
    let mut connection =
        sqlx::SqliteConnection::connect(&format!("sqlite:{}", path.display())).await.unwrap();
    let names = "SELECT name FROM sqlite_master WHERE type = 'table'";
    let names: Vec<String> = sqlx::query_scalar(names).fetch_all(&mut connection).await.unwrap();
    let mut places = Vec::new();
    for name in names {
        let rows = sqlx::query(AssertSqlSafe(format!("SELECT * FROM \"{name}\"")));
        let mut bytes = Vec::new();
        for row in rows.fetch_all(&mut connection).await.unwrap() {
            for column in row.columns() {
                let value: Option<Vec<u8>> = row.try_get_unchecked(column.ordinal()).unwrap();
                bytes.extend(plain(value.unwrap_or_default()));
                bytes.push(b'\n');
            }
        }
        places.push(Place::new(format!("the rows of {name}"), bytes));
    }
    connection.close().await.unwrap();
    places
}

async fn postgres_rows(database: &TestDatabase) -> Vec<Place> {
    let mut connection = database.connect().await;
    let names = "SELECT quote_ident(table_schema) || '.' || quote_ident(table_name) \
                 FROM information_schema.tables WHERE table_type = 'BASE TABLE' \
                 AND table_schema NOT IN ('pg_catalog', 'information_schema')";
    let names: Vec<String> = sqlx::query_scalar(names).fetch_all(&mut connection).await.unwrap();
    let mut places = Vec::new();
    for name in names {
        let rows = AssertSqlSafe(format!("SELECT to_jsonb(one)::text FROM {name} one"));
        let rows: Vec<String> = sqlx::query_scalar(rows).fetch_all(&mut connection).await.unwrap();
        let mut bytes = Vec::new();
        for row in rows {
            let row: Value = serde_json::from_str(&row).unwrap();
            for value in row.as_object().unwrap().values() {
                bytes.extend(plain(column(value)));
                bytes.push(b'\n');
            }
        }
        places.push(Place::new(format!("the rows of {}", name.replace("public.", "")), bytes));
    }
    connection.close().await.unwrap();
    places
}

/// Returns a column's bytes: text as it is, binary columns from the hexadecimal form that JSON has of them.
fn column(value: &Value) -> Vec<u8> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let Some(hex) = text.strip_prefix("\\x") else { return text.into_bytes() };
    let byte = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(byte).collect();
    bytes.unwrap_or_else(|| text.clone().into_bytes())
}

/// Decompresses what the store compressed.
fn plain(bytes: Vec<u8>) -> Vec<u8> {
    if bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        zstd::decode_all(&bytes[..]).unwrap()
    } else {
        bytes
    }
}

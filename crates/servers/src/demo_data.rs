//! The demo's data, carried in the binary: the IANA time zone database as tables, as prose, and typeset.
//!
//! Enter at [`install`]. Source, licence (public domain) and contents: `examples/data/README.md`. Invariant: an
//! installed set is complete or absent; a crash during the installation leaves no partial set that looks complete.
//! Deliberately absent: anything invented; figures and sentences are the database's own.

use std::io;
use std::path::{Path, PathBuf};

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, SqliteConnection};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DemoData {
    pub database: PathBuf,
    pub documents: PathBuf,
    /// A directory with the typeset ones, which have pages.
    pub papers: PathBuf,
}

/// Changes whenever the data do, so that an older set is replaced.
const VERSION: &str = "tz-2026b-2";

macro_rules! documents {
    ($($path:literal)*) => {
        &[$(($path, include_str!(concat!("../../../examples/data/documents/", $path)))),*]
    };
}

macro_rules! table {
    ($name:literal, $columns:literal) => {
        Source {
            name: $name,
            columns: $columns,
            csv: include_str!(concat!("../../../examples/data/tables/", $name, ".csv")),
        }
    };
}

struct Source {
    name: &'static str,
    /// Their definitions, in the order of the file's columns.
    columns: &'static str,
    csv: &'static str,
}

const TABLES: &[Source] = &[
    table!("countries", "code TEXT PRIMARY KEY, name TEXT NOT NULL"),
    table!(
        "zones",
        "name TEXT PRIMARY KEY, latitude REAL NOT NULL, longitude REAL NOT NULL, comment TEXT NOT NULL"
    ),
    table!(
        "zone_countries",
        "zone TEXT NOT NULL, country TEXT NOT NULL, PRIMARY KEY (zone, country)"
    ),
    table!(
        "transitions",
        "zone TEXT NOT NULL, changed_at TEXT NOT NULL, offset_before INTEGER NOT NULL, offset_after INTEGER NOT NULL, is_dst INTEGER NOT NULL, abbreviation TEXT NOT NULL"
    ),
    table!("aliases", "alias TEXT PRIMARY KEY, zone TEXT NOT NULL"),
    table!("leap_seconds", "effective_on TEXT PRIMARY KEY, tai_minus_utc INTEGER NOT NULL"),
];

const INDEXES: &[&str] = &[
    "CREATE INDEX transitions_by_zone ON transitions (zone, changed_at)",
    "CREATE INDEX transitions_by_time ON transitions (changed_at)",
];

const DOCUMENTS: &[(&str, &str)] = documents! {
    "calendars.txt"
    "news/2010.txt" "news/2011.txt" "news/2012.txt" "news/2013.txt"
    "news/2014.txt" "news/2015.txt" "news/2016.txt" "news/2017.txt" "news/2018.txt" "news/2019.txt"
    "news/2020.txt" "news/2021.txt" "news/2022.txt" "news/2023.txt" "news/2024.txt" "news/2025.txt"
    "news/2026.txt" "news/before-2010.txt"
    "regions/africa.txt" "regions/antarctica.txt" "regions/asia.txt" "regions/australasia.txt"
    "regions/europe.txt" "regions/northamerica.txt" "regions/southamerica.txt"
    "theory.txt"
};

macro_rules! paper {
    ($name:literal) => {
        ($name, include_bytes!(concat!("../../../examples/data/papers/", $name)))
    };
}

const PAPERS: &[(&str, &[u8])] =
    &[paper!("releases-2013.pdf"), paper!("releases-2018.pdf"), paper!("theory.pdf")];

/// Rows written by one statement.
const BATCH: usize = 500;

/// Puts the data below `dir`, which is created if necessary; skips existing data.
pub async fn install(dir: &Path) -> io::Result<DemoData> {
    let data = DemoData {
        database: dir.join("timezones.db"),
        documents: dir.join("documents"),
        papers: dir.join("papers"),
    };
    let mark = dir.join("version");
    let installed = std::fs::read_to_string(&mark).is_ok_and(|version| version == VERSION);
    let is_there = data.database.is_file() && data.documents.is_dir() && data.papers.is_dir();
    if installed && is_there {
        return Ok(data);
    }
    std::fs::create_dir_all(dir)?;
    // Built aside and renamed; the mark is written last.
    let build = dir.join(format!("building-{}", uuid::Uuid::now_v7()));
    std::fs::create_dir(&build)?;
    let built = build_in(&build, &data).await;
    std::fs::remove_dir_all(&build)?;
    built?;
    write_whole(&mark, VERSION.as_bytes())?;
    Ok(data)
}

pub fn rows(table: &str) -> io::Result<Vec<Vec<String>>> {
    let unknown = || io::Error::other(format!("no such table in the demo's data: {table}"));
    let source = TABLES.iter().find(|source| source.name == table).ok_or_else(unknown)?;
    let mut reader = csv::Reader::from_reader(source.csv.as_bytes());
    let fields = |row: csv::StringRecord| row.iter().map(str::to_owned).collect();
    reader.records().map(|row| row.map(fields).map_err(io::Error::other)).collect()
}

async fn build_in(build: &Path, data: &DemoData) -> io::Result<()> {
    let database = build.join("timezones.db");
    fill(&database).await.map_err(io::Error::other)?;
    std::fs::rename(&database, &data.database)?;
    for (path, text) in DOCUMENTS {
        write_whole(&data.documents.join(path), text.as_bytes())?;
    }
    for (path, bytes) in PAPERS {
        write_whole(&data.papers.join(path), bytes)?;
    }
    Ok(())
}

/// Writes a file so that it is whole or absent, making its directory if needed.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let part = path.with_extension("part");
    std::fs::write(&part, bytes)?;
    std::fs::rename(&part, path)
}

async fn fill(path: &Path) -> Result<(), sqlx::Error> {
    let mut connection = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        // A crash throws the unfinished file away with its directory; no need to sync on the way.
        .journal_mode(SqliteJournalMode::Off)
        .synchronous(SqliteSynchronous::Off)
        .connect()
        .await?;
    let mut transaction = connection.begin().await?;
    for source in TABLES {
        let create = format!("CREATE TABLE {} ({})", source.name, source.columns);
        sqlx::query(AssertSqlSafe(create)).execute(&mut *transaction).await?;
        insert(&mut transaction, source).await?;
    }
    for index in INDEXES {
        sqlx::query(*index).execute(&mut *transaction).await?;
    }
    transaction.commit().await?;
    connection.close().await
}

async fn insert(connection: &mut SqliteConnection, source: &Source) -> Result<(), sqlx::Error> {
    let mut reader = csv::Reader::from_reader(source.csv.as_bytes());
    let decode = |error: csv::Error| sqlx::Error::Decode(Box::new(error));
    let rows = reader.records().collect::<Result<Vec<_>, _>>().map_err(decode)?;
    let width = reader.headers().map_err(decode)?.len();
    for batch in rows.chunks(BATCH) {
        let row = format!("({})", vec!["?"; width].join(","));
        let values = vec![row; batch.len()].join(",");
        let text = format!("INSERT INTO {} VALUES {values}", source.name);
        let mut statement = sqlx::query(AssertSqlSafe(text));
        // The columns' declared types turn the text into numbers.
        for field in batch.iter().flatten() {
            statement = statement.bind(field);
        }
        statement.execute(&mut *connection).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files_below(dir: &Path, into: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { files_below(&path, into) } else { into.push(path) }
        }
    }

    #[test]
    fn every_document_of_the_repository_is_carried() {
        let documents: Vec<&str> = DOCUMENTS.iter().map(|(path, _)| *path).collect();
        let papers: Vec<&str> = PAPERS.iter().map(|(path, _)| *path).collect();
        for (folder, carried) in [("documents", documents), ("papers", papers)] {
            let root =
                Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data").join(folder);
            let mut files = Vec::new();
            files_below(&root, &mut files);
            let name = |file: &PathBuf| file.strip_prefix(&root).unwrap().display().to_string();
            let mut found: Vec<String> = files.iter().map(name).collect();
            found.sort();
            assert_eq!(found, carried);
        }
    }

    #[tokio::test]
    async fn installing_twice_leaves_the_same_data_and_no_scraps() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("demo");
        let data = install(&dir).await.unwrap();
        let first = std::fs::metadata(&data.database).unwrap().modified().unwrap();
        assert_eq!(install(&dir).await.unwrap(), data);
        assert_eq!(std::fs::metadata(&data.database).unwrap().modified().unwrap(), first);
        let mut names: Vec<_> =
            std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["documents", "papers", "timezones.db", "version"]);

        let options = SqliteConnectOptions::new().filename(&data.database).read_only(true);
        let mut connection = options.connect().await.unwrap();
        let (rows, kind): (i64, String) =
            sqlx::query_as("SELECT count(*), typeof(max(offset_after)) FROM transitions")
                .fetch_one(&mut connection)
                .await
                .unwrap();
        assert_eq!((rows, kind.as_str()), (15_487, "integer"));
        connection.close().await.unwrap();
    }

    #[tokio::test]
    async fn a_half_installed_set_is_completed() {
        let home = tempfile::tempdir().unwrap();
        let data = install(home.path()).await.unwrap();
        std::fs::remove_file(home.path().join("version")).unwrap();
        std::fs::remove_file(&data.database).unwrap();
        install(home.path()).await.unwrap();
        assert!(data.database.is_file());
    }
}

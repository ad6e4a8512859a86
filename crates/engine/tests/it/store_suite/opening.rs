//! Opening, migrating and refusing databases.

use std::path::Path;
use std::sync::Arc;

use perihelion_database as database;
use perihelion_engine::checkpoint::{self, Error, PostgresStore, SqliteStore, Store, Threads as _};
use sqlx::ConnectOptions as _;
use sqlx::sqlite::SqliteConnectOptions;

use super::{
    stores::sqlite,
    writer::{Writer, new_thread, prose},
};
use perihelion_test_database::postgres::server;

#[tokio::test]
async fn many_processes_may_open_a_new_postgres_database_at_once() {
    let database = server().await.fresh().await;
    let url = &database.url;
    let opened = futures::future::join_all((0..8).map(|_| PostgresStore::open(url))).await;
    for store in opened {
        let store = store.unwrap();
        store.create(new_thread()).await.unwrap();
        store.close().await;
    }
}

#[tokio::test]
async fn many_processes_may_open_a_new_sqlite_file_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new.db").display().to_string();
    let opened = futures::future::join_all((0..8).map(|_| SqliteStore::open(&path))).await;
    for store in opened {
        let store = store.unwrap();
        store.create(new_thread()).await.unwrap();
        store.close().await;
    }
}

#[tokio::test]
async fn a_postgres_database_of_a_newer_version_is_refused_untouched() {
    let database = server().await.fresh().await;
    let url = &database.url;
    PostgresStore::open(url).await.unwrap().close().await;
    let mut connection = database.connect().await;
    sqlx::raw_sql(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (9001, 'future', true, '', 0)",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    match PostgresStore::open(url).await.err() {
        Some(error @ Error::Database(database::Error::Newer { found: 9001, .. })) => {
            assert!(error.to_string().contains("upgrade this binary"));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_sqlite_file_of_a_newer_version_is_refused_untouched() {
    let on = sqlite().await;
    let writer = Writer::with_steps(&on.store, 1).await;
    on.store.close().await;
    let url = on.url.as_deref().unwrap();
    let set = async |version: i64| {
        let options: sqlx::sqlite::SqliteConnectOptions = url.parse().unwrap();
        let mut connection = sqlx::ConnectOptions::connect(&options).await.unwrap();
        let pragma = sqlx::AssertSqlSafe(format!("PRAGMA user_version = {version}"));
        sqlx::raw_sql(pragma).execute(&mut connection).await.unwrap();
        sqlx::Connection::close(connection).await.unwrap();
    };
    let options: sqlx::sqlite::SqliteConnectOptions = url.parse().unwrap();
    let mut connection = sqlx::ConnectOptions::connect(&options).await.unwrap();
    let version = sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut connection).await;
    sqlx::Connection::close(connection).await.unwrap();
    set(9001).await;
    let refused = checkpoint::open(url).await.err();
    assert!(
        matches!(refused, Some(Error::Database(database::Error::Newer { found: 9001, .. }))),
        "{refused:?}"
    );
    set(version.unwrap()).await;
    assert_eq!(on.another().await.info(writer.thread).await.unwrap().head, 1);
}

#[tokio::test]
async fn a_file_that_is_not_ours_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("notes.txt");
    std::fs::write(&text, "not a database, but somebody's notes of some length\n".repeat(40))
        .unwrap();
    let before = std::fs::read(&text).unwrap();
    let refused = checkpoint::open(&text.display().to_string()).await.err();
    assert!(
        matches!(refused, Some(Error::Database(database::Error::Unreachable { .. }))),
        "{refused:?}"
    );
    assert_eq!(std::fs::read(&text).unwrap(), before);

    let foreign = directory.path().join("foreign.db");
    with_table(&foreign, "CREATE TABLE music (title TEXT)").await;
    let message = checkpoint::open(&foreign.display().to_string()).await.err().unwrap();
    assert!(message.to_string().contains("another program"), "{message}");

    let message = checkpoint::open(&directory.path().display().to_string()).await.err().unwrap();
    assert!(matches!(message, Error::Database(database::Error::Unreachable { .. })), "{message}");
}

#[tokio::test]
async fn a_file_that_the_python_package_created_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("agents.db");
    let table = "CREATE TABLE perihelion_writes (position INTEGER PRIMARY KEY AUTOINCREMENT)";
    with_table(&file, table).await;
    checkpoint::open(&file.display().to_string()).await.unwrap();
}

async fn with_table(file: &Path, statement: &'static str) {
    let options = SqliteConnectOptions::new().filename(file).create_if_missing(true);
    let mut connection = options.connect().await.unwrap();
    sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn a_new_sqlite_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let on = sqlite().await;
    Writer::with_steps(&on.store, 1).await;
    let path = on.url.as_deref().unwrap().strip_prefix("sqlite:").unwrap();
    for suffix in ["", "-wal", "-shm"] {
        let mode = std::fs::metadata(format!("{path}{suffix}")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{suffix}");
    }
}

#[tokio::test]
async fn an_unreachable_server_is_named_without_its_password() {
    // Bound and dropped: nobody listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("postgres://ann:s3cret@127.0.0.1:{port}/p");
    let error = checkpoint::open(&url).await.err().unwrap();
    let message = format!("{error} {error:?}");
    assert!(message.contains(&format!("postgres://ann:***@127.0.0.1:{port}/p")), "{message}");
    assert!(!message.contains("s3cret"), "{message}");
    assert!(matches!(error, Error::Database(database::Error::Unreachable { .. })));

    let absent = server().await.url("no_such_db");
    let message = checkpoint::open(&absent).await.err().unwrap().to_string();
    assert!(message.contains("no_such_db") && message.contains("DATABASE_URL"), "{message}");
}

#[tokio::test]
async fn a_refused_login_is_named_without_its_password() {
    let database = server().await.fresh().await;
    let error = checkpoint::open(&database.url_as("no_such_role", "s3cret")).await.err().unwrap();
    assert!(matches!(error, Error::Database(database::Error::Unreachable { .. })), "{error}");
    let message = format!("{error} {error:?}");
    assert!(message.contains("no_such_role") && !message.contains("s3cret"), "{message}");
}

/// X4
#[tokio::test]
async fn addresses_choose_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db").display().to_string();
    assert_eq!(checkpoint::open("memory:").await.unwrap().describe(), "memory:");
    for url in [path.clone(), format!("sqlite:{path}"), format!("sqlite://{path}?mode=rwc")] {
        assert_eq!(checkpoint::open(&url).await.unwrap().describe(), format!("sqlite:{path}"));
    }
    for wrong in ["", "sqlite:", "sqlite::memory:", "sqlite:a.db?cache=shared", "redis://h/1"] {
        let refused = checkpoint::open(wrong).await.err();
        assert!(
            matches!(refused, Some(Error::Database(database::Error::Unreachable { .. }))),
            "{wrong}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn a_closed_store_refuses_and_does_not_hang() {
    for on in [sqlite().await, super::stores::postgres().await] {
        let writer = Writer::with_steps(&on.store, 1).await;
        on.store.close().await;
        assert!(on.store.info(writer.thread).await.is_err());
        assert!(on.store.create(new_thread()).await.is_err());
    }
}

/// A full disk, played by SQLite's own bound on the pages of a file: it gives the same error.
#[tokio::test]
async fn a_full_disk_is_named_and_committed_steps_survive_and_continue_once_there_is_space() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("full.db").display().to_string();
    let sqlite = Arc::new(SqliteStore::open(&path).await.unwrap());
    let bound = async |pages: &'static str| {
        let set = async |connection: &mut sqlx::SqliteConnection| {
            sqlx::raw_sql(pages).execute(connection).await.map(|_| ())
        };
        sqlite.with_connection(set).await.unwrap();
    };
    let store: Arc<dyn Store> = sqlite.clone();
    let mut writer = Writer::with_steps(&store, 3).await;
    // Lower than what is in use counts as what is in use: not one page more.
    bound("PRAGMA max_page_count = 1").await;
    let large = writer.next(prose(1_000_000));
    let error = writer.commit(&large).await.unwrap_err();
    assert!(matches!(error, Error::Database(database::Error::Full { .. })), "{error}");
    assert!(error.to_string().contains("Free space and try again"), "{error}");
    let loaded = store.load(writer.thread, None).await.unwrap();
    assert_eq!((loaded.info.head, loaded.steps.len()), (3, 3));
    bound("PRAGMA max_page_count = 1000000").await;
    writer.commit(&large).await.unwrap();
    assert_eq!(store.load(writer.thread, None).await.unwrap().info.head, 4);
}

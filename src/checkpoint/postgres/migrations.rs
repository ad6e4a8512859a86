//! Brings a database to the shape this binary knows.

use std::borrow::Cow;

use sqlx::{
    PgConnection, SqlSafeStr,
    migrate::{MigrateError, Migration, MigrationType, Migrator},
};

use super::{
    super::Error,
    connections::{Connections, code},
};

/// Number of the newest migration this binary knows.
const KNOWN: i64 = 5;

fn migrator() -> Migrator {
    let migration = |number, name, sql: &'static str| {
        let (name, kind) = (Cow::Borrowed(name), MigrationType::Simple);
        Migration::new(number, name, kind, sql.into_sql_str(), false)
    };
    Migrator::with_migrations(vec![
        migration(1, "threads", include_str!("../../../migrations/postgres/0001_threads.sql")),
        migration(2, "workers", include_str!("../../../migrations/postgres/0002_workers.sql")),
        migration(
            3,
            "trace_debts",
            include_str!("../../../migrations/postgres/0003_trace_debts.sql"),
        ),
        migration(4, "events", include_str!("../../../migrations/postgres/0004_events.sql")),
        migration(
            5,
            "queue_setup",
            include_str!("../../../migrations/postgres/0005_queue_setup.sql"),
        ),
    ])
}

/// Migrates the database when needed: one query when it is up to date already.
///
/// Several processes may do this at once; the migrator holds an advisory lock meanwhile.
pub(super) async fn run(connections: &Connections) -> Result<(), Error> {
    let mut connection = connections.take().await?;
    match connections.brief(newest(&mut connection)).await {
        Ok(Some(found)) if found > KNOWN => return Err(newer(connections, found)),
        Ok(Some(KNOWN)) => {
            connection.give_back();
            return Ok(());
        }
        Ok(_) => {}
        // undefined_table: nothing was ever migrated here.
        Err(error) if code(&error) == Some("42P01") => {}
        Err(error) => return connection.settle(Err(error)),
    }
    let migrator = migrator();
    match connections.longest(migrator.run_direct(None, &mut *connection, false)).await {
        Ok(()) => {
            connection.give_back();
            Ok(())
        }
        Err(MigrateError::VersionMissing(found)) => Err(newer(connections, found)),
        Err(error) => Err(connections.refine(error.into())),
    }
}

async fn newest(connection: &mut PgConnection) -> Result<Option<i64>, sqlx::Error> {
    sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations WHERE success")
        .fetch_one(connection)
        .await
}

fn newer(connections: &Connections, found: i64) -> Error {
    Error::Newer { url: connections.shown().to_owned(), found, known: KNOWN }
}

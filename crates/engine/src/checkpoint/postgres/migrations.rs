//! Brings a database to the shape this binary knows.

use perihelion_database::migrations::{known_to_postgres, postgres_migrator};
use sqlx::{PgConnection, migrate::MigrateError};

use super::{
    super::Error,
    connections::{Connections, code},
};

/// Migrates the database when needed: one query when it is up to date already.
///
/// Several processes may do this at once; the migrator holds an advisory lock meanwhile.
pub(super) async fn run(connections: &Connections) -> Result<(), Error> {
    let mut connection = connections.take().await?;
    let known = known_to_postgres();
    match connections.brief(newest(&mut connection)).await {
        Ok(Some(found)) if found > known => return Err(newer(connections, found)),
        Ok(Some(found)) if found == known => {
            connection.give_back();
            return Ok(());
        }
        Ok(_) => {}
        // undefined_table: nothing was ever migrated here.
        Err(error) if code(&error) == Some("42P01") => {}
        Err(error) => return connection.settle(Err(error)),
    }
    let migrator = postgres_migrator();
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
    Error::Newer { url: connections.shown().to_owned(), found, known: known_to_postgres() }
}

//! Postgres, spoken to inside a read-only transaction with a statement time limit.
//!
//! The statement is wrapped so that the server itself renders every value as text and stops after the row
//! limit: `SELECT "c1"::text … FROM (statement) AS "q"("c1", …) LIMIT n`. A statement that does not end in its
//! time has its backend terminated and its connection closed, whatever the server says.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::TryStreamExt;
use perihelion_analysis::Catalogue;
use perihelion_analysis::guard::{EXTENSION_FUNCTIONS, Guarded};
use serde::de::DeserializeOwned;
use serde_json::Value;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::answer::{Answer, Collector, Limits};
use crate::worker::Sources;
use crate::{Error, Result};

mod columns;
mod errors;

use columns::{cells, described, wrap};
use errors::{Failure, database_error};

/// Extra time for a silent server beyond the statement's own limit.
const GRACE: Duration = Duration::from_secs(2);
/// Longest time to connect, and to request the end of a backend.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Sets the bounds of a transaction, and where names without a schema are looked up: among Postgres' own first. A
/// schema in which a user defined an operator over Postgres' own types is left out, because it could replace theirs.
const SETTINGS: &str = "\
    SELECT set_config('statement_timeout', $1, true), set_config('standard_conforming_strings', 'on', true), \
           set_config('client_min_messages', 'error', true), \
           set_config('search_path', 'pg_catalog' || coalesce(string_agg(', ' || quote_ident(s.name::text), '' \
               ORDER BY s.place), ''::text) || ', pg_temp', true) \
    FROM unnest(current_schemas(false)) WITH ORDINALITY AS s(name, place) \
    WHERE s.name <> 'pg_catalog' AND NOT EXISTS ( \
        SELECT 1 FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_namespace n ON n.oid = o.oprnamespace \
        WHERE n.nspname = s.name AND (o.oprleft BETWEEN 1::oid AND 16383::oid OR o.oprright BETWEEN 1::oid AND 16383::oid) \
          AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_operator'::regclass \
                          AND d.objid = o.oid AND d.deptype = 'e'))";

pub struct Postgres {
    pool: PgPool,
    options: PgConnectOptions,
    /// Schemas of the functions that extensions bring, by function.
    pub extensions: BTreeMap<String, String>,
    /// Recommended changes of the role, for `doctor` and the log.
    pub warnings: Vec<String>,
}

impl Postgres {
    pub async fn open(url: &str) -> Result<Self> {
        let options: PgConnectOptions = url.parse().map_err(connect)?;
        let options = options.application_name("perihelion-sql");
        // A first connection of its own: a pool would retry a refused one until its time is up.
        let mut first = tokio::time::timeout(CONNECT_LIMIT, PgConnection::connect_with(&options))
            .await
            .map_err(|_| connect(sqlx::Error::PoolTimedOut))?
            .map_err(connect)?;
        let warnings = warnings(&mut first).await?;
        let extensions = extensions(&mut first).await?;
        first.close().await.map_err(connect)?;
        let pool = PgPoolOptions::new()
            .max_connections(3)
            .acquire_timeout(CONNECT_LIMIT)
            .connect_lazy_with(options.clone());
        for warning in &warnings {
            tracing::warn!("{warning}");
        }
        Ok(Self { pool, options, extensions, warnings })
    }

    pub async fn catalogue(&self) -> Result<Catalogue> {
        Ok(Catalogue { tables: self.read(include_str!("postgres/catalogue.sql")).await? })
    }

    /// Returns what shows rows of what: views, parents of their children, and a table's children and partitions of it.
    /// What a function reads is unknown.
    pub async fn sources(&self) -> Result<Sources> {
        self.read(include_str!("postgres/sources.sql")).await
    }

    /// Reads the JSON values that one of our statements selects.
    async fn read<T: DeserializeOwned + Send + Unpin + 'static>(
        &self,
        sql: &'static str,
    ) -> Result<Vec<T>> {
        let rows: Vec<Json<T>> =
            sqlx::query_scalar(sql).fetch_all(&self.pool).await.map_err(database_error)?;
        Ok(rows.into_iter().map(|Json(row)| row).collect())
    }

    /// Returns the server's estimates of a statement's cost and rows.
    pub async fn estimate(&self, sql: &Guarded, limits: Limits) -> Result<(f64, f64)> {
        let explain = format!("EXPLAIN (FORMAT JSON) {}", sql.query());
        let bounded = self.bounded(limits, async |connection: &mut PgConnection| {
            described(connection, sql.query()).await?;
            let text = AssertSqlSafe(explain);
            let plan: Value =
                sqlx::query_scalar(text).persistent(false).fetch_one(connection).await?;
            Ok(plan)
        });
        let plan = bounded.await?;
        let number = |key: &str| plan[0]["Plan"][key].as_f64().unwrap_or_default();
        Ok((number("Total Cost"), number("Plan Rows")))
    }

    pub async fn run(&self, sql: &Guarded, limits: Limits) -> Result<Answer> {
        let started = crate::clock::monotonic();
        let bounded = self.bounded(limits, async |connection: &mut PgConnection| {
            fetch(connection, sql, limits).await
        });
        Ok(bounded.await?.finish(started))
    }

    /// Runs what reads in a read-only transaction that ends in its time, or whose backend is ended.
    async fn bounded<T>(
        &self,
        limits: Limits,
        reading: impl AsyncFnOnce(&mut PgConnection) -> Result<T, Failure>,
    ) -> Result<T> {
        let mut connection = self.pool.acquire().await.map_err(database_error)?;
        let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()")
            .persistent(false)
            .fetch_one(&mut *connection)
            .await
            .map_err(database_error)?;
        let mut ending = Ending { connection: None, options: self.options.clone(), pid };
        let connection = ending.connection.insert(connection);
        let work = async {
            let mut transaction = connection.begin_with("BEGIN TRANSACTION READ ONLY").await?;
            let timeout = limits.timeout.as_millis().to_string();
            sqlx::query(SETTINGS)
                .bind(timeout)
                .persistent(false)
                .execute(&mut *transaction)
                .await?;
            let read = reading(&mut transaction).await?;
            transaction.rollback().await?;
            Ok(read)
        };
        match tokio::time::timeout(limits.timeout + GRACE, work).await {
            Ok(outcome) => {
                drop(ending.connection.take());
                outcome.map_err(|failure: Failure| failure.into_error(limits.timeout))
            }
            Err(_) => Err(Error::Timeout { limit: limits.timeout }),
        }
    }
}

/// Ends a backend whose caller has gone.
struct Ending {
    /// Present until the statement has ended.
    connection: Option<PoolConnection<sqlx::Postgres>>,
    options: PgConnectOptions,
    pid: i32,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        // Not given back to the pool: its next user would be ended.
        drop(connection.detach());
        let options = self.options.clone();
        let pid = self.pid;
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(tokio::time::timeout(CONNECT_LIMIT, async move {
            if let Ok(mut connection) = PgConnection::connect_with(&options).await {
                let ended = sqlx::query("SELECT pg_terminate_backend($1)").bind(pid);
                if let Err(error) = ended.execute(&mut connection).await {
                    tracing::warn!("a query that outlived its time could not be ended: {error}");
                }
            }
        }));
    }
}

async fn fetch(
    connection: &mut PgConnection,
    sql: &Guarded,
    limits: Limits,
) -> Result<Collector, Failure> {
    let (mut names, mut types) = described(connection, sql.query()).await?;
    let text = if sql.explains() {
        names = vec!["QUERY PLAN".to_owned()];
        types.clear();
        sql.as_str().to_owned()
    } else {
        wrap(sql, types.len(), limits)
    };
    let mut collector = Collector::new(names, limits);
    if collector.has_no_columns() {
        return Ok(collector);
    }
    let mut rows = sqlx::query(AssertSqlSafe(text)).persistent(false).fetch(connection);
    while let Some(row) = rows.try_next().await? {
        if !collector.push(cells(&row, &types)) {
            break;
        }
    }
    Ok(collector)
}

async fn extensions(connection: &mut PgConnection) -> Result<BTreeMap<String, String>> {
    let rows: Vec<(String, String, String)> = sqlx::query_as(
        "SELECT e.extname::text, p.proname::text, n.nspname::text FROM pg_catalog.pg_extension e \
         JOIN pg_catalog.pg_depend d ON d.refclassid = 'pg_catalog.pg_extension'::regclass AND d.refobjid = e.oid \
           AND d.deptype = 'e' AND d.classid = 'pg_catalog.pg_proc'::regclass \
         JOIN pg_catalog.pg_proc p ON p.oid = d.objid JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace \
         WHERE p.proargtypes[0] = 'pg_catalog.text'::regtype AND has_schema_privilege(n.oid, 'USAGE'::text)",
    )
    .fetch_all(connection)
    .await
    .map_err(database_error)?;
    let known = rows.into_iter().filter(|(extension, function, _)| {
        EXTENSION_FUNCTIONS.iter().any(|(of, name, _)| of == extension && name == function)
    });
    Ok(known.map(|(_, function, schema)| (function, schema)).collect())
}

async fn warnings(connection: &mut PgConnection) -> Result<Vec<String>> {
    let (is_superuser, temp_file_limit, may_write): (bool, String, bool) = sqlx::query_as(
        "SELECT current_setting('is_superuser') = 'on', current_setting('temp_file_limit'), \
                EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                        WHERE c.relkind IN ('r', 'p') AND n.nspname NOT LIKE 'pg\\_%' \
                          AND n.nspname <> 'information_schema' \
                          AND (c.relowner = (SELECT oid FROM pg_roles WHERE rolname = current_user) \
                               OR has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE')))",
    )
    .fetch_one(connection)
    .await
    .map_err(database_error)?;
    let mut warnings = Vec::new();
    if is_superuser {
        warnings.push(
            "the sql server is connected as a Postgres superuser; give it a role of its own that may only \
             SELECT from the tables meant for models"
                .to_owned(),
        );
    } else if may_write {
        warnings.push(
            "the sql server's Postgres role owns tables or may write to them; give it a role that may only SELECT"
                .to_owned(),
        );
    }
    if temp_file_limit == "-1" {
        warnings.push(
            "the sql server's Postgres role may fill the disk with temporary files; as an administrator: ALTER \
             ROLE … SET temp_file_limit = '1GB'"
                .to_owned(),
        );
    }
    Ok(warnings)
}

fn connect(error: sqlx::Error) -> Error {
    Error::Connect(error.to_string())
}

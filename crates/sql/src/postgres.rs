//! Postgres, spoken to inside a read-only transaction with a statement time limit.
//!
//! The statement is wrapped so that the server itself renders every value as text and stops after the row
//! limit: `SELECT "c1"::text … FROM (statement) AS "q"("c1", …) LIMIT n`. A statement that does not end in its
//! time has its backend terminated and its connection closed, whatever the server says.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::TryStreamExt;
use perihelion_analysis::guard::{EXTENSION_FUNCTIONS, Guarded, TableName};
use perihelion_analysis::{Catalogue, Column, ForeignKey, Table};
use serde_json::Value;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgRow};
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

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
        let rows = sqlx::query(
            "SELECT n.nspname::text, c.relname::text, c.relkind IN ('v', 'm'), pg_table_is_visible(c.oid), \
                    obj_description(c.oid, 'pg_class'), a.attname::text, \
                    format_type(a.atttypid, a.atttypmod) || CASE WHEN t.oid < 16384 THEN '' ELSE \
                        CASE t.typcategory WHEN 'S' THEN ' (text)' WHEN 'E' THEN ' (enum)' WHEN 'N' THEN ' (number)' \
                        WHEN 'D' THEN ' (date)' WHEN 'B' THEN ' (bool)' ELSE '' END END, \
                    NOT a.attnotnull, \
                    col_description(c.oid, a.attnum::int) \
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
             LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
               AND has_column_privilege(c.oid, a.attnum, 'SELECT') \
             LEFT JOIN pg_type t ON t.oid = a.atttypid \
             WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition \
               AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' \
               AND has_schema_privilege(n.oid, 'USAGE') \
               AND (has_table_privilege(c.oid, 'SELECT') OR has_any_column_privilege(c.oid, 'SELECT')) \
             ORDER BY 1, 2, a.attnum",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(database_error)?;
        let mut tables: Vec<Table> = Vec::new();
        for row in &rows {
            self.add(&mut tables, row).map_err(database_error)?;
        }
        let mut catalogue = Catalogue { tables };
        self.keys(&mut catalogue).await?;
        Ok(catalogue)
    }

    fn add(&self, tables: &mut Vec<Table>, row: &PgRow) -> Result<(), sqlx::Error> {
        let name = TableName {
            schema: row.try_get(0)?,
            name: row.try_get(1)?,
            unqualified: row.try_get(3)?,
        };
        if tables.last().is_none_or(|table| table.name != name) {
            tables.push(Table {
                name,
                is_view: row.try_get(2)?,
                comment: row.try_get(4)?,
                ..Table::default()
            });
        }
        if let (Some(column), Some(table)) =
            (row.try_get::<Option<String>, _>(5)?, tables.last_mut())
        {
            table.columns.push(Column {
                name: column,
                data_type: row.try_get(6)?,
                nullable: row.try_get(7)?,
                comment: row.try_get(8)?,
                values: Vec::new(),
            });
        }
        Ok(())
    }

    async fn keys(&self, catalogue: &mut Catalogue) -> Result<()> {
        let rows = sqlx::query(
            "SELECT n.nspname::text, c.relname::text, k.contype::text, \
                    array(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY u(n, o) \
                          JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.n ORDER BY u.o), \
                    fn.nspname::text, f.relname::text, pg_table_is_visible(f.oid), \
                    array(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY u(n, o) \
                          JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.n ORDER BY u.o) \
             FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid \
             JOIN pg_namespace n ON n.oid = c.relnamespace \
             LEFT JOIN pg_class f ON f.oid = k.confrelid LEFT JOIN pg_namespace fn ON fn.oid = f.relnamespace \
             WHERE k.contype IN ('p', 'u', 'f') ORDER BY k.conname",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(database_error)?;
        for row in &rows {
            key(catalogue, row).map_err(database_error)?;
        }
        Ok(())
    }

    /// Returns what shows rows of what: views, parents of their children, and a table's children and partitions of it.
    /// What a function reads is unknown.
    pub async fn sources(&self) -> Result<Sources> {
        let rows = sqlx::query(include_str!("postgres/sources.sql"))
            .fetch_all(&self.pool)
            .await
            .map_err(database_error)?;
        let name = |row: &PgRow, first: usize| -> Result<TableName, sqlx::Error> {
            Ok(TableName {
                schema: row.try_get(first)?,
                name: row.try_get(first + 1)?,
                unqualified: row.try_get(first + 2)?,
            })
        };
        let source = |row: &PgRow| -> Result<_, sqlx::Error> {
            let is_known = row.try_get::<Option<String>, _>(3)?.is_some();
            Ok((name(row, 0)?, is_known.then(|| name(row, 3)).transpose()?))
        };
        rows.iter().map(source).collect::<Result<Sources, _>>().map_err(database_error)
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
        let mut answer = self
            .bounded(limits, async |connection: &mut PgConnection| {
                fetch(connection, sql, limits).await
            })
            .await?;
        answer.row_count = answer.rows.len();
        answer.elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(answer)
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
) -> Result<Answer, Failure> {
    if sql.explains() {
        described(connection, sql.query()).await?;
        let mut collector = Collector::new(vec!["QUERY PLAN".to_owned()], limits);
        let plan = AssertSqlSafe(sql.as_str().to_owned());
        let mut rows = sqlx::query(plan).persistent(false).fetch(connection);
        while let Some(row) = rows.try_next().await? {
            if !collector.push(cells(&row, &[])) {
                break;
            }
        }
        return Ok(collector.answer);
    }
    let (names, types) = described(connection, sql.query()).await?;
    let mut collector = Collector::new(names, limits);
    if !types.is_empty() {
        let wrapped = AssertSqlSafe(wrap(sql, types.len(), limits));
        let mut rows = sqlx::query(wrapped).persistent(false).fetch(connection);
        while let Some(row) = rows.try_next().await? {
            if !collector.push(cells(&row, &types)) {
                break;
            }
        }
    }
    Ok(collector.answer)
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
    let row = sqlx::query(
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
    let read = |error: sqlx::Error| database_error(error);
    let mut warnings = Vec::new();
    if row.try_get(0).map_err(read)? {
        warnings.push(
            "the sql server is connected as a Postgres superuser; give it a role of its own that may only \
             SELECT from the tables meant for models"
                .to_owned(),
        );
    } else if row.try_get(2).map_err(read)? {
        warnings.push(
            "the sql server's Postgres role owns tables or may write to them; give it a role that may only SELECT"
                .to_owned(),
        );
    }
    if row.try_get::<String, _>(1).map_err(read)? == "-1" {
        warnings.push(
            "the sql server's Postgres role may fill the disk with temporary files; as an administrator: ALTER \
             ROLE … SET temp_file_limit = '1GB'"
                .to_owned(),
        );
    }
    Ok(warnings)
}

fn key(catalogue: &mut Catalogue, row: &PgRow) -> Result<(), sqlx::Error> {
    let schema: String = row.try_get(0)?;
    let name: String = row.try_get(1)?;
    let kind: String = row.try_get(2)?;
    let columns: Vec<String> = row.try_get(3)?;
    let target = match kind.as_str() {
        "f" => {
            let table = TableName {
                schema: row.try_get(4)?,
                name: row.try_get(5)?,
                unqualified: row.try_get(6)?,
            };
            // Keys to tables that may not be read are nobody's business.
            if catalogue.table(&table).is_none() {
                return Ok(());
            }
            Some((table, row.try_get(7)?))
        }
        _ => None,
    };
    let found =
        catalogue.tables.iter_mut().find(|t| t.name.schema == schema && t.name.name == name);
    let Some(owner) = found else { return Ok(()) };
    if !columns.iter().all(|column| owner.column(column).is_some()) {
        return Ok(());
    }
    match target {
        Some((table, to)) => owner.foreign_keys.push(ForeignKey { columns, table, to }),
        None if kind == "p" => owner.primary_key = columns,
        None => owner.unique.push(columns),
    }
    Ok(())
}

fn connect(error: sqlx::Error) -> Error {
    Error::Connect(error.to_string())
}

//! One interface for both databases: their contents, and the result of a guarded statement within its limits.

use std::collections::BTreeMap;
use std::fmt::Display;

use perihelion_analysis::guard::{Guarded, Permitted, Policy, TableName, guard, table_hint};
use perihelion_analysis::{Catalogue, Dialect, fanout, joins, limit};

use crate::answer::{Answer, Limits, Table, Validation, summary};
use crate::postgres::Postgres;
use crate::worker::{Question, Sources, Workers};
use crate::{Error, Filter, Options, Result, hint};

enum Engine {
    Sqlite(Workers),
    Postgres(Postgres),
}

pub struct Database {
    engine: Engine,
    options: Options,
    filters: Vec<Filter>,
}

impl Database {
    /// Opens the database read-only.
    ///
    /// # Errors
    /// When it is not there, cannot be reached, or lacks a table named in `--tables` or `--filter`.
    pub async fn open(mut options: Options) -> Result<Self> {
        options.tables.iter_mut().for_each(|table| *table = table.trim().to_owned());
        let url = options.database.as_str();
        let engine = if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            Engine::Postgres(Postgres::open(url).await?)
        } else if url.contains("://") && !url.starts_with("sqlite://") {
            let scheme = url.split("://").next().unwrap_or_default();
            return Err(Error::BadDatabase(format!("{scheme}://…")));
        } else {
            let path = url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:"));
            let path = path.unwrap_or(url).to_owned();
            if !std::path::Path::new(&path).is_file() {
                return Err(Error::NoFile(path));
            }
            Engine::Sqlite(Workers::new(options.worker.clone(), path, options.tables.clone()))
        };
        let filters = options
            .filters
            .iter()
            .map(|filter| with_tenant(filter, options.tenant.as_deref()))
            .collect::<Result<_, _>>()?;
        let database = Self { engine, options, filters };
        database.check().await?;
        Ok(database)
    }

    /// Returns the language that statements must be written in.
    pub fn dialect(&self) -> Dialect {
        match self.engine {
            Engine::Sqlite(_) => Dialect::Sqlite,
            Engine::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Returns what should be changed about how the database is reached.
    pub fn warnings(&self) -> &[String] {
        match &self.engine {
            Engine::Sqlite(_) => &[],
            Engine::Postgres(postgres) => &postgres.warnings,
        }
    }

    pub(crate) fn limits(&self) -> Limits {
        self.options.limits
    }

    pub(crate) fn profiles(&self) -> bool {
        self.options.profile
    }

    /// Returns the tables that may be read, with their columns and keys, without relations that show hidden
    /// rows of a filtered table.
    pub async fn catalogue(&self) -> Result<Catalogue> {
        let mut catalogue = self.permitted().await?;
        for (bypass, _) in self.bypasses().await? {
            catalogue.tables.retain(|table| table.name != bypass);
        }
        Ok(catalogue)
    }

    /// Returns the tables that the operator permits.
    async fn permitted(&self) -> Result<Catalogue> {
        let mut catalogue = self.everything().await?;
        let wanted = &self.options.tables;
        if !wanted.is_empty() {
            let is_wanted = |table: &TableName| wanted.iter().any(|name| self.means(table, name));
            catalogue.tables.retain(|table| is_wanted(&table.name));
            let kept: Vec<TableName> =
                catalogue.tables.iter().map(|table| table.name.clone()).collect();
            for table in &mut catalogue.tables {
                table.foreign_keys.retain(|key| {
                    kept.iter().any(|t| t.schema == key.table.schema && t.name == key.table.name)
                });
            }
        }
        Ok(catalogue)
    }

    /// Returns relations without a filter that can show rows of a filtered table, each with that table's filter.
    async fn bypasses(&self) -> Result<Vec<(TableName, &Filter)>> {
        if self.filters.is_empty() {
            return Ok(Vec::new());
        }
        let sources: Sources = match &self.engine {
            Engine::Sqlite(workers) => workers.ask(&Question::Sources).await?,
            Engine::Postgres(postgres) => postgres.sources().await?,
        };
        let bypassed = |read: Option<TableName>| {
            // An unknown source may be any table.
            let is_read = |name| read.as_ref().is_none_or(|read| self.means(read, name));
            self.filters.iter().find(|filter| is_read(&filter.table))
        };
        let bare = sources.into_iter().filter(|(shows, _)| self.filter(shows).is_none());
        Ok(bare.filter_map(|(shows, read)| Some((shows, bypassed(read)?))).collect())
    }

    /// Returns the tables that may be read, by name.
    pub async fn tables(&self) -> Result<Vec<Table>> {
        Ok(self.catalogue().await?.tables.iter().map(summary).collect())
    }

    /// Returns ways to join the tables, shortest first.
    ///
    /// # Errors
    /// [`Error::UnknownTable`] with the nearest name.
    pub async fn join_paths(&self, names: &[String]) -> Result<joins::JoinPaths> {
        let catalogue = self.catalogue().await?;
        let mut tables = Vec::new();
        for name in names {
            tables.push(find(&catalogue, name)?.name.clone());
        }
        Ok(joins::JoinGraph::new(&catalogue).paths(&tables))
    }

    /// Guards a model's statement, runs it and returns its result within the limits.
    ///
    /// # Errors
    /// [`Error::Refused`] before anything runs; the database's own error with a hint; or a time-out.
    pub async fn query(&self, sql: &str, limit: Option<usize>) -> Result<Answer> {
        let catalogue = self.catalogue().await?;
        let statement = guard(sql, self.dialect(), &self.policy(&catalogue))?;
        let most = self.options.limits.max_rows;
        let limits =
            Limits { max_rows: limit.unwrap_or(most).clamp(1, most), ..self.options.limits };
        let hinted = |error| with_hint(error, statement.as_str(), &catalogue);
        if let (Engine::Postgres(postgres), Some(most)) = (&self.engine, self.options.max_cost)
            && !statement.explains()
        {
            let estimate = postgres.estimate(&statement, limits).await;
            let (estimated, _) = estimate.map_err(hinted)?;
            if estimated > most {
                return Err(Error::TooCostly { estimated, limit: most });
            }
        }
        self.run(&statement, limits).await.map_err(hinted)
    }

    /// Checks a statement without fetching a row.
    ///
    /// # Errors
    /// If the database is unavailable; problems of the statement are in the answer.
    pub async fn validate(&self, sql: &str) -> Result<Validation> {
        let catalogue = self.catalogue().await?;
        let statement = match guard(sql, self.dialect(), &self.policy(&catalogue)) {
            Ok(statement) => statement,
            Err(refusal) => {
                let problem = Some(format!("refused: {refusal}"));
                return Ok(Validation { problem, ..Validation::default() });
            }
        };
        let mut validation = Validation {
            valid: true,
            sql: Some(statement.as_str().to_owned()),
            tables: statement.tables().iter().map(TableName::shown).collect(),
            warnings: fanout::warnings(sql, self.dialect(), &catalogue),
            ..Validation::default()
        };
        let asked = match &self.engine {
            Engine::Postgres(postgres) => {
                postgres.estimate(&statement, self.options.limits).await.map(Some)
            }
            Engine::Sqlite(_) => {
                let plan = Guarded::ours(format!("EXPLAIN QUERY PLAN {}", statement.query()));
                self.run(&plan, self.options.limits).await.map(|_| None)
            }
        };
        match asked {
            Ok(Some((cost, rows))) => {
                validation.estimated_cost = Some(cost);
                validation.estimated_rows = Some(rows);
                if let Some(limit) = self.options.max_cost.filter(|limit| cost > *limit) {
                    validation.valid = false;
                    let error = Error::TooCostly { estimated: cost, limit };
                    validation.problem = Some(error.to_string());
                }
            }
            Ok(None) => {}
            Err(error) => {
                validation.valid = false;
                let error = with_hint(error, statement.as_str(), &catalogue);
                validation.problem = Some(error.to_string());
            }
        }
        Ok(validation)
    }

    /// Runs a statement of the program's own, under the same guard and filters as a model's.
    pub(crate) async fn own(
        &self,
        sql: &str,
        catalogue: &Catalogue,
        limits: Limits,
    ) -> Result<Answer> {
        let statement = guard(sql, self.dialect(), &self.policy(catalogue))?;
        self.run(&statement, limits).await
    }

    async fn run(&self, statement: &Guarded, limits: Limits) -> Result<Answer> {
        match &self.engine {
            Engine::Sqlite(workers) => {
                // One row more than is shown is all that is ever needed.
                let sql = limit::bounded(statement.as_str(), Dialect::Sqlite, limits.max_rows + 1);
                workers.ask(&Question::Run { sql, limits }).await
            }
            Engine::Postgres(postgres) => postgres.run(statement, limits).await,
        }
    }

    async fn everything(&self) -> Result<Catalogue> {
        match &self.engine {
            Engine::Sqlite(workers) => workers.ask(&Question::Catalogue).await,
            Engine::Postgres(postgres) => postgres.catalogue().await,
        }
    }

    fn policy(&self, catalogue: &Catalogue) -> Policy {
        let tables = catalogue.tables.iter().map(|table| Permitted {
            name: table.name.clone(),
            columns: table.columns.iter().map(|column| column.name.clone()).collect(),
            filter: self.filter(&table.name),
        });
        let extensions = match &self.engine {
            Engine::Postgres(postgres) => postgres.extensions.clone(),
            Engine::Sqlite(_) => BTreeMap::new(),
        };
        Policy { tables: tables.collect(), extensions }
    }

    fn filter(&self, table: &TableName) -> Option<String> {
        let conditions: Vec<String> = self
            .filters
            .iter()
            .filter(|filter| self.means(table, &filter.table))
            .map(|filter| format!("({})", filter.condition))
            .collect();
        (!conditions.is_empty()).then(|| conditions.join(" AND "))
    }

    /// Returns whether an operator's name means the table: exactly on Postgres, where case matters.
    fn means(&self, table: &TableName, name: &str) -> bool {
        let same = |known: &str| self.dialect().same(known, name);
        (table.unqualified && same(&table.name))
            || same(&format!("{}.{}", table.schema, table.name))
    }

    async fn check(&self) -> Result<()> {
        let everything = self.everything().await?;
        let hint = |wanted: &str| table_hint(wanted, everything.tables.iter().map(|t| &t.name));
        for wanted in &self.options.tables {
            if !everything.tables.iter().any(|table| self.means(&table.name, wanted)) {
                let name = wanted.clone();
                return Err(Error::NoSuchTableOption { name, hint: hint(wanted) });
            }
        }
        let catalogue = self.permitted().await?;
        let policy = self.policy(&catalogue);
        let unusable = |filter: &Filter, reason: &dyn Display| {
            let reason = reason.to_string();
            Error::UnusableFilter { table: filter.table.clone(), reason }
        };
        for filter in &self.filters {
            let found = catalogue.tables.iter().find(|t| self.means(&t.name, &filter.table));
            let unusable = |reason: &dyn Display| unusable(filter, reason);
            let Some(found) = found else {
                return Err(unusable(&format_args!("no such table{}", hint(&filter.table))));
            };
            let probe = format!("SELECT 1 FROM {}", quoted(&found.name));
            guard(&probe, self.dialect(), &policy).map_err(|error| unusable(&error))?;
        }
        let mut bypasses = self.bypasses().await?.into_iter();
        match bypasses.find(|(bypass, _)| catalogue.table(bypass).is_some()) {
            Some((bypass, filter)) => {
                let name = bypass.shown();
                let reason = format!(
                    "{name} can show its other rows; give {name} a filter of its own ({name}:true shows all of it), or \
                     list the tables to read without it in --tables"
                );
                Err(unusable(filter, &reason))
            }
            None => Ok(()),
        }
    }
}

/// Returns the table that a model means, or an error with the nearest.
pub(crate) fn find<'a>(
    catalogue: &'a Catalogue,
    name: &str,
) -> Result<&'a perihelion_analysis::Table> {
    catalogue.named(name).ok_or_else(|| Error::UnknownTable {
        name: name.to_owned(),
        hint: table_hint(name, catalogue.tables.iter().map(|table| &table.name)),
    })
}

fn with_hint(error: Error, sql: &str, catalogue: &Catalogue) -> Error {
    match error {
        Error::Database { message, hint } if hint.is_empty() => {
            let hint = hint::for_message(&message, sql, catalogue);
            Error::Database { message, hint }
        }
        other => other,
    }
}

/// Writes a known table's name as an identifier of either dialect.
pub(crate) fn quoted(key: &TableName) -> String {
    let quote = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    format!("{}.{}", quote(&key.schema), quote(&key.name))
}

fn with_tenant(filter: &Filter, tenant: Option<&str>) -> Result<Filter> {
    if !filter.condition.contains("{tenant}") {
        return Ok(filter.clone());
    }
    let Some(tenant) = tenant else {
        let reason = "it names {tenant}, and no --tenant was given".to_owned();
        return Err(Error::UnusableFilter { table: filter.table.clone(), reason });
    };
    let literal = format!("'{}'", tenant.replace('\'', "''"));
    let condition = filter.condition.replace("{tenant}", &literal);
    Ok(Filter { table: filter.table.clone(), condition })
}

//! The tools: the list of tables, the profile of one, the places of a value, the joins of tables, a query.

use std::path::PathBuf;

use perihelion_analysis::Dialect;
use perihelion_sql::{
    Answer, Database, Description, Error, Format, FoundValues, Table, Validation, export, text,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt as _;

use super::Options;
use perihelion_toolbox::prelude::*;
use perihelion_toolbox::{Serving, config, respond};

pub struct Server {
    database: Database,
    export_dir: Option<PathBuf>,
}

impl Server {
    pub async fn open(options: &Options) -> Result<Serving, Error> {
        let database = Database::open(options.settings()?).await?;
        let mut tool_router = Self::tool_router();
        if options.export_dir.is_none() {
            tool_router.remove_route("export");
        }
        let dialect = database.dialect().title();
        let text = format!(
            "Answers questions from a {dialect} database with read-only SQL. Start with list_tables, look at a \
             table with describe_table, then run a single {dialect} SELECT with query. When a query fails, read \
             the error, correct the statement and try again. Report figures only from rows that a query returned."
        );
        let server = Self { database, export_dir: options.export_dir.clone() };
        Ok(Serving::fixed(server, tool_router, config("sql", "SQL database", text)))
    }
}

/// The tables that may be read.
#[derive(Serialize, JsonSchema)]
struct Tables {
    /// The language of statements: `sqlite` or `postgres`.
    #[schemars(with = "String")]
    dialect: Dialect,
    tables: Vec<Table>,
    /// Changes when tables, columns or keys do.
    fingerprint: String,
}

/// Which table to describe.
#[derive(Deserialize, JsonSchema)]
struct DescribeTable {
    /// The table's name as list_tables gives it.
    table: String,
}

/// What to look for in the data.
#[derive(Deserialize, JsonSchema)]
struct FindValues {
    /// A word or name of the question, such as a product, a city or a status.
    text: String,
    /// Only in this table.
    table: Option<String>,
    /// Only in columns of this name.
    column: Option<String>,
}

/// Which tables to join.
#[derive(Deserialize, JsonSchema)]
struct JoinPathsOf {
    /// Two or more names as list_tables gives them.
    tables: Vec<String>,
}

/// What to check.
#[derive(Deserialize, JsonSchema)]
struct Validate {
    /// One SELECT statement in the database's dialect.
    sql: String,
}

/// What to run.
#[derive(Deserialize, JsonSchema)]
struct Query {
    /// One SELECT statement in the database's dialect; WITH and UNION are fine. No parameters, no comments needed.
    sql: String,
    /// Most rows to return; the server's own limit holds in any case.
    limit: Option<usize>,
}

/// What to write, and how.
#[derive(Deserialize, JsonSchema)]
struct Export {
    /// One SELECT statement in the database's dialect.
    sql: String,
    /// `csv`, `xlsx` or `json`.
    format: String,
    /// The file's name without its ending: letters, digits, `-` and `_`.
    name: String,
}

/// The file that was written.
#[derive(Serialize, JsonSchema)]
struct Exported {
    path: String,
    row_count: usize,
    truncated: bool,
}

#[tool_router]
impl Server {
    #[tool(
        description = "Lists the tables and views that can be queried, each with the names of its columns and its keys. Call this first.",
        output_schema = schema_for_output::<Tables>(),
        annotations(title = "List tables", read_only_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn list_tables(&self) -> CallToolResult {
        respond(self.tables().await, |listed| text::of_tables(&listed.tables))
    }

    #[tool(
        description = "Describes one table: columns with their types, ranges and frequent values, keys, the number of rows, and a few rows to see the format of the values. Call this before writing a query on a table.",
        output_schema = schema_for_output::<Description>(),
        annotations(title = "Describe a table", read_only_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn describe_table(&self, Parameters(input): Parameters<DescribeTable>) -> CallToolResult {
        respond(self.database.describe(&input.table).await, text::of_description)
    }

    #[tool(
        description = "Finds the tables and columns in which a word or name of the question stands as a value, and how it is spelt there. Call this before filtering by a name.",
        output_schema = schema_for_output::<FoundValues>(),
        annotations(title = "Find values", read_only_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn find_values(&self, Parameters(input): Parameters<FindValues>) -> CallToolResult {
        let table = input.table.as_deref();
        let column = input.column.as_deref();
        respond(self.database.find_values(&input.text, table, column).await, text::of_values)
    }

    #[tool(
        description = "Shows ways to join two or more tables by their keys, shortest first, with the tables that lie between them. Where there are several, they mean different things.",
        output_schema = schema_for_output::<perihelion_analysis::joins::JoinPaths>(),
        annotations(title = "Join paths", read_only_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn join_paths(&self, Parameters(input): Parameters<JoinPathsOf>) -> CallToolResult {
        respond(self.database.join_paths(&input.tables).await, text::of_paths)
    }

    #[tool(
        description = "Checks one SELECT without fetching a row: whether it may run, the tables it reads, the database's estimate, and joins that would count rows more than once.",
        output_schema = schema_for_output::<Validation>(),
        annotations(title = "Check a query", read_only_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn validate(&self, Parameters(input): Parameters<Validate>) -> CallToolResult {
        respond(self.database.validate(&input.sql).await, text::of_validation)
    }

    #[tool(
        description = "Runs one read-only SELECT and returns its rows. Aggregate and filter in SQL rather than fetching many rows; an answer with truncated = true is not whole. A failed query comes back with the database's own error: correct the statement and call again.",
        output_schema = schema_for_output::<Answer>(),
        annotations(title = "Run a query", read_only_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn query(&self, Parameters(input): Parameters<Query>) -> CallToolResult {
        respond(self.database.query(&input.sql, input.limit).await, text::of_answer)
    }

    #[tool(
        description = "Runs one read-only SELECT and writes its rows as a CSV, XLSX or JSON file into the directory set by the operator; an existing file of that name is kept.",
        output_schema = schema_for_output::<Exported>(),
        annotations(title = "Export a result", read_only_hint = false, destructive_hint = false, idempotent_hint = false, open_world_hint = false)
    )]
    async fn export(&self, Parameters(input): Parameters<Export>) -> CallToolResult {
        respond(self.write(&input).await, exported_text)
    }
}

fn exported_text(written: &Exported) -> String {
    let mut text = format!("{} rows in {}", written.row_count, written.path);
    if written.truncated {
        text.push_str(
            "; truncated: the result has more rows or columns, or longer cells, than the operator permits (--max-rows, \
             --max-columns, --max-cell-bytes)",
        );
    }
    text
}

impl Server {
    async fn tables(&self) -> Result<Tables, Error> {
        let fingerprint = self.database.catalogue().await?.fingerprint();
        let dialect = self.database.dialect();
        Ok(Tables { dialect, tables: self.database.tables().await?, fingerprint })
    }

    async fn write(&self, input: &Export) -> Result<Exported, Error> {
        let refused = |text: String| Error::Export(std::io::Error::other(text));
        let format = match input.format.as_str() {
            "csv" => Format::Csv,
            "xlsx" => Format::Xlsx,
            "json" => Format::Json,
            other => {
                let why = format!("the format is csv, xlsx or json; this is not: {other}");
                return Err(refused(why));
            }
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let named =
            !input.name.is_empty() && input.name.len() <= 100 && input.name.chars().all(plain);
        let Some(directory) = self.export_dir.as_ref().filter(|_| named) else {
            return Err(refused(format!(
                "the name consists of letters, digits, - and _, not: {}",
                input.name
            )));
        };
        let rows = self.database.query(&input.sql, None).await?;
        let bytes = export(&rows, format)?;
        let path = directory.join(format!("{}.{}", input.name, format.ending()));
        let mut options = tokio::fs::OpenOptions::new();
        let file = options.write(true).create_new(true).open(&path).await;
        let mut file = file.map_err(Error::Export)?;
        let written = async {
            file.write_all(&bytes).await?;
            file.flush().await
        };
        if let Err(error) = written.await {
            // A partial file would block the name for the next export.
            let _ = tokio::fs::remove_file(&path).await;
            return Err(Error::Export(error));
        }
        Ok(Exported {
            path: path.display().to_string(),
            row_count: rows.row_count,
            truncated: rows.truncated,
        })
    }
}

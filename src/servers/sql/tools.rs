//! The three tools: what tables there are, what one holds, and a query.

use std::sync::Arc;

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::schema_for_output;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ServerConfig};
use rmcp::{tool, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::database::{Answer, Database, Description, Table};
use super::guard::Dialect;
use super::{Error, Options, table};
use crate::servers::answer::{answer, config, failure};
use crate::servers::toolbox::Toolbox;

/// The server's session handler.
#[derive(Clone)]
pub struct Server {
    database: Arc<Database>,
    tool_router: ToolRouter<Self>,
}

impl Server {
    /// Opens the database and makes the tools.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub async fn open(options: &Options) -> Result<Self, Error> {
        let database = Arc::new(Database::open(options).await?);
        Ok(Self { database, tool_router: Self::tool_router() })
    }
}

/// The tables that may be read.
#[derive(Serialize, JsonSchema)]
struct Tables {
    tables: Vec<Table>,
}

/// Which table to describe.
#[derive(Deserialize, JsonSchema)]
struct DescribeTable {
    /// The table's name as list_tables gives it.
    table: String,
}

/// What to run.
#[derive(Deserialize, JsonSchema)]
struct Query {
    /// One SELECT statement in the database's dialect; WITH and UNION are fine. No parameters, no comments needed.
    sql: String,
}

#[tool_router]
impl Server {
    /// Lists the tables and views with the names of their columns.
    #[tool(
        description = "Lists the tables and views that can be queried, each with the names of its columns. Call this first.",
        output_schema = schema_for_output::<Tables>(),
        annotations(title = "List tables", read_only_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn list_tables(&self) -> CallToolResult {
        match self.database.tables().await {
            Ok(tables) => {
                let text = table::of_tables(&tables);
                answer(&Tables { tables }, text)
            }
            Err(error) => failure(&error),
        }
    }

    /// Describes one table.
    #[tool(
        description = "Describes one table: columns with their types, the number of rows, and a few rows to see the format of the values. Call this before writing a query on a table.",
        output_schema = schema_for_output::<Description>(),
        annotations(title = "Describe a table", read_only_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn describe_table(&self, Parameters(input): Parameters<DescribeTable>) -> CallToolResult {
        match self.database.describe(&input.table).await {
            Ok(description) => answer(&description, table::of_description(&description)),
            Err(error) => failure(&error),
        }
    }

    /// Runs one SELECT.
    #[tool(
        description = "Runs one read-only SELECT and returns its rows. Aggregate and filter in SQL rather than fetching many rows; an answer with truncated = true is not whole. A failed query comes back with the database's own error: correct the statement and call again.",
        output_schema = schema_for_output::<Answer>(),
        annotations(title = "Run a query", read_only_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn query(&self, Parameters(input): Parameters<Query>) -> CallToolResult {
        match self.database.query(&input.sql).await {
            Ok(rows) => answer(&rows, table::of_answer(&rows)),
            Err(error) => failure(&error),
        }
    }
}

impl Toolbox for Server {
    fn router(&self) -> &ToolRouter<Self> {
        &self.tool_router
    }

    fn about(&self) -> ServerConfig {
        let dialect = match self.database.dialect() {
            Dialect::Sqlite => "SQLite",
            Dialect::Postgres => "PostgreSQL",
        };
        let text = format!(
            "Answers questions from a {dialect} database with read-only SQL. Start with list_tables, look at a \
             table with describe_table, then run a single {dialect} SELECT with query. When a query fails, read \
             the error, correct the statement and try again. Report figures only from rows that a query returned."
        );
        config("sql", "SQL database", text)
    }
}

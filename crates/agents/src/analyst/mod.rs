//! The analyst: answers questions from a database with SQL that was grounded, checked, reviewed and run.
//!
//! Enter at [`kind`]; the stages are in `stages`, in the order in which they run. Invariants: only statements that the
//! guard of `perihelion-analysis` permits are sent to a database. Models see the preview and no row beyond it. Every
//! number of an answer is looked up in the preview. Deliberately absent: a database driver; any SQL server that can be
//! called by MCP will do, by the profiles here or a mapping in its table.

mod known;
mod panels;
mod server;
mod stages;
mod tables;
mod turn;

use std::sync::Arc;

use super::pipeline::{Kind, Pipeline};
pub use known::knowledge_of;
use turn::Turn;

/// Most attempts at a statement in one turn.
const MAX_ATTEMPTS: usize = 4;
/// Most rounds of questions to the user.
const MAX_ROUNDS: usize = 5;
/// Rows that are fetched, shown and read by models.
const PREVIEW_ROWS: usize = 100;

pub fn kind() -> Arc<dyn Kind> {
    Pipeline::<Turn>::new("analyst")
        .about("answers questions from a database, with checked SQL, tables and charts")
        .tool("query", "runs one reading SQL statement and returns its rows")
        .optional_tool("overview", "lists tables with columns and keys")
        .optional_tool("describe", "describes one table")
        .optional_tool("find_values", "finds where a word stands in the data")
        .optional_tool("validate", "checks a statement without running it")
        .optional_tool("mark", "tells servers apart that call their query tool alike")
        .profile(
            "sql",
            &[
                ("overview", "list_tables"),
                ("describe", "describe_table"),
                ("find_values", "find_values"),
                ("validate", "validate"),
                ("query", "query"),
            ],
        )
        .profile("mcp-server-sqlite", &[("query", "read_query"), ("mark", "append_insight")])
        .profile("mcp-alchemy", &[("query", "execute_query"), ("mark", "schema_definitions")])
        .profile("mcp-server-motherduck", &[("query", "execute_query")])
        .profile("server-postgres", &[("query", "query")])
        .template("analyst_intent", include_str!("../../../../prompts/analyst_intent.md"))
        .template("analyst_clarify", include_str!("../../../../prompts/analyst_clarify.md"))
        .template("analyst_generate", include_str!("../../../../prompts/analyst_generate.md"))
        .template("analyst_review", include_str!("../../../../prompts/analyst_review.md"))
        .template("analyst_triage", include_str!("../../../../prompts/analyst_triage.md"))
        .template("analyst_interpret", include_str!("../../../../prompts/analyst_interpret.md"))
        .stage("survey", stages::survey)
        .stage("intent", stages::intent)
        .stage("clarify", stages::clarify)
        .stage("ground", stages::ground)
        .stage("generate", stages::generate)
        .stage("check", stages::check)
        .stage("review", stages::review)
        .stage("execute", stages::execute)
        .stage("interpret", stages::interpret)
        .stage("triage", stages::triage)
        .natural_for("sql")
        .into_kind()
}

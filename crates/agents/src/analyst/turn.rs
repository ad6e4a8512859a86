//! What the stages of one turn hand on; all of it is kept, so that the turn can be looked at and reproduced.

use perihelion_analysis::joins::JoinPath;
use perihelion_analysis::numbers::Number;
use perihelion_analysis::{Catalogue, Dialect};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answers::{Intent, SqlDraft, SqlReview, SqlTriage};

perihelion_engine::graph_state! {
    /// The state of the analyst.
    pub struct Turn, update TurnUpdate, version 1 {
        survey: Option<Survey> => overwrite,
        intent: Option<Intent> => overwrite,
        /// What the user answered, over all rounds.
        answers: Vec<Answered> => overwrite,
        /// Rounds of questions that were put.
        rounds: usize => overwrite,
        assumptions: Vec<String> => overwrite,
        pack: Option<Pack> => overwrite,
        draft: Option<SqlDraft> => overwrite,
        checked: Option<Checked> => overwrite,
        reviews: Vec<SqlReview> => overwrite,
        /// Statements that did not do, oldest first.
        attempts: Vec<Attempt> => overwrite,
        triages: Vec<SqlTriage> => overwrite,
        preview: Option<Preview> => overwrite,
    }
}

/// What the server is and holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    pub dialect: SqlDialect,
    pub catalogue: Catalogue,
    /// The server guards statements itself, and takes them as they are written.
    pub guards_itself: bool,
}

/// A dialect, as it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SqlDialect {
    Sqlite,
    Postgres,
    DuckDb,
    TSql,
}

impl From<SqlDialect> for Dialect {
    fn from(dialect: SqlDialect) -> Self {
        match dialect {
            SqlDialect::Sqlite => Self::Sqlite,
            SqlDialect::Postgres => Self::Postgres,
            SqlDialect::DuckDb => Self::DuckDb,
            SqlDialect::TSql => Self::TSql,
        }
    }
}

/// A question that the user answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    pub question: String,
    pub answer: String,
}

/// What a statement is grounded in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pack {
    pub table_docs: Vec<Doc>,
    pub field_docs: Vec<Doc>,
    pub relationship_docs: Vec<Doc>,
    pub suggested_tables: Vec<String>,
    pub suggested_join_paths: Vec<JoinPath>,
    /// Definitions of numbers that the question names.
    #[serde(default)]
    pub metric_docs: Vec<Doc>,
    /// Verified questions that are like this one, with their statements.
    #[serde(default)]
    pub verified_queries: Vec<Doc>,
    /// The newest values of the tables' dates.
    #[serde(default)]
    pub newest: Vec<Newest>,
    /// Where words of the question stand in the data.
    pub values: Vec<String>,
    /// The share of the question's words that the schema knows.
    pub evidence: f64,
}

/// A piece of what is known of the database, by an id that can be cited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doc {
    pub id: String,
    pub text: String,
}

/// The newest value of a column of dates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Newest {
    pub table: String,
    pub column: String,
    pub value: String,
}

/// A statement that passed the guard.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// As it is sent.
    pub sql: String,
    /// As the guard wrote it, without a bound on its rows.
    pub guarded: String,
    /// Tables that it reads.
    pub tables: Vec<String>,
    /// What a join makes of its aggregates.
    pub warnings: Vec<String>,
    /// Counts joined rows against rows of the table, where one is multiplied.
    pub probe: Option<String>,
    /// What is wrong with the statement in the second dialect.
    pub secondary_problem: Option<String>,
    /// What the database estimates, before it runs.
    #[serde(default)]
    pub plan: Option<String>,
    /// Metrics and verified queries that stand in it, as the answer names them.
    #[serde(default)]
    pub trusted: Vec<String>,
}

/// A statement that did not do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub sql: String,
    /// `guard`, `review` or `database`.
    pub by: String,
    /// In its own words.
    pub error: String,
}

/// What a statement yielded, as far as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Preview {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
    pub truncated: bool,
    pub elapsed_ms: Option<u64>,
    /// How many times a row is counted, where a join multiplies it.
    pub factor: Option<f64>,
    /// How up to date the tables are, in words.
    #[serde(default)]
    pub freshness: Vec<String>,
    /// The numbers of the answer and where they come from.
    #[serde(default)]
    pub numbers: Vec<Number>,
}

//! What errors say where a row takes part: the kind and the place, and never what the row holds.

use perihelion_analysis::Dialect;
use perihelion_analysis::guard::is_allowed_function;
use perihelion_sql::{Database, Error, Options};
use sqlx::{ConnectOptions, SqliteConnection};

use crate::support::{File, Server, options};

/// Parts of the hidden values; none of them may be found in an error, in any case of letters.
const HIDDEN: [&str; 3] = ["hush7f3a", "9071234", "\\xhush"];

const SQLITE_SCHEMA: &str = "
    CREATE TABLE notes (id INTEGER PRIMARY KEY, tenant TEXT, n TEXT);
    INSERT INTO notes (tenant, n) VALUES ('b', 'hush7f3a'), ('b', '\"hush7f3a'), ('b', '9071234567890123456789'),
        ('b', '{\"hush7f3a\": }'), ('b', '$.hush7f3a['), ('b', 'hush7f3a:'), ('a', 'plain');
    CREATE VIEW mine AS SELECT n FROM notes WHERE tenant = 'a';
    CREATE VIRTUAL TABLE papers USING fts5(body); INSERT INTO papers VALUES ('x');";

const POSTGRES_SCHEMA: &str = "
    CREATE TABLE notes (id serial PRIMARY KEY, tenant text, n text);
    INSERT INTO notes (tenant, n) VALUES ('b', 'hush7f3a'), ('b', '\"hush7f3a'), ('b', '9071234567890123456789'),
        ('b', '{\"hush7f3a\": }'), ('b', '$.hush7f3a['), ('b', 'hush7f3a:'), ('a', 'plain');
    CREATE VIEW mine AS SELECT n FROM notes WHERE tenant = 'a';
    ANALYZE notes;
    GRANT SELECT ON notes, mine TO {role};";

/// The column, and what makes of it a text that something chokes on.
const COLUMN: &[&str] = &[
    "n",
    "'\"' || n",
    "'$.' || n",
    "'$[' || n",
    "'[' || n",
    "'(' || n",
    "'\\' || n",
    "': ' || n",
    "n || ' & '",
];

#[derive(Default)]
struct Seen {
    failed: usize,
    leaks: Vec<String>,
}

impl Seen {
    /// Runs a statement and notes an error that tells of a row.
    async fn run(&mut self, database: &Database, sql: &str) {
        if let Err(error) = database.query(sql, None).await {
            self.failed += usize::from(matches!(error, Error::Database { .. }));
            self.note(sql, &error.to_string());
        }
    }

    /// Asks for the plan of a statement, which looks at samples of the rows.
    async fn plan(&mut self, database: &Database, sql: &str) {
        let problem = database
            .validate(sql)
            .await
            .map_or_else(|error| Some(error.to_string()), |v| v.problem);
        self.note(sql, &problem.unwrap_or_default());
    }

    fn note(&mut self, sql: &str, error: &str) {
        let text = error.to_lowercase();
        if HIDDEN.iter().any(|hidden| text.contains(hidden)) {
            self.leaks.push(format!("{sql}: {error}"));
        }
    }

    fn is_silent(&self, least: usize) {
        assert!(self.leaks.is_empty(), "{}", self.leaks.join("\n"));
        assert!(self.failed >= least, "only {} statements failed", self.failed);
    }
}

/// Returns what the column may be given to, with `§` where it stands: calls of each function, by its count of arguments.
fn calls(name: &str, count: usize, others: &[&str]) -> Vec<String> {
    let mut calls = Vec::new();
    for at in 0..count {
        for other in others {
            let arguments: Vec<&str> =
                (0..count).map(|place| if place == at { "§" } else { other }).collect();
            calls.push(format!("{name}({})", arguments.join(", ")));
        }
    }
    calls
}

#[tokio::test]
async fn no_error_of_sqlite_reveals_a_row() {
    let file = File::with(SQLITE_SCHEMA).await;
    let plain = sqlx::sqlite::SqliteConnectOptions::new().filename(&file.path);
    let mut plain: SqliteConnection = plain.connect().await.unwrap();
    let functions: Vec<(String, i64)> =
        sqlx::query_as("SELECT DISTINCT name, narg FROM pragma_function_list ORDER BY 1, 2")
            .fetch_all(&mut plain)
            .await
            .unwrap();
    let mut uses: Vec<String> = [
        "§ LIKE 'a' ESCAPE §",
        "'x' REGEXP §",
        "median(§)",
        "percentile(1, §)",
        "'{}' -> §",
        "§ ->> '$'",
        "nth_value(id, §) OVER ()",
        "ntile(§) OVER ()",
        "(SELECT count(*) FROM json_each('{}', §))",
        "(SELECT count(*) FROM json_tree(§))",
        "(SELECT count(*) FROM papers WHERE papers MATCH §)",
        "(SELECT snippet(papers, §, '', '', '', 3) FROM papers WHERE papers MATCH 'x')",
        "(SELECT 1 LIMIT §)",
        "sum(9223372036854775807 + length(§)) OVER ()",
        "CAST(§ AS INTEGER) << 99",
        "count(*) OVER (ORDER BY id ROWS § PRECEDING)",
    ]
    .map(str::to_owned)
    .into();
    for (name, count) in functions {
        let name = name.to_lowercase();
        if !is_allowed_function(Dialect::Sqlite, &name) || name.contains('>') {
            continue;
        }
        let counts = if count < 0 { 1..4 } else { count as usize..count as usize + 1 };
        for count in counts {
            uses.extend(calls(&name, count, &["'{}'", "1", "'$'"]));
        }
    }
    let every = file.open().await;
    let filters = vec!["notes:tenant = 'a'".parse().unwrap(), "mine:true".parse().unwrap()];
    let filtered = Database::open(Options { filters, ..options(&file.path) }).await.unwrap();
    let only_view = file.open_only(&["mine", "papers"]).await;
    let mut seen = Seen::default();
    for place in &uses {
        for column in ["n", "'$.' || n", "'\"' || n", "'\\' || n"] {
            let used = place.replace('§', &format!("({column})"));
            seen.run(&every, &format!("SELECT {used} FROM notes")).await;
        }
        let used = place.replace('§', "('$[' || n)");
        for (database, table) in [(&filtered, "notes"), (&only_view, "mine")] {
            seen.run(database, &format!("SELECT 1 FROM {table} WHERE {used} IS NOT NULL")).await;
        }
    }
    seen.is_silent(200);
}

#[tokio::test]
async fn no_error_of_postgres_reveals_a_row() {
    let Some(server) = Server::with(POSTGRES_SCHEMA).await else { return };
    let every = server.open().await;
    let filters = vec!["notes:tenant = 'a'".parse().unwrap(), "mine:true".parse().unwrap()];
    let filtered = Database::open(Options { filters, ..options(&server.url) }).await.unwrap();
    let mut owner = server.owner().await;
    let mut uses: Vec<String> = [
        "§ LIKE 'a' ESCAPE §",
        "'x' ~ §",
        "'x' SIMILAR TO § ESCAPE '#'",
        "substring('x' FROM § FOR '#')",
        "timestamp '2024-01-01' AT TIME ZONE §",
        "'{}'::jsonb @? (§)::jsonpath",
        "'a'::tsvector @@ (§)::tsquery",
        "ARRAY[1] = (§)::int[]",
        "(SELECT 1 OFFSET (§)::int)",
        "nth_value(id, (§)::int) OVER ()",
        "1 / length(left(§, 0))",
        "chr(length(§) * 1000000)",
        "make_date((§)::int, 1, 1)",
        "make_date(99999999 * length(§), 1, 1)",
        "(§)::char(2)::numeric(1, 1)",
    ]
    .map(str::to_owned)
    .into();
    for name in "bigint bit(3) boolean bytea char(3) date daterange float4 int int4range int[] interval json jsonb jsonpath \
         money numeric numeric(3,1) numrange smallint text[] time timetz timestamp timestamptz tsquery tsrange tsvector \
         tstzrange uuid varbit varchar(2)"
        .split_whitespace()
    {
        uses.push(format!("CAST(§ AS {name})"));
    }
    let functions: Vec<(String, Vec<String>)> = sqlx::query_as(
        "SELECT p.proname::text, array(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY u(t, o) ORDER BY o) \
         FROM pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' \
           AND 'text'::regtype = ANY (p.proargtypes) AND NOT p.provariadic <> 0 ORDER BY 1, 2",
    )
    .fetch_all(&mut owner)
    .await
    .unwrap();
    for (name, types) in functions {
        if !is_allowed_function(Dialect::Postgres, &name) {
            continue;
        }
        for at in (0..types.len()).filter(|at| types[*at] == "text") {
            let arguments: Vec<String> = types
                .iter()
                .enumerate()
                .map(|(place, kind)| {
                    if place == at {
                        return "§".to_owned();
                    }
                    match kind.as_str() {
                        "text" => "'a'".to_owned(),
                        "integer" | "bigint" | "numeric" | "double precision" => "1".to_owned(),
                        "jsonb" | "json" => format!("'{{}}'::{kind}"),
                        "tsquery" | "tsvector" | "bytea" => format!("'a'::{kind}"),
                        "interval" => "interval '1 day'".to_owned(),
                        "boolean" => "true".to_owned(),
                        "date" | "timestamp without time zone" | "timestamp with time zone" => {
                            format!("CAST('2024-01-01' AS {kind})")
                        }
                        _ => "NULL".to_owned(),
                    }
                })
                .collect();
            uses.push(format!("{name}({})", arguments.join(", ")));
        }
    }
    let mut seen = Seen::default();
    for place in &uses {
        let used = |column: &str| place.replace('§', &format!("({column})"));
        // Each value by itself, so that each has its error.
        for column in COLUMN {
            let used = used(column);
            seen.run(&every, &format!("SELECT {used} FROM notes WHERE id = 1")).await;
        }
        for id in [3, 5] {
            seen.run(&every, &format!("SELECT {} FROM notes WHERE id = {id}", used("n"))).await;
        }
        let prefixed = used("'\"' || n");
        seen.run(&filtered, &format!("SELECT 1 FROM notes WHERE {prefixed} IS NOT NULL")).await;
        seen.run(&filtered, &format!("SELECT 1 FROM mine WHERE {prefixed} IS NOT NULL")).await;
        seen.plan(&filtered, &format!("SELECT 1 FROM mine WHERE {} IS NOT NULL", used("n"))).await;
    }
    sqlx::Connection::close(owner).await.unwrap();
    drop((every, filtered));
    server.drop().await;
    seen.is_silent(400);
}

#[tokio::test]
async fn an_error_names_the_kind_of_invalid_value_and_shows_errors_in_the_query_in_full() {
    let file = File::with(SQLITE_SCHEMA).await;
    let database = file.open().await;
    for (sql, expected) in [
        ("SELECT json_extract('{}', n) FROM notes", "bad JSON path"),
        ("SELECT json(n) FROM notes", "malformed JSON"),
        ("SELECT tennant FROM notes", "no such column: tennant; did you mean tenant?"),
    ] {
        let error = database.query(sql, None).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{sql}: {error}");
    }
    let Some(server) = Server::with(POSTGRES_SCHEMA).await else { return };
    let database = server.open().await;
    for (sql, expected) in [
        ("SELECT ('\"' || n)::int FROM notes", "invalid input syntax for type integer, in "),
        (
            "SELECT n::timestamptz FROM notes",
            "invalid input syntax for type timestamp with time zone, in ",
        ),
        ("SELECT 1 / (id - id) FROM notes", "division by zero, in int4div"),
        (
            "SELECT n::jsonpath FROM notes",
            "a text that cannot be read as a name, pattern, path or search",
        ),
        (
            "SELECT date_trunc(n, now()) FROM notes",
            "an invalid parameter of a function, in timestamptz_trunc",
        ),
        ("SELECT 'here'::int", "\"here\""),
        ("SELECT tennant FROM notes", "; did you mean tenant?"),
    ] {
        let error = database.query(sql, None).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{sql}: {error}");
    }
    drop(database);
    server.drop().await;
}

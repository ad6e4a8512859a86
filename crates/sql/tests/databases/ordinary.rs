//! Statements that people write every day, run through the guard and as they are: the same answer.

use perihelion_analysis::Dialect;
use perihelion_analysis::guard::{Permitted, Policy, TableName, allowed_functions, guard};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection, Row, SqliteConnection,
};

use crate::support::{File, Server};

const COLUMNS: [&str; 6] = ["id", "customer", "total", "day", "tags", "above"];

fn policy(schema: &str) -> Policy {
    let name = TableName { schema: schema.into(), name: "orders".into(), unqualified: true };
    let columns = COLUMNS.map(str::to_owned).to_vec();
    Policy { tables: vec![Permitted { name, columns, filter: None }], ..Policy::default() }
}

const POSTGRES_SCHEMA: &str = "
    CREATE TABLE orders (id int PRIMARY KEY, customer text NOT NULL, total numeric(10,2), day date, tags jsonb, above int);
    INSERT INTO orders VALUES (1, 'Ada', 12.50, '2024-01-01', '{\"a\": [1, 2]}', NULL), (2, 'Bob', NULL, '2024-02-01', '{}', 1),
        (3, 'Cy', 3, '2024-02-01', '{\"b\": 1}', 1), (4, 'Ada', 3, '2024-03-01', NULL, 2);
    GRANT SELECT ON orders TO {role};";

const SQLITE_SCHEMA: &str = "
    CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, total REAL, day TEXT, tags TEXT, above INTEGER);
    INSERT INTO orders VALUES (1, 'Ada', 12.50, '2024-01-01', '{\"a\": [1, 2]}', NULL), (2, 'Bob', NULL, '2024-02-01', '{}', 1),
        (3, 'Cy', 3, '2024-02-01', '{\"b\": 1}', 1), (4, 'Ada', 3, '2024-03-01', NULL, 2);
    CREATE VIEW dear AS SELECT id FROM orders WHERE total > (SELECT avg(total) FROM orders);
    CREATE TABLE hidden (x TEXT);
    CREATE VIRTUAL TABLE papers USING fts5(title, body); INSERT INTO papers VALUES ('one', 'the quick fox')";

const BOTH: &[&str] = &[
    "SELECT id, sum(total) OVER (ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW) AS s FROM orders ORDER BY id",
    "SELECT id, count(*) OVER (ORDER BY day GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE GROUP) AS s FROM orders ORDER BY id",
    "SELECT id, count(*) OVER (ORDER BY day RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE TIES) AS s FROM orders ORDER BY id",
    "SELECT id, count(*) OVER (PARTITION BY customer ORDER BY day ROWS UNBOUNDED PRECEDING EXCLUDE NO OTHERS) AS s FROM orders ORDER BY id",
    "SELECT id, count(*) OVER w AS s FROM orders WINDOW w AS (ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) ORDER BY id",
    "SELECT id, count(*) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE TIES) AS s FROM orders WINDOW w AS (PARTITION BY day ORDER BY id) ORDER BY id",
    "SELECT o.id FROM orders o WHERE o.id IN (SELECT max(id) FROM orders GROUP BY customer) ORDER BY 1",
    "WITH m AS (SELECT day, count(*) AS n FROM orders GROUP BY day) SELECT day, n, lag(n) OVER (ORDER BY day) AS before FROM m ORDER BY day",
];

const POSTGRES: &[&str] = &[
    "SELECT - -1 AS a, @ -5 AS b, |/ 4 AS c",
    "SELECT id FROM orders WHERE id BETWEEN SYMMETRIC 3 AND 2 ORDER BY id",
    "SELECT (DATE '2024-01-01', DATE '2024-02-01') OVERLAPS (DATE '2024-01-15', DATE '2024-03-01') AS o",
    "SELECT id FROM orders WHERE customer LIKE ANY (ARRAY['A%', 'B%']) ORDER BY id",
    "SELECT customer::text COLLATE \"C\" AS c FROM orders ORDER BY customer::text COLLATE \"C\", id",
    "SELECT ARRAY(SELECT id FROM orders ORDER BY 1) AS a",
    "SELECT ROW(1, 'a') AS r",
    "SELECT (o).id FROM orders o ORDER BY (o).id",
    "SELECT x.a, x.b FROM jsonb_to_recordset('[{\"a\": 1, \"b\": \"z\"}]') AS x(a int, b text)",
    "SELECT tags @? '$.a' AS p, tags @@ '$.b == 1' AS q FROM orders ORDER BY id",
    "SELECT E'it\\'s\\n' AS e",
    "TABLE orders ORDER BY id LIMIT 2",
    "WITH RECURSIVE t(id, above) AS (SELECT id, above FROM orders WHERE above IS NULL UNION ALL SELECT o.id, o.above FROM orders o JOIN t ON o.above = t.id) SEARCH DEPTH FIRST BY id SET place SELECT id FROM t ORDER BY place",
    "WITH RECURSIVE t(id, above) AS (SELECT id, above FROM orders WHERE above IS NULL UNION ALL SELECT o.id, o.above FROM orders o JOIN t ON o.above = t.id) SEARCH BREADTH FIRST BY id SET \"The Place\" SELECT t.id, t.\"The Place\" FROM t ORDER BY t.\"The Place\"",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT 3 - n FROM t) CYCLE n SET again USING path SELECT t.n, t.again, t.path FROM t ORDER BY 1, 2",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT 3 - n FROM t) SEARCH DEPTH FIRST BY n SET o CYCLE n SET again TO 'yes' DEFAULT 'no' USING path SELECT n, again FROM t ORDER BY o",
    "SELECT count(*) AS n FROM orders TABLESAMPLE BERNOULLI (100) REPEATABLE (1)",
    "SELECT count(*) AS n FROM orders TABLESAMPLE SYSTEM (100)",
    "SELECT '1'::money AS m, '10:00'::timetz AS t, B'101'::bit(3) AS b, total::money AS tm FROM orders ORDER BY id",
    "SELECT lpad(customer, 5, 'x') AS l, rpad(customer, 5) AS r, repeat('ab', 3) AS p, format('%s-%s', customer, 1) AS f FROM orders ORDER BY id",
    "SELECT array_append(ARRAY[1], 2) AS a, array_remove(ARRAY[1], 1) AS r, array_cat(ARRAY[1], ARRAY[2]) AS c, array_to_json(ARRAY[1]) AS j",
    "SELECT generate_subscripts(ARRAY[5, 6], 1) AS i",
    "SELECT jsonb_path_query(tags, '$.a[*]') AS q FROM orders",
    "SELECT jsonb_path_exists(tags, '$.a') AS e, jsonb_path_match(tags, '$.b == 1') AS m, jsonb_path_query_array(tags, '$.a[*]') AS a, jsonb_path_query_first(tags, '$.a[*]') AS f FROM orders WHERE id = 1",
    "SELECT jsonb_object_keys(tags) AS k FROM orders ORDER BY 1",
    "SELECT jsonb_set(tags, '{a}', '3') AS s, jsonb_pretty(tags) AS p FROM orders ORDER BY id",
    "SELECT to_json(o) AS j, row_to_json(o) AS r, to_jsonb(o) AS b FROM orders o ORDER BY id",
    "SELECT regexp_matches(customer, '(.)d') AS m FROM orders ORDER BY id",
    "SELECT regexp_substr(customer, 'd.') AS s, regexp_like(customer, 'a$') AS l, regexp_instr(customer, 'd') AS i FROM orders ORDER BY id",
    "SELECT gcd(4, 6) AS g, lcm(4, 6) AS l, bit_and(id) AS a, bit_or(id) AS o FROM orders",
    "SELECT encode(sha256(customer::bytea), 'hex') AS h FROM orders ORDER BY id",
    "SELECT encode(sha256('a'), 'hex') AS h",
    "SELECT timezone('UTC', TIMESTAMP '2024-01-01 12:00') AS z",
    "SELECT int4range(1, 5) AS r, int4range(1, 5) @> 3 AS c, daterange('2024-01-01', '2024-02-01') && daterange('2024-01-15', NULL) AS o, numrange(1, 2) * numrange(1.5, 3) AS i, lower(int4range(1, 5)) AS l",
    "SELECT to_tsvector('english', customer) @@ to_tsquery('english', 'ada') AS t FROM orders ORDER BY id",
    "SELECT ts_rank(to_tsvector('english', customer), plainto_tsquery('english', 'ada')) AS t FROM orders ORDER BY id",
];

/// What answers otherwise every time.
const POSTGRES_CHANGING: &[&str] = &[
    "SELECT random(), gen_random_uuid(), statement_timestamp(), clock_timestamp()",
    "SELECT id FROM orders ORDER BY random()",
];

const SQLITE: &[&str] = &[
    "SELECT 1 << 4, 256 >> 2, - -1",
    "SELECT id FROM orders WHERE customer IS 'Ada' AND total IS NOT 3",
    "SELECT id FROM orders WHERE above IS NOT above",
    "WITH a AS MATERIALIZED (SELECT id FROM orders), b AS NOT MATERIALIZED (SELECT 2 AS x) SELECT a.id FROM a, b ORDER BY 1",
    "SELECT json_quote('a'), json_set('{}', '$.a', 1), json_patch('{}', '{\"b\":1}'), json_remove('{\"a\":1}', '$.a'), json_extract(jsonb('{\"a\":1}'), '$.a')",
];

/// What only the reader's own functions can answer, or answers otherwise every time.
const SQLITE_OWN: &[&str] = &[
    "SELECT id FROM orders WHERE customer REGEXP '^A'",
    "SELECT random() IS NOT NULL",
    "SELECT median(total), percentile(total, 50), percentile_cont(total, 0.25), percentile_disc(total, 0.25) FROM orders",
    "SELECT ceil(1.2), floor(1.8), sqrt(9), power(2, 10), ln(2), exp(1), log(100), log2(8), pi()",
    "SELECT title FROM papers WHERE papers MATCH 'fox'",
    "SELECT id FROM dear",
    "WITH c AS (SELECT * FROM orders) SELECT count(*) FROM c",
];

/// S2.05: on Postgres, what ran is what was asked.
#[tokio::test]
async fn ordinary_statements_run_on_postgres_and_answer_as_without_the_guard() {
    let Some(server) = Server::with(POSTGRES_SCHEMA).await else { return };
    let database = server.open().await;
    let mut owner = server.owner().await;
    let mut wrong = Vec::new();
    for sql in BOTH.iter().chain(POSTGRES).chain(POSTGRES_CHANGING) {
        if let Err(error) = database.query(sql, None).await {
            wrong.push(format!("{sql}: {error}"));
            continue;
        }
        if POSTGRES_CHANGING.contains(sql) {
            continue;
        }
        let guarded = guard(sql, Dialect::Postgres, &policy("public")).unwrap();
        let plain = postgres_rows(&mut owner, sql).await;
        let written = postgres_rows(&mut owner, guarded.as_str()).await;
        if plain != written {
            wrong.push(format!("{sql}: {plain} became {written} by {}", guarded.as_str()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    owner.close().await.unwrap();
    drop(database);
    server.drop().await;
}

async fn postgres_rows(connection: &mut PgConnection, sql: &str) -> String {
    let sql = format!("SELECT coalesce(json_agg(q), '[]')::text FROM ({sql}) AS q");
    let rows = sqlx::query_scalar(AssertSqlSafe(sql.clone())).fetch_one(connection).await;
    rows.unwrap_or_else(|error| format!("{sql}: {error}"))
}

/// S2.05
#[tokio::test]
async fn medians_and_percentiles_are_there_on_sqlite() {
    let file = File::with(SQLITE_SCHEMA).await;
    let database = file.open().await;
    let sql = "SELECT median(n), percentile(n, 25), percentile_cont(n, 0.1), percentile_disc(n, 0.9), median(z)
        FROM (SELECT 10 AS n, NULL AS z UNION ALL SELECT 20, NULL UNION ALL SELECT 40, NULL UNION ALL SELECT NULL, NULL)";
    let answer = database.query(sql, None).await.unwrap();
    assert_eq!(serde_json::json!(answer.rows), serde_json::json!([[20.0, 15.0, 12.0, 20.0, null]]));
    let windows = "SELECT median(n) OVER (PARTITION BY g), median(n) OVER (ORDER BY n),
        percentile_disc(n, 1) OVER (ORDER BY n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW),
        median(n) OVER (ORDER BY n ROWS BETWEEN 1 FOLLOWING AND 1 FOLLOWING)
        FROM (SELECT 1 AS g, 10 AS n UNION ALL SELECT 1, 20 UNION ALL SELECT 2, 40 UNION ALL SELECT 2, NULL) ORDER BY n";
    let answer = database.query(windows, None).await.unwrap();
    let expected = serde_json::json!([
        [40.0, null, null, 10.0],
        [15.0, 10.0, 10.0, 20.0],
        [15.0, 15.0, 20.0, 40.0],
        [40.0, 20.0, 40.0, null]
    ]);
    assert_eq!(serde_json::json!(answer.rows), expected);
    for wrong in ["SELECT percentile(id, 101) FROM orders", "SELECT median(customer) FROM orders"] {
        assert!(database.query(wrong, None).await.unwrap_err().to_string().contains("percentile"));
    }
}

/// Arguments with which one function or another can be called.
const ARGUMENTS: &[&str] = &[
    "",
    "()",
    "(1)",
    "('1')",
    "(1, 1)",
    "(id, 0.5)",
    "(1, 1, 1)",
    "('a', 1)",
    "('%d', 1)",
    "('2024-01-01', '2024-01-02')",
    "('{}')",
    "('{}', '$.a')",
    "('{}', '{}')",
    "('{}', '$.a', 1)",
    "() OVER (ORDER BY id)",
    "(1) OVER (ORDER BY id)",
    "(1, 1) OVER (ORDER BY id)",
];

/// S2.05
#[tokio::test]
async fn every_function_that_is_listed_for_sqlite_is_there() {
    let file = File::with(SQLITE_SCHEMA).await;
    let database = file.open().await;
    let mut missing = Vec::new();
    // The operators are in the list above.
    for name in allowed_functions(Dialect::Sqlite).filter(|name| !name.starts_with('-')) {
        let calls = ARGUMENTS.iter().map(|arguments| format!("{name}{arguments} FROM orders"));
        let searches = [
            format!("title FROM papers WHERE papers {name} 'fox'"),
            format!("id FROM orders WHERE customer {name} 'A'"),
            format!("{name}(papers) FROM papers WHERE papers MATCH 'fox'"),
            format!("{name}(papers, 0, '<', '>') FROM papers WHERE papers MATCH 'fox'"),
            format!("{name}(papers, 0, '<', '>', '…', 9) FROM papers WHERE papers MATCH 'fox'"),
        ];
        let mut errors = Vec::new();
        let mut is_there = false;
        for call in calls.chain(searches) {
            let answer = database.query(&format!("SELECT {call}"), None).await;
            is_there |= answer.is_ok();
            errors.extend(answer.err().map(|error| error.to_string()));
            if is_there {
                break;
            }
        }
        missing.extend((!is_there).then(|| format!("{name}: {}", errors.join("; "))));
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// S2.05
#[tokio::test]
async fn a_value_is_found_in_letters_of_either_case() {
    let schema = "CREATE TABLE places (name TEXT);
        INSERT INTO places VALUES ('Österreich'), ('ČESKO'), ('a.c 50% it''s'), ('abc'), ('Île_de')";
    let file = File::with(schema).await;
    let server = Server::with(schema).await;
    let postgres = match &server {
        Some(server) => {
            let mut owner = server.owner().await;
            owner.execute("GRANT SELECT ON places TO PUBLIC").await.unwrap();
            owner.close().await.unwrap();
            Some(server.open().await)
        }
        None => None,
    };
    let plain = [
        ("Österreich", "Österreich", true),
        ("A.C", "a.c 50% it's", false),
        ("0% IT'S", "a.c 50% it's", false),
        ("Île_", "Île_de", false),
    ];
    // On Postgres these depend on its locale.
    let accented = [
        ("österreich", "Österreich", true),
        (" ÖSTERR", "Österreich", false),
        ("česko", "ČESKO", true),
        ("île_", "Île_de", false),
    ];
    let sqlite = plain.iter().chain(&accented).collect::<Vec<_>>();
    let databases = [(Some(file.open().await), sqlite), (postgres, plain.iter().collect())];
    for (database, cases) in databases {
        let Some(database) = database else { continue };
        for (text, value, exact) in cases {
            let found = database.find_values(text, None, None).await.unwrap();
            let read: Vec<(&str, bool)> =
                found.values.iter().map(|one| (one.value.as_str(), one.exact)).collect();
            assert_eq!(read, [(*value, *exact)], "{text}");
        }
    }
    if let Some(server) = server {
        server.drop().await;
    }
}

/// S2.05: on SQLite, with every table open and with only some.
#[tokio::test]
async fn ordinary_statements_run_on_sqlite_and_answer_as_without_the_guard() {
    let file = File::with(SQLITE_SCHEMA).await;
    let every = file.open().await;
    let some = file.open_only(&["orders", "dear", "papers"]).await;
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&file.path);
    let mut plain: SqliteConnection = options.connect().await.unwrap();
    let mut wrong = Vec::new();
    for sql in BOTH.iter().chain(SQLITE).chain(SQLITE_OWN) {
        for (database, name) in [(&every, "every table"), (&some, "some tables")] {
            if let Err(error) = database.query(sql, None).await {
                wrong.push(format!("{sql} ({name}): {error}"));
            }
        }
        if SQLITE_OWN.contains(sql) {
            continue;
        }
        let guarded = guard(sql, Dialect::Sqlite, &policy("main"));
        let Ok(guarded) = guarded else { continue };
        let asked = sqlite_rows(&mut plain, sql).await;
        let written = sqlite_rows(&mut plain, guarded.as_str()).await;
        if asked != written {
            wrong.push(format!("{sql}: {asked:?} became {written:?} by {}", guarded.as_str()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

async fn sqlite_rows(connection: &mut SqliteConnection, sql: &str) -> Vec<Vec<Option<String>>> {
    let rows = sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(connection).await;
    let rows = rows.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let cells = |row: &sqlx::sqlite::SqliteRow| {
        (0..row.len()).map(|at| row.get_unchecked::<Option<String>, _>(at)).collect()
    };
    rows.iter().map(cells).collect()
}

//! The statement that the guard writes means what was asked: every literal and operator of each dialect, run as it was
//! written and as the guard wrote it.

use perihelion_analysis::Dialect;
use perihelion_analysis::guard::{Permitted, Policy, TableName, guard};
use perihelion_analysis::limit::bounded;
use sqlx::{
    AssertSqlSafe, Connection, Executor, PgConnection, Row, SqliteConnection, TypeInfo, ValueRef,
};

use crate::support::Server;

const COLUMNS: [&str; 8] = ["id", "a", "b", "flags", "note", "top", "user", "doc"];

fn policy(schema: &str) -> Policy {
    let name = TableName { schema: schema.into(), name: "t".into(), unqualified: true };
    let columns = COLUMNS.map(str::to_owned).to_vec();
    Policy { tables: vec![Permitted { name, columns, filter: None }], ..Policy::default() }
}

const LITERALS: &[&str] = &[
    "1",
    "1.5",
    ".5",
    "5.",
    "1e3",
    "1.5E-2",
    "-1",
    "- -1",
    "+1",
    "007",
    "9223372036854775807",
    "9223372036854775808",
    "'a'",
    "''",
    "'it''s'",
    "''''",
    "'a''''b'",
    "'\\'''",
    "'\\''; --'",
    "'\\''''\\'''",
    "'a\\b'",
    "'a\nb'",
    "'ü'",
    "'%_'",
    "NULL",
    "TRUE",
    "FALSE",
    "'--'",
    "'/* */'",
    "1 -- one\n",
    "/* two */ 2",
];
const SQLITE_LITERALS: &[&str] = &[
    "0x04",
    "0X1f",
    "0xFFFFFFFFFFFFFFFF",
    "-0x10",
    "x'0F'",
    "X''",
    "x'41' || 'b'",
    "hex(x'0aFF')",
    "1_000",
    "0x_1",
    "'a' 'b'",
    "-9223372036854775808",
    "current_date",
    "1e5",
    "0x10 + 1",
    "~0x0f",
];
const POSTGRES_LITERALS: &[&str] = &[
    "0x1F",
    "0XfF",
    "0o17",
    "0O17",
    "0b101",
    "0B11",
    "1_000",
    "0x1_F",
    "1_0.5e1_0",
    "x'1F'",
    "B'101'",
    "b''",
    "X'0a'",
    "E'a\\n\\t\\\\b\\'c'",
    "E'\\x41\\101\\u0042\\U00000043'",
    "E'it''s'",
    "e'\\q'",
    "$$a'b$$",
    "$q$a$$b$q$",
    "U&'\\0041\\+000042'",
    "U&'it''s'",
    "U&'\\\\'",
    "U&'d!0061t!+000061 !! \'\'x' UESCAPE '!'",
    "U&'\\0041' UESCAPE '\\'",
    "u&'#D83D#DE00' uescape '#'",
    "U&'plain'\n UESCAPE ':'",
    "'a'\n'b'",
    "'a' \n  'b'\n'c'",
    "'a' -- x\n'b'",
    "DATE '2024-01-31'",
    "TIMESTAMP '2024-01-31 10:00'",
    "TIMESTAMP WITH TIME ZONE '2024-01-31 10:00+02'",
    "TIME '10:00'",
    "INTERVAL '1 day'",
    "INTERVAL '1' DAY",
    "INTERVAL '1-2' YEAR TO MONTH",
    "INTERVAL '1.5' SECOND",
    "INTERVAL '90' MINUTE * 2",
    "timestamptz '2024-01-31 10:00+02'",
    "'5'::int",
    "CAST('5' AS numeric(4, 1))",
    "ARRAY[1, 2]",
    "ARRAY[[1, 2], [3, 4]]",
    "'{1,2}'::int[]",
    "ROW(1, 'a')",
    "(1, 2) = (1, 2)",
    "'1 e'::varchar(2)",
    "'ab'::char(3) || 'c'",
    "'NaN'::float8",
    "'a'::text COLLATE \"C\"",
];

/// Operands of whole numbers, and operators over them from the loosest to the tightest.
const NUMBERS: &[&str] = &["7", "a", "-2", "flags", "0x06"];
const OPERATORS: &[&str] = &[
    "OR",
    "AND",
    "=",
    "<>",
    "<",
    ">=",
    "&",
    "|",
    "<<",
    ">>",
    "+",
    "-",
    "*",
    "/",
    "%",
    "IS NOT DISTINCT FROM",
];
const SQLITE_OPERATORS: &[&str] =
    &["==", "!=", "||", "IS", "IS NOT", "->", "->>", "GLOB", "LIKE", "NOT LIKE", "NOT GLOB"];
const POSTGRES_OPERATORS: &[&str] = &["^", "#", "!="];
const SIGNS: &[&str] = &["-", "+", "~", "NOT", "- -", "~ -", "- ~"];

const BOTH: &[&str] = &[
    "SELECT id FROM t WHERE flags & 4 = 4 ORDER BY id",
    "SELECT id FROM t WHERE NOT a = 1 AND b IS NOT NULL ORDER BY 1",
    "SELECT a, count(*) FROM t GROUP BY a HAVING count(*) > 1 ORDER BY a",
    "SELECT top, t.user FROM t ORDER BY id",
    "SELECT id top, a pivot FROM t sample ORDER BY id",
    "SELECT top.x FROM (SELECT 1 AS x) top",
    "SELECT qualify.id FROM t qualify ORDER BY qualify.id",
    "VALUES (1, 'a'), (2, 'b')",
    "SELECT 1 AS x UNION ALL VALUES (2)",
    "SELECT * FROM (VALUES (1), (2)) AS v ORDER BY 1",
    "SELECT id FROM t WHERE (a, b) IN (VALUES (1, 2)) ORDER BY id",
    "SELECT CASE a WHEN 1 THEN 'x' ELSE note END FROM t ORDER BY id",
    "SELECT id FROM t WHERE a BETWEEN 1 AND 2 AND note NOT BETWEEN 'b' AND 'c' ORDER BY id",
    "SELECT 1 UNION SELECT 2 INTERSECT SELECT 3 EXCEPT SELECT 1 ORDER BY 1",
    "SELECT x.id FROM t x LEFT JOIN t y ON x.id = y.a AND y.b > 1 ORDER BY x.id, y.id",
    "SELECT id FROM t ORDER BY note DESC NULLS LAST, id LIMIT 2 OFFSET 1",
    "SELECT sum(a) FILTER (WHERE b > 1), min(note) FROM t",
    "SELECT substr(note, 1, 2), trim(note), replace(note, 'a', 'b'), upper(note), length(note), abs(-a), round(1.55, 1) FROM t ORDER BY id",
    "SELECT DISTINCT a FROM t ORDER BY a",
    "SELECT note LIKE 'A!%' ESCAPE '!' FROM t ORDER BY id",
];
const SQLITE: &[&str] = &[
    "SELECT count(*) FROM t WHERE flags & 0x04",
    "SELECT typeof(0x04), 0x7fffffffffffffff",
    "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT sum(i) FROM n",
    "WITH n AS (SELECT 1 AS i UNION SELECT i + 1 FROM n WHERE i < 5) SELECT * FROM n",
    "SELECT id FROM t NOT INDEXED WHERE a = 1",
    "SELECT if(a = 1, 'x', 'y'), soundex(note), unistr('\\0041'), changes(), iif(a, 1, 2) FROM t",
    "SELECT id FROM t WHERE note NOT NULL AND note NOTNULL AND note IS NOT NULL",
    "SELECT id FROM t WHERE b ISNULL",
    "SELECT a = b NOT GLOB note, note NOT GLOB 'a*' = 5, note NOT GLOB b < 3 FROM t",
    "SELECT id FROM t WHERE note IN ()",
    "SELECT +note COLLATE NOCASE = 'ABC' FROM t",
    "SELECT -a || b, ~a || b, - a * b FROM t",
    "SELECT a = b IS b, a IS b = b, NOT a IS b FROM t",
    "SELECT doc -> '$.x' ->> 0, doc ->> 'y' || 'z' FROM t",
    "SELECT 'a' note FROM t",
    "SELECT [id], `a`, \"b\" FROM t",
    "SELECT rowid, oid, _rowid_ FROM t",
    "SELECT id FROM t LIMIT 1, 2",
    "SELECT id FROM t LIMIT 0x2",
    "SELECT date('2024-01-31', '+1 month'), strftime('%Y', '2024-01-31')",
    "SELECT group_concat(note, '-') FROM t WHERE note GLOB 'a*' OR note REGEXP NULL",
    "SELECT interval, array, position FROM (SELECT 1 AS interval, 2 AS array, 3 AS position)",
    "SELECT count(*) FROM t CROSS JOIN t AS u ON t.id = u.id",
    "SELECT max(id, a), min(1, 2) FROM t",
    "SELECT * FROM t NATURAL JOIN t AS u",
];
const POSTGRES: &[&str] = &[
    "SELECT -2 ^ 2, - 2 ^ 2, 2 ^ - 2, -a ^ 2 FROM t ORDER BY id",
    "SELECT - a::text::int, -a % 3, @ -5 + 3, ~ 1 + 2, |/ 4 + 12",
    "SELECT - INTERVAL '1 day' * 2, + a FROM t ORDER BY id",
    "SELECT 10 - 2 - 3, 2 ^ 3 ^ 2, 100 / 10 / 2, 'a' || 1 + 2",
    "SELECT a || note || b FROM t ORDER BY id",
    "SELECT NOT a IN (1, 2), NOT note LIKE 'a%' FROM t ORDER BY id",
    "SELECT note LIKE 'a' || '%', note || 'x' LIKE 'ab%' FROM t ORDER BY id",
    "SELECT substring('abcde' SIMILAR 'a#\"bc#\"%' ESCAPE '#'), substring('abc' FROM 2 FOR 1), substring('abc', 2), substring('abc' FROM 'b.')",
    "SELECT overlay('abcd' PLACING 'x' FROM 2 FOR 1), position('b' IN 'abc'), trim(BOTH 'x' FROM 'xax'), trim('x' FROM 'xa'), ltrim('  a')",
    "SELECT trim(leading 'x' FROM 'xax'), trim(TRAILING 'x' FROM note || 'x'), trim(leading '  a '), trim(trailing from ' a '), trim(from ' b ') FROM t ORDER BY id",
    "SELECT trim('xax', 'x'), trim(both 'xax', 'x'), trim(leading 'x' || 'a' FROM 'axb') || trim(' c '), trim(leading FROM note) = ltrim(note) FROM t ORDER BY id",
    "SELECT * FROM (SELECT trim(leading ' a'), trim(trailing ' b '), trim(' c')) AS x ORDER BY ltrim, rtrim, btrim",
    "SELECT note LIKE ALL (ARRAY['a%', '%c']), note NOT ILIKE ALL (SELECT note FROM t WHERE id = 4) AND true, NOT note ILIKE ALL ('{A%}') FROM t ORDER BY id",
    "SELECT id FROM ONLY t ORDER BY id",
    "SELECT x.id, u.id FROM only (t) AS x, ONLY t u WHERE x.id = u.id ORDER BY 1",
    "SELECT count(*) FROM t JOIN ONLY t AS u ON t.id = u.id",
    "SELECT hashtext('a'), quote_ident('a b'), normalize(U&'a\\0301', NFC) = U&'\\00e1', pg_typeof(1), quote_literal('x')",
    "SELECT normalize('a'), pg_typeof(note), to_hex(255), ceil(1.2), floor(-1.2) FROM t ORDER BY id",
    "SELECT range_agg(r) FROM (VALUES (int4range(1, 3)), (int4range(5, 7))) AS v(r)",
    "SELECT id FROM t WHERE b ISNULL OR note NOTNULL ORDER BY id",
    "SELECT a FROM t WHERE a = ANY (ARRAY[1, 2]) AND b <> ALL (ARRAY[9]) ORDER BY id",
    "SELECT (ARRAY[1, 2, 3])[2], (ARRAY[1, 2, 3])[1:2], ('{a,b}'::text[])[1]",
    "SELECT doc -> 'x' ->> 0, doc #>> '{x,0}', doc @> '{\"y\": \"q\"}', doc ? 'y' FROM t ORDER BY id",
    "SELECT extract(year FROM date '2024-01-31'), date_part('day', timestamp '2024-01-31'), date '2024-01-31' + 1",
    "SELECT timestamp '2024-01-31 10:00' AT TIME ZONE 'UTC' AT TIME ZONE 'UTC'",
    "SELECT u.n, u.ordinality FROM unnest(ARRAY[5, 6]) WITH ORDINALITY AS u(n)",
    "SELECT * FROM unnest(ARRAY[1, 2], ARRAY['a', 'b']) AS u(x, y)",
    "SELECT g FROM generate_series(1, 3) AS g, LATERAL unnest(ARRAY[g]) AS h",
    "SELECT count(*) FROM t WHERE a IS DISTINCT FROM NULL AND note IS NOT NULL",
    "SELECT a, b, sum(id) FROM t GROUP BY GROUPING SETS ((a), (b), ()) ORDER BY 1, 2",
    "SELECT DISTINCT ON (a) a, id FROM t ORDER BY a, id DESC",
    "SELECT id FROM t ORDER BY id FETCH FIRST 2 ROWS WITH TIES",
    "SELECT json_build_object('a', 1), jsonb_build_array(1, 'x'), array_agg(id ORDER BY id DESC) FROM t",
    "SELECT coalesce(NULL, 1), nullif(1, 2), greatest(1, 3), least(1, 3), num_nulls(1, NULL)",
    "SELECT id FROM t WHERE note ~ '^a' AND note !~* 'z' ORDER BY id",
    "TABLE t ORDER BY id",
];

/// Statements over every pair of operators and every sign.
fn operations(more: &[&str]) -> Vec<String> {
    let mut all = Vec::new();
    let operators: Vec<&str> = OPERATORS.iter().chain(more).copied().collect();
    for (at, one) in operators.iter().enumerate() {
        for sign in SIGNS {
            all.push(format!("SELECT {sign} a {one} {sign} b FROM t ORDER BY id"));
        }
        for number in NUMBERS {
            all.push(format!("SELECT a {one} {number} FROM t ORDER BY id"));
        }
        for other in &operators {
            let number = NUMBERS[(at + other.len()) % NUMBERS.len()];
            all.push(format!("SELECT a {one} {number} {other} b FROM t ORDER BY id"));
            all.push(format!("SELECT - a {one} b {other} - {number} FROM t ORDER BY id"));
        }
    }
    all
}

fn statements(literals: &[&str], operators: &[&str], whole: &[&str]) -> Vec<(String, bool)> {
    let literals = LITERALS.iter().chain(literals);
    let must = literals.flat_map(|one| {
        [format!("SELECT {one}"), format!("SELECT {one} AS x FROM t WHERE id = 1")]
    });
    let must =
        must.chain(BOTH.iter().chain(whole).map(|sql| (*sql).to_owned())).map(|sql| (sql, true));
    must.chain(operations(operators).into_iter().map(|sql| (sql, false))).collect()
}

/// Holds what a statement yields against what the guard's statement yields; a statement that fails by itself may be refused.
fn compare(
    sql: &str,
    asked: &Result<String, String>,
    written: Result<String, String>,
    must: bool,
) -> Option<String> {
    match (asked, written) {
        (Ok(asked), Ok(written)) if *asked == written => None,
        (Ok(asked), Ok(written)) => Some(format!("{sql}: {asked} became {written}")),
        (Ok(asked), Err(error)) if must => Some(format!("{sql}: {asked} is refused: {error}")),
        (Ok(_), Err(_)) | (Err(_), Err(_)) => None,
        (Err(error), Ok(written)) if must => Some(format!("{sql}: {error} became {written}")),
        (Err(_), Ok(_)) => None,
    }
}

#[tokio::test]
async fn queries_rewritten_for_sqlite_yield_the_rows_of_the_original() {
    let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
    connection
        .execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a INT, b INT, flags INT, note TEXT, top INT, user TEXT, doc TEXT);
             INSERT INTO t VALUES (1, 1, 2, 4, 'abc', 5, 'u', '{\"x\":[1,2],\"y\":\"q\"}'), (2, 2, NULL, 6, 'b%', 6, 'v', '{}'),
                (3, 1, 2, 3, NULL, 7, 'w', '[]'), (4, -3, 5, 0, 'A%', 8, 'x', NULL)",
        )
        .await
        .unwrap();
    let mut wrong = Vec::new();
    for (sql, must) in statements(SQLITE_LITERALS, SQLITE_OPERATORS, SQLITE) {
        let asked = sqlite(&mut connection, &sql).await;
        let written = match guard(&sql, Dialect::Sqlite, &policy("main")) {
            Ok(guarded) => {
                sqlite(&mut connection, &bounded(guarded.as_str(), Dialect::Sqlite, 1_000)).await
            }
            Err(refusal) => Err(refusal.to_string()),
        };
        wrong.extend(compare(&sql, &asked, written, must && asked.is_ok()));
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

async fn sqlite(connection: &mut SqliteConnection, sql: &str) -> Result<String, String> {
    let rows =
        sqlx::query(AssertSqlSafe(sql.to_owned())).persistent(false).fetch_all(connection).await;
    let rows = rows.map_err(|error| error.to_string())?;
    let cells = |row: &sqlx::sqlite::SqliteRow| {
        let cells = (0..row.len()).map(|at| {
            let raw = row.try_get_raw(at).unwrap();
            let kind = raw.type_info().name().to_owned();
            let bytes = row.get_unchecked::<Option<Vec<u8>>, _>(at);
            (kind, bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
        });
        format!("{:?}", cells.collect::<Vec<_>>())
    };
    Ok(rows.iter().map(cells).collect::<Vec<_>>().join("\n"))
}

#[tokio::test]
async fn queries_rewritten_for_postgres_yield_the_rows_of_the_original() {
    let schema = "CREATE TABLE t (id int PRIMARY KEY, a int, b int, flags int, note text, top int, \"user\" text, doc jsonb);
         INSERT INTO t VALUES (1, 1, 2, 4, 'abc', 5, 'u', '{\"x\":[1,2],\"y\":\"q\"}'), (2, 2, NULL, 6, 'b%', 6, 'v', '{}'),
            (3, 1, 2, 3, NULL, 7, 'w', '[]'), (4, -3, 5, 0, 'A%', 8, 'x', NULL);
         CREATE TABLE kin () INHERITS (t); INSERT INTO kin (id, a) VALUES (5, 1); GRANT SELECT ON t TO {role};";
    let Some(server) = Server::with(schema).await else { return };
    let database = server.open().await;
    let mut owner = server.owner().await;
    let mut wrong = Vec::new();
    for (sql, must) in statements(POSTGRES_LITERALS, POSTGRES_OPERATORS, POSTGRES) {
        let asked = postgres(&mut owner, &sql).await;
        let written = match guard(&sql, Dialect::Postgres, &policy("public")) {
            Ok(guarded) => postgres(&mut owner, guarded.as_str()).await,
            Err(refusal) => Err(refusal.to_string()),
        };
        wrong.extend(compare(&sql, &asked, written, must && asked.is_ok()));
        if must
            && asked.is_ok()
            && let Err(error) = database.query(&sql, None).await
        {
            wrong.push(format!("{sql}: {error}"));
        }
    }
    owner.close().await.unwrap();
    drop(database);
    server.drop().await;
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

async fn postgres(connection: &mut PgConnection, sql: &str) -> Result<String, String> {
    let sql = format!("SELECT coalesce(string_agg(q::text, '; '), 'none') FROM ({sql}) AS q");
    let rows = sqlx::query_scalar(AssertSqlSafe(sql)).persistent(false).fetch_one(connection).await;
    rows.map_err(|error| error.to_string())
}

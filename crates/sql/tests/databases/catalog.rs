//! Postgres' own functions, operators and types beside those that a database's users made.

use serde_json::json;

use crate::support::Server;

/// What a user of the database put into `public` under the names of Postgres' own functions.
const IMPOSTORS: &str = "
    CREATE EXTENSION IF NOT EXISTS unaccent; CREATE EXTENSION IF NOT EXISTS citext;
    CREATE TABLE people (name varchar(20), mail citext, n int);
    INSERT INTO people VALUES ('Zoë', 'A@b.c', 1);
    CREATE FUNCTION public.lower(varchar) RETURNS text LANGUAGE sql AS $$SELECT 'impostor'$$;
    CREATE FUNCTION public.unaccent(varchar) RETURNS text LANGUAGE sql AS $$SELECT 'impostor'$$;
    CREATE FUNCTION public.substring(varchar, int) RETURNS text LANGUAGE sql AS $$SELECT 'impostor'$$;
    CREATE FUNCTION public.substr(varchar, int) RETURNS text LANGUAGE sql AS $$SELECT 'impostor'$$;
    CREATE FUNCTION public.ceil(int) RETURNS text LANGUAGE sql AS $$SELECT 'impostor'$$;
    CREATE FUNCTION public.left(varchar, int) RETURNS text LANGUAGE sql AS $$SELECT 'impostor'$$;
    CREATE FUNCTION public.generate_series(int, smallint) RETURNS SETOF text LANGUAGE sql AS $$SELECT 'impostor'$$;
    CREATE FUNCTION public.unnest(varchar[]) RETURNS SETOF text LANGUAGE sql AS $$SELECT 'impostor'$$;
    GRANT SELECT ON people TO {role};";

const OPERATOR: &str = "
    CREATE FUNCTION public.differ(varchar, varchar) RETURNS bool LANGUAGE sql AS 'SELECT true';
    CREATE OPERATOR public.= (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = public.differ);";

#[tokio::test]
async fn a_permitted_name_never_reaches_an_object_that_a_user_defined_under_it() {
    let Some(server) = Server::with(IMPOSTORS).await else { return };
    let database = server.open().await;
    for (sql, expected) in [
        ("SELECT lower(name) FROM people", json!("zoë")),
        ("SELECT unaccent(name) FROM people", json!("Zoe")),
        ("SELECT substring(name, 2) FROM people", json!("oë")),
        ("SELECT substr(name, 2) FROM people", json!("oë")),
        ("SELECT substring(name FROM 2) FROM people", json!("oë")),
        ("SELECT ceil(n) FROM people", json!(1)),
        ("SELECT left(name, 1) FROM people", json!("Z")),
        ("SELECT name FROM people", json!("Zoë")),
        ("SELECT g FROM people, generate_series(n, 1::smallint) AS g", json!(1)),
        ("SELECT u FROM people, unnest(ARRAY[name]) AS u", json!("Zoë")),
        ("SELECT unnest(ARRAY[name]) FROM people", json!("Zoë")),
        ("SELECT n FROM people WHERE mail = 'a@B.C'", json!(1)),
    ] {
        let answer = database.query(sql, None).await;
        assert_eq!(
            answer.unwrap_or_else(|error| panic!("{sql}: {error}")).rows,
            [[expected]],
            "{sql}"
        );
    }
    drop(database);
    // An operator over Postgres' own types takes its schema out of the search.
    let mut owner = server.owner().await;
    sqlx::raw_sql(OPERATOR).execute(&mut owner).await.unwrap();
    let database = server.open().await;
    let same = "SELECT name = 'someone else' FROM people";
    assert_eq!(database.query(same, None).await.unwrap().rows, [[json!(false)]]);
    drop((database, owner));
    server.drop().await;
}

const TYPES: &str = "
    CREATE TYPE mood AS ENUM ('fine'); CREATE DOMAIN small AS int CHECK (VALUE < 10);
    CREATE TYPE pair AS (a int, r int4multirange); CREATE DOMAIN ranges AS int4multirange;
    CREATE TABLE odd (id int, m mood, s small, p pair, r int4multirange, rs int4multirange[], d ranges, x xml, i inet,
        c \"char\", o oid, b bit(3), h bytea, z timetz, g point, n numrange, v tsvector, l pg_lsn, j json, q jsonpath);
    INSERT INTO odd VALUES (1, 'fine', 3, ROW(1, '{[1,2)}'), '{[1,3),[5,7)}', ARRAY['{[1,2)}'::int4multirange], '{}', '<a/>',
        '10.0.0.1', 'c', 7, B'101', '\\x00ff', '10:00+02', '(1,2)', '[1,2.5)', 'a b', '0/1', '{\"k\": 1}', '$.a');
    CREATE TABLE few (id int);
    GRANT SELECT ON odd, few TO {role};";

#[tokio::test]
async fn columns_of_every_type_are_read_and_an_altered_table_is_seen() {
    let Some(server) = Server::with(TYPES).await else { return };
    let database = server.open().await;
    for column in "id m s p r rs d x i c o b h z g n v l j q odd".split(' ') {
        let sql = format!("SELECT {column} AS same, {column} AS same FROM odd");
        let answer =
            database.query(&sql, None).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(answer.columns, ["same", "same"], "{sql}");
        assert!(!answer.rows[0][0].is_null(), "{sql}");
    }
    let wide = database.query("SELECT r, id, s > 2 AS big, r AS id FROM odd", None).await.unwrap();
    assert_eq!(wide.columns, ["r", "id", "big", "id"]);
    let ranges = json!("{[1,3),[5,7)}");
    assert_eq!(wide.rows, [[ranges.clone(), json!(1), json!(true), ranges]]);
    let aggregated = database.query("SELECT range_agg(n) FROM odd", None).await.unwrap();
    assert_eq!(aggregated.rows, [[json!("{[1,2.5)}")]]);
    let none = database.query("SELECT r, id FROM odd WHERE false", None).await.unwrap();
    assert_eq!((none.columns.len(), none.row_count), (2, 0));
    let misspelt = database.query("SELECT r, nobody FROM odd", None).await.unwrap_err().to_string();
    assert!(misspelt.contains("nobody"), "{misspelt}");
    assert_eq!(database.query("SELECT * FROM few", None).await.unwrap().columns, ["id"]);
    let mut owner = server.owner().await;
    let alter = "ALTER TABLE few ADD COLUMN late text";
    sqlx::raw_sql(alter).execute(&mut owner).await.unwrap();
    let after = database.query("SELECT * FROM few", None).await.unwrap();
    assert_eq!(after.columns, ["id", "late"]);
    drop((database, owner));
    server.drop().await;
}

#[tokio::test]
async fn a_plan_is_shown_without_running_the_query() {
    let schema = "CREATE TABLE orders (id int PRIMARY KEY); GRANT SELECT ON orders TO {role};";
    let Some(server) = Server::with(schema).await else { return };
    let database = server.open().await;
    let plan = database.query("EXPLAIN SELECT * FROM orders WHERE id = 1", None).await.unwrap();
    assert_eq!(plan.columns, ["QUERY PLAN"]);
    assert!(plan.rows[0][0].as_str().unwrap().contains("orders"), "{:?}", plan.rows);
    let plan = "EXPLAIN (FORMAT JSON, COSTS OFF) SELECT * FROM orders";
    let plan = database.query(plan, None).await.unwrap();
    assert!(plan.rows[0][0].as_str().unwrap().contains("Relation Name"), "{:?}", plan.rows);
    let validation = database.validate("EXPLAIN SELECT * FROM orders").await.unwrap();
    assert!(validation.valid && validation.estimated_rows.is_some());
    for sql in [
        "EXPLAIN ANALYZE SELECT 1",
        "EXPLAIN SELECT nobody FROM orders",
        "EXPLAIN SELECT * FROM pg_authid",
        "EXPLAIN SELECT 1; SELECT 2",
    ] {
        database.query(sql, None).await.unwrap_err();
    }
    drop(database);
    server.drop().await;
}

//! One dialogue with the analyst on every server that runs SQL: the same questions, the same tables.

use std::process::Command;

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection};

use super::catalogue::{Place, database};
use super::drive::{Case, Seen, scan, world_of};
use super::script::{BY_COUNTRY, clear, draft, intent, interpretation, review};
use super::world::{approved, select};

/// What the databases hold.
const SHOP: &str = "
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT NOT NULL);
    CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers(id), total DOUBLE PRECISION NOT NULL, ordered_at DATE NOT NULL);
    INSERT INTO customers VALUES (1, 'Ada', 'Norway'), (2, 'Bob', 'Chile'), (3, 'Cy', 'Norway');
    INSERT INTO orders VALUES (1, 1, 100, '2024-01-05'), (2, 1, 50, '2024-02-05'), (3, 2, 40, '2024-02-07'), (4, 3, 10.5, '2024-03-01');";

/// The second question's statement: text, a whole number, a date, nothing.
const NORWAY: &str = "SELECT c.name, COUNT(*) AS orders, MAX(o.ordered_at) AS newest, NULL AS note FROM orders o \
    JOIN customers c ON c.id = o.customer_id WHERE c.country = 'Norway' GROUP BY c.name ORDER BY c.name";

/// Makes the shop in a SQLite file.
pub async fn sqlite(place: &Place) {
    let file = place.file("shop.db");
    let options = SqliteConnectOptions::new().filename(&file).create_if_missing(true);
    let mut connection = options.connect().await.unwrap();
    sqlx::raw_sql(SHOP).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

/// Makes the shop in a DuckDB file, by the library that the server brings.
pub fn duckdb(place: &Place) {
    let file = place.file("shop.duckdb");
    let program = "import sys, duckdb; duckdb.connect(sys.argv[1]).execute(sys.argv[2])";
    let made =
        Command::new(place.interpreter()).args(["-c", program]).arg(&file).arg(SHOP).status();
    assert!(made.unwrap().success());
}

/// Makes the shop in the tests' Postgres unless it is there.
pub async fn postgres() {
    let mut connection = PgConnection::connect(&database()).await.unwrap();
    let there = sqlx::query("SELECT FROM pg_tables WHERE tablename = 'orders'");
    if there.fetch_optional(&mut connection).await.unwrap().is_none() {
        sqlx::raw_sql(SHOP).execute(&mut connection).await.unwrap();
    }
    connection.close().await.unwrap();
}

/// Asks two questions, the second about the answer to the first, and holds their tables to what every server gives.
pub async fn drive(case: Case) -> Seen {
    let follow_up = "And how many by each customer in Norway?";
    let script = Script::new()
        .rule(Rule::new(select(&["qa"])).role(Role::Supervisor).contains("<result number"))
        .rule(Rule::new(select(&[&case.agent()])).role(Role::Supervisor))
        .rule(Rule::new(Reply::text("Here it is [1].")).role(Role::Qa))
        .rule(review(true))
        .rule(approved())
        .rule(intent("DATA_QA"))
        .rule(clear())
        .rule(draft(NORWAY).contains(follow_up))
        .rule(draft(BY_COUNTRY))
        .rule(interpretation("There are some.", Value::Null));
    let world = world_of(&[case], script).await;
    let mut seen = scan(&world).await;
    let questions = [
        (
            "What did customers order per country?",
            json!({
                "columns": ["country", "total"], "rows": [["Norway", 160.5], ["Chile", 40.0]], "row_count": 2, "truncated": false,
            }),
        ),
        (
            follow_up,
            json!({
                "columns": ["name", "orders", "newest", "note"],
                "rows": [["Ada", 2, "2024-02-05", null], ["Cy", 1, "2024-03-01", null]], "row_count": 2, "truncated": false,
            }),
        ),
    ];
    for (question, table) in questions {
        let asked = ["run", question, "--thread", "t", "--quiet", "--json", "--include-data"];
        let mut report = world.run(&asked).await.code(0).json();
        let found = same_numbers(report["data"].take());
        assert_eq!(found, same_numbers(table), "{question}: {report:#}");
    }
    seen.result = vec!["two questions: equal tables"];
    seen
}

/// Writes whole numbers as the others: servers in JavaScript do not tell 40 from 40.0.
fn same_numbers(value: Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(all) => all.into_iter().map(same_numbers).collect(),
        Value::Object(all) => {
            all.into_iter().map(|(name, value)| (name, same_numbers(value))).collect()
        }
        other => other,
    }
}

//! A row filter applies to everything that shows rows of its table, or the database is not opened.

use perihelion_sql::{Database, Error, Options};
use sqlx::{ConnectOptions, Connection, Executor};

use crate::support::{File, Server, options};

const SQLITE_SCHEMA: &str = "
    CREATE TABLE orders (id INTEGER PRIMARY KEY, tenant TEXT, note TEXT);
    INSERT INTO orders (tenant, note) VALUES ('a', 'x'), ('b', 'xy');
    CREATE VIEW order_list AS SELECT * FROM orders;
    CREATE VIEW listed AS SELECT tenant FROM order_list;
    CREATE VIEW matching AS SELECT median(1) AS one, tenant FROM orders WHERE note REGEXP 'x';
    CREATE VIEW by_subquery AS SELECT 'b' AS tenant, (SELECT count(*) FROM Orders) AS n;
    CREATE VIEW constant AS SELECT 'b' AS tenant FROM orders;
    CREATE VIEW counting AS SELECT 'b' AS tenant, n FROM (SELECT count(*) AS n FROM [Orders]);
    CREATE TABLE sellers (tenant TEXT, note TEXT); INSERT INTO sellers VALUES ('a', 'xy');
    CREATE VIEW existing AS SELECT tenant FROM sellers WHERE EXISTS (SELECT 1 FROM \"orders\");
    CREATE VIEW joined AS SELECT sellers.tenant FROM sellers JOIN orders USING (note);
    CREATE VIEW natural_join AS SELECT 'b' AS tenant FROM sellers NATURAL LEFT JOIN main.'orders';
    CREATE VIEW over_join AS SELECT 'b' AS tenant FROM sellers NATURAL JOIN joined;
    CREATE VIEW selling AS SELECT tenant FROM sellers -- without orders
    ;
    CREATE VIRTUAL TABLE texts USING fts5(tenant, note, content='Orders', content_rowid='id');
    INSERT INTO texts (texts) VALUES ('rebuild');
    CREATE VIEW found AS SELECT tenant FROM texts;
    CREATE VIEW plain AS SELECT id AS rowid, tenant FROM orders;
    CREATE VIRTUAL TABLE over_view USING fts5(tenant, content='plain');
    CREATE VIEW deep AS SELECT tenant FROM over_view;
    CREATE TABLE products (tenant TEXT); INSERT INTO products VALUES ('a');
    CREATE VIEW product_list AS SELECT * FROM products;
    CREATE VIRTUAL TABLE manuals USING fts5(tenant); INSERT INTO manuals VALUES ('a');
    CREATE VIEW broken AS SELECT tenant FROM gone;";

const POSTGRES_SCHEMA: &str = "
    CREATE TABLE base (tenant text, note text);
    CREATE TABLE orders (id int) INHERITS (base); CREATE TABLE old_orders () INHERITS (orders);
    INSERT INTO orders (tenant) VALUES ('a'), ('b'); INSERT INTO old_orders (tenant) VALUES ('a'), ('b');
    CREATE TABLE events (tenant text, year int) PARTITION BY LIST (year);
    CREATE TABLE events_2024 PARTITION OF events FOR VALUES IN (2024);
    INSERT INTO events VALUES ('a', 2024), ('b', 2024);
    CREATE VIEW order_list AS SELECT * FROM orders; CREATE VIEW listed AS SELECT tenant FROM order_list;
    CREATE VIEW of_child AS SELECT tenant FROM old_orders;
    CREATE VIEW of_partition AS SELECT tenant FROM events_2024;
    CREATE VIEW by_subquery AS SELECT 'b' AS tenant, (SELECT count(*) FROM orders) AS n;
    CREATE MATERIALIZED VIEW stored AS SELECT tenant FROM orders;
    CREATE FUNCTION every_order() RETURNS SETOF orders LANGUAGE sql AS 'SELECT * FROM orders';
    CREATE VIEW called AS SELECT tenant FROM every_order();
    CREATE TABLE products (tenant text); INSERT INTO products VALUES ('a');
    CREATE VIEW product_list AS SELECT tenant, upper(tenant) AS shown FROM products;
    CREATE VIEW counted AS SELECT 'a' AS tenant, count(*) AS n FROM pg_attribute;
    GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role};";

/// Opens a database, with a filter for each relation that it demands one for; returns their names too.
async fn opened(url: &str, filtered: &[&str]) -> (Database, Vec<String>) {
    let mut demanded: Vec<String> = Vec::new();
    loop {
        let names = filtered.iter().copied().chain(demanded.iter().map(String::as_str));
        let filters = names.map(|name| format!("{name}:tenant = {{tenant}}").parse().unwrap());
        let filters = filters.collect();
        let tenant = Some("a".to_owned());
        match Database::open(Options { filters, tenant, ..options(url) }).await {
            Ok(database) => {
                demanded.sort();
                return (database, demanded);
            }
            Err(Error::UnusableFilter { reason, .. }) => {
                let (name, _) = reason.split_once(" can show its other rows").unwrap();
                assert!(!demanded.contains(&name.to_owned()), "{reason}");
                demanded.push(name.to_owned());
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// Asserts that no relation that can be read shows a row of another tenant.
async fn shows_one_tenant(database: &Database) {
    for table in database.tables().await.unwrap() {
        let sql = format!("SELECT count(*) FROM {} WHERE tenant <> 'a'", table.name);
        match database.query(&sql, None).await {
            Ok(answer) => assert_eq!(answer.rows, [[0]], "{sql}"),
            Err(error) => assert_eq!(table.name, "broken", "{sql}: {error}"),
        }
    }
}

#[tokio::test]
async fn each_view_and_index_over_a_filtered_table_of_sqlite_needs_a_filter() {
    let file = File::with(SQLITE_SCHEMA).await;
    let (database, demanded) = opened(&file.path, &["ORDERS"]).await;
    assert_eq!(
        demanded,
        [
            "by_subquery",
            "constant",
            "counting",
            "deep",
            "existing",
            "found",
            "joined",
            "listed",
            "matching",
            "natural_join",
            "order_list",
            "over_join",
            "over_view",
            "plain",
            "texts"
        ]
    );
    shows_one_tenant(&database).await;
    // One that is added later is not read.
    let plain = sqlx::sqlite::SqliteConnectOptions::new().filename(&file.path);
    let mut plain = plain.connect().await.unwrap();
    plain.execute("CREATE VIEW late AS SELECT * FROM orders").await.unwrap();
    let refused = database.query("SELECT * FROM late", None).await.unwrap_err();
    assert!(matches!(refused, Error::Refused(_)), "{refused}");
    shows_one_tenant(&database).await;
    // A view may be left out, or shown in full on purpose.
    let own = "orders:tenant = 'a'".parse().unwrap();
    let all = "order_list:true".parse().unwrap();
    let filters = vec![own, all];
    let tables = ["orders", "order_list"].map(str::to_owned).into();
    let chosen = Options { tables, filters, ..options(&file.path) };
    let database = Database::open(chosen).await.unwrap();
    for (table, rows) in [("orders", 1), ("order_list", 2)] {
        let sql = format!("SELECT count(*) FROM {table}");
        assert_eq!(database.query(&sql, None).await.unwrap().rows, [[rows]], "{table}");
    }
    let (_, demanded) = opened(&file.path, &["products"]).await;
    assert_eq!(demanded, ["product_list"]);
}

#[tokio::test]
async fn each_view_and_relative_of_a_filtered_table_of_postgres_needs_a_filter() {
    let Some(server) = Server::with(POSTGRES_SCHEMA).await else { return };
    let (database, demanded) = opened(&server.url, &["orders", "events"]).await;
    assert_eq!(
        demanded,
        [
            "base",
            "by_subquery",
            "called",
            "listed",
            "of_child",
            "of_partition",
            "old_orders",
            "order_list",
            "stored",
        ]
    );
    shows_one_tenant(&database).await;
    let mut owner = server.owner().await;
    owner
        .execute("CREATE VIEW late AS SELECT * FROM orders; GRANT SELECT ON late TO PUBLIC")
        .await
        .unwrap();
    let refused = database.query("SELECT * FROM late", None).await.unwrap_err();
    assert!(matches!(refused, Error::Refused(_)), "{refused}");
    shows_one_tenant(&database).await;
    drop(database);
    let (database, demanded) = opened(&server.url, &["products"]).await;
    assert_eq!(demanded, ["called", "product_list"], "what a function reads is unknown");
    drop(database);
    owner.close().await.unwrap();
    server.drop().await;
}

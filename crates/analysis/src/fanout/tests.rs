//! Which aggregates over joins are called multiplied, and which ones give no warning.

use Verdict::{Multiplied, NotMultiplied, Undetermined};

use super::*;
use crate::sample::{catalogue, name};

/// The sample's catalogue with a view, whose keys are unknown.
fn with_view() -> Catalogue {
    let mut all = catalogue();
    let lines = all.tables.iter().find(|table| table.name.name == "lines").cloned().unwrap();
    let primary_key = Vec::new();
    all.tables.push(Table { name: name("seen"), is_view: true, primary_key, ..lines });
    all
}

fn found(sql: &str) -> Vec<Finding> {
    verdicts(sql, Dialect::Sqlite, &with_view())
}

/// A statement with one aggregate over a join, its verdict, and whether it gives a warning.
const VERDICTS: &[(&str, Verdict, bool)] = &[
    ("SELECT SUM(o.total) FROM orders o JOIN lines l ON l.order_id = o.id", Multiplied, true),
    (
        "SELECT c.country, SUM(o.total) FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY 1",
        NotMultiplied,
        false,
    ),
    (
        "SELECT SUM(l.quantity * p.price) FROM lines l, products p WHERE p.id = l.product_id",
        NotMultiplied,
        false,
    ),
    (
        "SELECT COUNT(c.id) FROM customers c LEFT JOIN orders o ON o.customer_id = c.id",
        Multiplied,
        true,
    ),
    (
        "SELECT SUM(o.total) FROM orders o JOIN (SELECT order_id, SUM(quantity) AS q FROM lines GROUP BY order_id) l ON l.order_id = o.id",
        NotMultiplied,
        false,
    ),
    (
        "SELECT SUM(o.total) FROM orders o JOIN lines l ON l.order_id = o.id AND l.line = 1",
        NotMultiplied,
        false,
    ),
    (
        "SELECT COUNT(f.id) FROM flights f JOIN airports a ON a.code = f.origin JOIN airports b ON b.code = f.destination",
        NotMultiplied,
        false,
    ),
    // A join inside, an aggregate outside.
    (
        "SELECT SUM(t) FROM (SELECT o.total AS t FROM orders o JOIN lines l ON l.order_id = o.id) q",
        Multiplied,
        true,
    ),
    (
        "WITH j AS (SELECT o.total, l.line FROM orders o JOIN lines l ON l.order_id = o.id) SELECT SUM(total) FROM j",
        Multiplied,
        true,
    ),
    (
        "WITH j AS (SELECT * FROM orders o JOIN lines l ON l.order_id = o.id), k AS (SELECT total AS t FROM j) SELECT AVG(k.t) FROM k",
        Multiplied,
        true,
    ),
    (
        "WITH j(a, b) AS (SELECT l.line, o.total FROM orders o JOIN lines l ON l.order_id = o.id) SELECT SUM(b) FROM j",
        Multiplied,
        true,
    ),
    // DISTINCT adds equal totals of two orders once.
    (
        "SELECT SUM(DISTINCT o.total) FROM orders o JOIN lines l ON l.order_id = o.id",
        Multiplied,
        true,
    ),
    // The condition of a CASE is not what is added.
    (
        "SELECT SUM(CASE WHEN l.line = 1 THEN o.total ELSE 0 END) FROM orders o JOIN lines l ON l.order_id = o.id",
        Multiplied,
        true,
    ),
    (
        "SELECT SUM((l.line = 1) * o.total) FROM orders o JOIN lines l ON l.order_id = o.id",
        Multiplied,
        true,
    ),
    (
        "SELECT SUM(CASE WHEN p.price IS NULL THEN 0 ELSE l.quantity END) FROM lines l JOIN products p ON p.id = l.product_id",
        NotMultiplied,
        false,
    ),
    (
        "SELECT SUM(CASE WHEN o.total > 5 THEN 1 ELSE 0 END) FROM orders o JOIN lines l ON l.order_id = o.id",
        Multiplied,
        true,
    ),
    // A WITH name that is that of a table it reads.
    (
        "WITH lines AS (SELECT o.id AS order_id, SUM(o.total) AS t FROM orders o JOIN lines l ON l.order_id = o.id GROUP BY o.id) SELECT SUM(t) FROM lines",
        Multiplied,
        true,
    ),
    // Other aggregates than sums.
    ("SELECT median(o.total) FROM orders o JOIN lines l ON l.order_id = o.id", Multiplied, true),
    (
        "SELECT json_group_array(o.total) FROM orders o JOIN lines l ON l.order_id = o.id",
        Multiplied,
        true,
    ),
    // Nothing connects the items, or nothing that is known.
    ("SELECT SUM(total) FROM orders, notes", Multiplied, true),
    ("SELECT SUM(o.total) FROM orders o CROSS JOIN lines", Multiplied, true),
    ("SELECT SUM(o.total) FROM orders o, lines l WHERE l.line = 1", Multiplied, true),
    (
        "SELECT SUM(o.total) FROM orders o JOIN (SELECT order_id FROM lines) l ON l.order_id = o.id",
        Multiplied,
        true,
    ),
    (
        "SELECT SUM(o.total) FROM orders o JOIN lines l ON l.order_id = o.id OR 1 = 0",
        Undetermined,
        true,
    ),
    ("SELECT SUM(o.total) FROM orders o JOIN lines l ON o.id = l.order_id + 0", Undetermined, true),
    // Only the catalogue knows too little: a count of the data decides, and nothing is said before.
    ("SELECT SUM(o.total) FROM orders o JOIN seen l ON l.order_id = o.id", Undetermined, false),
    // Joins that repeat no row.
    (
        "SELECT SUM(o.total) FROM orders o CROSS JOIN (SELECT MAX(price) AS p FROM products) m",
        NotMultiplied,
        false,
    ),
    (
        "WITH p AS (SELECT 1 AS least) SELECT SUM(o.total) FROM orders o, p WHERE o.total > p.least",
        NotMultiplied,
        false,
    ),
    (
        "SELECT SUM(o.total) FROM orders o JOIN (SELECT order_id, quantity FROM lines WHERE line = 1) l ON l.order_id = o.id",
        NotMultiplied,
        false,
    ),
    (
        "WITH e AS (SELECT o.id, c.country FROM orders o JOIN customers c ON c.id = o.customer_id) SELECT SUM(l.quantity) FROM lines l JOIN e ON e.id = l.order_id",
        NotMultiplied,
        false,
    ),
    (
        "SELECT SUM(o.total) FROM orders o JOIN (SELECT DISTINCT order_id FROM lines) l ON l.order_id = o.id",
        NotMultiplied,
        false,
    ),
    (
        "SELECT SUM(o.total) FROM orders o CROSS JOIN (SELECT price FROM products ORDER BY price LIMIT 1) p",
        NotMultiplied,
        false,
    ),
    (
        "SELECT SUM(o.total) FROM orders o JOIN (SELECT order_id, MAX(line) AS m FROM lines GROUP BY order_id) AS l(line, order_id) ON l.line = o.id",
        NotMultiplied,
        false,
    ),
    (
        "SELECT SUM(o.total) FROM orders o JOIN (SELECT order_id, MAX(line) AS m FROM lines GROUP BY order_id) AS l(line, order_id) ON l.order_id = o.id",
        Multiplied,
        true,
    ),
];

#[test]
fn the_rows_that_an_aggregate_counts_more_than_once_are_found_behind_every_form_of_a_join() {
    let mut wrong = Vec::new();
    for (sql, verdict, warns) in VERDICTS {
        let found = found(sql);
        let is_so = |one: &Finding| one.effect.verdict == *verdict && one.is_reported() == *warns;
        let multiplied = found.iter().filter(|one| one.effect.verdict != NotMultiplied);
        if !found.last().is_some_and(is_so) || multiplied.count() > 1 {
            wrong.push(format!("{sql}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// People ignore a warning that ordinary statements cause.
#[test]
fn correct_statements_give_no_warning() {
    for sql in [
        "SELECT COUNT(*) FROM orders o JOIN lines l ON l.order_id = o.id",
        "SELECT COUNT(DISTINCT o.id) FROM orders o JOIN lines l ON l.order_id = o.id",
        "SELECT MAX(o.total) FROM orders o JOIN lines l ON l.order_id = o.id",
        "SELECT group_concat(DISTINCT o.total) FROM orders o JOIN lines l ON l.order_id = o.id",
        "SELECT SUM(total) FROM orders",
        "SELECT SUM(DISTINCT total) FROM orders",
        "SELECT SUM(quantity), COUNT(DISTINCT id) FROM (SELECT o.id, l.quantity FROM orders o JOIN lines l ON l.order_id = o.id) q",
        "SELECT AVG(total) FROM (SELECT DISTINCT o.id, o.total FROM orders o JOIN lines l ON l.order_id = o.id) q",
        "WITH t AS (SELECT o.id, MAX(o.total) AS t FROM orders o JOIN lines l ON l.order_id = o.id GROUP BY o.id) SELECT SUM(t) FROM t",
        "SELECT SUM(total) FROM (SELECT o.total, ROW_NUMBER() OVER (PARTITION BY o.id ORDER BY l.line) AS n FROM orders o JOIN lines l ON l.order_id = o.id) q WHERE n = 1",
        "SELECT SUM(total) FROM (SELECT o.total, l.line FROM orders o JOIN lines l ON l.order_id = o.id) q WHERE line = 1",
        "SELECT c.name, (SELECT SUM(l.quantity) FROM lines l WHERE l.order_id = o.id) FROM orders o JOIN customers c ON c.id = o.customer_id",
        "SELECT SUM(o.total) FROM orders o WHERE EXISTS (SELECT 1 FROM lines l WHERE l.order_id = o.id)",
        "SELECT SUM(o.total) * 100.0 / (SELECT SUM(total) FROM orders) FROM orders o JOIN customers c ON c.id = o.customer_id",
        "WITH s AS (SELECT SUM(total) AS t FROM orders) SELECT c.country, SUM(o.total) / MAX(s.t) FROM orders o JOIN customers c ON c.id = o.customer_id CROSS JOIN s GROUP BY 1",
        "WITH RECURSIVE d(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM d WHERE n < 9) SELECT d.n, COUNT(o.id) FROM d LEFT JOIN orders o ON o.id = d.n GROUP BY d.n",
        "SELECT SUM(l.quantity * p.price - p.price) FROM lines l JOIN orders o ON o.id = l.order_id JOIN products p ON p.id = l.product_id",
    ] {
        assert_eq!(warnings(sql, Dialect::Sqlite, &with_view()), [] as [String; 0], "{sql}");
    }
    let lateral = "SELECT SUM(l.quantity) FROM lines l CROSS JOIN LATERAL (SELECT p.price FROM products p WHERE p.id = l.product_id) x";
    assert_eq!(warnings(lateral, Dialect::Postgres, &with_view()), [] as [String; 0]);
}

#[test]
fn each_finding_has_its_own_probe_with_the_queries_that_its_from_reads() {
    let probes = |sql: &str| -> Vec<String> {
        found(sql).into_iter().filter_map(|finding| finding.effect.probe).collect()
    };
    let inside = "WITH l AS (SELECT order_id FROM lines) SELECT SUM(o.total) FROM orders o JOIN l ON l.order_id = o.id WHERE o.total > 1";
    assert_eq!(
        probes(inside),
        [
            "WITH l AS (SELECT order_id FROM lines) SELECT SUM(n) AS joined_rows, COUNT(*) AS own_rows FROM (SELECT COUNT(\"o\".\"id\") AS n \
             FROM orders o JOIN l ON l.order_id = o.id WHERE o.total > 1 GROUP BY \"o\".\"id\") AS counted WHERE n > 0"
        ]
    );
    let two = probes(
        "SELECT SUM(l.quantity), SUM(o.total) FROM orders o JOIN lines l ON l.order_id = o.id JOIN flights f ON f.origin = o.total",
    );
    assert!(two[0].contains("GROUP BY \"l\".\"order_id\", \"l\".\"line\""), "{two:?}");
    assert!(two[1].contains("GROUP BY \"o\".\"id\""), "{two:?}");
    // The rows are those of the query inside, as long as the one around it takes them all.
    let outer = "SELECT SUM(t) FROM (SELECT o.total AS t FROM orders o JOIN lines l ON l.order_id = o.id) q";
    assert!(probes(outer)[0].contains("FROM orders o JOIN lines l"));
    assert_eq!(probes(&format!("{outer} WHERE t > 5")), [] as [String; 0]);
}

#[test]
fn a_shared_column_is_that_of_its_own_join_and_may_have_capital_letters() {
    let sql = "SELECT SUM(p.price) FROM orders o, customers c JOIN products p USING (id)";
    assert_eq!(found(sql)[0].effect.by, ["o"]);
    let mut all = catalogue();
    for table in &mut all.tables {
        match table.name.name.as_str() {
            "orders" => {
                table.columns[0].name = "orderId".into();
                table.primary_key = vec!["orderId".into()];
            }
            "lines" => table.columns[0].name = "orderId".into(),
            _ => {}
        }
    }
    let sql = "SELECT SUM(l.quantity) FROM lines l JOIN orders o USING (\"orderId\")";
    assert_eq!(verdicts(sql, Dialect::Postgres, &all)[0].effect.verdict, NotMultiplied);
}

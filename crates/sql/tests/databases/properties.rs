//! What is said of a statement before it runs, held against what running it shows.

use perihelion_analysis::fanout::{Verdict, verdicts};
use perihelion_analysis::guard::TableName;
use perihelion_analysis::limit::bounded;
use perihelion_analysis::{Catalogue, Column, Dialect, Table};
use sqlx::{AssertSqlSafe, Connection, Executor, Row, SqliteConnection};

use crate::reading::Draw;

/// A table of the generated schemas; every column holds small numbers.
fn table(name: &str, columns: &[&str], keys: Vec<Vec<String>>) -> Table {
    let mut keys = keys.into_iter();
    Table {
        name: TableName { schema: "main".into(), name: name.into(), unqualified: true },
        is_view: false,
        comment: None,
        columns: columns
            .iter()
            .map(|column| Column {
                name: (*column).into(),
                data_type: "INTEGER".into(),
                nullable: true,
                comment: None,
                values: Vec::new(),
            })
            .collect(),
        primary_key: keys.next().unwrap_or_default(),
        unique: keys.collect(),
        foreign_keys: Vec::new(),
    }
}

const COLUMNS: [&str; 3] = ["k", "r", "v"];

fn keys(draw: &mut Draw) -> Vec<Vec<String>> {
    let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    match draw.below(4) {
        0 => vec![],
        1 => vec![named(&["k"])],
        2 => vec![named(&["k", "r"])],
        _ => vec![named(&["k"]), named(&["r"])],
    }
}

fn create(table: &Table) -> String {
    let mut sql = format!("CREATE TABLE {} (k INTEGER, r INTEGER, v INTEGER", table.name.name);
    let keys = std::iter::once(&table.primary_key).chain(&table.unique);
    for key in keys.filter(|key| !key.is_empty()) {
        sql.push_str(&format!(", UNIQUE ({})", key.join(", ")));
    }
    sql + ")"
}

/// A table as it is, or a query of it under its name.
fn item(draw: &mut Draw, name: &str) -> String {
    let query = draw.of(&[
        "",
        "",
        "SELECT * FROM §",
        "SELECT DISTINCT k, r, v FROM §",
        "SELECT k, r, v FROM § WHERE r = 1",
        "SELECT k, MAX(r) AS r, MAX(v) AS v FROM § GROUP BY k",
        "SELECT MAX(k) AS k, MAX(r) AS r, MAX(v) AS v FROM §",
        "SELECT k, r, v FROM § LIMIT 1",
        "SELECT x.k, y.r, y.v FROM § x JOIN § y ON y.k = x.r",
        "WITH a AS (SELECT v AS k, k AS r, r AS v FROM §) SELECT * FROM a",
    ]);
    let query = query.replace('§', name);
    if query.is_empty() { name.to_owned() } else { format!("({query}) AS {name}") }
}

/// FROM and WHERE of a join of some of the tables; the first is itself.
fn join(draw: &mut Draw) -> (String, Vec<&'static str>) {
    let names = ["a", "b", "c"];
    let count = 2 + draw.below(2);
    let mut from = "a".to_owned();
    let condition = |draw: &mut Draw, at: usize| {
        let name = names[at];
        let mut parts = Vec::new();
        for _ in 0..=draw.below(2) {
            let column = draw.of(&COLUMNS);
            parts.push(match draw.below(4) {
                0 => format!("{name}.{column} = {}", draw.below(3)),
                1 => format!("{name}.{column} > {}", draw.below(3)),
                _ => format!("{name}.{column} = {}.{}", names[draw.below(at)], draw.of(&COLUMNS)),
            });
        }
        parts.join(if draw.below(5) == 0 { " OR " } else { " AND " })
    };
    for (at, name) in names.iter().enumerate().take(count).skip(1) {
        let kind = draw.of(&["JOIN", "LEFT JOIN", "CROSS JOIN", "JOIN"]);
        let on = if kind == "CROSS JOIN" {
            String::new()
        } else if draw.below(6) == 0 {
            " USING (k)".to_owned()
        } else {
            format!(" ON {}", condition(draw, at))
        };
        let item = item(draw, name);
        from.push_str(&format!(" {kind} {item}{on}"));
    }
    if draw.below(2) == 0 {
        from.push_str(&format!(" WHERE {}", condition(draw, count - 1)));
    }
    (from, names[..count].to_vec())
}

/// S4.05: "not multiplied" is never said of a sum in which some row is counted twice.
#[tokio::test]
async fn rows_are_called_unmultiplied_only_if_running_the_query_confirms_it() {
    let mut sure = 0;
    for seed in 0..400 {
        let mut draw = Draw(seed);
        let tables: Vec<Table> =
            ["a", "b", "c"].map(|name| table(name, &COLUMNS, keys(&mut draw))).into();
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        for table in &tables {
            connection.execute(AssertSqlSafe(create(table))).await.unwrap();
            for _ in 0..8 {
                let value = |draw: &mut Draw| match draw.below(5) {
                    4 => "NULL".to_owned(),
                    number => number.to_string(),
                };
                let k = value(&mut draw);
                let r = value(&mut draw);
                let v = value(&mut draw);
                let insert =
                    format!("INSERT OR IGNORE INTO {} VALUES ({k}, {r}, {v})", table.name.name);
                connection.execute(AssertSqlSafe(insert)).await.unwrap();
            }
        }
        let catalogue = Catalogue { tables };
        for _ in 0..6 {
            let (from, names) = join(&mut draw);
            // A query has no rows of its own to count.
            let own: Vec<&str> =
                names.into_iter().filter(|name| !from.contains(&format!(") AS {name}"))).collect();
            let owner = own[draw.below(own.len())];
            let sql = format!("SELECT SUM({owner}.v) FROM {from}");
            let findings = verdicts(&sql, Dialect::Sqlite, &catalogue);
            let Some(finding) = findings.first() else { panic!("seed {seed}: {sql}") };
            let verdict = finding.effect.verdict;
            for (before, after) in
                [("SELECT SUM(t) FROM (", ") q"), ("WITH q AS (", ") SELECT SUM(t) FROM q")]
            {
                let outer = format!("{before}SELECT {owner}.v AS t FROM {from}{after}");
                let found = verdicts(&outer, Dialect::Sqlite, &catalogue);
                let of_sum = found.iter().find(|one| one.aggregate == "SUM(t)");
                let inside = of_sum.map_or(Verdict::NotMultiplied, |one| one.effect.verdict);
                assert_eq!(inside, verdict, "seed {seed}: {outer}: {found:?}");
            }
            if verdict != Verdict::NotMultiplied {
                continue;
            }
            sure += 1;
            let most = format!(
                "SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM {from} GROUP BY {owner}.rowid HAVING {owner}.rowid IS NOT NULL)"
            );
            let most: i64 =
                sqlx::query_scalar(AssertSqlSafe(most)).fetch_one(&mut connection).await.unwrap();
            let made: Vec<String> = catalogue.tables.iter().map(create).collect();
            assert!(
                most <= 1,
                "seed {seed}: {sql} counts a row {most} times: {finding:?} {made:?}"
            );
        }
    }
    assert!(sure > 100, "only {sure} statements were called not multiplied");
}

/// A bounded statement yields the first rows of what it would have yielded.
#[tokio::test]
async fn a_bound_returns_exactly_the_first_rows() {
    let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
    connection
        .execute("CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30) SELECT i FROM n")
        .await
        .unwrap();
    for seed in 0..500 {
        let mut draw = Draw(seed);
        let inner = draw.of(&[
            "SELECT i FROM t ORDER BY i",
            "SELECT i FROM t WHERE i > 4 UNION SELECT i + 1 FROM t ORDER BY 1",
            "SELECT i FROM (SELECT i FROM t ORDER BY i LIMIT 12) ORDER BY i",
            "WITH x AS (SELECT i FROM t ORDER BY i LIMIT 7) SELECT i FROM x ORDER BY i DESC",
        ]);
        let number = draw.below(20);
        let limit = match draw.below(6) {
            0 => String::new(),
            1 => format!(" LIMIT {number}"),
            2 => " LIMIT -1".to_owned(),
            3 => format!(" LIMIT {}, {number}", draw.below(5)),
            4 => format!(" LIMIT {number} OFFSET {}", draw.below(5)),
            _ => format!(" LIMIT (SELECT {number})"),
        };
        let sql = format!("{inner}{limit}");
        let most = draw.below(15);
        let whole = rows(&mut connection, &sql).await;
        let some = rows(&mut connection, &bounded(&sql, Dialect::Sqlite, most)).await;
        assert_eq!(some, whole[..most.min(whole.len())], "seed {seed}: {sql} within {most}");
    }
}

async fn rows(connection: &mut SqliteConnection, sql: &str) -> Vec<i64> {
    let rows = sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(connection).await;
    let rows = rows.unwrap_or_else(|error| panic!("{sql}: {error}"));
    rows.iter().map(|row| row.get(0)).collect()
}

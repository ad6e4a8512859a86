//! The places where a query can stand: the operator's filter is in each, or the statement is refused.

use sqlparser::ast::{Select, TableFactor};

use super::accepted_tests::ACCEPTED;
use super::cases_tests::policy;
use super::*;

/// A condition that no statement here has.
const FILTER: &str = "7 = 7";

/// The query that replaces `§`.
const QUERY: &str = "(SELECT max(length(name)) FROM zones)";

/// `S`: SQLite, `P`: Postgres, `B`: both, `T`: SQL Server.
const PLACES: &[(char, &str)] = &[
    ('B', "SELECT § AS x"),
    ('B', "SELECT max(§) FROM transitions"),
    ('B', "SELECT CASE § WHEN 1 THEN § ELSE § END"),
    ('B', "SELECT CAST(§ AS TEXT), - §, (§), § + 1, § IS NULL"),
    ('B', "SELECT zone FROM transitions WHERE offset_after BETWEEN § AND § AND zone LIKE §"),
    (
        'B',
        "SELECT zone FROM transitions WHERE offset_after IN § OR offset_after IN (1, §) OR EXISTS §",
    ),
    ('B', "SELECT zone FROM transitions GROUP BY zone, § HAVING count(*) > § ORDER BY zone, §"),
    ('B', "SELECT zone FROM transitions LIMIT § OFFSET §"),
    ('B', "SELECT q.x FROM (SELECT § AS x) q JOIN transitions ON § = 1"),
    ('B', "WITH c AS (SELECT § AS x) SELECT x FROM c UNION SELECT §"),
    (
        'B',
        "WITH RECURSIVE n(i) AS (SELECT § UNION ALL SELECT i + § FROM n WHERE i < 3) SELECT i FROM n",
    ),
    ('B', "SELECT max(zone) FILTER (WHERE offset_after = §) FROM transitions"),
    ('B', "SELECT count(*) OVER (PARTITION BY § ORDER BY §) FROM transitions"),
    (
        'B',
        "SELECT count(*) OVER (ORDER BY zone ROWS BETWEEN § PRECEDING AND § FOLLOWING) FROM transitions",
    ),
    ('B', "SELECT count(*) OVER w FROM transitions WINDOW w AS (PARTITION BY § ORDER BY §)"),
    ('B', "SELECT count(*) OVER w FROM transitions WINDOW w AS (ORDER BY zone ROWS § PRECEDING)"),
    (
        'B',
        "SELECT count(*) OVER w FROM transitions WINDOW w AS (ORDER BY zone ROWS BETWEEN § PRECEDING AND § FOLLOWING EXCLUDE TIES)",
    ),
    (
        'B',
        "SELECT count(*) OVER (w ROWS § PRECEDING) FROM transitions WINDOW w AS (ORDER BY §), v AS (w)",
    ),
    ('B', "VALUES (§), (2)"),
    ('P', "SELECT DISTINCT ON (§) zone FROM transitions"),
    ('P', "SELECT zone FROM transitions WHERE offset_after = ANY (§) OR offset_after > ALL (§)"),
    ('P', "SELECT ARRAY§, ARRAY[§], (ARRAY[1, 2])[§], ROW(1, §)"),
    (
        'P',
        "SELECT string_agg(zone, ',' ORDER BY §), percentile_cont(0.5) WITHIN GROUP (ORDER BY §) FROM transitions",
    ),
    ('P', "SELECT count(*) FROM transitions GROUP BY GROUPING SETS ((zone, §), ())"),
    ('P', "SELECT * FROM generate_series(1, §) AS g(i), unnest(ARRAY[§]) AS u(x)"),
    ('P', "SELECT * FROM transitions t, LATERAL (SELECT § AS x WHERE t.zone = 'a') l"),
    (
        'P',
        "SELECT substring('abc' FROM §), position('a' IN §::text), extract(YEAR FROM §::text::date)",
    ),
    (
        'P',
        "SELECT overlay('abc' PLACING 'x' FROM §), trim(BOTH 'x' FROM §::text), now() AT TIME ZONE §::text",
    ),
    ('P', "SELECT § IS DISTINCT FROM 1, §::text COLLATE \"C\", '[1]'::jsonb -> §"),
    ('T', "SELECT TOP (§) z.zone FROM transitions z CROSS APPLY (SELECT § AS x) y"),
];

/// Counts the tables that are named, and the queries that an operator's filter made.
#[derive(Default)]
struct Tables {
    named: usize,
    filtered: usize,
}

impl Visitor for Tables {
    type Break = Infallible;

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Infallible> {
        if let TableFactor::Table { name, args: None, .. } = factor {
            let last = name.0.last().and_then(|part| part.as_ident());
            let is_known = |known: &Permitted| {
                last.is_some_and(|last| last.value.eq_ignore_ascii_case(&known.name.name))
            };
            self.named += usize::from(policy().tables.iter().any(is_known));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Infallible> {
        let is_filter =
            |condition: &sqlparser::ast::Expr| condition.to_string() == format!("({FILTER})");
        self.filtered += usize::from(select.selection.as_ref().is_some_and(is_filter));
        ControlFlow::Continue(())
    }
}

/// S2.05: a query that the guard does not reach would run as the model wrote it.
#[test]
fn the_row_filter_is_in_every_query_wherever_it_stands() {
    let mut filtered = policy();
    filtered.tables.iter_mut().for_each(|table| table.filter = Some(FILTER.into()));
    let mut wrong = Vec::new();
    let places = PLACES.iter().map(|(dialects, sql)| (*dialects, sql.replace('§', QUERY), true));
    let others = ACCEPTED.iter().map(|(dialects, sql)| (*dialects, (*sql).to_owned(), false));
    for (dialects, sql, must_run) in places.chain(others) {
        let dialects: &[Dialect] = match dialects {
            'S' => &[Dialect::Sqlite],
            'P' => &[Dialect::Postgres],
            'T' => &[Dialect::TSql],
            _ => &[Dialect::Sqlite, Dialect::Postgres],
        };
        for dialect in dialects {
            let written = match guard(&sql, *dialect, &filtered) {
                Ok(written) => written,
                Err(error) if must_run => {
                    wrong.push(format!("{dialect:?}: {sql} → {error}"));
                    continue;
                }
                Err(_) => continue,
            };
            let mut tables = Tables::default();
            let statement = parse_generated(written.query(), *dialect).unwrap();
            let ControlFlow::Continue(()) = statement.visit(&mut tables);
            if tables.named != tables.filtered || (must_run && tables.named == 0) {
                wrong.push(format!("{dialect:?}: {sql} → {}", written.as_str()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_row_filter_is_one_condition_and_nothing_behind_it() {
    let sql = "SELECT 1 FROM zones";
    let mut filtered = policy();
    for (filter, is_one) in [
        ("name = 'a' OR country = 'b'", true),
        ("1 = 1) OR (name = 'a'", true),
        ("1 = 1) GROUP BY (name", false),
        ("1 = 1) ORDER BY (name", false),
        ("1 = 1) UNION SELECT * FROM zones WHERE (1 = 1", false),
    ] {
        filtered.tables[0].filter = Some(filter.into());
        for dialect in [Dialect::Sqlite, Dialect::Postgres, Dialect::TSql] {
            let guarded = guard(sql, dialect, &filtered);
            assert_eq!(guarded.is_ok(), is_one, "{dialect:?}: {filter}: {guarded:?}");
        }
    }
}

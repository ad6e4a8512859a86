//! Limits the rows of a statement, by the limit of its own outermost query.
//!
//! Enter at [`bounded`]. Invariant: the rows are the first ones of the original statement. A limit within a UNION's
//! arm, a subquery or a `WITH` query is not the statement's own; `LIMIT -1`, `LIMIT ALL` and `LIMIT NULL` are no
//! limits.

use sqlparser::ast::{
    Expr, Fetch, LimitClause, Query, Select, SetExpr, Statement, TableFactor, Top, TopQuantity,
    UnaryOperator, Value,
};

use crate::on_large_stack;
use crate::{Dialect, clauses, guard};

/// Returns the statement with at most `most` rows; text that is no single query comes back as it is.
pub fn bounded(sql: &str, dialect: Dialect, most: usize) -> String {
    on_large_stack(|| written(sql, dialect, most))
}

fn written(sql: &str, dialect: Dialect, most: usize) -> String {
    let Ok(Statement::Query(mut query)) = guard::parse_generated(sql, dialect) else {
        return sql.to_owned();
    };
    let bound = bound(&mut query, dialect, most);
    let written = bound.and_then(|()| clauses::written(&mut Statement::Query(query)));
    written.unwrap_or_else(|| wrapped(sql, dialect, most))
}

/// Sets the limit in place; returns `None` if the query's own cannot be compared.
fn bound(query: &mut Query, dialect: Dialect, most: usize) -> Option<()> {
    if let Some(fetch) = &mut query.fetch {
        return bound_fetch(fetch, most);
    }
    if dialect == Dialect::TSql {
        return bound_tsql(query, most);
    }
    // SQLite takes no LIMIT after VALUES.
    if dialect == Dialect::Sqlite && ends_in_values(&query.body) {
        return None;
    }
    match &mut query.limit_clause {
        Some(LimitClause::LimitOffset { limit, .. }) => {
            let rows = limit.as_ref().map_or(Some(most), |own| smaller(own, dialect, most))?;
            *limit = Some(number(rows));
        }
        Some(LimitClause::OffsetCommaLimit { limit, .. }) => {
            *limit = number(smaller(limit, dialect, most)?);
        }
        none => {
            let limit = Some(number(most));
            *none = Some(LimitClause::LimitOffset { limit, offset: None, limit_by: Vec::new() });
        }
    }
    Some(())
}

fn ends_in_values(body: &SetExpr) -> bool {
    match body {
        SetExpr::Values(_) => true,
        SetExpr::SetOperation { right, .. } => ends_in_values(right),
        _ => false,
    }
}

fn bound_fetch(fetch: &mut Fetch, most: usize) -> Option<()> {
    if fetch.percent || fetch.with_ties {
        return None;
    }
    let own = fetch.quantity.as_ref();
    let rows = own.map_or(Some(most.min(1)), |own| smaller(own, Dialect::TSql, most))?;
    fetch.quantity = Some(number(rows));
    Some(())
}

fn bound_tsql(query: &mut Query, most: usize) -> Option<()> {
    if query.limit_clause.is_some() {
        // An OFFSET without FETCH; SQL Server allows no TOP beside it.
        query.fetch =
            Some(Fetch { with_ties: false, percent: false, quantity: Some(number(most)) });
        return Some(());
    }
    match query.body.as_mut() {
        // The clauses around it, WITH and ORDER BY, are not allowed within parentheses.
        SetExpr::SetOperation { .. } => bound_arms(query, most),
        SetExpr::Select(select) => bound_top(select, most).or_else(|| bound_arms(query, most)),
        _ => None,
    }
}

fn bound_top(select: &mut Select, most: usize) -> Option<()> {
    let rows = match &select.top {
        None => most,
        Some(top) if top.percent || top.with_ties => return None,
        Some(top) => match top.quantity.as_ref()? {
            TopQuantity::Constant(rows) => most.min(usize::try_from(*rows).ok()?),
            TopQuantity::Expr(expr) => smaller(expr, Dialect::TSql, most)?,
        },
    };
    let quantity = Some(TopQuantity::Constant(u64::try_from(rows).unwrap_or(u64::MAX)));
    select.top = Some(Top { with_ties: false, percent: false, quantity });
    Some(())
}

/// Selects the first rows of a UNION or another operation on arms, or of a TOP that cannot be compared, which keeps its order.
fn bound_arms(query: &mut Query, most: usize) -> Option<()> {
    let wrapping = wrapped("SELECT 1", Dialect::TSql, most);
    let Ok(Statement::Query(mut wrapping)) = guard::parse(&wrapping, Dialect::TSql) else {
        return None;
    };
    let SetExpr::Select(select) = wrapping.body.as_mut() else { return None };
    let TableFactor::Derived { subquery, .. } = &mut select.from.first_mut()?.relation else {
        return None;
    };
    std::mem::swap(&mut subquery.body, &mut query.body);
    if let SetExpr::Select(_) = subquery.body.as_ref() {
        subquery.order_by = query.order_by.take();
    }
    query.body = wrapping.body;
    Some(())
}

/// Returns the smaller of a query's own limit and `most`; `None` if the own one is computed.
fn smaller(limit: &Expr, dialect: Dialect, most: usize) -> Option<usize> {
    match limit {
        Expr::Nested(inner) => smaller(inner, dialect, most),
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) => text.parse().ok().map(|rows: usize| rows.min(most)),
            Value::Null => Some(most),
            _ => None,
        },
        // A negative limit is none in SQLite.
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } if dialect == Dialect::Sqlite => {
            smaller(expr, dialect, most).map(|rows| if rows == 0 { 0 } else { most })
        }
        _ => None,
    }
}

fn number(value: usize) -> Expr {
    Expr::Value(Value::Number(value.to_string(), false).into())
}

fn wrapped(sql: &str, dialect: Dialect, most: usize) -> String {
    let sql = sql.trim().trim_end_matches(';');
    let name = dialect.quote("bounded");
    match dialect {
        Dialect::TSql => format!("SELECT TOP {most} * FROM ({sql}) AS {name}"),
        _ => format!("SELECT * FROM ({sql}) AS {name} LIMIT {most}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outermost_limit_is_the_smaller_of_the_query_limit_and_the_bound() {
        for (sql, expected) in [
            ("SELECT a FROM t", "SELECT a FROM t LIMIT 11"),
            ("SELECT a FROM t LIMIT 5", "SELECT a FROM t LIMIT 5"),
            ("SELECT a FROM t LIMIT 500", "SELECT a FROM t LIMIT 11"),
            ("SELECT a FROM t LIMIT -1", "SELECT a FROM t LIMIT 11"),
            ("VALUES (1), (2)", "SELECT * FROM (VALUES (1), (2)) AS \"bounded\" LIMIT 11"),
            (
                "SELECT 1 UNION VALUES (2)",
                "SELECT * FROM (SELECT 1 UNION VALUES (2)) AS \"bounded\" LIMIT 11",
            ),
            ("SELECT a FROM t LIMIT 5, 100", "SELECT a FROM t LIMIT 5, 11"),
            ("SELECT a FROM t LIMIT 100 OFFSET 7", "SELECT a FROM t LIMIT 11 OFFSET 7"),
            (
                "SELECT a FROM t UNION SELECT b FROM u ORDER BY 1 LIMIT 99",
                "SELECT a FROM t UNION SELECT b FROM u ORDER BY 1 LIMIT 11",
            ),
            (
                "SELECT * FROM (SELECT a FROM t LIMIT 3) AS x",
                "SELECT * FROM (SELECT a FROM t LIMIT 3) AS x LIMIT 11",
            ),
            (
                "SELECT a FROM t LIMIT (SELECT 9)",
                "SELECT * FROM (SELECT a FROM t LIMIT (SELECT 9)) AS \"bounded\" LIMIT 11",
            ),
        ] {
            assert_eq!(bounded(sql, Dialect::Sqlite, 11), expected, "{sql}");
        }
        assert_eq!(
            bounded("SELECT a FROM t LIMIT ALL", Dialect::Postgres, 11),
            "SELECT a FROM t LIMIT 11"
        );
        assert_eq!(
            bounded("SELECT a FROM t FETCH FIRST 99 ROWS ONLY", Dialect::Postgres, 11),
            "SELECT a FROM t FETCH FIRST 11 ROWS ONLY"
        );
    }

    #[test]
    fn sql_server_s_top_offset_and_unions_are_bounded_as_it_allows() {
        for (sql, expected) in [
            ("SELECT a FROM t ORDER BY a", "SELECT TOP 11 a FROM t ORDER BY a"),
            ("SELECT TOP 5 a FROM t", "SELECT TOP 5 a FROM t"),
            ("SELECT TOP 50 a FROM t", "SELECT TOP 11 a FROM t"),
            (
                "SELECT TOP 10 PERCENT a FROM t",
                "SELECT TOP 11 * FROM (SELECT TOP 10 PERCENT a FROM t) AS [bounded]",
            ),
            (
                "WITH c AS (SELECT 1 AS a) SELECT TOP 10 PERCENT a FROM c ORDER BY a OPTION (MAXRECURSION 9)",
                "WITH c AS (SELECT 1 AS a) SELECT TOP 11 * FROM (SELECT TOP 10 PERCENT a FROM c ORDER BY a) AS [bounded] \
                 OPTION (MAXRECURSION 9)",
            ),
            (
                "SELECT a FROM t UNION SELECT b FROM u",
                "SELECT TOP 11 * FROM (SELECT a FROM t UNION SELECT b FROM u) AS [bounded]",
            ),
            (
                "WITH c AS (SELECT 1 AS a) SELECT a FROM c UNION SELECT b FROM u ORDER BY 1 OPTION (MAXRECURSION 0);",
                "WITH c AS (SELECT 1 AS a) SELECT TOP 11 * FROM (SELECT a FROM c UNION SELECT b FROM u) AS [bounded] \
                 ORDER BY 1 OPTION (MAXRECURSION 0)",
            ),
            (
                "SELECT a FROM t ORDER BY a OFFSET 5 ROWS",
                "SELECT a FROM t ORDER BY a OFFSET 5 ROWS FETCH FIRST 11 ROWS ONLY",
            ),
        ] {
            assert_eq!(bounded(sql, Dialect::TSql, 11), expected, "{sql}");
        }
    }
}

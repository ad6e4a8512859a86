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
    let written = bound.then(|| clauses::written(&mut Statement::Query(query))).flatten();
    written.unwrap_or_else(|| wrapped(sql, dialect, most))
}

/// Sets the limit in place; returns false if the query's own cannot be compared.
fn bound(query: &mut Query, dialect: Dialect, most: usize) -> bool {
    if let Some(fetch) = &mut query.fetch {
        return bound_fetch(fetch, most);
    }
    if dialect == Dialect::TSql {
        return bound_tsql(query, most);
    }
    // SQLite takes no LIMIT after VALUES.
    if dialect == Dialect::Sqlite && ends_in_values(&query.body) {
        return false;
    }
    let limit = match &mut query.limit_clause {
        Some(LimitClause::LimitOffset { limit, .. }) => limit,
        Some(LimitClause::OffsetCommaLimit { limit, .. }) => {
            return match own(limit, dialect) {
                Own::Rows(rows) => {
                    if rows > most {
                        *limit = number(most);
                    }
                    true
                }
                Own::Unlimited => {
                    *limit = number(most);
                    true
                }
                Own::Unknown => false,
            };
        }
        None => {
            query.limit_clause = Some(LimitClause::LimitOffset {
                limit: Some(number(most)),
                offset: None,
                limit_by: Vec::new(),
            });
            return true;
        }
    };
    match limit.as_ref().map_or(Own::Unlimited, |limit| own(limit, dialect)) {
        Own::Rows(rows) if rows <= most => true,
        Own::Rows(_) | Own::Unlimited => {
            *limit = Some(number(most));
            true
        }
        Own::Unknown => false,
    }
}

fn ends_in_values(body: &SetExpr) -> bool {
    match body {
        SetExpr::Values(_) => true,
        SetExpr::SetOperation { right, .. } => ends_in_values(right),
        _ => false,
    }
}

fn bound_fetch(fetch: &mut Fetch, most: usize) -> bool {
    if fetch.percent || fetch.with_ties {
        return false;
    }
    let rows =
        fetch.quantity.as_ref().map_or(Own::Rows(1), |quantity| own(quantity, Dialect::TSql));
    match rows {
        Own::Rows(rows) => {
            if rows > most {
                fetch.quantity = Some(number(most));
            }
            true
        }
        _ => false,
    }
}

fn bound_tsql(query: &mut Query, most: usize) -> bool {
    if query.limit_clause.is_some() {
        // An OFFSET without FETCH; SQL Server allows no TOP beside it.
        query.fetch =
            Some(Fetch { with_ties: false, percent: false, quantity: Some(number(most)) });
        return true;
    }
    if let SetExpr::SetOperation { .. } = query.body.as_ref() {
        // What stands before and after it, WITH and ORDER BY, is not allowed within parentheses.
        return bound_arms(query, most);
    }
    let SetExpr::Select(select) = query.body.as_mut() else { return false };
    let is_bound = bound_top(select, most);
    is_bound || bound_arms(query, most)
}

fn bound_top(select: &mut Select, most: usize) -> bool {
    match &mut select.top {
        None => {
            let quantity = Some(TopQuantity::Constant(u64::try_from(most).unwrap_or(u64::MAX)));
            select.top = Some(Top { with_ties: false, percent: false, quantity });
            true
        }
        Some(top) if top.percent || top.with_ties => false,
        Some(top) => {
            let rows = match &top.quantity {
                Some(TopQuantity::Constant(rows)) => usize::try_from(*rows).ok(),
                Some(TopQuantity::Expr(expr)) => match own(expr, Dialect::TSql) {
                    Own::Rows(rows) => Some(rows),
                    _ => None,
                },
                None => None,
            };
            let Some(rows) = rows else { return false };
            if rows > most {
                top.quantity = Some(TopQuantity::Constant(u64::try_from(most).unwrap_or(u64::MAX)));
            }
            true
        }
    }
}

/// Selects the first rows of a UNION or another operation on arms, or of a TOP that cannot be compared, which keeps its order.
fn bound_arms(query: &mut Query, most: usize) -> bool {
    let wrapping = wrapped("SELECT 1", Dialect::TSql, most);
    let Ok(Statement::Query(mut wrapping)) = guard::parse(&wrapping, Dialect::TSql) else {
        return false;
    };
    if let SetExpr::Select(select) = wrapping.body.as_mut()
        && let Some(TableFactor::Derived { subquery, .. }) =
            select.from.first_mut().map(|from| &mut from.relation)
    {
        std::mem::swap(&mut subquery.body, &mut query.body);
        if let SetExpr::Select(_) = subquery.body.as_ref() {
            subquery.order_by = query.order_by.take();
        }
        query.body = wrapping.body;
        return true;
    }
    false
}

enum Own {
    Rows(usize),
    Unlimited,
    /// It is computed.
    Unknown,
}

fn own(limit: &Expr, dialect: Dialect) -> Own {
    match limit {
        Expr::Nested(inner) => own(inner, dialect),
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) => text.parse().map_or(Own::Unknown, Own::Rows),
            Value::Null => Own::Unlimited,
            _ => Own::Unknown,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } if dialect == Dialect::Sqlite => {
            match own(expr, dialect) {
                Own::Rows(0) => Own::Rows(0),
                Own::Rows(_) => Own::Unlimited,
                other => other,
            }
        }
        _ => Own::Unknown,
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

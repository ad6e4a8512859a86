//! The permitted forms of a query, an expression and an operator. Lists of the permitted: a construct that a newer
//! parser learns stays refused until someone looked at it.

use sqlparser::ast::{
    AccessExpr, CastKind, Expr, Function, FunctionArgumentClause, FunctionArguments, GroupByExpr,
    Join, JoinOperator, LimitClause, NamedWindowExpr, OrderBy, OrderByExpr, OrderByKind,
    OrderBySort, Query, Select, SelectFlavor, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    Statement, TableAlias, TableSampleKind, UnaryOperator, Value, WildcardAdditionalOptions,
    WindowType,
};

use super::functions::{called, may_call};
use super::kinds::{is_allowed_operator, plain_type};
use super::{Policy, Refusal};
use crate::Dialect;
use crate::clauses::{Recursion, is_hint};
use crate::syntax::lists;

type Checked = Result<(), Refusal>;

fn refuse(what: impl Into<String>) -> Checked {
    Err(Refusal::Construct(what.into()))
}

fn require(is_met: bool, what: &str) -> Checked {
    if is_met { Ok(()) } else { refuse(what) }
}

pub fn first_word(statement: &Statement) -> String {
    let text = statement.to_string();
    text.split_whitespace().next().unwrap_or("an empty statement").to_uppercase()
}

pub fn query(query: &Query, dialect: Dialect) -> Checked {
    let Query { with, body, order_by, limit_clause, fetch: _, locks, for_clause, .. } = query;
    for cte in with.iter().flat_map(|with| &with.cte_tables) {
        require(cte.from.is_none() || Recursion::of(cte).is_some(), "FROM after a WITH query")?;
        alias(&cte.alias, dialect)?;
    }
    set(body)?;
    require(order_by.as_ref().is_none_or(plain_order), "ORDER BY ALL, INTERPOLATE or USING")?;
    if let Some(LimitClause::LimitOffset { limit_by, .. }) = limit_clause {
        require(limit_by.is_empty(), "LIMIT BY")?;
    }
    require(locks.is_empty(), "FOR UPDATE or FOR SHARE")?;
    require(for_clause.is_none(), "FOR XML or FOR JSON")?;
    require(query.settings.is_none(), "SETTINGS")?;
    require(query.format_clause.as_ref().is_none_or(is_hint), "FORMAT")?;
    require(query.pipe_operators.is_empty(), "a pipe operator")
}

fn plain_order(order: &OrderBy) -> bool {
    order.interpolate.is_none()
        && matches!(&order.kind, OrderByKind::Expressions(list) if list.iter().all(plain_sort))
}

/// `ORDER BY x USING operator` calls a user-defined function.
fn plain_sort(order: &OrderByExpr) -> bool {
    order.with_fill.is_none() && !matches!(order.options.sort, Some(OrderBySort::Using(_)))
}

/// Checks the arms of a `UNION` tree; the queries inside parentheses are visited on their own.
fn set(body: &SetExpr) -> Checked {
    match body {
        SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::Values(_) => Ok(()),
        SetExpr::SetOperation { left, right, .. } => {
            set(left)?;
            set(right)
        }
        SetExpr::Insert(_) => refuse("INSERT"),
        SetExpr::Update(_) => refuse("UPDATE"),
        SetExpr::Delete(_) => refuse("DELETE"),
        SetExpr::Merge(_) => refuse("MERGE"),
        SetExpr::Table(_) => refuse("TABLE; write SELECT * FROM"),
    }
}

pub fn select(select: &Select, dialect: Dialect) -> Checked {
    require(select.into.is_none(), "SELECT INTO")?;
    require(select.flavor == SelectFlavor::Standard, "FROM before SELECT")?;
    require(select.top.is_none() || dialect == Dialect::TSql, "TOP; write LIMIT")?;
    require(select.optimizer_hints.is_empty(), "an optimizer hint")?;
    require(select.select_modifiers.is_none(), "a SELECT modifier")?;
    require(select.exclude.is_none(), "EXCLUDE")?;
    require(select.lateral_views.is_empty(), "LATERAL VIEW")?;
    require(select.prewhere.is_none(), "PREWHERE")?;
    require(select.connect_by.is_empty(), "CONNECT BY")?;
    require(select.cluster_by.is_empty(), "CLUSTER BY")?;
    require(select.distribute_by.is_empty(), "DISTRIBUTE BY")?;
    require(select.sort_by.is_empty(), "SORT BY")?;
    require(select.qualify.is_none(), "QUALIFY")?;
    require(select.value_table_mode.is_none(), "SELECT AS")?;
    match &select.group_by {
        GroupByExpr::Expressions(_, modifiers) if modifiers.is_empty() => {}
        _ => return refuse("GROUP BY ALL or a GROUP BY modifier"),
    }
    for definition in &select.named_window {
        if let NamedWindowExpr::WindowSpec(spec) = &definition.1 {
            require(spec.order_by.iter().all(plain_sort), "ORDER BY USING")?;
        }
    }
    select.projection.iter().try_for_each(item)?;
    select.from.iter().flat_map(|from| &from.joins).try_for_each(|one| join(one, dialect))
}

fn item(item: &SelectItem) -> Checked {
    let plain =
        |options: &WildcardAdditionalOptions| *options == WildcardAdditionalOptions::default();
    match item {
        SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. } => Ok(()),
        SelectItem::Wildcard(options) if plain(options) => Ok(()),
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(_), options)
            if plain(options) =>
        {
            Ok(())
        }
        other => refuse(other.to_string()),
    }
}

pub fn join(join: &Join, dialect: Dialect) -> Checked {
    use JoinOperator as J;
    let known = matches!(
        join.join_operator,
        J::Join(_)
            | J::Inner(_)
            | J::Left(_)
            | J::LeftOuter(_)
            | J::Right(_)
            | J::RightOuter(_)
            | J::FullOuter(_)
            | J::CrossJoin(_)
    ) || (dialect == Dialect::TSql
        && matches!(join.join_operator, J::CrossApply | J::OuterApply));
    require(known && !join.global, "this kind of JOIN")
}

pub fn alias(alias: &TableAlias, dialect: Dialect) -> Checked {
    require(alias.at.is_none(), "AT after an alias")?;
    for data_type in alias.columns.iter().filter_map(|column| column.data_type.as_ref()) {
        require(dialect == Dialect::Postgres, "a type in an alias")?;
        plain_type(data_type)?;
    }
    Ok(())
}

/// Accepts Postgres' `TABLESAMPLE method (number) [REPEATABLE (number)]`.
pub fn sample(sample: &TableSampleKind, dialect: Dialect) -> Checked {
    let (TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample)) =
        sample;
    let number = |expr: &Expr| matches!(expr, Expr::Value(value) if matches!(value.value, Value::Number(..)));
    let plain = dialect == Dialect::Postgres
        && sample.name.is_some()
        && sample.bucket.is_none()
        && sample.offset.is_none()
        && sample.quantity.as_ref().is_some_and(|quantity| number(&quantity.value))
        && sample.seed.as_ref().is_none_or(|seed| matches!(seed.value.value, Value::Number(..)));
    require(plain, "this form of TABLESAMPLE")
}

pub fn expression(expr: &Expr, dialect: Dialect, policy: &Policy) -> Checked {
    use Expr as E;
    match expr {
        E::Identifier(ident) => {
            let hidden_call = ident.quote_style.is_none()
                && dialect != Dialect::Sqlite
                && lists(HIDDEN_CALLS, &ident.value);
            if hidden_call { Err(Refusal::Function(ident.value.clone())) } else { Ok(()) }
        }
        E::CompoundIdentifier(_)
        | E::IsFalse(_)
        | E::IsNotFalse(_)
        | E::IsTrue(_)
        | E::IsNotTrue(_)
        | E::IsNull(_)
        | E::IsNotNull(_)
        | E::IsUnknown(_)
        | E::IsNotUnknown(_)
        | E::IsDistinctFrom(..)
        | E::IsNotDistinctFrom(..)
        | E::InList { .. }
        | E::InSubquery { .. }
        | E::Between { .. }
        | E::Like { any: false, .. }
        | E::ILike { any: false, .. }
        | E::IsJson { .. }
        | E::IsNormalized { .. }
        | E::SimilarTo { .. }
        | E::AtTimeZone { .. }
        | E::Extract { .. }
        | E::Ceil { .. }
        | E::Floor { .. }
        | E::Position { .. }
        | E::Substring { .. }
        | E::Trim { .. }
        | E::Overlay { .. }
        | E::Collate { .. }
        | E::Nested(_)
        | E::Value(_)
        | E::Case { .. }
        | E::Exists { .. }
        | E::Subquery(_)
        | E::GroupingSets(_)
        | E::Cube(_)
        | E::Rollup(_)
        | E::Tuple(_)
        | E::Array(_)
        | E::Interval(_) => Ok(()),
        E::Like { any: true, .. } | E::ILike { any: true, .. } if dialect == Dialect::Postgres => {
            Ok(())
        }
        E::CompoundFieldAccess { access_chain, .. }
            if access_chain.iter().all(|access| matches!(access, AccessExpr::Subscript(_))) =>
        {
            Ok(())
        }
        // `(o).id` of an item of FROM is written as `o.id`; anything else is refused then.
        E::CompoundFieldAccess { root, access_chain }
            if dialect == Dialect::Postgres
                && matches!(root.as_ref(), E::Nested(inner) if matches!(inner.as_ref(), E::Identifier(_)))
                && matches!(access_chain.as_slice(), [AccessExpr::Dot(E::Identifier(_))]) =>
        {
            Ok(())
        }
        E::Convert { data_type, charset: None, .. } if dialect == Dialect::TSql => {
            data_type.as_ref().map_or(Ok(()), plain_type)
        }
        E::BinaryOp { op, .. }
        | E::AnyOp { compare_op: op, .. }
        | E::AllOp { compare_op: op, .. } => {
            if is_allowed_operator(op) {
                Ok(())
            } else {
                refuse(format!("the operator {op}"))
            }
        }
        E::UnaryOp { op, .. } => {
            use UnaryOperator as U;
            let known = matches!(
                op,
                U::Plus
                    | U::Minus
                    | U::Not
                    | U::BitwiseNot
                    | U::PGAbs
                    | U::PGSquareRoot
                    | U::PGCubeRoot
            );
            require(known, "this unary operator")
        }
        E::Cast {
            kind: CastKind::Cast | CastKind::DoubleColon | CastKind::TryCast,
            data_type,
            format: None,
            ..
        } => plain_type(data_type),
        E::TypedString(typed) if !typed.uses_odbc_syntax => plain_type(&typed.data_type),
        E::Function(function) => call(function, dialect, policy),
        other => refuse(other.to_string()),
    }
}

/// Words that Postgres evaluates as functions although they look like columns.
const HIDDEN_CALLS: &str = "
    current_catalog current_role current_schema current_user session_user system_user user
";

fn call(function: &Function, dialect: Dialect, policy: &Policy) -> Checked {
    let count = match &function.args {
        FunctionArguments::List(list) => list.args.len(),
        _ => 0,
    };
    let name = called(&function.name, dialect, policy);
    if !name.is_some_and(|name| may_call(&name, count, dialect, policy)) {
        return Err(Refusal::Function(function.name.to_string()));
    }
    require(!function.uses_odbc_syntax, "{fn …}")?;
    require(function.parameters == FunctionArguments::None, "a parametric function")?;
    require(function.within_group.iter().all(plain_sort), "ORDER BY USING")?;
    if let Some(WindowType::WindowSpec(spec)) = &function.over {
        require(spec.order_by.iter().all(plain_sort), "ORDER BY USING")?;
    }
    match &function.args {
        FunctionArguments::None => Ok(()),
        FunctionArguments::Subquery(_)
            if dialect == Dialect::Postgres
                && function.name.to_string().eq_ignore_ascii_case("array") =>
        {
            Ok(())
        }
        FunctionArguments::Subquery(_) => refuse("a subquery as the bare argument of a function"),
        FunctionArguments::List(list) => {
            use FunctionArgumentClause as C;
            let known = |clause: &C| matches!(clause, C::OrderBy(_) | C::IgnoreOrRespectNulls(_));
            require(list.clauses.iter().all(known), "this clause inside a function call")?;
            let sorted = list.clauses.iter().all(|clause| match clause {
                C::OrderBy(order) => order.iter().all(plain_sort),
                _ => true,
            });
            require(sorted, "ORDER BY USING")
        }
    }
}

pub fn value(value: &Value, dialect: Dialect) -> Checked {
    match value {
        Value::NationalStringLiteral(_) if dialect == Dialect::TSql => Ok(()),
        Value::SingleQuotedByteStringLiteral(bits)
            if dialect == Dialect::Postgres && bits.bytes().all(|b| matches!(b, b'0' | b'1')) =>
        {
            Ok(())
        }
        Value::Number(_, false)
        | Value::SingleQuotedString(_)
        | Value::Boolean(_)
        | Value::Null => Ok(()),
        Value::HexStringLiteral(digits) if digits.bytes().all(|b| b.is_ascii_hexdigit()) => Ok(()),
        Value::Placeholder(_) => refuse("a placeholder; write the value"),
        other => refuse(format!("this form of literal; write 'text' or a number: {other}")),
    }
}

//! What a query, an expression and an operator may look like. Lists of the permitted: a construct that
//! a newer parser learns stays refused until someone looked at it.

use sqlparser::ast::{
    AccessExpr, BinaryOperator, CastKind, DataType, Expr, Function, FunctionArgumentClause,
    FunctionArguments, GroupByExpr, Join, JoinOperator, LimitClause, OrderBy, OrderByKind, Query,
    Select, SelectFlavor, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Statement,
    TableAlias, UnaryOperator, Value, WildcardAdditionalOptions,
};

use super::{Dialect, Refusal, is_allowed_function};

type Checked = Result<(), Refusal>;

fn refuse(what: impl Into<String>) -> Checked {
    Err(Refusal::Construct(what.into()))
}

fn require(holds: bool, what: &str) -> Checked {
    if holds { Ok(()) } else { refuse(what) }
}

/// Returns the word that names the kind of a statement.
pub fn first_word(statement: &Statement) -> String {
    let text = statement.to_string();
    text.split_whitespace().next().unwrap_or("an empty statement").to_uppercase()
}

pub fn query(query: &Query) -> Checked {
    let Query { with, body, order_by, limit_clause, fetch: _, locks, for_clause, .. } = query;
    for cte in with.iter().flat_map(|with| &with.cte_tables) {
        require(cte.from.is_none(), "FROM after a WITH query")?;
        alias(&cte.alias)?;
    }
    set(body)?;
    require(order_by.as_ref().is_none_or(plain_order), "ORDER BY ALL or INTERPOLATE")?;
    if let Some(LimitClause::LimitOffset { limit_by, .. }) = limit_clause {
        require(limit_by.is_empty(), "LIMIT BY")?;
    }
    require(locks.is_empty(), "FOR UPDATE or FOR SHARE")?;
    require(for_clause.is_none(), "FOR XML or FOR JSON")?;
    require(query.settings.is_none(), "SETTINGS")?;
    require(query.format_clause.is_none(), "FORMAT")?;
    require(query.pipe_operators.is_empty(), "a pipe operator")
}

fn plain_order(order: &OrderBy) -> bool {
    order.interpolate.is_none()
        && matches!(&order.kind, OrderByKind::Expressions(list) if list.iter().all(|e| e.with_fill.is_none()))
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

pub fn select(select: &Select) -> Checked {
    require(select.into.is_none(), "SELECT INTO")?;
    require(select.flavor == SelectFlavor::Standard, "FROM before SELECT")?;
    require(select.top.is_none(), "TOP; write LIMIT")?;
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
    select.projection.iter().try_for_each(item)?;
    select.from.iter().flat_map(|from| &from.joins).try_for_each(join)
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

pub fn join(join: &Join) -> Checked {
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
    );
    require(known && !join.global, "this kind of JOIN")
}

pub fn alias(alias: &TableAlias) -> Checked {
    require(alias.at.is_none(), "AT after an alias")?;
    require(alias.columns.iter().all(|column| column.data_type.is_none()), "a type in an alias")
}

pub fn expression(expr: &Expr, dialect: Dialect) -> Checked {
    use Expr as E;
    match expr {
        E::Identifier(ident) => {
            let hidden_call = ident.quote_style.is_none()
                && HIDDEN_CALLS.contains(&ident.value.to_ascii_lowercase().as_str());
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
        E::CompoundFieldAccess { access_chain, .. }
            if access_chain.iter().all(|access| matches!(access, AccessExpr::Subscript(_))) =>
        {
            Ok(())
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
            let known = matches!(op, U::Plus | U::Minus | U::Not | U::BitwiseNot | U::PGAbs);
            require(known, "this unary operator")
        }
        E::Cast {
            kind: CastKind::Cast | CastKind::DoubleColon, data_type, format: None, ..
        } => plain_type(data_type),
        E::TypedString(typed) if !typed.uses_odbc_syntax => plain_type(&typed.data_type),
        E::Function(function) => call(function, dialect),
        other => refuse(other.to_string()),
    }
}

/// Words that Postgres evaluates as functions although they look like columns.
const HIDDEN_CALLS: &[&str] = &[
    "current_catalog",
    "current_role",
    "current_schema",
    "current_user",
    "session_user",
    "system_user",
    "user",
];

fn call(function: &Function, dialect: Dialect) -> Checked {
    let name = match function.name.0.as_slice() {
        [part] => part.as_ident().map(|ident| dialect.fold(ident)),
        _ => None,
    };
    if !name.is_some_and(|name| is_allowed_function(dialect, &name)) {
        return Err(Refusal::Function(function.name.to_string()));
    }
    require(!function.uses_odbc_syntax, "{fn …}")?;
    require(function.parameters == FunctionArguments::None, "a parametric function")?;
    match &function.args {
        FunctionArguments::None => Ok(()),
        FunctionArguments::Subquery(_) => refuse("a subquery as the bare argument of a function"),
        FunctionArguments::List(list) => {
            use FunctionArgumentClause as C;
            let known = |clause: &C| matches!(clause, C::OrderBy(_) | C::IgnoreOrRespectNulls(_));
            require(list.clauses.iter().all(known), "this clause inside a function call")
        }
    }
}

fn is_allowed_operator(op: &BinaryOperator) -> bool {
    use BinaryOperator as B;
    matches!(
        op,
        B::Plus
            | B::Minus
            | B::Multiply
            | B::Divide
            | B::Modulo
            | B::StringConcat
            | B::Gt
            | B::Lt
            | B::GtEq
            | B::LtEq
            | B::Eq
            | B::NotEq
            | B::And
            | B::Or
            | B::BitwiseOr
            | B::BitwiseAnd
            | B::Glob
            | B::PGBitwiseXor
            | B::PGBitwiseShiftLeft
            | B::PGBitwiseShiftRight
            | B::PGExp
            | B::PGOverlap
            | B::PGRegexMatch
            | B::PGRegexIMatch
            | B::PGRegexNotMatch
            | B::PGRegexNotIMatch
            | B::PGStartsWith
            | B::Arrow
            | B::LongArrow
            | B::HashArrow
            | B::HashLongArrow
            | B::AtArrow
            | B::ArrowAt
            | B::Question
            | B::QuestionAnd
            | B::QuestionPipe
    )
}

/// Accepts the everyday types by name; `regclass` and user-defined types call functions of their own.
fn plain_type(data_type: &DataType) -> Checked {
    const TYPES: &str = "\
        bigint, blob, bool, boolean, bytea, char, character, character varying, date, \
        decimal, double, double precision, float, float4, float8, int, int2, int4, int8, \
        integer, interval, json, jsonb, numeric, real, smallint, text, time, timestamp, \
        timestamp with time zone, timestamp without time zone, timestamptz, uuid, varchar";
    let shown = data_type.to_string();
    let mut bare = String::new();
    let mut depth = 0_u32;
    for c in shown.to_ascii_lowercase().chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            c if depth == 0 => bare.push(c),
            _ => {}
        }
    }
    let bare = bare.trim_end_matches("[]").trim();
    if TYPES.split(", ").any(|known| known == bare) {
        Ok(())
    } else {
        refuse(format!("the type {shown}"))
    }
}

pub fn value(value: &Value) -> Checked {
    match value {
        Value::Number(_, false)
        | Value::SingleQuotedString(_)
        | Value::Boolean(_)
        | Value::Null => Ok(()),
        Value::HexStringLiteral(digits) if digits.bytes().all(|b| b.is_ascii_hexdigit()) => Ok(()),
        Value::Placeholder(_) => refuse("a placeholder; write the value"),
        other => refuse(format!("this form of literal; write 'text' or a number: {other}")),
    }
}

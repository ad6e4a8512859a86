//! The names of `FROM`: relations, their columns, and the search for a name from the inside out.

use std::rc::Rc;

use sqlparser::ast::{CastKind, DataType, Expr, Ident};

/// Names of columns in order; `None` if they are unknown.
pub type Columns = Option<Rc<[String]>>;

#[derive(Clone, Debug)]
pub struct Relation {
    /// Its alias, or its own name.
    pub name: Option<String>,
    /// Present if it has a table's own name and not an alias.
    pub schema: Option<String>,
    pub columns: Columns,
    /// Its values are stored as they are, not computed by the statement.
    pub stored: bool,
}

impl Relation {
    /// Returns whether it has a column of that name, or its columns are not known.
    pub fn may_have(&self, column: &str) -> bool {
        self.columns.as_ref().is_none_or(|columns| columns.iter().any(|known| known == column))
    }
}

/// The names of one `FROM` clause.
#[derive(Clone, Debug, Default)]
pub struct Level {
    pub relations: Vec<Relation>,
}

impl Level {
    /// Returns the names of all columns, if each relation's are known.
    pub fn columns(&self) -> Option<Vec<String>> {
        let mut all = Vec::new();
        for relation in &self.relations {
            all.extend(relation.columns.as_ref()?.iter().cloned());
        }
        Some(all)
    }
}

/// Returns Postgres' name for an unnamed expression of a select list, if it has one.
pub fn figure(expr: &Expr) -> Option<Ident> {
    match expr {
        Expr::Identifier(ident) => Some(ident.clone()),
        Expr::CompoundIdentifier(parts) => parts.last().cloned(),
        Expr::Function(function) => function.name.0.last()?.as_ident().cloned(),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => figure(inner),
        Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, .. } => {
            figure(expr).or_else(|| type_name(data_type).map(Ident::new))
        }
        Expr::Case { else_result, .. } => {
            else_result.as_deref().and_then(figure).or_else(|| Some(Ident::new("case")))
        }
        Expr::Extract { .. } => Some(Ident::new("extract")),
        Expr::Exists { .. } => Some(Ident::new("exists")),
        Expr::Array(_) => Some(Ident::new("array")),
        Expr::Ceil { .. } => Some(Ident::new("ceil")),
        Expr::Floor { .. } => Some(Ident::new("floor")),
        Expr::Substring { .. } => Some(Ident::new("substring")),
        Expr::Position { .. } => Some(Ident::new("position")),
        Expr::Overlay { .. } => Some(Ident::new("overlay")),
        _ => None,
    }
}

/// Returns the catalogue's name of a type that is written in another way.
fn type_name(data_type: &DataType) -> Option<&'static str> {
    Some(match data_type {
        DataType::Int(_) | DataType::Integer(_) | DataType::Int4(_) => "int4",
        DataType::BigInt(_) | DataType::Int8(_) => "int8",
        DataType::SmallInt(_) | DataType::Int2(_) => "int2",
        DataType::Text => "text",
        DataType::Date => "date",
        DataType::Numeric(_) | DataType::Decimal(_) => "numeric",
        DataType::Real | DataType::Float4 => "float4",
        DataType::DoublePrecision | DataType::Float8 => "float8",
        DataType::Boolean | DataType::Bool => "bool",
        DataType::Varchar(_) => "varchar",
        _ => return None,
    })
}

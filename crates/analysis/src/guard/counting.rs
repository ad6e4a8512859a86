//! The table of numbers that every SQL Server has, with which statements make rows for days and months.
//!
//! `master..spt_values` contains no user data; it is undocumented, and the usual source of numbers since SQL Server
//! 2000.

use sqlparser::ast::{Ident, ObjectName};

use crate::Dialect;

const PARTS: [&str; 3] = ["master", "dbo", "spt_values"];
const COLUMNS: [&str; 6] = ["name", "number", "type", "low", "high", "status"];

/// Returns whether the parts of a name are those of the table of numbers.
pub fn is_meant(parts: &[&Ident], dialect: Dialect) -> bool {
    let same = |(part, known): (&&Ident, &str)| {
        part.value.eq_ignore_ascii_case(known) || (known == "dbo" && part.value.is_empty())
    };
    dialect == Dialect::TSql && parts.len() == PARTS.len() && parts.iter().zip(PARTS).all(same)
}

pub fn name() -> ObjectName {
    let part = |part| Ident::with_quote(Dialect::TSql.quote_mark(), part);
    ObjectName::from(PARTS.map(part).to_vec())
}

pub fn columns() -> Vec<String> {
    COLUMNS.map(str::to_owned).to_vec()
}

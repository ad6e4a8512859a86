//! Quotes every alias, so that no word after an expression can be read as a statement of its own.
//!
//! Some databases run `SELECT id FROM orders SHUTDOWN` as two statements where the parser saw an alias.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Ident, Query, Select, SelectItem, Statement, TableAlias, TableFactor, VisitMut, VisitorMut,
};

use super::Dialect;

/// Quotes the aliases of columns, tables and `WITH` names in place, folded as the database would.
pub fn aliases(statement: &mut Statement, dialect: Dialect) {
    let ControlFlow::Continue(()) = statement.visit(&mut Quoter { dialect });
}

struct Quoter {
    dialect: Dialect,
}

impl Quoter {
    fn ident(&self, ident: &mut Ident) {
        if ident.quote_style.is_none() {
            // SQLite keeps the spelling for the result's header and ignores case when it looks names up.
            if self.dialect == Dialect::Postgres {
                ident.value = self.dialect.fold(ident);
            }
            ident.quote_style = Some('"');
        }
    }

    fn table(&self, alias: &mut TableAlias) {
        self.ident(&mut alias.name);
        for column in &mut alias.columns {
            self.ident(&mut column.name);
        }
    }
}

impl VisitorMut for Quoter {
    type Break = std::convert::Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        for cte in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            self.table(&mut cte.alias);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        for item in &mut select.projection {
            if let SelectItem::ExprWithAlias { alias, .. } = item {
                self.ident(alias);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        if let TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. }
        | TableFactor::NestedJoin { alias: Some(alias), .. } = factor
        {
            self.table(alias);
        }
        ControlFlow::Continue(())
    }
}

//! Walks the whole syntax tree once and asks [`shapes`](super::shapes) and [`Scope`] at every node.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Ident, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, Visitor,
};

use super::functions::called;
use super::scope::Scope;
use super::{Policy, Refusal, counting, is_allowed_table_function, shapes};
use crate::Dialect;
use crate::clauses::is_only;

/// The visitor; breaks with the first refusal.
pub struct Inspector<'a> {
    dialect: Dialect,
    policy: &'a Policy,
    scope: Scope,
    /// Address of the one relation that the table factor just seen was accepted for.
    accepted: Option<usize>,
}

pub(super) type Flow = ControlFlow<Box<Refusal>>;

pub(super) fn flow(checked: Result<(), Refusal>) -> Flow {
    match checked {
        Ok(()) => ControlFlow::Continue(()),
        Err(refusal) => ControlFlow::Break(Box::new(refusal)),
    }
}

fn address(name: &ObjectName) -> usize {
    std::ptr::from_ref(name).addr()
}

impl<'a> Inspector<'a> {
    pub fn new(dialect: Dialect, policy: &'a Policy) -> Self {
        Self { dialect, policy, scope: Scope::default(), accepted: None }
    }

    fn factor(&mut self, factor: &TableFactor) -> Result<(), Refusal> {
        let refuse = |what: &str| Err(Refusal::Construct(what.to_owned()));
        let (alias, verdict) = match factor {
            TableFactor::Table {
                name,
                alias,
                args,
                with_hints,
                version: None,
                with_ordinality,
                partitions,
                json_path: None,
                sample,
                index_hints,
            } if with_hints.is_empty()
                && (partitions.is_empty() || is_only(partitions) && args.is_none())
                && index_hints.is_empty() =>
            {
                if let Some(sample) = sample {
                    shapes::sample(sample, self.dialect)?;
                }
                let verdict = match args {
                    None if *with_ordinality => refuse("WITH ORDINALITY on a table"),
                    None => self.table(name),
                    Some(args) if args.settings.is_none() => self.table_function(name),
                    Some(_) => refuse("SETTINGS"),
                };
                self.accepted = Some(address(name));
                (alias, verdict)
            }
            TableFactor::Derived { alias, sample: None, .. } => (alias, Ok(())),
            TableFactor::Function { name, alias, .. } => (alias, self.table_function(name)),
            TableFactor::UNNEST { alias, with_offset: false, .. }
                if matches!(self.dialect, Dialect::Postgres | Dialect::DuckDb) =>
            {
                (alias, Ok(()))
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let joins = &table_with_joins.joins;
                (alias, joins.iter().try_for_each(|join| shapes::join(join, self.dialect)))
            }
            other => return refuse(&format!("in FROM: {other}")),
        };
        alias.as_ref().map_or(Ok(()), |alias| shapes::alias(alias, self.dialect))?;
        verdict
    }

    fn table(&self, name: &ObjectName) -> Result<(), Refusal> {
        let idents: Option<Vec<&Ident>> = name.0.iter().map(|part| part.as_ident()).collect();
        let permitted = match idents.as_deref() {
            Some([table]) => {
                self.scope.defines(&self.dialect.fold(table))
                    || self.policy.find(self.dialect, None, table).is_some()
            }
            Some([schema, table]) => self.policy.find(self.dialect, Some(schema), table).is_some(),
            Some(parts) => counting::is_meant(parts, self.dialect),
            None => false,
        };
        if permitted {
            return Ok(());
        }
        let shown = name.to_string();
        let hint = self.policy.hint(&shown);
        Err(Refusal::Table { name: shown, hint })
    }

    fn table_function(&self, name: &ObjectName) -> Result<(), Refusal> {
        let name_called = called(name, self.dialect, self.policy);
        if name_called.is_some_and(|name| is_allowed_table_function(self.dialect, &name)) {
            Ok(())
        } else {
            Err(Refusal::Function(name.to_string()))
        }
    }
}

impl Visitor for Inspector<'_> {
    type Break = Box<Refusal>;

    fn pre_visit_statement(&mut self, statement: &Statement) -> Flow {
        match statement {
            Statement::Query(_) => ControlFlow::Continue(()),
            other => flow(Err(Refusal::NotASelect(shapes::first_word(other)))),
        }
    }

    fn pre_visit_query(&mut self, query: &Query) -> Flow {
        self.scope.enter(query, self.dialect);
        flow(shapes::query(query, self.dialect))
    }

    fn post_visit_query(&mut self, query: &Query) -> Flow {
        self.scope.leave(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> Flow {
        flow(shapes::select(select, self.dialect))
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> Flow {
        flow(self.factor(factor))
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> Flow {
        // Every relation must have come through an accepted table factor just before.
        if self.accepted.take() == Some(address(relation)) {
            ControlFlow::Continue(())
        } else {
            flow(Err(Refusal::Construct(format!("a table named outside FROM: {relation}"))))
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> Flow {
        flow(shapes::expression(expr, self.dialect, self.policy))
    }

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> Flow {
        flow(shapes::value(&value.value, self.dialect))
    }
}

//! Binds `FROM`: tables, `WITH` names, subqueries, functions and joins, each with its scope.

use sqlparser::ast::{
    FunctionArg, FunctionArgExpr, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart,
    SetExpr, Statement, TableAlias, TableAliasColumnDef, TableFactor, TableFunctionArgs,
    TableWithJoins,
};

use super::super::{counting, functions};
use super::{Binder, Bound, Columns, Level, Refusal, Relation};
use crate::Dialect;

impl Binder<'_> {
    /// Binds an item of `FROM` with its joins; `siblings` are the items before it, for LATERAL.
    pub(super) fn joined(
        &mut self,
        from: &mut TableWithJoins,
        siblings: &Level,
    ) -> Bound<Vec<Relation>> {
        let mut relations = self.factor(&mut from.relation, siblings)?;
        for join in &mut from.joins {
            let mut seen = siblings.clone();
            seen.relations.extend(relations.iter().cloned());
            relations.extend(self.factor(&mut join.relation, &seen)?);
            let constraint = match &mut join.join_operator {
                JoinOperator::Join(constraint)
                | JoinOperator::Inner(constraint)
                | JoinOperator::Left(constraint)
                | JoinOperator::LeftOuter(constraint)
                | JoinOperator::Right(constraint)
                | JoinOperator::RightOuter(constraint)
                | JoinOperator::FullOuter(constraint)
                | JoinOperator::CrossJoin(constraint) => constraint,
                JoinOperator::CrossApply | JoinOperator::OuterApply => continue,
                _ => return Err(Refusal::Construct("this kind of JOIN".into())),
            };
            match constraint {
                JoinConstraint::On(condition) => {
                    // A join's condition sees what is joined, not its siblings.
                    self.levels.push(Level { relations: relations.clone() });
                    self.expression(condition)?;
                    self.levels.pop();
                }
                JoinConstraint::Using(columns) => {
                    for name in columns {
                        self.quote_parts(name)?;
                    }
                }
                JoinConstraint::Natural | JoinConstraint::None => {}
            }
        }
        Ok(relations)
    }

    fn factor(&mut self, factor: &mut TableFactor, siblings: &Level) -> Bound<Vec<Relation>> {
        let relation = match factor {
            TableFactor::Table { name, alias, args: None, sample, .. } => {
                let sampled = sample.is_some();
                let (relation, filter) = self.table(name, alias)?;
                if let Some(filter) = filter {
                    if sampled {
                        return Err(Refusal::Construct("TABLESAMPLE of a filtered table".into()));
                    }
                    *factor = self.filtered(factor, &relation, &filter)?;
                }
                relation
            }
            TableFactor::Table { name, alias, args: Some(args), with_ordinality, .. } => {
                self.arguments(name, &mut args.args, siblings)?;
                self.function(name, args.args.len(), alias, *with_ordinality)?
            }
            TableFactor::Function { name, args, alias, with_ordinality, .. } => {
                self.arguments(name, args, siblings)?;
                self.function(name, args.len(), alias, *with_ordinality)?
            }
            // Of several arrays the grammar makes its own; of one, it looks the function up.
            TableFactor::UNNEST { alias, array_exprs, with_ordinality, .. }
                if self.dialect == Dialect::Postgres && array_exprs.len() == 1 =>
            {
                let args =
                    array_exprs.drain(..).map(FunctionArgExpr::Expr).map(FunctionArg::Unnamed);
                *factor = TableFactor::Table {
                    name: ObjectName::from(vec![Ident::new("unnest")]),
                    alias: alias.take(),
                    args: Some(TableFunctionArgs { args: args.collect(), settings: None }),
                    with_hints: Vec::new(),
                    version: None,
                    with_ordinality: *with_ordinality,
                    partitions: Vec::new(),
                    json_path: None,
                    sample: None,
                    index_hints: Vec::new(),
                };
                return self.factor(factor, siblings);
            }
            TableFactor::UNNEST { alias, array_exprs, with_ordinality, .. } => {
                self.levels.push(siblings.clone());
                self.expressions(array_exprs)?;
                self.levels.pop();
                let name = ObjectName::from(vec![Ident::new("unnest")]);
                self.function(&name, array_exprs.len(), alias, *with_ordinality)?
            }
            TableFactor::Derived { lateral, subquery, alias, .. } => {
                let sees = *lateral || self.dialect == Dialect::TSql;
                if sees {
                    self.levels.push(siblings.clone());
                }
                let columns = self.query(subquery, None)?;
                if sees {
                    self.levels.pop();
                }
                self.computed(None, alias.as_mut(), columns)?
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let inner = self.joined(table_with_joins, siblings)?;
                let Some(alias) = alias else { return Ok(inner) };
                let columns = Level { relations: inner }.columns().map(Into::into);
                self.computed(None, Some(alias), columns)?
            }
            other => return Err(Refusal::Construct(format!("in FROM: {other}"))),
        };
        Ok(vec![relation])
    }

    /// Quotes an alias and returns its name and the columns under it.
    fn aliased(
        &self,
        alias: Option<&mut TableAlias>,
        columns: Columns,
    ) -> Bound<(Option<String>, Columns)> {
        let Some(alias) = alias else { return Ok((None, columns)) };
        let names = self.quote_alias(alias)?;
        Ok((Some(self.dialect.fold(&alias.name)), self.renamed(&columns, &names)))
    }

    /// Quotes an alias with its columns, and returns these.
    pub(super) fn quote_alias(&self, alias: &mut TableAlias) -> Bound<Vec<Ident>> {
        self.quote(&mut alias.name)?;
        alias.columns.iter_mut().try_for_each(|column| self.quote(&mut column.name))?;
        Ok(alias.columns.iter().map(|column| column.name.clone()).collect())
    }

    /// Returns a relation that the statement computes, under its alias, or else under `name`.
    fn computed(
        &self,
        name: Option<String>,
        alias: Option<&mut TableAlias>,
        columns: Columns,
    ) -> Bound<Relation> {
        let (alias, columns) = self.aliased(alias, columns)?;
        Ok(Relation { name: alias.or(name), schema: None, columns, stored: false })
    }

    /// Binds a name in `FROM`: a `WITH` name in force, or a permitted table, which is written with its schema; returns
    /// also the operator's filter of the table.
    fn table(
        &mut self,
        name: &mut ObjectName,
        alias: &mut Option<TableAlias>,
    ) -> Bound<(Relation, Option<String>)> {
        let idents: Vec<Ident> =
            name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
        if idents.len() != name.0.len() {
            return Err(Refusal::Construct(format!("in FROM: {name}")));
        }
        if let [single] = idents.as_slice() {
            let folded = self.dialect.fold(single);
            if self.ahead.contains(&folded) {
                let what = format!("a WITH name before its definition: {folded}");
                return Err(Refusal::Construct(what));
            }
            if let Some(cte) = self.ctes.iter().rev().find(|cte| cte.name == folded) {
                let columns = cte.columns.clone();
                self.quote_parts(name)?;
                return Ok((self.computed(Some(folded), alias.as_mut(), columns)?, None));
            }
        }
        if counting::is_meant(&idents.iter().collect::<Vec<_>>(), self.dialect) {
            *name = counting::name();
            let own = Some("spt_values".to_owned());
            let columns = Some(counting::columns().into());
            return Ok((self.computed(own, alias.as_mut(), columns)?, None));
        }
        let found = match idents.as_slice() {
            [table] => self.policy.find(self.dialect, None, table),
            [schema, table] => self.policy.find(self.dialect, Some(schema), table),
            _ => None,
        };
        let Some(found) = found else {
            let shown = name.to_string();
            let hint = self.policy.hint(&shown);
            return Err(Refusal::Table { name: shown, hint });
        };
        let mark = self.dialect.quote_mark();
        let parts = [&found.name.schema, &found.name.name];
        *name = ObjectName::from(parts.map(|part| Ident::with_quote(mark, part)).to_vec());
        self.quote_parts(name)?;
        if !self.tables.contains(&found.name) {
            self.tables.push(found.name.clone());
        }
        let fold = |text: &str| match self.dialect {
            Dialect::Postgres => text.to_owned(),
            _ => text.to_ascii_lowercase(),
        };
        let columns: Columns = (!found.columns.is_empty())
            .then(|| found.columns.iter().map(|column| fold(column)).collect());
        let (alias, columns) = self.aliased(alias.as_mut(), columns)?;
        let schema = alias.is_none().then(|| fold(&found.name.schema));
        let name = alias.or_else(|| Some(fold(&found.name.name)));
        let filter = found.filter.clone().filter(|_| !self.filtering);
        Ok((Relation { name, schema, columns, stored: true }, filter))
    }

    /// Replaces a table by the rows of it that the operator lets through.
    fn filtered(
        &mut self,
        table: &TableFactor,
        relation: &Relation,
        filter: &str,
    ) -> Bound<TableFactor> {
        let mut whole = table.clone();
        let TableFactor::Table { name, alias, .. } = &mut whole else {
            return Err(Refusal::Construct("a filter over what is no table".into()));
        };
        let name = name.clone();
        let alias = alias.take();
        let refused = |reason: &dyn std::fmt::Display| Refusal::Filter {
            table: name.to_string(),
            reason: reason.to_string(),
        };
        let text = format!("SELECT * FROM it WHERE ({filter})");
        let parsed = super::super::parse(&text, self.dialect).map_err(|error| refused(&error))?;
        let written = parsed.to_string();
        let Statement::Query(mut query) = parsed else {
            return Err(refused(&"it is no condition"));
        };
        let from = match query.body.as_mut() {
            SetExpr::Select(select) => {
                let condition = select.selection.as_ref();
                // Nothing follows the condition.
                let is_whole =
                    condition.is_some_and(|it| written == format!("SELECT * FROM it WHERE {it}"));
                select.from.first_mut().filter(|_| is_whole)
            }
            _ => None,
        };
        let Some(from) = from else { return Err(refused(&"it is no condition")) };
        from.relation = whole;
        // The operator's condition sees its own table, and nothing of the statement around it.
        let levels = std::mem::take(&mut self.levels);
        let ctes = std::mem::take(&mut self.ctes);
        self.filtering = true;
        let bound = self.query(&mut query, None);
        self.filtering = false;
        self.levels = levels;
        self.ctes = ctes;
        bound.map_err(|error| refused(&error))?;
        let alias = alias.or_else(|| {
            let written = match name.0.last()?.as_ident() {
                Some(last) => last.clone(),
                None => Ident::new(relation.name.clone()?),
            };
            Some(TableAlias { explicit: true, name: written, columns: Vec::new(), at: None })
        });
        Ok(TableFactor::Derived { lateral: false, subquery: query, alias, sample: None })
    }

    /// Writes the name of a function in `FROM` with its schema, and binds its arguments.
    fn arguments(
        &mut self,
        name: &mut ObjectName,
        args: &mut [FunctionArg],
        siblings: &Level,
    ) -> Bound<()> {
        functions::placed(name, self.dialect, self.policy);
        self.levels.push(siblings.clone());
        for arg in &mut *args {
            if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
            | FunctionArg::Named { arg: FunctionArgExpr::Expr(expr), .. } = arg
            {
                self.expression(expr)?;
            } else {
                return Err(Refusal::Construct(format!("in a function of FROM: {arg}")));
            }
        }
        self.levels.pop();
        let bounds = args.iter_mut().filter_map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
            _ => None,
        });
        // A series is the one function here that numbers alone can make endless.
        if functions::called(name, self.dialect, self.policy).as_deref() == Some("generate_series")
        {
            super::super::caps::series(bounds)?;
        }
        Ok(())
    }

    /// Binds a function in `FROM`; its columns are written out, so that their names are no guess.
    fn function(
        &mut self,
        name: &ObjectName,
        width: usize,
        alias: &mut Option<TableAlias>,
        ordinality: bool,
    ) -> Bound<Relation> {
        let Some(function) = functions::called(name, self.dialect, self.policy) else {
            return Err(Refusal::Function(name.to_string()));
        };
        let called =
            alias.as_ref().map_or_else(|| function.clone(), |alias| self.dialect.fold(&alias.name));
        let mut columns: Vec<String> = match function.as_str() {
            "json_each" | "jsonb_each" | "json_each_text" | "jsonb_each_text"
                if self.dialect != Dialect::Sqlite =>
            {
                vec!["key".into(), "value".into()]
            }
            "json_each" | "json_tree" => {
                ["key", "value", "type", "atom", "id", "parent", "fullkey", "path"]
                    .map(str::to_owned)
                    .into()
            }
            "json_array_elements"
            | "jsonb_array_elements"
            | "json_array_elements_text"
            | "jsonb_array_elements_text" => vec!["value".into()],
            "unnest" if width > 1 => vec!["unnest".into(); width],
            _ => vec![called.clone()],
        };
        if ordinality {
            columns.push("ordinality".into());
        }
        if self.dialect != Dialect::Postgres {
            return self.computed(Some(called), alias.as_mut(), Some(columns.into()));
        }
        let alias = alias.get_or_insert_with(|| TableAlias {
            explicit: true,
            name: Ident::with_quote('"', &called),
            columns: Vec::new(),
            at: None,
        });
        // A list with types is the function's own; another is completed.
        if alias.columns.iter().all(|column| column.data_type.is_none()) {
            for name in columns.iter().skip(alias.columns.len()) {
                let name = Ident::with_quote('"', name);
                alias.columns.push(TableAliasColumnDef { name, data_type: None });
            }
        } else {
            columns.clear();
        }
        self.computed(None, Some(alias), Some(columns.into()))
    }

    pub(super) fn quote_parts(&self, name: &mut ObjectName) -> Bound<()> {
        for part in &mut name.0 {
            match part {
                ObjectNamePart::Identifier(ident) => self.quote(ident)?,
                ObjectNamePart::Function(_) => {
                    return Err(Refusal::Construct(format!("the name {part}")));
                }
            }
        }
        Ok(())
    }
}

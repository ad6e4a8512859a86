//! Statements that grow by conditions.

use perihelion_database::{Dialect, Query, Value, Values, query};
use serde_json::{Number, Value as Json};
use sqlx::AssertSqlSafe;

/// How a field of a JSON object is compared.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Comparison {
    Equal,
    Unequal,
    /// By an operator of SQL.
    Order(&'static str),
}

impl Comparison {
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name {
            "$eq" => Some(Self::Equal),
            "$ne" => Some(Self::Unequal),
            "$gt" => Some(Self::Order(">")),
            "$gte" => Some(Self::Order(">=")),
            "$lt" => Some(Self::Order("<")),
            "$lte" => Some(Self::Order("<=")),
            _ => None,
        }
    }
}

fn of_number(number: &Number) -> Value {
    number.as_i64().map_or_else(|| number.as_f64().into(), Value::from)
}

/// Writes a letter so that `LIKE` finds it as it is.
fn like(letter: char) -> impl Iterator<Item = char> {
    "%_\\".contains(letter).then_some('\\').into_iter().chain([letter])
}

/// A statement under construction: fixed text, with values for its placeholders.
#[derive(Debug)]
pub(crate) struct Statement {
    dialect: Dialect,
    text: String,
    values: Vec<Value>,
}

impl Statement {
    pub(crate) fn new(dialect: Dialect, text: &str) -> Self {
        Self { dialect, text: text.to_owned(), values: Vec::new() }
    }

    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    pub(crate) fn value(&mut self, value: impl Into<Value>) -> &mut Self {
        self.values.push(value.into());
        let number = self.values.len();
        self.text.push_str(&format!("${number}"));
        self
    }

    /// Appends a text with a value, if there is one.
    pub(crate) fn given(&mut self, text: &str, value: Option<impl Into<Value>>) -> &mut Self {
        match value {
            Some(value) => self.text(text).value(value),
            None => self,
        }
    }

    /// Appends a text with a value for each `?` in it.
    pub(crate) fn add(&mut self, text: &str, values: impl Values) -> &mut Self {
        let mut added = Vec::new();
        values.add_to(&mut added);
        let mut parts = text.split('?');
        self.text(parts.next().unwrap_or_default());
        for (part, value) in parts.zip(added) {
            self.value(value).text(part);
        }
        self
    }

    pub(crate) fn one_of(
        &mut self,
        expression: &str,
        values: impl IntoIterator<Item: Into<Value>>,
    ) -> &mut Self {
        self.text(expression).text(" IN (");
        for (index, value) in values.into_iter().enumerate() {
            self.text(if index == 0 { "" } else { ", " }).value(value);
        }
        self.text(")")
    }

    /// Appends the condition that a JSON object in `column` has all that `wanted` has.
    pub(crate) fn contains(&mut self, column: &str, wanted: &Json) -> &mut Self {
        match self.dialect {
            Dialect::Postgres => self.text(column).text(" @> ").value(wanted.clone()),
            Dialect::Sqlite => {
                self.contains_json(column, &format!("json_type({column})"), wanted, 0)
            }
        }
    }

    /// Appends for SQLite the condition that a value of a JSON type has all that `wanted` has, as `@>` of Postgres has it.
    fn contains_json(&mut self, value: &str, kind: &str, wanted: &Json, depth: usize) -> &mut Self {
        let row = format!("h{depth}");
        let [value_of, kind_of] = [format!("{row}.value"), format!("{row}.type")];
        let part = |own: &mut Self, name: Option<&str>, wanted: &Json| {
            own.text(&format!(" AND EXISTS (SELECT 1 FROM json_each({value}) {row} WHERE "));
            if let Some(name) = name {
                own.text(&row).text(".key = ").value(name).text(" AND ");
            }
            own.contains_json(&value_of, &kind_of, wanted, depth + 1).text(")");
        };
        match wanted {
            Json::Object(fields) => {
                self.text(kind).text(" = 'object'");
                fields.iter().for_each(|(name, wanted)| part(self, Some(name), wanted));
            }
            Json::Array(items) => {
                self.text(kind).text(" = 'array'");
                items.iter().for_each(|wanted| part(self, None, wanted));
            }
            Json::String(text) => {
                self.text(kind).text(" = 'text' AND ").text(value).text(" = ").value(text.as_str());
            }
            Json::Number(number) => {
                self.text(kind).text(" IN ('integer', 'real') AND ").text(value).text(" = ");
                self.value(of_number(number));
            }
            Json::Bool(_) | Json::Null => {
                self.text(kind).text(&format!(" = '{wanted}'"));
            }
        }
        self
    }

    /// Appends the condition that a text has `words` somewhere, in capital letters or not; which letters Postgres takes for
    /// the same depends on the locale of the database.
    pub(crate) fn mentions(&mut self, expression: &str, words: &str) -> &mut Self {
        match self.dialect {
            Dialect::Postgres => {
                let words: String = words.chars().flat_map(like).collect();
                self.text(expression).text(" ILIKE ").value(format!("%{words}%"))
            }
            Dialect::Sqlite => {
                let words = words.chars().map(|letter| format!("\\u{{{:x}}}", u32::from(letter)));
                let words: String = words.collect();
                self.text(expression).text(" REGEXP ").value(format!("(?i){words}"))
            }
        }
    }

    /// Appends the condition that the field `name` of a JSON object in `column` compares so with a value.
    pub(crate) fn compares(
        &mut self,
        column: &str,
        name: &str,
        comparison: Comparison,
        wanted: &Json,
    ) -> &mut Self {
        match comparison {
            Comparison::Equal => self.equals(column, name, wanted),
            Comparison::Unequal => self.text("NOT ").equals(column, name, wanted),
            Comparison::Order(operator) => self.is_ordered(column, name, operator, wanted),
        }
    }

    /// Appends the condition that a field has exactly this value, whatever the order of the fields in it.
    fn equals(&mut self, column: &str, name: &str, wanted: &Json) -> &mut Self {
        if self.dialect == Dialect::Postgres {
            let condition = format!("(({column} -> ?) IS NOT DISTINCT FROM ?)");
            return self.add(&condition, (name, wanted.clone()));
        }
        let find = format!("EXISTS (SELECT 1 FROM json_each({column}) f WHERE f.key = ");
        self.text(&find).value(name).text(" AND ");
        let kind = match wanted {
            Json::Object(_) => "object",
            Json::Array(_) => "array",
            _ => return self.contains_json("f.value", "f.type", wanted, 0).text(")"),
        };
        let values = |of: &str| {
            format!(
                "SELECT fullkey, CASE type WHEN 'integer' THEN 'real' ELSE type END, atom FROM json_tree({of})"
            )
        };
        let there = values("f.value");
        let asked = values("?");
        let condition = format!(
            "CASE f.type WHEN '{kind}' THEN NOT EXISTS ({there} EXCEPT {asked}) \
             AND NOT EXISTS ({asked} EXCEPT {there}) ELSE FALSE END)"
        );
        self.add(&condition, (wanted.clone(), wanted.clone()))
    }

    /// Appends the condition that a field comes before or after a value: a number beside a number, or a text beside a text,
    /// by its bytes. Other types have no order.
    fn is_ordered(&mut self, column: &str, name: &str, operator: &str, wanted: &Json) -> &mut Self {
        let value = match wanted {
            Json::Number(number) => of_number(number),
            Json::String(text) => text.as_str().into(),
            _ => return self.text("FALSE"),
        };
        if self.dialect == Dialect::Sqlite {
            let kinds = if wanted.is_string() { "'text'" } else { "'integer', 'real'" };
            let condition = format!(
                "EXISTS (SELECT 1 FROM json_each({column}) f \
                 WHERE f.key = ? AND f.type IN ({kinds}) AND f.value {operator} ?)"
            );
            return self.add(&condition, (name, value));
        }
        if wanted.is_string() {
            let condition = format!(
                "(jsonb_typeof({column} -> ?) = 'string' AND ({column} ->> ?) COLLATE \"C\" {operator} ?)"
            );
            self.add(&condition, (name, name, value))
        } else {
            let condition = format!(
                "(jsonb_typeof({column} -> ?) = 'number' AND ({column} -> ?) {operator} ?)"
            );
            self.add(&condition, (name, name, wanted.clone()))
        }
    }

    /// Appends a page: at most `limit` rows after `offset`.
    pub(crate) fn page(&mut self, limit: u32, offset: u32) -> &mut Self {
        self.add(" LIMIT ? OFFSET ?", (limit, offset))
    }

    pub(crate) fn build(self) -> Query {
        // The text is put together from constants; everything from outside is a value.
        self.values.into_iter().fold(query(AssertSqlSafe(self.text)), Query::bind)
    }
}

#[cfg(test)]
impl Statement {
    /// Asks how the database would perform the statement, instead of performing it.
    pub(crate) fn explained(mut self) -> Query {
        self.text.insert_str(0, self.dialect.pick("EXPLAIN QUERY PLAN ", "EXPLAIN "));
        self.build()
    }
}

//! Statements that grow by conditions.

use perihelion_database::{Dialect, Query, Value, Values, query};
use serde_json::Value as Json;
use sqlx::AssertSqlSafe;

/// How a field of a JSON object is compared, in the words of each dialect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comparison {
    sqlite: &'static str,
    postgres: &'static str,
}

impl Comparison {
    pub(crate) fn of(name: &str) -> Option<Self> {
        let of_both = |operator| Some(Self { sqlite: operator, postgres: operator });
        match name {
            "$eq" => Some(Self { sqlite: "IS", postgres: "IS NOT DISTINCT FROM" }),
            "$ne" => Some(Self { sqlite: "IS NOT", postgres: "IS DISTINCT FROM" }),
            "$gt" => of_both(">"),
            "$gte" => of_both(">="),
            "$lt" => of_both("<"),
            "$lte" => of_both("<="),
            _ => None,
        }
    }
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

    /// Appends the condition that an expression is one of some values.
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
                match number.as_i64() {
                    Some(whole) => self.value(whole),
                    None => self.value(number.as_f64()),
                };
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
        Comparison { sqlite, postgres }: Comparison,
        wanted: &Json,
    ) -> &mut Self {
        let condition = match self.dialect {
            Dialect::Postgres => format!("({column} -> ?) {postgres} ?"),
            Dialect::Sqlite => format!(
                "(SELECT h.value FROM json_each({column}) h WHERE h.key = ?) {sqlite} json_extract(?, '$')"
            ),
        };
        self.add(&condition, (name, wanted.clone()))
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

//! Reads the rows from SQL servers' answers: JSON in several forms, Python's notation, lists of lines.

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::pipeline::{Table, ToolReply, clip};

/// Reads a reply as a table, or returns the error that it is.
pub fn read(reply: &ToolReply) -> Result<Table, String> {
    if reply.is_error {
        return Err(reply.text.clone());
    }
    if let Some(structured) = &reply.structured {
        // Some wrap what they answer in one key.
        let inner = structured.get("result").unwrap_or(structured);
        if let Some(table) = of_json(structured).or_else(|| of_json(inner)) {
            return table;
        }
    }
    let text = reply.text.trim();
    if text.starts_with("Error") || text.starts_with("Database error") {
        return Err(text.to_owned());
    }
    if let Ok(value) = serde_json::from_str::<Value>(text)
        && let Some(table) = of_json(&value)
    {
        return table;
    }
    if let Some(value) = python(text)
        && let Some(table) = of_json(&value)
    {
        return table;
    }
    numbered(text).ok_or_else(|| format!("the server's answer is no table: {}", clip(text, 300)))
}

/// Returns the table whose rows are JSON in the only column of another one; `None` if they are not.
pub fn unfolded(table: Table) -> Option<Table> {
    let row = |cells: &Vec<Value>| match cells.as_slice() {
        [Value::String(text)] => serde_json::from_str::<Fields>(text).ok(),
        [value @ Value::Object(_)] => serde_json::from_str(&value.to_string()).ok(),
        _ => None,
    };
    let rows: Vec<Fields> = table.rows.iter().map(row).collect::<Option<_>>()?;
    let columns: Vec<String> = rows.first()?.0.iter().map(|(name, _)| name.clone()).collect();
    let rows = rows.into_iter().map(|row| row.0.into_iter().map(|(_, value)| value).collect());
    Some(Table { columns, rows: rows.collect(), ..table })
}

/// The fields of an object in their order, with those of one name.
struct Fields(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Fields;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Fields, A::Error> {
                let mut found = Vec::new();
                while let Some((name, value)) = fields.next_entry::<String, Box<RawValue>>()? {
                    let text = value.get();
                    let read = || serde_json::from_str(text).map_err(A::Error::custom);
                    found.push((name, number(text).map_or_else(read, Ok)?));
                }
                Ok(Fields(found))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// Reads a number; one that would lose digits stays a text.
fn number(text: &str) -> Option<Value> {
    let value = serde_json::from_str::<Value>(text).ok().filter(Value::is_number)?;
    let digits = |text: &str| {
        let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        digits.trim_matches('0').to_owned()
    };
    let is_exact = !value.is_f64() || digits(&value.to_string()) == digits(text);
    Some(if is_exact { value } else { Value::String(text.to_owned()) })
}

/// Reads `{columns, rows}`, a list of objects, or an object with an error.
fn of_json(value: &Value) -> Option<Result<Table, String>> {
    match value {
        Value::Object(fields) => {
            let failed = fields.get("success").and_then(Value::as_bool) == Some(false);
            if failed {
                let table_of = fields.get("error").map_or_else(String::new, text_of);
                return Some(Err(table_of));
            }
            let mut table = Table::read(value)?;
            if let Some(count) = fields.get("rowCount").and_then(Value::as_u64) {
                table.row_count = count;
            }
            Some(Ok(table))
        }
        Value::Array(rows) => {
            let rows: Vec<&Map<String, Value>> =
                rows.iter().map(Value::as_object).collect::<Option<_>>()?;
            Some(Ok(Table::of_objects(&rows)))
        }
        _ => None,
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Reads `1. row`, then `column: value` lines, as mcp-alchemy writes them.
fn numbered(text: &str) -> Option<Table> {
    let mut table = Table::default();
    let mut row: Option<Vec<(String, Value)>> = None;
    let mut rows: Vec<Vec<(String, Value)>> = Vec::new();
    for line in text.lines() {
        let starts = line
            .strip_suffix(". row")
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()));
        if starts {
            rows.extend(row.replace(Vec::new()));
        } else if line.starts_with("Result:") || line.trim().is_empty() {
            continue;
        } else if let Some(row) = &mut row {
            match line.split_once(": ").or_else(|| line.strip_suffix(':').map(|name| (name, ""))) {
                Some((name, value)) => row.push((name.to_owned(), untyped(value))),
                // A value of several lines.
                None => {
                    if let Some((_, Value::String(last))) = row.last_mut() {
                        last.push('\n');
                        last.push_str(line);
                    }
                }
            }
        }
    }
    rows.extend(row);
    if rows.is_empty() {
        return text.contains("No rows").then_some(table);
    }
    // A text of several lines can contain what looks like a column.
    table.columns = rows[0].iter().map(|(name, _)| name.clone()).collect();
    for row in rows {
        let cell = |name: &String| {
            row.iter().find(|(known, _)| known == name).map(|(_, v)| v.clone()).unwrap_or_default()
        };
        table.rows.push(table.columns.iter().map(cell).collect());
    }
    table.row_count = table.rows.len() as u64;
    Some(table)
}

/// Reads a value that lost its type.
fn plain(text: &str) -> Value {
    match text {
        "NULL" | "None" => Value::Null,
        "True" => Value::Bool(true),
        "False" => Value::Bool(false),
        _ => number(text).unwrap_or_else(|| Value::String(text.to_owned())),
    }
}

/// Reads a value whose quotation marks are gone too: `1e5` may be a code.
fn untyped(text: &str) -> Value {
    if text.contains(['e', 'E']) && text.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return Value::String(text.to_owned());
    }
    plain(text)
}

/// Reads Python's notation of lists, dictionaries, texts and numbers.
fn python(text: &str) -> Option<Value> {
    let mut reader = Python { chars: text.chars().peekable() };
    let value = reader.value(0)?;
    reader.space();
    reader.chars.next().is_none().then_some(value)
}

struct Python<'a> {
    chars: std::iter::Peekable<std::str::Chars<'a>>,
}

impl Python<'_> {
    fn space(&mut self) {
        while self.chars.next_if(|c| c.is_whitespace()).is_some() {}
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > 16 {
            return None;
        }
        self.space();
        match self.chars.peek().copied()? {
            '[' | '(' => {
                let close = if self.chars.next()? == '[' { ']' } else { ')' };
                let mut list = Vec::new();
                loop {
                    self.space();
                    if self.chars.next_if_eq(&close).is_some() {
                        return Some(Value::Array(list));
                    }
                    list.push(self.value(depth + 1)?);
                    self.space();
                    let _ = self.chars.next_if_eq(&',');
                }
            }
            '{' => {
                self.chars.next();
                let mut fields = Map::new();
                loop {
                    self.space();
                    if self.chars.next_if_eq(&'}').is_some() {
                        return Some(Value::Object(fields));
                    }
                    let Value::String(name) = self.value(depth + 1)? else { return None };
                    self.space();
                    self.chars.next_if_eq(&':')?;
                    fields.insert(name, self.value(depth + 1)?);
                    self.space();
                    let _ = self.chars.next_if_eq(&',');
                }
            }
            quote @ ('\'' | '"') => {
                self.chars.next();
                self.text(quote).map(Value::String)
            }
            _ => {
                let mut word = String::new();
                while let Some(c) =
                    self.chars.next_if(|c| !matches!(c, ',' | ']' | '}' | ')' | ':'))
                {
                    word.push(c);
                    // Such as Decimal('1.5').
                    if c == '(' {
                        let inner = self.value(depth + 1)?;
                        self.space();
                        self.chars.next_if_eq(&')')?;
                        return Some(match inner {
                            Value::String(text) => plain(&text),
                            other => other,
                        });
                    }
                }
                let word = word.trim();
                (!word.is_empty()).then(|| plain(word))
            }
        }
    }

    fn text(&mut self, quote: char) -> Option<String> {
        let mut text = String::new();
        loop {
            match self.chars.next()? {
                c if c == quote => return Some(text),
                '\\' => match self.chars.next()? {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    'x' => text.push(self.code(2)?),
                    'u' => text.push(self.code(4)?),
                    c => text.push(c),
                },
                c => text.push(c),
            }
        }
    }

    fn code(&mut self, digits: usize) -> Option<char> {
        let digits: String = self.chars.by_ref().take(digits).collect();
        char::from_u32(u32::from_str_radix(&digits, 16).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn table_of(text: &str) -> Result<Table, String> {
        let mut reply = ToolReply::default();
        text.clone_into(&mut reply.text);
        read(&reply)
    }

    #[test]
    fn the_formats_of_different_servers_give_the_same_table() {
        for text in [
            r#"{"success": true, "columns": ["a", "b"], "rows": [[1, "x: y"], [2.5, null]], "rowCount": 2}"#,
            r#"[{"a": 1, "b": "x: y"}, {"a": 2.5, "b": null}]"#,
            "[{'a': 1, 'b': 'x: y'}, {'a': 2.5, 'b': None}]",
            "1. row\na: 1\nb: x: y\n\n2. row\na: 2.5\nb: NULL\n\nResult: 2 rows",
        ] {
            let table = table_of(text).unwrap();
            assert_eq!(table.columns, ["a", "b"], "{text}");
            assert_eq!(json!(table.rows), json!([[1, "x: y"], [2.5, null]]), "{text}");
        }
    }

    #[test]
    fn json_rows_in_one_column_are_read_as_a_table() {
        let text = json!([{ "row": "{\"b\":2,\"a\":\"2024-02-05\"}" }, { "row": "{\"b\":null,\"a\":\"x\"}" }]);
        let table = unfolded(table_of(&text.to_string()).unwrap()).unwrap();
        assert_eq!(table.columns, ["b", "a"]);
        assert_eq!(table.rows, [[json!(2), json!("2024-02-05")], [json!(null), json!("x")]]);
        let twice =
            json!([{ "row": "{\"name\":\"Ada\",\"name\":\"Bob\",\"n\":12345678901234567.89}" }]);
        let table = unfolded(table_of(&twice.to_string()).unwrap()).unwrap();
        assert_eq!(table.columns, ["name", "name", "n"]);
        assert_eq!(table.rows, [[json!("Ada"), json!("Bob"), json!("12345678901234567.89")]]);
        assert_eq!(unfolded(table_of("[]").unwrap()), None);
        assert_eq!(unfolded(table_of(r#"[{ "row": "free text" }]"#).unwrap()), None);
    }

    #[test]
    fn a_text_of_several_lines_neither_replaces_nor_adds_a_column() {
        let letter = "2. row\nid: 2\nnote: Dear all,\nid: 99 is wrong\ntotal: 7";
        let table = table_of(&format!("1. row\nid: 1\nnote: short\n\n{letter}")).unwrap();
        assert_eq!(table.columns, ["id", "note"]);
        assert_eq!(json!(table.rows), json!([[1, "short"], [2, "Dear all,"]]));
    }

    #[test]
    fn a_number_keeps_its_digits_and_a_code_is_no_number() {
        for (text, expected) in [
            ("[{'a': Decimal('12345678901234567.89')}]", json!("12345678901234567.89")),
            ("[{'a': Decimal('100.50')}]", json!(100.5)),
            ("[{'a': 0.30000000000000004}]", json!(0.30000000000000004)),
            ("[{'a': 1e-07}]", json!(1e-7)),
            ("1. row\na: 1e5\n", json!("1e5")),
            ("1. row\na: -2.50\n", json!(-2.5)),
            ("1. row\na: 12345678901234567890123\n", json!("12345678901234567890123")),
        ] {
            assert_eq!(table_of(text).unwrap().rows, [[expected]], "{text}");
        }
    }

    #[test]
    fn an_error_is_recognized_in_every_wording() {
        for text in [
            "Error: no such column: x",
            r#"{"success": false, "error": "no such column: x"}"#,
            "Database error: no such column: x",
        ] {
            assert!(table_of(text).unwrap_err().contains("no such column: x"), "{text}");
        }
        assert!(table_of("done").is_err());
    }
}

//! Finds out a SQL server's dialect and contents, and sends it statements, for any names of its tools.

use perihelion_analysis::guard::TableName;
use perihelion_analysis::{Catalogue, Column, Dialect, ForeignKey, Table as SqlTable};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::tables;
use super::turn::{Survey, Turn};
use crate::pipeline::{AgentError, ErrorKind, Stage, StageError, Table, ToolReply};

const STATEMENT_NAMES: [&str; 5] = ["sql", "query", "statement", "sql_query", "text"];

/// Learns the dialect and the tables.
///
/// # Errors
/// [`StageError`] of kind `QueryError` if the server's answers are unreadable.
pub async fn survey(stage: &Stage<Turn>) -> Result<Survey, StageError> {
    if stage.has_tool("overview") {
        let reply = stage.call("overview", json!({})).await?;
        if !reply.is_error
            && let Some(survey) = reply.structured.as_ref().and_then(of_bundled)
        {
            return Ok(survey);
        }
    }
    let dialect = dialect(stage).await?;
    let catalogue = catalogue(stage, dialect).await?;
    Ok(Survey { dialect, catalogue, guards_itself: false })
}

/// Sends a statement; an error of the database is data.
///
/// For a third-party server, Postgres itself writes each row as JSON: values in other forms count as text, and dates by
/// its own clock.
pub async fn query(
    stage: &Stage<Turn>,
    sql: &str,
    limit: Option<usize>,
) -> Result<Result<Table, String>, StageError> {
    Ok(query_or_edited(stage, sql, limit).await?.0)
}

/// Like [`query`]; also returns the statement that the person who approved it put in its place, if any.
pub async fn query_or_edited(
    stage: &Stage<Turn>,
    sql: &str,
    limit: Option<usize>,
) -> Result<(Result<Table, String>, Option<String>), StageError> {
    let surveyed = stage.state().survey.as_ref();
    if surveyed.is_some_and(|known| !known.guards_itself && known.dialect == Dialect::Postgres) {
        let as_json = format!("{AS_JSON}{sql}{END_OF_JSON}");
        let reply = stage.call("query", arguments(stage, &as_json, limit)).await?;
        let table = match tables::read(&reply) {
            Ok(table) => table,
            Err(error) => return Ok((Err(error), edited(&reply))),
        };
        // No row says what its columns are; without a call left to ask for them, there are none.
        if table.rows.is_empty() && stage.budget().tool_calls == 0 {
            return Ok((Ok(Table::default()), edited(&reply)));
        }
        if let Some(table) = tables::unfolded(table) {
            return Ok((Ok(table), edited(&reply)));
        }
    }
    let reply = stage.call("query", arguments(stage, sql, limit)).await?;
    Ok((tables::read(&reply), edited(&reply)))
}

/// Sends a statement that an answer can do without; `None` if it fails, or if no call of a tool is left.
pub async fn look_up(stage: &Stage<Turn>, sql: &str) -> Result<Option<Table>, StageError> {
    if stage.budget().tool_calls == 0 {
        return Ok(None);
    }
    Ok(query(stage, sql, None).await?.ok())
}

/// The text around a statement, so that Postgres returns each row as JSON.
const AS_JSON: &str = "SELECT to_json(r)::text AS row FROM (";
const END_OF_JSON: &str = ") AS r";

fn edited(reply: &ToolReply) -> Option<String> {
    let edited = reply.edited.as_ref()?;
    let sql = STATEMENT_NAMES.into_iter().find_map(|name| edited.get(name)?.as_str())?;
    let inner = sql.strip_prefix(AS_JSON).and_then(|rest| rest.strip_suffix(END_OF_JSON));
    Some(inner.unwrap_or(sql).to_owned())
}

fn arguments(stage: &Stage<Turn>, sql: &str, limit: Option<usize>) -> Value {
    let schema = stage.tool("query").map(|tool| &tool.input_schema);
    let properties = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let has = |name: &str| properties.is_some_and(|properties| properties.contains_key(name));
    let name = STATEMENT_NAMES.into_iter().find(|name| has(name)).unwrap_or("sql");
    let mut arguments = json!({ name: sql });
    if let Some(limit) = limit.filter(|_| has("limit")) {
        arguments["limit"] = json!(limit);
    }
    arguments
}

/// Asks in ways that only one kind of database answers.
async fn dialect(stage: &Stage<Turn>) -> Result<Dialect, StageError> {
    let version = query(stage, "SELECT version() AS v", None).await?;
    if let Ok(table) = &version {
        let words = json!(table.rows).to_string();
        let is_postgres = words.contains("PostgreSQL");
        return Ok(if is_postgres { Dialect::Postgres } else { Dialect::DuckDb });
    }
    if query(stage, "SELECT sqlite_version() AS v", None).await?.is_ok() {
        return Ok(Dialect::Sqlite);
    }
    if query(stage, "SELECT @@VERSION AS v", None).await?.is_ok() {
        return Ok(Dialect::TSql);
    }
    let words = version.err().unwrap_or_default();
    let message = format!("the server's database is none that this agent knows; it says: {words}");
    Err(AgentError::new(ErrorKind::Query, message).into())
}

/// Reads tables, columns and keys by SQL, for servers that list them in their own words or not at all; a key of several
/// columns is left out.
async fn catalogue(stage: &Stage<Turn>, dialect: Dialect) -> Result<Catalogue, StageError> {
    let (columns, keys) = match dialect {
        Dialect::Sqlite => (
            "SELECT 'main' AS s, m.name AS t, m.type AS k, p.name AS c, p.type AS d, p.pk AS p \
             FROM sqlite_master m, pragma_table_info(m.name) p \
             WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY m.name, p.cid",
            "SELECT 'main' AS s, m.name AS t, f.\"from\" AS c, 'main' AS fs, f.\"table\" AS ft, f.\"to\" AS fc \
             FROM sqlite_master m, pragma_foreign_key_list(m.name) f WHERE m.type = 'table' \
               AND (SELECT count(*) FROM pragma_foreign_key_list(m.name) x WHERE x.id = f.id) = 1 ORDER BY m.name, f.id",
        ),
        Dialect::Postgres => (
            "SELECT c.table_schema AS s, c.table_name AS t, \
                    (SELECT lower(x.table_type) FROM information_schema.tables x WHERE x.table_schema = c.table_schema AND x.table_name = c.table_name) AS k, \
                    c.column_name AS c, c.data_type AS d, \
                    (SELECT count(*) FROM information_schema.table_constraints tc JOIN information_schema.key_column_usage u \
                       ON u.constraint_name = tc.constraint_name AND u.table_schema = tc.table_schema \
                     WHERE tc.constraint_type = 'PRIMARY KEY' AND u.table_schema = c.table_schema AND u.table_name = c.table_name AND u.column_name = c.column_name) AS p \
             FROM information_schema.columns c WHERE c.table_schema NOT IN ('information_schema', 'pg_catalog') \
             ORDER BY c.table_schema, c.table_name, c.ordinal_position",
            "SELECT n.nspname AS s, r.relname AS t, a.attname AS c, fn.nspname AS fs, fr.relname AS ft, fa.attname AS fc \
             FROM pg_constraint k JOIN pg_class r ON r.oid = k.conrelid JOIN pg_namespace n ON n.oid = r.relnamespace \
             JOIN pg_class fr ON fr.oid = k.confrelid JOIN pg_namespace fn ON fn.oid = fr.relnamespace \
             JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum = k.conkey[1] \
             JOIN pg_attribute fa ON fa.attrelid = fr.oid AND fa.attnum = k.confkey[1] \
             WHERE k.contype = 'f' AND array_length(k.conkey, 1) = 1 ORDER BY k.conname",
        ),
        Dialect::DuckDb => (
            "SELECT c.schema_name AS s, c.table_name AS t, 'table' AS k, c.column_name AS c, c.data_type AS d, \
                    CASE WHEN EXISTS (SELECT 1 FROM duckdb_constraints() x WHERE x.constraint_type = 'PRIMARY KEY' AND x.table_name = c.table_name \
                      AND list_contains(x.constraint_column_names, c.column_name)) THEN 1 ELSE 0 END AS p \
             FROM duckdb_columns() c WHERE NOT c.internal AND c.database_name = current_database() ORDER BY 1, 2, c.column_index",
            "SELECT schema_name AS s, table_name AS t, constraint_column_names[1] AS c, schema_name AS fs, referenced_table AS ft, \
                    referenced_column_names[1] AS fc FROM duckdb_constraints() WHERE constraint_type = 'FOREIGN KEY' \
               AND len(constraint_column_names) = 1",
        ),
        Dialect::TSql => (
            "SELECT c.TABLE_SCHEMA AS s, c.TABLE_NAME AS t, 'table' AS k, c.COLUMN_NAME AS c, c.DATA_TYPE AS d, \
                    (SELECT COUNT(*) FROM INFORMATION_SCHEMA.TABLE_CONSTRAINTS tc JOIN INFORMATION_SCHEMA.KEY_COLUMN_USAGE u \
                       ON u.CONSTRAINT_NAME = tc.CONSTRAINT_NAME AND u.TABLE_SCHEMA = tc.TABLE_SCHEMA \
                     WHERE tc.CONSTRAINT_TYPE = 'PRIMARY KEY' AND u.TABLE_SCHEMA = c.TABLE_SCHEMA AND u.TABLE_NAME = c.TABLE_NAME \
                       AND u.COLUMN_NAME = c.COLUMN_NAME) AS p \
             FROM INFORMATION_SCHEMA.COLUMNS c ORDER BY c.TABLE_SCHEMA, c.TABLE_NAME, c.ORDINAL_POSITION",
            "SELECT '' AS s, '' AS t, '' AS c, '' AS fs, '' AS ft, '' AS fc WHERE 1 = 0",
        ),
    };
    let rows = match query(stage, columns, None).await? {
        Ok(table) => table.rows,
        Err(words) => {
            let message = format!("the server does not say what tables it has: {words}");
            return Err(AgentError::new(ErrorKind::Query, message).into());
        }
    };
    let mut catalogue = Catalogue::default();
    for row in &rows {
        add_column(&mut catalogue, row, dialect);
    }
    if let Ok(table) = query(stage, keys, None).await? {
        for row in &table.rows {
            add_key(&mut catalogue, row);
        }
    }
    Ok(catalogue)
}

fn text(row: &[Value], at: usize) -> String {
    match row.get(at) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

fn add_column(catalogue: &mut Catalogue, row: &[Value], dialect: Dialect) {
    let schema = text(row, 0);
    let home = match dialect {
        Dialect::Postgres => "public",
        Dialect::TSql => "dbo",
        _ => "main",
    };
    let name = TableName { unqualified: schema == home, schema, name: text(row, 1) };
    if catalogue.table(&name).is_none() {
        let is_view = text(row, 2).contains("view");
        catalogue.tables.push(SqlTable { name: name.clone(), is_view, ..SqlTable::default() });
    }
    let found = catalogue.tables.iter_mut().rev().find(|table| table.name == name);
    if let Some(table) = found {
        let column = text(row, 3);
        if !matches!(text(row, 5).as_str(), "" | "0") {
            table.primary_key.push(column.clone());
        }
        table.columns.push(column_of(column, text(row, 4)));
    }
}

fn column_of(name: String, data_type: String) -> Column {
    Column { name, data_type, nullable: true, ..Column::default() }
}

fn add_key(catalogue: &mut Catalogue, row: &[Value]) {
    let named = |schema: usize, table: usize| {
        let schema = text(row, schema);
        let table = text(row, table);
        catalogue.tables.iter().position(|known| {
            known.name.schema == schema && known.name.name.eq_ignore_ascii_case(&table)
        })
    };
    let (Some(from), Some(to)) = (named(0, 1), named(3, 4)) else { return };
    let target = &catalogue.tables[to];
    let to_column = match text(row, 5) {
        column if column.is_empty() => target.primary_key.first().cloned().unwrap_or_default(),
        column => column,
    };
    let key =
        ForeignKey { columns: vec![text(row, 2)], table: target.name.clone(), to: vec![to_column] };
    catalogue.tables[from].foreign_keys.push(key);
}

fn of_bundled(listed: &Value) -> Option<Survey> {
    let dialect = Dialect::deserialize(listed.get("dialect")?).ok()?;
    let home = if dialect == Dialect::Postgres { "public" } else { "main" };
    let strings = |value: &Value, key: &str| -> Vec<String> {
        let list = value[key].as_array().into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut catalogue = Catalogue::default();
    for table in listed.get("tables")?.as_array()? {
        let name = name_of(table.get("name")?.as_str()?, home);
        let types = strings(table, "types");
        let kind = |at: usize| types.get(at).cloned().unwrap_or_default();
        let columns = strings(table, "columns").into_iter().enumerate();
        let columns = columns.map(|(at, name)| column_of(name, kind(at))).collect();
        let keys = table["foreign_keys"].as_array().into_iter().flatten();
        let foreign_keys = keys
            .filter_map(|key| {
                Some(ForeignKey {
                    columns: strings(key, "columns"),
                    table: name_of(key.get("table")?.as_str()?, home),
                    to: strings(key, "to"),
                })
            })
            .collect();
        catalogue.tables.push(SqlTable {
            name,
            is_view: table.get("kind").and_then(Value::as_str) == Some("view"),
            comment: table.get("comment").and_then(Value::as_str).map(str::to_owned),
            columns,
            primary_key: strings(table, "primary_key"),
            foreign_keys,
            ..SqlTable::default()
        });
    }
    Some(Survey { dialect, catalogue, guards_itself: true })
}

/// Reads a name as the bundled server shows it: `orders`, `audit.log`, `"Odd one"`.
fn name_of(shown: &str, home: &str) -> TableName {
    let mut parts: Vec<String> = Vec::new();
    let mut part = String::new();
    let mut quoted = false;
    for c in shown.chars() {
        match c {
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(std::mem::take(&mut part)),
            c => part.push(c),
        }
    }
    match parts.pop() {
        Some(schema) => TableName { schema, name: part, unqualified: false },
        None => TableName { schema: home.to_owned(), name: part, unqualified: true },
    }
}

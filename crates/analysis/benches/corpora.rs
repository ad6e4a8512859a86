//! Measures the guard, the linking and the joins on public questions and their gold statements.
//!
//! `make bench-analysis` runs it over the directory that `PERIHELION_ANALYSIS_CORPORA` names, with `taoyds/spider`
//! as `spider`, `defog-ai/sql-eval` as `sql-eval` and `defog-ai/defog-data` as `defog-data`; what is absent is said and
//! left out. Nothing of them is kept here.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Instant;

use perihelion_analysis::guard::{Permitted, Policy, TableName, guard};
use perihelion_analysis::joins::JoinGraph;
use perihelion_analysis::linking::Linker;
use perihelion_analysis::{Catalogue, Column, Dialect, ForeignKey, Table};
use serde_json::Value;

/// Tables in a pack.
const PACK: usize = 12;

type Problem = Box<dyn std::error::Error>;

fn main() -> Result<(), Problem> {
    let Some(directory) = std::env::var_os("PERIHELION_ANALYSIS_CORPORA").map(PathBuf::from) else {
        println!("PERIHELION_ANALYSIS_CORPORA names no directory; there is nothing to measure");
        return Ok(());
    };
    spider(&directory.join("spider/evaluation_examples/examples"))?;
    for dialect in [Dialect::Postgres, Dialect::Sqlite, Dialect::TSql] {
        sql_eval(&directory, dialect)?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<Option<Value>, Problem> {
    if !path.is_file() {
        println!("absent: {}", path.display());
        return Ok(None);
    }
    Ok(Some(serde_json::from_str(&std::fs::read_to_string(path)?)?))
}

fn name(name: &str, dialect: Dialect) -> TableName {
    let schema = match dialect {
        Dialect::Postgres => "public",
        Dialect::TSql => "dbo",
        _ => "main",
    };
    TableName { schema: schema.into(), name: name.into(), unqualified: true }
}

fn policy(catalogue: &Catalogue) -> Policy {
    let tables = catalogue.tables.iter().map(|table| Permitted {
        name: table.name.clone(),
        columns: table.columns.iter().map(|column| column.name.clone()).collect(),
        filter: None,
    });
    Policy { tables: tables.collect(), ..Policy::default() }
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// One of Spider's schemas, with the table of each of its columns.
fn schema(stored: &Value) -> (Catalogue, Vec<(usize, String)>) {
    let mut catalogue = Catalogue::default();
    for table in strings(&stored["table_names_original"]) {
        catalogue.tables.push(Table {
            name: name(&table, Dialect::Sqlite),
            is_view: false,
            comment: None,
            columns: Vec::new(),
            primary_key: Vec::new(),
            unique: Vec::new(),
            foreign_keys: Vec::new(),
        });
    }
    let types = strings(&stored["column_types"]);
    let mut places = Vec::new();
    for (at, column) in stored["column_names_original"].as_array().into_iter().flatten().enumerate()
    {
        let table =
            column[0].as_i64().and_then(|at| usize::try_from(at).ok()).unwrap_or(usize::MAX);
        let title = column[1].as_str().unwrap_or_default().to_owned();
        if let Some(owner) = catalogue.tables.get_mut(table) {
            owner.columns.push(Column {
                name: title.clone(),
                data_type: types.get(at).cloned().unwrap_or_default(),
                nullable: true,
                comment: None,
                values: Vec::new(),
            });
        }
        places.push((table, title));
    }
    let place = |index: &Value| {
        let at = index.as_u64().and_then(|at| usize::try_from(at).ok())?;
        places.get(at).cloned()
    };
    for key in stored["primary_keys"].as_array().into_iter().flatten() {
        if let Some((table, column)) = place(key) {
            catalogue.tables[table].primary_key.push(column);
        }
    }
    for key in stored["foreign_keys"].as_array().into_iter().flatten() {
        if let (Some((from, column)), Some((to, to_column))) = (place(&key[0]), place(&key[1])) {
            let table = catalogue.tables[to].name.clone();
            let key = ForeignKey { columns: vec![column], table, to: vec![to_column] };
            catalogue.tables[from].foreign_keys.push(key);
        }
    }
    (catalogue, places)
}

fn spider(directory: &Path) -> Result<(), Problem> {
    let (Some(schemas), Some(questions)) =
        (read(&directory.join("tables.json"))?, read(&directory.join("dev.json"))?)
    else {
        return Ok(());
    };
    let mut databases = HashMap::new();
    let mut whole = Catalogue::default();
    let mut start: HashMap<String, usize> = HashMap::new();
    for stored in schemas.as_array().into_iter().flatten() {
        let id = stored["db_id"].as_str().unwrap_or_default().to_owned();
        let (catalogue, places) = schema(stored);
        start.insert(id.clone(), whole.tables.len());
        whole.tables.extend(catalogue.tables.iter().cloned());
        databases.insert(id, (catalogue, places));
    }
    let linker = Linker::new(&whole);
    let mut asked = 0;
    let mut accepted = 0;
    let mut found: BTreeMap<usize, usize> = BTreeMap::new();
    let mut in_pack = 0;
    let mut joins = 0;
    let mut available = 0;
    let mut times = Vec::new();
    let mut refused: Vec<String> = Vec::new();
    for one in questions.as_array().into_iter().flatten() {
        let id = one["db_id"].as_str().unwrap_or_default();
        let (Some((catalogue, places)), Some(offset)) = (databases.get(id), start.get(id)) else {
            continue;
        };
        let sql = one["query"].as_str().unwrap_or_default();
        let question = one["question"].as_str().unwrap_or_default();
        asked += 1;
        let gold: Vec<usize> = match guard(sql, Dialect::Sqlite, &policy(catalogue)) {
            Ok(guarded) => {
                accepted += 1;
                let at = |name: &TableName| catalogue.tables.iter().position(|t| t.name == *name);
                guarded.tables().iter().filter_map(at).collect()
            }
            Err(error) => {
                refused.push(format!("{sql}\n    {error}"));
                continue;
            }
        };
        let began = Instant::now();
        let ranked = linker.rank(question);
        let _ = linker.pick(question, &[], PACK);
        times.push(began.elapsed());
        for most in [3, 5, 10, 20] {
            let top: Vec<usize> = ranked.tables.iter().take(most).map(|l| l.table).collect();
            let all = gold.iter().all(|at| top.contains(&(at + offset)));
            *found.entry(most).or_default() += usize::from(all);
        }
        let pack = Linker::new(catalogue).pick(question, &[], PACK);
        in_pack += usize::from(gold.iter().all(|at| pack.contains(at)));
        let known = JoinGraph::new(catalogue).joins();
        for pair in conditions(&one["sql"]["from"]["conds"], places) {
            joins += 1;
            let ((one_table, one_column), (other_table, other_column)) = pair;
            let shown = |at: usize| catalogue.tables[at].name.shown();
            let is = |join: &&perihelion_analysis::joins::Join| {
                let ends = |a: usize, ac: &str, b: usize, bc: &str| {
                    join.table == shown(a)
                        && join.to_table == shown(b)
                        && join.columns == [ac.to_owned()]
                        && join.to_columns == [bc.to_owned()]
                };
                ends(one_table, &one_column, other_table, &other_column)
                    || ends(other_table, &other_column, one_table, &one_column)
            };
            available += usize::from(known.iter().any(|join| is(&join)));
        }
    }
    times.sort();
    let p95 = times.get(times.len() * 95 / 100).copied().unwrap_or_default();
    println!("spider: {} tables, {asked} questions", whole.tables.len());
    println!("  guard accepts gold statements: {accepted} of {asked}");
    for refusal in refused.iter().take(10) {
        println!("    refused: {refusal}");
    }
    for (most, all) in &found {
        println!("  all gold tables in the top {most} of one catalogue: {}", share(*all, asked));
    }
    println!("  all gold tables in the pack of their database: {}", share(in_pack, asked));
    println!("  gold joins offered: {}", share(available, joins));
    println!("  ranking and picking, p95: {:.1} ms", p95.as_secs_f64() * 1000.0);
    Ok(())
}

type Place = (usize, String);

/// Returns the pairs of columns that Spider's parsed form joins.
fn conditions(conditions: &Value, places: &[Place]) -> Vec<(Place, Place)> {
    let place = |value: &Value| {
        let at = value.as_u64().and_then(|at| usize::try_from(at).ok())?;
        places.get(at).filter(|(table, _)| *table != usize::MAX).cloned()
    };
    let each = conditions.as_array().into_iter().flatten().filter(|one| one.is_array());
    each.filter_map(|one| Some((place(&one[2][1][1])?, place(&one[3][1])?)))
        .filter(|(one, other)| one.0 != other.0)
        .collect()
}

fn share(part: usize, whole: usize) -> String {
    format!("{part} of {whole} ({:.1} %)", part as f64 * 100.0 / whole.max(1) as f64)
}

/// Guards the gold statements of one dialect.
fn sql_eval(directory: &Path, dialect: Dialect) -> Result<(), Problem> {
    let word = match dialect {
        Dialect::Postgres => "postgres",
        Dialect::TSql => "tsql",
        _ => "sqlite",
    };
    let mut catalogues: HashMap<String, Catalogue> = HashMap::new();
    let mut asked = 0;
    let mut accepted = 0;
    let mut refused: Vec<String> = Vec::new();
    for set in ["questions_gen", "instruct_basic", "instruct_advanced"] {
        let path = directory.join(format!("sql-eval/data/{set}_{word}.csv"));
        if !path.is_file() {
            println!("absent: {}", path.display());
            continue;
        }
        for row in csv::Reader::from_path(&path)?.deserialize::<HashMap<String, String>>() {
            let row = row?;
            let (Some(id), Some(query)) = (row.get("db_name"), row.get("query")) else { continue };
            if !catalogues.contains_key(id) {
                let path = directory.join(format!("defog-data/defog_data/{id}/{id}.json"));
                let Some(stored) = read(&path)? else { continue };
                catalogues.insert(id.clone(), defog(&stored, dialect));
            }
            let policy = policy(&catalogues[id]);
            // Several right statements stand one after the other, and columns of which one will do in braces; empty
            // ones stand for the first.
            for sql in query.split(';').filter(|sql| !sql.trim().is_empty()) {
                let first = sql.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
                let sql = sql.replace("{}", first.map_or("", |(columns, _)| columns));
                let sql = sql.replace(['{', '}'], "");
                asked += 1;
                match guard(&sql, dialect, &policy) {
                    Ok(_) => accepted += 1,
                    Err(error) => refused.push(format!("{}\n    {error}", sql.trim())),
                }
            }
        }
    }
    println!("sql-eval, {word}: guard accepts gold statements: {accepted} of {asked}");
    for refusal in refused.iter().take(20) {
        println!("    refused: {refusal}");
    }
    Ok(())
}

fn defog(stored: &Value, dialect: Dialect) -> Catalogue {
    let mut catalogue = Catalogue::default();
    for (table, columns) in stored["table_metadata"].as_object().into_iter().flatten() {
        let mut name = name(table, dialect);
        if let Some((schema, table)) = table.split_once('.') {
            name = match dialect {
                // A file of SQLite has no schemas: the corpus leaves them out there.
                Dialect::Sqlite => self::name(table, dialect),
                _ => TableName { schema: schema.into(), name: table.into(), unqualified: false },
            };
        }
        // Unquoted names are lower case in Postgres, whatever the list says.
        let fold = |text: &str| match dialect {
            Dialect::Postgres => text.to_lowercase(),
            _ => text.to_owned(),
        };
        name.name = fold(&name.name);
        let columns = columns.as_array().into_iter().flatten().map(|column| Column {
            name: fold(column["column_name"].as_str().unwrap_or_default()),
            data_type: column["data_type"].as_str().unwrap_or_default().to_owned(),
            nullable: true,
            comment: column["column_description"].as_str().map(str::to_owned),
            values: Vec::new(),
        });
        catalogue.tables.push(Table {
            name,
            is_view: false,
            comment: None,
            columns: columns.collect(),
            primary_key: Vec::new(),
            unique: Vec::new(),
            foreign_keys: Vec::new(),
        });
    }
    catalogue
}

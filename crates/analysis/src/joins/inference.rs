//! Undeclared keys, inferred from names and types.

use std::collections::HashMap;

use super::Edge;
use crate::{Catalogue, kind_of};

/// Adds keys that a column's name and type suggest: `orders.customer_id` refers to `customers.id`.
pub fn infer(catalogue: &Catalogue, edges: &mut Vec<Edge>) {
    let mut named: HashMap<String, Vec<(usize, String)>> = HashMap::new();
    for (at, table) in catalogue.tables.iter().enumerate() {
        let [key] = table.primary_key.as_slice() else { continue };
        let plain = key.to_ascii_lowercase().replace('_', "");
        let mut names = vec![];
        if !matches!(plain.as_str(), "id" | "name" | "code" | "key" | "date") {
            names.push(plain.clone());
        }
        if matches!(plain.as_str(), "id" | "code" | "key") {
            let name = table.name.name.to_ascii_lowercase().replace('_', "");
            names.push(format!("{}{plain}", singular(&name)));
            names.push(format!("{name}{plain}"));
        }
        names.sort();
        names.dedup();
        for name in names {
            named.entry(name).or_default().push((at, key.clone()));
        }
    }
    for (from, table) in catalogue.tables.iter().enumerate() {
        for column in &table.columns {
            let plain = column.name.to_ascii_lowercase().replace('_', "");
            // A name that is the key of many tables is no evidence.
            let Some([(to, key)]) = named.get(&plain).map(Vec::as_slice) else { continue };
            let own_key = table.primary_key.len() == 1 && table.primary_key[0] == column.name;
            let declared = table.foreign_keys.iter().any(|key| key.columns.contains(&column.name));
            let target = &catalogue.tables[*to];
            let same_type = target
                .column(key)
                .is_some_and(|key| type_class(&key.data_type) == type_class(&column.data_type));
            if *to != from && !own_key && !declared && same_type {
                edges.push(Edge {
                    from,
                    columns: vec![column.name.clone()],
                    to: *to,
                    to_columns: vec![key.clone()],
                    inferred: true,
                });
            }
        }
    }
}

fn singular(name: &str) -> String {
    if let Some(stem) = name.strip_suffix("ies") {
        format!("{stem}y")
    } else if let Some(stem) = name.strip_suffix("sses") {
        format!("{stem}ss")
    } else {
        name.strip_suffix('s').unwrap_or(name).to_owned()
    }
}

pub fn type_class(data_type: &str) -> &'static str {
    let data_type = kind_of(data_type).to_ascii_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| data_type.contains(part));
    if has(&["int", "serial", "numeric", "decimal", "number", "real", "double", "float", "money"]) {
        "number"
    } else if has(&["char", "text", "clob", "string", "uuid", "enum"]) {
        "text"
    } else if has(&["date", "time"]) {
        "time"
    } else if has(&["bool", "bit"]) {
        "truth"
    } else {
        "other"
    }
}

//! A small catalogue for tests: a shop, and flights with two keys to one table.

use crate::guard::TableName;
use crate::{Catalogue, Column, ForeignKey, Table};

pub fn name(name: &str) -> TableName {
    TableName { schema: "main".into(), name: name.into(), unqualified: true }
}

fn table(
    title: &str,
    columns: &[(&str, &str)],
    key: &[&str],
    keys: &[(&str, &str, &str)],
) -> Table {
    Table {
        name: name(title),
        columns: columns
            .iter()
            .map(|(name, data_type)| Column {
                name: (*name).into(),
                data_type: (*data_type).into(),
                nullable: true,
                comment: None,
                values: Vec::new(),
            })
            .collect(),
        primary_key: key.iter().map(|part| (*part).to_owned()).collect(),
        foreign_keys: keys
            .iter()
            .map(|(column, to, to_column)| ForeignKey {
                columns: vec![(*column).into()],
                table: name(to),
                to: vec![(*to_column).into()],
            })
            .collect(),
        ..Table::default()
    }
}

pub fn catalogue() -> Catalogue {
    let number = "integer";
    Catalogue {
        tables: vec![
            table(
                "customers",
                &[("id", number), ("name", "text"), ("country", "text")],
                &["id"],
                &[],
            ),
            table(
                "orders",
                &[
                    ("id", number),
                    ("customer_id", number),
                    ("total", "numeric"),
                    ("ordered_at", "date"),
                ],
                &["id"],
                &[("customer_id", "customers", "id")],
            ),
            table(
                "lines",
                &[
                    ("order_id", number),
                    ("line", number),
                    ("product_id", number),
                    ("quantity", number),
                ],
                &["order_id", "line"],
                &[("order_id", "orders", "id")],
            ),
            table(
                "products",
                &[("id", number), ("title", "text"), ("price", "numeric")],
                &["id"],
                &[],
            ),
            table("notes", &[("text", "text")], &[], &[]),
            table("airports", &[("code", "text"), ("city", "text")], &["code"], &[]),
            table(
                "flights",
                &[("id", number), ("origin", "text"), ("destination", "text")],
                &["id"],
                &[("origin", "airports", "code"), ("destination", "airports", "code")],
            ),
        ],
    }
}

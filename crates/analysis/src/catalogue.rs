//! The contents of a database: tables, their columns and keys. Read by a server, reasoned about here.

use serde::{Deserialize, Serialize};

use crate::guard::TableName;

/// The tables of a database that may be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Catalogue {
    pub tables: Vec<Table>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    pub name: TableName,
    pub is_view: bool,
    pub comment: Option<String>,
    pub columns: Vec<Column>,
    /// Columns of the primary key, in its order; empty without one.
    #[serde(default)]
    pub primary_key: Vec<String>,
    /// Further sets of columns that are unique together.
    #[serde(default)]
    pub unique: Vec<Vec<String>>,
    #[serde(default)]
    pub foreign_keys: Vec<ForeignKey>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Column {
    pub name: String,
    /// As the database declares it. A user-defined type has its kind in parentheses: `mood (enum)`.
    pub data_type: String,
    pub nullable: bool,
    pub comment: Option<String>,
    #[serde(default)]
    pub values: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignKey {
    pub columns: Vec<String>,
    pub table: TableName,
    pub to: Vec<String>,
}

/// Returns the kind of a type of the database's own, such as `enum` of `mood (enum)`; of others, the type.
pub fn kind_of(data_type: &str) -> &str {
    let kind = data_type.rsplit_once(" (").and_then(|(_, kind)| kind.strip_suffix(')'));
    // Others have their length there, such as `varchar (20)`.
    kind.filter(|kind| ["text", "enum", "number", "date", "bool"].contains(kind))
        .unwrap_or(data_type)
}

impl Catalogue {
    pub fn table(&self, name: &TableName) -> Option<&Table> {
        self.tables
            .iter()
            .find(|table| table.name.schema == name.schema && table.name.name == name.name)
    }

    /// Returns the table that a person or model means by a name as they write it, quoted or not.
    pub fn named(&self, name: &str) -> Option<&Table> {
        let wanted = name.trim().replace(['"', '`', '[', ']'], "");
        let exact = |table: &&Table| table.name.is_written(&wanted);
        let alike = |table: &&Table| {
            table.name.name.eq_ignore_ascii_case(&wanted)
                || format!("{}.{}", table.name.schema, table.name.name)
                    .eq_ignore_ascii_case(&wanted)
        };
        self.tables.iter().find(exact).or_else(|| self.tables.iter().find(alike))
    }

    /// Returns a short text that changes when tables, columns or keys do.
    pub fn fingerprint(&self) -> String {
        // FNV-1a: not for secrets, but equal on every machine and in every version.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for table in &self.tables {
            let keys = format!("{:?}{:?}{:?}", table.primary_key, table.unique, table.foreign_keys);
            let columns = table.columns.iter().map(|c| format!("{}:{};", c.name, c.data_type));
            let text = format!("{}{}{keys}", table.name.shown(), columns.collect::<String>());
            for byte in text.bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
        format!("{hash:016x}")
    }
}

impl Table {
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))
    }
}

impl TableName {
    /// Returns whether a name, in exact spelling, means this table.
    pub fn is_written(&self, name: &str) -> bool {
        (self.unqualified && self.name == name) || format!("{}.{}", self.schema, self.name) == name
    }
}

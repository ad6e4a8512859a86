//! Items that clients keep, under a path of names.

use chrono::{DateTime, Utc};
use perihelion_database::{FromRow, Row, query};
use serde_json::{Value as Json, json};

use crate::sql::{Comparison, Statement};
use crate::{Kept, Result};

/// Ends each name of a stored path; a name cannot contain it.
const END: char = '\u{1f}';

/// The letter after [`END`].
const AFTER_END: char = '\u{20}';

#[derive(Clone, Debug)]
pub struct Item {
    pub namespace: Vec<String>,
    pub key: String,
    pub value: Json,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// `None`: it stays until it is deleted.
    pub expires_at: Option<DateTime<Utc>>,
}

#[derive(Clone, Debug, Default)]
pub struct ItemFilter {
    pub prefix: Vec<String>,
    /// Fields that values must have: equal to a value, or as `$eq`, `$ne`, `$gt`, `$gte`, `$lt` and `$lte` compare them.
    pub filter: Option<Json>,
    /// Words that keys or values must contain.
    pub words: Option<String>,
    pub limit: u32,
    pub offset: u32,
}

impl FromRow for Item {
    fn from_row(row: &Row) -> Result<Self, perihelion_database::Error> {
        Ok(Self {
            namespace: names(&row.get::<String>(0)?),
            key: row.get(1)?,
            value: row.get(2)?,
            created_at: row.get(3)?,
            updated_at: row.get(4)?,
            expires_at: row.get(5)?,
        })
    }
}

impl Kept {
    /// Keeps an item in place of an earlier one of its name, until a time or until it is deleted.
    pub async fn put_item(&self, item: &Item) -> Result<()> {
        let put = query(
            "INSERT INTO service_item (tenant, namespace, key, value, created_at, updated_at, expires_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (tenant, namespace, key) \
             DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at, \
                expires_at = excluded.expires_at, created_at = CASE \
                    WHEN service_item.expires_at <= excluded.updated_at THEN excluded.created_at \
                    ELSE service_item.created_at END",
        );
        let put = put.binds((&self.tenant, path(&item.namespace), &item.key)).binds((
            item.value.clone(),
            item.created_at,
            item.updated_at,
            item.expires_at,
        ));
        self.change(put).await.map(drop)
    }

    /// Deletes items of all tenants whose time has passed.
    pub async fn forget_items(&self, now: DateTime<Utc>) -> Result<u64> {
        let forget = query("DELETE FROM service_item WHERE expires_at <= $1");
        self.change_of_all(forget.bind(now)).await
    }

    /// Returns an item that has not expired.
    pub async fn item(
        &self,
        namespace: &[String],
        key: &str,
        now: DateTime<Utc>,
    ) -> Result<Option<Item>> {
        let find = query(
            "SELECT namespace, key, value, created_at, updated_at, expires_at FROM service_item \
             WHERE tenant = $1 AND namespace = $2 AND key = $3 AND (expires_at IS NULL OR expires_at > $4)",
        );
        let find = find.binds((&self.tenant, path(namespace), key, now));
        Ok(self.of_tenant().row(&find).await?)
    }

    /// Deletes an item; a missing one counts as deleted.
    pub async fn delete_item(&self, namespace: &[String], key: &str) -> Result<()> {
        let delete =
            query("DELETE FROM service_item WHERE tenant = $1 AND namespace = $2 AND key = $3");
        self.change(delete.binds((&self.tenant, path(namespace), key))).await.map(drop)
    }

    /// Searches items below a path that have not expired, newest update first.
    pub async fn items(&self, filter: &ItemFilter, now: DateTime<Utc>) -> Result<Vec<Item>> {
        Ok(self.of_tenant().rows(&self.search(filter, now).build()).await?)
    }

    fn search(&self, filter: &ItemFilter, now: DateTime<Utc>) -> Statement {
        let mut find = self.statement("");
        find.add(
            "SELECT namespace, key, value, created_at, updated_at, expires_at FROM service_item \
             WHERE tenant = ? AND (expires_at IS NULL OR expires_at > ?)",
            (&self.tenant, now),
        );
        // A range of letters, which SQLite finds by the primary key and Postgres by an index in this order.
        if let Some((from, to)) = range(&filter.prefix) {
            let name = self.by_letters();
            find.add(&format!(" AND {name} >= ? AND {name} < ?"), (from, to));
        }
        let fields = filter.filter.as_ref().and_then(Json::as_object).into_iter().flatten();
        for (name, wanted) in fields {
            match comparisons(wanted) {
                None => {
                    find.text(" AND ").contains("service_item.value", &json!({ name: wanted }));
                }
                Some(comparisons) => {
                    for (comparison, wanted) in comparisons {
                        find.text(" AND ").compares("service_item.value", name, comparison, wanted);
                    }
                }
            }
        }
        if let Some(words) = &filter.words {
            let text =
                self.database.dialect().pick("service_item.value", "service_item.value::text");
            find.text(" AND (").mentions("key", words).text(" OR ").mentions(text, words).text(")");
        }
        find.text(" ORDER BY updated_at DESC, namespace, key").page(filter.limit, filter.offset);
        find
    }

    /// The namespace, by letters. In the order of a language, which Postgres would use, names below a path can be apart.
    fn by_letters(&self) -> &'static str {
        self.database.dialect().pick("namespace", "namespace COLLATE \"C\"")
    }

    /// Lists the paths of items, each next to those below it: those below a path, after another one.
    pub async fn namespaces(
        &self,
        below: &[String],
        after: &[String],
        limit: u32,
        now: DateTime<Utc>,
    ) -> Result<Vec<Vec<String>>> {
        let mut find = self.statement("");
        let name = self.by_letters();
        find.add(
            "SELECT namespace FROM service_item WHERE tenant = ? AND (expires_at IS NULL OR expires_at > ?)",
            (&self.tenant, now),
        );
        if let Some((from, to)) = range(below) {
            find.add(&format!(" AND {name} >= ? AND {name} < ?"), (from, to));
        }
        find.text(" AND ").text(name).text(" > ").value(path(after));
        find.text(" GROUP BY namespace ORDER BY ").text(name).page(limit, 0);
        let paths: Vec<String> = self.of_tenant().rows(&find.build()).await?;
        Ok(paths.iter().map(|path| names(path)).collect())
    }
}

/// Returns the comparisons for a field; `None` if it must equal a value.
fn comparisons(wanted: &Json) -> Option<Vec<(Comparison, &Json)>> {
    let fields = wanted.as_object().filter(|fields| !fields.is_empty())?;
    fields.iter().map(|(name, wanted)| Some((Comparison::of(name)?, wanted))).collect()
}

fn path(names: &[String]) -> String {
    names
        .iter()
        .flat_map(|name| name.chars().filter(|letter| *letter != END).chain([END]))
        .collect()
}

/// Returns the bounds of the paths that begin with these names; `None` means all.
fn range(prefix: &[String]) -> Option<(String, String)> {
    let from = path(prefix);
    let to = format!("{}{AFTER_END}", from.strip_suffix(END)?);
    Some((from, to))
}

fn names(path: &str) -> Vec<String> {
    path.split_terminator(END).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use perihelion_database::Database;
    use perihelion_test_database::TestDatabase;

    use super::*;

    fn prefix(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// X1: a search below a path reads only the items below it, and no other data of the tenant.
    #[tokio::test]
    async fn items_below_a_path_are_found_by_the_primary_key() {
        let place = tempfile::tempdir().unwrap();
        let database = Database::open(place.path().join("t.db").to_str().unwrap()).await.unwrap();
        let kept = Kept::new(database, "default");
        let filter = ItemFilter { prefix: prefix(&["a"]), limit: 10, ..ItemFilter::default() };
        let plan = kept.plan(kept.search(&filter, DateTime::UNIX_EPOCH)).await;
        let first = plan.lines().next().unwrap();
        assert!(first.contains("namespace>? AND namespace<?"), "{plan}");
    }

    /// X1: so it is on Postgres, whatever the language that its texts are ordered by.
    #[tokio::test]
    async fn items_below_a_path_are_found_by_an_index_of_postgres() {
        let Some(server) = TestDatabase::make().await else { return };
        let database = Database::open(&server.url).await.unwrap();
        let fill = "INSERT INTO service_item (tenant, namespace, key, value, created_at, updated_at) \
            SELECT 'default', n % 1000 || chr(31), n::text, '{}', now(), now() FROM generate_series(1, 20000) AS n";
        for statement in [fill, "ANALYZE service_item"] {
            database.of_all_tenants().execute(&query(statement)).await.unwrap();
        }
        let kept = Kept::new(database, "default");
        let filter = ItemFilter { prefix: prefix(&["7"]), limit: 10, ..ItemFilter::default() };
        assert_eq!(kept.items(&filter, DateTime::UNIX_EPOCH).await.unwrap().len(), 10);
        let plan = kept.plan(kept.search(&filter, DateTime::UNIX_EPOCH)).await;
        assert!(plan.contains("service_item_path"), "{plan}");
        let by_path = |line: &str| line.contains("Index Cond") && line.contains("namespace");
        assert!(plan.lines().any(by_path), "{plan}");
    }

    #[test]
    fn a_range_has_the_paths_below_and_no_name_with_the_same_prefix() {
        let (from, to) = range(&prefix(&["a"])).unwrap();
        let is_below = |names: &[&str]| (&from..&to).contains(&&path(&prefix(names)));
        assert!(is_below(&["a"]) && is_below(&["a", " "]) && is_below(&["a", "\u{10ffff}"]));
        assert!(
            !is_below(&["ab"]) && !is_below(&["a b"]) && !is_below(&["b"]) && !is_below(&["A"])
        );
        assert!(range(&[]).is_none());
    }
}

//! The attempts to add a document, by which the remains of a failed one are found.

use chrono::{DateTime, Utc};
use perihelion_database::{Query, Row};
use sqlx::AssertSqlSafe;

use crate::library::only;
use crate::{Error, Library, Result, prepare};

/// An adding that was begun; it is remembered until the document is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub id: String,
    pub collection: String,
    pub path: String,
    /// Of the file's bytes.
    pub hash: String,
    pub began_at: DateTime<Utc>,
}

/// The columns of an attempt, in the order in which [`read`] takes them.
pub(crate) const COLUMNS: &str = "id, collection, path, hash, began_at";

pub(crate) fn read(row: &Row) -> Result<Attempt> {
    Ok(Attempt {
        id: row.get(0)?,
        collection: row.get(1)?,
        path: row.get(2)?,
        hash: row.get(3)?,
        began_at: row.get(4)?,
    })
}

impl Library {
    /// Notes that a document is being added, before any part of it is stored.
    pub async fn begin(
        &self,
        collection: &str,
        path: &str,
        hash: &str,
        now: DateTime<Utc>,
    ) -> Result<()> {
        self.database().execute(&self.attempt(collection, path, hash, now)).await?;
        Ok(())
    }

    pub(crate) fn attempt(
        &self,
        collection: &str,
        path: &str,
        hash: &str,
        now: DateTime<Utc>,
    ) -> Query {
        let insert = self.query(
            "INSERT INTO document_attempt (tenant, owner, id, hash, collection, path, began_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (tenant, owner, id, hash) DO UPDATE SET collection = excluded.collection,
                path = excluded.path, began_at = excluded.began_at",
        );
        let id = prepare::id(&self.scope, collection, path);
        insert.binds((id, hash, collection, path, now))
    }

    /// Returns every addition of a document by its ID, the beginning of it, or its path; including failed ones.
    ///
    /// # Errors
    /// [`Error::Unknown`], [`Error::Ambiguous`].
    pub async fn attempts(&self, given: &str) -> Result<Vec<Attempt>> {
        let id = self.id_of(given).await?;
        let sql = format!(
            "SELECT {COLUMNS} FROM document_attempt WHERE tenant = $1 AND owner = $2 AND id = $3 ORDER BY began_at, hash"
        );
        let read = self.query(AssertSqlSafe(sql)).bind(id);
        self.database().fetch_all(&read).await?.iter().map(self::read).collect()
    }

    /// Returns the addings of documents that never got there and were begun before a time, the last time as well.
    pub async fn abandoned(
        &self,
        collection: Option<&str>,
        before: DateTime<Utc>,
    ) -> Result<Vec<Attempt>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM document_attempt a WHERE tenant = $1 AND owner = $2
                AND collection = coalesce($3, collection) AND {NOT_THERE} AND NOT EXISTS (
                    SELECT 1 FROM document_attempt b
                    WHERE b.tenant = a.tenant AND b.owner = a.owner AND b.id = a.id AND b.began_at >= $4)
             ORDER BY began_at, id"
        );
        let read = self.query(AssertSqlSafe(sql));
        let read = read.bind(collection.map(str::to_owned)).bind(before);
        self.database().fetch_all(&read).await?.iter().map(self::read).collect()
    }

    /// Returns the ID of a document, or of the one that was begun and is not there.
    pub(crate) async fn id_of(&self, given: &str) -> Result<String> {
        match self.find(given).await {
            Err(Error::Unknown(_)) => {}
            found => return Ok(found?.id),
        }
        let sql = format!(
            "SELECT DISTINCT id, path FROM document_attempt a WHERE tenant = $1 AND owner = $2
                AND (path = $3 OR substr(id, 1, length($3)) = $3) AND {NOT_THERE} ORDER BY id"
        );
        let read = self.query(AssertSqlSafe(sql)).bind(given);
        let rows = self.database().fetch_all(&read).await?;
        let found = rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?)));
        let found = found.collect::<Result<Vec<(String, String)>>>()?;
        Ok(only(given, found, |(id, path)| format!("{id} ({path})"))?.0)
    }
}

/// An attempt `a` whose document was never completed.
pub(crate) const NOT_THERE: &str = "NOT EXISTS (SELECT 1 FROM document d
    WHERE d.tenant = a.tenant AND d.owner = a.owner AND d.id = a.id)";

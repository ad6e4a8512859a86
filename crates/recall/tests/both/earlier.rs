//! Programs of an earlier version beside this one.

use perihelion_database::query;
use perihelion_recall::{Item, Scope, Search};

use crate::databases::on_each;
use crate::index::Index as _;

/// How programs from before migration 0028 read a space, before they change or search anything in it.
const READS: &str =
    "SELECT id, items, length, next_item, revision, languages, noted FROM recall_space
    WHERE tenant = $1 AND owner = $2 AND kind = $3";

/// How programs from before migration 0043 read what waits.
const WAITING: &str = "SELECT body FROM recall_recent WHERE $1 || $2 || $3 = ''";

/// S3.06: they know nothing of what waits beside the lists, or of its buckets, and would write past it.
#[tokio::test(flavor = "multi_thread")]
async fn older_programs_that_know_only_the_lists_are_refused_and_damage_no_data() {
    on_each(|index| async move {
        let scope = Scope::new("acme", "ada").unwrap();
        index.put(&scope, "note", &[Item::new("i1", "shared words")]).await.unwrap();
        let database = index.database_of(&scope);
        for (sql, unknown) in [(READS, "next_item"), (WAITING, "recall_recent")] {
            let read = query(sql).bind("acme").bind("ada").bind("note");
            let refused = database.fetch_optional(&read).await.map(|row| row.is_some());
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains(unknown), "{refused}");
        }
        index.put(&scope, "note", &[Item::new("i2", "shared words")]).await.unwrap();
        let hits = index.search(&Search::new(&scope, "note", "shared")).await.unwrap().hits;
        assert_eq!(hits.len(), 2);
    })
    .await;
}

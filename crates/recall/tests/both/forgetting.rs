//! What is removed is gone.

use perihelion_database::Database;
use perihelion_recall::{ContentHash, Item, Scope, Search, StoredIndex, content_hash};

use crate::databases::on_each;
use crate::index::Index as _;

fn scope() -> Scope {
    Scope::new("acme", "ada").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn removed_and_replaced_items_are_not_found_and_leave_no_row() {
    on_each(|index| async move {
        let items: Vec<Item> = (0..600)
            .map(|n| {
                Item::new(format!("i{n}"), format!("shared words number{n}"))
                    .with_parent(format!("d{}", n / 300))
            })
            .collect();
        index.put(&scope(), "chunk", &items).await.unwrap();
        index.put(&scope(), "chunk", &[Item::new("i5", "replaced")]).await.unwrap();
        let ids = async |asked: &str| -> Vec<String> {
            let found =
                index.search(&Search::new(&scope(), "chunk", asked).limit(1000)).await.unwrap();
            found.hits.into_iter().map(|hit| hit.id).collect()
        };
        assert_eq!(ids("replaced").await, ["i5"]);
        assert_eq!(ids("shared").await.len(), 599);
        assert_eq!(index.remove_parent(&scope(), "chunk", "d1").await.unwrap(), 300);
        assert_eq!(ids("shared").await.len(), 299);
        assert!(!ids("number450").await.contains(&"i450".to_owned()));
        assert_eq!(index.remove_parent(&scope(), "chunk", "d0").await.unwrap(), 299);
        assert_eq!(index.remove(&scope(), "chunk", &["i5".to_owned()]).await.unwrap(), 1);
        assert_eq!(index.count(&scope(), "chunk").await.unwrap(), 0);
        for table in ["recall_item", "recall_posting", "recall_part", "recall_vector"] {
            let sql = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
            let database = index.database_of(&scope());
            let row = database.fetch_optional(&perihelion_database::query(sql)).await.unwrap();
            assert_eq!(row.unwrap().get::<i64>(0).unwrap(), 0, "{table}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vector_is_deleted_with_the_last_item_of_its_text() {
    on_each(|index| async move {
        let items = [Item::new("a", "same text"), Item::new("b", "same text")];
        index.put(&scope(), "note", &items).await.unwrap();
        let vector = [(content_hash("same text"), vec![1.0, 0.0])];
        index.put_vectors(&scope(), "m", &vector).await.unwrap();
        assert!(index.pending(&scope(), "m", 10).await.unwrap().is_empty());
        index.remove(&scope(), "note", &["a".to_owned()]).await.unwrap();
        assert!(index.pending(&scope(), "m", 10).await.unwrap().is_empty(), "b has it still");
        index.remove(&scope(), "note", &["b".to_owned()]).await.unwrap();
        // An answer that comes after the item is gone is dropped.
        index.put_vectors(&scope(), "m", &vector).await.unwrap();
        index.put(&scope(), "note", &items[..1]).await.unwrap();
        assert_eq!(index.pending(&scope(), "m", 10).await.unwrap().len(), 1);
    })
    .await;
}

/// S3.06: the vectors of what somebody is about to add are kept before it is there, and go when it is given up.
#[tokio::test(flavor = "multi_thread")]
async fn vectors_belong_to_the_process_that_claims_their_texts_until_it_releases_them() {
    on_each(|index| async move {
        let hashes = ["one", "two", "three"].map(content_hash);
        let vectors = hashes.map(|hash| (hash, vec![1.0, 0.0]));
        let database = index.database_of(&scope());
        let claim = async |holder: &str, hashes: &[ContentHash]| {
            let mut transaction = database.begin().await.unwrap();
            StoredIndex::claim_in(&mut transaction, &scope(), holder, hashes).await.unwrap();
            transaction.commit().await.unwrap();
        };
        claim("a", &hashes[..2]).await;
        index.put_vectors(&scope(), "m", &vectors).await.unwrap();
        let kept = async || index.embedded(&scope(), "m", &hashes).await.unwrap();
        assert_eq!(kept().await, hashes[..2], "nobody claims the third");
        claim("b", &hashes[1..2]).await;
        // Claimed again, it is what was said last.
        claim("a", &hashes[..1]).await;
        assert_eq!(kept().await, hashes[..2]);
        index.put(&scope(), "note", &[Item::new("i", "one")]).await.unwrap();
        for (holder, left) in [("a", &hashes[..2]), ("b", &hashes[..1])] {
            let mut transaction = database.begin().await.unwrap();
            StoredIndex::give_up_in(&mut transaction, &scope(), holder, &[]).await.unwrap();
            transaction.commit().await.unwrap();
            assert_eq!(kept().await, left, "an item has the first");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_byte_of_a_removed_item_stays_in_the_files() {
    // It waits; it is divided among the buckets; and all of them are moved into the lists.
    for others in [200, 1_100, 8_000] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("p.db");
        let index = StoredIndex::new(Database::open(path.to_str().unwrap()).await.unwrap());
        let mut items: Vec<Item> =
            (0..others).map(|n| Item::new(format!("i{n}"), format!("plain text {n}"))).collect();
        items[100] =
            Item::new("secret", "xylophonist zanzibarian").with_attribute("k", "xylophonist");
        index.put(&scope(), "note", &items).await.unwrap();
        let vector = [(content_hash("xylophonist zanzibarian"), vec![0.25; 64])];
        index.put_vectors(&scope(), "m", &vector).await.unwrap();
        assert_eq!(index.remove(&scope(), "note", &["secret".to_owned()]).await.unwrap(), 1);
        for entry in std::fs::read_dir(directory.path()).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            let vector = 0.25_f32.to_le_bytes().repeat(4);
            for word in [&b"xylophon"[..], &b"zanzibar"[..], &vector[..]] {
                assert!(!bytes.windows(word.len()).any(|window| window == word), "{others}");
            }
        }
    }
}

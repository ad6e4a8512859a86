//! What a process keeps of an index between searches is what one that just began finds.

use chrono::DateTime;
use perihelion_database::query;
use perihelion_recall::{Filter, Item, QueryVector, Scope, Search, StoredIndex, content_hash};
use serde_json::json;

use crate::databases::on_each;
use crate::index::Index as _;

const MODEL: &str = "m";

fn vector(text: &str) -> Vec<f32> {
    content_hash(text)[..6].iter().map(|digit| f32::from(*digit) - 127.5).collect()
}

fn item(number: usize, version: usize) -> Item {
    let text = format!("item {number} version {version} word{}", number % 7);
    let group = if number.is_multiple_of(2) { "even" } else { "odd" };
    let item = Item::new(format!("i{number}"), text)
        .with_parent(format!("p{}", number % 5))
        .with_attribute("group", group);
    Item { at: DateTime::from_timestamp(number as i64, 0), ..item }
}

async fn embed(index: &StoredIndex, scope: &Scope, items: &[Item]) {
    let pairs: Vec<_> = items
        .iter()
        .map(|item| (content_hash(&item.meaning_text()), vector(&item.meaning_text())))
        .collect();
    index.put_vectors(scope, MODEL, &pairs).await.unwrap();
}

/// S3.06: after each change a search that only reads what changed finds what one finds that reads everything.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_after_a_change_equals_the_search_of_a_new_process() {
    on_each(|index| async move {
        let scope = Scope::new("acme", "ada").unwrap();
        let found = async |index: &StoredIndex, filter: Filter| {
            let values = vector("a question");
            let vector = QueryVector { model: MODEL.to_owned(), values };
            let search = Search::new(&scope, "note", "word3 version")
                .with_vector(Some(vector))
                .with_filter(filter)
                .limit(20);
            let found = index.search(&search).await.unwrap();
            assert!(found.by_meaning);
            let hits = found.hits.into_iter().map(|hit| (hit.id, hit.score, hit.similarity));
            hits.collect::<Vec<_>>()
        };
        let agrees = async |what: &str| {
            let fresh = StoredIndex::new(index.database().clone());
            let mut even = Filter::default();
            even.attributes.insert("group".to_owned(), "even".to_owned());
            let of_parent = Filter { parents: vec!["p1".to_owned()], ..Filter::default() };
            let late = Filter { since: DateTime::from_timestamp(1_000, 0), ..Filter::default() };
            let any = Filter { until: DateTime::from_timestamp(1_000, 0), ..Filter::default() };
            for filter in [Filter::default(), even, of_parent, late, any] {
                let hits = found(&index, filter.clone()).await;
                assert_eq!(hits, found(&fresh, filter.clone()).await, "{what}");
                // Asked again, it is answered from what is kept.
                assert_eq!(hits, found(&index, filter.clone()).await, "{what}");
                assert!(!hits.is_empty() || filter.since.is_some(), "{what}");
            }
        };
        let first: Vec<Item> = (0..40).map(|number| item(number, 1)).collect();
        index.put(&scope, "note", &first).await.unwrap();
        embed(&index, &scope, &first).await;
        agrees("filled").await;
        let more: Vec<Item> = (40..50).map(|number| item(number, 1)).collect();
        index.put(&scope, "note", &more).await.unwrap();
        agrees("new items without vectors").await;
        let newest = [item(50, 1)];
        index.put(&scope, "note", &newest).await.unwrap();
        embed(&index, &scope, &newest).await;
        agrees("a newer one with its vector").await;
        embed(&index, &scope, &more[2..]).await;
        agrees("vectors that came later").await;
        let changed = [item(3, 2), item(44, 2)];
        index.put(&scope, "note", &changed).await.unwrap();
        agrees("replaced").await;
        embed(&index, &scope, &changed).await;
        agrees("replaced, with their vectors").await;
        index.remove_parent(&scope, "note", "p2").await.unwrap();
        agrees("removed").await;
        index.remove(&scope, "note", &["i0".to_owned(), "i49".to_owned()]).await.unwrap();
        index.put(&scope, "note", &[item(60, 1), item(61, 1)]).await.unwrap();
        agrees("removed and added at once").await;
        let later: Vec<_> =
            [5, 8, 60].map(|number| (format!("i{number}"), json!({"n": number}))).into();
        let database = index.database_of(&scope);
        let mut transaction = database.begin().await.unwrap();
        let at = DateTime::from_timestamp(2_000, 0);
        StoredIndex::change_in(&mut transaction, &scope, "note", at, &later).await.unwrap();
        transaction.commit().await.unwrap();
        agrees("another time and payload").await;
        let since = Filter { since: DateTime::from_timestamp(1_000, 0), ..Filter::default() };
        assert_eq!(found(&index, since).await.len(), 3);
        // A program of an earlier version notes nothing but the revision.
        StoredIndex::new(database.clone()).remove_parent(&scope, "note", "p1").await.unwrap();
        index.put(&scope, "note", &[item(71, 1)]).await.unwrap();
        for sql in [
            "DELETE FROM recall_gone",
            "UPDATE recall_item SET changed = 0",
            "UPDATE recall_space SET noted = noted - 2",
        ] {
            database.execute(&query(sql)).await.unwrap();
        }
        agrees("changed by an earlier version").await;
        for number in 0..12 {
            index.remove(&scope, "note", &[format!("i{number}")]).await.unwrap();
            index.put(&scope, "note", &[item(80 + number, 1)]).await.unwrap();
        }
        agrees("many changes").await;
    })
    .await;
}

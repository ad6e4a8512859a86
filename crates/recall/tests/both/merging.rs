//! What was put last is found beside the lists, and once while it is merged into them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use perihelion_database::query;
use perihelion_recall::{Item, Scope, Search, StoredIndex};

use crate::databases::on_each;
use crate::index::Index as _;

const ITEMS: usize = 150;

fn scope() -> Scope {
    Scope::new("acme", "ada").unwrap()
}

/// Words of one item each, whose beginnings differ.
fn word(number: usize) -> String {
    let digits = format!("{:04}", number * 7_919 % 10_000);
    digits.chars().map(|digit| char::from(b'k' + digit as u8 - b'0')).chain("qq".chars()).collect()
}

async fn rows(index: &StoredIndex, table: &str) -> i64 {
    let sql = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
    index.database_of(&scope()).fetch_optional(&query(sql)).await.unwrap().unwrap().get(0).unwrap()
}

/// S3.06: items of one text have one score, so that one that was counted twice, or was missed, shows.
#[tokio::test(flavor = "multi_thread")]
async fn searches_during_merges_find_each_item_once() {
    on_each(|index| async move {
        let put = AtomicUsize::new(0);
        let is_done = AtomicBool::new(false);
        let writes = async {
            for number in 0..ITEMS {
                let item = Item::new(format!("i{number}"), "shared words");
                index.put(&scope(), "note", &[item]).await.unwrap();
                put.store(number + 1, Ordering::SeqCst);
            }
            is_done.store(true, Ordering::SeqCst);
        };
        let reads = async {
            while !is_done.load(Ordering::SeqCst) {
                let before = put.load(Ordering::SeqCst);
                let search = Search::new(&scope(), "note", "shared").limit(1_000);
                let hits = index.search(&search).await.unwrap().hits;
                let scores: BTreeSet<u64> = hits.iter().map(|hit| hit.score.to_bits()).collect();
                assert!(hits.len() >= before, "{} of {before} were found", hits.len());
                assert!(scores.len() <= 1, "{scores:?}");
            }
        };
        tokio::join!(writes, reads);
        assert!(rows(&index, "recall_posting").await > 0, "nothing was merged");
        let waiting = rows(&index, "recall_part").await;
        assert!((1..ITEMS as i64).contains(&waiting), "{waiting} rows wait");
    })
    .await;
}

/// S3.06: what is removed leaves what waits as well as the lists.
#[tokio::test(flavor = "multi_thread")]
async fn items_are_removed_and_replaced_in_every_part() {
    on_each(|index| async move {
        let items: Vec<Item> = (0..2_150)
            .map(|number| {
                let words = format!("shared number{number} {}", word(number));
                Item::new(format!("i{number}"), words)
            })
            .collect();
        let found = async |asked: &str| -> BTreeSet<String> {
            let search = Search::new(&scope(), "note", asked).limit(3_000);
            let hits = index.search(&search).await.unwrap().hits;
            hits.into_iter().map(|hit| hit.id).collect()
        };
        // The first are divided among the buckets, then some of them move into the lists, and the last ones wait.
        index.put(&scope(), "note", &items[..1_050]).await.unwrap();
        assert_eq!(rows(&index, "recall_posting").await, 0);
        let divided = rows(&index, "recall_part").await;
        assert!((50..=61).contains(&divided), "{divided} buckets");
        index.put(&scope(), "note", &items[1_050..2_100]).await.unwrap();
        let moved = rows(&index, "recall_posting").await;
        assert!((100..1_000).contains(&moved), "{moved} blocks");
        assert!(rows(&index, "recall_part").await > divided);
        index.put(&scope(), "note", &items[2_100..]).await.unwrap();
        assert_eq!(found("shared").await.len(), 2_150);
        for number in (0..2_150).step_by(25) {
            let id = format!("i{number}");
            assert_eq!(found(&word(number)).await, BTreeSet::from([id]));
        }
        let gone = ["i7", "i1060", "i2110"].map(str::to_owned);
        assert_eq!(index.remove(&scope(), "note", &gone).await.unwrap(), 3);
        let replaced = ["i8", "i1061", "i2111"];
        index.put(&scope(), "note", &replaced.map(|id| Item::new(id, "another"))).await.unwrap();
        let left = found("shared").await;
        assert_eq!(left.len(), 2_144);
        for id in gone.iter().map(String::as_str).chain(replaced) {
            assert!(!left.contains(id), "{id}");
        }
        assert_eq!(found("another").await, replaced.map(str::to_owned).into());
        // A word that occurs nowhere finds related ones in every part.
        let related = found("number10600").await;
        assert!(!related.contains("i1060"));
        let all: Vec<String> = (0..2_150).map(|number| format!("i{number}")).collect();
        index.remove(&scope(), "note", &all).await.unwrap();
        for table in ["recall_posting", "recall_part", "recall_item"] {
            assert_eq!(rows(&index, table).await, 0, "{table}");
        }
    })
    .await;
}

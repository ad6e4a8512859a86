//! The same items give the same list, wherever they are kept.

use perihelion_database::Database;
use perihelion_recall::{Item, Scope, Search, StoredIndex};
use perihelion_test_database::TestDatabase;

use super::index::Index;
use super::reference::Reference;

const WORDS: [&str; 24] = [
    "invoice",
    "payment",
    "customer",
    "deploy",
    "rollback",
    "cluster",
    "weather",
    "forecast",
    "parcel",
    "carrier",
    "warehouse",
    "stock",
    "ledger",
    "account",
    "currency",
    "exchange",
    "calendar",
    "meeting",
    "reminder",
    "ticket",
    "incident",
    "alert",
    "metric",
    "dashboard",
];

/// Numbers that look random and are the same each time.
struct Draw(u64);

impl Draw {
    fn next(&mut self, below: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % below
    }

    fn text(&mut self, words: usize) -> String {
        let words: Vec<&str> = (0..words).map(|_| WORDS[self.next(WORDS.len())]).collect();
        words.join(" ")
    }
}

async fn fill_and_ask(index: &dyn Index) -> Vec<Vec<(String, u64)>> {
    let scope = Scope::new("acme", "ada").unwrap();
    let mut draw = Draw(7);
    // More than wait to be merged.
    for batch in 0..12 {
        let items: Vec<Item> = (0..150)
            .map(|number| {
                let words = 3 + draw.next(12);
                // Some ids come again in later batches and replace.
                let id = format!("i{}", batch * 120 + number);
                Item::new(id, draw.text(words)).with_field(3.0, draw.text(1))
            })
            .collect();
        index.put(&scope, "note", &items).await.unwrap();
    }
    let gone: Vec<String> = (0..60).map(|number| format!("i{}", number * 7)).collect();
    assert_eq!(index.remove(&scope, "note", &gone).await.unwrap(), 60);
    let mut lists = Vec::new();
    for _ in 0..20 {
        let search = Search::new(&scope, "note", draw.text(4)).limit(100);
        let found = index.search(&search).await.unwrap();
        let hit = |hit: &perihelion_recall::Hit| (hit.id.clone(), (hit.score * 1e6).round() as u64);
        lists.push(found.hits.iter().map(hit).collect());
    }
    assert_eq!(index.count(&scope, "note").await.unwrap(), 1_470 - 60);
    lists
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_sqlite_and_postgres_give_the_same_hundred_with_the_same_scores() {
    let expected = fill_and_ask(&Reference::default()).await;
    assert!(expected.iter().all(|list| list.len() == 100), "the questions are no test");
    let sqlite = StoredIndex::new(Database::open("memory:").await.unwrap());
    assert_eq!(fill_and_ask(&sqlite).await, expected);
    let Some(server) = TestDatabase::make().await else { return };
    let database = Database::open(&server.url).await.unwrap();
    assert_eq!(fill_and_ask(&StoredIndex::new(database.clone())).await, expected);
    database.close().await;
}

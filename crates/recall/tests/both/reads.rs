//! How many rows Postgres reads while it knows nothing yet about the sizes of its tables.

use std::time::Duration;

use perihelion_database::Database;
use perihelion_recall::{Item, QueryVector, Scope, Search, StoredIndex, content_hash};
use perihelion_test_database::TestDatabase;
use sqlx::PgConnection;

use crate::index::Index as _;

const ITEMS: usize = 1_100;

/// Rows of a table that were read. The connections that read them have ended.
async fn read(admin: &mut PgConnection, table: &str) -> i64 {
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
        AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
    let ended = async {
        while sqlx::query_scalar::<_, i64>(others).fetch_one(&mut *admin).await.unwrap() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), ended).await.unwrap();
    sqlx::raw_sql("SELECT pg_stat_clear_snapshot()").execute(&mut *admin).await.unwrap();
    let rows = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = $1";
    sqlx::query_scalar(rows).bind(table).fetch_one(admin).await.unwrap()
}

/// S3.06: an addition, and the search after it, read in proportion to what was added.
#[tokio::test(flavor = "multi_thread")]
async fn on_postgres_an_addition_reads_no_other_words_and_vectors() {
    let Some(server) = TestDatabase::make().await else { return };
    let mut admin = server.connect().await;
    let scope = Scope::new("acme", "ada").unwrap();
    let database = Database::open(&server.url).await.unwrap();
    let index = StoredIndex::new(database.clone());
    let add = async |index: &StoredIndex, items: &[Item]| {
        index.put(&scope, "note", items).await.unwrap();
        let hash = |item: &Item| content_hash(&item.meaning_text());
        let vectors: Vec<_> = items.iter().map(|item| (hash(item), vec![1.0, 2.0])).collect();
        let known: Vec<_> = vectors.iter().map(|(hash, _)| *hash).collect();
        index.embedded(&scope, "drawn", &known).await.unwrap();
        index.put_vectors(&scope, "drawn", &vectors).await.unwrap();
    };
    let items: Vec<Item> =
        (0..ITEMS).map(|n| Item::new(format!("a{n}"), format!("x{n}x y{n}y z{n}z"))).collect();
    add(&index, &items).await;
    database.close().await;
    let words = read(&mut admin, "recall_posting").await;
    let vectors = read(&mut admin, "recall_vector").await;

    let database = Database::open(&server.url).await.unwrap();
    let index = StoredIndex::new(database.clone());
    // More than wait, so they are merged.
    let items: Vec<Item> = (0..ITEMS).map(|n| Item::new(format!("b{n}"), "shared")).collect();
    index.put(&scope, "note", &items).await.unwrap();
    // A connection keeps a plan after five times.
    for n in 0..8 {
        add(&index, &[Item::new(format!("c{n}"), format!("late{n}"))]).await;
        let vector = QueryVector { model: "drawn".to_owned(), values: vec![1.0, 2.0] };
        let search = Search::new(&scope, "note", "shared").with_vector(Some(vector));
        assert!(index.search(&search).await.unwrap().by_meaning);
    }
    database.close().await;
    let words = read(&mut admin, "recall_posting").await - words;
    assert!(words < ITEMS as i64, "{words} blocks of words were read");
    // The first search reads all vectors.
    let vectors = read(&mut admin, "recall_vector").await - vectors;
    assert!(vectors < 2 * ITEMS as i64, "{vectors} vectors were read");
}

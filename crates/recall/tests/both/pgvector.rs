//! Searches by meaning that Postgres answers with pgvector give the list that this process would give.
//!
//! They need a server that has the extension: `make test-pgvector` and `make test` bring one by tests/pgvector.sh; without it they are not run. `PGVECTOR_SEED` repeats a random collection.

use std::collections::BTreeMap;

use perihelion_database::Database;
use perihelion_recall::{Filter, Item, QueryVector, Scope, Search, StoredIndex, content_hash};
use perihelion_test_database::TestDatabase;
use sqlx::{AssertSqlSafe, PgConnection};

use crate::index::Index as _;

const DIMENSION: usize = 24;

/// Items of a collection: more than the ranks of one way of looking that are fused, so that the worst are not among them.
const ITEMS: usize = 600;

/// Items of a filter's group.
const OF_A_GROUP: usize = 30;

/// A server's database, and an administrator's connection to it.
struct Server {
    database: Database,
    admin: PgConnection,
    made: TestDatabase,
}

impl Server {
    async fn start() -> Self {
        let made = TestDatabase::make().await;
        assert!(made.is_some(), "TEST_DATABASE_URL is not set: tests/pgvector.sh sets it");
        let made = made.unwrap();
        let mut admin = made.connect().await;
        let look = "SELECT EXISTS (SELECT 1 FROM pg_available_extensions WHERE name = 'vector')";
        let has_it: bool = sqlx::query_scalar(look).fetch_one(&mut admin).await.unwrap();
        assert!(has_it, "the server has no pgvector; make test-pgvector brings one that has");
        let database = Database::open(&made.url).await.unwrap();
        Self { database, admin, made }
    }

    async fn start_with_extension() -> Self {
        let mut server = Self::start().await;
        server.run("CREATE EXTENSION vector").await;
        server
    }

    async fn run(&mut self, sql: &str) -> u64 {
        let done = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut self.admin).await;
        done.unwrap().rows_affected()
    }

    async fn count(&mut self, what: &str) -> i64 {
        let sql = AssertSqlSafe(format!("SELECT count(*) FROM {what}"));
        sqlx::query_scalar(sql).fetch_one(&mut self.admin).await.unwrap()
    }

    /// An index of a new process that keeps nothing, so that the database ranks where it can.
    fn by_database(&self) -> StoredIndex {
        self.keeping(0)
    }

    /// An index of a new process that reads all vectors.
    fn by_process(&self) -> StoredIndex {
        self.keeping(1 << 30)
    }

    fn keeping(&self, bytes: usize) -> StoredIndex {
        StoredIndex::new(self.database.clone()).keeping_vectors(bytes)
    }

    /// Tells whether a new process's search is ranked by the column: a vector that is turned round there alone goes from the first place
    /// to the last.
    async fn ranks(&mut self, scope: &Scope, index: &StoredIndex, draw: &mut Draw) -> bool {
        let values = draw.vector();
        let first = list(index, scope, "m", &values, None, 1).await.remove(0).0;
        let turn = format!(
            "UPDATE recall_vector v SET embedding = (SELECT array_agg(-n) FROM unnest(embedding::real[]) n)::real[]::vector
             FROM recall_item i JOIN recall_space s ON s.id = i.space
             WHERE i.id = '{first}' AND v.hash = i.hash AND s.tenant = '{0}' AND v.tenant = '{0}'",
            scope.tenant()
        );
        assert_eq!(self.run(&turn).await, 1);
        let now = list(index, scope, "m", &values, None, 300).await;
        assert_eq!(self.run(&turn).await, 1, "turned back");
        !now.iter().any(|(id, ..)| *id == first)
    }
}

/// Numbers that look random and are the same for the same seed.
struct Draw(u64);

impl Draw {
    #[expect(clippy::print_stdout, reason = "shown when the test fails")]
    fn seeded() -> Self {
        let given = std::env::var("PGVECTOR_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0);
        println!("PGVECTOR_SEED={seed}");
        Self(seed)
    }

    fn next(&mut self, below: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % below
    }

    /// Of few different numbers in half of the cases, so that many are equally similar.
    fn vector(&mut self) -> Vec<f32> {
        let steps = if self.next(2) == 0 { 3 } else { 100_000 };
        let mut values: Vec<f32> =
            (0..DIMENSION).map(|_| self.next(steps) as f32 - steps as f32 / 2.0 + 0.5).collect();
        values[0] += 0.25;
        values
    }

    /// An item whose text some others have as well.
    fn item(&mut self, id: usize) -> Item {
        let text = format!("text {}", self.next(ITEMS * 4));
        Item::new(format!("i{id}"), text)
            .with_attribute("group", format!("g{}", id % (ITEMS / OF_A_GROUP)))
    }

    async fn fill(&mut self, index: &StoredIndex, scope: &Scope, ids: std::ops::Range<usize>) {
        let items: Vec<Item> = ids.map(|id| self.item(id)).collect();
        index.put(scope, "note", &items).await.unwrap();
        self.embed(index, scope, "m", &items).await;
    }

    async fn embed(&mut self, index: &StoredIndex, scope: &Scope, model: &str, items: &[Item]) {
        let hashes = items.iter().map(|item| content_hash(&item.meaning_text()));
        let vectors: BTreeMap<_, _> = hashes.map(|hash| (hash, self.vector())).collect();
        let vectors: Vec<_> = vectors.into_iter().collect();
        index.put_vectors(scope, model, &vectors).await.unwrap();
    }
}

/// What a search by meaning alone finds.
async fn list(
    index: &StoredIndex,
    scope: &Scope,
    model: &str,
    values: &[f32],
    group: Option<usize>,
    limit: usize,
) -> Vec<(String, f64, f64)> {
    let group = group.map(|group| ("group".to_owned(), format!("g{group}")));
    let filter = Filter { attributes: group.into_iter().collect(), ..Filter::default() };
    let vector = QueryVector { model: model.to_owned(), values: values.to_vec() };
    let search = Search::new(scope, "note", "").with_vector(Some(vector)).with_filter(filter);
    let found = index.search(&search.limit(limit)).await.unwrap();
    assert!(found.by_meaning);
    found.hits.into_iter().map(|hit| (hit.id, hit.score, hit.similarity.unwrap())).collect()
}

/// Asks both ways the same, with filters and without.
async fn compare(server: &Server, scope: &Scope, model: &str, draw: &mut Draw, what: &str) {
    let database = server.by_database();
    let process = server.by_process();
    for round in 0..12 {
        let values = draw.vector();
        let group = (round % 2 == 1).then(|| draw.next(ITEMS / OF_A_GROUP));
        let limit = 1 + draw.next(250);
        let one = list(&database, scope, model, &values, group, limit).await;
        let other = list(&process, scope, model, &values, group, limit).await;
        assert_eq!(one, other, "{what}, round {round}, group {group:?}, limit {limit}");
        let least = if group.is_some() { OF_A_GROUP - 6 } else { limit };
        assert!(one.len() >= least.min(limit), "{what}: {} of {limit}", one.len());
    }
}

/// S3.06: the same list, to the last bit, after everything that changes an index.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a server with pgvector: tests/pgvector.sh"]
async fn pgvector_gives_the_list_that_the_process_gives() {
    let mut server = Server::start_with_extension().await;
    let scope = Scope::new("acme", "ada").unwrap();
    let mut draw = Draw::seeded();
    let index = server.by_database();
    draw.fill(&index, &scope, 0..ITEMS).await;
    assert_eq!(server.count("recall_vector WHERE embedding IS NULL").await, 0);
    compare(&server, &scope, "m", &mut draw, "filled").await;
    let fresh = server.by_database();
    assert!(server.ranks(&scope, &fresh, &mut draw).await, "the database was not asked");
    let fresh = server.by_process();
    assert!(!server.ranks(&scope, &fresh, &mut draw).await, "the process did not look itself");

    draw.fill(&index, &scope, 100..200).await;
    draw.fill(&index, &scope, ITEMS..ITEMS + 40).await;
    compare(&server, &scope, "m", &mut draw, "put and changed").await;
    let gone: Vec<String> = (0..5).map(|_| format!("i{}", draw.next(ITEMS))).collect();
    index.remove(&scope, "note", &gone).await.unwrap();
    compare(&server, &scope, "m", &mut draw, "removed").await;
    // Items that have no vector yet are found by neither.
    let waiting: Vec<Item> =
        (0..20).map(|id| Item::new(format!("w{id}"), format!("w{id}"))).collect();
    index.put(&scope, "note", &waiting).await.unwrap();
    compare(&server, &scope, "m", &mut draw, "some without a vector").await;
    draw.embed(&index, &scope, "m", &waiting).await;

    let pending = index.pending(&scope, "second", 10_000).await.unwrap();
    let vectors: Vec<_> = pending.iter().map(|one| (one.hash, draw.vector())).collect();
    index.put_vectors(&scope, "second", &vectors).await.unwrap();
    compare(&server, &scope, "m", &mut draw, "a second model beside it").await;
    index.finish_generation(&scope, "second").await.unwrap();
    compare(&server, &scope, "second", &mut draw, "the second model").await;
    server.database.close().await;
}

/// S3.06: what a filter leaves is found whole, however few of many it leaves.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a server with pgvector: tests/pgvector.sh"]
async fn pgvector_fills_a_filtered_list() {
    let server = Server::start_with_extension().await;
    let scope = Scope::new("acme", "ada").unwrap();
    let mut draw = Draw::seeded();
    let index = server.by_database();
    draw.fill(&index, &scope, 0..ITEMS).await;
    for group in 0..ITEMS / OF_A_GROUP {
        let values = draw.vector();
        for (limit, expected) in [(10, 10), (OF_A_GROUP, OF_A_GROUP), (100, OF_A_GROUP)] {
            let found = list(&index, &scope, "m", &values, Some(group), limit).await;
            assert_eq!(found.len(), expected, "group {group}");
        }
    }
    server.database.close().await;
}

/// S3.06: what differs in the last bits alone is equal, and stands in the order in which it was kept, at the list's end as well.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a server with pgvector: tests/pgvector.sh"]
async fn pgvector_puts_equal_ones_in_their_order() {
    let server = Server::start_with_extension().await;
    let scope = Scope::new("acme", "ada").unwrap();
    // Always the same: a random similarity may lie where rounding parts equal ones.
    let mut draw = Draw(7);
    let index = server.by_database();
    let items: Vec<Item> =
        (0..ITEMS).map(|id| Item::new(format!("i{id}"), format!("{id}"))).collect();
    index.put(&scope, "note", &items).await.unwrap();
    // The same numbers in another order have the same sum, but for what each addition rounds away.
    let mut values = draw.vector();
    let mut vectors = Vec::new();
    for item in &items {
        for at in 0..DIMENSION {
            values.swap(at, draw.next(DIMENSION));
        }
        vectors.push((content_hash(&item.meaning_text()), values.clone()));
    }
    index.put_vectors(&scope, "m", &vectors).await.unwrap();
    let ones = [1.0; DIMENSION];
    let found = list(&index, &scope, "m", &ones, None, 150).await;
    assert_eq!(found, list(&server.by_process(), &scope, "m", &ones, None, 150).await);
    let ids: Vec<String> = found.into_iter().map(|(id, ..)| id).collect();
    let first: Vec<String> = (0..150).map(|id| format!("i{id}")).collect();
    assert_eq!(ids, first);
    server.database.close().await;
}

/// S3.04: of two tenants with the same texts, each finds its own by its own vectors.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a server with pgvector: tests/pgvector.sh"]
async fn pgvector_separates_tenants() {
    let server = Server::start_with_extension().await;
    let ours = Scope::new("ours", "a").unwrap();
    let theirs = Scope::new("theirs", "a").unwrap();
    let mut draw = Draw::seeded();
    let index = server.by_database();
    let items: Vec<Item> = (0..ITEMS).map(|id| draw.item(id)).collect();
    for scope in [&ours, &theirs] {
        index.put(scope, "note", &items).await.unwrap();
        draw.embed(&index, scope, "m", &items).await;
    }
    let values = draw.vector();
    let before = list(&index, &ours, "m", &values, None, 250).await;
    assert_ne!(before, list(&index, &theirs, "m", &values, None, 250).await);
    compare(&server, &ours, "m", &mut draw, "ours").await;
    compare(&server, &theirs, "m", &mut draw, "theirs").await;
    let all: Vec<String> = items.iter().map(|item| item.id.clone()).collect();
    index.remove(&theirs, "note", &all).await.unwrap();
    assert_eq!(list(&index, &ours, "m", &values, None, 250).await, before);
    assert!(list(&index, &theirs, "m", &values, None, 250).await.is_empty());
    server.database.close().await;
}

/// S3.06: what was kept before the extension came, and by processes that do not know of it, is found all the same.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a server with pgvector: tests/pgvector.sh"]
async fn pgvector_misses_no_row_without_the_column() {
    let mut server = Server::start().await;
    let scope = Scope::new("acme", "ada").unwrap();
    let mut draw = Draw::seeded();
    let old = server.by_database();
    draw.fill(&old, &scope, 0..ITEMS).await;
    server.run("CREATE EXTENSION vector").await;
    // Several processes find it at once.
    let values = draw.vector();
    let expected = list(&server.by_process(), &scope, "m", &values, None, 50).await;
    let others: Vec<StoredIndex> = (0..4).map(|_| server.by_database()).collect();
    let ask = |index: &StoredIndex| {
        let index = index.clone();
        let scope = scope.clone();
        let values = values.clone();
        tokio::spawn(async move { list(&index, &scope, "m", &values, None, 50).await })
    };
    let asked: Vec<_> = others.iter().map(ask).collect();
    for found in asked {
        assert_eq!(found.await.unwrap(), expected);
    }
    // Each search fills some.
    let fresh = server.by_database();
    for _ in 0..=ITEMS / 500 {
        assert_eq!(list(&fresh, &scope, "m", &values, None, 50).await, expected);
    }
    assert_eq!(server.count("recall_vector WHERE embedding IS NULL").await, 0);
    compare(&server, &scope, "m", &mut draw, "filled").await;
    let fresh = server.by_database();
    assert!(server.ranks(&scope, &fresh, &mut draw).await, "the database was not asked");

    // The old process writes a new text, and another vector of a known one.
    draw.fill(&old, &scope, ITEMS..ITEMS + 1).await;
    compare(&server, &scope, "m", &mut draw, "a new row").await;
    let fresh = server.by_database();
    list(&fresh, &scope, "m", &values, None, 1).await;
    assert_eq!(server.count("recall_vector WHERE embedding IS NULL").await, 0);
    let known = Item::new("known", "a known text");
    server.by_database().put(&scope, "note", std::slice::from_ref(&known)).await.unwrap();
    draw.embed(&server.by_database(), &scope, "m", std::slice::from_ref(&known)).await;
    let hash = content_hash(&known.meaning_text());
    old.put_vectors(&scope, "m", &[(hash, values.clone())]).await.unwrap();
    assert_eq!(server.count("recall_vector WHERE embedding IS NULL").await, 1);
    for index in [server.by_database(), server.by_process(), server.by_database()] {
        let found = list(&index, &scope, "m", &values, None, 1).await;
        assert_eq!((found[0].0.as_str(), found[0].2), ("known", 1.0));
    }
    server.database.close().await;
}

/// S3.06: without the right to change the table everything is as without the extension.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a server with pgvector: tests/pgvector.sh"]
async fn pgvector_is_not_needed_if_its_column_cannot_be_added() {
    let mut server = Server::start_with_extension().await;
    server.run("ALTER TABLE recall_vector OWNER TO CURRENT_USER").await;
    let grant = format!("GRANT ALL ON recall_vector TO {}", server.made.name);
    server.run(&grant).await;
    let scope = Scope::new("acme", "ada").unwrap();
    let mut draw = Draw::seeded();
    draw.fill(&server.by_database(), &scope, 0..50).await;
    let values = draw.vector();
    assert_eq!(list(&server.by_database(), &scope, "m", &values, None, 20).await.len(), 20);
    let column =
        "pg_attribute WHERE attrelid = 'recall_vector'::regclass AND attname = 'embedding'";
    assert_eq!(server.count(column).await, 0);
    server.database.close().await;
}

/// S3.06: a space that is often searched is read once it is worth it, and answered from memory then, after a change as well.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a server with pgvector: tests/pgvector.sh"]
async fn pgvector_answers_until_reading_is_worth_it() {
    let mut server = Server::start_with_extension().await;
    let scope = Scope::new("acme", "ada").unwrap();
    let mut draw = Draw::seeded();
    draw.fill(&server.by_database(), &scope, 0..ITEMS).await;
    let index = server.keeping(ITEMS * DIMENSION * 4 * 2);
    for _ in 0..2 {
        // Two searches each.
        assert!(server.ranks(&scope, &index, &mut draw).await);
    }
    assert!(!server.ranks(&scope, &index, &mut draw).await);
    draw.fill(&server.by_database(), &scope, ITEMS..ITEMS + 3).await;
    assert!(!server.ranks(&scope, &index, &mut draw).await);
    server.database.close().await;
}

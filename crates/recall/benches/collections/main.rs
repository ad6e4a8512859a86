//! How good and how fast the index is: judged collections by words, by meaning and by both, both databases, 20,000 items.
//!
//! `RECALL_COLLECTIONS` names a directory with `cranfield/` (`cran.all.1400.xml`, `cran.qry.xml`, `cranqrel.trec.txt`) and `cacm/`
//! (`*.html`, `topics.txt`, `qrels.txt`), as they are published; `TEST_DATABASE_URL` a Postgres server. What is missing is left out, and said.
//! `RECALL_SPEED=0` leaves out the 20,000 items.
#![expect(clippy::unwrap_used, clippy::print_stdout, clippy::expect_used, reason = "a measurement")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

mod cacm;
mod cranfield;
mod endpoint;
mod hybrid;
mod lsa;
mod measure;
#[path = "../../tests/both/reference.rs"]
mod reference;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use perihelion_database::{Database, query};
use perihelion_recall::{Found, Item, QueryVector, Scope, Search, StoredIndex, content_hash};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use self::{
    measure::{average_precision, ndcg},
    reference::Reference,
};

/// Texts, questions by number, and what is relevant to each.
pub struct Collection {
    pub name: &'static str,
    pub items: Vec<Item>,
    pub questions: BTreeMap<u32, String>,
    pub relevant: BTreeMap<u32, BTreeSet<String>>,
    /// What must be reached by words: mean average precision, and nDCG at 10.
    pub least: (f64, f64),
    /// The same by ways of looking that meaning has a part in.
    pub least_by_meaning: &'static [(&'static str, (f64, f64))],
}

impl Collection {
    /// A tenant of its own: a tenant's vectors are those of one model.
    fn scope(&self) -> Scope {
        Scope::new(self.name, "bench").unwrap()
    }
}

type Lists = BTreeMap<u32, Vec<String>>;

fn scope() -> Scope {
    Scope::new("bench", "bench").unwrap()
}

async fn put(store: &StoredIndex, scope: &Scope, kind: &str, items: &[Item]) {
    let database = store.database_of(scope);
    let mut transaction = database.begin().await.unwrap();
    StoredIndex::put_in(&mut transaction, scope, kind, items).await.unwrap();
    transaction.commit().await.unwrap();
}

async fn ask(
    index: impl AsyncFn(&Search) -> Found,
    collection: &Collection,
    depth: usize,
) -> (Lists, Duration) {
    let mut lists = Lists::new();
    let began = Instant::now();
    for (number, text) in &collection.questions {
        let search = Search::new(&collection.scope(), collection.name, text).limit(depth);
        let found = index(&search).await;
        lists.insert(*number, found.hits.into_iter().map(|hit| hit.id).collect());
    }
    (lists, began.elapsed() / collection.questions.len() as u32)
}

fn measure(collection: &Collection, lists: &Lists) -> (f64, f64) {
    let judged = collection.relevant.iter().filter(|(_, relevant)| !relevant.is_empty());
    let judged: Vec<_> =
        judged.filter_map(|(number, relevant)| Some((lists.get(number)?, relevant))).collect();
    let mean = |of: &dyn Fn(&[String], &BTreeSet<String>) -> f64| {
        judged.iter().map(|(list, relevant)| of(list, relevant)).sum::<f64>() / judged.len() as f64
    };
    (mean(&average_precision), mean(&|list, relevant| ndcg(list, relevant, 10)))
}

async fn judged(collection: &Collection, stores: &[(&str, StoredIndex)]) -> bool {
    let memory = Reference::default();
    memory.put(&collection.scope(), collection.name, &collection.items);
    let in_memory = async |search: &Search| memory.search(search);
    let (lists, took) = ask(in_memory, collection, 1000).await;
    let (map, gain) = measure(collection, &lists);
    let is_good = map >= collection.least.0 && gain >= collection.least.1;
    println!(
        "{}: {} texts, {} questions: MAP {map:.4} (≥ {}), nDCG@10 {gain:.4} (≥ {}), in memory {took:?}",
        collection.name,
        collection.items.len(),
        collection.questions.len(),
        collection.least.0,
        collection.least.1
    );
    let (expected, _) = ask(in_memory, collection, 100).await;
    let mut is_equal = true;
    for (name, store) in stores {
        let began = Instant::now();
        for part in collection.items.chunks(200) {
            put(store, &collection.scope(), collection.name, part).await;
        }
        let kept = began.elapsed();
        let stored = async |search: &Search| store.search(search).await.unwrap();
        let (lists, took) = ask(stored, collection, 100).await;
        let same = lists == expected;
        is_equal &= same;
        println!("  {name}: kept in {kept:?}, {took:?} a question, the same top 100: {same}");
    }
    hybrid::judged(collection, &memory, stores).await && is_good && is_equal
}

/// 20,000 texts of 40 words, drawn so that few words are frequent.
fn many() -> Vec<Item> {
    let mut seed = 11_u64;
    let mut draw = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as f64 / (1_u64 << 31) as f64
    };
    let mut word = move || format!("word{}", (draw().powi(3) * 20_000.0) as u32);
    let mut text = move || (0..40).map(|_| word()).collect::<Vec<_>>().join(" ");
    (0..20_000).map(|number| Item::new(format!("i{number}"), text())).collect()
}

async fn speed(stores: &[(&str, StoredIndex)]) {
    const DIMENSION: usize = 384;
    let items = many();
    let vector = |number: usize| -> Vec<f32> {
        (0..DIMENSION).map(|place| (((number * 31 + place * 17) % 97) as f32) - 48.0).collect()
    };
    for (name, store) in stores {
        let began = Instant::now();
        for part in items.chunks(500) {
            put(store, &scope(), "many", part).await;
        }
        println!("20,000 texts on {name}: kept in {:?}", began.elapsed());
        let mut times = Vec::new();
        for item in items.iter().step_by(400) {
            let text: Vec<&str> = item.fields[0].text.split(' ').take(8).collect();
            let search = Search::new(&scope(), "many", text.join(" "));
            let began = Instant::now();
            let found = store.search(&search).await.unwrap();
            times.push(began.elapsed());
            assert_eq!(found.hits[0].id, item.id);
        }
        report(name, "by words", times);
        for (part, items) in items.chunks(1000).enumerate() {
            let hash = |(at, item): (usize, &Item)| {
                (content_hash(&item.fields[0].text), vector(part * 1000 + at))
            };
            let pairs: Vec<_> = items.iter().enumerate().map(hash).collect();
            store.put_vectors(&scope(), "m", &pairs).await.unwrap();
        }
        let mut times = Vec::new();
        for item in items.iter().step_by(400) {
            let text: Vec<&str> = item.fields[0].text.split(' ').take(8).collect();
            let vector = QueryVector { model: "m".to_owned(), values: vector(times.len() * 400) };
            let search = Search::new(&scope(), "many", text.join(" ")).with_vector(Some(vector));
            let began = Instant::now();
            store.search(&search).await.unwrap();
            times.push(began.elapsed());
        }
        // The first one reads the vectors.
        println!("  first search with vectors: {:?}", times.remove(0));
        report(name, "by words and meaning", times);
    }
}

fn report(store: &str, how: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!("  {store}, {how}: median {:?}, 99th percentile {:?} (≤ 15 ms)", at(0.5), at(0.99));
}

#[tokio::main]
async fn main() {
    let directory = std::env::temp_dir().join(format!("recall-bench-{}", std::process::id()));
    let sqlite = Database::open(directory.join("p.db").to_str().unwrap()).await.unwrap();
    let mut stores = vec![("SQLite", StoredIndex::new(sqlite))];
    let admin = std::env::var("TEST_DATABASE_URL").ok().filter(|url| !url.is_empty());
    let name = format!("recall_bench_{}", std::process::id());
    if let Some(admin) = &admin {
        let mut connection = PgConnection::connect(admin).await.unwrap();
        let create = AssertSqlSafe(format!("CREATE DATABASE {name}"));
        sqlx::raw_sql(create).execute(&mut connection).await.unwrap();
        let at = admin.rfind('/').unwrap();
        let url = format!("{}/{name}", &admin[..at]);
        let database = Database::open(&url).await.unwrap();
        stores.push(("Postgres", StoredIndex::new(database)));
    } else {
        println!("TEST_DATABASE_URL is not set: SQLite alone");
    }
    let mut is_good = true;
    match std::env::var("RECALL_COLLECTIONS") {
        Err(_) => println!("RECALL_COLLECTIONS is not set: no judged collections"),
        Ok(root) => {
            for collection in [cranfield::read(Path::new(&root)), cacm::read(Path::new(&root))] {
                is_good &= judged(&collection, &stores).await;
            }
        }
    }
    if std::env::var("RECALL_SPEED").as_deref() != Ok("0") {
        speed(&stores).await;
    }
    for (_, store) in &stores {
        let _ = store.database().fetch_all(&query("SELECT 1")).await;
        store.database().close().await;
    }
    std::fs::remove_dir_all(&directory).unwrap();
    if let Some(admin) = &admin {
        let mut connection = PgConnection::connect(admin).await.unwrap();
        let drop = AssertSqlSafe(format!("DROP DATABASE {name} WITH (FORCE)"));
        sqlx::raw_sql(drop).execute(&mut connection).await.unwrap();
    }
    assert!(is_good, "below what must be reached");
}

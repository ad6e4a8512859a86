//! How fast documents are added, found, changed and deleted, on both databases; no model's time is in it.
//!
//! `DOCUMENTS_CHUNKS` says how many pieces there are (20,000 unless given), `DOCUMENTS_LARGE_MB` how large the one large document is
//! (20); `TEST_DATABASE_URL` names a Postgres server.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

use std::time::{Duration, Instant};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use perihelion_database::Database;
use perihelion_documents::{
    EmbeddingError, EmbeddingModel, Filters, Input, Library, Limits, Parser, Query, Scope,
};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

/// The program's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Pieces of one document.
const PIECES: usize = 20;

/// Numbers of a vector.
const DIMENSION: usize = 384;

/// Vectors drawn from a text's hash: as an endpoint gives them, in no time.
struct Drawn;

#[async_trait]
impl EmbeddingModel for Drawn {
    fn model(&self) -> &str {
        "drawn"
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        let vector = |text: &String| {
            let mut digits = vec![0_u8; DIMENSION];
            blake3::Hasher::new().update(text.as_bytes()).finalize_xof().fill(&mut digits);
            digits.into_iter().map(|digit| f32::from(digit) - 127.5).collect()
        };
        Ok(texts.iter().map(vector).collect())
    }
}

/// Words drawn so that few are frequent, by a seed.
struct Words(u64);

impl Words {
    fn draw(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / (1_u64 << 31) as f64
    }

    fn text(&mut self, words: usize) -> String {
        let word = |number: u32| format!("w{}", number * 7919 % 50_021);
        let words: Vec<String> =
            (0..words).map(|_| word((self.draw().powi(3) * 50_000.0) as u32)).collect();
        words.join(" ")
    }
}

fn document(number: usize, version: usize) -> Input {
    let mut words = Words(number as u64 + 1);
    let mut text = format!("# Document {number}\n\n");
    for part in 0..PIECES {
        text += &format!("## Part {part}\n\n{}.\n\n", words.text(110));
    }
    if version > 1 {
        text = text.replacen("## Part 7\n\n", "## Part 7\n\nA sentence was added. ", version - 1);
    }
    Input {
        path: format!("d{number}.md"),
        bytes: text.into_bytes(),
        collection: format!("c{}", number % 10),
        title: None,
        now: DateTime::<Utc>::from_timestamp(1_790_000_000 + number as i64, 0).unwrap(),
    }
}

/// Adds a document in the steps in which the product's runs add it: each batch of texts is looked up and asked for by itself.
async fn ingest(library: &Library, input: Input) {
    let hash = blake3::hash(&input.bytes).to_hex();
    let known = library.at(&input.collection, &input.path).await.unwrap();
    if known.is_some_and(|known| known.hash == hash.as_str()) {
        return;
    }
    let prepared = library.prepare(input).await.unwrap();
    library.stage(&prepared).await.unwrap();
    for batch in prepared.meanings().chunks(Drawn.batch()) {
        library.embed_batch(&Drawn, batch).await.unwrap();
    }
    library.flip(&prepared).await.unwrap();
}

/// Asks questions of drawn words.
struct Asker<'a> {
    library: &'a Library,
    words: Words,
}

impl Asker<'_> {
    async fn ask(&mut self, filters: Filters) -> Duration {
        let mut query = Query::new(self.words.text(6));
        query.filters = filters;
        let began = Instant::now();
        self.library.search(&query, Some(&Drawn)).await.unwrap();
        began.elapsed()
    }

    async fn ask_often(&mut self, what: &str, filters: impl Fn(usize) -> Filters) {
        let mut times = Vec::new();
        for number in 0..200 {
            times.push(self.ask(filters(number)).await);
        }
        report(what, times);
    }
}

fn of_collection(number: usize) -> Filters {
    Filters { collection: Some(format!("c{}", number % 10)), ..Filters::default() }
}

/// Medians of what a change and a deletion take.
struct Changes {
    change: Duration,
    deletion: Duration,
}

async fn filled(library: &Library, documents: usize) {
    let mut bytes = 0;
    let mut last = Duration::ZERO;
    let began = Instant::now();
    for number in 0..documents {
        let input = document(number, 1);
        bytes += input.bytes.len();
        let at = Instant::now();
        ingest(library, input).await;
        last = at.elapsed();
    }
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    println!(
        "  {documents} documents, {:.1} MB of text in {:.0} s: {:.0} MB a minute (≥ 20); the last in {last:?}",
        bytes as f64 / 1e6,
        minutes * 60.0,
        bytes as f64 / 1e6 / minutes
    );
}

/// Changes and deletes some documents, with a search of each kind after every one.
async fn changed(library: &Library, documents: usize) -> Changes {
    let mut asker = Asker { library, words: Words(99) };
    println!("  first search: {:?}", asker.ask(Filters::default()).await);
    println!("  first search of a collection: {:?}", asker.ask(of_collection(0)).await);
    let mut times = Vec::new();
    let mut searches = Vec::new();
    let mut filtered = Vec::new();
    for number in 0..20 {
        let at = Instant::now();
        ingest(library, document(number * 7 % documents, 2)).await;
        times.push(at.elapsed());
        searches.push(asker.ask(Filters::default()).await);
        filtered.push(asker.ask(of_collection(0)).await);
    }
    let change = report("a change of one paragraph", times);
    report("the search after it", searches);
    report("the search of a collection after it", filtered);
    let mut times = Vec::new();
    let mut searches = Vec::new();
    let mut filtered = Vec::new();
    let listed = library.list(None).await.unwrap();
    for document in listed.iter().filter(|one| one.bytes < 100_000).take(20) {
        let at = Instant::now();
        library.delete(&document.id).await.unwrap();
        times.push(at.elapsed());
        searches.push(asker.ask(Filters::default()).await);
        filtered.push(asker.ask(of_collection(0)).await);
    }
    let deletion = report("a deletion", times);
    report("the search after it", searches);
    report("the search of a collection after it", filtered);
    Changes { change, deletion }
}

/// Adds a document of many megabytes beside the small ones, reads it, changes a paragraph and deletes it.
async fn large(library: &Library, megabytes: usize) {
    let mut words = Words(7);
    let mut text = "# Large\n\n".to_owned();
    let mut part = 0;
    while text.len() < megabytes * 1_000_000 {
        part += 1;
        text += &format!("## Part {part}\n\n{}.\n\n", words.text(110));
    }
    let input = |text: &str| Input { bytes: text.as_bytes().to_vec(), ..document(1_000_000, 1) };
    let timed = async |what: &str, text: &str| {
        let began = Instant::now();
        ingest(library, input(text)).await;
        println!("  {what}: {:?}", began.elapsed());
    };
    timed(&format!("a document of {megabytes} MB is added"), &text).await;
    let mut asker = Asker { library, words: Words(98) };
    asker.ask_often("search with it there", |_| Filters::default()).await;
    asker.ask_often("search in one of ten collections with it there", of_collection).await;
    let id = library.at("c0", "d1000000.md").await.unwrap().unwrap();
    let mut times = Vec::new();
    for number in 0..200 {
        let start = id.characters as usize / 200 * number;
        let began = Instant::now();
        library.read(&id.id, Some(start), Some(start + 2_000)).await.unwrap();
        times.push(began.elapsed());
    }
    report("2,000 characters of it are read", times);
    let middle = format!("## Part {}\n\n", part / 2);
    timed("a paragraph of it is changed", &text.replacen(&middle, &format!("{middle}Added. "), 1))
        .await;
    println!("  the search after it: {:?}", asker.ask(Filters::default()).await);
    let began = Instant::now();
    library.delete(&id.id).await.unwrap();
    println!("  it is deleted: {:?}", began.elapsed());
}

async fn measured(name: &str, database: Database, chunks: usize) {
    let scope = Scope::new("bench", "bench").unwrap();
    let library = Library::new(database, Parser::Here(Limits::default()), scope);
    let small = library.within(&Scope::new("bench", "small").unwrap());
    let few = (chunks / PIECES / 8).max(25);
    println!("{name}, an eighth of the documents:");
    filled(&small, few).await;
    let before = changed(&small, few).await;
    let documents = (chunks / PIECES).max(25);
    println!("{name}, all documents:");
    filled(&library, documents).await;
    let kept = library.room().await.unwrap().used.chunks;
    println!("  {kept} pieces in all");
    let mut asker = Asker { library: &library, words: Words(97) };
    asker.ask(Filters::default()).await;
    asker.ask_often("search", |_| Filters::default()).await;
    asker.ask_often("search in one of ten collections", of_collection).await;
    let after = changed(&library, documents).await;
    let ratio = |one: Duration, other: Duration| other.as_secs_f64() / one.as_secs_f64().max(1e-9);
    println!(
        "  {:.1} times the documents: a change takes {:.2} times as long, a deletion {:.2} times (1 is proportional to the change)",
        documents as f64 / few as f64,
        ratio(before.change, after.change),
        ratio(before.deletion, after.deletion)
    );
    large(&library, number_of("DOCUMENTS_LARGE_MB", 20)).await;
    library.close().await;
}

fn number_of(variable: &str, usual: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Prints what something takes and returns the median.
fn report(what: &str, mut times: Vec<Duration>) -> Duration {
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!("  {what}: median {:.1?}, 95th percentile {:.1?}", at(0.5), at(0.95));
    at(0.5)
}

#[tokio::main]
async fn main() {
    let chunks = number_of("DOCUMENTS_CHUNKS", 20_000);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("p.db");
    let only = std::env::var("DOCUMENTS_ONLY").unwrap_or_default();
    if only != "postgres" {
        measured("SQLite", Database::open(path.to_str().unwrap()).await.unwrap(), chunks).await;
    }
    let Some(admin) = std::env::var("TEST_DATABASE_URL").ok().filter(|url| !url.is_empty()) else {
        println!("TEST_DATABASE_URL is not set: SQLite alone");
        return;
    };
    let name = format!("documents_bench_{}", std::process::id());
    let mut connection = PgConnection::connect(&admin).await.unwrap();
    let run = async |connection: &mut PgConnection, sql: String| {
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await.unwrap();
    };
    run(&mut connection, format!("CREATE DATABASE {name}")).await;
    let at = admin.rfind('/').unwrap();
    let database = Database::open(&format!("{}/{name}", &admin[..at])).await.unwrap();
    measured("Postgres", database, chunks).await;
    let mut connection = PgConnection::connect(&admin).await.unwrap();
    run(&mut connection, format!("DROP DATABASE {name} WITH (FORCE)")).await;
}

//! How fast documents are added, found, changed and deleted, on both databases; no model's time is in it.
//!
//! `DOCUMENTS_CHUNKS` says how many pieces there are (20,000 unless given); `TEST_DATABASE_URL` names a Postgres server.
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

    fn dimension(&self) -> Option<usize> {
        Some(DIMENSION)
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

async fn measured(name: &str, database: Database, chunks: usize) {
    let library = Library::new(database, Parser::Here(Limits::default()));
    let scope = Scope::new("bench", "bench").unwrap();
    let documents = chunks / PIECES;
    let (mut bytes, mut last) = (0, Duration::ZERO);
    let began = Instant::now();
    for number in 0..documents {
        let input = document(number, 1);
        bytes += input.bytes.len();
        let at = Instant::now();
        library.add(&scope, input, None, Some(&Drawn), &|_| {}).await.unwrap();
        last = at.elapsed();
    }
    let kept = library.room(&scope).await.unwrap().used.chunks;
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    println!(
        "{name}: {documents} documents, {kept} pieces, {:.1} MB of text in {:.0} s: {:.0} MB a minute (≥ 20); the last in {last:?}",
        bytes as f64 / 1e6,
        minutes * 60.0,
        bytes as f64 / 1e6 / minutes
    );
    let mut words = Words(99);
    let mut ask = async |filters: Filters| {
        let mut query = Query::new(words.text(6));
        query.filters = filters;
        let began = Instant::now();
        library.search(&scope, &query, Some(&Drawn)).await.unwrap();
        began.elapsed()
    };
    println!("  first search: {:?}", ask(Filters::default()).await);
    let mut times = Vec::new();
    for _ in 0..200 {
        times.push(ask(Filters::default()).await);
    }
    report("search", times);
    let mut times = Vec::new();
    for number in 0..200 {
        let collection = Some(format!("c{}", number % 10));
        times.push(ask(Filters { collection, ..Filters::default() }).await);
    }
    report("search in one of ten collections", times);
    let (mut changes, mut searches) = (Vec::new(), Vec::new());
    for number in 0..20 {
        let at = Instant::now();
        library
            .add(&scope, document(number * 7 % documents, 2), None, Some(&Drawn), &|_| {})
            .await
            .unwrap();
        changes.push(at.elapsed());
        searches.push(ask(Filters::default()).await);
    }
    report("a change of one paragraph", changes);
    report("the search after it", searches);
    let (mut deletions, mut searches) = (Vec::new(), Vec::new());
    let listed = library.list(&scope, None).await.unwrap();
    for document in listed.iter().take(20) {
        let at = Instant::now();
        library.delete(&scope, &document.id).await.unwrap();
        deletions.push(at.elapsed());
        searches.push(ask(Filters::default()).await);
    }
    report("a deletion", deletions);
    report("the search after it", searches);
    library.close().await;
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!("  {what}: median {:.1?}, 95th percentile {:.1?}", at(0.5), at(0.95));
}

#[tokio::main]
async fn main() {
    let chunks = std::env::var("DOCUMENTS_CHUNKS").ok().and_then(|text| text.parse().ok());
    let chunks: usize = chunks.unwrap_or(20_000);
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

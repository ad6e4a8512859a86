//! A library on each database, and an embeddings endpoint that counts.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use perihelion_database::Database;
use perihelion_documents::{
    Describer, Document, EmbeddingError, EmbeddingModel, Error, Input, Library, Limits, Parser,
    Scope, Step,
};
use perihelion_test_database::TestDatabase;

/// A library on a database of one kind.
pub struct Kind {
    pub library: Library,
    database: Database,
    directory: Option<tempfile::TempDir>,
    server: Option<TestDatabase>,
}

/// Makes a library on each kind of database; on Postgres where `TEST_DATABASE_URL` names a server.
pub async fn kinds() -> Vec<Kind> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("documents.db");
    let database = Database::open(path.to_str().unwrap()).await.unwrap();
    let mut kinds = vec![kind(database, Some(directory), None)];
    if let Some(server) = TestDatabase::make().await {
        let database = Database::open(&server.url).await.unwrap();
        kinds.push(kind(database, None, Some(server)));
    }
    kinds
}

fn kind(
    database: Database,
    directory: Option<tempfile::TempDir>,
    server: Option<TestDatabase>,
) -> Kind {
    let library = Library::new(database.clone(), Parser::Here(Limits::default()), scope("ann"));
    Kind { library, database, directory, server }
}

impl Kind {
    /// Tells whether it lies in files that can be looked into.
    pub fn is_file(&self) -> bool {
        self.directory.is_some()
    }

    /// Returns the file, where it lies in one.
    pub fn path(&self) -> Option<PathBuf> {
        self.directory.as_ref().map(|directory| directory.path().join("documents.db"))
    }

    /// Tells whether a word stands in any file of the database.
    pub fn contains(&self, word: &str) -> bool {
        let Some(directory) = &self.directory else { return false };
        let files = std::fs::read_dir(directory.path()).unwrap();
        let paths: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
        paths.iter().any(|path| {
            let bytes = std::fs::read(path).unwrap();
            bytes.windows(word.len()).any(|window| window == word.as_bytes())
        })
    }

    pub async fn end(self) {
        self.database.close().await;
        drop(self.server);
    }
}

/// What became of a document that was to be added.
#[derive(Debug)]
pub struct Added {
    pub document: Document,
    /// Its bytes were known: nothing was done.
    pub unchanged: bool,
    /// Texts that the embedding model was asked.
    pub embedded: u64,
    /// Why it is found by words alone, where the embedding model failed.
    pub by_words_only: Option<String>,
}

/// All steps of adding at once, without a thread.
pub trait Adds {
    fn add(
        &self,
        input: Input,
        describer: Option<&dyn Describer>,
        model: Option<&dyn EmbeddingModel>,
        progress: &(dyn Fn(Step) + Send + Sync),
    ) -> impl Future<Output = Result<Added, Error>>;
}

impl Adds for Library {
    async fn add(
        &self,
        input: Input,
        describer: Option<&dyn Describer>,
        model: Option<&dyn EmbeddingModel>,
        progress: &(dyn Fn(Step) + Send + Sync),
    ) -> Result<Added, Error> {
        let hash = blake3::hash(&input.bytes).to_hex();
        let known = self.at(&input.collection, &input.path).await?;
        if let Some(document) = known.filter(|known| {
            known.hash == hash.as_str()
                && input.title.as_ref().is_none_or(|title| *title == known.title)
        }) {
            return Ok(Added { document, unchanged: true, embedded: 0, by_words_only: None });
        }
        progress(Step::Parse);
        let prepared = self.prepare(input).await?;
        if let Some(describer) = describer {
            progress(Step::Describe);
            self.describe(&prepared, describer).await?;
        }
        let mut embedded = 0;
        let mut by_words_only = None;
        if let Some(model) = model {
            self.stage(&prepared).await?;
            let missing = self.missing(model.model(), &prepared.meanings()).await?;
            let mut done = 0;
            for batch in missing.chunks(model.batch().max(1)) {
                progress(Step::Embed { done, of: missing.len() });
                match self.embed_batch(model, batch).await {
                    Ok(count) => embedded += count as u64,
                    Err(Error::Recall(perihelion_recall::Error::Embedding(error))) => {
                        by_words_only = Some(error.to_string());
                        break;
                    }
                    Err(error) => return Err(error),
                }
                done += batch.len();
            }
        }
        progress(Step::Keep);
        let document = self.flip(&prepared).await?;
        Ok(Added { document, unchanged: false, embedded, by_words_only })
    }
}

pub fn scope(owner: &str) -> Scope {
    Scope::new("tests", owner).unwrap()
}

pub fn input(path: &str, text: &str) -> Input {
    Input {
        path: path.to_owned(),
        bytes: text.as_bytes().to_vec(),
        collection: "default".to_owned(),
        title: None,
        now: DateTime::<Utc>::from_timestamp(1_790_000_000, 0).unwrap(),
    }
}

/// Stands for an endpoint of others: vectors of letters, counted, and gone after some requests.
pub struct Endpoint {
    pub model: &'static str,
    /// Numbers of a vector.
    pub numbers: usize,
    texts: AtomicU64,
    requests: AtomicU64,
    most: u64,
}

impl Default for Endpoint {
    fn default() -> Self {
        Self::failing_after(u64::MAX)
    }
}

impl Endpoint {
    pub fn failing_after(most: u64) -> Self {
        let none = AtomicU64::default;
        Self { model: "test", numbers: 26, texts: none(), requests: none(), most }
    }

    pub fn texts(&self) -> u64 {
        self.texts.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl EmbeddingModel for Endpoint {
    fn model(&self) -> &str {
        self.model
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        if self.requests.fetch_add(1, Ordering::SeqCst) >= self.most {
            return Err(EmbeddingError::Failed("status 503".to_owned()));
        }
        self.texts.fetch_add(texts.len() as u64, Ordering::SeqCst);
        let vector = |text: &String| {
            let mut vector = vec![0.01_f32; 26];
            for byte in text.to_lowercase().bytes().filter(u8::is_ascii_lowercase) {
                vector[usize::from(byte - b'a')] += 1.0;
            }
            vector.truncate(self.numbers);
            vector
        };
        Ok(texts.iter().map(vector).collect())
    }
}

//! What is deleted leaves nothing, however far its adding was.

use async_trait::async_trait;
use chrono::TimeDelta;
use perihelion_database::query;
use perihelion_documents::{Describer, Description, EmbeddingModel as _, Error, Query};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};

use crate::support::{Adds as _, Endpoint, Kind, input, kinds, scope};

const CANARY: &str = "xylophonequartzwombat";

/// Says of each document its beginning, and counts.
#[derive(Default)]
struct Sayer(std::sync::atomic::AtomicU64);

#[async_trait]
impl Describer for Sayer {
    async fn describe(&self, path: &str, beginning: &str) -> Option<Description> {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let summary = beginning.chars().take(200).collect();
        Some(Description { title: path.to_owned(), summary, ..Description::default() })
    }
}

fn secret(version: usize) -> String {
    let filler = "Filler that says nothing at all. ".repeat(1_500);
    format!("# Secret {CANARY}{version}\n\nThe word is {CANARY}{version}.\n\n{filler}")
}

/// Returns the tables in which anything of a document or of what it is found by is left.
async fn left(kind: &Kind) -> Vec<&'static str> {
    let database = kind.library.index().database().of_tenant("tests");
    let mut left = Vec::new();
    for table in [
        "document",
        "document_attempt",
        "document_segment",
        "document_page",
        "document_parent",
        "recall_item",
        "recall_posting",
        "recall_part",
        "recall_vector",
        "recall_claim",
    ] {
        let count = query(AssertSqlSafe(format!("SELECT count(*) FROM {table}")));
        let row = database.fetch_optional(&count).await.unwrap().unwrap();
        if row.get::<i64>(0).unwrap() > 0 {
            left.push(table);
        }
    }
    left
}

/// S3.05: neither the first version nor the second leaves a byte, nor what a model said of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_and_a_deletion_leave_no_byte_of_any_version() {
    for kind in kinds().await {
        let library = &kind.library;
        let endpoint = Endpoint::default();
        let sayer = Sayer::default();
        for version in [1, 2] {
            let input = input("secret.md", &secret(version));
            library.add(input, Some(&sayer), Some(&endpoint), &|_| {}).await.unwrap();
        }
        assert!(!kind.contains(&format!("{CANARY}1")), "of the former version");
        assert!(kind.contains(&format!("{CANARY}2")) || !kind.is_file());
        let deleted = library.delete("secret.md").await.unwrap();
        let hashes = deleted.attempts.iter().map(|one| one.hash.clone());
        assert_eq!(hashes.collect::<std::collections::BTreeSet<_>>().len(), 2);
        assert!(!kind.contains(CANARY));
        assert_eq!(left(&kind).await, Vec::<&str>::new());
        kind.end().await;
    }
}

/// S3.05: an adding that was killed before the document was there is found by its path and by its age, and deleted whole.
#[tokio::test(flavor = "multi_thread")]
async fn remains_of_an_interrupted_upload_are_deleted_by_path_or_age() {
    for kind in kinds().await {
        let library = &kind.library;
        let ann = scope("ann");
        let endpoint = Endpoint::default();
        let begin = async || {
            let prepared = library.prepare(input("secret.md", &secret(1))).await.unwrap();
            assert!(library.describe(&prepared, &Sayer::default()).await.unwrap());
            library.stage(&prepared).await.unwrap();
            let texts = library.missing("test", &prepared.meanings()).await.unwrap();
            let words: Vec<String> = texts.iter().map(|(_, text)| text.clone()).collect();
            let vectors = endpoint.embed(&words).await.unwrap();
            library.keep_vectors("test", &texts, vectors).await.unwrap();
            assert!(left(&kind).await.contains(&"recall_vector"));
            prepared
        };
        let prepared = begin().await;
        assert!(library.list(None).await.unwrap().is_empty());
        let found = library.attempts(&prepared.id[..12]).await.unwrap();
        assert_eq!((found.len(), found[0].path.as_str()), (1, "secret.md"));
        let theirs = library.within(&scope("ben")).delete("secret.md").await;
        assert!(matches!(theirs, Err(Error::Unknown(_))), "{theirs:?}");
        let deleted = library.delete("secret.md").await.unwrap();
        assert_eq!((deleted.title(), deleted.document.is_none()), ("secret.md", true));
        assert!(!kind.contains(CANARY));
        assert_eq!(left(&kind).await, Vec::<&str>::new());
        let again = library.delete("secret.md").await;
        assert!(matches!(again, Err(Error::Unknown(_))), "{again:?}");

        let prepared = begin().await;
        let late = prepared.now + TimeDelta::days(1);
        assert!(library.older(prepared.now).await.unwrap().is_empty());
        assert_eq!(library.older(late).await.unwrap(), [(ann.clone(), prepared.id.clone())]);
        assert_eq!(library.abandoned(None, late).await.unwrap().len(), 1);
        assert!(library.delete_older(&prepared.id, prepared.now).await.unwrap().is_none());
        assert!(library.delete_older(&prepared.id, late).await.unwrap().is_some());
        assert!(!kind.contains(CANARY));
        assert_eq!(left(&kind).await, Vec::<&str>::new());
        kind.end().await;
    }
}

/// S3.05: as long as another process reads the file as it was, a deletion says that bytes stay in the log; then they go.
#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_during_a_read_reports_unscrubbed_data_and_the_next_one_leaves_no_byte() {
    for kind in kinds().await.into_iter().filter(Kind::is_file) {
        let library = &kind.library;
        for (path, text) in [("secret.md", secret(1)), ("other.md", "# Other".to_owned())] {
            library.add(input(path, &text), None, None, &|_| {}).await.unwrap();
        }
        let options = SqliteConnectOptions::new().filename(kind.path().unwrap());
        let mut reader = options.connect().await.unwrap();
        sqlx::raw_sql("BEGIN; SELECT count(*) FROM document").execute(&mut reader).await.unwrap();
        let message = library.delete("secret.md").await.unwrap_err();
        let is_named =
            matches!(message, Error::Database(perihelion_database::Error::Unscrubbed { .. }));
        assert!(is_named, "{message}");
        assert!(library.search(&Query::new(CANARY), None).await.unwrap().hits.is_empty());
        sqlx::raw_sql("COMMIT").execute(&mut reader).await.unwrap();
        library.delete("other.md").await.unwrap();
        assert!(!kind.contains(CANARY), "the reader has its connection still");
        reader.close().await.unwrap();
        kind.end().await;
    }
}

/// S3.05: equal bytes are described once within a tenant, wherever they lie; another tenant pays for itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_at_another_path_costs_no_request() {
    for kind in kinds().await {
        let library = &kind.library;
        let ann = scope("ann");
        let endpoint = Endpoint::default();
        let sayer = Sayer::default();
        let add = async |owner, path: &str| {
            let input = input(path, &secret(1));
            library.within(owner).add(input, Some(&sayer), Some(&endpoint), &|_| {}).await.unwrap()
        };
        let message = || sayer.0.load(std::sync::atomic::Ordering::SeqCst);
        let first = add(&ann, "one.md").await;
        let asked = message();
        let texts = endpoint.texts();
        let copy = add(&ann, "two.md").await;
        assert_eq!((message(), endpoint.texts()), (asked, texts));
        assert_ne!(copy.document.id, first.document.id);
        assert_eq!(copy.document.description, first.document.description);
        assert!(copy.document.description.is_some());
        // Whatever the first one becomes, the copy is whole.
        library.delete("one.md").await.unwrap();
        let query = Query::new(format!("{CANARY}1"));
        let found = library.retrieve(&query, Some(&endpoint), None).await.unwrap();
        assert!(found.by_meaning && found.passages[0].source.document == copy.document.id);
        let other = perihelion_documents::Scope::new("others", "ann").unwrap();
        add(&other, "one.md").await;
        assert_eq!(message(), asked + 1);
        kind.end().await;
    }
}

/// An endpoint that answers when two documents are about to ask it.
struct Waiting {
    endpoint: Endpoint,
    asking: tokio::sync::Semaphore,
}

#[async_trait]
impl perihelion_documents::EmbeddingModel for Waiting {
    fn model(&self) -> &str {
        self.endpoint.model()
    }

    async fn embed(
        &self,
        texts: &[String],
    ) -> Result<Vec<Vec<f32>>, perihelion_documents::EmbeddingError> {
        let both = self.asking.acquire_many(2).await.unwrap();
        drop(both);
        self.endpoint.embed(texts).await
    }
}

/// S3.05: a text that two documents have which are added at the same time is asked for once.
#[tokio::test(flavor = "multi_thread")]
async fn equal_texts_of_two_documents_that_are_added_at_once_are_embedded_once() {
    for kind in kinds().await {
        let library = &kind.library;
        let waiting =
            Waiting { endpoint: Endpoint::default(), asking: tokio::sync::Semaphore::new(0) };
        let about_to_ask = |step| {
            if matches!(step, perihelion_documents::Step::Embed { done: 0, .. }) {
                waiting.asking.add_permits(1);
            }
        };
        let add = |path| library.add(input(path, &secret(1)), None, Some(&waiting), &about_to_ask);
        let (one, two) = tokio::join!(add("one.md"), add("two.md"));
        let one = one.unwrap();
        let two = two.unwrap();
        assert_eq!(one.embedded + two.embedded, waiting.endpoint.texts());
        let mut texts = library.prepare(input("three.md", &secret(1))).await.unwrap().meanings();
        texts.dedup();
        assert_eq!(waiting.endpoint.texts(), texts.len() as u64);
        let missing = library.missing("test", &texts).await.unwrap();
        assert!(missing.is_empty());
        kind.end().await;
    }
}

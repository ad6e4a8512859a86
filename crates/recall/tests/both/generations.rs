//! Another embedding model comes beside the old one, and takes over when it is whole.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use perihelion_recall::{
    EmbeddingError, EmbeddingModel, Error, Item, QueryVector, Scope, Search, embed_pending,
};

use crate::databases::on_each;
use crate::index::Index as _;

/// Places texts by their length; fails after so many requests.
struct Lengths {
    model: &'static str,
    dimension: usize,
    left: AtomicUsize,
}

#[async_trait]
impl EmbeddingModel for Lengths {
    fn model(&self) -> &str {
        self.model
    }

    fn batch(&self) -> usize {
        4
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        let has_left = |left: usize| left.checked_sub(1);
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, has_left).is_err() {
            return Err(EmbeddingError::Failed("cut off".to_owned()));
        }
        Ok(texts.iter().map(|text| vec![text.len() as f32; self.dimension]).collect())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_use_the_old_model_until_the_new_one_is_whole() {
    on_each(|index| async move {
        let scope = Scope::new("acme", "ada").unwrap();
        let items: Vec<Item> =
            (0..10).map(|n| Item::new(format!("i{n}"), "w ".repeat(n + 1))).collect();
        index.put(&scope, "note", &items).await.unwrap();
        let old = Lengths { model: "old", dimension: 2, left: AtomicUsize::new(100) };
        assert_eq!(embed_pending(&index, &scope, &old).await.unwrap(), 10);
        let uses = async |model: &str, dimension: usize| {
            let vector = QueryVector { model: model.to_owned(), values: vec![1.0; dimension] };
            let search = Search::new(&scope, "note", "w").with_vector(Some(vector));
            index.search(&search).await.unwrap().by_meaning
        };
        assert!(uses("old", 2).await);

        // Cut off after two batches, the new one continues where it was.
        let new = Lengths { model: "new", dimension: 3, left: AtomicUsize::new(2) };
        assert!(matches!(embed_pending(&index, &scope, &new).await, Err(Error::Embedding(_))));
        assert!(uses("old", 2).await && !uses("new", 3).await);
        let early = index.finish_generation(&scope, "new").await;
        assert!(matches!(early, Err(Error::Incomplete { missing: 2, .. })), "{early:?}");
        new.left.store(100, Ordering::SeqCst);
        assert_eq!(embed_pending(&index, &scope, &new).await.unwrap(), 2);
        assert!(uses("old", 2).await, "nothing changes by itself");
        index.finish_generation(&scope, "new").await.unwrap();
        assert!(!uses("old", 2).await && uses("new", 3).await);
        let models = index.generations(&scope).await.unwrap();
        assert_eq!(models.len(), 1);

        let other = Scope::new("rival", "ada").unwrap();
        assert!(index.generations(&other).await.unwrap().is_empty());
        let unknown = index.finish_generation(&scope, "never").await;
        assert!(matches!(unknown, Err(Error::UnknownModel(_))));
        let wrong = index.begin_generation(&scope, "new", 7).await;
        assert!(matches!(wrong, Err(Error::Dimension { expected: 3, found: 7, .. })), "{wrong:?}");
    })
    .await;
}

/// Refuses long texts, and everything where `refuses_all`.
struct Picky {
    refuses_all: bool,
}

#[async_trait]
impl EmbeddingModel for Picky {
    fn model(&self) -> &str {
        "picky"
    }

    fn batch(&self) -> usize {
        8
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        if self.refuses_all || texts.iter().any(|text| text.len() > 15) {
            return Err(EmbeddingError::Refused("status 400: too long".to_owned()));
        }
        Ok(texts.iter().map(|text| vec![text.len() as f32, 1.0]).collect())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_a_model_refuses_stops_no_other_text() {
    on_each(|index| async move {
        let scope = Scope::new("acme", "ada").unwrap();
        let items: Vec<Item> =
            (0..20).map(|n| Item::new(format!("i{n}"), "w ".repeat(n % 9 + 1))).collect();
        index.put(&scope, "note", &items).await.unwrap();
        let waiting = index.pending(&scope, "picky", 100).await.unwrap().len();
        let none = embed_pending(&index, &scope, &Picky { refuses_all: true }).await;
        assert!(matches!(none, Err(Error::Embedding(_))), "{none:?}");
        assert_eq!(index.pending(&scope, "picky", 100).await.unwrap().len(), waiting);
        let done = embed_pending(&index, &scope, &Picky { refuses_all: false }).await.unwrap();
        assert_eq!(usize::try_from(done).unwrap(), waiting);
        assert!(index.pending(&scope, "picky", 100).await.unwrap().is_empty());
    })
    .await;
}

//! What a tenant may keep of documents, on both databases.

use crate::support::{Adds as _, input, kinds, scope};
use perihelion_documents::{Error, Quotas, Usage};

/// S3.05: a quota refuses by name what is too much, before any model is asked; what was kept stays, what shrinks is taken.
#[tokio::test]
async fn a_document_over_quota_is_refused_by_name_and_deleting_frees_space() {
    for kind in kinds().await {
        let quotas = Quotas { documents: Some(2), text_bytes: Some(2_000), chunks: Some(40) };
        let library = kind.library.clone().with_quotas(quotas);
        let ann = scope("ann");
        let ben = scope("ben");
        let add = async |owner, path: &str, text: &str| {
            library.within(owner).add(input(path, text), None, None, &|_| {}).await
        };
        let first = add(&ann, "a.md", &"One sentence. ".repeat(20)).await.unwrap().document;
        add(&ben, "b.md", "# Other\n\nAnother owner of the same tenant.").await.unwrap();
        // One more, no matter who owns it.
        match add(&ben, "c.md", "# Third").await {
            Err(error @ Error::Full { what: "documents", used: 2, more: 1, permitted: 2, .. }) => {
                assert_eq!(error.class(), "too_many");
            }
            other => panic!("{other:?}"),
        }
        // The same one, but too long; its last version stands.
        let long = "A word of many. ".repeat(200);
        match add(&ann, "a.md", &long).await {
            Err(error @ Error::Full { what: "bytes of text", permitted: 2_000, .. }) => {
                let message = error.to_string();
                assert!(
                    message.contains("used") && message.contains("documents.max_text_bytes"),
                    "{message}"
                );
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(library.find(&first.id).await.unwrap().hash, first.hash);
        let before = library.room().await.unwrap();
        assert_eq!((before.used.documents, before.permitted), (2, quotas));
        assert_eq!(before.used.chunks, first.chunks + 1);

        add(&ann, "a.md", "# Short").await.unwrap();
        let after = library.within(&ben).room().await.unwrap().used;
        assert!(after.text_bytes < before.used.text_bytes && after.documents == 2);
        for owner in [&ann, &ben] {
            let kept = library.within(owner).list(None).await.unwrap().remove(0);
            library.within(owner).delete(&kept.id).await.unwrap();
        }
        assert_eq!(library.room().await.unwrap().used, Usage::default());
        add(&ben, "c.md", "# Third").await.unwrap();
        kind.end().await;
    }
}

/// Two documents that fit alone cannot take the same room at once.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_uploads_cannot_exceed_a_quota() {
    for kind in kinds().await {
        let quotas = Quotas { documents: Some(3), text_bytes: None, chunks: None };
        let library = kind.library.clone().with_quotas(quotas);
        let tasks = (0..8).map(|number| {
            let library = library.clone();
            tokio::spawn(async move {
                let owner = scope(&format!("owner{number}"));
                let text = format!("# Number {number}");
                library
                    .within(&owner)
                    .add(input("one.md", &text), None, None, &|_| {})
                    .await
                    .is_ok()
            })
        });
        let tasks: Vec<_> = tasks.collect();
        let mut kept = 0;
        for task in tasks {
            kept += u64::from(task.await.unwrap());
        }
        assert_eq!(kept, 3);
        assert_eq!(library.within(&scope("owner0")).room().await.unwrap().used.documents, 3);
        kind.end().await;
    }
}

//! Documents are added, found, cited, changed and deleted, on SQLite and Postgres.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

mod changes;
mod earlier;
mod forgetting;
mod policies;
mod quotas;
mod quotes;
mod retrieval;
mod support;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use chrono::TimeDelta;
use perihelion_documents::{EmbeddingModel as _, Error, Filters, Query, Reranker, Scope};
use support::{Adds as _, Endpoint, input, kinds, scope};

const LEASE: &str = "# Lease\n\nThis lease is made between Ann Archer and the Brook Company.\n\n\
    ## Rent\n\nThe rent is 1,250 crowns a month, due on the first day. A late payment bears interest of 4 %.\n\n\
    ## Termination\n\nEither party may end the lease with notice of three months, in writing.\n";

const NOTES: &str = "# Garden notes\n\nTomatoes want six hours of sun.\n\n## Watering\n\nWater in the morning; \
    größere Töpfe alle zwei Tage.\n";

/// S3.06
#[tokio::test(flavor = "multi_thread")]
async fn an_added_document_is_found_with_its_section_and_an_exact_quote() {
    for kind in kinds().await {
        let library = &kind.library;
        library.add(input("lease.md", LEASE), None, None, &|_| {}).await.unwrap();
        library.add(input("garden.md", NOTES), None, None, &|_| {}).await.unwrap();

        let found =
            library.retrieve(&Query::new("how much is the rent"), None, None).await.unwrap();
        let source = &found.passages[0].source;
        assert_eq!(source.title, "Lease");
        assert_eq!(source.section.as_deref(), Some("Lease › Rent"));
        assert!(source.quote.contains("1,250 crowns"));
        assert!(found.passages[0].text.contains(&source.quote));

        // Places are counted in characters, and the umlauts above make them differ from bytes.
        let found = library.search(&Query::new("Töpfe"), None).await.unwrap().hits;
        let read = library
            .read(&found[0].document, Some(found[0].start), Some(found[0].end))
            .await
            .unwrap();
        assert_eq!(read.text, found[0].quote);
        let whole = library.read(&found[0].document, None, None).await.unwrap();
        let part: String =
            whole.text.chars().skip(found[0].start).take(found[0].end - found[0].start).collect();
        assert_eq!(part, found[0].quote);

        let mut asked = Query::new("rent sun");
        asked.filters = Filters { section: Some("watering".into()), ..Filters::default() };
        assert!(library.search(&asked, None).await.unwrap().hits.is_empty());
        kind.end().await;
    }
}

/// S3.06: an author is known from a document's own properties, and found by the name or a word of it.
#[tokio::test(flavor = "multi_thread")]
async fn documents_are_found_by_their_author() {
    let page = "<head><title>Rent</title><meta name=Author content=\"Ann Archer, Ben O'Brook\"></head>\
        <p>The rent is due.</p>";
    for kind in kinds().await {
        let library = &kind.library;
        let added = library.add(input("rent.html", page), None, None, &|_| {}).await.unwrap();
        assert_eq!(added.document.authors, ["Ann Archer", "Ben O'Brook"]);
        library.add(input("lease.md", LEASE), None, None, &|_| {}).await.unwrap();
        let found = async |person: &str| {
            let mut asked = Query::new("rent");
            asked.filters.person = Some(person.to_owned());
            let hits = library.search(&asked, None).await.unwrap().hits;
            hits.into_iter().map(|hit| hit.document).collect::<Vec<_>>()
        };
        for person in ["Ann Archer", "ben o'brook", "ARCHER"] {
            assert_eq!(found(person).await.concat(), added.document.id, "{person}");
        }
        for person in ["Ann Brook", "Cy", "\"; --", ""] {
            assert!(found(person).await.is_empty(), "{person}");
        }
        kind.end().await;
    }
}

/// S3.05: what is old is found over all tenants, and deleted unless it was changed meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn old_documents_are_deleted_unless_they_changed_in_between() {
    for kind in kinds().await {
        let library = &kind.library;
        let other = Scope::new("others", "ann").unwrap();
        let old = library.add(input("lease.md", LEASE), None, None, &|_| {}).await.unwrap();
        let theirs =
            library.within(&other).add(input("x.md", "# Xylophone"), None, None, &|_| {}).await;
        let theirs = theirs.unwrap().document.id;
        let added_at = old.document.changed_at;
        let before = added_at + TimeDelta::days(1);
        let mut late = input("garden.md", NOTES);
        late.now = before;
        library.add(late, None, None, &|_| {}).await.unwrap();
        assert!(library.older(added_at).await.unwrap().is_empty());
        let listed = library.older(before).await.unwrap();
        let ids: BTreeSet<String> = listed.iter().map(|(_, id)| id.clone()).collect();
        assert_eq!(ids, BTreeSet::from([old.document.id.clone(), theirs.clone()]));

        // Changed between the look and the deletion.
        let mut again = input("lease.md", &format!("{LEASE}\nOne more.\n"));
        again.now = before;
        library.add(again, None, None, &|_| {}).await.unwrap();
        assert_eq!(library.delete_older(&old.document.id, before).await.unwrap(), None);
        assert!(!library.search(&Query::new("rent"), None).await.unwrap().hits.is_empty());
        assert!(library.within(&other).delete_older(&theirs, before).await.unwrap().is_some());
        assert!(
            library
                .within(&other)
                .search(&Query::new("xylophone"), None)
                .await
                .unwrap()
                .hits
                .is_empty()
        );
        assert_eq!(library.within(&other).delete_older(&theirs, before).await.unwrap(), None);
        assert!(!kind.contains("Xylophone"));
        kind.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_of_another_owner_are_not_found_or_read() {
    for kind in kinds().await {
        let library = &kind.library;
        let ben = scope("ben");
        let added = library.add(input("lease.md", LEASE), None, None, &|_| {}).await.unwrap();
        let id = &added.document.id;
        assert!(
            library.within(&ben).search(&Query::new("rent"), None).await.unwrap().hits.is_empty()
        );
        assert!(library.within(&ben).list(None).await.unwrap().is_empty());
        assert!(matches!(library.within(&ben).read(id, None, None).await, Err(Error::Unknown(_))));
        assert!(matches!(library.within(&ben).delete(id).await, Err(Error::Unknown(_))));
        assert_eq!(library.search(&Query::new("rent"), None).await.unwrap().hits.len(), 1);
        kind.end().await;
    }
}

/// S3.05
#[tokio::test(flavor = "multi_thread")]
async fn the_same_bytes_cost_no_call_and_a_small_change_embeds_at_most_three_pieces() {
    for kind in kinds().await {
        let library = &kind.library;
        let endpoint = Endpoint::default();
        let section = |n: usize| {
            format!(
                "## Article {n}\n\nThe article number {n} rules on the matter {n}. {}\n\n",
                "It says more about it here. ".repeat(30)
            )
        };
        let text: String = (1..40).map(section).collect();
        let first =
            library.add(input("code.md", &text), None, Some(&endpoint), &|_| {}).await.unwrap();
        assert_eq!(first.embedded, first.document.chunks);

        let again =
            library.add(input("code.md", &text), None, Some(&endpoint), &|_| {}).await.unwrap();
        assert!(again.unchanged);
        assert_eq!(endpoint.texts(), first.embedded);

        let changed =
            text.replacen("rules on the matter 17", "rules, since last year, on the matter 17", 1);
        let second =
            library.add(input("code.md", &changed), None, Some(&endpoint), &|_| {}).await.unwrap();
        assert_eq!(second.document.version, 2);
        assert!((1..=3).contains(&second.embedded), "{}", second.embedded);
        let found = library.search(&Query::new("since last year"), None).await.unwrap().hits;
        assert!(found[0].quote.contains("since last year"));
        assert_eq!(library.list(None).await.unwrap().len(), 1);
        kind.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_upload_continues_and_pays_for_no_text_twice() {
    for kind in kinds().await {
        let library = &kind.library;
        let text: String = (0..300)
            .map(|n| format!("## Part {n}\n\nSomething about the thing {n}.\n\n"))
            .collect();
        let endpoint = Endpoint::failing_after(2);
        let prepared = library.prepare(input("long.md", &text)).await.unwrap();
        library.stage(&prepared).await.unwrap();
        let missing = library.missing("test", &prepared.meanings()).await.unwrap();
        let mut paid = 0;
        for batch in missing.chunks(64) {
            let texts: Vec<String> = batch.iter().map(|(_, text)| text.clone()).collect();
            let Ok(vectors) = perihelion_documents::EmbeddingModel::embed(&endpoint, &texts).await
            else {
                break;
            };
            library.keep_vectors("test", batch, vectors).await.unwrap();
            paid += batch.len();
        }
        assert_eq!(paid, 128);
        // Nothing is found before the document is whole.
        assert!(library.search(&Query::new("thing"), None).await.unwrap().hits.is_empty());

        let endpoint = Endpoint::default();
        let added =
            library.add(input("long.md", &text), None, Some(&endpoint), &|_| {}).await.unwrap();
        assert_eq!(added.embedded as usize + paid, missing.len());
        let found =
            library.retrieve(&Query::new("thing 250"), Some(&endpoint), None).await.unwrap();
        assert!(found.by_meaning);
        kind.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_embedding_model_leaves_a_document_that_is_found_by_words() {
    for kind in kinds().await {
        let library = &kind.library;
        let endpoint = Endpoint::failing_after(0);
        let added =
            library.add(input("lease.md", LEASE), None, Some(&endpoint), &|_| {}).await.unwrap();
        assert!(added.by_words_only.is_some());
        let found = library.retrieve(&Query::new("rent"), Some(&endpoint), None).await.unwrap();
        assert!(!found.by_meaning && found.passages[0].source.quote.contains("rent"));
        let endpoint = Endpoint::default();
        let id = &added.document.id;
        let missing = library.unembedded(id, endpoint.model()).await.unwrap();
        assert!(!missing.is_empty());
        library.embed_batch(&endpoint, &missing).await.unwrap();
        for model in [endpoint.model(), "another, which searches do not use"] {
            assert!(library.unembedded(id, model).await.unwrap().is_empty(), "{model}");
        }
        let found = library.retrieve(&Query::new("rent"), Some(&endpoint), None).await.unwrap();
        assert!(found.by_meaning);
        kind.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_document_leaves_no_byte_in_the_file() {
    let canary = "xylophonequartzwombat";
    for kind in kinds().await {
        let library = &kind.library;
        let endpoint = Endpoint::default();
        let text = format!(
            "# Secret {canary}\n\nThe word is {canary}, said once more.\n\n{}",
            "Filler. ".repeat(3000)
        );
        library.add(input("kept.md", LEASE), None, Some(&endpoint), &|_| {}).await.unwrap();
        let added =
            library.add(input("secret.md", &text), None, Some(&endpoint), &|_| {}).await.unwrap();
        assert!(kind.contains(canary) || !kind.is_file());
        library.delete(&added.document.id).await.unwrap();
        assert!(library.search(&Query::new(canary), None).await.unwrap().hits.is_empty());
        assert!(!kind.contains(canary));
        assert_eq!(library.list(None).await.unwrap().len(), 1);
        kind.end().await;
    }
}

struct Ranking {
    answer: Option<Vec<usize>>,
    asked: AtomicBool,
}

#[async_trait]
impl Reranker for Ranking {
    async fn rank(&self, _: &str, _: &[String]) -> Option<Vec<usize>> {
        self.asked.store(true, Ordering::SeqCst);
        self.answer.clone()
    }
}

/// S3.06
#[tokio::test(flavor = "multi_thread")]
async fn a_ranking_changes_the_order_and_a_failed_ranking_does_not() {
    for kind in kinds().await {
        let library = &kind.library;
        for n in 1..=4 {
            let text = format!("# Report {n}\n\nThe budget of the year {n} was spent.\n");
            library.add(input(&format!("{n}.md"), &text), None, None, &|_| {}).await.unwrap();
        }
        let order = |ranking: Option<Vec<usize>>| {
            let is_ranked = ranking.is_some();
            let reranker = Ranking { answer: ranking, asked: AtomicBool::new(false) };
            async move {
                let query = Query::new("budget of the year");
                let found = library.retrieve(&query, None, Some(&reranker)).await.unwrap();
                assert!(reranker.asked.load(Ordering::SeqCst));
                assert_eq!(found.reranked, is_ranked);
                found.passages.into_iter().map(|one| one.source.title).collect::<Vec<_>>()
            }
        };
        let fused = order(None).await;
        assert_eq!(fused.len(), 4);
        let turned = order(Some(vec![4, 3, 2, 1])).await;
        assert_eq!(turned, fused.iter().rev().cloned().collect::<Vec<_>>());
        kind.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_without_text_is_refused_by_name_and_not_stored() {
    for kind in kinds().await {
        let library = &kind.library;
        for (name, bytes, class) in [
            ("empty.txt", Vec::new(), "empty"),
            ("broken.pdf", b"%PDF-1.7 rubbish".to_vec(), "broken"),
            ("broken.docx", b"PK\x03\x04rubbish".to_vec(), "broken"),
            ("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec(), "scan"),
            ("blank.md", b"   \n\n".to_vec(), "no_text"),
        ] {
            let mut input = input(name, "");
            input.bytes = bytes;
            let error = library.add(input, None, None, &|_| {}).await.unwrap_err();
            assert_eq!(error.class(), class, "{name}: {error}");
        }
        assert!(library.list(None).await.unwrap().is_empty());
        kind.end().await;
    }
}

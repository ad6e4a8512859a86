//! How many passages there are, and what decides their order.

use std::collections::BTreeSet;

use perihelion_documents::{Asking, Judgement, Query, Weights};

use crate::support::{Adds as _, Endpoint, input, kinds};

/// S3.06: pieces of one parent take the room of no other: there are as many passages as were asked for.
#[tokio::test(flavor = "multi_thread")]
async fn the_requested_number_of_parents_is_read_if_there_are_enough() {
    let paragraph = |n: usize| {
        format!(
            "The tariff of zone {n} is tariff {n}. {}\n\n",
            "A tariff is paid per zone. ".repeat(35)
        )
    };
    let text = format!("# Tariffs\n\n{}", (0..240).map(paragraph).collect::<String>());
    for kind in kinds().await {
        let library = &kind.library;
        library.add(input("tariffs.md", &text), None, None, &|_| {}).await.unwrap();
        for limit in [1, 8, 50] {
            let mut query = Query::new("tariff zone");
            query.limit = limit;
            let found = library.retrieve(&query, None, None).await.unwrap();
            let texts: BTreeSet<&String> = found.passages.iter().map(|one| &one.text).collect();
            assert_eq!((found.passages.len(), texts.len()), (limit, limit));
            let numbers: Vec<usize> = found.passages.iter().map(|one| one.number).collect();
            assert_eq!(numbers, (1..=limit).collect::<Vec<_>>());
        }
        let mut few = Query::new("zone 17");
        few.limit = 1_000;
        let all = library.retrieve(&few, None, None).await.unwrap().passages.len();
        assert!(all > 50 && all < 1_000, "all that there are: {all}");
        kind.end().await;
    }
}

/// S3.06: what words and what meaning find counts as the library has it, and as a question says.
#[tokio::test(flavor = "multi_thread")]
async fn keyword_and_vector_weights_take_effect_as_set() {
    for kind in kinds().await {
        let endpoint = Endpoint::default();
        let add = async |path: &str, text: &str| {
            let input = input(path, text);
            let added = kind.library.add(input, None, Some(&endpoint), &|_| {}).await;
            added.unwrap().document.id
        };
        // The endpoint's vectors count letters: an anagram means the same to it.
        let by_words = add("a.md", "listen, says the old piano to the zebra by the jukebox").await;
        let by_meaning = add("b.md", "silent").await;
        let words = Weights { words: 1.0, meaning: 0.0 };
        let meaning = Weights { words: 0.0, meaning: 1.0 };
        for (weights, first) in [(words, &by_words), (meaning, &by_meaning)] {
            let library = kind.library.clone().with_weights(weights);
            let mut query = Query::new("listen");
            let found = library.search(&query, Some(&endpoint)).await.unwrap().hits;
            assert_eq!(found[0].document, *first, "{weights:?}");
            query.weights = Some(weights);
            let found = kind.library.search(&query, Some(&endpoint)).await.unwrap().hits;
            assert_eq!(found[0].document, *first, "{weights:?}");

            let judgement = Judgement {
                question: "listen".to_owned(),
                quote: None,
                document: Some(first.clone()),
            };
            let model = Some(&endpoint as &_);
            let weights = Some(weights);
            let asking = Asking { weights, model, reranker: None };
            let measures = kind.library.evaluate(&[judgement], asking).await.unwrap();
            assert_eq!(measures.mean_reciprocal_rank, 1.0);
        }
        kind.end().await;
    }
}

/// Pieces go over the ends of short pages: the page that is named is the one with the words.
#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_hit_is_the_one_on_which_the_words_are() {
    let slide = |text: &str| {
        format!(
            "<draw:page><draw:frame><draw:text-box><text:p>{text}</text:p></draw:text-box></draw:frame></draw:page>"
        )
    };
    let texts = [
        "The rent is due.",
        "Tomatoes want sun.",
        "Zebras run far.",
        "Take beacon1x.",
        "Take beacon2x.",
    ];
    let slides = texts.map(slide);
    let text = format!(
        "<office:document xmlns:office='o' xmlns:draw='d' xmlns:text='t' office:mimetype=\"application/vnd.oasis.opendocument.presentation\">\
         <office:body><office:presentation>{}</office:presentation></office:body></office:document>",
        slides.concat()
    );
    for kind in kinds().await {
        kind.library.add(input("slides.fodp", &text), None, None, &|_| {}).await.unwrap();
        for (words, page) in [
            ("rent", 1),
            ("tomato", 2),
            ("zebras", 3),
            ("zebras and tomatoes want sun", 2),
            ("what is the place that is for the zebras", 3),
            ("beacon1x", 4),
            ("beacon2x", 5),
        ] {
            let query = Query::new(words);
            let hits = kind.library.search(&query, None).await.unwrap().hits;
            assert_eq!((hits[0].page, hits.len()), (Some(page), 1), "{words}");
            let found = kind.library.retrieve(&query, None, None).await.unwrap();
            assert_eq!(found.passages[0].source.page, Some(page), "{words}");
        }
        kind.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_reports_an_endpoint_that_does_not_answer() {
    for kind in kinds().await {
        let endpoint = Endpoint::default();
        let added = input("a.md", "The rent is 800.");
        kind.library.add(added, None, Some(&endpoint), &|_| {}).await.unwrap();
        let query = Query::new("rent");
        for (model, reason) in [(Some(&endpoint), None), (None, None)] {
            let found = kind.library.search(&query, model.map(|one| one as _)).await.unwrap();
            assert_eq!((found.hits.len(), found.by_words_only), (1, reason));
        }
        let down = Endpoint::failing_after(0);
        let found = kind.library.search(&query, Some(&down)).await.unwrap();
        assert_eq!(found.hits.len(), 1);
        assert!(found.by_words_only.unwrap().contains("503"));
        let mut other = Endpoint::default();
        other.model = "other";
        let mut shorter = Endpoint::default();
        shorter.numbers = 9;
        for (model, reason) in [
            (other, "no document has a vector of the model other"),
            (shorter, "a vector of 9 numbers does not fit the model test"),
        ] {
            let found = kind.library.search(&query, Some(&model)).await.unwrap();
            assert_eq!(found.hits.len(), 1);
            assert!(found.by_words_only.unwrap().contains(reason));
        }
        let found = kind.library.retrieve(&query, Some(&down), None).await.unwrap();
        assert_eq!((found.passages.len(), found.by_meaning), (1, false));
        assert!(found.by_words_only.unwrap().contains("503"));
        kind.end().await;
    }
}

//! Large texts, and changes of them: what is shown is read, what changed is written.

use std::collections::BTreeSet;

use crate::support::{Adds as _, Endpoint, input, kinds};
use perihelion_database::{Database, query};
use perihelion_documents::{Error, PageAt, Query};
use sqlx::AssertSqlSafe;

/// A text of several segments, in which characters are not bytes.
fn long() -> String {
    let part = |n: usize| {
        format!(
            "## Artikel {n}\n\nDie Größe Nummer{n} beträgt {n} €. {}\n\n",
            "Und so fort. ".repeat(40)
        )
    };
    format!("# Maße\n\n{}", (0..200).map(part).collect::<String>())
}

async fn run(database: &Database, sql: &str) -> u64 {
    let statement = query(AssertSqlSafe(sql.to_owned()));
    database.of_tenant("tests").execute(&statement).await.unwrap()
}

/// S3.06: a quote, its parent and a range are read from what they touch, however long the text is.
#[tokio::test(flavor = "multi_thread")]
async fn a_place_is_read_without_the_rest_of_the_text() {
    for kind in kinds().await {
        let library = &kind.library;
        let added = library.add(input("long.md", &long()), None, None, &|_| {}).await.unwrap();
        let id = &added.document.id;
        let body = library.body(id).await.unwrap();
        let characters: Vec<char> = body.chars().collect();
        assert_eq!(characters.len() as u64, added.document.characters);
        assert!(characters.len() > 100_000);
        for (start, end) in [(0, 3), (16_383, 16_385), (40_000, 90_000), (100_000, 100_000)] {
            let read = library.read(id, Some(start), Some(end)).await.unwrap();
            assert_eq!(read.text, characters[start..end].iter().collect::<String>());
        }
        for (start, end) in [(5, Some(4)), (characters.len() + 1, None)] {
            let refused = library.read(id, Some(start), end).await;
            assert!(matches!(refused, Err(Error::Range { .. })), "{refused:?}");
        }

        let asked = Query::new("Nummer150");
        let before = library.retrieve(&asked, None, None).await.unwrap();
        let source = &before.passages[0].source;
        assert_eq!(characters[source.start..source.end].iter().collect::<String>(), source.quote);
        // Nothing else of the text is there any more, and nobody misses it.
        let segment = source.start / 16_384;
        let gone = format!(
            "DELETE FROM document_segment WHERE number NOT IN ({segment}, {})",
            segment + 1
        );
        assert!(run(library.index().database(), &gone).await > 3);
        let after = library.retrieve(&asked, None, None).await.unwrap();
        assert_eq!(after.passages[0], before.passages[0]);
        let read = library.read(id, Some(source.start), Some(source.end)).await.unwrap();
        assert_eq!(read.text, source.quote);
        let refused = library.read(id, Some(0), Some(10)).await;
        assert!(matches!(refused, Err(Error::Damaged { .. })), "{refused:?}");
        kind.end().await;
    }
}

/// S3.06: a page is found by its number and by a place, with its own text.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_read_by_its_number_and_by_a_place_on_it() {
    // Each slide, counted in characters, begins after umlauts.
    let csv = "Größe,Maß\nfünf,zwölf\n";
    for kind in kinds().await {
        let library = &kind.library;
        let none = library.add(input("a.csv", csv), None, None, &|_| {}).await.unwrap();
        let page = library.page(&none.document.id, PageAt::Number(1)).await.unwrap();
        assert_eq!(page, None, "the format has none");

        let mut prepared = library.prepare(input("paged.md", &long())).await.unwrap();
        let text = prepared.parsed.text.clone();
        let cut = text.find("## Artikel 100").unwrap();
        prepared.parsed.pages = [(1, 0, cut), (2, cut, text.len())]
            .map(|(number, start, end)| perihelion_documents::parse::Page { number, start, end })
            .to_vec();
        let id = library.flip(&prepared).await.unwrap().id;
        let first = library.page(&id, PageAt::Number(1)).await.unwrap().unwrap();
        let second = library.page(&id, PageAt::Number(2)).await.unwrap().unwrap();
        assert_eq!((first.text.as_str(), second.text.as_str()), text.split_at(cut));
        assert_eq!((first.start, first.end, first.pages), (0, text[..cut].chars().count(), 2));
        let length = text.chars().count();
        for (place, page) in
            [(0, &first), (first.end - 1, &first), (second.start, &second), (length, &second)]
        {
            let found = library.page(&id, PageAt::Character(place)).await.unwrap();
            assert_eq!(found.as_ref(), Some(page), "{place}");
            let read = library.read(&id, Some(place), None).await.unwrap();
            assert_eq!(read.page, (place < length).then_some(page.number), "{place}");
        }
        let beyond = library.page(&id, PageAt::Number(3)).await;
        assert!(matches!(beyond, Err(Error::Page { number: 3, last: 2 })), "{beyond:?}");
        let beyond = library.page(&id, PageAt::Character(length + 1)).await;
        assert!(matches!(beyond, Err(Error::Range { .. })), "{beyond:?}");
        kind.end().await;
    }
}

/// S3.06: what a change leaves as it was keeps its rows, its vectors and its lists, and is quoted where it stands now.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_one_paragraph_indexes_its_own_pieces_alone_and_all_quotes_are_true_after_it() {
    for kind in kinds().await {
        let library = &kind.library;
        let endpoint = Endpoint::default();
        let database = library.index().database().of_tenant("tests");
        let numbers = async || {
            let rows = database.fetch_all(&query("SELECT number FROM recall_item")).await.unwrap();
            rows.iter().map(|row| row.get::<i64>(0).unwrap()).collect::<BTreeSet<_>>()
        };
        let text = long();
        library.add(input("long.md", &text), None, Some(&endpoint), &|_| {}).await.unwrap();
        let before = numbers().await;
        let asked = Query::new("Nummer190");
        let was = library.search(&asked, None).await.unwrap().hits.remove(0);

        let changed =
            text.replacen("## Artikel 3\n\n", "## Artikel 3\n\nNeues über Elefanten. ", 1);
        let mut later = input("long.md", &changed);
        later.now += chrono::TimeDelta::days(1);
        let second = library.add(later, None, Some(&endpoint), &|_| {}).await.unwrap();
        let after = numbers().await;
        assert!((1..=3).contains(&after.difference(&before).count()));
        assert_eq!(after.len() as u64, second.document.chunks);

        let body: Vec<char> = library.body(&second.document.id).await.unwrap().chars().collect();
        for words in ["Nummer190", "Nummer1", "Elefanten"] {
            for hit in library.search(&Query::new(words), None).await.unwrap().hits {
                assert_eq!(body[hit.start..hit.end].iter().collect::<String>(), hit.quote);
            }
        }
        let is = library.search(&asked, None).await.unwrap().hits.remove(0);
        assert_eq!(is.quote, was.quote);
        assert_eq!(is.start, was.start + "Neues über Elefanten. ".chars().count());
        // All of it is as old as its change.
        let mut since = asked.clone();
        since.filters.since = Some(second.document.changed_at);
        assert_eq!(library.search(&since, None).await.unwrap().hits[0], is);
        kind.end().await;
    }
}

/// Equal pieces are several, and one of them can go.
#[tokio::test(flavor = "multi_thread")]
async fn equal_paragraphs_are_distinguished_and_counted() {
    for kind in kinds().await {
        let library = &kind.library;
        let same = format!("The same words again. {}\n\n", "And more of them. ".repeat(60));
        for times in [4, 2, 3] {
            let text = format!("# Same\n\n{}", same.repeat(times));
            let added = library.add(input("s.md", &text), None, None, &|_| {}).await.unwrap();
            let hits = library.search(&Query::new("same words"), None).await.unwrap().hits;
            let places: BTreeSet<usize> = hits.iter().map(|hit| hit.start).collect();
            assert_eq!(places.len() as u64, added.document.chunks, "{times}");
        }
        kind.end().await;
    }
}

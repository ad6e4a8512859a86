//! What is found, and by what.

use chrono::{DateTime, Utc};
use perihelion_recall::{Filter, Item, QueryVector, Scope, Search, content_hash};
use serde_json::json;

use crate::databases::on_each;
use crate::index::Index as _;

fn scope() -> Scope {
    Scope::new("acme", "ada").unwrap()
}

fn day(number: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(number * 86_400, 0).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_decide_before_anything_is_ranked() {
    on_each(|index| async move {
        let items: Vec<Item> = (0..40)
            .map(|n| {
                let year = if n % 20 == 0 { "2026" } else { "2025" };
                let mut item = Item::new(format!("i{n}"), "quarterly report of sales")
                    .with_attribute("year", year)
                    .with_attribute("kind.of it'", "x")
                    .with_parent(format!("doc{}", n / 10))
                    .with_payload(json!({ "page": n }));
                item.at = Some(day(n));
                item
            })
            .collect();
        index.put(&scope(), "chunk", &items).await.unwrap();
        let ids = async |filter: Filter| -> Vec<String> {
            let search =
                Search::new(&scope(), "chunk", "sales report").with_filter(filter).limit(3);
            index.search(&search).await.unwrap().hits.into_iter().map(|hit| hit.id).collect()
        };
        let attributes = |name: &str, value: &str| Filter {
            attributes: [(name.to_owned(), value.to_owned())].into(),
            ..Filter::default()
        };
        assert_eq!(ids(attributes("year", "2026")).await, ["i0", "i20"]);
        assert_eq!(ids(attributes("kind.of it'", "x")).await.len(), 3);
        assert!(ids(attributes("year", "1999")).await.is_empty());
        let parents = Filter { parents: vec!["doc3".to_owned()], ..Filter::default() };
        assert_eq!(ids(parents).await, ["i30", "i31", "i32"]);
        let dates = Filter { since: Some(day(5)), until: Some(day(7)), ..Filter::default() };
        assert_eq!(ids(dates).await, ["i5", "i6"]);
        let search = Search::new(&scope(), "chunk", "sales").limit(1);
        let hit = index.search(&search).await.unwrap().hits.remove(0);
        assert_eq!(hit.payload, json!({ "page": 0 }));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_script_is_found_by_its_words() {
    on_each(|index| async move {
        let texts = [
            ("zh", "请支付未付发票"),
            ("ja", "会議の予定を確認する"),
            ("ko", "주문을 확인합니다"),
            ("ru", "Проверить заказы клиента"),
            ("de", "Die Rechnungen des Kunden sind nicht bezahlt"),
            ("ident", "parseHTTPHeader list_open_issues"),
            ("names", "Daten\u{ad}schutz bei GitHub: APIs"),
        ];
        let items = texts.map(|(id, text)| Item::new(id, text));
        index.put(&scope(), "note", &items).await.unwrap();
        for (asked, id) in [
            ("发票", "zh"),
            ("予定", "ja"),
            ("주문", "ko"),
            ("заказ", "ru"),
            ("Rechnung", "de"),
            ("http header", "ident"),
            ("openIssue", "ident"),
            ("github", "names"),
            ("api", "names"),
            ("Datenschutz", "names"),
            ("票", "zh"),
        ] {
            let found = index.search(&Search::new(&scope(), "note", asked)).await.unwrap();
            let first = found.hits.first().map(|hit| hit.id.as_str());
            // A lone letter is found where it begins a pair.
            let expected = if asked == "票" { None } else { Some(id) };
            assert_eq!(first, expected, "{asked}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vector_search_finds_texts_without_shared_words_and_ignores_vectors_of_another_model() {
    on_each(|index| async move {
        let items = [
            Item::new("car", "an automobile"),
            Item::new("cat", "a feline"),
            Item::new("both", "a vehicle"),
        ];
        index.put(&scope(), "note", &items).await.unwrap();
        let vectors = [
            (content_hash("an automobile"), vec![1.0, 0.1, 0.0]),
            (content_hash("a feline"), vec![0.0, 0.0, 1.0]),
            (content_hash("a vehicle"), vec![0.9, 0.3, 0.0]),
        ];
        index.put_vectors(&scope(), "m", &vectors).await.unwrap();
        let ask = |model: &str| {
            let vector = QueryVector { model: model.to_owned(), values: vec![1.0, 0.0, 0.0] };
            Search::new(&scope(), "note", "car vehicle").with_vector(Some(vector))
        };
        let found = index.search(&ask("m")).await.unwrap();
        let ids: Vec<&str> = found.hits.iter().map(|hit| hit.id.as_str()).collect();
        assert_eq!(ids, ["both", "car", "cat"]);
        assert!(found.by_meaning && found.hits[1].coverage == 0.0);
        assert!(found.hits[1].similarity.unwrap() > 0.99);
        let other = index.search(&ask("another")).await.unwrap();
        assert!(!other.by_meaning);
        assert_eq!(other.hits.len(), 1, "by words alone");
        let mut filtered = ask("m");
        filtered.filter.parents = vec!["nothing".to_owned()];
        assert!(index.search(&filtered).await.unwrap().hits.is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_of_any_shape_are_answered_without_an_error() {
    on_each(|index| async move {
        index.put(&scope(), "note", &[Item::new("a", "something")]).await.unwrap();
        for asked in [
            "",
            "   ",
            "'; DROP TABLE recall_item; --",
            "\u{0}",
            "%_*?\"",
            "🦀🦀",
            &"x ".repeat(50_000),
        ] {
            index.search(&Search::new(&scope(), "note", asked)).await.unwrap();
        }
        assert_eq!(index.count(&scope(), "note").await.unwrap(), 1);
    })
    .await;
}

//! Every quote of every search is the text at its place, whatever the texts hold.

use std::collections::BTreeMap;

use perihelion_documents::Query;

use super::support::{Adds as _, Endpoint, input, kinds};

/// Numbers that look random and are the same each time.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % most
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// Words whose letters take one to four bytes, are joined of several characters, or are written without spaces.
const WORDS: [&str; 16] = [
    "rent",
    "notice",
    "Töpfe",
    "größer",
    "naïve",
    "e\u{301}tude",
    "עולם",
    "سلام",
    "東京都",
    "契約書",
    "한국어",
    "𝛼-decay",
    "👩‍👩‍👧",
    "I/O",
    "“quoted”",
    "1,250.50",
];

/// What a text is made of: a block of some kind, of words that are drawn.
fn block(draw: &mut Draw) -> String {
    let mut words = |most: usize| {
        let count = 1 + draw.below(most);
        (0..count).map(|_| draw.of(&WORDS)).collect::<Vec<_>>().join(" ")
    };
    let short = words(4);
    let other = words(3);
    let long = words(400);
    match draw.below(6) {
        0 => format!("## {short}\n\n"),
        1 => format!("- {short}\n- {other}\n\n"),
        2 => {
            let rows = draw.below(120);
            format!(
                "| {short} | {other} |\n| - | - |\n{}\n",
                format!("| {other} | {short} |\n").repeat(rows)
            )
        }
        3 => format!("{short}.\r\n{other}.\r\n\r\n"),
        4 => format!("{}\n\n", long.replace(' ', "")),
        _ => format!("{long}.\n\n"),
    }
}

/// S3.06: a quote equals `text[start..end]` of its document, in characters, by words and by meaning, after a change too.
#[tokio::test(flavor = "multi_thread")]
async fn every_quote_of_a_search_is_the_text_at_its_place() {
    for kind in kinds().await {
        let library = &kind.library;
        let model = Endpoint::default();
        let mut draw = Draw(19);
        let mut quotes = 0;
        for version in 0..2 {
            for (number, ending) in ["md", "txt", "md", "html"].into_iter().enumerate() {
                let blocks = |draw: &mut Draw| (0..10).map(|_| block(draw)).collect::<String>();
                // A word that stands in one place alone, behind letters of all kinds.
                let only = format!("xylophone{number}{version}");
                let blocks = [&blocks(&mut draw), &only, "\n\n", &blocks(&mut draw)].concat();
                let text = match ending {
                    "html" => format!("<h1>Page</h1><p>{}</p>", blocks.replace("\n\n", "</p><p>")),
                    _ => format!("# Version {version}\n\n{blocks}"),
                };
                let named = input(&format!("{number}.{ending}"), &text);
                library.add(named, None, Some(&model), &|_| {}).await.unwrap();
                let found = library.search(&Query::new(&only), None).await.unwrap().hits;
                assert!(found[0].quote.contains(&only), "{:?}", found[0]);
            }
            for word in WORDS {
                let question = Query::new(format!("{word} {}", draw.of(&WORDS)));
                let mut found = library.search(&question, Some(&model)).await.unwrap().hits;
                found.extend(library.search(&question, None).await.unwrap().hits);
                let read = library.retrieve(&question, Some(&model), None).await.unwrap();
                for passage in &read.passages {
                    let quote = &passage.source.quote;
                    assert!(passage.text.contains(quote), "{quote:?} in {:?}", passage.text);
                }
                found.extend(read.passages.into_iter().map(|passage| passage.source));
                let mut texts: BTreeMap<String, Vec<char>> = BTreeMap::new();
                for source in found {
                    if !texts.contains_key(&source.document) {
                        let whole = library.read(&source.document, None, None).await.unwrap();
                        texts.insert(source.document.clone(), whole.text.chars().collect());
                    }
                    let text = &texts[&source.document];
                    let content: String = text[source.start..source.end].iter().collect();
                    assert_eq!(content, source.quote, "{}", source.document);
                    assert_eq!(content.trim(), content, "a quote is of whole words");
                    quotes += 1;
                }
            }
        }
        assert!(quotes > 300, "{quotes}");
        kind.end().await;
    }
}

//! Searches by words, by meaning and by both, with vectors that an endpoint gives.

use std::collections::BTreeMap;

use perihelion_embeddings::Endpoint;
use perihelion_recall::{
    EmbeddingModel as _, QueryVector, Search, StoredIndex, Weights, cosine, embed_pending, fuse,
};

use crate::lsa::Lsa;
use crate::reference::Reference;
use crate::{Collection, Lists, endpoint, measure};

/// What is weighed how: words, and meaning.
const WAYS: [(&str, f64, f64); 5] = [
    ("by meaning", 0.0, 1.0),
    ("fused 1:1", 1.0, 1.0),
    ("fused 2:1", 2.0, 1.0),
    ("fused 1:2", 1.0, 2.0),
    ("fused 1:4", 1.0, 4.0),
];

/// Ranks of each list that are compared between stores.
const COMPARED: usize = 100;

/// Measures a collection that lies in the stores already; returns whether all is reached.
pub async fn judged(
    collection: &Collection,
    memory: &Reference,
    stores: &[(&str, StoredIndex)],
) -> bool {
    let texts: Vec<String> = collection.items.iter().map(|item| item.meaning_text()).collect();
    let model = endpoint::serve(collection.name, Lsa::of(&texts)).await;
    let documents = embed(&model, &texts).await;
    let questions: Vec<String> = collection.questions.values().cloned().collect();
    let asked = embed(&model, &questions).await;
    let questions: BTreeMap<u32, Vec<f32>> =
        collection.questions.keys().copied().zip(asked).collect();
    for (_, store) in stores {
        embed_pending(store, &collection.scope(), &model).await.unwrap();
    }
    let by_words = by_words(collection, memory).await;
    let by_meaning: Ranks = questions
        .iter()
        .map(|(number, question)| (*number, nearest(&documents, question)))
        .collect();
    let mut is_good = true;
    for (way, words, meaning) in WAYS {
        let weights = Weights { words, meaning };
        let lists = fused(collection, weights, &by_words, &by_meaning, collection.items.len());
        let (map, gain) = measure(collection, &lists);
        let wanted = collection.least_by_meaning.iter().find(|(name, _)| *name == way);
        let content =
            wanted.map_or(String::new(), |(_, (map, gain))| format!(" (≥ {map}, {gain})"));
        is_good &= wanted.is_none_or(|(_, least)| map >= least.0 && gain >= least.1);
        // An index looks at this many of each list, whatever is asked for.
        let expected = fused(collection, weights, &by_words, &by_meaning, LOOKED_AT);
        let mut same = Vec::new();
        for (name, store) in stores {
            let found = ask(store, collection, &model, &questions, weights).await;
            let is_same = found.iter().all(|(number, list)| expected[number].starts_with(list));
            is_good &= is_same;
            same.push(format!("{name} {is_same}"));
        }
        let same = same.join(", ");
        println!(
            "  {way}: MAP {map:.4}, nDCG@10 {gain:.4}{content}; the same top {COMPARED}: {same}"
        );
    }
    is_good
}

/// As many as an index fuses at least.
const LOOKED_AT: usize = 200;

/// Numbers of texts in a question's order, best first.
type Ranks = BTreeMap<u32, Vec<usize>>;

async fn embed(model: &Endpoint, texts: &[String]) -> Vec<Vec<f32>> {
    let mut vectors = Vec::new();
    for part in texts.chunks(model.batch()) {
        vectors.extend(model.embed(part).await.unwrap());
    }
    vectors
}

async fn by_words(collection: &Collection, memory: &Reference) -> Ranks {
    let ids = collection.items.iter().enumerate().map(|(number, item)| (item.id.as_str(), number));
    let numbers: BTreeMap<&str, usize> = ids.collect();
    let mut ranks = Ranks::new();
    for (question, text) in &collection.questions {
        let search = Search::new(&collection.scope(), collection.name, text);
        let found = memory.search(&search.limit(collection.items.len()));
        let list = found.hits.iter().map(|hit| numbers[hit.id.as_str()]).collect();
        ranks.insert(*question, list);
    }
    ranks
}

fn nearest(documents: &[Vec<f32>], question: &[f32]) -> Vec<usize> {
    // What differs in the last bits alone is equal, as in the index.
    let similarity = |document: &Vec<f32>| (cosine(document, question) * 1e6).round();
    let mut ranked: Vec<(usize, f64)> = documents.iter().map(similarity).enumerate().collect();
    ranked.sort_by(|one, other| other.1.total_cmp(&one.1));
    ranked.into_iter().map(|(number, _)| number).collect()
}

fn fused(
    collection: &Collection,
    weights: Weights,
    by_words: &Ranks,
    by_meaning: &Ranks,
    depth: usize,
) -> Lists {
    let first = |list: &Vec<usize>| list[..list.len().min(depth)].to_vec();
    let mut lists = Lists::new();
    for (question, words) in by_words {
        let words = first(words);
        let meaning = first(&by_meaning[question]);
        let list = fuse(&[(weights.words, &words), (weights.meaning, &meaning)]);
        let id = |(number, _): (usize, f64)| collection.items[number].id.clone();
        lists.insert(*question, list.into_iter().map(id).collect());
    }
    lists
}

async fn ask(
    store: &StoredIndex,
    collection: &Collection,
    model: &Endpoint,
    questions: &BTreeMap<u32, Vec<f32>>,
    weights: Weights,
) -> Lists {
    let mut lists = Lists::new();
    for (number, text) in &collection.questions {
        let vector =
            QueryVector { model: model.model().to_owned(), values: questions[number].clone() };
        let mut search = Search::new(&collection.scope(), collection.name, text)
            .limit(COMPARED)
            .with_vector(Some(vector));
        search.weights = weights;
        let found = store.search(&search).await.unwrap();
        assert!(found.by_meaning, "{}: no vectors", collection.name);
        lists.insert(*number, found.hits.into_iter().map(|hit| hit.id).collect());
    }
    lists
}

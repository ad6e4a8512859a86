//! Vectors of the scripted model: texts that share words are near each other, in every process alike.

use axum::Json;
use perihelion_recall::words;
use serde_json::{Value, json};

const DIMENSION: usize = 256;

/// Numbers of a vector at most.
const MOST: u64 = 4096;

pub(super) async fn embed(Json(request): Json<Value>) -> Json<Value> {
    let dimension = request["dimensions"].as_u64().map_or(DIMENSION, |n| n.clamp(1, MOST) as usize);
    let texts: Vec<&str> = match &request["input"] {
        Value::Array(texts) => texts.iter().filter_map(Value::as_str).collect(),
        text => text.as_str().into_iter().collect(),
    };
    let entry = |(index, text): (usize, &&str)| json!({ "object": "embedding", "index": index, "embedding": vector(text, dimension) });
    let data: Vec<Value> = texts.iter().enumerate().map(entry).collect();
    let tokens: usize = texts.iter().map(|text| text.len() / 4 + 1).sum();
    Json(json!({
        "object": "list",
        "data": data,
        "model": request["model"],
        "usage": { "prompt_tokens": tokens, "total_tokens": tokens },
    }))
}

/// Adds up each term's own direction.
fn vector(text: &str, dimension: usize) -> Vec<f32> {
    let mut vector = vec![0.0_f32; dimension];
    for term in words::terms(text, words::Language::of(text)) {
        let hash = blake3::hash(term.as_bytes());
        for pair in hash.as_bytes().chunks_exact(4) {
            let [low, high, sign, _] = *pair else { continue };
            let place = usize::from(u16::from_le_bytes([low, high])) % dimension;
            vector[place] += if sign & 1 == 0 { 1.0 } else { -1.0 };
        }
    }
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    if length == 0.0 {
        vector[0] = 1.0;
        return vector;
    }
    vector.into_iter().map(|number| number / length).collect()
}

#[cfg(test)]
mod tests {
    use perihelion_recall::cosine;

    use super::*;

    #[test]
    fn texts_that_share_words_are_nearer_than_unrelated_texts() {
        let of = |text| vector(text, DIMENSION);
        let asked = of("invoices of the customer");
        let near = cosine(&asked, &of("the customer's invoice"));
        let far = cosine(&asked, &of("weather in Lisbon"));
        assert!(near > 0.5 && far < 0.3, "{near} {far}");
        assert_eq!(of(""), of("the"));
    }
}

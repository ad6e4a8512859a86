//! How alike texts are by the vectors of an embedding model.

use pyo3::prelude::*;

use crate::error::Error;

fn numbers(bytes: &[u8]) -> impl Iterator<Item = f32> + '_ {
    bytes.chunks_exact(4).map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}

fn length(vector: &[u8]) -> f32 {
    numbers(vector).map(|number| number * number).sum::<f32>().sqrt()
}

/// The cosine of a vector and each of a list, as little-endian 32-bit floats; 0 for a vector of zeros.
#[pyfunction]
pub fn cosines(query: &[u8], vectors: Vec<Vec<u8>>) -> PyResult<Vec<f32>> {
    let query_length = length(query);
    let cosine = |vector: &Vec<u8>| {
        if vector.len() != query.len() {
            return Err(Error::Damaged("vectors of several lengths; index the items again").into());
        }
        let product: f32 =
            numbers(query).zip(numbers(vector)).map(|(one, other)| one * other).sum();
        let lengths = query_length * length(vector);
        Ok(if lengths > 0.0 { product / lengths } else { 0.0 })
    };
    vectors.iter().map(cosine).collect()
}

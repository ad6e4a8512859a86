//! Vectors: how they are named, stored and compared.

/// Names a text for which there is a vector: equal texts of a tenant share it.
pub type ContentHash = [u8; 32];

/// Returns the name of a text.
pub fn content_hash(text: &str) -> ContentHash {
    *blake3::hash(text.as_bytes()).as_bytes()
}

/// Scales a vector to length 1, so that a dot product is the cosine; one of zeros stays.
pub(crate) fn unit(values: &[f32]) -> Vec<f32> {
    let length = values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    let scale = if length > 0.0 { 1.0 / length } else { 0.0 };
    values.iter().map(|value| (f64::from(*value) * scale) as f32).collect()
}

/// Returns the dot product, added up in a fixed order: the same numbers on every machine.
pub(crate) fn dot(one: &[f32], other: &[f32]) -> f64 {
    // Sums side by side, over arrays whose length the compiler knows: it turns them into vector instructions.
    const SIDE: usize = 16;
    let (ones, one) = one.as_chunks::<SIDE>();
    let (others, other) = other.as_chunks::<SIDE>();
    let rest: f32 = one.iter().zip(other).map(|(one, other)| one * other).sum();
    let mut sums = [0.0_f32; SIDE];
    // Zipped iterators stay calls here, five times as slow.
    for (one, other) in ones.iter().zip(others) {
        for at in 0..SIDE {
            sums[at] += one[at] * other[at];
        }
    }
    f64::from(sums.iter().sum::<f32>() + rest)
}

/// Returns the cosine of the angle between two vectors, -1 to 1; 0 when their lengths differ.
pub fn cosine(one: &[f32], other: &[f32]) -> f64 {
    if one.len() == other.len() { dot(&unit(one), &unit(other)) } else { 0.0 }
}

pub(crate) fn to_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub(crate) fn from_bytes(bytes: &[u8]) -> Vec<f32> {
    let (numbers, _) = bytes.as_chunks::<4>();
    numbers.iter().map(|number| f32::from_le_bytes(*number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_compared_by_angle_and_survive_being_stored() {
        let one = [3.0, 4.0];
        let other = [6.0, 8.0];
        assert!((cosine(&one, &other) - 1.0).abs() < 1e-6);
        assert!((cosine(&one, &[-4.0, 3.0])).abs() < 1e-6);
        assert_eq!(cosine(&one, &[1.0]), 0.0);
        assert_eq!(cosine(&[0.0, 0.0], &one), 0.0);
        let long: Vec<f32> = (0..19).map(|n| n as f32).collect();
        assert_eq!(dot(&long, &long), f64::from((0..19).map(|n| (n * n) as f32).sum::<f32>()));
        assert_eq!(from_bytes(&to_bytes(&long)), long);
    }
}

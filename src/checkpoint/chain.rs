//! The hash chain over a thread's steps, which shows loss and tampering.

/// Hashes a step onto its predecessor; the predecessor of step 1 is 32 zero bytes.
pub fn chain_hash(previous: &[u8; 32], seq: u64, delta_json: &[u8], frontier: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(previous);
    hasher.update(&seq.to_le_bytes());
    hasher.update(delta_json);
    hasher.update(frontier);
    *hasher.finalize().as_bytes()
}

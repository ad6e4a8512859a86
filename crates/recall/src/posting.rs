//! The postings of a term: numbered items with counts and lengths, packed into blocks.

/// Items of one block; a block is rewritten if one of its items changes.
pub(crate) const BLOCK: usize = 256;

/// Quarters of a word's count, the unit of weights: whole numbers have the same sum everywhere.
pub(crate) const QUARTERS: f64 = 4.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posting {
    /// Number of the item, in the order in which items were stored.
    pub item: u64,
    /// How often it contains the term, in quarters.
    pub count: u32,
    /// How many terms the item has, in quarters.
    pub length: u32,
}

/// Packs postings, sorted by item: differences as variable-length integers.
pub(crate) fn pack(postings: &[Posting]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(postings.len() * 4);
    let mut last = 0;
    for posting in postings {
        put(&mut bytes, posting.item - last);
        put(&mut bytes, u64::from(posting.count));
        put(&mut bytes, u64::from(posting.length));
        last = posting.item;
    }
    bytes
}

/// Returns the postings of a block; `None` if the bytes are invalid.
pub(crate) fn unpack(mut bytes: &[u8]) -> Option<Vec<Posting>> {
    let mut postings = Vec::new();
    let mut item = 0_u64;
    while !bytes.is_empty() {
        item = item.checked_add(take(&mut bytes)?)?;
        let count = u32::try_from(take(&mut bytes)?).ok()?;
        let length = u32::try_from(take(&mut bytes)?).ok()?;
        postings.push(Posting { item, count, length });
    }
    Some(postings)
}

/// Appends a number: seven bits a byte, the least first.
pub(crate) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reads a number from the beginning; `None` without a complete one.
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f).checked_shl(shift)?;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn packed_postings_are_unpacked_unchanged(raw in prop::collection::vec((1_u64..1 << 40, any::<u32>(), any::<u32>()), 0..50)) {
            let mut item = 0;
            let postings: Vec<Posting> = raw
                .into_iter()
                .map(|(step, count, length)| {
                    item += step;
                    Posting { item, count, length }
                })
                .collect();
            prop_assert_eq!(unpack(&pack(&postings)), Some(postings));
        }

        #[test]
        fn bytes_that_are_no_block_are_refused_and_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = unpack(&bytes);
        }
    }
}

//! Draws that follow from a seed: SplitMix64 (Steele, Lea, Flood 2014), one stream per purpose.

/// A stream of draws.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Opens the stream that belongs to a seed and a path of numbers, such as a process and its purpose.
    pub fn new(seed: u64, path: &[u64]) -> Self {
        let mut stream = Self(seed);
        for number in path {
            stream.0 = stream.next() ^ number.wrapping_mul(0xd134_2543_de82_ef95);
        }
        stream
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Draws a number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Draws a number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// Draws whether something happens that happens in so many of 1,000 cases.
    pub fn per_mille(&mut self, chance: u64) -> bool {
        self.below(1000) < chance
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

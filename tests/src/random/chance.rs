//! A stream of numbers that depends on nothing but its seed.

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
pub struct Chance(u64);

impl Chance {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 where there is none.
    pub fn below(&mut self, bound: u32) -> u32 {
        let range = u64::from(bound.max(1));
        u32::try_from(self.next() % range).unwrap_or(0)
    }

    /// A number from `least` to `most`.
    pub fn from(&mut self, least: u32, most: u32) -> u32 {
        least + self.below(most - least + 1)
    }

    /// Yes in so many of a hundred cases.
    pub fn of(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    /// One of several; there must be one.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        let count = u32::try_from(from.len()).unwrap_or(u32::MAX);
        from[self.below(count) as usize].clone()
    }

    /// An index, each as often as its weight says.
    pub fn weighted(&mut self, weights: &[u32]) -> usize {
        let mut left = self.below(weights.iter().sum());
        for (index, weight) in weights.iter().enumerate() {
            match left.checked_sub(*weight) {
                None => return index,
                Some(rest) => left = rest,
            }
        }
        0
    }
}

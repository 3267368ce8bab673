//! FNV-1a (Fowler, Noll, Vo): a fast hash that is the same on every machine and in every version,
//! for stored or repeatable values. Anyone can find two inputs with the same hash: it protects
//! against mistakes, not against malice.

/// FNV-1a with 64 bits.
pub fn fnv1a_64(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let hash = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, hash)
}

/// FNV-1a with 32 bits.
pub fn fnv1a_32(bytes: impl IntoIterator<Item = u8>) -> u32 {
    let hash = |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    bytes.into_iter().fold(0x811c_9dc5, hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the authors' own test vectors.
    #[test]
    fn fnv_is_what_its_authors_say() {
        for (text, narrow, wide) in [
            ("", 0x811c_9dc5, 0xcbf2_9ce4_8422_2325),
            ("a", 0xe40c_292c, 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0xbf9c_f968, 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(fnv1a_32(text.bytes()), narrow, "{text}");
            assert_eq!(fnv1a_64(text.bytes()), wide, "{text}");
        }
    }
}

//! Bytes as hexadecimal digits: in tokens, in keys and hashes kept as text.

/// Two lower-case digits a byte.
pub fn encode(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .filter_map(|digit| char::from_digit(u32::from(digit), 16))
        .collect()
}

/// The bytes, where the text is whole pairs of digits and nothing else.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = text.chars().map(|char| char.to_digit(16)).collect::<Option<_>>()?;
    let pairs = digits.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    pairs
        .map(|pair| u8::try_from(pair.iter().fold(0, |byte, digit| byte * 16 + digit)).ok())
        .collect()
}

/// The bytes, where the text has exactly `N` of them.
pub fn decode_array<const N: usize>(text: &str) -> Option<[u8; N]> {
    decode(text)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_that_is_encoded_is_decoded() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&bytes)), Some(bytes));
        assert_eq!(decode_array("00fF"), Some([0, 255]));
    }

    #[test]
    fn hex_is_pairs_of_digits_and_nothing_else() {
        for text in ["0", "0g", "+f", " 0", "0x", "é0", "-1"] {
            assert_eq!(decode(text), None, "{text}");
        }
        assert_eq!(decode_array::<2>("00ff00"), None);
    }
}

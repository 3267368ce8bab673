//! Bytes as hexadecimal digits, in tokens and in keys and hashes that are stored as text.

/// Two lower-case digits for each byte.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
    text
}

fn digit(value: u8) -> char {
    match value {
        0..=9 => char::from(b'0' + value),
        _ => char::from(b'a' + value - 10),
    }
}

/// The bytes; `None` if the text is not made of whole pairs of digits only.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks() else {
        return None;
    };
    let byte = |[high, low]: &[u8; 2]| Some(value(*high)? << 4 | value(*low)?);
    pairs.iter().map(byte).collect()
}

fn value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// The bytes; `None` if the text does not have exactly `N` of them.
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

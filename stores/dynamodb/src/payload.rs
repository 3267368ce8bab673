//! Large content of items: compressed, and split over several items if it does not fit into one.

use crate::item::{Item, Key, bytes, corrupt, keys, number, number_of, text, text_of};
use crate::table::PARTS;
use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_to_vec_with_limit;
use starbridge_ports::StoreError;

/// From this many bytes on, text is compressed.
const COMPRESS_FROM_BYTES: usize = 1_024;
/// The size of one part, in bytes. A quarter of a megabyte stays below DynamoDB's limit for an item with everything
/// else in it.
const PART_BYTES: usize = 256 << 10;
/// How many bytes a payload may have when it is unpacked. Everything that this store writes is far
/// smaller.
const MAX_BYTES: usize = 1 << 30;
/// From 1 to 10. At this level histories quickly shrink to a fifth.
const COMPRESSION_LEVEL: u8 = 4;

/// Attribute: text that is not compressed.
const PLAIN: &str = "d";
/// Attribute: compressed bytes.
const PACKED: &str = "z";
/// Attribute: how many parts hold the payload instead.
const COUNT: &str = "parts";
/// Attribute: the write that stored the item. It identifies the item's parts.
pub(crate) const WRITE: &str = "w";

/// Puts a payload into an item that has its `w`. The rest that does not fit is returned as further
/// items, to be written first: parts without their item mean nothing.
pub(crate) fn put(item: &mut Item, payload: &[u8]) -> Vec<Item> {
    if payload.len() <= COMPRESS_FROM_BYTES
        && let Ok(plain) = std::str::from_utf8(payload)
    {
        item.insert(PLAIN.to_owned(), text(plain));
        return Vec::new();
    }
    let packed = compress_to_vec(payload, COMPRESSION_LEVEL);
    if packed.len() <= PART_BYTES {
        item.insert(PACKED.to_owned(), bytes(packed));
        return Vec::new();
    }
    let (pk, _) = crate::item::key_of(item);
    let write = text_of(item, WRITE).unwrap_or_default().to_owned();
    let chunks = packed.chunks(PART_BYTES).enumerate();
    let parts: Vec<Item> = chunks
        .map(|(place, chunk)| {
            let key: Key = (pk.clone(), format!("{}{place:05}", prefix(&write)));
            let mut part = keys(&key);
            part.insert(PACKED.to_owned(), bytes(chunk.to_vec()));
            part
        })
        .collect();
    item.insert(COUNT.to_owned(), number(parts.len()));
    parts
}

fn prefix(write: &str) -> String {
    format!("{PARTS}{write}#")
}

/// The prefix of the range keys of an item's parts, if it has any.
pub(crate) fn parts_of(item: &Item) -> Option<String> {
    item.contains_key(COUNT)
        .then(|| prefix(text_of(item, WRITE).unwrap_or_default()))
}

/// The payload of an item. `fetch` gives the items of a partition whose range keys have a prefix.
pub(crate) fn get(
    item: &Item,
    fetch: impl FnOnce(&str, &str) -> Result<Vec<Item>, StoreError>,
) -> Result<Vec<u8>, StoreError> {
    if let Some(plain) = text_of(item, PLAIN) {
        return Ok(plain.as_bytes().to_vec());
    }
    let mut packed = Vec::new();
    match parts_of(item) {
        None => packed.extend_from_slice(blob(item).ok_or_else(|| corrupt(item, "has lost its content"))?),
        Some(prefix) => {
            let (pk, _) = crate::item::key_of(item);
            let parts = fetch(&pk, &prefix)?;
            if number_of(item, COUNT) != Some(parts.len()) {
                return Err(corrupt(item, "has lost parts of its content"));
            }
            for part in &parts {
                packed.extend_from_slice(blob(part).ok_or_else(|| corrupt(part, "has lost its content"))?);
            }
        }
    }
    decompress_to_vec_with_limit(&packed, MAX_BYTES).map_err(|_| corrupt(item, "has content that can't be unpacked"))
}

fn blob(item: &Item) -> Option<&[u8]> {
    item.get(PACKED)?.as_b().ok().map(AsRef::as_ref)
}

/// The payload of an item as text.
pub(crate) fn get_text(
    item: &Item,
    fetch: impl FnOnce(&str, &str) -> Result<Vec<Item>, StoreError>,
) -> Result<String, StoreError> {
    String::from_utf8(get(item, fetch)?).map_err(|_| corrupt(item, "has content that is no text"))
}

/// An attribute for a short text, compressed if it is not that short.
pub(crate) fn attribute(content: &str) -> aws_sdk_dynamodb::types::AttributeValue {
    if content.len() <= COMPRESS_FROM_BYTES {
        text(content)
    } else {
        bytes(compress_to_vec(content.as_bytes(), COMPRESSION_LEVEL))
    }
}

/// Reads the text of an attribute that [`attribute`] made.
pub(crate) fn of_attribute(item: &Item, name: &str) -> Result<String, StoreError> {
    if let Some(plain) = text_of(item, name) {
        return Ok(plain.to_owned());
    }
    let packed = item.get(name).and_then(|value| value.as_b().ok());
    let packed = packed.ok_or_else(|| corrupt(item, &format!("has no `{name}`")))?;
    let unpacked = decompress_to_vec_with_limit(packed.as_ref(), MAX_BYTES).ok();
    unpacked
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| corrupt(item, &format!("has a `{name}` that can't be unpacked")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_come_back_as_they_were() {
        let mut seed = 1u64;
        let noise: Vec<u8> = (0..700_000)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (seed >> 56) as u8
            })
            .collect();
        let cases = [Vec::new(), b"short".to_vec(), vec![0xff; 3], vec![b'x'; 5_000], noise];
        for payload in cases {
            let mut item = keys(&("E#a".to_owned(), "T".to_owned()));
            item.insert(WRITE.to_owned(), text("w1"));
            let parts = put(&mut item, &payload);
            assert_eq!(parts.len(), usize::from(payload.len() > 600_000) * 3);
            let got = get(&item, |pk, prefix| {
                assert_eq!((pk, prefix), ("E#a", "X#w1#"));
                Ok(parts.clone())
            });
            assert_eq!(got.unwrap(), payload);
            if !parts.is_empty() {
                assert!(matches!(get(&item, |_, _| Ok(Vec::new())), Err(StoreError::Corrupt(_))));
            }
        }
    }
}

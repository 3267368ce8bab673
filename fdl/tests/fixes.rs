//! Fixing never changes the meaning of a definition: tested with a few thousand typing mistakes in
//! good definitions.

#![expect(clippy::disallowed_methods, reason = "a test reads its data")]

#[path = "../../tests/src/damage.rs"]
mod damage;

use damage::{Mistake, damaged, fixing_keeps_meaning, meaning};
use starbridge_flow::syntax::Source;
use std::fs;
use std::path::Path;

/// Mistakes made in each definition.
const MISTAKES: usize = 500;

/// Good definitions, in JSON as they are and without blanks, and in YAML.
fn definitions() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for name in [
        "examples/order/flow.json",
        "examples/parcel/flow.json",
        "examples/diamond/flow.json",
        "examples/poll/flow.json",
        "examples/alibaba/flow.yaml",
        "fuzz/flow.json",
    ] {
        let text = fs::read_to_string(root.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        if let Ok(value) = serde_json::from_str::<serde_json::Value>(&text) {
            found.push(Source::new(format!("short {name}"), value.to_string()));
        }
        found.push(Source::new(name, text));
    }
    found
}

#[test]
fn fixes_keep_meaning() {
    let mut seed = 11_u64;
    let mut random = || {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize
    };
    let mut tried = 0;
    for source in definitions() {
        let meant = meaning(&source).unwrap_or_else(|| panic!("{} is not good", source.name()));
        for _ in 0..MISTAKES {
            let mistake = Mistake {
                at: random(),
                kind: random(),
                piece: random(),
            };
            let Some(text) = damaged(source.text(), mistake) else {
                continue;
            };
            fixing_keeps_meaning(source.name(), source.format(), &meant, &text);
            tried += 1;
        }
    }
    assert!(tried > 3_000, "only {tried} mistakes were made");
}

//! The parser's limits, its answers to noise, and its agreement with the engine.

use super::*;
use crate::graph::Root;
use crate::sample::{DATA, Noise, budget, json, on_small_stack};
use jsonpath_rust::JsonPath;

#[test]
fn length_and_nesting_are_bounded() {
    let long = |len: usize| format!("$.{}", "a".repeat(len - 2));
    assert!(Query::parse(&long(MAX_PATH_BYTES)).is_ok());
    assert!(Query::parse(&long(MAX_PATH_BYTES + 1)).is_err());
    assert!(Query::after_root(&format!("$input.{}", "a".repeat(MAX_PATH_BYTES)), 6).is_err());
    let pattern = |len: usize| format!("$[?match(@, '{}')]", "a".repeat(len));
    assert!(Query::parse(&pattern(256)).is_ok());
    assert!(Query::parse(&pattern(257)).is_err());
    let forms: [fn(usize) -> String; 5] = [
        |n| format!("$[?{}", "@[?".repeat(n - 1) + "@.a==1" + &"]".repeat(n)),
        |n| format!("$[?{}@.a==1{}]", "(".repeat(n - 1), ")".repeat(n - 1)),
        |n| format!("$[?{}@.a{}]", "!(".repeat(n - 1), ")".repeat(n - 1)),
        |n| format!("$[?{}@{}==1]", "length(".repeat(n - 1), ")".repeat(n - 1)),
        |n| {
            format!(
                "$[?{}@.a{}]",
                "count(@[?".repeat((n - 1) / 2),
                "])>1".repeat((n - 1) / 2)
            )
        },
    ];
    on_small_stack(move || {
        let mut data = json("{\"a\": 1}");
        for _ in 0..40 {
            data = Value::from(vec![data]);
        }
        for form in forms {
            let deepest = Query::parse(&form(parse::MAX_NESTING)).unwrap_or_else(|error| panic!("{error:?}"));
            deepest.find(Root::from(&data), &budget()).unwrap();
            drop(deepest.clone());
            assert!(Query::parse(&form(parse::MAX_NESTING + 2)).is_err());
            assert!(Query::parse(&form(400)).is_err());
        }
        for text in [
            "[",
            "[?",
            "[?(",
            "[?!(",
            "(",
            "[?@",
            "['",
            "[?length(",
            "..[",
            "[?count(@[?",
        ] {
            let error = Query::parse(&format!("${}", text.repeat(10_000 / text.len())));
            assert!(error.is_err(), "{text}");
            let error = Query::parse(&format!("${}", text.repeat(4_000 / text.len())));
            assert!(error.is_err(), "{text}");
        }
    });
}

/// The parser answers any input, with a place inside the text.
#[test]
fn noise_is_answered() {
    let pieces = [
        "$", ".", "..", "*", "[", "]", "'", "\"", "?", "@", "(", ")", "!", "&&", "||", "==", "<", ",", ":", "0", "-1",
        "12", "a", "é", "\\", "\\u", "d83d", "length(", "count(", "match(", "value(", "search(", " ", "\n", "true",
        "null", "$input", "😀", "1e5", ".5", "\u{1}",
    ];
    let data = json(DATA);
    let mut noise = Noise(7);
    for _ in 0..40_000 {
        let text: String = std::iter::once("$")
            .chain((0..noise.below(14)).map(|_| noise.of(&pieces)))
            .collect();
        match Query::parse(&text) {
            Ok(query) => {
                query.find(Root::from(&data), &budget()).unwrap();
            }
            Err(error) => {
                assert!(
                    text.get(error.offset..error.offset + error.len).is_some(),
                    "{text}: {error:?}"
                );
                assert!(!error.message.is_empty() && !error.message.ends_with('.'));
            }
        }
    }
}

/// For queries that the engine handles correctly, both find the same in the same order.
#[test]
fn agrees_with_the_engine() {
    let segments = [
        ".a",
        ".b",
        "['a']",
        "[0]",
        "[-1]",
        "[*]",
        ".*",
        "..a",
        "..*",
        "..[0]",
        "[0:2]",
        "[::2]",
        "[::-1]",
        "[1:]",
        "['a','b']",
        "[0,-1]",
        "[?@.a]",
        "[?@.a==1]",
        "[?@.b<2]",
        "[?@>0]",
        "[?!@.a]",
        "[?@.a||@.b]",
        "[?@.a&&@.b]",
        "[?@.a!=@.b]",
        "[?@.a<=@.b]",
        "[?length(@.a)>1]",
        "[?length(@)==2]",
        "[?match(@,'x.*')]",
        "[?search(@.a,'y')]",
        "[?@=='xy']",
        "[?@==$.a]",
        "[?(@.a==1||@.b==2)&&@.a]",
    ];
    let mut noise = Noise(3);
    for _ in 0..3_000 {
        let text: String = std::iter::once("$")
            .chain((0..=noise.below(3)).map(|_| noise.of(&segments)))
            .collect();
        let ours = random_value(&mut noise, 4);
        let theirs = serde_json::Value::from(&ours);
        let expected: Vec<Value> = theirs.query(&text).unwrap().into_iter().map(Value::from).collect();
        let query = Query::parse(&text).unwrap();
        let found = match query.find(Root::from(&ours), &budget()).unwrap() {
            _ if ours.depth() == 0 => continue,
            Some(one) if query.is_singular() => vec![one],
            Some(Value::Array(all)) => all.values().to_vec(),
            _ => Vec::new(),
        };
        // The objects of serde_json are sorted, while ours keep their order.
        let sorted = |mut all: Vec<Value>| {
            all.sort_by_key(|value| serde_json::Value::from(value).to_string());
            all
        };
        assert_eq!(sorted(found), sorted(expected), "{text} in {ours}");
    }
}

fn random_value(noise: &mut Noise, depth: usize) -> Value {
    match noise.below(if depth == 0 { 4 } else { 8 }) {
        0 => Value::from(noise.below(3) as u64),
        1 => Value::from(noise.of(&["xy", "yx", "x", ""])),
        2 => Value::Bool(noise.below(2) == 0),
        3 => Value::Null,
        4 | 5 => (0..noise.below(4))
            .map(|_| random_value(noise, depth - 1))
            .collect::<Vec<_>>()
            .into(),
        _ => {
            let names = ["a", "b", "c"];
            let count = noise.below(4);
            names
                .iter()
                .take(count)
                .map(|name| (Text::from(*name), random_value(noise, depth - 1)))
                .collect::<Object>()
                .into()
        }
    }
}

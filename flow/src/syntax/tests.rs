//! Properties of every text, JSON or YAML: parsing ends and never panics, and spans lie within the
//! text.

use super::*;

/// A small random generator with the same numbers in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound.max(1)).unwrap()).unwrap()
    }
}

const JSON: &str = r#"{
  "version": "v1", "type": "flow", "name": "é 星 \ud83d\ude00 \"x\"",
  "steps": [
    {"type": "task", "name": "a", "resourceArn": "http://x/y", "retry": [{"errors": ["A", "B.c"], "multiplier": 1.5e0}]},
    {"type": "choice", "choices": [{"condition": "$.a == 'x\\n' && !($.b[0] < -12)", "goto": "c"}], "default": {}},
    {"type": "wait", "duration": 0, "end": true, "name": null, "x": [[], {}, [false, 18446744073709551616]]}
  ]
}
"#;

const YAML: &str = r#"%YAML 1.2
---
version: v1 # comment
type: flow
base: &base {a: 1, b: [x, "y\u00e9\n", 'it''s', *list]}
list: &list
  - one
  - ? complex
    : value
  - |
    block
      text
  - >-
    folded
    text
steps:
- type: task
  resourceArn: !Ref Service/Function
  <<: *base
  timestamp: 2024-01-01T00:00:00Z
- {type: wait, duration: 0x10, ratio: -1.5e3, none: ~, empty: , 星: 🎵}
...
"#;

const PIECES: [&str; 34] = [
    "{", "}", "[", "]", ":", ",", "\"", "'", "\\", "\\u", "\\ud800", "\n", "\r\n", "\t", " ", "  ", "- ", ": ", "? ",
    "&a ", "*a", "<<: ", "!", "!!int ", "#", "//", "/*", "|\n", "---\n", "%", "1e999", "é", "\u{FEFF}", "\0",
];

fn mutated(text: &str, random: &mut Random) -> String {
    let mut text: Vec<char> = text.chars().collect();
    for _ in 0..=random.below(4) {
        let at = random.below(text.len() + 1);
        match random.below(4) {
            0 => {
                let end = (at + 1 + random.below(3)).min(text.len());
                text.drain(at..end);
            }
            1 => {
                let piece = PIECES[random.below(PIECES.len())];
                text.splice(at..at, piece.chars());
            }
            2 => {
                let end = (at + random.below(40)).min(text.len());
                let copy: Vec<char> = text[at..end].to_vec();
                let to = random.below(text.len() + 1);
                text.splice(to..to, copy);
            }
            _ => text.truncate(at.max(random.below(text.len() + 1))),
        }
    }
    text.into_iter().collect()
}

fn check_span(text: &str, span: Span) {
    assert!(span.start <= span.end, "{span:?} {text:?}");
    assert!(text.get(span.start..span.end).is_some(), "{span:?} {text:?}");
}

fn check_node(text: &str, node: &Node, aliases: bool) {
    check_span(text, node.span);
    for inner in node
        .items()
        .iter()
        .chain(node.members().iter().map(|member| &member.value))
    {
        let within = node.span.start <= inner.span.start && inner.span.end <= node.span.end;
        assert!(within || aliases, "{:?} in {:?} of {text:?}", inner.span, node.span);
        check_node(text, inner, aliases);
    }
    for member in node.members() {
        check_span(text, member.key_span);
    }
}

fn check(source: &Source) -> Parse {
    let (parsed, text) = (parse(source), source.text());
    for found in &parsed.diagnostics {
        check_span(text, found.span);
        found.labels.iter().for_each(|label| check_span(text, label.span));
        found.fix.iter().for_each(|fix| check_span(text, fix.span));
        assert!(
            !found.message.is_empty() && !found.message.ends_with('.'),
            "{}",
            found.message
        );
        assert!(
            !found.message.starts_with(char::is_uppercase) || found.message.starts_with("JSON"),
            "{}",
            found.message
        );
    }
    assert!(parsed.diagnostics.is_sorted_by_key(|found| found.span.start));
    if let Some(root) = &parsed.root {
        check_node(text, root, source.format() == Format::Yaml);
        root.to_value();
    } else {
        assert!(!parsed.diagnostics.is_empty(), "{text:?}");
    }
    parsed
}

#[test]
fn mutated_documents_never_panic_and_spans_lie_in_the_text() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for round in 0..6000 {
        let (name, text) = if round % 2 == 0 {
            ("a.json", JSON)
        } else {
            ("a.yaml", YAML)
        };
        check(&Source::new(name, mutated(text, &mut random)));
    }
}

#[test]
fn what_json_accepts_is_what_serde_accepts() {
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    let (mut good, mut bad) = (0, 0);
    for _ in 0..6000 {
        let text = mutated(JSON, &mut random);
        let parsed = check(&Source::new("a.json", text.as_str()));
        let expected = serde_json::from_str::<Value>(text.strip_prefix('\u{FEFF}').unwrap_or(&text));
        let only_ours = |code| matches!(code, SyntaxCode::DuplicateKey);
        let accepted = parsed.diagnostics.iter().all(|found| only_ours(found.code));
        assert_eq!(accepted, expected.is_ok(), "{text} {:#?}", parsed.diagnostics);
        match expected {
            Ok(expected) if parsed.diagnostics.is_empty() => {
                assert_eq!(parsed.root.unwrap().to_value().to_json(), expected.to_json());
                good += 1;
            }
            Ok(_) => {}
            Err(_) => bad += 1,
        }
    }
    assert!(good > 300 && bad > 3000, "{good} {bad}");
}

#[test]
fn yaml_reads_json_the_same() {
    let json = parse(&Source::new("a.json", JSON));
    let yaml = parse(&Source::new("a.yaml", JSON));
    assert_eq!(json.diagnostics, []);
    assert_eq!(yaml.diagnostics, []);
    assert_eq!(
        json.root.unwrap().to_value().to_json(),
        yaml.root.unwrap().to_value().to_json()
    );
}

/// Texts that try to break parsers.
fn hostile(bytes: usize) -> Vec<String> {
    let pieces = [
        "[",
        "{",
        "[{",
        "]",
        "}",
        "[}",
        "{]",
        "{\"a\":",
        "{\"a\":[",
        "[[],",
        "\"",
        "'",
        "`",
        "“",
        "\"\n",
        "'\n",
        "\"a\"b ",
        "\\",
        ",",
        ":",
        "/*",
        "//",
        "#",
        "-",
        "- ",
        "? ",
        "? - ",
        ": ",
        "a: ",
        "&a ",
        "*a ",
        "&a [",
        "!a ",
        "!!",
        "!",
        "%",
        "|\n",
        ">\n",
        "\t",
        " ",
        "\n",
        "\r",
        "a\n",
        "a:\n ",
        "---\n",
        "...\n",
        "0",
        "1 ",
        "a ",
        "é",
        "\u{FEFF}",
        "\u{A0}",
        "{a: ",
        "{a: [",
        "[a: ",
        "<<: ",
        "'a' ",
        "\"\\u",
        "- - ",
        "{\"a\":1,",
        "[1 ",
    ];
    pieces.iter().map(|piece| piece.repeat(bytes / piece.len())).collect()
}

#[test]
fn hostile_texts_end_on_a_small_stack() {
    let small = std::thread::Builder::new().stack_size(256 * 1024);
    let thread = small.spawn(|| {
        for text in hostile(40_000) {
            for name in ["a.json", "a.yaml"] {
                check_on_small_stack(name, &text);
            }
        }
        for (name, open, close) in [
            ("a.json", "[", "]"),
            ("a.json", "{\"a\":", "}"),
            ("a.yaml", "[", "]"),
            ("a.yaml", "- ", ""),
        ] {
            let nested = format!("{}1{}", open.repeat(MAX_DEPTH), close.repeat(MAX_DEPTH));
            let parsed = check_on_small_stack(name, &nested);
            assert_eq!(parsed.diagnostics, [], "{name} {open}");
        }
        // An alias in a deep place to a deep value.
        let half = MAX_DEPTH / 2 - 1;
        let deep = format!(
            "[&a {}{}, {}*a{}]",
            "[".repeat(half),
            "]".repeat(half),
            "[".repeat(half),
            "]".repeat(half)
        );
        assert_eq!(check_on_small_stack("a.yaml", &deep).diagnostics, []);
    });
    thread.unwrap().join().unwrap();
}

fn check_on_small_stack(name: &str, text: &str) -> Parse {
    let parsed = parse(&Source::new(name, text));
    let copy = parsed.clone();
    copy.root.iter().for_each(|root| {
        root.to_value();
    });
    parsed
}

#[test]
fn a_text_too_large_or_in_utf_16_is_not_looked_at() {
    let large = format!("[{}1]", " ".repeat(1024 * 1024));
    let found = check(&Source::new("a.json", large.as_str())).diagnostics;
    assert_eq!((found.len(), found[0].code), (1, SyntaxCode::TooLarge));
    assert_eq!(
        parse_within(&Source::new("a.json", large), 2 * 1024 * 1024).diagnostics,
        []
    );
    for name in ["a.json", "a.yaml"] {
        let found = check(&Source::new(name, "{\0\"\0a\0\"\0:\0[\0]\0}\0")).diagnostics;
        assert_eq!((found.len(), found[0].code), (1, SyntaxCode::Encoding));
    }
}

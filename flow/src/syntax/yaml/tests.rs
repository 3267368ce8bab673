//! The results of reading YAML, and the messages for text that is not YAML.

use crate::diagnostics::{Diagnostic, Severity};
use crate::syntax::code::SyntaxCode;
use crate::syntax::{MAX_DEPTH, Node, Parse, Source, find, parse};

fn read(text: &str) -> Parse {
    parse(&Source::new("a.yaml", text))
}

fn tree(parsed: &Parse) -> String {
    parsed
        .root
        .as_ref()
        .map_or_else(String::new, |root| root.to_value().to_json())
}

fn at<'a>(text: &'a str, root: &Node, pointer: &str) -> &'a str {
    let span = find(root, pointer).unwrap().span;
    &text[span.start..span.end]
}

fn fixed(text: &str, diagnostic: &Diagnostic<SyntaxCode>) -> Option<String> {
    let fix = diagnostic.fix.as_ref()?;
    let mut text = text.to_owned();
    text.replace_range(fix.span.start..fix.span.end, &fix.replacement);
    Some(text)
}

#[test]
fn scalars_follow_the_core_schema() {
    for (text, json) in [
        ("null", "null"),
        ("~", "null"),
        ("[~, Null, NULL, nULL]", r#"[null,null,null,"nULL"]"#),
        (
            "[true, True, FALSE, yes, no, on, off, y]",
            r#"[true,true,false,"yes","no","on","off","y"]"#,
        ),
        (
            "[1, -2, +3, 007, 0x1F, 0o17, 0b1, 1_000]",
            r#"[1,-2,3,7,31,15,"0b1","1_000"]"#,
        ),
        (
            "[1.5, -.5, 5., 1e3, 1.e2, 12e, .]",
            r#"[1.5,-0.5,5.0,1000.0,100.0,"12e","."]"#,
        ),
        (
            "[18446744073709551615, 18446744073709551616]",
            "[18446744073709551615,1.8446744073709552e+19]",
        ),
        (
            "[2024-01-01, 2024-01-01T00:00:00Z, 12:30:45]",
            r#"["2024-01-01","2024-01-01T00:00:00Z","12:30:45"]"#,
        ),
        ("['1', \"true\", '', \"\"]", r#"["1","true","",""]"#),
        (
            "[! 1, !!str 1, !!str null, !!int \"7\", !!float 2, !!bool 'true', !!null '']",
            r#"["1","1","null",7,2.0,true,null]"#,
        ),
        (
            "a: |\n  x\n   y\nb: >\n  z\n  w\nc: |+\n  k\n\n",
            r#"{"a":"x\n y\n","b":"z w\n","c":"k\n\n"}"#,
        ),
        ("a:\nb: \n- 1\n", r#"{"a":null,"b":[1]}"#),
        ("? a\n: b\n", r#"{"a":"b"}"#),
        ("{a, b: }", r#"{"a":null,"b":null}"#),
        ("a: &x 1\nb: [*x, *x]", r#"{"a":1,"b":[1,1]}"#),
        ("&k a: 1\nb: *k", r#"{"a":1,"b":"a"}"#),
        ("b: &k a\n*k : 1", r#"{"b":"a","a":1}"#),
        ("--- # x\na: 1\n...\n", r#"{"a":1}"#),
        ("\u{FEFF}a: 1", r#"{"a":1}"#),
        (
            "condition: $.a == \"b\" && $.c[0] > 1",
            r#"{"condition":"$.a == \"b\" && $.c[0] > 1"}"#,
        ),
    ] {
        let parsed = read(text);
        assert_eq!(parsed.diagnostics, [], "{text}");
        assert_eq!(tree(&parsed), json, "{text}");
    }
}

#[test]
fn spans_hold_the_text_of_each_value() {
    let text = "é: ü\nb:\n  - x y\n  - c: \"d\\n\"\n    e: [1, {f: 'g'}]\n\n# z\nt: |\n  one\n  two\n\ns: &a !!str 12 # c\nu: *a\nn:\n";
    let parsed = read(text);
    assert_eq!(parsed.diagnostics, []);
    let root = parsed.root.unwrap();
    for (pointer, expected) in [
        ("/é", "ü"),
        ("/b", "- x y\n  - c: \"d\\n\"\n    e: [1, {f: 'g'}]"),
        ("/b/0", "x y"),
        ("/b/1", "c: \"d\\n\"\n    e: [1, {f: 'g'}]"),
        ("/b/1/c", "\"d\\n\""),
        ("/b/1/e", "[1, {f: 'g'}]"),
        ("/b/1/e/1", "{f: 'g'}"),
        ("/b/1/e/1/f", "'g'"),
        ("/t", "|\n  one\n  two"),
        ("/s", "12"),
        ("/u", "*a"),
        ("/n", ""),
    ] {
        assert_eq!(at(text, &root, pointer), expected, "{pointer}");
    }
    let key = root.member("é").unwrap().key_span;
    assert_eq!(&text[key.start..key.end], "é");
}

/// Texts with one problem: the tree, the code, the pointer, the text at its place, and the fixed
/// text (empty: no mechanical fix).
const ONE_PROBLEM: &[(&str, &str, SyntaxCode, &str, &str, &str)] = &[
    ("", "", SyntaxCode::Empty, "", "", ""),
    ("# x\n", "", SyntaxCode::Empty, "", "", ""),
    ("---\n", "", SyntaxCode::Empty, "", "", ""),
    (
        "a: 1\n---\nb: 2",
        r#"{"a":1}"#,
        SyntaxCode::YamlDocuments,
        "",
        "---",
        "",
    ),
    ("a: .inf", r#"{"a":null}"#, SyntaxCode::NumberRange, "/a", ".inf", ""),
    ("a: -.INF", r#"{"a":null}"#, SyntaxCode::NumberRange, "/a", "-.INF", ""),
    (
        "a: [.nan]",
        r#"{"a":[null]}"#,
        SyntaxCode::NumberRange,
        "/a/0",
        ".nan",
        "",
    ),
    (
        "a: 1e999",
        r#"{"a":1.7976931348623157e+308}"#,
        SyntaxCode::NumberRange,
        "/a",
        "1e999",
        "",
    ),
    (
        "a: !Ref Service/Function",
        r#"{"a":"Service/Function"}"#,
        SyntaxCode::YamlTag,
        "/a",
        "!Ref",
        "",
    ),
    ("a: !Foo 12", r#"{"a":"12"}"#, SyntaxCode::YamlTag, "/a", "!Foo", ""),
    ("a: !Sub", r#"{"a":""}"#, SyntaxCode::YamlTag, "/a", "!Sub", ""),
    ("a: !Foo [1]", r#"{"a":[1]}"#, SyntaxCode::YamlTag, "/a", "!Foo", ""),
    (
        "a: !Foo\n  b: 1",
        r#"{"a":{"b":1}}"#,
        SyntaxCode::YamlTag,
        "/a",
        "!Foo",
        "",
    ),
    (
        "a: !!binary aGk=",
        r#"{"a":"aGk="}"#,
        SyntaxCode::YamlTag,
        "/a",
        "!!binary",
        "",
    ),
    (
        "c: !($.a == 1)",
        r#"{"c":"!($.a == 1)"}"#,
        SyntaxCode::YamlTag,
        "/c",
        "!($.a",
        "c: \"!($.a == 1)\"",
    ),
    (
        "c: !$.a == \"x\"",
        r#"{"c":"!$.a == \"x\""}"#,
        SyntaxCode::YamlTag,
        "/c",
        "!$.a",
        "c: '!$.a == \"x\"'",
    ),
    ("a: !!int x", r#"{"a":"x"}"#, SyntaxCode::Yaml, "/a", "x", ""),
    ("a: !!seq {}", r#"{"a":{}}"#, SyntaxCode::Yaml, "/a", "!!seq", ""),
    (
        "a: 1\nb: 2\na: 3",
        r#"{"a":1,"b":2}"#,
        SyntaxCode::DuplicateKey,
        "/a",
        "a",
        "",
    ),
    (
        "- {b/c: 1, b/c: 2}",
        r#"[{"b/c":1}]"#,
        SyntaxCode::DuplicateKey,
        "/0/b~1c",
        "b/c",
        "",
    ),
    ("1: a", r#"{"1":"a"}"#, SyntaxCode::YamlKey, "", "1", "\"1\": a"),
    (
        "x:\n  true: a",
        r#"{"x":{"true":"a"}}"#,
        SyntaxCode::YamlKey,
        "/x",
        "true",
        "x:\n  \"true\": a",
    ),
    ("? [a]\n: b", "{}", SyntaxCode::YamlKey, "", "[a]", ""),
    ("? {a: 1}\n: b", "{}", SyntaxCode::YamlKey, "", "{a: 1}", ""),
    (": b", "{}", SyntaxCode::YamlKey, "", "", ""),
    ("a: *no", r#"{"a":null}"#, SyntaxCode::YamlAlias, "/a", "*no", ""),
    ("a: &a [*a]", r#"{"a":[null]}"#, SyntaxCode::YamlAlias, "/a/0", "*a", ""),
    (
        "a: &a {b: {c: *a}}",
        r#"{"a":{"b":{"c":null}}}"#,
        SyntaxCode::YamlAlias,
        "/a/b/c",
        "*a",
        "",
    ),
    ("a: {<<: 12}", r#"{"a":{}}"#, SyntaxCode::Yaml, "/a", "12", ""),
    ("a: b: c", r#"{"a":"b"}"#, SyntaxCode::Yaml, "", ":", "a: \"b: c\""),
    (
        "- d: say: \"x\"",
        r#"[{"d":"say"}]"#,
        SyntaxCode::Yaml,
        "/0",
        ":",
        "- d: 'say: \"x\"'",
    ),
    ("a: @x", "{}", SyntaxCode::Yaml, "/a", "@", "a: \"@x\""),
    ("a: %x", "{}", SyntaxCode::Yaml, "/a", "%", "a: \"%x\""),
    ("a: `x`", "{}", SyntaxCode::Yaml, "/a", "`", "a: \"`x`\""),
    ("a: \"x\" == y", "{}", SyntaxCode::Yaml, "/a", "=", "a: '\"x\" == y'"),
    ("a:\n\tb: 1", "{}", SyntaxCode::Yaml, "/a", "b", "a:\n  b: 1"),
    ("a: [1", r#"{"a":[]}"#, SyntaxCode::Yaml, "/a/0", "[", ""),
    ("a: \"x", "{}", SyntaxCode::Yaml, "/a", "\"", ""),
    ("a: [1}", r#"{"a":[]}"#, SyntaxCode::Yaml, "/a/0", "[", ""),
    ("}", "", SyntaxCode::Yaml, "", "}", ""),
    ("a:\n  - 1\n - 2", r#"{"a":[1]}"#, SyntaxCode::Yaml, "", "-", ""),
    ("a: 1\n b: 2", r#"{"a":"1 b"}"#, SyntaxCode::Yaml, "", ":", "a: 1\nb: 2"),
    ("a: - b", "{}", SyntaxCode::Yaml, "/a", "-", ""),
    ("a: x\nb\nc: d", r#"{"a":"x"}"#, SyntaxCode::Yaml, "", "b", ""),
    (
        "a: 1\nb: \u{FEFF}2",
        r#"{"a":1}"#,
        SyntaxCode::Encoding,
        "/b",
        "\u{FEFF}",
        "",
    ),
];

#[test]
fn each_problem_is_one_diagnostic_and_what_could_be_read_is_a_tree() {
    for &(text, value, code, pointer, place, mended) in ONE_PROBLEM {
        let parsed = read(text);
        let [found] = parsed.diagnostics.as_slice() else {
            panic!("{text}: {:#?}", parsed.diagnostics);
        };
        assert_eq!((found.code, found.pointer.as_str()), (code, pointer), "{text}");
        assert_eq!(&text[found.span.start..found.span.end], place, "{text}");
        assert_eq!(tree(&parsed), value, "{text}");
        assert_eq!(found.severity == Severity::Warning, code == SyntaxCode::YamlTag);
        assert_eq!(fixed(text, found).unwrap_or_default(), mended, "{text}");
        if !mended.is_empty() {
            assert_eq!(read(mended).diagnostics, [], "{text}");
        }
        if code == SyntaxCode::Yaml {
            let said = &found.message;
            assert!(
                !said.starts_with("not YAML") && !said.contains("while"),
                "{text}: {said}"
            );
        }
    }
}

#[test]
fn problems_that_do_not_break_the_text_are_all_shown() {
    let parsed = read("a: !X y\n1: .inf\na: *b\nc: {d: 1, d: 2}\n");
    let codes: Vec<SyntaxCode> = parsed.diagnostics.iter().map(|found| found.code).collect();
    assert_eq!(
        codes,
        [
            SyntaxCode::YamlTag,
            SyntaxCode::YamlKey,
            SyntaxCode::NumberRange,
            SyntaxCode::DuplicateKey,
            SyntaxCode::YamlAlias,
            SyntaxCode::DuplicateKey
        ]
    );
    assert!(!parsed.truncated);
    assert!(read("a: [").truncated);
    assert!(read("a: 1\n---\nb: 1").truncated);
}

#[test]
fn merge_keys_bring_members_in() {
    for (text, json) in [
        (
            "b: &b {x: 1, y: 2}\nd: {y: 3, <<: *b}",
            r#"{"b":{"x":1,"y":2},"d":{"x":1,"y":3}}"#,
        ),
        (
            "d:\n  <<: [{x: 1}, {x: 2, y: 2}]\n  z: 3",
            r#"{"d":{"x":1,"y":2,"z":3}}"#,
        ),
        ("d:\n  <<: {x: 1}\n  <<: {y: 2}", r#"{"d":{"x":1,"y":2}}"#),
        ("d: {\"<<\": 1}", r#"{"d":{"<<":1}}"#),
        ("d: [<<]", r#"{"d":["<<"]}"#),
    ] {
        let parsed = read(text);
        assert_eq!(parsed.diagnostics, [], "{text}");
        assert_eq!(tree(&parsed), json, "{text}");
    }
}

#[test]
fn what_aliases_bring_in_is_bounded() {
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..30 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        laughs.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    let parsed = read(&laughs);
    let codes: Vec<SyntaxCode> = parsed.diagnostics.iter().map(|found| found.code).collect();
    assert_eq!(codes, [SyntaxCode::YamlAlias]);
    let long = format!("a: &a {}\nb: [{}]", "x".repeat(100_000), "*a, ".repeat(1000));
    assert_eq!(read(&long).diagnostics.len(), 1);
    let merges = format!("a: &a {{{}}}\n{}", "k: &k v, ".replace("&k ", ""), "b: {<<: *a}\n");
    assert_eq!(read(&merges).diagnostics, []);
    let deep = MAX_DEPTH - 10;
    let nested = format!(
        "[&a {}{}, {}*a{}]",
        "[".repeat(deep),
        "]".repeat(deep),
        "[".repeat(20),
        "]".repeat(20)
    );
    let codes: Vec<SyntaxCode> = read(&nested).diagnostics.iter().map(|found| found.code).collect();
    assert_eq!(codes, [SyntaxCode::NestedTooDeep]);
}

#[test]
fn collections_nest_to_the_limit_and_no_deeper() {
    let flow = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let block = |levels: usize| format!("{}1", "- ".repeat(levels));
    let both = |levels: usize| format!("{}{}", "- ".repeat(levels / 2), flow(levels - levels / 2));
    for nested in [&flow as &dyn Fn(usize) -> String, &block, &both] {
        assert_eq!(read(&nested(MAX_DEPTH)).diagnostics, []);
        let codes: Vec<SyntaxCode> = read(&nested(MAX_DEPTH + 1))
            .diagnostics
            .iter()
            .map(|found| found.code)
            .collect();
        assert_eq!(codes, [SyntaxCode::NestedTooDeep]);
    }
}

/// One fix corrects all lines: the reader stops at the first, so the others would be reported one
/// by one.
#[test]
fn tabs_are_mended_in_all_lines() {
    for (text, mended) in [
        ("a:\n\tb: 1\n\tc: 2\n", "a:\n  b: 1\n  c: 2\n"),
        ("a:\n\t- b: 1\n\t  c: 2\n\n\t- d\n", "a:\n  - b: 1\n    c: 2\n\n  - d\n"),
        (
            "a:\n  - b: 1\n  \tc: 2\n  \td: 3\ne: 4\n",
            "a:\n  - b: 1\n    c: 2\n    d: 3\ne: 4\n",
        ),
        (
            "a:\n\tb:\n\t\tc: 1\nd:\n\te: \"\t\"\n",
            "a:\n  b:\n    c: 1\nd:\n  e: \"\t\"\n",
        ),
        (
            "a:\r\n\tb: 1\r\n\tc: |\r\n\t\tx\r\n",
            "a:\r\n  b: 1\r\n  c: |\r\n    x\r\n",
        ),
        // A tab after the blanks of a block is part of its text.
        ("a:\n\tb: 1\nc: |\n  \tx\n", "a:\n  b: 1\nc: |\n  \tx\n"),
    ] {
        let parsed = read(text);
        let found = &parsed.diagnostics[0];
        assert_eq!(fixed(text, found).unwrap_or_default(), mended, "{text}");
        assert_eq!(read(mended).diagnostics, [], "{mended}");
    }
}

#[test]
fn a_second_document_has_a_beginning() {
    for text in ["[runtime]\nowners: 1\n", "%YAML 1.2\na: 1\n"] {
        let parsed = read(text);
        let said = parsed.diagnostics.iter().map(|found| found.message.as_str());
        assert_eq!(said.collect::<Vec<_>>(), ["a `---` is missing before this"], "{text}");
    }
}

//! The results of reading JSON, and the messages for text that is almost JSON.

use crate::diagnostics::Diagnostic;
use crate::syntax::code::SyntaxCode;
use crate::syntax::{MAX_DEPTH, Parse, Source, parse};
use crate::value::Value;

fn read(text: &str) -> Parse {
    parse(&Source::new("a.json", text))
}

fn tree(parsed: &Parse) -> String {
    parsed
        .root
        .as_ref()
        .map_or_else(String::new, |root| root.to_value().to_json())
}

fn fixed(text: &str, diagnostic: &Diagnostic<SyntaxCode>) -> Option<String> {
    let fix = diagnostic.fix.as_ref()?;
    let mut text = text.to_owned();
    text.replace_range(fix.span.start..fix.span.end, &fix.replacement);
    Some(text)
}

#[test]
fn what_is_json_is_read_as_serde_reads_it() {
    for text in [
        "null",
        " true\r\n",
        "-0",
        "-0.0",
        "0",
        "[]",
        "{}",
        "[ ]",
        "[[],{},[{}]]",
        r#"{"a":1,"b":{"c":[true,false,null,-1.5e-3]},"":"x"}"#,
        r#""\"\\\/\b\f\n\r\t\u0000\u00e9\ud83d\ude00""#,
        "\"é星🎵\u{7f}\u{2028}\u{FEFF}\"",
        "[18446744073709551615,18446744073709551616,-9223372036854775808,-9223372036854775809,1e-999]",
        "[0.1,123456789012345678901234567890.5,1.7976931348623157e308]",
    ] {
        let parsed = read(text);
        assert_eq!(parsed.diagnostics, [], "{text}");
        assert!(!parsed.truncated);
        let expected: Value = serde_json::from_str(text).unwrap();
        assert_eq!(tree(&parsed), expected.to_json(), "{text}");
    }
    assert_eq!(tree(&read("\u{FEFF}{\"a\":1}")), r#"{"a":1}"#);
}

#[test]
fn spans_hold_the_text_of_each_value() {
    let text = r#" { "a" : [ 1.5, "é" ] , "b":{} } "#;
    let root = read(text).root.unwrap();
    let of = |span: crate::syntax::Span| &text[span.start..span.end];
    assert_eq!(of(root.span), text.trim());
    let [a, b] = root.members() else { panic!() };
    assert_eq!((of(a.key_span), of(a.value.span)), (r#""a""#, r#"[ 1.5, "é" ]"#));
    assert_eq!((of(b.key_span), of(b.value.span)), (r#""b""#, "{}"));
    assert_eq!(of(a.value.items()[0].span), "1.5");
    assert_eq!(of(a.value.items()[1].span), r#""é""#);
}

/// Texts with one problem: the tree, the code, the pointer, the text at its place, and the fixed
/// text (empty: no mechanical fix).
const ONE_PROBLEM: &[(&str, &str, SyntaxCode, &str, &str, &str)] = &[
    (
        r#"{"a":1,}"#,
        r#"{"a":1}"#,
        SyntaxCode::TrailingComma,
        "",
        ",",
        r#"{"a":1}"#,
    ),
    ("[1,2,]", "[1,2]", SyntaxCode::TrailingComma, "", ",", "[1,2]"),
    (
        r#"{"b":[{"a":1,}]}"#,
        r#"{"b":[{"a":1}]}"#,
        SyntaxCode::TrailingComma,
        "/b/0",
        ",",
        r#"{"b":[{"a":1}]}"#,
    ),
    (
        r#"{"a":1 "b":2}"#,
        r#"{"a":1,"b":2}"#,
        SyntaxCode::Syntax,
        "/b",
        "",
        r#"{"a":1, "b":2}"#,
    ),
    ("[1 2]", "[1,2]", SyntaxCode::Syntax, "", "", "[1, 2]"),
    (
        r#"["a" "b"]"#,
        r#"["a","b"]"#,
        SyntaxCode::Syntax,
        "",
        "",
        r#"["a", "b"]"#,
    ),
    ("[1,,2]", "[1,2]", SyntaxCode::Syntax, "/1", ",", "[1,2]"),
    ("[,1]", "[1]", SyntaxCode::Syntax, "/0", ",", "[1]"),
    ("{'a':1}", r#"{"a":1}"#, SyntaxCode::Syntax, "", "'a'", r#"{"a":1}"#),
    (
        r#"['it\'s "x"']"#,
        r#"["it's \"x\""]"#,
        SyntaxCode::Syntax,
        "/0",
        r#"'it\'s "x"'"#,
        r#"["it's \"x\""]"#,
    ),
    ("{“a”:1}", r#"{"a":1}"#, SyntaxCode::Syntax, "", "“a”", r#"{"a":1}"#),
    ("{a:1}", r#"{"a":1}"#, SyntaxCode::Syntax, "", "a", r#"{"a":1}"#),
    (
        "[$input.x-y]",
        r#"["$input.x-y"]"#,
        SyntaxCode::Syntax,
        "/0",
        "$input.x-y",
        r#"["$input.x-y"]"#,
    ),
    ("[True]", "[true]", SyntaxCode::Syntax, "/0", "True", "[true]"),
    ("[None]", "[null]", SyntaxCode::Syntax, "/0", "None", "[null]"),
    ("[NaN]", "[null]", SyntaxCode::NumberRange, "/0", "NaN", ""),
    ("[-Infinity]", "[null]", SyntaxCode::NumberRange, "/0", "-Infinity", ""),
    (
        "[-1e999]",
        "[-1.7976931348623157e+308]",
        SyntaxCode::NumberRange,
        "/0",
        "-1e999",
        "",
    ),
    ("[01]", "[1]", SyntaxCode::Syntax, "/0", "01", "[1]"),
    ("[+.5]", "[0.5]", SyntaxCode::Syntax, "/0", "+.5", "[0.5]"),
    ("[0xff]", "[255]", SyntaxCode::Syntax, "/0", "0xff", "[255]"),
    ("[1.2.3]", r#"["1.2.3"]"#, SyntaxCode::Syntax, "/0", "1.2.3", ""),
    ("{1:2}", r#"{"1":2}"#, SyntaxCode::Syntax, "/1", "1", r#"{"1":2}"#),
    (r#"{"a" 1}"#, r#"{"a":1}"#, SyntaxCode::Syntax, "", "", r#"{"a": 1}"#),
    (r#"{"a"=1}"#, r#"{"a":1}"#, SyntaxCode::Syntax, "/a", "=", r#"{"a":1}"#),
    (
        r#"{"a"=>1}"#,
        r#"{"a":1}"#,
        SyntaxCode::Syntax,
        "/a",
        "=>",
        r#"{"a":1}"#,
    ),
    (r#"{"a"::1}"#, r#"{"a":1}"#, SyntaxCode::Syntax, "/a", ":", r#"{"a":1}"#),
    (
        r#"{"a":1;"b":2}"#,
        r#"{"a":1,"b":2}"#,
        SyntaxCode::Syntax,
        "",
        ";",
        r#"{"a":1,"b":2}"#,
    ),
    (r#"{"a":}"#, r#"{"a":null}"#, SyntaxCode::Syntax, "/a", "}", ""),
    (r#"{"a"}"#, r#"{"a":null}"#, SyntaxCode::Syntax, "/a", "}", ""),
    (
        r#"{"a":,"b":1}"#,
        r#"{"a":null,"b":1}"#,
        SyntaxCode::Syntax,
        "/a",
        ",",
        "",
    ),
    (r#"{"a":1:2}"#, r#"{"a":1}"#, SyntaxCode::Syntax, "", ":", ""),
    ("{:1}", "{}", SyntaxCode::Syntax, "", ":", ""),
    ("[1:2]", "[1,2]", SyntaxCode::Syntax, "", ":", ""),
    (r#"{{"a":1}}"#, "{}", SyntaxCode::Syntax, "", "{", ""),
    (
        r#"{"a":[1,2}"#,
        r#"{"a":[1,2]}"#,
        SyntaxCode::Syntax,
        "/a",
        "",
        r#"{"a":[1,2]}"#,
    ),
    (
        r#"{"a":[1,2,}"#,
        r#"{"a":[1,2]}"#,
        SyntaxCode::Syntax,
        "/a/2",
        "",
        r#"{"a":[1,2]}"#,
    ),
    (
        r#"[{"a":1},{"b":2]"#,
        r#"[{"a":1},{"b":2}]"#,
        SyntaxCode::Syntax,
        "/1",
        "",
        r#"[{"a":1},{"b":2}]"#,
    ),
    (
        r#"{"s":[{"a":1, {"b":2}]}"#,
        r#"{"s":[{"a":1},{"b":2}]}"#,
        SyntaxCode::Syntax,
        "/s/0",
        "",
        r#"{"s":[{"a":1}, {"b":2}]}"#,
    ),
    (
        r#"{"s":[{"a":1 {"b":2}]}"#,
        r#"{"s":[{"a":1},{"b":2}]}"#,
        SyntaxCode::Syntax,
        "/s/0",
        "",
        r#"{"s":[{"a":1}, {"b":2}]}"#,
    ),
    (
        r#"{"a":[1},"b":2}"#,
        r#"{"a":[1],"b":2}"#,
        SyntaxCode::Syntax,
        "/a",
        "}",
        r#"{"a":[1],"b":2}"#,
    ),
    ("[[1},2]", "[[1],2]", SyntaxCode::Syntax, "/0", "}", "[[1],2]"),
    (
        r#"{"a":1],"b":2}"#,
        r#"{"a":1,"b":2}"#,
        SyntaxCode::Syntax,
        "",
        "]",
        r#"{"a":1,"b":2}"#,
    ),
    (r#"{"a":1]"#, r#"{"a":1}"#, SyntaxCode::Syntax, "", "]", r#"{"a":1}"#),
    ("{}}", "{}", SyntaxCode::Syntax, "", "}", "{}"),
    ("{} {}", "{}", SyntaxCode::Syntax, "", "{}", ""),
    (
        r#"{"a":[{"b":1"#,
        r#"{"a":[{"b":1}]}"#,
        SyntaxCode::Syntax,
        "/a/0",
        "",
        r#"{"a":[{"b":1}]}"#,
    ),
    (r#"{"a":1, "#, r#"{"a":1}"#, SyntaxCode::Syntax, "", "", r#"{"a":1} "#),
    (r#"{"a": "#, r#"{"a":null}"#, SyntaxCode::Syntax, "/a", "", ""),
    (r#"{"a""#, r#"{"a":null}"#, SyntaxCode::Syntax, "/a", "", ""),
    ("[1]// x", "[1]", SyntaxCode::Comment, "", "// x", "[1]"),
    ("# x\n[1]", "[1]", SyntaxCode::Comment, "", "# x", "\n[1]"),
    ("[1/* ] */]", "[1]", SyntaxCode::Comment, "", "/* ] */", "[1 ]"),
    ("[1]/* x", "[1]", SyntaxCode::Comment, "", "/*", ""),
    (
        r#"{"a":1,"a":2}"#,
        r#"{"a":1}"#,
        SyntaxCode::DuplicateKey,
        "/a",
        r#""a""#,
        "",
    ),
    (
        r#"[{"x/y":1,"x/y":2}]"#,
        r#"[{"x/y":1}]"#,
        SyntaxCode::DuplicateKey,
        "/0/x~1y",
        r#""x/y""#,
        "",
    ),
    (
        "{\"a\":\"x,\n\"b\":1}",
        r#"{"a":"x","b":1}"#,
        SyntaxCode::Syntax,
        "/a",
        "\"x",
        "{\"a\":\"x\",\n\"b\":1}",
    ),
    (
        "{\"a\":\"x\r\n\ty\"}",
        r#"{"a":"x\r\n\ty"}"#,
        SyntaxCode::Syntax,
        "/a",
        "\r",
        r#"{"a":"x\n\ty"}"#,
    ),
    (
        "[\"a\tb\"]",
        r#"["a\tb"]"#,
        SyntaxCode::Syntax,
        "/0",
        "\t",
        r#"["a\tb"]"#,
    ),
    (
        "[\"\u{1}\"]",
        r#"["\u0001"]"#,
        SyntaxCode::Syntax,
        "/0",
        "\u{1}",
        r#"["\u0001"]"#,
    ),
    (
        r#"["he said "yes" to me"]"#,
        r#"["he said \"yes\" to me"]"#,
        SyntaxCode::Syntax,
        "/0",
        "\"",
        r#"["he said \"yes\" to me"]"#,
    ),
    (
        r#"{"condition": "$.state == "open"", "goto": "z"}"#,
        r#"{"condition":"$.state == \"open\"","goto":"z"}"#,
        SyntaxCode::Syntax,
        "/condition",
        "\"",
        r#"{"condition": "$.state == \"open\"", "goto": "z"}"#,
    ),
    (r#"["\x"]"#, r#"["x"]"#, SyntaxCode::Syntax, "/0", r"\x", r#"["\\x"]"#),
    (r#"["\u12"]"#, "[\"\u{FFFD}12\"]", SyntaxCode::Syntax, "/0", r"\u", ""),
    (
        r#"["\u+123"]"#,
        "[\"\u{FFFD}+123\"]",
        SyntaxCode::Syntax,
        "/0",
        r"\u",
        "",
    ),
    (
        r#"["\ud800"]"#,
        "[\"\u{FFFD}\"]",
        SyntaxCode::Syntax,
        "/0",
        r"\ud800",
        "",
    ),
    (
        r#"["\ud800\u0041"]"#,
        "[\"\u{FFFD}A\"]",
        SyntaxCode::Syntax,
        "/0",
        r"\ud800",
        "",
    ),
    (
        r#"["\udc00"]"#,
        "[\"\u{FFFD}\"]",
        SyntaxCode::Syntax,
        "/0",
        r"\udc00",
        "",
    ),
    ("[\u{A0}1]", "[1]", SyntaxCode::Syntax, "/0", "\u{A0}", "[ 1]"),
    ("[\u{FEFF}1]", "[1]", SyntaxCode::Encoding, "/0", "\u{FEFF}", "[1]"),
    ("[\u{FFFD}1]", "[1]", SyntaxCode::Encoding, "/0", "\u{FFFD}", ""),
    ("[1 @@ ]", "[1]", SyntaxCode::Syntax, "", "@@", ""),
    ("@", "", SyntaxCode::Syntax, "", "@", ""),
    ("]", "", SyntaxCode::Syntax, "", "]", ""),
    (" \n", "", SyntaxCode::Empty, "", "", ""),
];

#[test]
fn each_problem_is_one_diagnostic_and_the_tree_is_built() {
    for &(text, value, code, pointer, at, mended) in ONE_PROBLEM {
        let parsed = read(text);
        let [found] = parsed.diagnostics.as_slice() else {
            panic!("{text}: {:#?}", parsed.diagnostics);
        };
        assert_eq!((found.code, found.pointer.as_str()), (code, pointer), "{text}");
        assert_eq!(&text[found.span.start..found.span.end], at, "{text}");
        assert_eq!(tree(&parsed), value, "{text}");
        assert_eq!(fixed(text, found).unwrap_or_default(), mended, "{text}");
        if !mended.is_empty() {
            assert_eq!(read(mended).diagnostics, [], "{text}");
        }
        assert!(
            serde_json::from_str::<serde_json::Value>(text).is_err() || code == SyntaxCode::DuplicateKey,
            "{text}"
        );
    }
}

#[test]
fn one_run_shows_all_problems_and_the_fixes_mend_them_one_after_the_other() {
    let mut text = r#"// flow
{
  type: 'flow',
  "version": "v1"
  "steps": [
    {"type": "pass", "name": "a",},
    {"type": "pass", "name": "b"
    {"end": True, "n": 01},
  ]
"#
    .to_owned();
    let parsed = read(&text);
    assert_eq!(
        tree(&parsed),
        concat!(
            r#"{"type":"flow","version":"v1","steps":[{"type":"pass","name":"a"},"#,
            r#"{"type":"pass","name":"b"},{"end":true,"n":1}]}"#
        )
    );
    let lines: Vec<usize> = parsed
        .diagnostics
        .iter()
        .map(|found| Source::new("", text.as_str()).line_column(found.span.start).line)
        .collect();
    assert_eq!(lines, [1, 3, 3, 4, 6, 7, 8, 8, 8, 9]);
    for left in (0..lines.len()).rev() {
        let found = read(&text).diagnostics;
        text = fixed(&text, &found[0]).unwrap();
        assert_eq!(read(&text).diagnostics.len(), left, "{text}");
    }
    assert_eq!(tree(&read(&text)), tree(&parsed));
}

#[test]
fn a_text_that_ends_too_early_is_truncated() {
    for text in [r#"{"a":[1"#, "{} {}", r#"{"a":1}, "b":2}"#] {
        assert!(read(text).truncated, "{text}");
    }
    assert!(!read(r#"{"a":1,}"#).truncated);
    let many = format!("{}1", "[".repeat(100));
    let found = read(&many).diagnostics;
    assert_eq!((found.len(), found[0].labels.len()), (1, 8));
    assert_eq!(read(&fixed(&many, &found[0]).unwrap()).diagnostics, []);
}

#[test]
fn containers_nest_to_the_limit_and_no_deeper() {
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}"), (r#"[{"a":"#, "}]")] {
        let levels = MAX_DEPTH / if open.len() > 5 { 2 } else { 1 };
        let nested = |levels: usize| format!("{}1{}", open.repeat(levels), close.repeat(levels));
        assert_eq!(read(&nested(levels)).diagnostics, []);
        let parsed = read(&nested(levels + 1));
        let codes: Vec<SyntaxCode> = parsed.diagnostics.iter().map(|found| found.code).collect();
        assert_eq!(codes, [SyntaxCode::NestedTooDeep], "{open}");
        assert!(!parsed.truncated);
    }
    let parsed = read(&format!(
        "{{\"a\":{}\"]\"{},\"b\":1}}",
        "[".repeat(600),
        "]".repeat(600)
    ));
    assert_eq!(parsed.diagnostics.len(), 1);
    assert_eq!(parsed.root.unwrap().members().len(), 2, "reading goes on behind");
}

#[test]
fn a_flood_of_problems_is_cut() {
    for piece in ["@ ", "'a' ", "// x\n", "\"\\u", "[}", "{\"a\":1,\"a\":2},"] {
        let parsed = read(&format!("[{}", piece.repeat(50_000)));
        assert_eq!(parsed.diagnostics.len(), 100, "{piece}");
        assert!(
            parsed.diagnostics[99].help.as_ref().unwrap().contains("too many"),
            "{piece}"
        );
        assert!(parsed.truncated && parsed.root.is_some(), "{piece}");
    }
}

//! Tables of conditions with their results or their errors.

use super::*;
use crate::expression::sample::{Noise, budget, json, object, on_small_stack};
use crate::graph::Root;
use crate::value::Overlay;

const DATA: &str = r#"{
    "n": 5, "f": 2.5, "neg": -3, "big": 9007199254740993, "max": 18446744073709551615, "min": -9223372036854775808,
    "s": "abc", "empty": "", "quote": "it's", "umlaut": "ä", "emoji": "😀", "private": "\ue000",
    "yes": true, "no": false, "nil": null,
    "list": [1, "two", [3], {"k": 4}, null], "obj": {"k": 1, "j": [1, 2]}, "same": {"j": [1, 2.0], "k": 1.0},
    "x y": {"a-b": 7}
}"#;

/// Condition, and whether it holds for `DATA`.
const HOLDS: &[(&str, bool)] = &[
    ("true", true),
    ("false", false),
    ("(true)", true),
    ("!false", true),
    ("!!true", true),
    ("true && false", false),
    ("true || false", true),
    // Precedence: `&&` before `||`
    ("true || true && false", true),
    ("(true || true) && false", false),
    ("false && false || true", true),
    // Bare paths
    ("$.yes", true),
    ("$.no", false),
    ("$.n", false),
    ("$.s", false),
    ("$.nil", false),
    ("$.obj", false),
    ("$.nothing", false),
    ("$", false),
    ("!$.yes", false),
    ("!$.no", true),
    ("!$.n", true),
    ("!$.nothing", true),
    ("$.yes && !$.no", true),
    // Paths
    ("$.list[0] == 1", true),
    ("$.list[-2].k == 4", true),
    ("$['n'] == 5", true),
    (r#"$["x y"]["a-b"] == 7"#, true),
    ("$ .n == 5", true),
    // Numbers
    ("$.n == 5", true),
    ("$.n == 5.0", true),
    ("$.n == 0.5e1", true),
    ("$.n != 5", false),
    ("$.n != 6", true),
    ("$.n < 6", true),
    ("$.n<=5", true),
    ("$.n>5", false),
    ("$.n >= 5.5", false),
    ("$.f > 2 && $.f < 3", true),
    ("$.neg == -3", true),
    ("$.neg < - 2.5", true),
    ("-1 < $.n", true),
    ("$.big == 9007199254740993", true),
    ("$.big == 9007199254740992", false),
    ("$.max == 18446744073709551615", true),
    ("$.max > 18446744073709551614", true),
    ("$.min == -9223372036854775808", true),
    ("0 == -0", true),
    ("1 == 1.0", true),
    // Strings
    (r#"$.s == "abc""#, true),
    ("$.s == 'abc'", true),
    ("$.s == `abc`", true),
    ("$.s != 'abd'", true),
    ("$.s < 'abd'", true),
    ("$.s > 'ab'", true),
    ("'Z' < 'a'", true),
    ("'z' < $.umlaut", true),
    // By code point, not by UTF-16 unit: U+E000 before U+1F600
    ("$.private < $.emoji", true),
    ("$.empty == ''", true),
    (r#"$.quote == "it's""#, true),
    (r"$.quote == 'it\'s'", true),
    (r"`a\n` == 'a\\n'", true),
    (r#""\u00e4" == $.umlaut"#, true),
    (r#"'\ud83d\ude00' == $.emoji"#, true),
    (r#"'\"\/\b\f\n\r\t' == "\"/\u0008\u000c\u000a\u000d\u0009""#, true),
    ("'ABC' == 'abc'", false),
    // Different types
    ("$.n == '5'", false),
    ("$.n != '5'", true),
    ("$.n < '6'", false),
    ("$.s >= 1", false),
    ("$.yes == 1", false),
    ("$.yes > false", false),
    ("$.yes >= true", false),
    ("$.yes == true", true),
    ("$.nil == null", true),
    ("$.nil != null", false),
    ("$.nil <= null", false),
    ("$.n != null", true),
    // Missing
    ("$.nothing == 1", false),
    ("$.nothing != 1", false),
    ("$.nothing == null", false),
    ("$.nothing != null", false),
    ("$.nothing == $.nothing", false),
    ("$.nothing < 1", false),
    ("!($.nothing == 1)", true),
    ("!($.nothing != 1)", true),
    // Deep
    ("$.obj == $.same", true),
    ("$.obj != $.same", false),
    ("$.obj.j == $.same.j", true),
    ("$.obj < $.same", false),
    ("$.obj <= $.same", false),
    ("$.obj == $.list", false),
    ("$ == $", true),
    ("$ != $.obj", true),
    // in
    ("1 in $.list", true),
    ("1.0 in $.list", true),
    ("'two' in $.list", true),
    ("3 in $.list", false),
    ("null in $.list", true),
    ("$.obj.k in $.list", true),
    ("'k' in $.obj", true),
    ("'x' in $.obj", false),
    ("1 in $.obj", false),
    ("'n' in $", true),
    ("'m' in $", false),
    ("'a' in $.s", false),
    ("'a' in 'abc'", false),
    ("1 in $.nothing", false),
    ("$.nothing in $.list", false),
    ("!('x' in $.obj)", true),
    ("'k' in $.obj && 'j' in $.obj", true),
    // Boolean expressions as operands
    ("($.n == 5) == true", true),
    ("($.n == 6) == $.no", true),
    ("($.n > 1) != ($.n > 9)", true),
    ("!$.n == true", true),
    ("!$.yes == false", true),
    ("($.yes && $.no) == false", true),
    ("($.n) == 5", true),
    ("((((5)))) == $.n", true),
    // Blank space
    ("\t$.n\r\n==\n5 ", true),
    ("$.n==5&&!$.no||false", true),
];

#[test]
fn conditions_hold_as_they_should() {
    let data = json(DATA);
    let whole = data.as_object().unwrap();
    let mut overlay = Overlay::new(object(r#"{"n": 0, "obj": 1}"#));
    overlay.merge(whole);
    for (text, expected) in HOLDS {
        let condition = Condition::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        assert_eq!(
            condition.holds(Root::from(&data), &budget()).unwrap(),
            *expected,
            "{text}"
        );
        assert_eq!(
            condition.holds(Root::Overlay(&overlay), &budget()).unwrap(),
            *expected,
            "{text}"
        );
        assert_eq!(condition.text(), text);
    }
}

/// Condition, the part of it that is wrong, and a part of the message or help.
const WRONG: &[(&str, &str, &str)] = &[
    ("", "", "empty"),
    ("  \n", "  \n", "empty"),
    ("5", "5", "a number"),
    ("-5", "-5", "a number"),
    ("'a'", "'a'", "a string"),
    ("null", "null", "null"),
    ("('a')", "('a')", "a string"),
    ("1 < $.n < 9", "1 < $.n <", "join comparisons with `&&`"),
    ("$.a == $.b == true", "$.a == $.b ==", "chain"),
    ("1 in $.a in $.b", "1 in $.a in", "chain"),
    ("-$.n < 1", "-", "no number"),
    ("-'a' == 1", "-", "no number"),
    ("--1 == 1", "-", "no number"),
    ("-(1) == 1", "-", "no number"),
    ("-true", "-", "no number"),
    ("$.n == -", "-", "no number"),
    ("$.a && 1", "1", "a number beside"),
    ("'x' || $.a", "'x'", "a string beside"),
    ("!null", "null", "null beside"),
    ("!5 == 5", "5", "a number beside"),
    ("$.a == 1 || 2", "2", "`$.a == 1 || $.a == 2`"),
    ("$.a && (-1)", "(-1)", "a number beside"),
    ("$.a == \"x", "\"x", "no end"),
    ("$.a == 'x\"", "'x\"", "no end"),
    ("$.a == `x", "`x", "no end"),
    ("$.a == \"\\x\"", "\\x", "no escape"),
    ("$.a == \"\\'\"", "\\'", "no escape"),
    ("$.a == '\\é'", "\\é", "no escape"),
    ("$.a == '\\ud800'", "\\ud800", "surrogate"),
    ("$.a == '\\", "\\", "backslash"),
    ("$.a = 1", "=", "write `==`"),
    ("$.a === 1", "===", "write `==`"),
    ("$.a !== 1", "!==", "write `!=`"),
    ("$.a <> 1", "<>", "write `!=`"),
    ("$.a => 1", "=>", "write `>=`"),
    ("$.a & $.b", "&", "write `&&`"),
    ("$.a | $.b", "|", "write `||`"),
    ("$.a and $.b", "and", "write `&&`"),
    ("$.a OR $.b", "OR", "write `||`"),
    ("not $.a", "not", "write `!`"),
    ("$.a == True", "True", "write `true`"),
    ("$.a == None", "None", "write `null`"),
    ("$.a == abc", "abc", "in quotes"),
    ("abc == 1", "abc", "`$.abc`"),
    ("$input.x == 1", "$input", "paths here start at `$`"),
    ("$local[0] == 1", "$local", "paths here start at `$`"),
    ("$context == 1", "$context", "paths here start at `$`"),
    ("$x == 1", "$x", "write `$.x`"),
    ("@.x == 1", "@", "paths here start at `$`"),
    ("$.a[*] == 1", "$.a[*]", "keys and indices"),
    ("$..a == 1", "$..a", "several values"),
    ("$.a[?@.b] == 1", "$.a[?@.b]", "several values"),
    ("$.a[0:1] == 1", "$.a[0:1]", "several values"),
    ("$. == 1", " ", "after `.`"),
    ("$.a[", "", "not closed"),
    ("$.a[x] == 1", "x", "in quotes"),
    ("$.a-b == 1", "-", "brackets and quotes"),
    ("$.a-1 == 1", "-", "no arithmetic"),
    ("$.a - 1 == 1", "-", "no arithmetic"),
    ("$.a + 1 == 1", "+", "no arithmetic"),
    ("$.a * 2 == 1", "*", "no arithmetic"),
    ("$.a % 2 == 1", "%", "no arithmetic"),
    ("$.a == 01", "01", "no number"),
    ("$.a == 1.", "1.", "no number"),
    ("$.a == .5", ".5", "`0.5`"),
    ("$.a == 1e", "1e", "no number"),
    ("$.a == 1e999", "1e999", "no number"),
    ("$.a == 0x10", "0x10", "no number"),
    ("$.a == 5days", "5days", "no number"),
    ("$.a == 1.2.3", "1.2.3", "no number"),
    ("$.a ==", "", "ends where a value"),
    ("== 1", "==", "expected a value"),
    ("$.a &&", "", "ends where a value"),
    ("&& $.a", "&&", "expected a value"),
    ("!", "", "ends where a value"),
    ("()", ")", "expected a value"),
    ("($.a", "(", "not closed"),
    ("$.a)", ")", "`)` without `(`"),
    ("(($.a)", "(", "not closed"),
    ("$.a $.b", "$.b", "expected an operator"),
    ("$.a == 1 2", "2", "expected an operator"),
    ("($.a $.b)", "$.b", "expected an operator"),
    ("$.a (true)", "(", "expected an operator"),
    ("$.a == “x”", "“", "plain quotes"),
    ("$.a == 1;", ";", "unexpected `;`"),
    ("$.a == é", "é", "not known"),
    ("$.a == #", "#", "unexpected `#`"),
    ("$.größe-neu == 1", "-", "brackets and quotes"),
];

#[test]
fn errors_point_at_their_place() {
    for (text, part, words) in WRONG {
        let error = match Condition::parse(text) {
            Err(error) => error,
            Ok(condition) => panic!("{text} was taken as {condition:?}"),
        };
        let said = format!("{} / {}", error.message, error.help.as_deref().unwrap_or_default());
        assert_eq!(
            text.get(error.offset..error.offset + error.len),
            Some(*part),
            "{text}: {error:?}"
        );
        assert!(said.contains(words), "{text}: {said}");
    }
}

#[test]
fn roots_of_every_kind() {
    let holds = |text: &str, data: Root<'_>| Condition::parse(text).unwrap().holds(data, &budget()).unwrap();
    let array = json("[1, [2]]");
    assert!(holds("$[1][0] == 2", Root::from(&array)));
    assert!(holds("1 in $", Root::from(&array)));
    assert!(!holds("'a' in $", Root::from(&array)));
    for text in ["$ == $", "$ != 1", "$.a == 1", "1 in $", "'a' in $", "$"] {
        assert!(!holds(text, Root::Nothing), "{text}");
    }
    assert!(holds("!$", Root::Nothing));
}

#[test]
fn length_and_nesting_are_bounded() {
    let long = |len: usize| format!("$.a == '{}'", "a".repeat(len - 9));
    assert!(Condition::parse(&long(MAX_CONDITION_BYTES)).is_ok());
    assert!(Condition::parse(&long(MAX_CONDITION_BYTES + 1)).is_err());
    let forms: [fn(usize) -> String; 4] = [
        |n| format!("{}true{}", "(".repeat(n), ")".repeat(n)),
        |n| format!("{}true", "!".repeat(n)),
        |n| format!("{}$.a == 1{}", "!(".repeat(n / 2), ")".repeat(n / 2)),
        |n| format!("{}true{}", "$.a || 1 == (".repeat(n), ")".repeat(n)),
    ];
    on_small_stack(move || {
        let data = json(r#"{"a": 1}"#);
        for form in forms {
            let deepest = Condition::parse(&form(parser::MAX_NESTING)).unwrap_or_else(|error| panic!("{error:?}"));
            deepest.holds(Root::from(&data), &budget()).unwrap();
            drop(deepest.clone());
            assert!(Condition::parse(&form(parser::MAX_NESTING + 2)).is_err());
        }
        for text in [
            "(", "!", "!(", "-", "$[", "$.a[?(", "a && (", "1 == (", "'", "`", "$.a == ",
        ] {
            for len in [4_000, 10_000] {
                assert!(Condition::parse(&text.repeat(len / text.len())).is_err(), "{text}");
            }
        }
        // Flat, but long.
        let flat = vec!["$.a"; 500].join(" && ");
        assert!(
            !Condition::parse(&flat)
                .unwrap()
                .holds(Root::from(&data), &budget())
                .unwrap()
        );
        let flat = vec!["$.a == 1"; 300].join(" || ");
        assert!(
            Condition::parse(&flat)
                .unwrap()
                .holds(Root::from(&data), &budget())
                .unwrap()
        );
    });
}

/// The parser answers any input, with a place inside the text; every condition that it accepts can
/// be evaluated.
#[test]
fn noise_is_answered() {
    let pieces = [
        "$", "$.a", "$.n", ".", "[0]", "['a']", "(", ")", "!", "&&", "||", "==", "!=", "<", "<=", "in", "-", "1",
        "2.5", "1e9", "'", "\"", "`", "'s'", "\\", "true", "null", "and", "=", "&", "é", "😀", " ", "\n", "\u{0}",
        "$input",
    ];
    let data = json(DATA);
    let mut noise = Noise(11);
    let mut sound = 0;
    for _ in 0..60_000 {
        let text: String = (0..noise.below(9)).map(|_| noise.of(&pieces)).collect();
        match Condition::parse(&text) {
            Ok(condition) => {
                condition.holds(Root::from(&data), &budget()).unwrap();
                sound += 1;
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
    assert!(sound > 100, "{sound}");
}

/// Random conditions have the value that their parts imply.
#[test]
fn connectives_are_boolean_algebra() {
    let atoms = [
        "$.yes",
        "$.no",
        "$.n == 5",
        "$.n > 9",
        "$.nothing == 1",
        "true",
        "false",
        "'k' in $.obj",
    ];
    let data = json(DATA);
    let holds = |text: &str| {
        Condition::parse(text)
            .unwrap()
            .holds(Root::from(&data), &budget())
            .unwrap()
    };
    let mut noise = Noise(5);
    for _ in 0..2_000 {
        let (a, b, c) = (noise.of(&atoms), noise.of(&atoms), noise.of(&atoms));
        let (x, y, z) = (holds(a), holds(b), holds(c));
        assert_eq!(holds(&format!("{a} && {b} || {c}")), x && y || z);
        assert_eq!(holds(&format!("{a} || {b} && {c}")), x || y && z);
        assert_eq!(holds(&format!("!({a}) && ({b} || !({c}))")), !x && (y || !z));
        assert_eq!(holds(&format!("({a}) == ({b} && {c})")), x == (y && z));
    }
}

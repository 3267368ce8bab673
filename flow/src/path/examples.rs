//! The examples of RFC 9535 itself, table by table.

use super::Query;
use crate::graph::Root;
use crate::sample::{budget, json};
use crate::value::Value;

/// The queries of one table over its data, each with the array of its results.
fn table(data: &str, rows: &[(&str, &str)]) {
    let data = json(data);
    for (text, expected) in rows {
        let query = Query::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        let found = match query.find(Root::from(&data), &budget()).unwrap() {
            Some(one) if query.is_singular() => Value::from(vec![one]),
            Some(all) => all,
            None => Value::from(Vec::new()),
        };
        assert_eq!(found.to_json(), json(expected).to_json(), "{text}");
    }
}

#[test]
fn introduction() {
    let data = r#"{"store": {"book": [
        {"category": "reference", "author": "Nigel Rees", "title": "Sayings of the Century", "price": 8.95},
        {"category": "fiction", "author": "Evelyn Waugh", "title": "Sword of Honour", "price": 12.99},
        {"category": "fiction", "author": "Herman Melville", "title": "Moby Dick", "isbn": "0-553-21311-3", "price": 8.99},
        {"category": "fiction", "author": "J. R. R. Tolkien", "title": "The Lord of the Rings", "isbn": "0-395-19395-8", "price": 22.99}
    ], "bicycle": {"color": "red", "price": 399}}}"#;
    table(
        data,
        &[
            (
                "$.store.book[*].author",
                r#"["Nigel Rees","Evelyn Waugh","Herman Melville","J. R. R. Tolkien"]"#,
            ),
            (
                "$..author",
                r#"["Nigel Rees","Evelyn Waugh","Herman Melville","J. R. R. Tolkien"]"#,
            ),
            ("$.store..price", "[8.95,12.99,8.99,22.99,399]"),
            ("$..book[2].author", r#"["Herman Melville"]"#),
            ("$..book[2].publisher", "[]"),
            ("$..book[-1].title", r#"["The Lord of the Rings"]"#),
            ("$..book[0,1].title", r#"["Sayings of the Century","Sword of Honour"]"#),
            ("$..book[:2].title", r#"["Sayings of the Century","Sword of Honour"]"#),
            ("$..book[?@.isbn].title", r#"["Moby Dick","The Lord of the Rings"]"#),
            (
                "$..book[?@.price<10].title",
                r#"["Sayings of the Century","Moby Dick"]"#,
            ),
        ],
    );
    let all = Query::parse("$..*")
        .unwrap()
        .find(Root::from(&json(data)), &budget())
        .unwrap();
    assert_eq!(all.unwrap().as_array().unwrap().len(), 27);
}

#[test]
fn selectors() {
    table(
        r#"{"o": {"j j": {"k.k": 3}}, "'": {"@": 2}}"#,
        &[
            ("$.o['j j']", r#"[{"k.k":3}]"#),
            ("$.o['j j']['k.k']", "[3]"),
            (r#"$.o["j j"]["k.k"]"#, "[3]"),
            (r#"$["'"]["@"]"#, "[2]"),
        ],
    );
    table(
        r#"{"o": {"j": 1, "k": 2}, "a": [5, 3]}"#,
        &[
            ("$[*]", r#"[{"j":1,"k":2},[5,3]]"#),
            ("$.o[*]", "[1,2]"),
            ("$.o[*, *]", "[1,2,1,2]"),
            ("$.a[*]", "[5,3]"),
        ],
    );
    table(r#"["a", "b"]"#, &[("$[1]", r#"["b"]"#), ("$[-2]", r#"["a"]"#)]);
    table(
        r#"["a", "b", "c", "d", "e", "f", "g"]"#,
        &[
            ("$[1:3]", r#"["b","c"]"#),
            ("$[5:]", r#"["f","g"]"#),
            ("$[1:5:2]", r#"["b","d"]"#),
            ("$[5:1:-2]", r#"["f","d"]"#),
            ("$[::-1]", r#"["g","f","e","d","c","b","a"]"#),
            ("$[0, 3]", r#"["a","d"]"#),
            ("$[0:2, 5]", r#"["a","b","f"]"#),
            ("$[0, 0]", r#"["a","a"]"#),
        ],
    );
}

#[test]
fn comparisons() {
    let data = json(r#"{"obj": {"x": "y"}, "arr": [2, 3]}"#);
    for (comparison, holds) in [
        ("$.absent1 == $.absent2", true),
        ("$.absent1 <= $.absent2", true),
        ("$.absent == 'g'", false),
        ("$.absent1 != $.absent2", false),
        ("$.absent != 'g'", true),
        ("1 <= 2", true),
        ("1 > 2", false),
        ("13 == '13'", false),
        ("'a' <= 'b'", true),
        ("'a' > 'b'", false),
        ("$.obj == $.arr", false),
        ("$.obj != $.arr", true),
        ("$.obj == $.obj", true),
        ("$.obj != $.obj", false),
        ("$.arr == $.arr", true),
        ("$.arr != $.arr", false),
        ("$.obj == 17", false),
        ("$.obj != 17", true),
        ("$.obj <= $.arr", false),
        ("$.obj < $.arr", false),
        ("$.obj <= $.obj", true),
        ("$.arr <= $.arr", true),
        ("1 <= $.arr", false),
        ("1 >= $.arr", false),
        ("1 > $.arr", false),
        ("1 < $.arr", false),
        ("true <= true", true),
        ("true > true", false),
    ] {
        let found = Query::parse(&format!("$[?{comparison}]"))
            .unwrap()
            .find(Root::from(&data), &budget())
            .unwrap();
        assert_eq!(
            found.unwrap().as_array().unwrap().len(),
            if holds { 2 } else { 0 },
            "{comparison}"
        );
    }
}

#[test]
fn filters() {
    table(
        r#"{"a": [3, 5, 1, 2, 4, 6, {"b": "j"}, {"b": "k"}, {"b": {}}, {"b": "kilo"}], "o": {"p": 1, "q": 2, "r": 3, "s": 5, "t": {"u": 6}}, "e": "f"}"#,
        &[
            ("$.a[?@.b == 'kilo']", r#"[{"b":"kilo"}]"#),
            ("$.a[?(@.b == 'kilo')]", r#"[{"b":"kilo"}]"#),
            ("$.a[?@>3.5]", "[5,4,6]"),
            ("$.a[?@.b]", r#"[{"b":"j"},{"b":"k"},{"b":{}},{"b":"kilo"}]"#),
            (
                "$[?@.*]",
                r#"[[3,5,1,2,4,6,{"b":"j"},{"b":"k"},{"b":{}},{"b":"kilo"}],{"p":1,"q":2,"r":3,"s":5,"t":{"u":6}}]"#,
            ),
            (
                "$[?@[?@.b]]",
                r#"[[3,5,1,2,4,6,{"b":"j"},{"b":"k"},{"b":{}},{"b":"kilo"}]]"#,
            ),
            ("$.o[?@<3, ?@<3]", "[1,2,1,2]"),
            ("$.a[?@<2 || @.b == \"k\"]", r#"[1,{"b":"k"}]"#),
            ("$.a[?match(@.b, \"[jk]\")]", r#"[{"b":"j"},{"b":"k"}]"#),
            ("$.a[?search(@.b, \"[jk]\")]", r#"[{"b":"j"},{"b":"k"},{"b":"kilo"}]"#),
            ("$.o[?@>1 && @<4]", "[2,3]"),
            ("$.o[?@.u || @.x]", r#"[{"u":6}]"#),
            ("$.a[?@.b == $.x]", "[3,5,1,2,4,6]"),
            (
                "$.a[?@ == @]",
                r#"[3,5,1,2,4,6,{"b":"j"},{"b":"k"},{"b":{}},{"b":"kilo"}]"#,
            ),
        ],
    );
}

#[test]
fn functions_are_typed() {
    for (text, sound) in [
        ("$[?length(@) < 3]", true),
        ("$[?length(@.*) < 3]", false),
        ("$[?count(@.*) == 1]", true),
        ("$[?count(1) == 1]", false),
        ("$[?match(@.timezone, 'Europe/.*')]", true),
        ("$[?match(@.timezone, 'Europe/.*') == true]", false),
        ("$[?value(@..color) == \"red\"]", true),
        ("$[?value(@..color)]", false),
    ] {
        assert_eq!(Query::parse(text).is_ok(), sound, "{text}");
    }
}

#[test]
fn segments() {
    table(
        r#"{"o": {"j": 1, "k": 2}, "a": [5, 3, [{"j": 4}, {"k": 6}]]}"#,
        &[
            ("$..j", "[1,4]"),
            ("$..[0]", r#"[5,{"j":4}]"#),
            (
                "$..[*]",
                r#"[{"j":1,"k":2},[5,3,[{"j":4},{"k":6}]],1,2,5,3,[{"j":4},{"k":6}],{"j":4},{"k":6},4,6]"#,
            ),
            ("$..o", r#"[{"j":1,"k":2}]"#),
            ("$.o..[*, *]", "[1,2,1,2]"),
            ("$.a..[0, 1]", r#"[5,3,{"j":4},{"k":6}]"#),
        ],
    );
    table(
        r#"{"a": null, "b": [null], "c": [{}], "null": 1}"#,
        &[
            ("$.a", "[null]"),
            ("$.a[0]", "[]"),
            ("$.a.d", "[]"),
            ("$.b[0]", "[null]"),
            ("$.b[*]", "[null]"),
            ("$.b[?@]", "[null]"),
            ("$.b[?@==null]", "[null]"),
            ("$.c[?@.d==null]", "[]"),
            ("$.null", "[1]"),
        ],
    );
}

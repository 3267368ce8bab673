//! Tables of paths with their results or their errors.

use super::*;
use crate::graph::Root;
use crate::sample::{DATA, budget, json, object};
use crate::value::{Overlay, Value};

/// A query, and its result in `DATA`; `-` is none.
const FINDS: &[(&str, &str)] = &[
    // Singular
    ("$.n", "9"),
    ("$.a.b.c", "1"),
    ("$.a.b", r#"{"c":1}"#),
    ("$['a']['b']['c']", "1"),
    (r#"$["a"]["d e"]"#, r#""x""#),
    ("$.a['d e']", r#""x""#),
    ("$.a['']", "0"),
    ("$.a.ключ", r#""k""#),
    ("$.a.é😀", "7"),
    (r"$.a['\u00e9\ud83d\ude00']", "7"),
    (r"$.a['\u00E9\uD83D\uDE00']", "7"),
    (r#"$.a["\u043a\u043b\u044e\u0447"]"#, r#""k""#),
    (r"$.a['\'']", r#""quote""#),
    (r#"$.a["'"]"#, r#""quote""#),
    (r#"$.a['"']"#, r#""double""#),
    (r#"$.a["\""]"#, r#""double""#),
    ("$.a.null", "null"),
    ("$.a.nothing", "-"),
    ("$.a.b.c.d", "-"),
    ("$.list[0]", "10"),
    ("$.list[-1].k", "40"),
    ("$.list[-4]", "10"),
    ("$.list[-5]", "-"),
    ("$.list[4]", "-"),
    ("$.list[9007199254740991]", "-"),
    ("$.list[-9007199254740991]", "-"),
    ("$.list[2][1]", "31"),
    ("$.a[0]", "-"),
    ("$.list.k", "-"),
    ("$ .a\n.b\t['c']", "1"),
    ("$[ 'a' ][\n\"b\" ].c", "1"),
    // Several
    ("$.list[*]", r#"[10,20,[30,31],{"k":40}]"#),
    ("$.list.*", r#"[10,20,[30,31],{"k":40}]"#),
    ("$.a.b.*", "[1]"),
    ("$.n.*", "[]"),
    ("$.x.*", "[]"),
    ("$.books[*].title", r#"["S","W","M","L"]"#),
    ("$.books[*].isbn", r#"["0-1","0-2"]"#),
    ("$.books[*].tags[*]", r#"["r","r","f"]"#),
    ("$.list[0,1]", "[10,20]"),
    ("$.list[1,0]", "[20,10]"),
    ("$.list[0, 0]", "[10,10]"),
    ("$['n','n']", "[9,9]"),
    ("$.a.b['c','x']", "[1]"),
    ("$.list[0:2]", "[10,20]"),
    ("$.list[:2]", "[10,20]"),
    ("$.list[2:]", r#"[[30,31],{"k":40}]"#),
    ("$.list[-2:]", r#"[[30,31],{"k":40}]"#),
    ("$.list[::2]", "[10,[30,31]]"),
    ("$.list[::-1][0]", "[30]"),
    ("$.list[1::-1]", "[20,10]"),
    ("$.list[:0:-2]", r#"[{"k":40},20]"#),
    ("$.list[::0]", "[]"),
    ("$.list[ 0 : 2 : 1 ]", "[10,20]"),
    ("$.list[100:-100:-1]", r#"[{"k":40},[30,31],20,10]"#),
    ("$.a[0:1]", "[]"),
    ("$.list[-9007199254740991:9007199254740991:9007199254740991]", "[10]"),
    ("$..k", "[40]"),
    (
        "$..[1]",
        r#"[20,31,{"title":"W","price":12.99,"isbn":"0-1"},"f",9007199254740992]"#,
    ),
    ("$.list..*", r#"[10,20,[30,31],{"k":40},30,31,40]"#),
    ("$.books..['title','price']", r#"["S",8.95,"W",12.99,"M",8.99,"L",22]"#),
    ("$..books[0].title", r#"["S"]"#),
    ("$..nothing", "[]"),
    // Filters
    ("$.books[?@.isbn].title", r#"["W","M"]"#),
    ("$.books[?!@.isbn].title", r#"["S","L"]"#),
    ("$.books[?@.price<9].title", r#"["S","M"]"#),
    ("$.books[?@.price <= 8.95].title", r#"["S"]"#),
    ("$.books[?(@.price>$.n)].title", r#"["W","L"]"#),
    ("$.books[?@.price == 22.0].title", r#"["L"]"#),
    ("$.books[?@.price==2.2e1].title", r#"["L"]"#),
    ("$.books[?@.title=='W' || @.title==\"M\"].price", "[12.99,8.99]"),
    ("$.books[?@.isbn && @.price>10].title", r#"["W"]"#),
    ("$.books[?!(@.isbn && @.price>10)].title", r#"["S","M","L"]"#),
    ("$.books[?@.title!='W'&&@.title!='M'].title", r#"["S","L"]"#),
    ("$.books[?@.title>='S'].title", r#"["S","W"]"#),
    ("$.books[?@.isbn==@.nothing].title", r#"["S","L"]"#),
    ("$.books[?@.isbn<=@.nothing].title", r#"["S","L"]"#),
    ("$.books[?@.isbn<@.nothing].title", "[]"),
    ("$.books[?@.tags==[]].title", "!"),
    ("$.books[?length(@.tags)==0].title", r#"["M"]"#),
    ("$.books[?length(@.title)==1 && length(@)==3].title", r#"["S","W","L"]"#),
    ("$.books[?count(@.*)>3].title", r#"["M"]"#),
    ("$.books[?count(@.tags[*])==1].title", r#"["S"]"#),
    ("$.books[?value(@..isbn)=='0-2'].title", r#"["M"]"#),
    ("$.books[?length(value(@.tags))==2].title", r#"["L"]"#),
    ("$.books[?match(@.isbn,'0-[1]')].title", r#"["W"]"#),
    ("$.books[?match(@.isbn, '-')].title", "[]"),
    ("$.books[?search(@.isbn, '-')].title", r#"["W","M"]"#),
    ("$.books[?!search(@.isbn, '-')].title", r#"["S","L"]"#),
    ("$.books[?match(@.price, '.*')]", "[]"),
    ("$.books[?match(@.title, 1)]", "[]"),
    ("$.books[?match(@.title, 'S|L')].title", r#"["S","L"]"#),
    ("$.books[?@.tags[?@=='f']].title", r#"["L"]"#),
    ("$.books[?count(@.tags[?@!='f'])==1].title", r#"["S","L"]"#),
    ("$.big[?@==9007199254740993]", "[9007199254740993]"),
    ("$.big[?@>9007199254740992]", "[9007199254740993,18446744073709551615]"),
    ("$.big[?@==18446744073709551615]", "[18446744073709551615]"),
    ("$.list[?@>10]", "[20]"),
    ("$.list[?@[0]]", "[[30,31]]"),
    ("$.list[?@.k==40]", r#"[{"k":40}]"#),
    ("$.list[?true==true]", r#"[10,20,[30,31],{"k":40}]"#),
    ("$.a[?@=='x']", r#"["x"]"#),
    ("$.a[?@==null]", "[null]"),
    ("$.a[?@==-0]", "[0]"),
    ("$.list[?$.n]", r#"[10,20,[30,31],{"k":40}]"#),
    ("$.list[?$]", r#"[10,20,[30,31],{"k":40}]"#),
    ("$.list[?@ == $.list[2]]", "[[30,31]]"),
    ("$.list[0,?@>10,-1]", r#"[10,20,{"k":40}]"#),
];

#[test]
fn queries_find_what_they_should() {
    let data = json(DATA);
    for (text, expected) in FINDS {
        if *expected == "!" {
            assert!(Query::parse(text).is_err(), "{text}");
            continue;
        }
        let query = Query::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        let found = query
            .find(Root::from(&data), &budget())
            .unwrap()
            .map_or_else(|| "-".to_owned(), |value| value.to_json());
        assert_eq!(found, *expected, "{text}");
        assert_eq!(query.text(), text);
    }
}

/// Query, the part of it that is wrong, and a part of the message or help.
const WRONG: &[(&str, &str, &str)] = &[
    ("", "", "starts with `$`"),
    ("a.b", "a", "starts with `$`"),
    ("$a", "a", "expected `.`, `[`"),
    ("$.", "", "a name or `*`"),
    ("$..", "", "a name, `*` or `[`"),
    ("$. a", " ", "a name or `*`"),
    ("$.a ", " ", "blank space"),
    ("$ ", " ", "blank space"),
    ("$.a-b", "-", "['a-b']"),
    ("$.1a", "1", "brackets and quotes"),
    ("$.'a'", "'", "brackets"),
    ("$...a", ".", "after `..`"),
    ("$[", "", "not closed"),
    ("$['a'", "['a'", "not closed"),
    ("$[]", "]", "a name in quotes"),
    ("$[a]", "a", "in quotes"),
    ("$[0", "[0", "not closed"),
    ("$[0 1]", "1", "`,` or `]`"),
    ("$[0,]", "]", "a name in quotes"),
    ("$[01]", "01", "leading zeros"),
    ("$[-0]", "-0", "-0"),
    ("$[-01]", "-01", "leading zeros"),
    ("$[-]", "-", "digits"),
    ("$[1.0]", ".", "`,` or `]`"),
    ("$[9007199254740992]", "9007199254740992", "too large"),
    ("$[-9007199254740992]", "-9007199254740992", "too large"),
    ("$[99999999999999999999]", "99999999999999999999", "too large"),
    ("$[0:01]", "01", "leading zeros"),
    ("$['a]", "'a]", "no end"),
    ("$['a\\x']", "\\x", "no escape"),
    (r#"$['a\"']"#, "\\\"", "no escape"),
    (r#"$["a\'"]"#, "\\'", "no escape"),
    ("$['a\tb']", "\t", "control character"),
    (r"$['\u12']", r"\u", "four hexadecimal"),
    (r"$['\u+123']", r"\u", "four hexadecimal"),
    (r"$['\ud800']", r"\ud800", "surrogate"),
    (r"$['\udc00']", r"\udc00", "surrogate"),
    (r"$['\ud800\ud800']", r"\ud800", "surrogate"),
    ("$['a\\", "\\", "backslash"),
    ("$[?]", "]", "a condition"),
    ("$[?@.a", "[?@.a", "not closed"),
    ("$[?@.a==]", "]", "a condition"),
    ("$[?@.a=1]", "=", "`,` or `]`"),
    ("$[?(@.a]", "]", "`)`"),
    ("$[?(@.a)==1]", "==", "parentheses"),
    ("$[?!@.a==1]", "!@.a==", "`!(@.a == 1)`"),
    ("$[?1]", "1", "compared"),
    ("$[?true]", "true", "compared"),
    ("$[?'a']", "'a'", "compared"),
    ("$[?@.a==01]", "01", "no number"),
    ("$[?@.a==1.]", "1.", "no number"),
    ("$[?@.a==.5]", ".", "a condition"),
    ("$[?@.a==-]", "-", "no number"),
    ("$[?@.a==1e]", "1e", "no number"),
    ("$[?@.a==1e999]", "1e999", "no number"),
    ("$[?@.a==TRUE]", "T", "a condition"),
    ("$[?@.a==abc]", "abc", "not known"),
    ("$[?@.*==1]", "@.*", "several values"),
    ("$[?1==@..a]", "@..a", "several values"),
    ("$[?length (@.a)==1]", "length", "not known"),
    ("$[?foo(@.a)]", "foo", "not known"),
    ("$[?in(@.a,$.b)]", "in", "not known"),
    ("$[?count(1)==1]", "1", "a query"),
    ("$[?count(@.a,@.b)==1]", ",", "`)`"),
    ("$[?count()==1]", ")", "a query"),
    ("$[?length()==1]", ")", "a condition"),
    ("$[?length(@.a==1)==1]", "=", "`)`"),
    ("$[?match(@.a,'b')==true]", "match(@.a,'b')", "cannot be compared"),
    ("$[?match(@.a)]", ")", "regular expression"),
    ("$[?match(@.*,'b')]", "@.*", "several values"),
    ("$[?match(@.a,'b','c')]", ",", "`)`"),
    ("$[?$input.a==1]", "i", "root of the whole path"),
    // Accepted by the engine, against RFC 9535's types.
    ("$[?count(@..*)]", "count(@..*)", "must be compared"),
    ("$[?length(@.a)]", "length(@.a)", "must be compared"),
    ("$[?value(@.a)]", "value(@.a)", "must be compared"),
    ("$[?length(@.*)<3]", "@.*", "several values"),
    ("$[?length(@..a)<3]", "@..a", "several values"),
    ("$[?length(match(@,'a'))==1]", "match(@,'a')", "cannot be compared"),
    // Regular expressions
    ("$[?match(@, $.*)]", "$.*", "several values"),
    ("$[?match(@, @.a == 1)]", "=", "`)`"),
    ("$[?match(@, '(a')]", "'(a'", "`(` without `)`"),
    ("$[?match(@, 'a)')]", "'a)'", "`)` without `(`"),
    ("$[?match(@, '[a')]", "'[a'", "`[` without `]`"),
    ("$[?match(@, '*a')]", "'*a'", "nothing to repeat"),
    ("$[?match(@, 'a**')]", "'a**'", "nothing to repeat"),
    ("$[?match(@, '(?i)a')]", "'(?i)a'", "(?"),
    (r"$[?match(@, '\\d')]", r"'\\d'", "[0-9]"),
    ("$[?match(@, 'a{3,1}')]", "'a{3,1}'", "no regular expression"),
    ("$[?match(@, 'a{x}')]", "'a{x}'", "quantifier"),
    (
        "$[?match(@, '((a{50}){50}){50}')]",
        "'((a{50}){50}){50}'",
        "repeats too much",
    ),
    (r"$[?match(@, '\\p{L}{100}')]", r"'\\p{L}{100}'", "repeats too much"),
    (
        r"$[?match(@, '\\p{Nonsense}')]",
        r"'\\p{Nonsense}'",
        "no regular expression",
    ),
];

#[test]
fn errors_point_at_their_place() {
    for (text, part, words) in WRONG {
        let error = match Query::parse(text) {
            Err(error) => error,
            Ok(query) => panic!("{text} was taken as {query:?}"),
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

/// A case that the engine gets wrong and this parser does not: RFC 9535 visits a node with all
/// selectors before its children.
#[test]
fn several_selectors_below_keep_the_order_of_nodes() {
    let data = json(r#"[{"a":1,"d":2},{"a":3,"d":4,"x":{"d":5,"a":6}}]"#);
    let found = Query::parse("$..['a','d']")
        .unwrap()
        .find(Root::from(&data), &budget())
        .unwrap();
    assert_eq!(found, Some(json("[1,2,3,4,6,5]")));
    let nested = json("[[1,2],[0],[[5]],1,{}]");
    let found = Query::parse("$[?@[?@>1]]")
        .unwrap()
        .find(Root::from(&nested), &budget())
        .unwrap();
    assert_eq!(found, Some(json("[[1,2]]")));
}

#[test]
fn the_whole_and_nothing() {
    let data = json(DATA);
    let whole = Query::parse("$").unwrap();
    assert!(whole.is_singular());
    assert_eq!(whole.find(Root::from(&data), &budget()).unwrap(), Some(data));
    assert_eq!(whole.find(Root::Nothing, &budget()).unwrap(), None);
    assert_eq!(
        Query::parse("$.a").unwrap().find(Root::Nothing, &budget()).unwrap(),
        None
    );
    for text in ["$.*", "$..*", "$[?@]", "$[?$]"] {
        assert_eq!(
            Query::parse(text).unwrap().find(Root::Nothing, &budget()).unwrap(),
            Some(json("[]")),
            "{text}"
        );
    }
    let array = json("[1,[2]]");
    assert_eq!(
        Query::parse("$[1][0]")
            .unwrap()
            .find(Root::from(&array), &budget())
            .unwrap(),
        Some(json("2"))
    );
    assert_eq!(
        Query::parse("$[-2]")
            .unwrap()
            .find(Root::from(&array), &budget())
            .unwrap(),
        Some(json("1"))
    );
    assert_eq!(
        Query::parse("$..*")
            .unwrap()
            .find(Root::from(&array), &budget())
            .unwrap(),
        Some(json("[1,[2],2]"))
    );
    assert_eq!(
        Query::parse("$[?@ == $[0]]")
            .unwrap()
            .find(Root::from(&array), &budget())
            .unwrap(),
        Some(json("[1]"))
    );
}

#[test]
fn what_a_query_says_of_itself() {
    for (text, singular, first) in [
        ("$", true, None),
        ("$.a", true, Some("a")),
        ("$['a b'][-1].c", true, Some("a b")),
        ("$[0]", true, None),
        ("$.a[*]", false, Some("a")),
        ("$.a.*", false, Some("a")),
        ("$..a", false, None),
        ("$['a','b']", false, None),
        ("$[0:1]", false, None),
        ("$[?@]", false, None),
    ] {
        let query = Query::parse(text).unwrap();
        assert_eq!(query.is_singular(), singular, "{text}");
        assert_eq!(query.first_key().map(Text::as_str), first, "{text}");
    }
}

/// An overlay answers like the object it stands for, without being converted to one.
#[test]
fn overlays_are_walked_as_they_are() {
    let mut overlay = Overlay::new(object(DATA));
    overlay.merge(&object(r#"{"n": 22, "list": [1, 100], "new": {"k": [1]}}"#));
    let merged = overlay.to_value();
    for (text, expected) in FINDS
        .iter()
        .chain(&[("$.new.k[0]", ""), ("$.*", ""), ("$..*", ""), ("$[?@==$.n]", "")])
    {
        if *expected == "!" {
            continue;
        }
        let query = Query::parse(text).unwrap();
        assert_eq!(
            query.find(Root::Overlay(&overlay), &budget()).unwrap(),
            query.find(Root::from(&merged), &budget()).unwrap(),
            "{text}"
        );
    }
}

#[test]
fn what_is_found_is_shared_and_not_copied() {
    let mut overlay = Overlay::new(object(DATA));
    overlay.merge(&object(r#"{"over": {"x": [1, 2, 3]}}"#));
    for (key, text) in [("list", "$.list"), ("over", "$.over")] {
        let (found, there) = (
            Query::parse(text)
                .unwrap()
                .find(Root::Overlay(&overlay), &budget())
                .unwrap()
                .unwrap(),
            overlay.get(key).unwrap(),
        );
        let same = match (&found, there) {
            (Value::Array(a), Value::Array(b)) => a.same(b),
            (Value::Object(a), Value::Object(b)) => a.same(b),
            _ => false,
        };
        assert!(same, "{text}");
    }
}

/// The cases of the public compliance suite whose regular expressions come from data, by their names.
#[test]
fn regular_expressions_may_come_from_data() {
    for (case, text, data, found) in [
        (
            "functions, match, regex from the document",
            "$.values[?match(@, $.regex)]",
            r#"{"regex":"b.?b","values":["abc","bcd","bab","bba","bbab","b",true,[],{}]}"#,
            r#"["bab"]"#,
        ),
        (
            "functions, match, arg is a function expression",
            "$.values[?match(@.a, value($..['regex']))]",
            r#"{"regex":"a.*","values":[{"a":"ab"},{"a":"ba"}]}"#,
            r#"[{"a":"ab"}]"#,
        ),
        (
            "functions, search, regex from the document",
            "$.values[?search(@, $.regex)]",
            r#"{"regex":"b.?b","values":["abc","bcd","bab","bba","bbab","b",true,[],{}]}"#,
            r#"["bab","bba","bbab"]"#,
        ),
        (
            "functions, search, arg is a function expression",
            "$.values[?search(@, value($..['regex']))]",
            r#"{"regex":"b.?b","values":["abc","bab"]}"#,
            r#"["bab"]"#,
        ),
        (
            "of the item itself",
            "$[?match(@.text, @.regex)].text",
            r#"[{"text":"a1","regex":"a[0-9]"},{"text":"b1","regex":"a[0-9]"},{"text":"c","regex":7},{"text":"d"}]"#,
            r#"["a1"]"#,
        ),
        (
            "what is no regular expression fits nothing",
            "$.values[?!search(@, $.regex)]",
            r#"{"regex":"(a","values":["(a"]}"#,
            r#"["(a"]"#,
        ),
    ] {
        let data: Value = serde_json::from_str(data).unwrap();
        let wanted: Value = serde_json::from_str(found).unwrap();
        let query = Query::parse(text).unwrap_or_else(|error| panic!("{case}: {error:?}"));
        let found = query.find(Root::from(&data), &budget());
        assert_eq!(found.unwrap(), Some(wanted), "{case}");
    }
}

//! The cost of searches: a count that is the same everywhere and has a bound for any path and data.

use super::Condition;
use crate::expression::sample::{json, on_small_stack};
use crate::graph::{Budget, FaultKind, Guard, Root};
use crate::limits::Limits;
use crate::path::Query;
use crate::value::{Object, Text, Value};

/// The default number of steps for small data.
const STEPS: usize = 1_000_000;

fn with(steps: usize, data: &Value) -> Budget {
    let limits = Limits {
        evaluation_steps: steps,
        ..Limits::default()
    };
    Budget::new(&limits, Root::from(data).json_len())
}

/// The result of a search, or `None` if its budget ends; and the steps it took.
fn search(path: &str, data: &Value) -> (Option<Value>, usize) {
    let budget = with(STEPS, data);
    let query = Query::parse(path).unwrap();
    let found = query.find(Root::from(data), &budget).ok().flatten();
    (found, budget.spent())
}

fn nested(levels: usize) -> Value {
    let object = |inner: Value| Value::Object([("k".into(), inner)].into_iter().collect());
    (0..levels).fold(Value::Object(Object::new()), |inner, _| object(inner))
}

fn items(count: usize) -> Value {
    let all: Vec<String> = (0..count).map(|index| format!(r#"{{"b":{index}}}"#)).collect();
    json(&format!(r#"{{"a":[{}]}}"#, all.join(",")))
}

#[test]
fn what_grows_faster_than_the_data_ends_at_the_budget() {
    let (deep, wide) = (nested(95), items(9_000));
    for (path, data) in [
        ("$..k..k..k..k..k..k..k..k", &deep),
        ("$..*..*..*..*..*", &deep),
        ("$.a[?$.a[?$.a[?@.b > 1].b].b]", &wide),
        ("$.a[?count($.a[?@.b > 1]) > 1]", &wide),
        ("$.a[?$.a[?@ == $.a]]", &wide),
        ("$..[?@..b]..b", &wide),
    ] {
        let given = STEPS + Root::from(data).json_len();
        let (found, spent) = search(path, data);
        let exhausted = spent == given;
        assert_eq!(found.is_none(), exhausted, "{path}: {spent}");
        assert!(spent <= given, "{path}");
    }
    assert_eq!(search("$..k..k..k..k..k..k..k..k", &deep).0, None);
}

#[test]
fn what_grows_with_the_data_fits() {
    let data = items(200_000);
    for path in [
        "$.a[*]",
        "$.a[*].b",
        "$..b",
        "$.a[?@.b >= 0]",
        "$.a[?@.b >= 0 && @.b < 7].b",
        "$..*",
        "$.a[::2]",
    ] {
        let budget = with(0, &data);
        let query = Query::parse(path).unwrap();
        assert!(query.find(Root::from(&data), &with(STEPS, &data)).is_ok(), "{path}");
        // Each byte of the data adds one step, so the bound grows with the data.
        assert!(budget.spent() == 0 && Budget::unlimited().take(Root::from(&data).json_len()).is_ok());
    }
    let (_, few) = search("$.a[*].b", &items(1_000));
    let (_, many) = search("$.a[*].b", &items(2_000));
    assert!(many <= 2 * few, "{few} {many}");
}

#[test]
fn counts_are_exact() {
    let data = json(r#"{"a": [{"b": 1}, {"b": 2}, {"b": 3}], "s": "xyz"}"#);
    // A key, a list, one step for each item, four for each item that is kept.
    for (path, steps) in [
        ("$.a", 0),
        ("$.a[2].b", 0),
        ("$.a[*]", 2 + 3 + 3 * 4),
        ("$.a[*].b", 2 + 3 + 3 + 3 * 4),
        ("$.a[0:2]", 2 + 2 + 2 * 4),
        ("$.a['x','y']", 3),
        ("$.a[?@.b > 1]", 2 + 3 * 2 + 2 * 4),
    ] {
        assert_eq!(search(path, &data).1, steps, "{path}");
    }
}

#[test]
fn a_filter_stops_where_it_knows() {
    let data = items(10_000);
    let (_, all) = search("$.a[?count($.a[*]) > 0]", &items(100));
    let (found, spent) = search("$.a[?$.a[*]]", &data);
    assert!(found.is_some() && spent < 100_000, "{spent}");
    assert!(all > 10_000, "counting has to look at all");
}

#[test]
fn deep_paths_need_no_stack() {
    on_small_stack(|| {
        let data = nested(90);
        for path in [format!("${}", "..*".repeat(1_300)), format!("${}", "[*]".repeat(1_300))] {
            let budget = with(50_000, &data);
            drop(Query::parse(&path).unwrap().find(Root::from(&data), &budget));
        }
    });
}

#[test]
fn expressions_cost_by_their_size_and_that_of_the_text() {
    let text = "a".repeat(100_000);
    let data = json(&format!(r#"["{text}","{text}","{text}"]"#));
    let (_, plain) = search("$[?search(@, 'b')]", &data);
    let (_, heavy) = search("$[?search(@, '(a|aa|aaa){1,99}b')]", &data);
    assert!(plain < heavy, "{plain} {heavy}");
    let rows: Vec<Value> = (0..20_000).map(|_| Value::from("abc")).collect();
    // An expression is built once for any number of texts.
    let (found, spent) = search("$[?match(@, '[a-z]{1,60}')]", &Value::from(rows));
    assert!(found.is_some(), "{spent}");
}

#[test]
fn conditions_have_a_budget() {
    let data = json(&format!(
        r#"{{"a": [{0}], "b": [{0}], "s": "x"}}"#,
        vec!["[1,2]"; 3_000].join(",")
    ));
    let costs = |text: &str| {
        let budget = with(0, &data);
        let held = Condition::parse(text).unwrap().holds(Root::from(&data), &budget);
        (held, budget.spent())
    };
    assert_eq!(costs("$.s == 'x' && $.a[0][1] == 2"), (Ok(true), 0));
    let (held, spent) = costs("'y' in $.a");
    assert_eq!((held, spent), (Ok(false), 3_000));
    let (held, spent) = costs("$.a == $.b");
    assert!(held.is_ok() && spent > 1_000);
    let fault = costs(&vec!["$.a == $.b"; 50].join(" && ")).0.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Limit);
    assert!(
        fault.cause.contains("`$.a == $.b &&") && fault.cause.contains("steps"),
        "{}",
        fault.cause
    );
}

#[test]
fn a_whole_that_is_copied_is_paid_for() {
    let mut overlay = crate::value::Overlay::new(
        (0..1_000)
            .map(|index| (Text::from(format!("k{index}")), Value::Null))
            .collect::<Value>(),
    );
    let whole = Query::parse("$").unwrap();
    let budget = Budget::unlimited();
    assert!(whole.find(Root::Overlay(&overlay), &budget).is_ok() && budget.spent() == 0);
    overlay.insert("over".into(), Value::Null);
    assert!(whole.find(Root::Overlay(&overlay), &budget).is_ok() && budget.spent() >= 1_001);
}

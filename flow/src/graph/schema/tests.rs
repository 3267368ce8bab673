use super::*;
use serde_json::json;

fn compiled(schema: &serde_json::Value) -> Result<Schema, SchemaError> {
    Schema::new(&Value::from(schema), &Limits::default())
}

/// The steps of an evaluation.
fn steps(schema: &serde_json::Value, value: &serde_json::Value) -> usize {
    let budget = Budget::unlimited();
    let schema = Outline::of(schema).unwrap();
    cost::of(&schema, &Value::from(value), &budget).unwrap().whether
}

fn is_too_costly(schema: &serde_json::Value) -> bool {
    matches!(compiled(schema), Err(SchemaError::TooCostly(_)))
}

/// `{"a": {"a": …}}`.
fn deep(depth: usize) -> serde_json::Value {
    (0..depth).fold(json!(1), |inner, _| json!({ "a": inner }))
}

#[test]
fn schemas_that_double_are_refused_before_they_are_built() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let pairs = (0..8).fold(json!({"type": "object"}), |inner, _| json!({ keyword: [inner, inner] }));
        assert!(compiled(&pairs).is_ok(), "{keyword}");
        let mut fan = json!({"$ref": "#/$defs/a0", "$defs": {"a40": true}});
        for at in 0..40 {
            let next = json!({"$ref": format!("#/$defs/a{}", at + 1)});
            fan["$defs"][format!("a{at}")] = json!({ keyword: [next, next] });
        }
        assert!(is_too_costly(&fan), "{keyword}");
    }
}

#[test]
fn references_that_lead_nowhere_else_are_refused() {
    assert!(is_too_costly(&json!({"$ref": "#"})));
    assert!(is_too_costly(
        &json!({"$dynamicAnchor": "a", "not": {"$dynamicRef": "#a"}})
    ));
    assert!(is_too_costly(
        &json!({"$id": "https://a/b", "anyOf": [true, {"$ref": "b"}]})
    ));
    let mut chain = json!({"$ref": "#/$defs/a0", "$defs": {"a9000": true}});
    for at in 0..9000 {
        chain["$defs"][format!("a{at}")] = json!({"properties": {"x": {"$ref": format!("#/$defs/a{}", at + 1)}}});
    }
    assert!(is_too_costly(&chain));
    assert!(matches!(
        compiled(&json!({"$ref": "#/nowhere"})),
        Err(SchemaError::Wrong(_))
    ));
}

#[test]
fn usual_schemas_take_steps_as_the_value_grows() {
    let tree = json!({
        "$id": "https://example.com/tree", "type": "object", "required": ["a"],
        "properties": {"a": {"oneOf": [{"type": "integer"}, {"$ref": "#"}]}},
        "patternProperties": {"^x": {"$ref": "tree"}},
        "additionalProperties": {"$ref": "#"}, "propertyNames": {"pattern": "^[a-z]{1,9}$"},
    });
    let (ten, twenty) = (steps(&tree, &deep(10)), steps(&tree, &deep(20)));
    assert!(ten < 400 && twenty < 2 * ten, "{ten} {twenty}");
    let schema = compiled(&tree).unwrap();
    for value in [deep(90), json!({"a": 1, "x": deep(3), "z": deep(3)})] {
        let budget = Budget::new(&Limits::default(), 0);
        assert_eq!(schema.violations(&Value::from(&value), &budget), Ok(Vec::new()));
    }
    let standard = json!({"$ref": "https://json-schema.org/draft/2020-12/schema"});
    assert!(compiled(&standard).is_ok());
    let named =
        json!({"$ref": "#n", "$defs": {"a b": {"$anchor": "n", "allOf": [{"$ref": "#/$defs/c%20d"}]}, "c d": true}});
    assert!(compiled(&named).is_ok());
}

#[test]
fn what_multiplies_with_the_value_is_refused_before_it_is_begun() {
    let again = json!({"$ref": "#"});
    let doubling = json!({"allOf": [{"additionalProperties": again}, {"properties": {"a": again}}]});
    let schema = compiled(&doubling).unwrap();
    let budget = Budget::new(&Limits::default(), 1000);
    assert_eq!(schema.violations(&Value::from(&deep(10)), &budget), Ok(Vec::new()));
    let spent = budget.spent();
    assert!(spent > 1 << 11, "{spent}");
    assert_eq!(schema.violations(&Value::from(&deep(40)), &budget), Err(Exhausted));
    assert_eq!(budget.spent(), spent, "nothing was begun");

    let chain = (0..100).fold(
        json!({"properties": {"a": {"$ref": "#"}}}),
        |inner, _| json!({"allOf": [inner]}),
    );
    let schema = compiled(&chain).unwrap();
    assert_eq!(schema.violations(&Value::from(&deep(4)), &budget), Ok(Vec::new()));
    assert_eq!(
        schema.violations(&Value::from(&deep(90)), &budget),
        Err(Exhausted),
        "too deep"
    );
}

#[test]
fn keywords_take_as_many_steps_as_they_need() {
    let long = json!("x".repeat(64_000));
    let more = |schema, value: &serde_json::Value| steps(&schema, value) - steps(&json!({}), value);
    assert!(more(json!({"pattern": "x$"}), &long) >= 4_000);
    assert!(more(json!({"pattern": "(x{1,40}){1,40}$"}), &long) >= 400_000);
    assert!(more(json!({"pattern": "^(?=x)"}), &json!("x")) >= 1_000);
    assert!(more(json!({"enum": ["x", "y", "z"]}), &long) >= 3_000);
    assert!(more(json!({"uniqueItems": true}), &json!([long])) >= 16_000);
    let names: serde_json::Map<_, _> = (0..1000).map(|at| (format!("a{at}"), json!(true))).collect();
    assert!(more(json!({"properties": names}), &json!({})) >= 1_000);
    let patterns: serde_json::Map<_, _> = (0..100).map(|at| (format!("b{at}"), json!(true))).collect();
    assert!(more(json!({"patternProperties": patterns}), &json!(names)) >= 100_000);
    let many: Vec<_> = (0..2_000)
        .map(|at| json!({"pattern": format!("{at}[a-z]{{1,60}}")}))
        .collect();
    assert!(is_too_costly(&json!({"properties": {"a": {"anyOf": many}}})));
    assert!(is_too_costly(&json!({"pattern": r"\p{L}".repeat(3_000)})));
}

#[test]
fn a_pattern_that_looks_ahead_from_anywhere_takes_a_walk_for_each_place() {
    let steps_of = |pattern: &str, bytes: usize| steps(&json!({ "pattern": pattern }), &json!("a".repeat(bytes)));
    let quadratic = [
        "(?=.*[0-9])(?=.*[a-z])",
        "(?=.*[0-9])x",
        "^(a(?=.*b))*",
        "^.*(?=.*x)y",
        "^(?=(?:.(?=.*x))*)",
        "^(?=.*x)*",
        "^(?=.*x)a|(?=.*y)b",
        "(a*)*\\1b",
        "(?<=a.*)b",
        "^(?=[[])(?=.*x)",
    ];
    for pattern in quadratic {
        let (short, long) = (steps_of(pattern, 1_000), steps_of(pattern, 10_000));
        assert!(long > 50 * short / 2 && long > 5_000_000, "{pattern}: {short} {long}");
    }
    let linear = [
        "^(?=.*[0-9])(?=.*[a-z]).{8,64}$",
        "^(?!.*\\))(?=[^)]*a)x",
        "^(?=.*(?:ab|c))x",
        "(?:ab)+",
        "(?i)(?<name>a)(?P<other>b)(?s-m:.)",
    ];
    for pattern in linear {
        let (short, long) = (steps_of(pattern, 10_000), steps_of(pattern, 100_000));
        assert!(long < 11 * short && long < 1_000_000, "{pattern}: {short} {long}");
    }
    let schema = compiled(&json!({"pattern": "(?=.*[0-9])(?=.*[a-z])"})).unwrap();
    let budget = |bytes| Budget::new(&Limits::default(), bytes);
    let violations = |bytes: usize| schema.violations(&Value::from("a".repeat(bytes)), &budget(bytes));
    assert!(violations(500).is_ok_and(|violations| violations.len() == 1));
    assert_eq!(violations(20_000), Err(Exhausted));
}

#[test]
fn unevaluated_members_are_found_anew_at_each_level() {
    let levels = |depth| {
        (0..depth).fold(
            json!({}),
            |inner, _| json!({"allOf": [inner], "unevaluatedProperties": false}),
        )
    };
    assert!(steps(&levels(10), &deep(1)) > 2 * steps(&levels(9), &deep(1)));
    assert!(is_too_costly(&levels(60)));
}

#[test]
fn where_a_value_does_not_fit_is_told_as_far_as_steps_reach() {
    let schema = (0..9).fold(json!({"type": "object"}), |inner, _| json!({"anyOf": [inner, inner]}));
    let schema = compiled(&schema).unwrap();
    let value = Value::from(1_u64);
    let told = schema.violations(&value, &Budget::new(&Limits::default(), 0)).unwrap();
    assert!(told[0].message.contains("anyOf"), "{}", told[0].message);
    let few = Limits {
        evaluation_steps: cost::of(&schema.outline, &value, &Budget::unlimited()).unwrap().whether,
        ..Limits::default()
    };
    let told = schema.violations(&value, &Budget::new(&few, 0)).unwrap();
    assert_eq!(told[0].message, "does not fit; to say where takes too many steps");
}

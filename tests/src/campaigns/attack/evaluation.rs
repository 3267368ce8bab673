//! Small texts that take long, or much room, to evaluate.

use super::probe::Probe;
use super::server::Ground;
use super::{Seen, Try};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const BOUND: &str = "ends by FnF.LimitExceeded or well within 5 s; < 100 MB more; starts of others within 2 s";
const SOON: Duration = Duration::from_secs(5);

pub(super) const TRIES: &[Try] = &[
    Try::quick("evaluation/descent", "`$..k..k..k…` over 95 levels", BOUND, |ground| {
        Box::pin(evaluates(ground, mapping("$input..k..k..k..k..k..k"), deep(95)))
    }),
    Try::quick(
        "evaluation/descent-of-all",
        "`$..*..*..*..*..*` over 95 levels",
        BOUND,
        |ground| Box::pin(evaluates(ground, mapping("$input..*..*..*..*..*"), deep(95))),
    ),
    Try::quick(
        "evaluation/nested-filters",
        "filters in filters over 9,000 items",
        BOUND,
        |ground| {
            let path = "$input.a[?$.a[?$.a[?@.b > 1].b].b]";
            Box::pin(evaluates(ground, mapping(path), items(9_000)))
        },
    ),
    Try::quick(
        "evaluation/filter-of-descents",
        "a filter that searches everything for each item",
        BOUND,
        |ground| {
            let path = "$input.a[?count($..b) > count($..*)]";
            Box::pin(evaluates(ground, mapping(path), items(9_000)))
        },
    ),
    Try::quick(
        "evaluation/selected-twice",
        "a thousand names of the same large array",
        BOUND,
        |ground| {
            let path = format!("$input[{}]", vec!["'a'"; 900].join(","));
            Box::pin(evaluates(ground, mapping(&path), items(9_000)))
        },
    ),
    Try::quick(
        "evaluation/mappings",
        "a thousand mappings, each of which searches everything",
        BOUND,
        |ground| {
            let mappings: Vec<Value> = (0..1_000)
                .map(|n| json!({"target": format!("t{n}"), "source": "$input..b"}))
                .collect();
            let step = json!({"type": "pass", "name": "a", "outputMappings": mappings});
            Box::pin(evaluates(ground, json!([step]), items(9_000)))
        },
    ),
    Try::quick(
        "evaluation/template",
        "a template with 2,000 times a text of 200 KB",
        BOUND,
        |ground| {
            let template = "{$input.s}".repeat(2_000);
            let step = json!({"type": "pass", "name": "a", "outputMappings": [{"target": "t", "template": template}]});
            Box::pin(evaluates(ground, json!([step]), json!({"s": "x".repeat(200_000)})))
        },
    ),
    Try::slow(
        "evaluation/templates",
        "1,000 templates with 3 times a text of 200 KB each",
        BOUND,
        |ground| {
            let template = "{$input.s}".repeat(3);
            let mappings: Vec<Value> = (0..1_000)
                .map(|n| json!({"target": format!("t{n}"), "template": template}))
                .collect();
            let step = json!({"type": "pass", "name": "a", "outputMappings": mappings});
            Box::pin(evaluates(ground, json!([step]), json!({"s": "x".repeat(200_000)})))
        },
    ),
    Try::quick(
        "evaluation/parameters",
        "such paths among a task's parameters",
        BOUND,
        |ground| {
            let step = json!({
                "type": "task", "name": "a", "resourceArn": "http://127.0.0.1:1/",
                "serviceParams": {"body": {"x": "$..k..k..k..k..k..k"}},
            });
            Box::pin(evaluates(ground, json!([step]), deep(95)))
        },
    ),
    Try::quick(
        "evaluation/collection",
        "such a path as a foreach's collection",
        BOUND,
        |ground| {
            let step = json!({
                "type": "foreach", "name": "a", "steps": [{"type": "pass", "name": "b"}],
                "iterationMapping": {"collection": "$..*..*..*..*..*", "item": "x"},
            });
            Box::pin(evaluates(ground, json!([step]), deep(95)))
        },
    ),
    Try::quick(
        "evaluation/condition",
        "a condition of 270 comparisons of large arrays",
        BOUND,
        |ground| {
            let condition = vec!["$.a == $.b"; 270].join(" && ");
            let step = json!({
                "type": "choice", "name": "a",
                "choices": [{"condition": condition, "steps": [{"type": "pass", "name": "b"}]}],
            });
            let large = items(9_000);
            Box::pin(evaluates(
                ground,
                json!([step]),
                json!({"a": large["a"], "b": large["a"]}),
            ))
        },
    ),
    Try::quick(
        "evaluation/pattern",
        "a regular expression over many long texts",
        BOUND,
        |ground| {
            let texts: Vec<String> = vec!["a".repeat(100_000); 2];
            let path = "$input.a[?search($.a[0], '(a|aa)+b')]";
            let many: Vec<Value> = vec![json!(0); 1_000];
            let all: Vec<Value> = texts.into_iter().map(Value::from).chain(many).collect();
            Box::pin(evaluates(ground, mapping(path), json!({"a": all})))
        },
    ),
    Try::quick(
        "evaluation/schema",
        "an `inputSchema` of 24 nested pairs of `allOf`",
        BOUND,
        |ground| Box::pin(schema(ground)),
    ),
    Try::quick(
        "evaluation/unique-items",
        "an `inputSchema` with `uniqueItems`, 20,000 lists",
        BOUND,
        |ground| {
            let schema = json!({"type": "object", "properties": {"a": {"uniqueItems": true}}});
            let lists: Vec<Value> = (0..20_000).map(|n| json!([n])).collect();
            Box::pin(with_schema(ground, schema, json!({"a": lists})))
        },
    ),
    Try::quick(
        "evaluation/schema-pattern",
        "an `inputSchema` with a pattern that backtracks",
        BOUND,
        |ground| {
            let schema = json!({"type": "object", "properties": {"a": {"pattern": "^(a|aa)+\\1$"}}});
            Box::pin(with_schema(ground, schema, json!({"a": "a".repeat(50_000)})))
        },
    ),
    Try::quick(
        "evaluation/schema-looks-ahead",
        "an `inputSchema` with a pattern that looks ahead from each place",
        BOUND,
        |ground| {
            let schema = json!({"type": "object", "properties": {"a": {"pattern": "(?=.*[0-9])(?=.*[a-z])"}}});
            Box::pin(with_schema(ground, schema, json!({"a": "a".repeat(200_000)})))
        },
    ),
    Try::quick(
        "evaluation/unknown-members",
        "a definition of 1 MB with 80,000 unknown members",
        "4xx within 5 s; starts of others within 2 s",
        |ground| {
            let members: Vec<String> = (0..80_000).map(|n| format!("\"m{n}\":1")).collect();
            let text = format!(
                "{{\"version\":\"v1\",\"type\":\"flow\",\"steps\":[],{}}}",
                members.join(",")
            );
            Box::pin(defines(ground, text, "application/json"))
        },
    ),
    Try::quick(
        "evaluation/yaml-members",
        "YAML with 40,000 unknown members",
        "4xx within 5 s; starts of others within 2 s",
        |ground| {
            let members: String = (0..40_000).map(|n| format!("m{n}: 1\n")).collect();
            Box::pin(defines(
                ground,
                format!("version: v1\ntype: flow\nsteps: []\n{members}"),
                "application/yaml",
            ))
        },
    ),
    Try::quick(
        "evaluation/steps",
        "a definition of 9,000 steps that all go to one that is missing",
        "4xx within 5 s; starts of others within 2 s",
        |ground| {
            let step = |n: u32| json!({"type": "pass", "name": format!("s{n}"), "goto": "nowhere"});
            let steps: Vec<Value> = (0..9_000).map(step).collect();
            let text = json!({"version": "v1", "type": "flow", "steps": steps}).to_string();
            Box::pin(defines(ground, text, "application/json"))
        },
    ),
    Try::quick(
        "evaluation/same-name",
        "a definition of 9,000 steps of one name",
        "4xx within 5 s; starts of others within 2 s",
        |ground| {
            let steps = vec![json!({"type": "pass", "name": "same"}); 9_000];
            let text = json!({"version": "v1", "type": "flow", "steps": steps}).to_string();
            Box::pin(defines(ground, text, "application/json"))
        },
    ),
];

/// Data so many levels deep.
pub(super) fn deep(levels: usize) -> Value {
    (0..levels).fold(json!({}), |inside, _| json!({"k": inside}))
}

fn items(count: usize) -> Value {
    json!({"a": vec![json!({"b": 2}); count]})
}

fn mapping(path: &str) -> Value {
    json!([{"type": "pass", "name": "a", "outputMappings": [{"target": "r", "source": path}]}])
}

async fn evaluates(ground: Ground, steps: Value, input: Value) -> Result<Seen, String> {
    judge(ground, json!({"version": "v1", "type": "flow", "steps": steps}), input).await
}

async fn judge(ground: Ground, definition: Value, input: Value) -> Result<Seen, String> {
    let server = ground.server().await?;
    server.flow("other", &json!([{"type": "pass", "name": "a"}])).await?;
    let put = server.put("/v1/flows/bad", &definition).await;
    if put.refused() {
        return Ok(Seen::new(true, format!("the definition is refused: {}", put.text)));
    }
    put.well("the flow")?;
    let before = server.memory();
    server.forget_peak();
    let probe = Probe::starts(&server, "other");
    let begun = Instant::now();
    let start = server
        .request("POST", "/v1/flows/bad/executions")
        .body(json!({"input": input}).to_string());
    let started = server.send(&start.patience(SOON)).await;
    let mut wrong = Vec::new();
    let mut text = format!("the start: {}", started.status);
    if started.status == 0 || started.status >= 500 {
        wrong.push(format!("the start: {} {}", started.status, started.text));
    } else if let Some(id) = started.json()["id"].as_str() {
        let ended = server.end_of(id, SOON).await;
        text = format!(
            "{} {} after {} ms",
            ended["status"],
            ended["error"],
            begun.elapsed().as_millis()
        );
        // Other failures come from something else than the budget: from the size, or because nobody
        // is there.
        if !matches!(ended["status"].as_str(), Some("Succeeded" | "Failed")) {
            wrong.push(format!("not over after {} ms", begun.elapsed().as_millis()));
        }
    }
    let met = probe.finish().await;
    wrong.extend(met.wrong(Duration::from_secs(2)));
    let grown = server.peak().saturating_sub(before);
    if grown >= 100 {
        wrong.push(format!("{grown} MB more"));
    }
    Ok(Seen::unless(
        &wrong,
        format!("{text}, {grown} MB more, others {} ms", met.longest.as_millis()),
    ))
}

async fn schema(ground: Ground) -> Result<Seen, String> {
    // Written out it would be as large as what it unfolds to.
    let definitions: serde_json::Map<String, Value> = (0..24)
        .map(|n| {
            let next = match n {
                0 => json!({"type": "object"}),
                n => {
                    json!({"allOf": [{"$ref": format!("#/$defs/d{}", n - 1)}, {"$ref": format!("#/$defs/d{}", n - 1)}]})
                }
            };
            (format!("d{n}"), next)
        })
        .collect();
    let schema = json!({"$ref": "#/$defs/d23", "$defs": definitions});
    with_schema(ground, schema, json!({})).await
}

async fn with_schema(ground: Ground, schema: Value, input: Value) -> Result<Seen, String> {
    let steps = json!([{"type": "pass", "name": "a"}]);
    let definition = json!({"version": "v1", "type": "flow", "inputSchema": schema, "steps": steps});
    judge(ground, definition, input).await
}

async fn defines(ground: Ground, text: String, kind: &str) -> Result<Seen, String> {
    let server = ground.server().await?;
    server.flow("other", &json!([{"type": "pass", "name": "a"}])).await?;
    let probe = Probe::starts(&server, "other");
    let begun = Instant::now();
    let put = server
        .request("PUT", "/v1/flows/bad")
        .header("Content-Type", kind)
        .body(text);
    let answer = server.send(&put.patience(Duration::from_secs(15))).await;
    let took = begun.elapsed();
    let met = probe.finish().await;
    let mut wrong: Vec<String> = met.wrong(Duration::from_secs(2)).into_iter().collect();
    if !answer.refused() || took > SOON {
        wrong.push(format!("{} after {} ms", answer.status, took.as_millis()));
    }
    let text = format!(
        "{} after {} ms, others {} ms",
        answer.status,
        took.as_millis(),
        met.longest.as_millis()
    );
    Ok(Seen::unless(&wrong, text))
}

//! The allowed imports between crates: imports point down only.

use super::metadata::{closure, own};
use super::nothing_wrong;

/// The project's packages, floor by floor: a package may use packages of lower floors only.
const FLOORS: [&[&str]; 12] = [
    // The crate that starts services for tests does not depend on the project.
    &["starbridge-flow", "starbridge-services"],
    &["starbridge-fdl"],
    &["starbridge-machine"],
    &["starbridge-ports"],
    &["starbridge-runtime", "starbridge-aws"],
    &CONCRETE,
    &["starbridge-simulator"],
    // Diagrams are tested with simulated runs.
    &["starbridge-diagram", "starbridge-node"],
    &["starbridge-console"],
    &["starbridge-server"],
    &["starbridge-cli", "starbridge-lambda-host"],
    &["starbridge-tests", "starbridge-fuzz", "xtask"],
];

/// Crates that are built with the language. All others know only what languages share; their tests
/// may use the language.
const ON_FDL: [&str; 4] = [
    "starbridge-node",
    "starbridge-cli",
    "starbridge-tests",
    "starbridge-fuzz",
];

/// The stores and connectors. They know neither the runtime nor each other.
const CONCRETE: [&str; 10] = [
    "starbridge-memory",
    "starbridge-sqlite",
    "starbridge-dynamodb",
    "starbridge-postgres",
    "starbridge-connector-http",
    "starbridge-connector-command",
    "starbridge-connector-redis",
    "starbridge-connector-s3",
    "starbridge-connector-sqs",
    "starbridge-connector-lambda",
];

/// The stores and connectors that reach AWS.
const ON_AWS: [&str; 4] = [
    "starbridge-dynamodb",
    "starbridge-connector-s3",
    "starbridge-connector-sqs",
    "starbridge-connector-lambda",
];

fn floor(name: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&name))
}

/// Whether a package may be built with another of the project.
fn may_use(user: &str, used: &str) -> bool {
    let (Some(above), Some(below)) = (floor(user), floor(used)) else {
        return false;
    };
    // Only the node, and the tests, know which stores and connectors there are.
    let all = matches!(user, "starbridge-node" | "starbridge-tests");
    above > below
        && match used {
            "starbridge-aws" => all || ON_AWS.contains(&user),
            "starbridge-runtime" => !CONCRETE.contains(&user),
            "starbridge-memory" => all || user == "starbridge-simulator",
            used => all || !CONCRETE.contains(&used),
        }
}

#[test]
fn imports_point_down() {
    let own = own();
    let named = FLOORS
        .iter()
        .copied()
        .flatten()
        .filter(|name| !own.contains_key(**name));
    let mut wrong: Vec<String> = named.map(|name| format!("there is no package `{name}`")).collect();
    for (name, package) in &own {
        if floor(name).is_none() {
            wrong.push(format!("`{name}` has no place in this test's table"));
        }
        // A campaign is a test, too: one of them kills a database.
        let starts = matches!(*name, "xtask" | "starbridge-tests");
        if package.uses.contains("starbridge-services") && !starts {
            wrong.push(format!("`{name}` may start services only in its tests"));
        }
        for used in package.uses.iter().chain(&package.tests_use) {
            if own.contains_key(used.as_str()) && !may_use(name, used) {
                wrong.push(format!("`{name}` may not use `{used}`"));
            }
        }
        if package.uses.contains("starbridge-fdl") && !ON_FDL.contains(name) {
            wrong.push(format!("`{name}` may use the language only in its tests"));
        }
    }
    nothing_wrong(&wrong);
}

/// All that the core crates may be built with.
const CORE: [(&str, &[&str]); 5] = [
    (
        "starbridge-flow",
        &[
            "granit-parser",
            "indexmap",
            "jiff",
            "jsonschema",
            "regex",
            "regex-syntax",
            "rustc-hash",
            "serde",
            "serde_json",
        ],
    ),
    (
        "starbridge-fdl",
        &["rustc-hash", "serde_json", "sha2", "starbridge-flow"],
    ),
    (
        "starbridge-machine",
        &["rustc-hash", "serde", "serde_json", "starbridge-flow"],
    ),
    ("starbridge-ports", &["serde", "starbridge-flow", "starbridge-machine"]),
    (
        "starbridge-runtime",
        &[
            "hmac",
            "jiff",
            "md-5",
            "rustc-hash",
            "serde_json",
            "sha2",
            "starbridge-flow",
            "starbridge-machine",
            "starbridge-ports",
            "tokio",
            "tracing",
        ],
    ),
];

#[test]
fn the_core_uses_what_it_may_and_nothing_else() {
    let own = own();
    let mut wrong = Vec::new();
    for (name, allowed) in CORE {
        let used = own.get(name).map(|package| &package.uses);
        for used in used.into_iter().flatten() {
            if !allowed.contains(&used.as_str()) {
                wrong.push(format!("`{name}` may not use `{used}`"));
            }
        }
    }
    nothing_wrong(&wrong);
}

#[test]
fn nothing_below_the_runtime_waits_or_calls() {
    const BANNED: [&str; 16] = [
        "async-std",
        "async-trait",
        "futures",
        "futures-core",
        "futures-util",
        "hyper",
        "mio",
        "rand",
        "rand_core",
        "reqwest",
        "rusqlite",
        "smol",
        "socket2",
        "tokio",
        "tokio-postgres",
        "tracing",
    ];
    let mut wrong = Vec::new();
    for name in [
        "starbridge-flow",
        "starbridge-fdl",
        "starbridge-machine",
        "starbridge-ports",
    ] {
        for used in closure(name) {
            if BANNED.contains(&used) || used.starts_with("aws-") {
                wrong.push(format!("`{used}` ends up in `{name}`"));
            }
        }
    }
    nothing_wrong(&wrong);
}

#[test]
fn only_their_own_packages_know_aws() {
    let knows = |name: &str| name.starts_with("aws-") || name.starts_with("lambda_");
    let mut wrong = Vec::new();
    for (name, package) in own() {
        let may = ON_AWS.contains(&name) || matches!(name, "starbridge-aws" | "starbridge-lambda-host");
        for used in package.uses.iter().filter(|used| !may && knows(used)) {
            wrong.push(format!("`{name}` may not use `{used}`"));
        }
    }
    nothing_wrong(&wrong);
}

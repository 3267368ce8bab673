//! Who may use whom: imports point down only.

use super::metadata::{closure, own};
use super::nothing_wrong;

/// Where a package stands: it may use packages of lower floors only.
fn floor(name: &str) -> Option<u32> {
    Some(match name {
        // What starts services for tests knows nothing of the project.
        "starbridge-fdl" | "starbridge-services" => 0,
        "starbridge-machine" => 1,
        "starbridge-ports" => 2,
        "starbridge-runtime" => 3,
        // Stores and connectors know neither the runtime nor each other: `may_use` says so.
        "starbridge-memory" | "starbridge-sqlite" | "starbridge-postgres" | "starbridge-dynamodb" => 3,
        "starbridge-http" | "starbridge-queue" | "starbridge-s3" | "starbridge-sqs" | "starbridge-redis"
        | "starbridge-lambda" | "starbridge-command" | "starbridge-aws" => 3,
        "starbridge-kit" => 4,
        "starbridge-server" => 5,
        "starbridge-cli" | "starbridge-bootstrap" => 6,
        "starbridge-tests" | "xtask" => 7,
        _ => return None,
    })
}

/// Whether a package may be built with another of the project.
fn may_use(user: &str, used: &str) -> bool {
    let (Some(above), Some(below)) = (floor(user), floor(used)) else {
        return false;
    };
    if used == "starbridge-aws"
        && matches!(
            user,
            "starbridge-s3" | "starbridge-sqs" | "starbridge-lambda" | "starbridge-dynamodb"
        )
    {
        return true;
    }
    let concrete = below == 3 && used != "starbridge-runtime";
    // Only the kit, and the tests, know which stores and connectors there are.
    above > below && (!concrete || matches!(user, "starbridge-kit" | "starbridge-tests"))
}

#[test]
fn imports_point_down() {
    let own = own();
    let mut wrong = Vec::new();
    for (name, package) in &own {
        if floor(name).is_none() {
            wrong.push(format!("`{name}` has no place in this test's table"));
        }
        if package.uses.contains("starbridge-services") && *name != "xtask" {
            wrong.push(format!("`{name}` may start services only in its tests"));
        }
        for used in package.uses.iter().chain(&package.tests_use) {
            if own.contains_key(used.as_str()) && !may_use(name, used) {
                wrong.push(format!("`{name}` may not use `{used}`"));
            }
        }
    }
    nothing_wrong(&wrong);
}

/// All that the core crates may be built with.
const CORE: [(&str, &[&str]); 4] = [
    (
        "starbridge-fdl",
        &[
            "foldhash",
            "granit-parser",
            "indexmap",
            "jiff",
            "jsonschema",
            "regex",
            "regex-syntax",
            "rustc-hash",
            "serde",
            "serde_json",
            "sha2",
        ],
    ),
    (
        "starbridge-machine",
        &["rustc-hash", "serde", "serde_json", "starbridge-fdl"],
    ),
    ("starbridge-ports", &["serde", "starbridge-fdl", "starbridge-machine"]),
    (
        "starbridge-runtime",
        &[
            "hmac",
            "jiff",
            "rustc-hash",
            "serde_json",
            "sha2",
            "starbridge-fdl",
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
    for name in ["starbridge-fdl", "starbridge-machine", "starbridge-ports"] {
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
        let may = [
            "starbridge-aws",
            "starbridge-dynamodb",
            "starbridge-s3",
            "starbridge-sqs",
            "starbridge-lambda",
            "starbridge-bootstrap",
        ]
        .contains(&name);
        for used in package.uses.iter().filter(|used| !may && knows(used)) {
            wrong.push(format!("`{name}` may not use `{used}`"));
        }
    }
    nothing_wrong(&wrong);
}

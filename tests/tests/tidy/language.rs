//! Code below the hosts knows no language: errors have kinds there, and the language of their flow
//! names them.

use super::nothing_wrong;
use super::purity::{sources_below, without_tests};

/// All below the hosts but the language itself.
const BELOW: [&str; 9] = [
    "flow/src/",
    "interpreter/machine/src/",
    "interpreter/ports/src/",
    "interpreter/runtime/src/",
    "stores/memory/src/",
    "stores/sqlite/src/",
    "stores/dynamodb/src/",
    "stores/postgres/src/",
    "connectors/",
];

/// How names of errors begin in the language.
const NAMES: [&str; 2] = ["\"FnF.", "\"fnf."];

/// Lines of code in which an error is named as the language names it.
fn named(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(without_tests(text).lines());
    let code = lines.filter(|(_, line)| !line.trim_start().starts_with("//"));
    code.filter(|(_, line)| NAMES.iter().any(|name| line.contains(name)))
}

#[test]
fn nothing_below_the_hosts_names_errors_as_the_language_does() {
    let mut wrong = Vec::new();
    for file in sources_below(&BELOW).iter().filter(|file| file.path.contains("/src/")) {
        let found = named(file.text()).map(|(number, line)| format!("{}:{number}: {}", file.path, line.trim()));
        wrong.extend(found);
    }
    nothing_wrong(&wrong);
}

#[test]
fn names_are_found_in_code_and_nowhere_else() {
    let text =
        "/// `\"FnF.A\"`\nlet a = \"FnF.B\";\nlet b = \"My.FnF.C\";\n#[cfg(test)]\nmod tests {\nlet c = \"FnF.D\";\n}";
    let found: Vec<usize> = named(text).map(|(number, _)| number).collect();
    assert_eq!(found, [2]);
}

//! What the examples' pages show is what happens. Those that need services are run elsewhere.

mod shown;

use shown::{Shown, differences, fits, needs_services, shown as commands, words};
use starbridge_tests::data;

/// All examples at once: most of the time passes in pauses.
#[test]
fn commands_print_what_their_pages_show() {
    let folders = std::fs::read_dir(data::root().join("examples")).unwrap().flatten();
    let examples: Vec<String> = folders
        .map(|folder| folder.file_name().into_string().unwrap())
        .filter(|example| !needs_services(example))
        .collect();
    let found: Vec<(usize, Vec<String>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = examples
            .iter()
            .map(|example| scope.spawn(|| differences(example)))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let wrong: Vec<String> = found.iter().flat_map(|(_, wrong)| wrong.clone()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let commands: usize = found.iter().map(|(commands, _)| commands).sum();
    assert!(commands >= 20, "{commands} commands were run");
}

#[test]
fn pages_are_read_as_shells_show_them() {
    let page =
        "text\n```console\n$ cargo run -- a \\\n    --b 'c d'\nout\n  put\n$ cargo run -- e\n```\n```sh\n$ no\n```\n";
    let read: Vec<(String, String)> = commands(page)
        .into_iter()
        .map(|Shown { command, output }| (command, output))
        .collect();
    let expected = [("cargo run -- a --b 'c d'", "out\n  put\n"), ("cargo run -- e", "")];
    assert_eq!(
        read,
        expected.map(|(command, output)| (command.to_owned(), output.to_owned()))
    );
    assert_eq!(words("a --b 'c d' {e}"), ["a", "--b", "c d", "{e}"]);
}

#[test]
fn dots_stand_for_anything_in_a_line() {
    assert!(fits("id  0…\nb\n", "id     0123\nb\n"));
    assert!(fits("A …  C  D …\n", "A   B     C D\n"));
    assert!(!fits("id  0…\n", "id  1\n"));
    assert!(!fits("a…b\n", "a\n"));
    assert!(!fits("a…\n", "a\nb\n"));
    assert!(!fits("a  b\n", "a b\n"));
}

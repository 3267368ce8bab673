//! The examples' pages show real output. Pages that need services are run elsewhere.

mod shown;

use shown::{Part, Shown, differences, examples, fits, needs_services, parts, words};
use starbridge_tests::data;

/// Pages that are no example's: those of the project with a `console` block.
fn pages() -> Vec<String> {
    let root = data::root();
    let documents = data::files(&root.join("docs"), ".md");
    let all = documents.into_iter().chain([root.join("README.md")]);
    let run = all.filter(|page| std::fs::read_to_string(page).unwrap().contains("```console\n"));
    run.map(|page| page.strip_prefix(&root).unwrap().to_string_lossy().into_owned())
        .collect()
}

/// Runs pages, all at once: most of the time passes in pauses. How many commands that are.
fn run(pages: &[String]) -> usize {
    let found: Vec<(usize, Vec<String>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = pages.iter().map(|page| scope.spawn(|| differences(page))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let wrong: Vec<String> = found.iter().flat_map(|(_, wrong)| wrong.clone()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    found.iter().map(|(commands, _)| commands).sum()
}

/// `PAGE=word` picks the pages whose paths have that word.
fn wanted(pages: Vec<String>) -> Vec<String> {
    let word = std::env::var("PAGE").unwrap_or_default();
    pages.into_iter().filter(|page| page.contains(&word)).collect()
}

#[test]
fn commands_print_what_the_examples_show() {
    let examples = examples().filter(|example| !needs_services(example));
    let pages: Vec<String> = examples
        .map(|example| format!("examples/{example}/README.md"))
        .collect();
    let commands = run(&wanted(pages.clone()));
    assert!(
        commands >= 20 || wanted(pages.clone()) != pages,
        "{commands} commands were run"
    );
}

#[test]
fn commands_print_what_the_documents_show() {
    let pages = pages();
    assert!(pages.contains(&"README.md".to_owned()), "{pages:?}");
    let commands = run(&wanted(pages.clone()));
    assert!(
        commands >= 40 || wanted(pages.clone()) != pages,
        "{commands} commands were run"
    );
}

#[test]
fn pages_are_read_as_shells_show_them() {
    let page =
        "text\n```console\n$ cargo run -- a \\\n    --b 'c d'\nout\n  put\n$ cargo run -- e\n```\n```sh\n$ no\n```\n";
    let read: Vec<(String, String)> = parts(page).into_iter().map(told).collect();
    let expected = [("cargo run -- a --b 'c d'", "out\n  put\n"), ("cargo run -- e", "")];
    assert_eq!(
        read,
        expected.map(|(command, output)| (command.to_owned(), output.to_owned()))
    );
    assert_eq!(words("a --b 'c d' {e}"), ["a", "--b", "c d", "{e}"]);
    let page =
        "```json flow a.json\n{}\n```\n<!-- console\n$ kill %1\n-->\n<!-- file b.sh\necho\n-->\n```json data\n```\n";
    let read: Vec<(String, String)> = parts(page).into_iter().map(told).collect();
    let expected = [("a.json", "{}\n"), ("kill %1", ""), ("b.sh", "echo\n")];
    assert_eq!(read, expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
}

fn told(part: Part) -> (String, String) {
    match part {
        Part::File { name, text } => (name, text),
        Part::Command(Shown { command, output }) => (command, output),
    }
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

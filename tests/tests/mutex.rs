//! The example that needs Redis runs as its page shows.

mod shown;

#[test]
fn commands_print_what_the_page_shows() {
    assert!(shown::needs_services("mutex"));
    let (commands, wrong) = shown::differences("examples/mutex/README.md");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(commands >= 20, "{commands} commands were run");
}

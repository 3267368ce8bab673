//! What the examples' pages show is what happens: each command in a `console` block is run, in order, and must print what
//! stands below it.
//!
//! An example runs in a copy of its folder, with ports of its own in place of those in its files and commands.

use starbridge_tests::data;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// The ports that pages and files name.
const PORTS: [&str; 2] = ["9000", "7879"];
const STARBRIDGE: &str = "cargo run -- ";
const FUNCTIONS: &str = "cargo run -p starbridge-tests --bin functions -- ";

/// A command of a page and what it shows below it.
struct Shown {
    command: String,
    output: String,
}

/// The commands of a page's `console` blocks.
fn shown(page: &str) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    let (mut inside, mut goes_on) = (false, false);
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if inside && (goes_on || line.starts_with("$ ")) {
            let text = line.strip_prefix("$ ").unwrap_or(line).trim();
            let part = text.strip_suffix('\\').unwrap_or(text);
            if goes_on {
                all.last_mut().unwrap().command.push_str(part);
            } else {
                all.push(Shown {
                    command: part.to_owned(),
                    output: String::new(),
                });
            }
            goes_on = text.ends_with('\\');
        } else if inside {
            let last = all.last_mut().expect("output before the first command");
            last.output.push_str(line);
            last.output.push('\n');
        }
    }
    all
}

/// Words as a shell has them; single quotes only.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// The built command: beside this test, and built if it is not there.
fn starbridge() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_BIN_EXE_functions")).parent().unwrap();
        let program = folder.join(format!("starbridge{}", std::env::consts::EXE_SUFFIX));
        if !program.exists() {
            let mut build = Command::new(env!("CARGO"));
            build.args(["build", "--quiet", "--package", "starbridge-cli"]);
            if folder.ends_with("release") {
                build.arg("--release");
            }
            assert!(build.current_dir(data::root()).status().unwrap().success());
        }
        program
    })
}

/// An example's copy, and the server that runs for it.
struct Stage {
    folder: tempfile::TempDir,
    /// The ports of the page, and those in their place.
    ports: Vec<(&'static str, String)>,
    server: Option<Child>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

impl Stage {
    fn of(example: &str) -> Self {
        // Held together, so that no two are the same.
        let free = PORTS.map(|port| (port, TcpListener::bind("127.0.0.1:0").unwrap()));
        let ports = free
            .iter()
            .map(|(port, free)| (*port, free.local_addr().unwrap().port().to_string()));
        let stage = Self {
            folder: tempfile::tempdir().unwrap(),
            ports: ports.collect(),
            server: None,
        };
        let from = data::root().join("examples").join(example);
        for path in data::files(&from, "") {
            let to = stage
                .folder
                .path()
                .join("examples")
                .join(example)
                .join(path.strip_prefix(&from).unwrap());
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            // Programs stay programs.
            std::fs::copy(&path, &to).unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            std::fs::write(&to, stage.with_own_ports(&text)).unwrap();
        }
        stage
    }

    fn with_own_ports(&self, text: &str) -> String {
        self.ports.iter().fold(text.to_owned(), |text, (port, own)| {
            text.replace(&format!("127.0.0.1:{port}"), &format!("127.0.0.1:{own}"))
        })
    }

    fn with_ports_of_the_page(&self, text: &str) -> String {
        self.ports.iter().fold(text.to_owned(), |text, (port, own)| {
            text.replace(&format!("127.0.0.1:{own}"), &format!("127.0.0.1:{port}"))
        })
    }

    /// What a command prints.
    fn run(&mut self, command: &str) -> String {
        let printed = if let Some(arguments) = command.strip_prefix(FUNCTIONS) {
            self.serve(arguments)
        } else if let Some(arguments) = command.strip_prefix(STARBRIDGE) {
            let mut run = Command::new(starbridge());
            run.args(words(&self.with_own_ports(arguments)))
                .current_dir(&self.folder);
            let output = run.stdin(Stdio::null()).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "`{command}`: {}\n{said}", output.status);
            String::from_utf8(output.stdout).unwrap()
        } else {
            panic!("`{command}` is no command that can be run here");
        };
        self.with_ports_of_the_page(&printed)
    }

    /// Starts the server; what it says once it listens.
    fn serve(&mut self, arguments: &str) -> String {
        let mut server = Command::new(env!("CARGO_BIN_EXE_functions"));
        server
            .args(["--port", &self.ports[0].1])
            .args(words(arguments))
            .current_dir(&self.folder);
        let mut server = server.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        let said = server.stdout.take().map(BufReader::new);
        self.server = Some(server);
        said.unwrap().read_line(&mut line).unwrap();
        line
    }
}

/// Runs an example from its page: how many commands that are, and what differs.
fn differences(example: &str) -> (usize, Vec<String>) {
    let page = data::root().join("examples").join(example).join("README.md");
    let commands = shown(&std::fs::read_to_string(page).unwrap());
    let mut stage = Stage::of(example);
    let mut wrong = Vec::new();
    for Shown { command, output } in &commands {
        let printed = stage.run(command);
        if printed != *output {
            wrong.push(format!(
                "{example}: `{command}` printed\n{printed}but the page shows\n{output}"
            ));
        }
    }
    (commands.len(), wrong)
}

/// All examples at once: most of the time passes in pauses.
#[test]
fn commands_print_what_their_pages_show() {
    let folders = std::fs::read_dir(data::root().join("examples")).unwrap().flatten();
    let examples: Vec<String> = folders
        .map(|folder| folder.file_name().into_string().unwrap())
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
    let read: Vec<(String, String)> = shown(page)
        .into_iter()
        .map(|shown| (shown.command, shown.output))
        .collect();
    let expected = [("cargo run -- a --b 'c d'", "out\n  put\n"), ("cargo run -- e", "")];
    assert_eq!(
        read,
        expected.map(|(command, output)| (command.to_owned(), output.to_owned()))
    );
    assert_eq!(words("a --b 'c d' {e}"), ["a", "--b", "c d", "{e}"]);
}

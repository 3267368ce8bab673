//! Runs an example from its page: each command in a `console` block, in order. What it prints must be what stands below it; `…`
//! stands for anything in a line, and spaces for any number of them where there is one.
//!
//! An example runs in a copy of the folders its page names, with ports of its own in place of those in files and commands.

use starbridge_tests::data;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The ports that pages and files name.
const PORTS: [&str; 3] = ["9000", "7879", "7878"];
const STARBRIDGE: [&str; 2] = ["cargo run -- ", "cargo run --features aws -- "];
const SERVICES: &str = "cargo xtask services ";
const FUNCTIONS: &str = "cargo run -p starbridge-tests --bin functions -- ";

/// A command of a page and what it shows below it.
pub struct Shown {
    pub command: String,
    pub output: String,
}

/// The commands of a page's `console` blocks.
pub fn shown(page: &str) -> Vec<Shown> {
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
pub fn words(line: &str) -> Vec<String> {
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

/// An example's copy, and the servers that run for it.
struct Stage {
    folder: tempfile::TempDir,
    /// The ports of the page, and those in their place.
    ports: Vec<(&'static str, String)>,
    functions: Option<Child>,
    /// Services, and what a shell is told of them.
    services: Vec<Child>,
    environment: Vec<(String, String)>,
    /// What was started in the background, by the numbers that shells give it.
    jobs: Vec<Option<Child>>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        for job in &mut self.jobs {
            end(job.take(), "-KILL");
        }
        end(self.functions.take(), "-KILL");
        for service in self.services.drain(..) {
            end(Some(service), "-KILL");
        }
    }
}

/// Ends a program and what it started, as a shell does.
fn end(job: Option<Child>, signal: &str) {
    if let Some(mut job) = job {
        let kill = format!("kill {signal} -{}", job.id());
        let _ = Command::new("sh").args(["-c", &kill]).status();
        let _ = job.wait();
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
            functions: None,
            services: Vec::new(),
            environment: Vec::new(),
            jobs: Vec::new(),
        };
        stage.copy(example);
        stage
    }

    /// Copies an example, if there is one of that name.
    fn copy(&self, example: &str) {
        let from = data::root().join("examples").join(example);
        for path in data::files(&from, "") {
            let to = self
                .folder
                .path()
                .join("examples")
                .join(example)
                .join(path.strip_prefix(&from).unwrap());
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            // Programs stay programs.
            std::fs::copy(&path, &to).unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            std::fs::write(&to, self.with_own_ports(&text)).unwrap();
        }
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
            self.serve_functions(arguments)
        } else if let Some(how) = command.strip_prefix("kill ") {
            self.end_jobs(how)
        } else if let Some(arguments) = command.strip_prefix(SERVICES) {
            self.start_services(arguments)
        } else if let Some(line) = command.strip_suffix(" &").filter(|line| is_program(line)) {
            self.work(line)
        } else if is_program(command) {
            printed(&mut self.program(command), command)
        } else if let Some(arguments) = STARBRIDGE.iter().find_map(|start| command.strip_prefix(start)) {
            if let Some(arguments) = arguments.strip_suffix(" &") {
                return self.serve(arguments);
            }
            let (arguments, stdin) = match arguments.split_once(" < ") {
                Some((arguments, file)) => (arguments, self.input(file)),
                None => (arguments, Stdio::null()),
            };
            printed(self.starbridge(arguments).stdin(stdin), command)
        } else {
            panic!("`{command}` is no command that can be run here");
        };
        self.with_ports_of_the_page(&printed)
    }

    /// The command, with the server's address where this example has it.
    fn starbridge(&self, arguments: &str) -> Command {
        let address = self.with_own_ports("127.0.0.1:7878");
        let mut command = Command::new(starbridge());
        command
            .args(words(&self.with_own_ports(arguments)))
            .env("STARBRIDGE_SERVER_LISTEN", &address)
            .env("STARBRIDGE_SERVER", format!("http://{address}"))
            .envs(self.environment.iter().cloned())
            .current_dir(&self.folder);
        command
    }

    /// A program of an example, with the server's address where this example has it.
    fn program(&self, line: &str) -> Command {
        let words = words(line);
        let mut command = Command::new(&words[0]);
        let address = self.with_own_ports("127.0.0.1:7878");
        command
            .args(&words[1..])
            .env("STARBRIDGE_SERVER", format!("http://{address}"))
            .envs(self.environment.iter().cloned())
            .current_dir(&self.folder);
        command
    }

    /// A file as input; one that a task is about to write is waited for.
    fn input(&self, file: &str) -> Stdio {
        let begun = Instant::now();
        loop {
            match std::fs::File::open(self.folder.path().join(file)) {
                Ok(file) => return file.into(),
                Err(error) if begun.elapsed() > PATIENCE => panic!("{file}: {error}"),
                Err(_) => pause(),
            }
        }
    }

    /// Starts a server in the background and waits until it listens.
    fn serve(&mut self, arguments: &str) -> String {
        let mut server = self.starbridge(arguments);
        let mut server = server.stderr(Stdio::piped()).process_group(0).spawn().unwrap();
        let mut said = BufReader::new(server.stderr.take().unwrap()).lines();
        self.begin(server);
        let listens = said.any(|line| line.is_ok_and(|line| line.starts_with("listening on")));
        assert!(listens, "`{arguments}` does not listen");
        // Somebody reads on, so that it can say more.
        std::thread::spawn(move || said.count());
        String::new()
    }

    /// Starts a program of an example in the background.
    fn work(&mut self, line: &str) -> String {
        let mut worker = self.program(line);
        worker.stdout(Stdio::null()).stderr(Stdio::null());
        let worker = worker.process_group(0).spawn().unwrap();
        self.begin(worker);
        String::new()
    }

    /// Starts services, and does with the lines they print what they are for.
    fn start_services(&mut self, arguments: &str) -> String {
        let mut services = Command::new(env!("CARGO"));
        services
            .args(["xtask", "services"])
            .args(words(arguments))
            .current_dir(data::root());
        let services = services.stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
        let mut services = services.spawn().unwrap();
        let mut lines = BufReader::new(services.stdout.take().unwrap()).lines();
        self.services.push(services);
        let mut printed = String::new();
        while !printed.contains("_URL=") {
            let line = lines.next().expect("the services do not come up").unwrap();
            let variables = line.strip_prefix("export ").into_iter().flat_map(str::split_whitespace);
            let variables = variables.filter_map(|variable| variable.split_once('='));
            self.environment
                .extend(variables.map(|(name, value)| (name.to_owned(), value.trim_matches('\'').to_owned())));
            printed.push_str(&line);
            printed.push('\n');
        }
        printed
    }

    /// A job has the number after the highest there is.
    fn begin(&mut self, job: Child) {
        while self.jobs.last().is_some_and(Option::is_none) {
            self.jobs.pop();
        }
        self.jobs.push(Some(job));
    }

    /// Ends what was started in the background.
    fn end_jobs(&mut self, how: &str) -> String {
        let signal = how.split(' ').find(|word| word.starts_with('-')).unwrap_or("-TERM");
        for job in how.split(' ').filter_map(|word| word.strip_prefix('%')) {
            let number: usize = job.parse().unwrap();
            let job = self.jobs.get_mut(number - 1).and_then(Option::take);
            end(Some(job.expect("no such job was started")), signal);
        }
        String::new()
    }

    /// Starts the functions; what they say once they listen.
    fn serve_functions(&mut self, arguments: &str) -> String {
        let mut server = Command::new(env!("CARGO_BIN_EXE_functions"));
        server
            .args(["--port", &self.ports[0].1])
            .args(words(arguments))
            .current_dir(&self.folder);
        let server = server.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = server.process_group(0).spawn().unwrap();
        let mut line = String::new();
        let said = server.stdout.take().map(BufReader::new);
        self.functions = Some(server);
        said.unwrap().read_line(&mut line).unwrap();
        line
    }
}

/// What is waited for comes within this time.
const PATIENCE: Duration = Duration::from_secs(20);

#[allow(clippy::disallowed_methods, reason = "a file says nothing when it comes")]
fn pause() {
    std::thread::sleep(Duration::from_millis(10));
}

/// Whether a command printed what the page shows.
pub fn fits(shown: &str, printed: &str) -> bool {
    let fits = |(shown, printed): (&str, &str)| {
        let mut parts = shown.split('…');
        let spaced = |text: &str| {
            text.split(' ')
                .filter(|word| !word.is_empty())
                .collect::<Vec<_>>()
                .join(" ")
        };
        if !shown.contains('…') {
            return shown == printed;
        }
        let printed = spaced(printed);
        let mut rest = match printed.strip_prefix(&spaced(parts.next().unwrap_or_default())) {
            Some(rest) => rest,
            None => return false,
        };
        for part in parts {
            let part = spaced(part);
            match rest.find(&part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        true
    };
    shown.lines().count() == printed.lines().count() && shown.lines().zip(printed.lines()).all(fits)
}

/// What a program prints; it must go well.
fn printed(command: &mut Command, line: &str) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`{line}`: {}\n{said}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// Whether a line runs a program of an example.
fn is_program(line: &str) -> bool {
    ["sh examples/", "python3 examples/"]
        .iter()
        .any(|start| line.starts_with(start))
}

/// Programs that an example's own need, and which are not on every machine.
fn is_missing(tool: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    !std::env::split_paths(&folders).any(|folder| folder.join(tool).is_file())
}

/// Whether an example needs services, which plain `cargo test` has not.
pub fn needs_services(example: &str) -> bool {
    let page = data::root().join("examples").join(example).join("README.md");
    std::fs::read_to_string(page)
        .unwrap()
        .contains(&format!("$ {SERVICES}"))
}

/// Runs an example from its page: how many commands that are, and what differs.
pub fn differences(example: &str) -> (usize, Vec<String>) {
    let page = data::root().join("examples").join(example).join("README.md");
    let text = std::fs::read_to_string(page).unwrap();
    let commands = shown(&text);
    if commands.iter().any(|shown| is_program(&shown.command))
        && let Some(tool) = ["curl", "jq", "python3"].into_iter().find(|tool| is_missing(tool))
    {
        eprintln!("{example}: left out, there is no `{tool}` here");
        return (0, Vec::new());
    }
    let mut stage = Stage::of(example);
    for other in ["hello", "workers"] {
        if other != example && text.contains(&format!("examples/{other}/")) {
            stage.copy(other);
        }
    }
    let mut wrong = Vec::new();
    for Shown { command, output } in &commands {
        let mut printed = stage.run(command);
        // What is looked at may not have come so far yet.
        let looks = STARBRIDGE
            .iter()
            .any(|start| command.starts_with(&format!("{start}show ")));
        let begun = Instant::now();
        while looks && !fits(output, &printed) && begun.elapsed() < PATIENCE {
            pause();
            printed = stage.run(command);
        }
        if !fits(output, &printed) {
            wrong.push(format!(
                "{example}: `{command}` printed\n{printed}but the page shows\n{output}"
            ));
        }
    }
    (commands.len(), wrong)
}

//! Runs a page: each command in a `console` block, in order. Its output, on stdout or on stderr,
//! must equal the text below it; `…` stands for anything in a line, and spaces for any number of
//! them where there is one.
//!
//! A page runs in a folder with copies of the examples it names, and with its own ports in place of
//! those in files and commands. `echo $?` may follow a command that fails; every other command must
//! succeed.

mod page;

pub use page::{Part, Shown, fits, parts, words};

use starbridge_tests::{data, ports};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The ports that pages and files name.
const PORTS: [&str; 3] = ["9000", "7879", "7878"];
const STARBRIDGE: [&str; 4] = [
    "cargo run -- ",
    "cargo run --features aws -- ",
    "cargo run --features redis -- ",
    "starbridge ",
];
/// Other programs that pages may use, through a shell.
const TOOLS: [&str; 19] = [
    "cat",
    "chmod",
    "cp",
    "curl",
    "echo",
    "export",
    "grep",
    "head",
    "jq",
    "ls",
    "mkdir",
    "mv",
    "printf",
    "rm",
    "sha256sum",
    "sort",
    "sqlite3",
    "tail",
    "wc",
];
const INSTALL: &str = "cargo install ";
const SERVICES: &str = "cargo xtask services ";
const FUNCTIONS: &str = "cargo run -p starbridge-tests --bin functions -- ";

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
    /// Programs started in the background, by the numbers that shells give them.
    jobs: Vec<Option<Child>>,
    /// How the last command ended.
    status: i32,
}

/// The output of a command.
#[derive(Default)]
struct Printed {
    stdout: String,
    stderr: String,
}

impl Printed {
    fn fits(&self, shown: &str) -> bool {
        fits(shown, &self.stdout) || (!shown.is_empty() && fits(shown, &self.stderr))
    }
}

impl From<String> for Printed {
    fn from(stdout: String) -> Self {
        Self {
            stdout,
            stderr: String::new(),
        }
    }
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
    /// One with the examples that a page names.
    fn of(page: &str) -> Self {
        let ports = PORTS.map(|port| (port, ports::free().to_string()));
        let stage = Self {
            folder: tempfile::tempdir().unwrap(),
            ports: ports.into(),
            functions: None,
            services: Vec::new(),
            environment: Vec::new(),
            jobs: Vec::new(),
            status: 0,
        };
        for example in examples().filter(|example| page.contains(&format!("examples/{example}/"))) {
            stage.copy(&example);
        }
        stage
    }

    /// Copies an example.
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
                .replace(&format!("\"127.0.0.1\", {port}"), &format!("\"127.0.0.1\", {own}"))
        })
    }

    fn with_ports_of_the_page(&self, text: &str) -> String {
        self.ports.iter().fold(text.to_owned(), |text, (port, own)| {
            text.replace(&format!("127.0.0.1:{own}"), &format!("127.0.0.1:{port}"))
        })
    }

    /// Runs a command and answers its output.
    fn run(&mut self, command: &str) -> Printed {
        let printed = if let Some(arguments) = command.strip_prefix(FUNCTIONS) {
            self.serve_functions(arguments).into()
        } else if let Some(how) = command.strip_prefix("kill ") {
            self.end_jobs(how).into()
        } else if let Some(arguments) = command.strip_prefix(SERVICES) {
            self.start_services(arguments).into()
        } else if let Some(arguments) = command.strip_prefix(INSTALL) {
            can_be_installed(arguments);
            Printed::default()
        } else if command == "echo $?" {
            format!("{}\n", self.status).into()
        } else if let Some(line) = command.strip_suffix(" &").filter(|line| is_program(line)) {
            self.work(line).into()
        } else if let Some(arguments) = STARBRIDGE.iter().find_map(|start| command.strip_prefix(start)) {
            if let Some(arguments) = arguments.strip_suffix(" &") {
                return match arguments.starts_with("worker ") {
                    true => self.start_worker(arguments).into(),
                    false => self.serve(arguments).into(),
                };
            }
            let (arguments, stdin) = match arguments.split_once(" < ") {
                Some((arguments, file)) => (arguments, self.input(file)),
                None => (arguments, Stdio::null()),
            };
            match needs_a_shell(arguments) {
                true => self.printed(&mut self.shell(command)),
                false => self.printed(self.starbridge(arguments).stdin(stdin)),
            }
        } else if needs_a_shell(command) || TOOLS.contains(&command.split(' ').next().unwrap_or_default()) {
            self.printed(&mut self.shell(command))
        } else if is_program(command) {
            self.printed(&mut self.program(command))
        } else {
            panic!("`{command}` is no command that can be run here");
        };
        Printed {
            stdout: self.with_ports_of_the_page(&printed.stdout),
            stderr: self.with_ports_of_the_page(&printed.stderr),
        }
    }

    /// The output of a program; its exit status is kept.
    fn printed(&mut self, command: &mut Command) -> Printed {
        let output = command.output().unwrap();
        self.status = output.status.code().unwrap_or(-1);
        Printed {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// A line for the shell, which finds the built command.
    fn shell(&self, line: &str) -> Command {
        let mut folders = vec![starbridge().parent().unwrap().to_path_buf()];
        folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let mut shell = self.program("sh -c");
        shell
            .arg(STARBRIDGE.iter().fold(self.with_own_ports(line), |line, start| {
                line.replace(start, "starbridge ")
            }))
            .env("PATH", std::env::join_paths(folders).unwrap());
        shell
    }

    /// How what a command does differs from what its page shows.
    fn difference(&mut self, Shown { command, output }: &Shown, may_fail: bool) -> Option<String> {
        self.status = match command.as_str() {
            "echo $?" => self.status,
            _ => 0,
        };
        let mut printed = self.run(command);
        // The thing that the command looks at may not exist yet.
        let looks = command.starts_with("grep ")
            || STARBRIDGE.iter().any(|start| {
                let looks = |at: &&str| command.starts_with(&format!("{start}{at} "));
                ["list", "show", "history", "queue"].iter().any(looks)
            });
        let begun = Instant::now();
        while looks && !printed.fits(output) && begun.elapsed() < PATIENCE {
            pause();
            printed = self.run(command);
        }
        if self.status != 0 && !may_fail && command != "echo $?" {
            return Some(format!("`{command}` ended with {}\n{}", self.status, printed.stderr));
        }
        let Printed { stdout, stderr } = &printed;
        let differs = !printed.fits(output);
        differs.then(|| format!("`{command}` printed\n{stdout}{stderr}but the page shows\n{output}"))
    }

    /// Writes a file of a page.
    fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, self.with_own_ports(text)).unwrap();
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

    /// Starts a worker in the background. It waits for its server by itself.
    fn start_worker(&mut self, arguments: &str) -> String {
        let mut worker = self.starbridge(arguments);
        worker.stdout(Stdio::null()).stderr(Stdio::null());
        let worker = worker.process_group(0).spawn().unwrap();
        self.begin(worker);
        String::new()
    }

    /// Starts a program of an example in the background.
    fn work(&mut self, line: &str) -> String {
        let mut worker = self.program(line);
        worker.stdout(Stdio::null()).stderr(Stdio::null());
        let worker = worker.process_group(0).spawn().unwrap();
        self.begin(worker);
        let script = self.folder.path().join(&words(line)[1]);
        let functions = self.with_own_ports("\"127.0.0.1\", 9000");
        if std::fs::read_to_string(script).is_ok_and(|text| text.contains(&functions)) {
            self.wait_for_functions();
        }
        String::new()
    }

    /// Functions that a page starts itself do not say when they listen.
    fn wait_for_functions(&self) {
        let begun = Instant::now();
        let address = self.with_own_ports("127.0.0.1:9000");
        while std::net::TcpStream::connect(&address).is_err() {
            assert!(begun.elapsed() < PATIENCE, "nobody listens on {address}");
            pause();
        }
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

    /// Ends what was started in the background, and waits for its end, as `; wait %N` after it says to a shell.
    fn end_jobs(&mut self, how: &str) -> String {
        let how = how.split(';').next().unwrap_or_default();
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

/// A wait is over within this time.
const PATIENCE: Duration = Duration::from_secs(20);

#[allow(clippy::disallowed_methods, reason = "a file says nothing when it comes")]
fn pause() {
    std::thread::sleep(Duration::from_millis(10));
}

/// Whether a line runs a program of a page or an example.
fn is_program(line: &str) -> bool {
    ["sh ", "python3 "].iter().any(|start| line.starts_with(start))
}

fn needs_a_shell(line: &str) -> bool {
    ["| ", "> ", "; ", "$("].iter().any(|mark| line.contains(mark))
}

/// An installed thing has a program of that name; the built one represents it.
fn can_be_installed(arguments: &str) {
    let words = words(arguments);
    let at = words
        .iter()
        .position(|word| word == "--path")
        .expect("a path is installed");
    let manifest = data::root().join(&words[at + 1]).join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).unwrap_or_else(|error| panic!("{}: {error}", manifest.display()));
    assert!(text.contains("name = \"starbridge\""), "{}", manifest.display());
    let features = words.iter().skip_while(|word| *word != "--features").nth(1);
    for feature in features.iter().flat_map(|features| features.split(',')) {
        assert!(
            text.contains(&format!("\n{feature} = [")),
            "there is no feature `{feature}`"
        );
    }
}

/// Programs that an example's own need, and which are not on every machine.
fn is_missing(tool: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    !std::env::split_paths(&folders).any(|folder| folder.join(tool).is_file())
}

/// The names of the examples.
pub fn examples() -> impl Iterator<Item = String> {
    let folders = std::fs::read_dir(data::root().join("examples")).unwrap().flatten();
    folders.map(|folder| folder.file_name().into_string().unwrap())
}

/// A page of the project, by its path.
fn text_of(page: &str) -> String {
    std::fs::read_to_string(data::root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// Whether an example needs services, which plain `cargo test` has not.
pub fn needs_services(example: &str) -> bool {
    text_of(&format!("examples/{example}/README.md")).contains(&format!("$ {SERVICES}"))
}

/// The programs that are not on every machine and that a page needs: the first that is not here.
fn missing_tool(text: &str, parts: &[Part]) -> Option<&'static str> {
    let commands = parts.iter().filter_map(|part| match part {
        Part::Command(shown) => Some(shown.command.as_str()),
        Part::File { .. } => None,
    });
    let commands: Vec<&str> = commands.collect();
    let uses = |tool: &str| {
        let scripts = text.contains("examples/workers/worker.sh") && ["curl", "jq"].contains(&tool);
        scripts
            || commands
                .iter()
                .any(|command| command.split(' ').any(|word| word == tool))
    };
    let tools = ["curl", "jq", "python3", "sqlite3"].into_iter();
    tools.filter(|tool| uses(tool)).find(|tool| is_missing(tool))
}

/// Runs a page: how many commands that are, and what differs.
pub fn differences(page: &str) -> (usize, Vec<String>) {
    let text = text_of(page);
    let parts = parts(&text);
    if let Some(tool) = missing_tool(&text, &parts) {
        eprintln!("{page}: left out, there is no `{tool}` here");
        return (0, Vec::new());
    }
    let mut stage = Stage::of(&text);
    let mut wrong = Vec::new();
    let mut commands = 0;
    for (at, part) in parts.iter().enumerate() {
        match part {
            Part::File { name, text } => stage.write(name, text),
            Part::Command(shown) => {
                commands += 1;
                let may_fail = matches!(parts.get(at + 1), Some(Part::Command(next)) if next.command == "echo $?");
                wrong.extend(
                    stage
                        .difference(shown, may_fail)
                        .map(|problem| format!("{page}: {problem}")),
                );
            }
        }
    }
    (commands, wrong)
}

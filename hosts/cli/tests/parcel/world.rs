//! A server, the functions, the worker and the broker of a flow.

use crate::broker::{Broker, examples, printed};
use crate::functions::Functions;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The time limit for everything that the test waits for.
const PATIENCE: Duration = Duration::from_secs(120);

/// Packs, and records it; waits as long as the file `hold` exists.
const PACK: &str = r#"
order=$(sed 's/.*"order":\([0-9]*\).*/\1/')
echo "$order" >> packed
while [ -e hold ]; do sleep 0.05; done
echo "{\"box\": \"box-$order\"}"
"#;

#[allow(
    clippy::disallowed_methods,
    reason = "most of what is waited for says nothing when it comes"
)]
pub fn wait_for(what: &str, mut come: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !come() {
        assert!(begun.elapsed() < PATIENCE, "{what} does not come");
        std::thread::sleep(Duration::from_millis(30));
    }
}

/// A process that ends with its test, and all it has started with it.
pub struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let kill = format!("kill -KILL -{}", self.0.id());
        let _ = Command::new("sh").args(["-c", &kill]).status();
        let _ = self.0.wait();
    }
}

/// A folder with the files of a server.
pub struct World {
    pub functions: Functions,
    folder: tempfile::TempDir,
    address: String,
    environment: Vec<(&'static str, String)>,
    server: Option<Running>,
}

impl World {
    /// A running server with this configuration.
    pub fn start(config: &str, environment: Vec<(&'static str, String)>) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut world = Self {
            functions: Functions::start(),
            folder: tempfile::tempdir().unwrap(),
            address: free.to_string(),
            environment,
            server: None,
        };
        let config = format!("[http]\nprivate_addresses = true\n\n{config}");
        std::fs::write(world.path("server.toml"), config).unwrap();
        world.serve();
        world
    }

    /// The example on that server, with its worker.
    pub fn of_the_example(broker: &dyn Broker) -> (Self, Running) {
        let world = Self::start(&broker.config(), broker.environment());
        for name in ["invoice", "flow"] {
            let text = std::fs::read_to_string(examples().join(format!("parcel/{name}.json"))).unwrap();
            let text = text.replace("http://127.0.0.1:9000", &world.functions.url());
            world.put(&text.replace("sqs:shipping", &format!("{}:shipping", broker.scheme())));
        }
        std::fs::write(world.path("pack.sh"), PACK).unwrap();
        let mut worker = Command::new("sh");
        worker
            .arg(examples().join("workers/worker.sh"))
            .args(["pack", "sh", "pack.sh"]);
        worker
            .env("STARBRIDGE_SERVER", format!("http://{}", world.address))
            .current_dir(&world.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        let worker = Running(worker.spawn().unwrap());
        (world, worker)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Lets packing wait, or go on.
    pub fn hold_packing(&self, hold: bool) {
        match hold {
            true => std::fs::write(self.path("hold"), "").unwrap(),
            false => std::fs::remove_file(self.path("hold")).unwrap(),
        }
    }

    /// How often an order was packed.
    pub fn packed(&self, order: u64) -> usize {
        let packed = std::fs::read_to_string(self.path("packed")).unwrap_or_default();
        packed.lines().filter(|line| *line == order.to_string()).count()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_starbridge"));
        command
            .args(arguments)
            .env_clear()
            // Neither a machine's role nor a user's own profile is used here.
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("HOME", self.folder.path())
            .env("STARBRIDGE_SERVER", format!("http://{}", self.address))
            .envs(self.environment.iter().cloned())
            .current_dir(&self.folder)
            .stdin(Stdio::null());
        command
    }

    /// The output of a command that must succeed.
    pub fn run(&self, arguments: &[&str]) -> String {
        printed(&mut self.command(arguments))
    }

    pub fn put(&self, flow: &str) {
        std::fs::write(self.path("put.json"), flow).unwrap();
        self.run(&["flow", "put", "put.json"]);
    }

    /// SIGKILL: the server does nothing more.
    pub fn kill(&mut self) {
        self.server = None;
    }

    /// Starts the server, also after it was killed.
    pub fn serve(&mut self) {
        self.kill();
        let arguments = [
            "serve",
            "--config",
            "server.toml",
            "--db",
            "flows.db",
            "--listen",
            &self.address,
        ];
        let mut server = self.command(&arguments);
        let server = server.stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
        let mut server = server.spawn().unwrap();
        let mut said = BufReader::new(server.stderr.take().unwrap()).lines();
        self.server = Some(Running(server));
        let listens = said.any(|line| line.is_ok_and(|line| line.starts_with("listening on")));
        assert!(listens, "the server does not listen");
        // The rest of the output is read, so that the server does not block.
        std::thread::spawn(move || said.count());
    }

    /// An execution of the example.
    pub fn begin(&self, order: u64) {
        let (name, input) = (format!("p-{order}"), format!(r#"{{"order": {order}}}"#));
        self.run(&["start", "parcel", "--name", &name, "--input", &input]);
    }

    /// An execution in its current state.
    pub fn show(&self, execution: &str) -> Value {
        serde_json::from_str(&self.run(&["show", execution, "--json"])).unwrap()
    }

    /// The same once it has ended.
    pub fn ended(&self, execution: &str) -> Value {
        let mut shown = Value::Null;
        wait_for("the end", || {
            shown = self.show(execution);
            shown["status"] != "Running"
        });
        shown
    }

    /// The events of an execution.
    pub fn history(&self, execution: &str) -> Vec<Value> {
        let said: Value = serde_json::from_str(&self.run(&["history", execution, "--json"])).unwrap();
        said["items"].as_array().unwrap().clone()
    }
}

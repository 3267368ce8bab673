//! A database with an outbox, a server that takes from it, and sessions of its clients.

use crate::server::{PATIENCE, Server, starbridge};
use serde_json::Value;
use starbridge_services::{Kind, Service};
use std::io::{Read, Write};
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, Error, NoTls};

/// A flow that ends at once, and one that waits for somebody with its token.
const FLOWS: [(&str, &str); 2] = [
    (
        "order",
        r#"{"version": "v1", "type": "flow", "inputSchema": {"type": "object", "properties": {"id": {"type": "integer"}}},
        "steps": [{"type": "pass", "name": "p"}]}"#,
    ),
    (
        "work",
        r#"{"version": "v1", "type": "flow", "steps": [{"type": "task", "name": "wait", "resourceArn": "queue:q"}]}"#,
    ),
];

pub struct Stand {
    pub service: Service,
    pub folder: TempDir,
    pub server: Option<Server>,
    runtime: Runtime,
}

impl Stand {
    /// A database with an outbox, a client `shop` and a taker `flows`, and a server over a file.
    pub fn start() -> Self {
        let mut stand = Self::without_server();
        stand.serve();
        for (name, flow) in FLOWS {
            std::fs::write(stand.path().join(format!("{name}.json")), flow).unwrap();
            stand.well(&["flow", "put", &format!("{name}.json")]);
        }
        stand
    }

    pub fn without_server() -> Self {
        let stand = Self::installed();
        let roles = "create role shop login; grant starbridge_client to shop;
            create role flows login; grant starbridge_taker to flows;
            create table public.orders (id bigint primary key); grant all on public.orders to shop";
        stand.session("starbridge").run(roles).unwrap();
        stand
    }

    /// A database with an outbox, and nobody who uses it.
    pub fn installed() -> Self {
        let service = Service::start_with(Kind::Postgres, &["-c", "max_prepared_transactions=10"]);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let stand = Self {
            service,
            folder: tempfile::tempdir().unwrap(),
            server: None,
            runtime,
        };
        let installed = command(stand.path(), &["outbox", "install", &stand.service.url()]);
        assert!(installed.status.success(), "{}", said(&installed));
        stand.configure(stand.path(), stand.service.port());
        stand
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes the configuration of a server that takes from a database on this port.
    pub fn configure(&self, folder: &Path, port: u16) {
        self.configure_with(folder, port, "");
    }

    /// The same with more settings of the outbox.
    pub fn configure_with(&self, folder: &Path, port: u16, settings: &str) {
        let text = format!(
            "[[outboxes]]\nname = \"shop\"\nurl = \"postgres://flows:hidden@127.0.0.1:{port}/postgres?sslmode=disable\"\n{settings}"
        );
        std::fs::write(folder.join("server.toml"), text).unwrap();
    }

    pub fn serve(&mut self) {
        self.server = Some(Server::start(self.path(), &["--config", "server.toml"]));
    }

    /// Ends the server with no time to do anything.
    pub fn kill(&mut self) {
        self.server = None;
    }

    pub fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    /// A command that asks the server, and what it says.
    pub fn well(&self, words: &[&str]) -> String {
        let output = self.server().ask(self.path(), words);
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn get(&self, path: &str) -> Value {
        let answer = self.server().get(path);
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        // A long answer comes in chunks.
        let (from, to) = (body.find('{').unwrap(), body.rfind('}').unwrap());
        serde_json::from_str(&body[from..=to]).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }

    /// A session of a client.
    pub fn session(&self, user: &str) -> Session<'_> {
        let url = format!(
            "host=127.0.0.1 port={} user={user} dbname=postgres",
            self.service.port()
        );
        let client = self.runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
            tokio::spawn(connection);
            client
        });
        Session { stand: self, client }
    }

    /// Waits until this holds.
    #[expect(clippy::disallowed_methods, reason = "a server does not say when it has taken a row")]
    pub fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !holds() {
            assert!(Instant::now() < end, "{what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until nothing is left to do in the outbox.
    pub fn until_empty(&self) {
        let session = self.session("starbridge");
        self.until("the outbox is empty", || {
            session.text("select count(*)::text from starbridge.outbox") == "0"
        });
    }

    /// The same for many rows: it may take as long as it goes on.
    #[expect(clippy::disallowed_methods, reason = "a server does not say when it has taken a row")]
    pub fn until_emptied(&self) {
        let session = self.session("starbridge");
        let (mut left, mut end) = (String::new(), Instant::now() + PATIENCE);
        while left != "0" {
            let now = session.text("select count(*)::text from starbridge.outbox");
            if now != left {
                (left, end) = (now, Instant::now() + PATIENCE);
            }
            assert!(Instant::now() < end, "{left} rows are left");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The executions of a flow: their names.
    pub fn names(&self, flow: &str) -> Vec<String> {
        let said = self.well(&["list", "--flow", flow, "--all", "--json"]);
        let mut names = Vec::new();
        for page in said.lines() {
            let page: Value = serde_json::from_str(page).unwrap();
            for item in page["items"].as_array().unwrap() {
                names.push(item["name"].as_str().unwrap().to_owned());
            }
        }
        names.sort();
        names
    }

    /// The executions of a flow: their ids, and the numbers in their labels.
    pub fn ids(&self, flow: &str) -> Vec<(String, String)> {
        let said = self.well(&["list", "--flow", flow, "--all", "--json"]);
        let pages = said.lines().map(|page| serde_json::from_str::<Value>(page).unwrap());
        let items = pages.flat_map(|page| page["items"].as_array().unwrap().clone());
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        items
            .map(|item| (text(&item["id"]), text(&item["labels"]["number"])))
            .collect()
    }

    /// Takes tasks of a queue: their executions and tokens.
    pub fn take_tasks(&self, queue: &str, many: usize) -> Vec<(String, String)> {
        let address = self.server().address.trim_start_matches("http://").to_owned();
        let mut tasks = Vec::new();
        while tasks.len() < many {
            let mut stream = std::net::TcpStream::connect(&address).unwrap();
            let body = r#"{"worker": "tests", "waitSeconds": 10}"#;
            let length = body.len();
            write!(
                stream,
                "POST /v1/queues/{queue}/hold HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
            )
            .unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            let (from, to) = (answer.find('{').unwrap(), answer.rfind('}').unwrap());
            let held: Value = serde_json::from_str(&answer[from..=to]).unwrap();
            for task in held["tasks"].as_array().unwrap() {
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                tasks.push((text(&task["execution"]), text(&task["token"])));
            }
        }
        tasks
    }

    /// The name under which the server takes rows: it is in its store.
    pub fn taker(&self) -> String {
        let store = rusqlite::Connection::open(self.path().join("flows.db")).unwrap();
        let asked = "select text from shelf where kind = 'outbox' and name = 'taker'";
        store.query_row(asked, [], |row| row.get(0)).unwrap()
    }

    /// Waits until the executions of the flow `order` are these.
    pub fn until_names(&self, names: &[&str]) {
        self.until(&format!("{names:?} run, not {:?}", self.names("order")), || {
            self.names("order") == names
        });
    }

    pub fn refused(&self) -> Vec<Value> {
        self.get("/v1/outboxes/shop/refused")["items"]
            .as_array()
            .unwrap()
            .clone()
    }
}

pub struct Session<'s> {
    stand: &'s Stand,
    pub client: Client,
}

impl Session<'_> {
    pub fn run(&self, sql: &str) -> Result<(), Error> {
        self.stand.runtime.block_on(self.client.batch_execute(sql))
    }

    /// The only value that a query gives.
    pub fn text(&self, sql: &str) -> String {
        let row = self.stand.runtime.block_on(self.client.query_one(sql, &[]));
        row.unwrap_or_else(|error| panic!("{sql}: {error:?}")).get(0)
    }

    /// Numbers and texts that a query gives.
    pub fn pairs(&self, sql: &str) -> Vec<(i64, String)> {
        let rows = self.stand.runtime.block_on(self.client.query(sql, &[])).unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }

    /// Starts an execution of `order` with a name. Returns its id.
    pub fn order(&self, name: &str) -> String {
        self.text(&format!(
            "select starbridge.start_execution('order', '{{\"id\": 7}}', name => '{name}')::text"
        ))
    }

    /// What the database says to a statement that it refuses: message and hint.
    pub fn refusal(&self, sql: &str) -> String {
        let error = self.run(sql).expect_err(sql);
        let error = error.as_db_error().unwrap_or_else(|| panic!("{sql}: {error}"));
        format!("{} {}", error.message(), error.hint().unwrap_or_default())
    }
}

pub fn command(folder: &Path, words: &[&str]) -> Output {
    starbridge().args(words).current_dir(folder).output().unwrap()
}

pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

//! The pages on operations say what the program does.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/operations")
        .join(name);
    std::fs::read_to_string(path).unwrap()
}

/// The rows of a page's tables whose first cell is code: that, and the cells after it.
fn rows(page: &str) -> BTreeMap<String, Vec<String>> {
    page.lines()
        .filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"))
        .filter_map(|line| line.split_once("` | "))
        .map(|(first, rest)| {
            let cells = rest.split(" | ").map(|cell| cell.trim_matches('`').to_owned());
            (first.to_owned(), cells.collect())
        })
        .collect()
}

fn starbridge() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_starbridge"));
    command.env_clear().stdin(Stdio::null());
    command
}

/// A server that ends with the test, and its address.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(folder: &Path, more: &[&str]) -> Self {
        let mut child = starbridge()
            .args(["serve", "--db", "flows.db", "--listen", "127.0.0.1:0"])
            .args(more)
            .current_dir(folder)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let said = lines.find(|line| line.starts_with("listening on")).unwrap();
        std::thread::spawn(move || lines.count());
        let address = said.split("http://").nth(1).unwrap().split(',').next().unwrap();
        let address = address.to_owned();
        Self { child, address }
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn every_setting_has_a_row_with_its_default() {
    let printed = starbridge().args(["serve", "--print-config"]).output().unwrap().stdout;
    let config: toml::Table = toml::from_str(std::str::from_utf8(&printed).unwrap()).unwrap();
    let mut expected = BTreeMap::new();
    for (section, settings) in &config {
        match settings.as_table().filter(|settings| !settings.is_empty()) {
            None => drop(expected.insert(section.clone(), "none".to_owned())),
            Some(settings) => {
                for (setting, value) in settings {
                    expected.insert(format!("{section}.{setting}"), value.to_string());
                }
            }
        }
    }
    let documented = rows(&page("configuration.md"))
        .into_iter()
        .map(|(setting, cells)| (setting, cells[0].clone()));
    assert_eq!(documented.collect::<BTreeMap<_, _>>(), expected);
}

#[test]
fn every_metric_has_a_row_with_its_kind() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = Server::start(folder.path(), &[]).get("/metrics");
    let expected: BTreeMap<String, String> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .map(|(name, kind)| (name.to_owned(), kind.trim().to_owned()))
        .collect();
    assert!(!expected.is_empty(), "{metrics}");
    let documented = rows(&page("metrics.md"))
        .into_iter()
        .map(|(metric, cells)| (metric, cells[0].clone()));
    assert_eq!(documented.collect::<BTreeMap<_, _>>(), expected);
}

#[test]
fn the_configuration_that_is_shown_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    for (name, page) in [
        ("configuration", page("configuration.md")),
        ("notifications", page("notifications.md")),
        ("security", page("security.md")),
    ] {
        let shown = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
        let config = folder.path().join(name);
        std::fs::write(&config, shown.replace('…', &"0".repeat(64))).unwrap();
        let read = starbridge()
            .args(["serve", "--print-config", "--config"])
            .arg(&config)
            .output()
            .unwrap();
        assert!(
            read.status.success(),
            "{name}: {}",
            String::from_utf8_lossy(&read.stderr)
        );
    }
}

#[test]
fn the_routes_without_tokens_are_those_that_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let config = "[[tokens]]\nname = \"all\"\nsha256 = \"".to_owned() + &"0".repeat(64) + "\"\nscopes = [\"admin\"]\n";
    std::fs::write(folder.path().join("server.toml"), config).unwrap();
    let server = Server::start(folder.path(), &["--config", "server.toml"]);
    for open in ["/healthz", "/readyz", "/v1/openapi.json"] {
        assert!(page("security.md").contains(&format!("`{open}`")), "{open}");
        assert!(server.get(open).starts_with("HTTP/1.1 200"), "{open}");
    }
    for closed in ["/metrics", "/v1/flows", "/v1/executions"] {
        assert!(server.get(closed).starts_with("HTTP/1.1 401"), "{closed}");
    }
}

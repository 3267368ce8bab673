//! The pages on operations match the program.

use crate::server::{Server, starbridge};
use std::collections::BTreeMap;
use std::path::Path;

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/operations")
        .join(name);
    std::fs::read_to_string(path).unwrap()
}

/// The rows of a page's tables whose first cell is code: that cell, and the cells after it.
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
    // Unset settings are not printed, because an empty value would mean something else.
    let (unset, documented): (BTreeMap<_, _>, BTreeMap<_, _>) = documented.partition(|(_, usual)| usual == "not set");
    assert_eq!(documented, expected);
    assert_eq!(unset.into_keys().collect::<Vec<_>>(), ["secrets.use"]);
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
    // A server has those of a cluster if it is a node of one. Tests of clusters look at them.
    let (of_clusters, documented): (BTreeMap<_, _>, BTreeMap<_, _>) =
        documented.partition(|(metric, _)| metric.starts_with("starbridge_cluster_"));
    assert_eq!(documented, expected);
    assert_eq!(of_clusters.len(), 8);
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

#[test]
fn every_view_of_the_store_has_a_row() {
    let folder = tempfile::tempdir().unwrap();
    let _server = Server::start(folder.path(), &[]);
    let store = rusqlite::Connection::open(folder.path().join("flows.db")).unwrap();
    let mut views = store
        .prepare("SELECT name FROM sqlite_master WHERE type = 'view'")
        .unwrap();
    let views = views.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let documented = rows(&page("store.md"));
    let missing: Vec<String> = views
        .map(Result::unwrap)
        .filter(|view| !documented.contains_key(view))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(documented.contains_key("tasks_readable"));
}

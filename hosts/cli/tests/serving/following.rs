//! Following an execution of a server that has no room for it.

use crate::server::Server;
use serde_json::Value;

#[test]
fn where_no_more_may_follow_the_bound_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let flow = r#"{"version": "v1", "type": "flow", "steps": [{"type": "wait", "name": "w", "duration": 3600}]}"#;
    std::fs::write(here.join("sleep.json"), flow).unwrap();
    std::fs::write(here.join("server.toml"), "[server]\nfollowers = 0\n").unwrap();
    let server = Server::start(here, &["--config", "server.toml"]);
    assert!(server.ask(here, &["flow", "put", "sleep.json"]).status.success());
    let started = server.ask(here, &["start", "sleep", "--name", "one", "--json"]);
    let started: Value = serde_json::from_slice(&started.stdout).unwrap();
    assert_eq!(started["status"], "Running", "{started}");
    let followed = server.ask(here, &["show", "sleep/one", "--follow"]);
    let said = String::from_utf8_lossy(&followed.stderr);
    assert_eq!(followed.status.code(), Some(3), "{said}");
    assert!(said.contains("(0, `server.followers`)"), "{said}");
    assert!(!said.contains("stopping") && !said.contains("can't reach"), "{said}");
}

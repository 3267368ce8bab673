//! The children of an execution in the output of `show`.

use crate::server::Server;
use std::path::Path;

fn shown(server: &Server, here: &Path, flow: &str) -> String {
    let started = server.ask(here, &["start", flow, "--name", "one", "--wait", "30"]);
    assert!(started.status.success(), "{started:?}");
    let shown = server.ask(here, &["show", &format!("{flow}/one")]);
    String::from_utf8_lossy(&shown.stdout).into_owned()
}

#[test]
fn children_are_named_whatever_the_resource_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let child = r#"{"version": "v1", "type": "flow", "steps": [{"type": "pass", "name": "p"}]}"#;
    let parent = |pattern: &str| {
        format!(
            r#"{{"version": "v1", "type": "flow", "steps": [
                {{"type": "task", "name": "bill", "resourceArn": "acs:billing", "pattern": "{pattern}"}}]}}"#
        )
    };
    std::fs::write(here.join("child.json"), child).unwrap();
    std::fs::write(here.join("waits.json"), parent("sync")).unwrap();
    std::fs::write(here.join("sends.json"), parent("requestResponse")).unwrap();
    std::fs::write(
        here.join("server.toml"),
        "[resources]\n\"acs:billing\" = \"flow:child\"\n",
    )
    .unwrap();
    let server = Server::start(here, &["--config", "server.toml"]);
    for flow in ["child", "waits", "sends"] {
        let put = server.ask(here, &["flow", "put", &format!("{flow}.json")]);
        assert!(put.status.success(), "{put:?}");
    }
    for flow in ["waits", "sends"] {
        let shown = shown(&server, here, flow);
        assert!(shown.contains("child/") && shown.contains("(step `bill`)"), "{shown}");
    }
}

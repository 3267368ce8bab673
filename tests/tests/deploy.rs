//! The deployment files for Lambda define the table that the store needs; those for clusters have settings that there are.

use starbridge_dynamodb::table::{TABLE, TTL};
use starbridge_flow::syntax::{self, Node};
use starbridge_node::config::Config;
use starbridge_tests::data;

fn read(file: &str) -> String {
    std::fs::read_to_string(data::root().join("deploy").join(file)).unwrap()
}

#[test]
fn the_template_and_the_steps_make_the_stores_table() {
    let (template, steps) = (read("template.yaml"), read("README.md"));
    for (index, hash, range, more) in TABLE {
        for key in [hash, range] {
            let attribute = format!("{{AttributeName: {key}, AttributeType: S}}");
            assert!(template.contains(&attribute), "the template lacks `{attribute}`");
            let attribute = format!("AttributeName={key},AttributeType=S");
            assert!(steps.contains(&attribute), "the steps lack `{attribute}`");
        }
        let template_keys = format!("- {{AttributeName: {hash}, KeyType: HASH}}");
        assert!(
            template.contains(&template_keys),
            "the template lacks `{template_keys}`"
        );
        if index.is_empty() {
            continue;
        }
        let line = format!("NonKeyAttributes: [{}]", more.join(", "));
        assert!(template.contains(&line), "the template lacks `{line}` for `{index}`");
        let words = format!(
            "IndexName={index},KeySchema=[{{AttributeName={hash},KeyType=HASH}},{{AttributeName={range},KeyType=RANGE}}],\
             Projection={{ProjectionType=INCLUDE,NonKeyAttributes=[{}]}}",
            more.join(",")
        );
        assert!(steps.contains(&words), "the steps lack `{words}`");
    }
    assert!(template.contains(&format!("AttributeName: {TTL}")));
    assert!(steps.contains(&format!("Enabled=true,AttributeName={TTL}")));
}

/// The texts of an object, by name.
fn texts(node: &Node) -> Vec<(String, String)> {
    let members = node.members().iter();
    members
        .filter_map(|member| Some((member.key.to_string(), member.value.as_str()?.to_owned())))
        .collect()
}

#[test]
fn the_compose_file_has_three_nodes_of_one_cluster() {
    let source = syntax::Source::new("compose.yaml", read("compose.yaml"));
    let parsed = syntax::parse(&source);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let root = parsed.root.unwrap();
    let services = root.get("services").unwrap();
    let mut nodes = Vec::new();
    for service in services.members() {
        let Some(environment) = service
            .value
            .get("environment")
            .filter(|_| service.value.get("command").is_some())
        else {
            continue;
        };
        let config = Config::read("", texts(environment).into_iter()).unwrap();
        config.check_cluster().unwrap();
        assert_eq!(config.cluster.reached_at(), format!("{}:7979", config.cluster.node));
        let (ports, listen) = (service.value.get("ports").unwrap(), config.server.listen.port());
        let port = ports.items()[0].as_str().unwrap();
        assert!(port.ends_with(&format!(":{listen}")), "{port}");
        nodes.push(config.cluster.node);
    }
    assert_eq!(nodes, ["a", "b", "c"]);
}

#[test]
fn the_unit_has_sections_with_settings() {
    let unit = read("starbridge.service");
    let mut section = "";
    let mut settings = Vec::new();
    for line in unit.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[') {
            section = name.strip_suffix(']').unwrap_or_else(|| panic!("{line}"));
            assert!(["Unit", "Service", "Install"].contains(&section), "{line}");
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or_else(|| panic!("{line}"));
        assert!(key.chars().all(char::is_alphanumeric) && !section.is_empty(), "{line}");
        settings.push((section, key, value));
    }
    let of = |key: &str| {
        settings
            .iter()
            .find(|(_, name, _)| *name == key)
            .map(|(_, _, value)| *value)
    };
    let started = of("ExecStart").unwrap();
    assert!(
        started.starts_with("/usr/local/bin/starbridge serve --config /"),
        "{started}"
    );
    let drain = Config::default().server.drain_seconds;
    assert!(of("TimeoutStopSec").unwrap().parse::<u64>().unwrap() > drain);
    assert_eq!(
        of("Restart"),
        Some("on-failure"),
        "a drained node has ended well, and stays so"
    );
}

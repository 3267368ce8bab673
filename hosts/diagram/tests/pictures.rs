//! Pictures compared with expected ones: each flow of `pictures/` in each form, coloured if there is a case beside
//! it.
//!
//! `UPDATE=1` rewrites the expectations.

use starbridge_diagram::{FlowStatus, InPage, Words, dot, mermaid, svg, svg_in_page};
use starbridge_fdl::check;
use starbridge_flow::graph::Flow;
use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::Source;
use starbridge_simulator::{Case, Flows, Simulation};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pictures")
}

fn read(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn names() -> BTreeSet<String> {
    let files = fs::read_dir(folder()).unwrap();
    files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect()
}

fn flow(name: &str) -> Arc<Flow> {
    let checked = check(&Source::new(name, read(name)), &Limits::default());
    checked
        .flow
        .unwrap_or_else(|| panic!("{name}: {:#?}", checked.diagnostics))
}

/// The coloring by the history of a case.
fn status(flow: &Arc<Flow>, case: &str) -> FlowStatus {
    let case: Case = serde_json::from_str(&read(case)).unwrap_or_else(|error| panic!("{case}: {error}"));
    let flows = Flows {
        name: "flow".to_owned(),
        flow: flow.clone(),
        children: BTreeMap::new(),
    };
    let mut simulation = Simulation::new(flows, case, Limits::default());
    simulation.run().unwrap();
    FlowStatus::from_history(flow, simulation.histories().values().next().unwrap())
}

/// All pictures, by the names of their files.
fn pictures() -> BTreeMap<String, String> {
    let mut pictures = BTreeMap::new();
    let names = names();
    for name in names
        .iter()
        .filter_map(|name| name.strip_suffix(".json"))
        .filter(|name| !name.contains('.'))
    {
        let flow = flow(&format!("{name}.json"));
        let mut draw = |name: &str, status: Option<&FlowStatus>| {
            pictures.insert(format!("{name}.svg"), svg(&flow, status));
            pictures.insert(format!("{name}.dot"), dot(&flow, status));
            pictures.insert(format!("{name}.mmd"), mermaid(&flow, status));
        };
        draw(name, None);
        let case = format!("{name}.case.json");
        if names.contains(&case) {
            draw(&format!("{name}-undone"), Some(&status(&flow, &case)));
        }
    }
    pictures
}

#[test]
fn pictures_are_as_expected() {
    let update = std::env::var_os("UPDATE").is_some();
    let pictures = pictures();
    assert!(pictures.len() >= 12, "{:?}", pictures.keys());
    let mut wrong = Vec::new();
    for (name, picture) in &pictures {
        if update {
            fs::write(folder().join(name), picture).unwrap();
        }
        if fs::read_to_string(folder().join(name)).unwrap_or_default() != *picture {
            wrong.push(name);
        }
    }
    assert!(
        wrong.is_empty(),
        "other pictures than {wrong:?}; UPDATE=1 writes them anew"
    );
    let unused: Vec<String> = names()
        .into_iter()
        .filter(|name| !name.ends_with(".json") && !pictures.contains_key(name))
        .collect();
    assert!(unused.is_empty(), "nothing draws {unused:?}");
}

/// Names and errors from outside are shown as text; all markup comes from the picture itself.
#[test]
fn hostile_names_stay_text() {
    let flow = flow("hostile.json");
    let svg = svg(&flow, None);
    assert!(
        !svg.contains("<script") && !svg.contains("secret=1") && !svg.contains("u:p@"),
        "{svg}"
    );
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').unwrap();
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap();
        assert!(
            [
                "svg", "title", "desc", "style", "rect", "g", "path", "text", "tspan", "circle", "polygon", "line"
            ]
            .contains(&name),
            "<{tag}>"
        );
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?} are not closed");
    assert!(!mermaid(&flow, None).contains("<script"));
}

/// What a picture says, without names, errors and code.
#[test]
fn pictures_of_chinese_pages_have_no_english_words() {
    // Words of the interpreter; those of the flows are names.
    let english = [
        "not reached",
        " running",
        "waiting",
        "way taken",
        "caught error",
        "otherwise",
        "goes on",
        "at once",
        "any error",
        "operator",
        " attempts",
        "undone",
        "timeout",
        "A flow of",
        "Steps:",
        "begin<",
        "end<",
        "retry ",
        "each of",
        "until ",
    ];
    for name in names().iter().filter_map(|name| name.strip_suffix(".case.json")) {
        let flow = flow(&format!("{name}.json"));
        let status = status(&flow, &format!("{name}.case.json"));
        let look = InPage {
            words: Words::Chinese,
            ..InPage::default()
        };
        let picture = svg_in_page(&flow, Some(&status), &look);
        let found: Vec<&&str> = english.iter().filter(|word| picture.contains(**word)).collect();
        assert!(found.is_empty(), "{name}: {found:?}");
        assert!(picture.contains("完成"), "{name}");
    }
}

/// A page leads to the steps of its picture, shows the one that is chosen, and has less to draw where there are many.
#[test]
fn steps_of_a_picture_in_a_page_lead_somewhere() {
    let steps = |count: usize| {
        let steps = (0..count).map(|number| {
            format!(r#"{{"type": "task", "name": "s{number}", "resourceArn": "http://shop.example/{number}", "timeoutSeconds": 10}}"#)
        });
        let steps: Vec<String> = steps.collect();
        let definition = format!(r#"{{"version": "v1", "type": "flow", "steps": [{}]}}"#, steps.join(","));
        check(&Source::new("many.flow.json", &definition), &Limits::default())
            .flow
            .unwrap()
    };
    let link = |step: &str| format!("?of=<{step}>&at=2");
    let look = InPage {
        link: Some(&link),
        chosen: Some("s1"),
        ..InPage::default()
    };
    let few = svg_in_page(&steps(3), None, &look);
    assert!(few.contains("<a class=\"card at\""), "{few}");
    assert_eq!(few.matches("</a>").count(), 3);
    assert!(
        few.contains(" href=\"?of=&lt;s1&gt;&amp;at=2\">") && few.contains("role=\"group\""),
        "{few}"
    );
    assert!(few.contains("shop.example/1") && few.contains("timeout 10 s"));
    let small = svg_in_page(&steps(3), None, &InPage { compact: true, ..look });
    assert!(
        !small.contains("shop.example") && !small.contains("timeout") && small.contains(">s1<"),
        "{small}"
    );
    let many = svg_in_page(&steps(1_000), None, &InPage::default());
    assert!(
        !many.contains("shop.example") && !many.contains("<a "),
        "{}",
        many.len()
    );
    // Alone, it has all there is to say, and leads nowhere.
    assert!(svg(&steps(1_000), None).contains("shop.example/999"));
}

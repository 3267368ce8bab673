//! Cargo's data about the packages.

use serde_json::Value;
use starbridge_tests::data;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::LazyLock;

/// One package, of the workspace or from elsewhere.
pub struct Package {
    /// Its name.
    pub name: String,
    /// Whether it is the project's own.
    pub own: bool,
    /// The licence that it states.
    pub license: String,
    /// Names of the packages it builds with; not those for its tests.
    pub uses: BTreeSet<String>,
    /// Names of the packages only its tests and benchmarks build with.
    pub tests_use: BTreeSet<String>,
    /// Ids of the packages that end up in it.
    pub built_with: Vec<String>,
}

/// All packages by id, as the lock file has them for this platform.
pub static PACKAGES: LazyLock<BTreeMap<String, Package>> = LazyLock::new(|| {
    // Tests run after a build, so cargo need not fetch anything; only an unusual platform needs
    // more.
    let text = metadata(true)
        .or_else(|_| metadata(false))
        .unwrap_or_else(|error| panic!("{error}"));
    packages(&serde_json::from_str(&text).unwrap_or_default())
});

/// The project's own packages by name.
pub fn own() -> BTreeMap<&'static str, &'static Package> {
    let own = PACKAGES.values().filter(|package| package.own);
    own.map(|package| (package.name.as_str(), package)).collect()
}

/// The names of all that ends up in a package, itself included.
pub fn closure(name: &str) -> BTreeSet<&'static str> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&String> = PACKAGES
        .iter()
        .filter(|(_, package)| package.name == name)
        .map(|(id, _)| id)
        .collect();
    while let Some(id) = open.pop() {
        if let Some(package) = PACKAGES.get(id).filter(|_| seen.insert(id)) {
            open.extend(&package.built_with);
        }
    }
    seen.into_iter()
        .filter_map(|id| Some(PACKAGES.get(id)?.name.as_str()))
        .collect()
}

fn metadata(offline: bool) -> Result<String, String> {
    let mut command = cargo();
    command.args([
        "metadata",
        "--format-version",
        "1",
        "--locked",
        "--all-features",
        "--filter-platform",
        &host(),
    ]);
    if offline {
        command.arg("--offline");
    }
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(data::root());
    command
}

/// The platform this is built on.
fn host() -> String {
    let output = cargo()
        .arg("-vV")
        .output()
        .unwrap_or_else(|error| panic!("cargo: {error}"));
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.unwrap_or_else(|| panic!("cargo does not say its host:\n{text}"))
        .to_owned()
}

fn packages(metadata: &Value) -> BTreeMap<String, Package> {
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let members: BTreeSet<String> = list(&metadata["workspace_members"]).iter().map(text).collect();
    let built_with: BTreeMap<String, Vec<String>> = list(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| {
            let built = list(&node["deps"]).into_iter().filter(|dependency| {
                list(&dependency["dep_kinds"])
                    .iter()
                    .any(|kind| kind["kind"].as_str() != Some("dev"))
            });
            (
                text(&node["id"]),
                built.map(|dependency| text(&dependency["pkg"])).collect(),
            )
        })
        .collect();
    list(&metadata["packages"])
        .iter()
        .map(|package| {
            let id = text(&package["id"]);
            let named = |tests: bool| {
                let dependencies = list(&package["dependencies"]).into_iter();
                let wanted = dependencies.filter(|dependency| (dependency["kind"].as_str() == Some("dev")) == tests);
                wanted.map(|dependency| text(&dependency["name"])).collect()
            };
            let package = Package {
                name: text(&package["name"]),
                own: members.contains(&id),
                license: text(&package["license"]),
                uses: named(false),
                tests_use: named(true),
                built_with: built_with.get(&id).cloned().unwrap_or_default(),
            };
            (id, package)
        })
        .collect()
}

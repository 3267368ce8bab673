//! No circles of imports between the files of a crate.
//!
//! A file that names something of another file depends on it. Files that depend on each other, directly or by way of others,
//! can only be understood together: they are a circle, and forbidden. The rules for counting:
//!
//! - A name counts for the file that defines it, not for the one that hands it on.
//! - A file may use what the modules around it define: `super` is the module that contains it. So
//!   children that extend a type of their parent, which calls them, are no circle.
//! - A parent that declares its children and hands their names on does not depend on them; one that uses them does.
//! - Tests do not count.

use super::modules::{self, Module, Names};
use super::{files, nothing_wrong};
use std::collections::{BTreeMap, BTreeSet};

/// The files of one crate by their modules.
struct Crate {
    modules: BTreeMap<Names, Module>,
}

/// Whom a module depends on, each with a name that shows it.
type Edges = BTreeMap<Names, BTreeMap<Names, String>>;

/// How often a name may be handed on.
const HANDED_ON: usize = 16;

impl Crate {
    /// A crate from its sources by their paths below `src/`.
    fn read<'a>(sources: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let read = sources.into_iter().map(|(path, source)| {
            let module = module_of(path);
            let read = modules::read(&module, source);
            (module, read)
        });
        Self {
            modules: read.collect(),
        }
    }

    /// The innermost module of a path that has a file, and what is left of the path.
    fn split<'a>(&self, path: &'a [String]) -> (&'a [String], &'a [String]) {
        let ends = (0..=path.len()).rev();
        let end = ends.into_iter().find(|&end| self.modules.contains_key(&path[..end]));
        path.split_at(end.unwrap_or_default())
    }

    /// The module that defines what a path names; nothing, if that is in another crate.
    fn home(&self, path: &[String]) -> Option<Names> {
        let mut path = path.to_vec();
        for _ in 0..HANDED_ON {
            let (file, rest) = self.split(&path);
            let (Some(module), Some((name, rest))) = (self.modules.get(file), rest.split_first()) else {
                return Some(file.to_vec());
            };
            if module.defines.contains(name) {
                return Some(file.to_vec());
            }
            let Some(import) = module.imports.iter().find(|import| import.name == *name) else {
                return Some(self.by_glob(module, name).unwrap_or_else(|| file.to_vec()));
            };
            path = import.path.clone()?.into_iter().chain(rest.iter().cloned()).collect();
        }
        None
    }

    /// The module that defines a name which another one takes with `*`.
    fn by_glob(&self, module: &Module, name: &String) -> Option<Names> {
        let globs = module.imports.iter().filter(|import| import.name == "*");
        globs.filter_map(|glob| glob.path.clone()).find(|path| {
            self.modules
                .get(path)
                .is_some_and(|module| module.defines.contains(name))
        })
    }

    fn edges(&self) -> Edges {
        let mut edges = Edges::new();
        for (file, module) in &self.modules {
            let used = |name: &str| module.words.contains(name);
            let imports = module
                .imports
                .iter()
                .filter(|import| !import.public || used(&import.name));
            let imports = imports.filter_map(|import| import.path.as_ref());
            for path in imports.chain(&module.paths) {
                if let Some(home) = self.home(path).filter(|home| !file.starts_with(home)) {
                    let name = path.last().cloned().unwrap_or_default();
                    edges.entry(file.clone()).or_default().entry(home).or_insert(name);
                }
            }
        }
        edges
    }

    /// The circles: each with its arrows.
    fn circles(&self) -> Vec<String> {
        let edges = self.edges();
        let reach: BTreeMap<&Names, BTreeSet<&Names>> =
            edges.keys().map(|file| (file, reached(&edges, file))).collect();
        let both_ways = |a: &Names, b: &Names| {
            let reaches = |from: &Names, to: &Names| reach.get(from).is_some_and(|reached| reached.contains(to));
            reaches(a, b) && reaches(b, a)
        };
        let mut seen: BTreeSet<&Names> = BTreeSet::new();
        let mut found = Vec::new();
        for file in edges.keys() {
            if !both_ways(file, file) || !seen.insert(file) {
                continue;
            }
            let circle: Vec<&Names> = edges.keys().filter(|other| both_ways(file, other)).collect();
            seen.extend(&circle);
            let mut arrows = Vec::new();
            for from in &circle {
                let to = edges[*from].iter().filter(|(to, _)| circle.contains(to));
                arrows.extend(to.map(|(to, name)| format!("{} -> {} ({name})", from.join("::"), to.join("::"))));
            }
            found.push(arrows.join(", "));
        }
        found
    }
}

/// All that can be reached from a file.
fn reached<'a>(edges: &'a Edges, file: &Names) -> BTreeSet<&'a Names> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&Names> = edges.get(file).into_iter().flat_map(BTreeMap::keys).collect();
    while let Some(file) = open.pop() {
        if found.insert(file) {
            open.extend(edges.get(file).into_iter().flat_map(BTreeMap::keys));
        }
    }
    found
}

/// The module of a file, by its path below `src/`.
fn module_of(path: &str) -> Names {
    let names = path.trim_end_matches(".rs").split('/').map(str::to_owned);
    let mut names: Names = names.collect();
    names.pop_if(|name| matches!(name.as_str(), "lib" | "main" | "mod"));
    names
}

#[test]
fn no_crate_has_a_circle_of_files() {
    let sources = files::rust();
    let is_root = |folder: &str, name: &str| sources.iter().any(|file| file.path == format!("{folder}{name}"));
    let mut roots = BTreeSet::new();
    for file in &sources {
        if let Some((folder, _)) = file.path.split_once("src/") {
            roots.insert(format!("{folder}src/"));
        }
    }
    assert!(roots.len() > 15, "the crates are not where they are expected");
    let mut wrong = Vec::new();
    for root in &roots {
        let has_library = is_root(root, "lib.rs");
        let of_crate = sources.iter().filter_map(|file| {
            let path = file.path.strip_prefix(root.as_str())?;
            // Programs beside a library are crates of their own.
            let is_program = path.starts_with("bin/") || (path == "main.rs" && has_library);
            (!is_program).then(|| (path, file.text()))
        });
        let circles = Crate::read(of_crate).circles();
        wrong.extend(circles.into_iter().map(|circle| format!("{root}: {circle}")));
    }
    nothing_wrong(&wrong);
}

/// The circles of a crate with these files.
fn circles(sources: &[(&str, &str)]) -> Vec<String> {
    Crate::read(sources.iter().copied()).circles()
}

#[test]
fn circles_are_found() {
    for (sources, expected) in [
        // Two files that import each other, one by a path in its code.
        (
            &[
                ("lib.rs", "mod a;\nmod b;"),
                ("a.rs", "use crate::b::B;\npub struct A;"),
                ("b.rs", "pub struct B;\nfn b() { super::a::A; }"),
            ][..],
            "a -> b (B), b -> a (A)",
        ),
        // By way of a third, and of names that their parent hands on.
        (
            &[
                ("lib.rs", "mod a;\nmod b;\nmod c;\npub use b::B;"),
                ("a.rs", "use crate::B;\npub fn a() {}"),
                ("b.rs", "use crate::c;\npub struct B;\nfn b() { c::d(); }"),
                ("c.rs", "use super::a::a;\npub fn d() { a() }"),
            ],
            "a -> b (B), b -> c (c), c -> a (a)",
        ),
        // A parent that uses its child, which comes back through its uncle.
        (
            &[
                ("lib.rs", "mod a;\nmod b;"),
                ("a.rs", "mod child;\npub struct A;\nfn a() { child::c() }"),
                ("a/child.rs", "use crate::b::B;\npub fn c() {}"),
                ("b.rs", "use crate::a::A;\npub struct B;"),
            ],
            "a -> a::child (c), a::child -> b (B), b -> a (A)",
        ),
    ] {
        let found = circles(sources).join("; ");
        assert_eq!(found, expected, "{sources:?}");
    }
}

#[test]
fn families_and_tests_are_no_circles() {
    // A parent hands on what its child defines, and its child uses the parent's type.
    let family = [
        ("lib.rs", "mod a;\npub use a::{A, C};"),
        (
            "a.rs",
            "mod child;\npub use child::C;\npub struct A;\nfn a() { child::c() }",
        ),
        ("a/child.rs", "use super::A;\npub struct C;\npub fn c() { crate::A }"),
    ];
    assert_eq!(circles(&family), Vec::<String>::new());
    let handed_on = [
        ("lib.rs", "mod a;\nmod b;"),
        ("a.rs", "mod child;\npub use child::C;\npub struct A;"),
        ("a/child.rs", "use crate::b::B;\npub struct C;"),
        ("b.rs", "use crate::a::A;\npub struct B;"),
    ];
    assert_eq!(circles(&handed_on), Vec::<String>::new());
    let tested = [
        ("lib.rs", "mod a;\nmod b;"),
        (
            "a.rs",
            "pub struct A;\n#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}",
        ),
        ("b.rs", "use crate::a::A;\npub struct B;"),
    ];
    assert_eq!(circles(&tested), Vec::<String>::new());
}

//! The files that pages need. Their addresses have their hash, so that a browser may keep each for ever.

use sha2::{Digest, Sha256};
use std::sync::OnceLock;

/// A file.
#[derive(Clone, Debug)]
pub struct Asset {
    /// Its name with the hash.
    pub name: String,
    /// Its media type.
    pub kind: &'static str,
    /// What it contains.
    pub bytes: &'static [u8],
}

pub(crate) const SHEET: &str = "console.css";
pub(crate) const SCRIPT: &str = "console.js";
/// The script that hears of changes.
pub(crate) const LIVE: &str = "live.js";
/// The script that chooses a span of time.
pub(crate) const PULSE: &str = "pulse.js";
/// The script that sends forms once.
pub(crate) const FORMS: &str = "forms.js";
/// The script of single keys.
pub(crate) const KEYS: &str = "keys.js";
/// The script that plays a history.
pub(crate) const TRAVEL: &str = "travel.js";
/// The script that shows the steps of a list.
pub(crate) const STRIPS: &str = "strips.js";
/// The script that copies, and knows the zone of the browser.
pub(crate) const TOOLS: &str = "tools.js";
/// The script of lists: what is chosen, what is new, and a look at a row.
pub(crate) const LIST: &str = "list.js";
/// The script of the graph and the time line.
pub(crate) const STAGE: &str = "stage.js";
/// The script that draws each item of a foreach.
pub(crate) const MAP: &str = "map.js";
/// The picture in the browser's tab.
pub(crate) const ICON: &str = "icon.svg";

const FILES: &[(&str, &str, &[u8])] = &[
    (
        SHEET,
        "text/css; charset=utf-8",
        include_bytes!("../assets/console.css"),
    ),
    (
        SCRIPT,
        "text/javascript; charset=utf-8",
        include_bytes!("../assets/console.js"),
    ),
    (
        LIVE,
        "text/javascript; charset=utf-8",
        include_bytes!("../assets/live.js"),
    ),
    (
        PULSE,
        "text/javascript; charset=utf-8",
        include_bytes!("../assets/pulse.js"),
    ),
    (
        KEYS,
        "text/javascript; charset=utf-8",
        include_bytes!("../assets/keys.js"),
    ),
    (
        FORMS,
        "text/javascript; charset=utf-8",
        include_bytes!("../assets/forms.js"),
    ),
    (
        TRAVEL,
        "text/javascript; charset=utf-8",
        include_bytes!("../assets/travel.js"),
    ),
    (
        STRIPS,
        "text/javascript; charset=utf-8",
        include_bytes!("../assets/strips.js"),
    ),
    (
        TOOLS,
        "text/javascript; charset=utf-8",
        include_bytes!("../assets/tools.js"),
    ),
    (
        LIST,
        "text/javascript; charset=utf-8",
        include_bytes!("../assets/list.js"),
    ),
    (
        STAGE,
        "text/javascript; charset=utf-8",
        include_bytes!("../assets/stage.js"),
    ),
    (
        MAP,
        "text/javascript; charset=utf-8",
        include_bytes!("../assets/map.js"),
    ),
    (ICON, "image/svg+xml", include_bytes!("../assets/icon.svg")),
];

/// All files.
pub fn assets() -> &'static [Asset] {
    static ALL: OnceLock<Vec<Asset>> = OnceLock::new();
    ALL.get_or_init(|| {
        let named = |(name, kind, bytes): &(&str, &'static str, &'static [u8])| Asset {
            name: hashed(name, bytes),
            kind,
            bytes,
        };
        FILES.iter().map(named).collect()
    })
}

/// The file with this name and hash.
pub fn asset(name: &str) -> Option<&'static Asset> {
    assets().iter().find(|asset| asset.name == name)
}

/// The address of a file, given by its name without the hash.
pub(crate) fn address(name: &str) -> String {
    let at = FILES.iter().position(|(known, _, _)| *known == name);
    let asset = at.and_then(|at| assets().get(at));
    asset.map_or_else(String::new, |asset| format!("/console/{}", asset.name))
}

fn hashed(name: &str, bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let hash = starbridge_flow::hex::encode(digest.get(..6).unwrap_or_default());
    match name.rsplit_once('.') {
        Some((stem, ending)) => format!("{stem}.{hash}.{ending}"),
        None => format!("{name}.{hash}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_is_found_under_its_address() {
        for (name, _, bytes) in FILES {
            let address = address(name);
            let found = asset(address.strip_prefix("/console/").unwrap()).unwrap();
            assert_eq!(found.bytes, *bytes);
        }
        assert!(asset("console.css").is_none());
    }

    #[test]
    fn files_load_nothing_from_elsewhere() {
        for (name, _, bytes) in FILES.iter().filter(|(name, _, _)| *name != ICON) {
            let text = std::str::from_utf8(bytes).unwrap();
            for foreign in [
                "@import",
                "http:",
                "https:",
                "url(//",
                "@font-face",
                "innerHTML",
                "eval(",
            ] {
                assert!(!text.contains(foreign), "{name}: {foreign}");
            }
        }
        let scripts = FILES.iter().filter(|(name, _, _)| name.ends_with(".js"));
        for (name, _, script) in scripts {
            assert!(script.iter().filter(|byte| **byte == b'\n').count() <= 200, "{name}");
        }
    }
}

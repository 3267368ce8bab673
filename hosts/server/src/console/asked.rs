//! The parameters of pages.

use super::answer::PageRefusal;
use super::page::ZONE_OF_LINK;
use axum::extract::Query;
use starbridge_console::Zone;
use starbridge_node::problem::{Problem, quoted};

/// The parameters of a page, as its address has them.
pub type Parameters = Query<Vec<(String, String)>>;

/// The parameters of a page that are not empty.
pub struct Asked {
    pub given: Vec<(String, String)>,
}

impl Asked {
    /// Refuses what the page does not know.
    pub fn of(given: Parameters, known: &[&str]) -> Result<Self, PageRefusal> {
        let mut given: Vec<_> = given.0.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        let unknown = |(key, zone): &&(String, String)| key == ZONE_OF_LINK && Zone::parse(zone).is_none();
        if let Some((_, zone)) = given.iter().find(unknown) {
            return Err(no_zone(zone).into());
        }
        given.retain(|(key, _)| key != ZONE_OF_LINK);
        match given.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            None => Ok(Self { given }),
            Some((key, _)) => {
                let known = known.join(", ");
                Err(Problem::bad(format!("this page has no parameter {}: known are {known}", quoted(key))).into())
            }
        }
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.given.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| value.as_str())
    }

    /// All that was given for a parameter.
    pub fn each(&self, key: &str) -> impl Iterator<Item = &str> {
        let given = self.given.iter().filter(move |(known, _)| known == key);
        given.map(|(_, value)| value.as_str())
    }

    /// The parameters as the API takes them.
    pub fn pairs<'a>(&'a self, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let given = self.given.iter().filter(|(key, _)| key != "done");
        let given = given.map(|(key, value)| (key.as_str(), value.as_str()));
        given.chain(more.iter().copied()).collect()
    }
}

/// What is said of a time zone that there is not.
pub fn no_zone(name: &str) -> Problem {
    let detail = format!(
        "there is no time zone {}: write `UTC`, or a name as `Asia/Shanghai`",
        quoted(name)
    );
    Problem::bad(detail)
}

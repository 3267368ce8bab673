//! Suggests existing names of a server that are similar to an unknown one.

use super::{Client, Problem};
use crate::views::text;
use starbridge_flow::diagnostics::nearest;
use starbridge_flow::value::Object;
use starbridge_node::escaping::escaped;

/// How many entries are looked at.
const PAGE_ITEMS: &str = "1000";

impl Client {
    /// Asks whether something with a similar name was meant. `path` is the requested path, `flow`
    /// the flow in the body.
    pub(super) fn near(&self, problem: &Problem, path: &[&str], flow: Option<&str>) -> Option<String> {
        match (problem.code(), path) {
            ("NoSuchFlow", ["flows", wanted, ..]) => self.near_in(&["flows"], wanted),
            ("NoSuchFlow", _) => {
                let wanted = flow?;
                let meant = self.near_in(&["flows"], wanted)?;
                Some(format!("there is no flow `{}`: {meant}", escaped(wanted)))
            }
            ("NoSuchExecution", ["flows", flow, "executions", wanted]) => self.near_execution(flow, wanted),
            ("NoSuchSchedule", ["schedules", wanted, ..]) => self.near_in(&["schedules"], wanted),
            ("NoSuchQueue", ["queues", wanted, ..]) => self.near_in(&["queues"], wanted),
            _ => None,
        }
    }

    /// A flow that does not exist has no executions either, so the flow is checked first.
    fn near_execution(&self, flow: &str, wanted: &str) -> Option<String> {
        let flows = self.names(&["flows"], &[])?;
        if !flows.iter().any(|name| name == flow) {
            let meant = nearest(flow, flows.iter().map(String::as_str));
            let meant = meant.map(|meant| format!(": did you mean `{}/{}`?", escaped(meant), escaped(wanted)));
            return Some(format!(
                "there is no flow `{}`{}",
                escaped(flow),
                meant.unwrap_or_default()
            ));
        }
        let query = [("flow", flow.to_owned()), ("limit", PAGE_ITEMS.to_owned())];
        let names = self.names(&["executions"], &query)?;
        let meant = nearest(wanted, names.iter().map(String::as_str))?;
        Some(format!("did you mean `{}/{}`?", escaped(flow), escaped(meant)))
    }

    fn near_in(&self, list: &[&str], wanted: &str) -> Option<String> {
        let names = self.names(list, &[])?;
        let meant = nearest(wanted, names.iter().map(String::as_str))?;
        Some(format!("did you mean `{}`?", escaped(meant)))
    }

    fn names(&self, list: &[&str], query: &[(&str, String)]) -> Option<Vec<String>> {
        let (items, _) = self.aside(list, query)?.page();
        let name = |item: &Object| text(item, "name").map(str::to_owned);
        Some(items.iter().filter_map(name).collect())
    }
}

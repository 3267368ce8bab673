//! Suggests existing names of a server that are similar to an unknown one.

use super::{Client, Problem};
use crate::views::text;
use starbridge_flow::diagnostics::nearest;
use starbridge_flow::value::Object;
use starbridge_node::escaping::escaped;

/// How the names of files with definitions end.
const DEFINITIONS: [&str; 3] = [".json", ".yaml", ".yml"];
/// How many entries are looked at.
const PAGE_ITEMS: &str = "1000";

impl Client {
    /// Asks whether something with a similar name was meant. `path` is the requested path, `flow`
    /// the flow in the body.
    pub fn near(&self, problem: &Problem, path: &[&str], flow: Option<&str>) -> Option<String> {
        match (problem.code(), path) {
            ("NoSuchFlow", ["flows", wanted, ..]) => self.near_flow(wanted),
            ("NoSuchFlow", ["executions", id, "redrive" | "fork"]) => {
                let found = self.look(&["executions", id], &[])?;
                self.near_flow(text(&found, "flow")?)
            }
            ("NoSuchFlow", _) => {
                let wanted = flow?;
                let meant = self.near_flow(wanted)?;
                Some(format!("there is no flow `{}`: {meant}", escaped(wanted)))
            }
            ("NoSuchExecution", ["executions", wanted, ..]) => self.near_name(wanted),
            ("NoSuchExecution", ["flows", flow, "executions", wanted]) => self.near_execution(flow, wanted),
            ("NoSuchSchedule", ["schedules", wanted, ..]) => self.near_in(&["schedules"], wanted),
            ("NoSuchQueue", ["queues", wanted, ..]) => self.near_in(&["queues"], wanted),
            ("NotRedrivable", ["executions", id, ..]) => self.instead_of_redrive(id),
            ("NoSuchRoute" | "", _) => self.remote.without_path().map(|address| {
                let given = self.remote.address();
                format!("`{given}` has a path, and a server is named without one: `{address}`")
            }),
            _ => None,
        }
    }

    /// What can be done with an execution that can't be redriven.
    fn instead_of_redrive(&self, id: &str) -> Option<String> {
        let found = self.look(&["executions", id], &[])?;
        let id = escaped(id);
        Some(match text(&found, "status")? {
            "Succeeded" => {
                format!("it succeeded: `starbridge fork {id} --event N` starts another one from one of its events")
            }
            "Running" => format!("it runs: `starbridge why {id}` says what it does, `starbridge stop {id}` ends it"),
            _ => format!("it has not ended: `starbridge why {id}` says what it waits for"),
        })
    }

    /// A flow that does not exist has no executions either, so the flow is checked first.
    fn near_execution(&self, flow: &str, wanted: &str) -> Option<String> {
        let flows = self.names(&["flows"], &[])?;
        if !flows.iter().any(|name| name == flow) {
            let meant = nearest(flow, flows.iter().map(String::as_str));
            let meant = meant.map(|meant| match self.flow_of_named(wanted, Some(meant)) {
                Some(_) => format!(": did you mean `{}/{}`?", escaped(meant), escaped(wanted)),
                None => format!(": did you mean the flow `{}`?", escaped(meant)),
            });
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

    /// What may be meant by a flow that is not there: another one, or the definition in a file.
    fn near_flow(&self, wanted: &str) -> Option<String> {
        if wanted.contains('/') || DEFINITIONS.iter().any(|end| wanted.ends_with(end)) {
            return Some(
                "the name of a flow is wanted here: `starbridge flow put FILE` gives a server the definition in a file, \
                 `starbridge exec FILE` runs it without a server"
                    .to_owned(),
            );
        }
        if self.names(&["flows"], &[])?.is_empty() {
            return Some("this server has no flows: `starbridge flow put FILE` gives it one".to_owned());
        }
        if self.aside(&["flows", wanted], &[]).is_some() {
            let wanted = escaped(wanted);
            return Some(format!(
                "`starbridge flow versions {wanted}` lists the versions there are"
            ));
        }
        self.near_in(&["flows"], wanted)
    }

    /// Executions are found by FLOW/NAME. Whoever gives the name alone is told the flow, and whoever gives a flow
    /// how its executions are listed.
    fn near_name(&self, wanted: &str) -> Option<String> {
        if let Some(flow) = self.flow_of_named(wanted, None) {
            return Some(format!("did you mean `{}/{}`?", escaped(&flow), escaped(wanted)));
        }
        self.aside(&["flows", wanted], &[])?;
        let wanted = escaped(wanted);
        Some(format!(
            "`{wanted}` is a flow: `starbridge list --flow {wanted}` lists its executions"
        ))
    }

    /// What to say of a flow that a list is asked for and that the server does not have.
    pub fn unknown_flow(&self, wanted: &str) -> Option<String> {
        if self.aside(&["flows", wanted], &[]).is_some() {
            return None;
        }
        // Without the list it is not known whether the flow is missing or can't be seen.
        let flows = self.names(&["flows"], &[])?;
        let meant = nearest(wanted, flows.iter().map(String::as_str));
        let meant = meant.map_or(String::new(), |meant| format!(": did you mean `{}`?", escaped(meant)));
        Some(format!("there is no flow `{}`{meant}", escaped(wanted)))
    }

    /// The flow of an execution with this name; of `flow`, if one is given.
    fn flow_of_named(&self, name: &str, flow: Option<&str>) -> Option<String> {
        let mut query = vec![("name", name.to_owned()), ("limit", PAGE_ITEMS.to_owned())];
        query.extend(flow.map(|flow| ("flow", flow.to_owned())));
        let (items, _) = self.aside(&["executions"], &query)?.page();
        let found = items.iter().find(|item| text(item, "name") == Some(name))?;
        text(found, "flow").map(str::to_owned)
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

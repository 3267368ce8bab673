//! Which executions of a server are meant: the options that `list` and `bulk` share.

use crate::arguments::read_time;
use crate::client::Client;
use crate::exit::Exit;
use crate::output::{Output, bad};
use crate::views::id_of;
use clap::Args;
use clap::builder::PossibleValuesParser;
use starbridge_flow::value::{Object, Value};
use starbridge_machine::Status;

/// A filter for executions.
#[derive(Debug, Args)]
pub struct Filter {
    /// Of this flow
    #[arg(long)]
    flow: Option<String>,
    /// In this state; may be given several times
    #[arg(long, value_name = "STATUS", value_parser = statuses(), ignore_case = true)]
    status: Vec<String>,
    /// That do not go on for this reason: broken (set aside), manual, paused, startTime, dependency, key, flowLimit, flowPaused,
    /// admission, queue, worker, callback, child, retry, poll, timer or running
    #[arg(long, value_name = "REASON")]
    reason: Option<String>,
    /// That wait for this key, flow, queue, step or execution (FLOW/NAME; of a child its id)
    #[arg(long, value_name = "KEY", requires = "reason")]
    of: Option<String>,
    /// Whose name begins so
    #[arg(long)]
    name: Option<String>,
    /// Started by this execution: its id, or FLOW/NAME
    #[arg(long, value_name = "ID|FLOW/NAME")]
    parent: Option<String>,
    /// Of the family that began with this execution: its id, or FLOW/NAME
    #[arg(long, value_name = "ID|FLOW/NAME")]
    root: Option<String>,
    /// With this label; may be given several times
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,
    /// Started at this time or after (RFC 3339), or so long ago: `2h`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = read_time)]
    from: Option<String>,
    /// Started before this time (RFC 3339), or so long ago: `2h`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = read_time)]
    to: Option<String>,
    // The names of the options differ where a command has an `--error` or a `--step` of its own.
    /// That ended with the error of this name
    #[arg(id = FAILED_WITH, long = "error", value_name = "NAME")]
    error: Option<String>,
    /// Whose error arose in the step of this name
    #[arg(id = FAILED_IN, long = "step", value_name = "NAME")]
    step: Option<String>,
    /// Ended at this time or after (RFC 3339), or so long ago: `2h`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = read_time)]
    ended_from: Option<String>,
    /// Ended before this time (RFC 3339), or so long ago: `2h`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = read_time)]
    ended_to: Option<String>,
}

/// The id of the option for the error with which executions ended.
pub const FAILED_WITH: &str = "failed_with";
/// The id of the option for the step in which that error arose.
pub const FAILED_IN: &str = "failed_in";
/// The ids of all options of a filter.
pub const OPTIONS: [&str; 14] = [
    "flow",
    "status",
    "reason",
    "of",
    "name",
    "parent",
    "root",
    "labels",
    "from",
    "to",
    FAILED_WITH,
    FAILED_IN,
    "ended_from",
    "ended_to",
];

/// The words for statuses.
fn statuses() -> PossibleValuesParser {
    PossibleValuesParser::new(Status::ALL.map(Status::as_str))
}

/// A status in the server's form, from any form on the command line.
fn canonical(word: &str) -> &str {
    let statuses = Status::ALL.into_iter().map(Status::as_str);
    statuses
        .into_iter()
        .find(|status| status.eq_ignore_ascii_case(word))
        .unwrap_or(word)
}

impl Filter {
    /// The flow whose executions are meant, if one is given.
    pub fn flow(&self) -> Option<&str> {
        self.flow.as_deref()
    }

    /// What is given in one text each, under the API's names.
    fn texts(&self, client: &Client) -> Result<Vec<(&'static str, String)>, Exit> {
        let given = [
            ("flow", &self.flow),
            ("reason", &self.reason),
            ("reasonOf", &self.of),
            ("name", &self.name),
            ("from", &self.from),
            ("to", &self.to),
            ("error", &self.error),
            ("step", &self.step),
            ("endedFrom", &self.ended_from),
            ("endedTo", &self.ended_to),
        ];
        let mut texts: Vec<(&'static str, String)> = given
            .into_iter()
            .filter_map(|(key, value)| Some((key, value.clone()?)))
            .collect();
        for (key, meant) in [("parent", &self.parent), ("root", &self.root)] {
            if let Some(meant) = meant {
                texts.push((key, id_of(client, meant)?));
            }
        }
        Ok(texts)
    }

    fn statuses(&self) -> impl Iterator<Item = &str> {
        self.status.iter().map(|status| canonical(status))
    }

    /// The filter as the query of a list.
    pub fn query(&self, client: &Client) -> Result<Vec<(&'static str, String)>, Exit> {
        let mut query = self.texts(client)?;
        query.extend(self.statuses().map(|status| ("status", status.to_owned())));
        for label in &self.labels {
            let (key, value) = split_label(label, client.output())?;
            query.push(("label", format!("{key}:{value}")));
        }
        Ok(query)
    }

    /// The filter as an object.
    pub fn object(&self, client: &Client) -> Result<Object, Exit> {
        let texts = self.texts(client)?.into_iter();
        let mut filter: Object = texts.map(|(key, value)| (key.into(), value.as_str().into())).collect();
        let statuses: Vec<Value> = self.statuses().map(Value::from).collect();
        if !statuses.is_empty() {
            filter.insert("status".into(), statuses.into());
        }
        let mut labels = Object::new();
        for label in &self.labels {
            let (key, value) = split_label(label, client.output())?;
            labels.insert(key.into(), value.into());
        }
        if !labels.is_empty() {
            filter.insert("labels".into(), labels.into());
        }
        Ok(filter)
    }
}

/// A label's key and value.
pub fn split_label(label: &str, output: Output) -> Result<(&str, &str), Exit> {
    label.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
        let message = format!("`--label {label}`: a label is given as KEY=VALUE");
        bad(output, &message, "for example `--label team=billing`")
    })
}

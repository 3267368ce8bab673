//! Members of `serviceParams` that nothing reads (section "tasks").

use super::Checker;
use super::cursor::Cursor;
use super::fields;
use super::read::in_words;
use crate::diagnostics::{Code, Nearest};
use crate::syntax::{Node, NodeKind};

/// The members of `serviceParams` that calls of one kind read.
pub(super) struct Reads {
    /// The subject of messages: `a child flow`.
    what: &'static str,
    members: &'static [&'static str],
    /// What becomes of parameters that have none of these members.
    others: Others,
    /// The member that is sent in place of the input.
    body: Option<&'static str>,
}

/// What becomes of members that are not read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    /// The call is made without them.
    Ignored,
    /// They fail the call.
    Refused,
    /// They fail the call beside a member that is read; without one all of them are the body.
    Body,
}

const CHILD: Reads = Reads {
    what: "a child flow",
    members: &[
        "Input",
        "ExecutionName",
        "FlowName",
        "OnceKey",
        "Priority",
        "OrderTime",
        "StartAt",
        "DelaySeconds",
        "StartDeadlineSeconds",
        "After",
        "CallbackFnFTaskToken",
    ],
    others: Others::Ignored,
    body: Some("Input"),
};
const PROGRAM: Reads = Reads {
    what: "a program",
    members: &["args", "env", "cwd"],
    others: Others::Refused,
    body: None,
};
const HTTP: Reads = Reads {
    what: "an HTTP function",
    members: &["method", "headers", "query", "body", "idempotency"],
    others: Others::Body,
    body: Some("body"),
};
const STREAM: Reads = Reads {
    what: "a Redis stream",
    members: &["body", "fields", "maxLength", "idempotency"],
    others: Others::Body,
    body: Some("body"),
};
const MESSAGE: Reads = Reads {
    what: "a queue of SQS",
    members: &[
        "MessageBody",
        "DelaySeconds",
        "MessageGroupId",
        "MessageDeduplicationId",
        "MessageAttributes",
        "idempotency",
    ],
    others: Others::Body,
    body: Some("MessageBody"),
};
const FUNCTION: Reads = Reads {
    what: "a function of Lambda",
    members: &["Payload", "Qualifier", "InvocationType", "ClientContext", "idempotency"],
    others: Others::Body,
    body: Some("Payload"),
};
/// Methods of HTTP whose requests have no body.
const WITHOUT_BODY: [&str; 2] = ["GET", "HEAD"];
/// Methods of HTTP, to tell a misspelt `method` from data.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

impl Reads {
    /// Those of a resource as it is written; `None` if only the resource map knows them, or if any member is data.
    pub(super) fn of(resource: &str) -> Option<&'static Self> {
        let scheme = resource.split(':').next().unwrap_or_default();
        match scheme {
            "flow" => Some(&CHILD),
            "cmd" => Some(&PROGRAM),
            "http" | "https" => Some(&HTTP),
            "redis" => Some(&STREAM),
            "sqs" => Some(&MESSAGE),
            "lambda" => Some(&FUNCTION),
            _ => None,
        }
    }

    /// Whether a call with these parameters still sends its input.
    pub(super) fn sends_input(&self, params: &Node) -> bool {
        let Some(body) = self.body else { return true };
        let reads_one = self.members.iter().any(|member| params.get(member).is_some());
        let method = params.get("method").and_then(Node::as_str).unwrap_or_default();
        let without_body = WITHOUT_BODY.iter().any(|word| word.eq_ignore_ascii_case(method));
        let is_body = self.others == Others::Body && !reads_one;
        params.get(body).is_none() && !is_body && !without_body
    }
}

impl Checker<'_> {
    /// Warns of members that the call does not read.
    pub(super) fn check_params(&self, cursor: &Cursor<'_>, resource: &str) {
        let Some(reads) = Reads::of(resource) else { return };
        let reads_one = reads.members.iter().any(|member| cursor.node.get(member).is_some());
        if reads.others == Others::Body && !reads_one {
            self.check_misspelt(cursor, reads);
            return;
        }
        // Looked up once: there may be as many unknown members as fit into a text.
        let open = reads.members.iter().copied();
        let open: Vec<&'static str> = open.filter(|known| cursor.node.get(known).is_none()).collect();
        let mut listed = false;
        for (name, member) in cursor.members().filter(|(name, _)| !reads.members.contains(name)) {
            if self.leaves_off(Code::UnknownParam) {
                return;
            }
            self.unread(&member, name, &open, reads, &mut listed);
        }
    }

    fn unread(&self, member: &Cursor<'_>, name: &str, open: &[&'static str], reads: &Reads, listed: &mut bool) {
        let what = reads.what;
        let message = match reads.others {
            Others::Ignored => format!("{what} takes no `{name}`: it is ignored"),
            Others::Refused => format!("{what} takes no `{name}`: the call fails"),
            Others::Body => {
                format!("{what} takes no `{name}` beside the other members of `serviceParams`: the call fails")
            }
        };
        let found = member.problem_of_key(Code::UnknownParam, message);
        let near = self.near(name, reads.members.len(), || open.iter().copied());
        self.report(match near {
            Some(Nearest { word, alone }) => {
                let (key, title) = (member.key_span(), format!("rename it to `{word}`"));
                let found = found.help(format!("did you mean `{word}`?"));
                found.fixed_by(title, key, self.quoted_like(key, word), alone)
            }
            None if fields::is_of_task(name) => found.help(format!(
                "`{name}` is a field of the step: it stands beside `serviceParams`"
            )),
            None if std::mem::replace(listed, true) => found,
            None => found.help(format!("{what} takes {}", in_words(reads.members))),
        });
    }

    /// Warns of parameters that are the body as a whole although each of them looks like a misspelt member.
    fn check_misspelt(&self, cursor: &Cursor<'_>, reads: &Reads) {
        let meant = |name: &str, node: &Node| {
            let near = self.near(name, reads.members.len(), || reads.members.iter().copied())?;
            let fits = match (near.word, &node.kind) {
                ("method", NodeKind::String(word)) => METHODS.iter().any(|method| method.eq_ignore_ascii_case(word)),
                ("idempotency", NodeKind::String(word)) => matches!(word.as_str(), "call" | "step"),
                ("headers" | "query" | "fields" | "MessageAttributes" | "ClientContext", NodeKind::Object(_))
                | ("maxLength" | "DelaySeconds", NodeKind::Number(_))
                | ("body" | "MessageBody" | "Payload", _)
                | ("MessageGroupId" | "MessageDeduplicationId" | "Qualifier" | "InvocationType", NodeKind::String(_)) => {
                    true
                }
                _ => false,
            };
            fits.then_some(near.word)
        };
        let members = cursor.node.members();
        // Data that happens to have such a name has others, too.
        if members.is_empty() || members.len() > reads.members.len() {
            return;
        }
        let Some(meant): Option<Vec<&str>> = members.iter().map(|each| meant(&each.key, &each.value)).collect() else {
            return;
        };
        for ((name, member), word) in cursor.members().zip(meant) {
            let message = format!("`{name}` is sent as data: {} has no parameter of this name", reads.what);
            let (key, title) = (member.key_span(), format!("rename it to `{word}`"));
            let found = member.problem_of_key(Code::UnknownParam, message);
            let found = found.help(format!("did you mean `{word}`?"));
            self.report(found.guess(title, key, self.quoted_like(key, word)));
        }
    }
}

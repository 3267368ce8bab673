//! Names of queues: a name, a URL or an ARN.

use starbridge_ports::Outcome;

/// A queue as a flow names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Queue {
    /// The name of the queue.
    pub name: String,
    /// The region; `None` for the configured one.
    pub region: Option<String>,
    /// The account of its owner, if it is given.
    pub account: Option<String>,
    /// The URL, if the queue was named by it.
    pub url: Option<String>,
}

impl Queue {
    /// Parses a target.
    pub(crate) fn parse(target: &str) -> Result<Self, Outcome> {
        let text = target.strip_prefix("sqs:").unwrap_or(target);
        let queue = if text.starts_with("arn:") {
            of_arn(text)
        } else if text.contains("://") {
            of_url(text)
        } else {
            Some(Self {
                name: text.to_owned(),
                region: None,
                account: None,
                url: None,
            })
        };
        queue.filter(|queue| is_name(&queue.name)).ok_or_else(|| {
            let cause = format!(
                "`{text}` is no queue: give its name (1 to 80 of `A-Z a-z 0-9 _ -`, `.fifo` behind it for one of that kind), its URL or its ARN"
            );
            Outcome::not_sent(cause)
        })
    }

    /// Whether it is a FIFO queue.
    pub(crate) fn is_fifo(&self) -> bool {
        self.name.ends_with(".fifo")
    }

    /// The queue for messages.
    pub(crate) fn shown(&self) -> String {
        match &self.region {
            Some(region) => format!("queue `{}` in `{region}`", self.name),
            None => format!("queue `{}`", self.name),
        }
    }
}

fn is_name(name: &str) -> bool {
    let plain = name.strip_suffix(".fifo").unwrap_or(name);
    let characters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !plain.is_empty() && name.len() <= 80 && plain.chars().all(characters)
}

/// Reads `arn:PARTITION:sqs:REGION:ACCOUNT:NAME`.
fn of_arn(text: &str) -> Option<Queue> {
    let parts: Vec<&str> = text.split(':').collect();
    let ["arn", _, "sqs", region, account, name] = parts.as_slice() else {
        return None;
    };
    Some(Queue {
        name: (*name).to_owned(),
        region: told(region),
        account: told(account),
        url: None,
    })
}

/// Reads `https://HOST/ACCOUNT/NAME`. Requests go to the configured endpoint; the host only tells the region.
fn of_url(text: &str) -> Option<Queue> {
    let (scheme, rest) = text.split_once("://")?;
    let (host, path) = rest.split_once('/')?;
    if !matches!(scheme, "http" | "https") || host.is_empty() || path.contains(['?', '#']) {
        return None;
    }
    let (account, name) = path.rsplit_once('/').unwrap_or(("", path));
    Some(Queue {
        name: name.to_owned(),
        region: region_of(host),
        account: account.rsplit('/').next().and_then(told),
        url: Some(text.to_owned()),
    })
}

/// The region in `sqs.REGION.amazonaws.com` (also `.cn`, FIPS and VPC endpoints) and `REGION.queue.amazonaws.com`.
fn region_of(host: &str) -> Option<String> {
    let host = host.split(':').next().unwrap_or(host);
    let before = host
        .strip_suffix(".cn")
        .unwrap_or(host)
        .strip_suffix(".amazonaws.com")?;
    let before = before.strip_suffix(".vpce").unwrap_or(before);
    let parts: Vec<&str> = before.split('.').collect();
    match parts.as_slice() {
        [.., "sqs" | "sqs-fips", region] | [region, "queue"] => told(region),
        _ => None,
    }
}

fn told(part: &str) -> Option<String> {
    (!part.is_empty()).then(|| part.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use starbridge_flow::graph::FaultKind;

    fn parsed(target: &str) -> (String, Option<String>, Option<String>, bool) {
        let queue = Queue::parse(target).unwrap();
        (queue.name, queue.region, queue.account, queue.url.is_some())
    }

    #[test]
    fn names_urls_and_arns() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(parsed("sqs:orders"), ("orders".into(), None, None, false));
        assert_eq!(
            parsed("sqs:arn:aws-cn:sqs:cn-north-1:123456789012:orders.fifo"),
            ("orders.fifo".into(), some("cn-north-1"), some("123456789012"), false)
        );
        for (host, region) in [
            ("sqs.eu-west-1.amazonaws.com", some("eu-west-1")),
            ("sqs.cn-north-1.amazonaws.com.cn", some("cn-north-1")),
            ("eu-west-1.queue.amazonaws.com", some("eu-west-1")),
            ("vpce-1.sqs.eu-west-1.vpce.amazonaws.com", some("eu-west-1")),
            ("127.0.0.1:4566", None),
        ] {
            assert_eq!(
                parsed(&format!("sqs:https://{host}/123456789012/orders")),
                ("orders".into(), region, some("123456789012"), true),
                "{host}"
            );
        }
    }

    #[test]
    fn anything_else_is_no_queue() {
        for target in [
            "sqs:",
            "sqs:.fifo",
            "sqs:a b",
            "sqs:ü",
            "sqs:arn:aws:sns:eu-west-1:1:topic",
            "sqs:arn:aws:sqs:eu-west-1:1",
            "sqs:https://host",
            "sqs:https://host/1/q?x=1",
            "sqs:ftp://host/1/q",
            &format!("sqs:{}", "q".repeat(81)),
        ] {
            let Err(Outcome::NotSent { error, .. }) = Queue::parse(target) else {
                panic!("{target}");
            };
            assert_eq!(error, FaultKind::Resource, "{target}");
        }
    }
}

//! The resource map: from the names that flows use to resources that can be called (section "tasks").

use starbridge_ports::ResourceFamily;

/// A table of patterns and targets. The first match counts.
#[derive(Clone, Debug, Default)]
pub struct ResourceMap {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    pattern: Vec<Part>,
    target: String,
    via: ResourceFamily,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    /// `*`: any text.
    Any,
    /// `{name}`: any text that is not empty. The target can use it under that name.
    Named(String),
}

/// The target of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The resource to call, in one of the forms that connectors know.
    pub target: String,
    /// Which family of names led there.
    pub via: ResourceFamily,
}

/// Why an entry of a resource map is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceMapError {
    /// There is no `=` between pattern and target.
    NoTarget,
    /// A `{` is not closed, or there is no name in it.
    Brace,
    /// The target uses a placeholder that the pattern does not have.
    Unknown(String),
}

impl std::fmt::Display for ResourceMapError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoTarget => f.write_str("a resource is given as `PATTERN=TARGET`"),
            Self::Brace => f.write_str("a placeholder is written `{name}`"),
            Self::Unknown(name) => write!(f, "the target uses `{{{name}}}`, which the pattern does not have"),
        }
    }
}

impl std::error::Error for ResourceMapError {}

/// Forms that are called as the flow writes them.
const DIRECT: [&str; 8] = [
    "http:", "https:", "queue:", "sqs:", "redis:", "lambda:", "flow:", "cmd:",
];

impl ResourceMap {
    /// Adds an entry `PATTERN=TARGET`. The target begins at the first `=` that is followed by a form that can be
    /// called.
    ///
    /// # Errors
    ///
    /// [`ResourceMapError`] if the entry is not of that form.
    pub fn add(&mut self, entry: &str) -> Result<(), ResourceMapError> {
        let split = entry
            .match_indices('=')
            .map(|(at, _)| (&entry[..at], &entry[at + 1..]))
            .find(|(_, target)| DIRECT.iter().any(|form| target.starts_with(form)))
            .or_else(|| entry.split_once('='));
        let (pattern, target) = split.ok_or(ResourceMapError::NoTarget)?;
        if pattern.is_empty() || target.is_empty() {
            return Err(ResourceMapError::NoTarget);
        }
        let parts = parse(pattern, true)?;
        for part in parse(target, false)? {
            if let Part::Named(name) = part
                && !parts.contains(&Part::Named(name.clone()))
            {
                return Err(ResourceMapError::Unknown(name));
            }
        }
        let via = if pattern.starts_with("acs:fc:") {
            ResourceFamily::FunctionCompute
        } else if pattern.starts_with("acs:mns:") {
            ResourceFamily::MessageService
        } else {
            ResourceFamily::Map
        };
        self.entries.push(Entry {
            pattern: parts,
            target: target.to_owned(),
            via,
        });
        Ok(())
    }

    /// Whether the map has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The target of a resource; `None` if it has none. The map is asked first, so that a test can
    /// redirect a call. Without an entry, `acs:fnf:…:flow/X` and `fnf:StartExecution` lead to
    /// flows, and AWS's own names to the resources they name.
    pub fn resolve(&self, resource: &str) -> Option<Resolved> {
        for entry in &self.entries {
            if let Some(names) = matches(&entry.pattern, resource) {
                let mut target = String::new();
                for part in parse(&entry.target, false).ok()? {
                    match part {
                        Part::Text(text) => target.push_str(&text),
                        Part::Any => target.push('*'),
                        Part::Named(name) => {
                            let found = names.iter().find(|(known, _)| *known == name);
                            target.push_str(found.map_or("", |(_, value)| value));
                        }
                    }
                }
                return Some(Resolved {
                    target: of_aws(&target).unwrap_or(target),
                    via: entry.via,
                });
            }
        }
        let direct = |target: String| Resolved {
            target,
            via: ResourceFamily::Direct,
        };
        if let Some(target) = of_aws(resource) {
            return Some(direct(target));
        }
        if DIRECT.iter().any(|form| resource.starts_with(form)) {
            return Some(direct(resource.to_owned()));
        }
        if resource.starts_with("acs:fnf:") {
            let (_, name) = resource.rsplit_once("flow/")?;
            return Some(direct(format!("flow:{name}")));
        }
        (resource == "fnf:StartExecution").then(|| direct("flow:".to_owned()))
    }
}

/// The form that is called for an ARN of a queue or function of AWS, or for a queue's URL.
fn of_aws(resource: &str) -> Option<String> {
    if let Some(rest) = resource.strip_prefix("arn:") {
        let service = rest.split(':').nth(1)?;
        return matches!(service, "sqs" | "lambda").then(|| format!("{service}:{resource}"));
    }
    let host = resource.strip_prefix("https://")?.split('/').next()?;
    let name = host
        .strip_suffix(".cn")
        .unwrap_or(host)
        .strip_suffix(".amazonaws.com")?;
    let is_queue = name.ends_with(".queue") || name.split('.').any(|part| matches!(part, "sqs" | "sqs-fips"));
    is_queue.then(|| format!("sqs:{resource}"))
}

fn parse(text: &str, stars: bool) -> Result<Vec<Part>, ResourceMapError> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        let part = match char {
            '*' if stars => Part::Any,
            '{' => {
                let name: String = chars.by_ref().take_while(|char| *char != '}').collect();
                if name.is_empty() || !text.contains('}') {
                    return Err(ResourceMapError::Brace);
                }
                Part::Named(name)
            }
            other => {
                plain.push(other);
                continue;
            }
        };
        if !plain.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut plain)));
        }
        parts.push(part);
    }
    if !plain.is_empty() {
        parts.push(Part::Text(plain));
    }
    Ok(parts)
}

/// Matches greedily from the left: a placeholder ends where the text after it first occurs.
fn matches<'a>(parts: &[Part], text: &'a str) -> Option<Vec<(String, &'a str)>> {
    let mut names = Vec::new();
    let mut rest = text;
    for (index, part) in parts.iter().enumerate() {
        match part {
            Part::Text(plain) => rest = rest.strip_prefix(plain.as_str())?,
            Part::Any | Part::Named(_) => {
                let value = match parts.get(index + 1) {
                    None => rest,
                    Some(Part::Text(next)) => &rest[..rest.find(next.as_str())?],
                    Some(_) => "",
                };
                rest = &rest[value.len()..];
                if let Part::Named(name) = part {
                    if value.is_empty() {
                        return None;
                    }
                    names.push((name.clone(), value));
                }
            }
        }
    }
    rest.is_empty().then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: &[&str]) -> ResourceMap {
        let mut map = ResourceMap::default();
        for entry in entries {
            map.add(entry).unwrap();
        }
        map
    }

    #[test]
    fn resource_map_fills_in_placeholders() {
        let map = map(&["acs:fc:*:*:services/{s}/functions/{f}=http://localhost:9000/{s}/{f}?a=b"]);
        let resolved = map
            .resolve("acs:fc:cn-hangzhou:123:services/shop/functions/pay")
            .unwrap();
        assert_eq!(resolved.target, "http://localhost:9000/shop/pay?a=b");
        assert_eq!(resolved.via, ResourceFamily::FunctionCompute);
        assert_eq!(map.resolve("acs:fc:cn:1:services/shop"), None);
        assert_eq!(map.resolve("nothing"), None);
    }

    #[test]
    fn resource_map_is_not_needed_for_flows() {
        let map = ResourceMap::default();
        assert_eq!(map.resolve("acs:fnf:cn:1:flow/child").unwrap().target, "flow:child");
        assert_eq!(map.resolve("fnf:StartExecution").unwrap().target, "flow:");
        assert_eq!(map.resolve("http://x/").unwrap().target, "http://x/");
    }

    #[test]
    fn resource_map_is_not_needed_for_arns() {
        let mut map = map(&["acs:mns:*:/queues/{q}/messages=arn:aws:sqs:eu-west-1:1:{q}"]);
        for (resource, scheme) in [
            ("arn:aws:sqs:eu-west-1:1:orders", "sqs"),
            ("arn:aws-cn:lambda:cn-north-1:1:function:pay:live", "lambda"),
            ("https://sqs.eu-west-1.amazonaws.com/1/orders", "sqs"),
            ("https://eu-west-1.queue.amazonaws.com/1/orders", "sqs"),
            ("https://sqs.cn-north-1.amazonaws.com.cn/1/orders", "sqs"),
        ] {
            let target = map.resolve(resource).unwrap().target;
            assert_eq!(target, format!("{scheme}:{resource}"));
        }
        for resource in ["https://sqs.example/1/orders", "https://x.amazonaws.com/sqs.y"] {
            assert_eq!(map.resolve(resource).unwrap().target, resource);
        }
        assert_eq!(map.resolve("arn:aws:s3:::bucket"), None);
        let mapped = map.resolve("acs:mns:cn:1:/queues/orders/messages").unwrap();
        assert_eq!(mapped.target, "sqs:arn:aws:sqs:eu-west-1:1:orders");
        assert_eq!(mapped.via, ResourceFamily::MessageService);
        map.add("arn:*=http://x").unwrap();
        assert_eq!(
            map.resolve("arn:aws:sqs:eu-west-1:1:orders").unwrap().target,
            "http://x"
        );
    }

    #[test]
    fn resource_map_mistakes_are_named() {
        let mut map = ResourceMap::default();
        assert_eq!(map.add("acs:fc:x"), Err(ResourceMapError::NoTarget));
        assert_eq!(map.add("a{=http://x"), Err(ResourceMapError::Brace));
        assert_eq!(map.add("a=http://{x}"), Err(ResourceMapError::Unknown("x".into())));
    }
}

//! Names of functions: a name or an ARN.

use starbridge_ports::Outcome;

/// A function as a flow names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    /// The name of the function, or its ARN without qualifier.
    pub name: String,
    /// The version or alias; `None` if the flow names none.
    pub qualifier: Option<String>,
    /// The region; `None` for the configured one.
    pub region: Option<String>,
}

impl Function {
    /// Parses a target.
    pub(crate) fn parse(target: &str) -> Result<Self, Outcome> {
        let text = target.strip_prefix("lambda:").unwrap_or(target);
        let parts: Vec<&str> = text.split(':').collect();
        let (name, qualifier, region) = match parts.as_slice() {
            ["arn", _, "lambda", region, _, "function", name, rest @ ..] if rest.len() <= 1 && is_name(name) => {
                let arn = parts.get(..7).map(|parts| parts.join(":")).unwrap_or_default();
                (arn, rest.first(), Some(*region))
            }
            [name, rest @ ..] if rest.len() <= 1 && is_name(name) => ((*name).to_owned(), rest.first(), None),
            _ => return Err(none(text)),
        };
        if qualifier.is_some_and(|qualifier| !is_qualifier(qualifier)) {
            return Err(none(text));
        }
        Ok(Self {
            name,
            qualifier: qualifier.map(|qualifier| (*qualifier).to_owned()),
            region: region.filter(|region| !region.is_empty()).map(str::to_owned),
        })
    }

    /// The function for messages.
    pub(crate) fn shown(&self) -> String {
        let name = self.name.rsplit(':').next().unwrap_or(&self.name);
        match &self.region {
            Some(region) => format!("function `{name}` in `{region}`"),
            None => format!("function `{name}`"),
        }
    }
}

fn none(text: &str) -> Outcome {
    let cause = format!("`{text}` is no function: give its name, `NAME:QUALIFIER` or its ARN");
    Outcome::not_sent(cause)
}

fn is_name(name: &str) -> bool {
    name.len() <= 64 && is_plain(name)
}

fn is_qualifier(qualifier: &str) -> bool {
    qualifier == "$LATEST" || (qualifier.len() <= 128 && is_plain(qualifier))
}

fn is_plain(text: &str) -> bool {
    let characters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !text.is_empty() && text.chars().all(characters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_arns() {
        let arn = "arn:aws:lambda:eu-west-1:123456789012:function:pay";
        for (target, name, qualifier, region) in [
            ("lambda:pay", "pay", None, None),
            ("lambda:pay:live", "pay", Some("live"), None),
            ("lambda:pay:$LATEST", "pay", Some("$LATEST"), None),
            (&format!("lambda:{arn}"), arn, None, Some("eu-west-1")),
            (&format!("lambda:{arn}:7"), arn, Some("7"), Some("eu-west-1")),
        ] {
            let expected = Function {
                name: name.to_owned(),
                qualifier: qualifier.map(str::to_owned),
                region: region.map(str::to_owned),
            };
            assert_eq!(Function::parse(target), Ok(expected), "{target}");
        }
    }

    #[test]
    fn anything_else_is_no_function() {
        for target in [
            "lambda:",
            "lambda:a b",
            "lambda:pay:",
            "lambda:pay:a:b",
            "lambda:arn:aws:sqs:eu-west-1:1:q",
            "lambda:arn:aws:lambda:eu-west-1:1:function:",
        ] {
            assert!(Function::parse(target).is_err(), "{target}");
        }
    }
}

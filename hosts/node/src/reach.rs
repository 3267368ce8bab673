//! Which resources something answers to, as far as that is known before a call is made.

use starbridge_runtime::ResourceMap;
use std::collections::BTreeMap;

/// Which resources something answers to.
#[derive(Clone, Debug)]
pub struct Reach {
    map: ResourceMap,
    /// Why targets of that form can't be called, by the word before the colon.
    lacking: BTreeMap<&'static str, String>,
}

impl Reach {
    /// Whatever this map leads to, every form of target included.
    pub fn of(map: ResourceMap) -> Self {
        let lacking = BTreeMap::new();
        Self { map, lacking }
    }

    /// Targets of this form can't be called, for that reason.
    #[must_use]
    pub fn without(mut self, scheme: &'static str, why: impl Into<String>) -> Self {
        self.lacking.insert(scheme, why.into());
        self
    }

    /// Why nothing answers to a resource as a flow writes it; nothing, where something does.
    pub fn unsupported_reason(&self, resource: &str) -> Option<String> {
        let Some(resolved) = self.map.resolve(resource) else {
            return Some(format!(
                "nothing answers to `{resource}`: the resource map leads it nowhere"
            ));
        };
        let scheme = resolved.target.split(':').next().unwrap_or_default();
        let why = self.lacking.get(scheme)?;
        Some(match resolved.target == resource {
            true => format!("`{resource}` can't be called here: {why}"),
            false => format!(
                "`{resource}`, that is `{}`, can't be called here: {why}",
                resolved.target
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_map_knows_is_answered() {
        let mut map = ResourceMap::default();
        map.add("acs:fc:*:*:services/{s}/functions/{f}=http://localhost/{s}/{f}")
            .unwrap();
        map.add("old:{name}=redis:{name}").unwrap();
        let reach = Reach::of(map).without("redis", "no Redis is configured");
        for resource in [
            "http://x/",
            "queue:q",
            "flow:f",
            "acs:fc:a:b:services/s/functions/f",
            "fnf:StartExecution",
        ] {
            assert_eq!(reach.unsupported_reason(resource), None, "{resource}");
        }
        for (resource, word) in [
            ("acs:mns:x", "leads it nowhere"),
            ("redis:orders", "no Redis"),
            ("old:orders", "that is `redis:orders`"),
        ] {
            assert!(reach.unsupported_reason(resource).unwrap().contains(word), "{resource}");
        }
    }
}

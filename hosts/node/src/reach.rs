//! Which resources can be called, as far as that is known before a call.

use starbridge_runtime::ResourceMap;
use std::collections::BTreeMap;

/// Which resources can be called.
#[derive(Clone, Debug)]
pub struct Reach {
    map: ResourceMap,
    /// Why targets of a form can't be called, by the word before the colon.
    lacking: BTreeMap<&'static str, String>,
}

impl Reach {
    /// Everything this map leads to, with targets of every form.
    pub fn of(map: ResourceMap) -> Self {
        let lacking = BTreeMap::new();
        Self { map, lacking }
    }

    /// Adds a form whose targets can't be called, with the reason.
    #[must_use]
    pub fn without(mut self, scheme: &'static str, why: impl Into<String>) -> Self {
        self.lacking.insert(scheme, why.into());
        self
    }

    /// Why a resource of a flow can't be called; `None` if it can.
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

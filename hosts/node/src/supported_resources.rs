//! The resources that can be called, as far as this is known before a call.

use starbridge_connector_http::{AddressGuard, is_refused};
use starbridge_runtime::ResourceMap;
use std::collections::BTreeMap;

/// Which resources can be called.
#[derive(Clone, Debug)]
pub struct SupportedResources {
    map: ResourceMap,
    /// Why targets of a form can't be called, by the word before the colon.
    unavailable: BTreeMap<&'static str, String>,
    /// Which addresses HTTP calls may reach.
    guard: AddressGuard,
}

impl SupportedResources {
    /// All resources that this map leads to, with targets of every form.
    pub fn of(map: ResourceMap) -> Self {
        Self {
            map,
            unavailable: BTreeMap::new(),
            guard: AddressGuard::AllowAll,
        }
    }

    /// HTTP calls reach only addresses that this guard permits. Names are not looked up before a call.
    #[must_use]
    pub fn guarded(mut self, guard: AddressGuard) -> Self {
        self.guard = guard;
        self
    }

    /// Adds a form whose targets can't be called, with the reason.
    #[must_use]
    pub fn without(mut self, scheme: &'static str, why: impl Into<String>) -> Self {
        self.unavailable.insert(scheme, why.into());
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
        let refused = is_refused(&resolved.target, &self.guard).then_some(
            "it is a private or local address, to which no calls leave unless `http.allow` or `http.private_addresses` lets them",
        );
        let why = self.unavailable.get(scheme).map(String::as_str).or(refused)?;
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
    fn resource_map_entries_are_supported() {
        let mut map = ResourceMap::default();
        map.add("acs:fc:*:*:services/{s}/functions/{f}=http://localhost/{s}/{f}")
            .unwrap();
        map.add("old:{name}=redis:{name}").unwrap();
        let reach = SupportedResources::of(map).without("redis", "no Redis is configured");
        for resource in [
            "http://x/",
            "queue:q",
            "flow:f",
            "acs:fc:a:b:services/s/functions/f",
            "fnf:StartExecution",
        ] {
            assert_eq!(reach.unsupported_reason(resource), None, "{resource}");
        }
        let guard = AddressGuard::PublicOnly { allow: Vec::new() };
        let guarded = reach.clone().guarded(guard.clone());
        for resource in [
            "http://127.0.0.1:9000/x",
            "https://localhost/",
            "http://[::1]/",
            "http://10.0.0.1/",
            "acs:fc:a:b:services/s/functions/f",
        ] {
            assert!(
                guarded.unsupported_reason(resource).unwrap().contains("`http.allow`"),
                "{resource}"
            );
        }
        let here = reach.clone().guarded(guard.with_loopback());
        for resource in ["http://127.0.0.1:9000/x", "http://localhost/", "http://example.com/"] {
            assert_eq!(here.unsupported_reason(resource), None, "{resource}");
        }
        assert!(here.unsupported_reason("http://10.0.0.1/").is_some());
        for (resource, word) in [
            ("acs:mns:x", "leads it nowhere"),
            ("redis:orders", "no Redis"),
            ("old:orders", "that is `redis:orders`"),
        ] {
            assert!(reach.unsupported_reason(resource).unwrap().contains(word), "{resource}");
        }
    }
}

//! The configuration as a server shows it to those who ask.

use super::Config;

impl Config {
    /// The whole configuration as TOML, without passwords, hashes of tokens, and the parts of addresses
    /// before their host and after their path.
    pub fn to_toml_for_others(&self) -> String {
        let mut shown = self.clone();
        for token in &mut shown.tokens {
            token.sha256 = "…".to_owned();
        }
        for target in &mut shown.notifications {
            target.to = plain_address(&target.to);
        }
        for target in shown.resources.values_mut() {
            *target = plain_address(target);
        }
        shown.to_toml()
    }
}

/// An address of the web without user, password and query, which may be secret; anything else as it is.
fn plain_address(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else {
        return address.to_owned();
    };
    let (place, query) = rest.split_once('?').map_or((rest, ""), |(place, _)| (place, "?…"));
    let (host, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    let host = host
        .rsplit_once('@')
        .map_or(host.to_owned(), |(_, host)| format!("…@{host}"));
    format!("{scheme}://{host}{path}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_for_others_has_no_secret() {
        let text = "[resources]\n\"pay:{name}\" = \"https://ada:hunter2@pay.example/{name}?key=hunter2\"\n[[tokens]]\nname = \"ci\"\nscopes = \
                    [\"read\"]\nsha256 = \"SHA\"\n[[notifications]]\nname = \"ops\"\nto = \"https://hooks.example/x?token=hunter2\"\n";
        let text = text.replace("SHA", &"5e".repeat(32));
        let shown = Config::read(&text, std::iter::empty()).unwrap().to_toml_for_others();
        for kept in [
            "https://…@pay.example/{name}?…",
            "https://hooks.example/x?…",
            "name = \"ci\"",
            "[\"read\"]",
        ] {
            assert!(shown.contains(kept), "{kept}: {shown}");
        }
        assert!(!shown.contains("hunter2") && !shown.contains("5e5e"), "{shown}");
    }
}

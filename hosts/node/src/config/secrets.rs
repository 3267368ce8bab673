//! Settings for secrets: where they are, and which flows may use which.

use super::Config;
use crate::system::{DirectorySecrets, EnvironmentSecrets};
use serde::{Deserialize, Serialize};
use starbridge_ports::Secrets;
use starbridge_runtime::SecretUse;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Settings for secrets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SecretsConfig {
    /// A folder with a file for each secret that the environment does not have; empty: none.
    pub folder: PathBuf,
    /// Which flows may use which secrets: patterns of flow names, each with patterns of secret names. If it is not
    /// set, each flow may use all secrets except those that the configuration itself uses. If it is
    /// empty, no flow may use any.
    #[serde(rename = "use", skip_serializing_if = "Option::is_none")]
    pub uses: Option<BTreeMap<String, Vec<String>>>,
}

impl Config {
    pub(super) fn secrets(&self) -> Arc<dyn Secrets> {
        match self.secrets.folder.as_os_str().is_empty() {
            true => Arc::new(EnvironmentSecrets),
            false => Arc::new(DirectorySecrets::new(self.secrets.folder.clone())),
        }
    }

    /// Which flows may use which secrets.
    pub(super) fn secret_use(&self) -> SecretUse {
        let signing = self
            .targets()
            .unwrap_or_default()
            .into_iter()
            .filter_map(|target| target.secret);
        let named = [
            self.redis.secret(),
            self.store.secret(),
            self.token_secret().ok().flatten(),
        ];
        let outboxes = self.outboxes.iter().filter_map(|outbox| outbox.secret());
        let own = signing.chain(named.into_iter().flatten().chain(outboxes).map(str::to_owned));
        let rules = self.secrets.uses.clone().map(|uses| uses.into_iter().collect());
        SecretUse::new(rules, own)
    }
}

/// The secret that a setting names: `secret://NAME`.
pub(super) fn secret_named(setting: &str) -> Option<&str> {
    setting.strip_prefix("secret://").filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn read(text: &str) -> Config {
        Config::read(text, std::iter::empty()).unwrap()
    }

    #[test]
    fn secrets_of_the_configuration_are_not_for_flows() {
        let hook = "[[notifications]]\nname = \"ops\"\nto = \"https://h/x\"\nsecret = \"secret://SIGN\"\n";
        let redis = match cfg!(feature = "redis") {
            true => "[redis]\nurl = \"redis://h\"\npassword = \"secret://REDIS\"\n",
            false => "",
        };
        let key = "[server]\ntoken_key = \"secret://TOKENS\"\n";
        let uses = read(&format!("{key}{redis}{hook}")).secret_use();
        assert!(uses.allows("any", "KEY"));
        assert!(!uses.allows("any", "SIGN"));
        assert!(!uses.allows("any", "TOKENS"));
        assert_eq!(uses.allows("any", "REDIS"), redis.is_empty());
    }

    #[test]
    fn secrets_table_says_who_may_use_what() {
        let text = "[secrets.use]\n\"pay-*\" = [\"STRIPE_*\"]\nship = [\"CARRIER\"]\n";
        let uses = read(text).secret_use();
        assert!(uses.allows("pay-now", "STRIPE_KEY"));
        assert!(uses.allows("ship", "CARRIER"));
        assert!(!uses.allows("ship", "STRIPE_KEY"));
        assert!(!uses.allows("other", "CARRIER"));
    }

    #[test]
    fn secrets_table_that_is_empty_lets_nobody_use_any() {
        for text in ["[secrets.use]\n", "[secrets]\nuse = {}\n"] {
            let config = read(text);
            assert!(!config.secret_use().allows("any", "KEY"), "{text}");
            assert_eq!(read(&config.to_toml()), config, "{text}");
        }
        assert!(read("[secrets]\n").secret_use().allows("any", "KEY"));
    }
}

//! The outboxes from which the server takes starts.

use super::Config;
use super::secrets::secret_named;
#[cfg(feature = "postgres")]
use super::store::password_of;
use super::store::{StoreConfig, shown_url};
use serde::{Deserialize, Serialize};
use starbridge_flow::limits::is_name;
use starbridge_ports::{Outbox, OutboxRights};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// An outbox: a database in which others start flows in their own transactions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutboxConfig {
    /// Its name, for people and metrics.
    pub name: String,
    /// The URL of its database: `postgres://USER@HOST/DATABASE`.
    pub url: String,
    /// The password for it, as `secret://NAME`.
    #[serde(default)]
    pub password: String,
    /// A file with the password, and nothing else.
    #[serde(default)]
    pub password_file: PathBuf,
    /// Which flows its rows may start, and of which they may report calls and stop executions: names or patterns.
    #[serde(default = "all_flows")]
    pub flows: Vec<String>,
    /// What its rows may ask for.
    #[serde(default = "all_actions")]
    pub actions: Vec<String>,
    /// How many rows that could not be carried out are kept, about; 0: all.
    #[serde(default = "kept_refused")]
    pub keep_refused: u64,
}

fn all_flows() -> Vec<String> {
    OutboxRights::default().flows
}

/// A row is some hundred bytes and its input.
fn kept_refused() -> u64 {
    100_000
}

fn all_actions() -> Vec<String> {
    OutboxRights::default().actions
}

impl OutboxConfig {
    pub(super) fn secret(&self) -> Option<&str> {
        secret_named(&self.password)
    }

    /// These settings without the password, to be shown.
    pub(super) fn shown(&self) -> Self {
        Self {
            url: shown_url(&self.url),
            ..self.clone()
        }
    }
}

impl Config {
    pub(super) fn check_outboxes(&self) -> Result<(), String> {
        let mut names = BTreeSet::new();
        for outbox in &self.outboxes {
            let name = &outbox.name;
            let wrong = |what: &str| Err(format!("the outbox `{name}`: {what}"));
            if !is_name(name) {
                return wrong("a name has 1 to 128 of `A-Z a-z 0-9 _ -`, and begins with a letter or `_`");
            }
            if !names.insert(name) {
                return wrong("there are others of that name");
            }
            if !StoreConfig::is_url(&outbox.url) {
                return wrong("`url` must be `postgres://USER@HOST/DATABASE`");
            }
            if !outbox.password.is_empty() && outbox.secret().is_none() {
                return wrong("`password` must be `secret://NAME`");
            }
            let is_pattern = |flow: &String| !flow.is_empty() && is_name(&flow.replace('*', "a"));
            if !outbox.flows.iter().all(is_pattern) {
                return wrong("`flows` has names of flows, or patterns in which `*` stands for any characters");
            }
            if !outbox
                .actions
                .iter()
                .all(|action| OutboxRights::ACTIONS.contains(&action.as_str()))
            {
                return wrong("`actions` has some of `start`, `succeed`, `fail`, `stop`");
            }
            if !cfg!(feature = "postgres") {
                return wrong("this program was built without the feature `postgres`");
            }
        }
        Ok(())
    }

    /// The outboxes that are configured, for the store with this name.
    ///
    /// # Errors
    ///
    /// Which one can't be used, and why.
    #[cfg(feature = "postgres")]
    pub fn outboxes(&self, taker: &str) -> Result<Vec<Arc<dyn Outbox>>, String> {
        use starbridge_postgres::outbox::{OutboxSettings, PostgresOutbox};
        let secrets = self.secrets();
        let made = self.outboxes.iter().map(|outbox| {
            let of = |why: String| format!("the outbox `{}`: {why}", outbox.name);
            let password = password_of(&outbox.password, &outbox.password_file, &*secrets);
            let settings = OutboxSettings {
                name: outbox.name.clone(),
                url: outbox.url.clone(),
                password: password.map_err(of)?,
                taker: taker.to_owned(),
                succeeds: self.cluster.is_set(),
                rights: OutboxRights {
                    flows: outbox.flows.clone(),
                    actions: outbox.actions.clone(),
                },
                keep_refused: outbox.keep_refused,
            };
            let made = PostgresOutbox::new(settings).map_err(of)?;
            Ok(Arc::new(made) as Arc<dyn Outbox>)
        });
        made.collect()
    }

    /// None: this program is built without PostgreSQL.
    ///
    /// # Errors
    ///
    /// None.
    #[cfg(not(feature = "postgres"))]
    pub fn outboxes(&self, _: &str) -> Result<Vec<Arc<dyn Outbox>>, String> {
        Ok(Vec::new())
    }
}

/// The SQL that installs an outbox.
#[cfg(feature = "postgres")]
pub use starbridge_postgres::outbox::INSTALL_SQL as OUTBOX_SQL;

/// Installs an outbox into a database. Returns where that is.
///
/// # Errors
///
/// Why it is not installed, and what to do.
#[cfg(feature = "postgres")]
pub async fn install_outbox(url: &str) -> Result<String, String> {
    let password = std::env::var("PGPASSWORD").ok().filter(|password| !password.is_empty());
    starbridge_postgres::outbox::install(url, password.as_ref()).await
}

#[cfg(all(test, feature = "postgres"))]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, String> {
        Config::read(text, std::iter::empty())
    }

    const SHOP: &str = "[[outboxes]]\nname = \"shop\"\nurl = \"postgres://u:hidden@h/d\"\n";

    #[test]
    fn mistakes_name_the_outbox_and_no_password() {
        for (text, what) in [
            (SHOP.replace("shop", "a b"), "the outbox `a b`: a name has"),
            (format!("{SHOP}{SHOP}"), "`shop`: there are others"),
            (SHOP.replace("postgres:", "mysql:"), "`url` must be"),
            (format!("{SHOP}password = \"plain\"\n"), "`secret://NAME`"),
            (format!("{SHOP}actions = [\"dance\"]\n"), "`actions` has some of"),
            (format!("{SHOP}flows = [\"a b\"]\n"), "`flows` has names"),
            (
                format!(
                    "{SHOP}[[tokens]]\nname = \"outbox shop: x\"\nscopes = []\nsha256 = \"{}\"\n",
                    "0".repeat(64)
                ),
                "stands for a role in a database",
            ),
            (format!("{SHOP}pasword = \"plain\"\n"), "pasword"),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.contains(what) && !error.contains("hidden"), "{text}: {error}");
        }
        let missing = read(&format!("{SHOP}password = \"secret://NOBODY_HAS_IT\"\n")).unwrap();
        let error = missing.outboxes("me").err().unwrap();
        assert_eq!(
            error,
            "the outbox `shop`: `password`: there is no secret `NOBODY_HAS_IT`"
        );
        let unread = read(&SHOP.replace("@h/d", "@h:port/d"))
            .unwrap()
            .outboxes("me")
            .err()
            .unwrap();
        assert!(
            unread.contains("can't be read") && !unread.contains("hidden"),
            "{unread}"
        );
    }

    #[test]
    fn printed_without_its_password() {
        let config = read(SHOP).unwrap();
        assert!(config.to_toml().contains("postgres://u:…@h/d"), "{}", config.to_toml());
        assert_eq!(config.outboxes("me").unwrap()[0].place(), "h:5432/d");
        let secret = read(&format!("{SHOP}password = \"secret://DB\"\n")).unwrap();
        assert!(!secret.secret_use().allows("any", "DB"));
    }
}

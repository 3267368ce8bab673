//! Where everything is kept.

use super::Config;
use super::secrets::secret_named;
use serde::{Deserialize, Serialize};
use starbridge_ports::Secrets;
use std::path::{Path, PathBuf};

/// Settings of the store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    /// The path of the store's file.
    pub path: PathBuf,
    /// The URL of a PostgreSQL database in which everything is kept, in place of a file: `postgres://USER@HOST/DATABASE`.
    pub url: String,
    /// The schema of the store's tables in that database.
    pub schema: String,
    /// The password for it, as `secret://NAME`.
    pub password: String,
    /// A file with the password, and nothing else.
    pub password_file: PathBuf,
    /// Whether a database without a synchronous standby is refused.
    pub require_synchronous: bool,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            path: PathBuf::from("starbridge.db"),
            url: String::new(),
            schema: "starbridge".to_owned(),
            password: String::new(),
            password_file: PathBuf::new(),
            require_synchronous: false,
        }
    }
}

/// The schemes of URLs of databases.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

impl StoreConfig {
    /// Whether the text is the URL of a database, not a path.
    pub fn is_url(text: &str) -> bool {
        SCHEMES.iter().any(|scheme| text.starts_with(scheme))
    }

    /// What people are shown of where the store is: a path, or a URL without a password.
    pub fn place(&self) -> String {
        match self.url.is_empty() {
            true => self.path.display().to_string(),
            false => self.shown().url,
        }
    }

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

    /// The password, if it is not in the URL.
    fn password(&self, secrets: &dyn Secrets) -> Result<Option<String>, String> {
        let of = |why: String| why.replacen('`', "`store.", 1);
        password_of(&self.password, &self.password_file, secrets).map_err(of)
    }
}

/// The URL of a database without its password.
pub(super) fn shown_url(url: &str) -> String {
    let Some(scheme) = SCHEMES.iter().find(|scheme| url.starts_with(**scheme)) else {
        return url.to_owned();
    };
    let rest = url.get(scheme.len()..).unwrap_or_default();
    // A password may have any of the characters that end a host.
    let (login, place) = match rest.rsplit_once('@') {
        Some((login, place)) => (Some(login), place),
        None => (None, rest),
    };
    let login = login.map(|login| match login.split_once(':') {
        Some((user, _)) => format!("{user}:…@"),
        None => format!("{login}@"),
    });
    let (place, query) = place.split_once('?').unwrap_or((place, ""));
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs: Vec<&str> = pairs
        .map(|pair| {
            if pair.starts_with("password=") {
                "password=…"
            } else {
                pair
            }
        })
        .collect();
    let mark = if pairs.is_empty() { "" } else { "?" };
    format!("{scheme}{}{place}{mark}{}", login.unwrap_or_default(), pairs.join("&"))
}

/// The password for a database: from a secret, a file, or the environment.
pub(super) fn password_of(
    password: &str,
    password_file: &Path,
    secrets: &dyn Secrets,
) -> Result<Option<String>, String> {
    if !password.is_empty() {
        let Some(name) = secret_named(password) else {
            return Err("`password` must be `secret://NAME`".to_owned());
        };
        let secret = secrets.get(name);
        let secret = secret.ok_or_else(|| format!("`password`: there is no secret `{name}`"))?;
        return Ok(Some(secret.reveal().trim_end().to_owned()));
    }
    if !password_file.as_os_str().is_empty() {
        let file = password_file.display();
        let text = std::fs::read_to_string(password_file);
        let text = text.map_err(|error| format!("`password_file`: {file}: {error}"))?;
        return Ok(Some(text.trim_end_matches(['\n', '\r']).to_owned()));
    }
    Ok(std::env::var("PGPASSWORD").ok().filter(|password| !password.is_empty()))
}

impl Config {
    /// The password of the store's database, if it is not in the URL.
    ///
    /// # Errors
    ///
    /// Which setting is wrong, or which secret or file is missing.
    pub fn store_password(&self) -> Result<Option<String>, String> {
        self.store.password(&*self.secrets())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_are_shown_has_no_password() {
        for (url, shown) in [
            ("postgres://u:hidden@h:5/d", "postgres://u:…@h:5/d"),
            ("postgres://u@h/d?sslmode=require", "postgres://u@h/d?sslmode=require"),
            ("postgres://u:hid@den/hidden@h/d?a=b", "postgres://u:…@h/d?a=b"),
            (
                "postgresql://h/d?user=u&password=hidden",
                "postgresql://h/d?user=u&password=…",
            ),
            ("", ""),
        ] {
            let store = StoreConfig {
                url: url.to_owned(),
                ..StoreConfig::default()
            };
            assert_eq!(store.shown().url, shown);
            let config = Config {
                store,
                ..Config::default()
            };
            assert!(!config.to_toml().contains("hidden"));
        }
    }

    #[test]
    fn password_comes_from_a_secret_or_a_file() {
        let folder = std::env::temp_dir().join(format!("starbridge-store-password-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("DB"), "from a secret\n").unwrap();
        let of = |setting: &str| {
            let folder = folder.display();
            let text = format!("[store]\nurl = \"postgres://u@h/d\"\n{setting}\n[secrets]\nfolder = \"{folder}\"\n");
            Config::read(&text, std::iter::empty()).unwrap().store_password()
        };
        assert_eq!(of("password = \"secret://DB\""), Ok(Some("from a secret".to_owned())));
        let file = format!("password_file = \"{}\"", folder.join("DB").display());
        assert_eq!(of(&file), Ok(Some("from a secret".to_owned())));
        assert!(
            of("password = \"plain\"")
                .unwrap_err()
                .contains("must be `secret://NAME`")
        );
        assert!(
            of("password = \"secret://NONE\"")
                .unwrap_err()
                .contains("no secret `NONE`")
        );
        assert!(of("password_file = \"/nowhere\"").unwrap_err().contains("/nowhere"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

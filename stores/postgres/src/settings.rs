//! Where the database is, as a URL says it.

use std::path::PathBuf;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// Where a store is, and who asks for it.
#[derive(Clone)]
pub struct PostgresSettings {
    /// `postgres://USER@HOST:PORT/DATABASE`. Several hosts are tried in turn.
    pub url: String,
    /// The password, where the URL has none.
    pub password: Option<String>,
    /// The schema with the store's tables.
    pub schema: String,
    /// What this process is called, for people who look who has the store.
    pub node: String,
    /// How many connections read at most.
    pub readers: usize,
    /// Whether a database without a synchronous standby is refused.
    pub require_synchronous: bool,
}

impl Default for PostgresSettings {
    fn default() -> Self {
        Self {
            url: String::new(),
            password: None,
            schema: "starbridge".to_owned(),
            node: String::new(),
            readers: 8,
            require_synchronous: false,
        }
    }
}

impl std::fmt::Debug for PostgresSettings {
    /// Without passwords.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresSettings")
            .field("schema", &self.schema)
            .field("node", &self.node)
            .finish_non_exhaustive()
    }
}

/// What a URL says, once it was read.
pub(crate) struct Target {
    pub config: Config,
    /// A file with the certificates that are trusted, in place of the system's.
    pub roots: Option<PathBuf>,
    /// What people are shown: no user, no password.
    pub place: String,
}

/// The schemes of URLs of databases.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

fn is_url(text: &str) -> bool {
    SCHEMES.iter().any(|scheme| text.starts_with(scheme))
}

/// Whether the schema may be called so: what PostgreSQL takes without quotes.
fn is_schema(name: &str) -> bool {
    let begins = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_');
    let rest = |each: char| each.is_ascii_lowercase() || each.is_ascii_digit() || each == '_';
    begins && name.len() <= 63 && name.chars().all(rest) && !name.starts_with("pg_")
}

impl PostgresSettings {
    pub(crate) fn target(&self) -> Result<Target, String> {
        if !is_schema(&self.schema) {
            return Err(format!(
                "`{}` is no name for a schema: it has small letters, digits and `_`, begins with no digit and not with `pg_`",
                self.schema
            ));
        }
        if !is_url(&self.url) {
            return Err("the URL of a database begins with `postgres://`".to_owned());
        }
        check_form(&self.url)?;
        let (url, roots) = own_parameters(&self.url);
        // What the driver says of a URL may quote it.
        let mut config: Config = url.parse().map_err(|_| UNREADABLE.to_owned())?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err("the URL of the database names no host: `postgres://USER@HOST:PORT/DATABASE`".to_owned());
        }
        if config.get_user().is_none() {
            return Err("the URL of the database names no user: `postgres://USER@HOST:PORT/DATABASE`".to_owned());
        }
        if config.get_dbname().is_none() {
            return Err("the URL names no database: `postgres://USER@HOST:PORT/DATABASE`".to_owned());
        }
        if config.get_password().is_none()
            && let Some(password) = &self.password
        {
            config.password(password);
        }
        let place = place(&config);
        Ok(Target { config, roots, place })
    }
}

const UNREADABLE: &str = "the URL of the database can't be read: `postgres://USER@HOST:PORT/DATABASE` is one; in names and passwords \
                          `@`, `:`, `/`, `?`, `#` and `%` stand as `%40`, `%3A`, `%2F`, `%3F`, `%23` and `%25`";
/// The parameters of a URL.
const PARAMETERS: [&str; 19] = [
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "load_balance_hosts",
    "options",
    "password",
    "port",
    "sslmode",
    "sslrootcert",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
];

/// What the driver would not tell of, or would take for something else. A part of a password is not quoted.
fn check_form(url: &str) -> Result<(), String> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.matches('@').count() > 1 {
        return Err(UNREADABLE.to_owned());
    }
    let query = rest.split_once('?').map_or("", |(_, query)| query);
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        if value.contains('@') || !name.chars().all(|each| each.is_ascii_lowercase() || each == '_') {
            return Err(UNREADABLE.to_owned());
        }
        if !PARAMETERS.contains(&name) {
            return Err(format!(
                "the URL of the database has a parameter `{name}`: there are {}",
                PARAMETERS.join(", ")
            ));
        }
        let known = ["disable", "prefer", "require", "verify-ca", "verify-full"];
        if name == "sslmode" && !known.contains(&value) {
            return Err(format!(
                "`sslmode` in the URL of the database is one of {}",
                known.join(", ")
            ));
        }
    }
    Ok(())
}

/// Takes out what the driver does not know: `sslrootcert`, and the words of `sslmode` that mean the same here, because a
/// certificate is always looked at.
fn own_parameters(url: &str) -> (String, Option<PathBuf>) {
    let Some((before, query)) = url.split_once('?') else {
        return (url.to_owned(), None);
    };
    let mut roots = None;
    let mut kept = Vec::new();
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some(("sslrootcert", file)) => roots = Some(PathBuf::from(plain(file))),
            Some(("sslmode", "verify-ca" | "verify-full")) => kept.push("sslmode=require".to_owned()),
            _ => kept.push(pair.to_owned()),
        }
    }
    let query = if kept.is_empty() {
        String::new()
    } else {
        format!("?{}", kept.join("&"))
    };
    (format!("{before}{query}"), roots)
}

/// A part of a URL without its percent signs.
fn plain(part: &str) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        let pair = (byte == b'%').then(|| rest.as_slice_pair()).flatten();
        match pair {
            Some(byte) => {
                bytes.push(byte);
                rest.nth(1);
            }
            None => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The byte that the next two characters name.
trait Pair {
    fn as_slice_pair(&self) -> Option<u8>;
}

impl Pair for std::str::Bytes<'_> {
    fn as_slice_pair(&self) -> Option<u8> {
        let mut ahead = self.clone();
        let digits = [ahead.next()?, ahead.next()?];
        u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()
    }
}

fn place(config: &Config) -> String {
    let ports = config.get_ports();
    let hosts = config.get_hosts().iter().enumerate().map(|(index, host)| {
        let port = ports.get(index).or(ports.first()).copied().unwrap_or(5432);
        match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            #[cfg(unix)]
            Host::Unix(folder) => format!("{}:{port}", folder.display()),
        }
    });
    let hosts: Vec<String> = hosts.collect();
    format!("{}/{}", hosts.join(","), config.get_dbname().unwrap_or_default())
}

/// Whether connections may be encrypted.
pub(crate) fn wants_tls(config: &Config) -> bool {
    config.get_ssl_mode() != SslMode::Disable
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str) -> PostgresSettings {
        PostgresSettings {
            url: url.to_owned(),
            ..PostgresSettings::default()
        }
    }

    #[test]
    fn settings_are_shown_without_passwords() {
        let settings = PostgresSettings {
            password: Some("hidden".to_owned()),
            ..of("postgres://u:hidden@h/d")
        };
        assert!(!format!("{settings:?}").contains("hidden"));
    }

    #[test]
    fn a_url_that_is_none_is_told_without_its_password() {
        for (url, what) in [
            ("postgres://u:hidden@h:port/d", "can't be read"),
            (
                "postgres://u:hidden@h/d?nonsense=1",
                "a parameter `nonsense`: there are application_name",
            ),
            (
                "postgres://u:hidden@h/d?sslmode=hid",
                "`sslmode` in the URL of the database is one of disable",
            ),
            ("postgres://u:p@hidden@h/d", "can't be read"),
            ("postgres://u:p#a@hidden@h:1/d", "can't be read"),
            ("postgres://u:p?a=hidden@h/d", "can't be read"),
            ("postgres://u:p?hidden=a@h/d", "can't be read"),
            ("mysql://u:hidden@h/d", "begins with"),
            ("postgres://h/d", "no user"),
            ("postgres://u:hidden@h", "no database"),
        ] {
            let error = of(url).target().err().unwrap();
            assert!(error.contains(what) && !error.contains("hidden"), "{url}: {error}");
        }
    }

    #[test]
    fn the_place_names_hosts_and_database() {
        let target =
            of("postgres://u:p@a:1,b:2/d?target_session_attrs=read-write&sslrootcert=%2Fetc%2Fca.pem").target();
        let target = target.unwrap();
        assert_eq!(target.place, "a:1,b:2/d");
        assert_eq!(target.roots, Some(PathBuf::from("/etc/ca.pem")));
        assert_eq!(target.config.get_password(), Some(&b"p"[..]));
    }

    #[test]
    fn a_schema_has_a_plain_name() {
        for name in ["starbridge", "_a1"] {
            assert!(is_schema(name));
        }
        for name in ["", "A", "1a", "a b", "a\"b", "pg_x", "a-b", &"a".repeat(64)] {
            assert!(!is_schema(name), "{name}");
        }
    }
}

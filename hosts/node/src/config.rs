//! The configuration of a server: one TOML file. Each setting has a default and can be overridden by the environment
//! (`STARBRIDGE_<SECTION>_<SETTING>`).

mod admission;
mod cluster;
mod console;
mod lambda;
mod mistakes;
mod notifications;
mod outboxes;
mod redis;
mod retention;
mod secrets;
mod shown;
mod sqs;
mod store;
mod token_key;

pub use admission::AdmissionConfig;
pub use cluster::ClusterConfig;
pub use console::ConsoleConfig;
pub use lambda::LambdaConfig;
pub use outboxes::OutboxConfig;
#[cfg(feature = "postgres")]
pub use outboxes::{OUTBOX_SQL, install_outbox};
pub use redis::RedisConfig;
pub use retention::{AuditConfig, RetentionConfig};
pub use secrets::SecretsConfig;
pub use sqs::SqsConfig;
pub use starbridge_connector_http::Network;
pub use store::StoreConfig;

use crate::aws;
use crate::node::NodeSettings;
use crate::notify::TargetConfig;
use crate::optional_connectors::OptionalConnectors;
use crate::programs::{CommandSettings, Programs};
use crate::system::SystemClock;
use serde::{Deserialize, Serialize};
use starbridge_connector_http::{AddressGuard, Allowed, HttpSettings};
use starbridge_flow::diagnostics::nearest;
use starbridge_flow::limits::Limits;
use starbridge_ports::{ReplySource, Store};
use starbridge_runtime::ResourceMap;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// All settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Connections and requests.
    pub server: ServerConfig,
    /// Whether pages for a browser are served, and to whom.
    pub console: ConsoleConfig,
    /// Where executions are kept.
    pub store: StoreConfig,
    /// Several nodes over one database.
    pub cluster: ClusterConfig,
    /// How executions run.
    pub runtime: RuntimeConfig,
    /// Limits of data and definitions (section "limits" of the language reference).
    pub limits: Limits,
    /// Calls of HTTP functions.
    pub http: HttpConfig,
    /// Local programs.
    pub commands: CommandsConfig,
    /// The Redis of `redis:` streams.
    pub redis: RedisConfig,
    /// Where secrets come from, and which flow may use which.
    pub secrets: SecretsConfig,
    /// The queue of SQS through which reports arrive.
    pub sqs: SqsConfig,
    /// How long executions are kept after they ended.
    pub retention: RetentionConfig,
    /// How long the audit list is kept.
    pub audit: AuditConfig,
    /// How admission selects executions.
    pub admission: AdmissionConfig,
    /// What is logged, and in which form.
    pub log: LogConfig,
    /// The interpreter as a function of AWS Lambda.
    pub lambda: LambdaConfig,
    /// The resource map: patterns and targets.
    pub resources: BTreeMap<String, String>,
    /// The tokens of the API.
    pub tokens: Vec<TokenConfig>,
    /// The targets of notifications about status changes.
    pub notifications: Vec<TargetConfig>,
    /// The databases in which others start flows in their own transactions.
    pub outboxes: Vec<OutboxConfig>,
}

/// Settings for connections and requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// The address to listen on. One that other machines can reach needs tokens.
    pub listen: SocketAddr,
    /// Host names under which the server may be called in addition to those of the loopback interface, if there are
    /// no tokens. Pages from these names may make changes.
    pub hosts: Vec<String>,
    /// Addresses and networks of trusted proxies, which name their clients in `Forwarded` or `X-Forwarded-For`.
    pub trusted_proxies: Vec<String>,
    /// The largest number of connections; 0: as many as the limit of open files allows, at most 10000.
    pub connections: usize,
    /// How many seconds the head of a request may take.
    pub head_seconds: u64,
    /// How many seconds the body of a request may pause.
    pub body_seconds: u64,
    /// How many seconds a connection may stay open between two requests.
    pub idle_seconds: u64,
    /// How many seconds a client may read nothing of its answer.
    pub write_seconds: u64,
    /// How many bytes all bodies in progress, and the values read from them, may have.
    pub body_bytes_in_flight: usize,
    /// How many bytes all answers in progress may have, small ones excluded.
    pub answer_bytes_in_flight: usize,
    /// How many seconds calls in flight get to end when the server is stopped.
    pub drain_seconds: u64,
    /// The key that signs task tokens: `secret://NAME`; empty: a key in the store.
    pub token_key: String,
    /// How many requests may wait at a time, for tasks (`waitSeconds`) or for the end of an execution (`wait`). A
    /// request for tasks of several queues counts once for every ten queues.
    pub waiters: usize,
    /// How many requests may follow histories at a time.
    pub followers: usize,
}

/// How executions run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RuntimeConfig {
    /// How many threads own executions; 0: one for each processor.
    pub owners: usize,
    /// How many executions that only wait each owner keeps in memory.
    pub hot_executions: usize,
    /// How many bytes large executions may hold in memory at each owner.
    pub hot_bytes: usize,
    /// How many calls each owner may have out at once.
    pub calls: usize,
    /// How many requests may wait for each owner before more are turned away.
    pub inbox: usize,
}

/// Settings for calls of HTTP functions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpConfig {
    /// Whether private, local and link-local addresses may be called.
    pub private_addresses: bool,
    /// Networks and hosts that may be called although they are not public.
    pub allow: Vec<String>,
    /// How many seconds a call may take whose step has no `timeoutSeconds`; 0: without limit.
    pub timeout_seconds: u64,
}

/// Settings for local programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CommandsConfig {
    /// The folder whose programs flows may run (`cmd:`); empty: none.
    pub folder: PathBuf,
    /// How many seconds a program may run whose step has no `timeoutSeconds`; 0: without limit.
    pub timeout_seconds: u64,
    /// Variables that flows may set for programs; `PREFIX*` stands for all with this prefix.
    pub variables: Vec<String>,
}

/// Settings of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// `error`, `warn`, `info`, `debug` or `trace`, also for parts: `info,starbridge_runtime=debug`.
    pub level: String,
    /// The format of its lines.
    pub format: LogFormat,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// A token of the API and what it allows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenConfig {
    /// The name of the token, for people.
    pub name: String,
    /// The SHA-256 of the token, in hexadecimal digits.
    pub sha256: String,
    /// Some of `read`, `start`, `worker`, `operate`, `admin`.
    pub scopes: Vec<String>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7878)),
            hosts: Vec::new(),
            trusted_proxies: Vec::new(),
            connections: 0,
            head_seconds: 10,
            body_seconds: 30,
            idle_seconds: 60,
            write_seconds: 30,
            body_bytes_in_flight: 512 * 1024 * 1024,
            answer_bytes_in_flight: 256 * 1024 * 1024,
            drain_seconds: 10,
            token_key: String::new(),
            waiters: 20_000,
            followers: 10_000,
        }
    }
}

impl Default for RuntimeConfig {
    fn default() -> Self {
        Self {
            owners: 0,
            hot_executions: 10_000,
            hot_bytes: 256 << 20,
            calls: 1_000,
            inbox: 4_096,
        }
    }
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            private_addresses: false,
            allow: Vec::new(),
            timeout_seconds: 15 * 60,
        }
    }
}

impl Default for CommandsConfig {
    fn default() -> Self {
        Self {
            folder: PathBuf::new(),
            timeout_seconds: 24 * 60 * 60,
            variables: vec!["FLOW_*".to_owned()],
        }
    }
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            level: "info".to_owned(),
            format: LogFormat::Text,
        }
    }
}

/// The prefix of variables that override settings.
const PREFIX: &str = "STARBRIDGE_";
/// The largest number of events that a history can have in any configuration: it is the limit of
/// the stores' numbers.
const MAX_EVENTS: u64 = 10_000_000;
/// The longest time in seconds that can be set for a connection. A longer time is practically no limit.
const MAX_SECONDS: u64 = 86_400;

impl ServerConfig {
    /// The networks of the trusted proxies.
    ///
    /// # Errors
    ///
    /// Which setting is not a network.
    pub fn proxies(&self) -> Result<Vec<Network>, String> {
        let read = |text: &String| {
            let network = text.parse();
            network.map_err(|_| format!("`server.trusted_proxies`: `{text}` is no network (`10.0.0.0/8`) or address"))
        };
        self.trusted_proxies.iter().map(read).collect()
    }
}

impl Config {
    /// Reads a configuration, and what the environment overrides.
    ///
    /// # Errors
    ///
    /// Which setting is wrong, and how.
    pub fn read(text: &str, environment: impl Iterator<Item = (String, String)>) -> Result<Self, String> {
        let mut table: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
        // Errors in the text have a position there, which a table does not have.
        toml::from_str::<Self>(text).map_err(|error| mistakes::described(&error))?;
        let usual = toml::Table::try_from(Self::default()).map_err(|error| error.to_string())?;
        for (variable, value) in environment {
            let Some(place) = variable.strip_prefix(PREFIX).map(str::to_lowercase) else {
                continue;
            };
            let Some((section, setting)) = place.split_once('_') else {
                continue;
            };
            let Some(known) = usual.get(section).and_then(toml::Value::as_table) else {
                // Secrets and the variables of other programs are not settings.
                continue;
            };
            let usual = known.get(setting);
            let usual = usual.ok_or_else(|| no_setting(&variable, section, setting, known))?;
            let value = of_kind(usual, &value)
                .ok_or_else(|| format!("`{variable}` must be {}, not `{value}`", usual.type_str()))?;
            let section = table
                .entry(section.to_owned())
                .or_insert_with(|| toml::Value::Table(toml::Table::new()));
            if let Some(section) = section.as_table_mut() {
                section.insert(setting.to_owned(), value);
            }
        }
        let config: Self = table.try_into().map_err(|error| error.to_string())?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), String> {
        self.guard()?;
        self.server.proxies()?;
        self.resource_map()?;
        self.redis.check()?;
        self.sqs.check()?;
        self.lambda.check()?;
        self.targets()?;
        self.check_outboxes()?;
        for (setting, seconds) in [
            ("head_seconds", self.server.head_seconds),
            ("body_seconds", self.server.body_seconds),
            ("idle_seconds", self.server.idle_seconds),
            ("write_seconds", self.server.write_seconds),
        ] {
            if !(1..=MAX_SECONDS).contains(&seconds) {
                return Err(format!(
                    "`server.{setting}` must be from 1 to {MAX_SECONDS}, not {seconds}"
                ));
            }
        }
        self.token_secret()?;
        if self.limits.history_events > MAX_EVENTS {
            return Err(format!("`limits.history_events` can be at most {MAX_EVENTS}"));
        }
        for token in &self.tokens {
            if token.name.starts_with("outbox ") {
                let name = &token.name;
                return Err(format!(
                    "the token `{name}`: what begins with `outbox ` stands for a role in a database, name it otherwise"
                ));
            }
            if token.sha256.len() != 64 || !token.sha256.chars().all(|digit| digit.is_ascii_hexdigit()) {
                let name = &token.name;
                return Err(format!("the token `{name}`: `sha256` must have 64 hexadecimal digits"));
            }
        }
        Ok(())
    }

    /// The whole configuration as TOML, with defaults and without passwords.
    pub fn to_toml(&self) -> String {
        let shown = Self {
            redis: self.redis.shown(),
            store: self.store.shown(),
            outboxes: self.outboxes.iter().map(OutboxConfig::shown).collect(),
            ..self.clone()
        };
        toml::to_string(&shown).unwrap_or_default()
    }

    /// Whether a server with this configuration is only for local use: only processes of this
    /// machine reach it, without a proxy, and each of them may do everything. Its flows may call
    /// the loopback interface, as those processes can.
    pub fn serves_only_this_machine(&self) -> bool {
        let server = &self.server;
        self.tokens.is_empty()
            && server.listen.ip().is_loopback()
            && server.hosts.is_empty()
            && server.trusted_proxies.is_empty()
            && self.cluster.is_of_this_machine()
    }

    fn guard(&self) -> Result<AddressGuard, String> {
        if self.http.private_addresses {
            return Ok(AddressGuard::AllowAll);
        }
        let mut allow: Vec<Allowed> = Vec::new();
        for rule in &self.http.allow {
            allow.push(rule.parse().map_err(|error| format!("`http.allow`: {error}"))?);
        }
        Ok(AddressGuard::PublicOnly { allow })
    }

    /// The resource map.
    ///
    /// # Errors
    ///
    /// Which entry is wrong.
    pub fn resource_map(&self) -> Result<ResourceMap, String> {
        let mut map = ResourceMap::default();
        for (pattern, target) in &self.resources {
            map.add(&format!("{pattern}={target}"))
                .map_err(|error| format!("`resources`: `{pattern}`: {error}"))?;
        }
        Ok(map)
    }

    /// The connectors that exist only because they are configured.
    fn optional_connectors(&self) -> Result<OptionalConnectors, String> {
        let mut optional_connectors = OptionalConnectors::default();
        self.redis.add_to(&mut optional_connectors, &*self.secrets())?;
        aws::add_to(&mut optional_connectors);
        Ok(optional_connectors)
    }

    /// The connectors that the environment alone configures, for a run in this process.
    ///
    /// # Errors
    ///
    /// Which setting is wrong, and how.
    pub fn optional_connectors_of(
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<OptionalConnectors, String> {
        let environment = environment.filter(|(variable, _)| variable.starts_with("STARBRIDGE_REDIS_"));
        Self::read("", environment)?.optional_connectors()
    }

    /// The reply queues that are configured.
    ///
    /// # Errors
    ///
    /// Which setting is wrong, or why a queue can't be used.
    pub fn replies(&self) -> Result<Vec<Arc<dyn ReplySource>>, String> {
        let streams = self.redis.replies(&*self.secrets())?;
        Ok(streams.into_iter().chain(self.sqs.replies()?).collect())
    }

    /// How many threads own executions.
    pub fn owners(&self) -> usize {
        match self.runtime.owners {
            0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            owners => owners,
        }
    }

    /// The settings of a node over this store.
    ///
    /// # Errors
    ///
    /// Which setting is wrong, or which secret is missing.
    pub fn node(&self, store: Arc<dyn Store>) -> Result<NodeSettings, String> {
        let folder = &self.commands.folder;
        Ok(NodeSettings {
            store,
            asked: None,
            resources: self.resource_map()?,
            limits: self.limits.clone(),
            owners: self.owners(),
            hot_executions: self.runtime.hot_executions,
            hot_bytes: self.runtime.hot_bytes,
            calls: self.runtime.calls.max(1),
            inbox: self.runtime.inbox,
            waiters: self.server.waiters,
            followers: self.server.followers,
            http: HttpSettings {
                guard: self.guard()?,
                clock: Some(Arc::new(SystemClock)),
                timeout: seconds(self.http.timeout_seconds),
                ..HttpSettings::default()
            },
            commands: (!folder.as_os_str().is_empty()).then(|| CommandSettings {
                programs: Programs::OfFolder,
                variables: self.commands.variables.clone(),
                timeout: seconds(self.commands.timeout_seconds),
                ..CommandSettings::in_folder(folder.clone())
            }),
            optional_connectors: self.optional_connectors()?,
            notifications: self.signed_targets(&*self.secrets())?,
            secrets: self.secrets(),
            secret_use: self.secret_use(),
            token_keys: self.token_keys(&*self.secrets())?,
            worker_queues: true,
            admission: self.admission.settings(),
            leased: None,
            clock: Arc::new(SystemClock),
            begins_traces: false,
        })
    }
}

/// A time that is set in seconds; 0: none.
fn seconds(set: u64) -> Option<Duration> {
    (set > 0).then(|| Duration::from_secs(set))
}

fn no_setting(variable: &str, section: &str, setting: &str, known: &toml::Table) -> String {
    let meant = nearest(setting, known.keys().map(String::as_str));
    let meant = meant.map(|meant| format!("{PREFIX}{section}_{meant}").to_uppercase());
    let hint = meant
        .map(|meant| format!(": did you mean `{meant}`?"))
        .unwrap_or_default();
    format!("`{variable}` sets nothing, `{section}` has no such setting{hint}")
}

/// Reads a value from the environment. It has the type of the setting's default.
fn of_kind(usual: &toml::Value, text: &str) -> Option<toml::Value> {
    Some(match usual {
        toml::Value::Integer(_) => toml::Value::Integer(text.parse().ok()?),
        toml::Value::Boolean(_) => toml::Value::Boolean(text.parse().ok()?),
        toml::Value::Array(_) => {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            toml::Value::Array(items.map(|item| toml::Value::String(item.to_owned())).collect())
        }
        toml::Value::String(_) => toml::Value::String(text.to_owned()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none() -> impl Iterator<Item = (String, String)> {
        std::iter::empty()
    }

    #[test]
    fn only_a_server_for_this_machine_is_open_to_it() {
        let serves = |text: &str| Config::read(text, none()).unwrap().serves_only_this_machine();
        assert!(serves("") && serves("[server]\nlisten = \"[::1]:1\""));
        let token = format!(
            "[[tokens]]\nname = \"a\"\nscopes = [\"read\"]\nsha256 = \"{}\"",
            "0".repeat(64)
        );
        for other in [
            "[server]\nlisten = \"0.0.0.0:1\"",
            "[server]\nhosts = [\"flows.example\"]",
            "[server]\ntrusted_proxies = [\"127.0.0.1\"]",
            &token,
        ] {
            assert!(!serves(other), "{other}");
        }
    }

    #[test]
    fn config_printed_is_config_read() {
        let usual = Config::read("", none()).unwrap();
        assert_eq!(usual, Config::default());
        assert_eq!(Config::read(&usual.to_toml(), none()).unwrap(), usual);
    }

    #[test]
    fn config_environment_overrides_the_file() {
        let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let environment = [
            set("STARBRIDGE_SERVER_LISTEN", "127.0.0.1:9"),
            set("STARBRIDGE_RETENTION_DAYS", "3"),
            set("STARBRIDGE_HTTP_ALLOW", "10.0.0.0/8, functions.internal"),
            set("STARBRIDGE_SECRET_KEY", "not a setting"),
        ];
        let config = Config::read("[retention]\ndays = 5\n", environment.into_iter()).unwrap();
        assert_eq!(config.server.listen.port(), 9);
        assert_eq!(config.retention.days, 3);
        assert_eq!(config.http.allow.len(), 2);
        let slip = Config::read("", [set("STARBRIDGE_RETENTION_DAY", "3")].into_iter());
        assert!(slip.is_err_and(|error| error.contains("did you mean `STARBRIDGE_RETENTION_DAYS`?")));
        let wrong = Config::read("", [set("STARBRIDGE_RETENTION_DAYS", "few")].into_iter());
        assert_eq!(
            wrong,
            Err("`STARBRIDGE_RETENTION_DAYS` must be integer, not `few`".to_owned())
        );
    }

    #[test]
    fn config_mistakes_are_named() {
        for (text, word) in [
            ("[server]\nlisen = \"1\"", "lisen"),
            ("[server]\nhead_seconds = 0", "server.head_seconds"),
            ("[http]\nallow = [\"10.0.0.0/99\"]", "http.allow"),
            (
                "[server]\ntrusted_proxies = [\"proxy.internal\"]",
                "server.trusted_proxies",
            ),
            ("[resources]\n\"a{\" = \"http://x\"", "resources"),
            ("[[tokens]]\nname = \"ci\"\nsha256 = \"12\"\nscopes = []", "64"),
        ] {
            let error = Config::read(text, none()).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}

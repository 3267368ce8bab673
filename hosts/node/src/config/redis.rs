//! Settings for the Redis of `redis:` streams.

use super::secrets::secret_named;
use crate::optional_connectors::OptionalConnectors;
use serde::{Deserialize, Serialize};
use starbridge_ports::{ReplySource, Secrets};
use std::sync::Arc;

/// Settings for the Redis of `redis:` streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RedisConfig {
    /// `redis://[user@]host[:port][/database]`, or `rediss://…`; empty: none.
    pub url: String,
    /// The password: `secret://NAME`; empty: none, or the one in the URL.
    pub password: String,
    /// The largest message, in bytes.
    pub message_bytes: usize,
    /// From this many entries on, a stream is trimmed of entries that all its groups have acknowledged; 0: never.
    pub trim_above: u64,
    /// The stream from which reports are taken; empty: none.
    pub reply_stream: String,
}

impl Default for RedisConfig {
    fn default() -> Self {
        Self {
            url: String::new(),
            password: String::new(),
            message_bytes: 1 << 20,
            trim_above: 100_000,
            reply_stream: String::new(),
        }
    }
}

impl RedisConfig {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.url.is_empty() {
            let idle = [("password", &self.password), ("reply_stream", &self.reply_stream)];
            return match idle.into_iter().find(|(_, value)| !value.is_empty()) {
                Some((setting, _)) => Err(format!("`redis.{setting}` says nothing without `redis.url`")),
                None => Ok(()),
            };
        }
        if !self.password.is_empty() && self.secret().is_none() {
            return Err("`redis.password` must be `secret://NAME`".to_owned());
        }
        address(&self.url).map(drop)
    }

    pub(super) fn secret(&self) -> Option<&str> {
        secret_named(&self.password)
    }

    /// These settings without the password, for display.
    pub(super) fn shown(&self) -> Self {
        let mut shown = self.clone();
        if let Some((scheme, rest)) = self.url.split_once("://")
            && let Some((login, place)) = rest.rsplit_once('@')
            && let Some((user, _)) = login.split_once(':')
        {
            shown.url = format!("{scheme}://{user}:…@{place}");
        }
        shown
    }

    /// Adds the connector for `redis:` streams, or the reason why there is none.
    #[cfg(feature = "redis")]
    pub(super) fn add_to(
        &self,
        optional_connectors: &mut OptionalConnectors,
        secrets: &dyn Secrets,
    ) -> Result<(), String> {
        match self.settings(secrets)? {
            None => optional_connectors
                .add_unavailable("redis", "no Redis is configured (`redis.url`, or STARBRIDGE_REDIS_URL)"),
            Some(settings) => optional_connectors.add("redis", move || {
                Arc::new(starbridge_connector_redis::RedisConnector::new(settings.clone()))
            }),
        }
        Ok(())
    }

    #[cfg(not(feature = "redis"))]
    pub(super) fn add_to(&self, optional_connectors: &mut OptionalConnectors, _: &dyn Secrets) -> Result<(), String> {
        optional_connectors.add_unavailable("redis", "this program was built without the feature `redis`");
        self.check()
    }

    /// The reply stream, if there is one.
    #[cfg(feature = "redis")]
    pub(super) fn replies(&self, secrets: &dyn Secrets) -> Result<Option<Arc<dyn ReplySource>>, String> {
        let stream = &self.reply_stream;
        let settings = self.settings(secrets)?.filter(|_| !stream.is_empty());
        let plan = starbridge_connector_redis::ReplyStream::new(stream);
        let replies = settings.map(|settings| starbridge_connector_redis::RedisReplies::new(&settings, plan));
        Ok(replies.map(|replies| Arc::new(replies) as Arc<dyn ReplySource>))
    }

    #[cfg(not(feature = "redis"))]
    pub(super) fn replies(&self, _: &dyn Secrets) -> Result<Option<Arc<dyn ReplySource>>, String> {
        self.check().map(|()| None)
    }

    #[cfg(feature = "redis")]
    fn settings(&self, secrets: &dyn Secrets) -> Result<Option<starbridge_connector_redis::RedisSettings>, String> {
        self.check()?;
        if self.url.is_empty() {
            return Ok(None);
        }
        let mut address = address(&self.url)?;
        if let Some(name) = self.secret() {
            let password = secrets.get(name);
            let password = password.ok_or_else(|| format!("`redis.password`: there is no secret `{name}`"))?;
            address = address.with_password(password.reveal());
        }
        Ok(Some(starbridge_connector_redis::RedisSettings {
            clock: Some(Arc::new(crate::system::SystemClock)),
            message_bytes: self.message_bytes,
            trim_above: self.trim_above,
            ..starbridge_connector_redis::RedisSettings::new(address)
        }))
    }
}

#[cfg(feature = "redis")]
fn address(url: &str) -> Result<starbridge_connector_redis::Address, String> {
    starbridge_connector_redis::Address::parse(url).map_err(|error| format!("`redis.url` is {error}"))
}

/// Does nothing: this program is built without Redis.
#[cfg(not(feature = "redis"))]
fn address(_: &str) -> Result<(), String> {
    Err("`redis.url` is set, but this program was built without the feature `redis`".to_owned())
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use starbridge_flow::graph::Pattern;
    use starbridge_flow::value::Value;
    use starbridge_ports::{CallIds, Outcome, Request, ResourceFamily};

    fn read(text: &str) -> Result<Config, String> {
        Config::read(text, std::iter::empty())
    }

    #[test]
    fn redis_settings_without_a_redis_are_refused() {
        for setting in ["password = \"secret://P\"", "reply_stream = \"replies\""] {
            let error = read(&format!("[redis]\n{setting}")).unwrap_err();
            assert!(error.contains("without `redis.url`"), "{error}");
        }
    }

    #[tokio::test]
    async fn redis_call_without_a_redis_says_what_is_missing() {
        let mut connectors = starbridge_runtime::Connectors::new();
        let optional_connectors = Config::optional_connectors_of(std::iter::empty()).unwrap();
        optional_connectors.insert_into(&mut connectors);
        let request = Request {
            target: "redis:orders".to_owned(),
            via: ResourceFamily::Direct,
            pattern: Pattern::RequestResponse,
            input: Value::empty_object(),
            params: None,
            keys: CallIds::default(),
            attempt: 1,
            rollback: false,
            polling: false,
            follow: false,
            timeout_at: None,
            answer_limit: 1,
        };
        let outcome = connectors["redis"].call(request).await;
        let missing = match cfg!(feature = "redis") {
            true => "no Redis is configured (`redis.url`, or STARBRIDGE_REDIS_URL)",
            false => "this program was built without the feature `redis`",
        };
        let cause = format!("`redis:orders` can't be called here: {missing}");
        assert_eq!(outcome, Outcome::not_sent(cause));
    }

    #[cfg(not(feature = "redis"))]
    #[test]
    fn redis_needs_the_feature() {
        let error = read("[redis]\nurl = \"redis://localhost\"").unwrap_err();
        assert!(error.contains("the feature `redis`"), "{error}");
    }

    #[cfg(feature = "redis")]
    #[test]
    fn redis_password_is_a_secret_and_never_shown() {
        let error = read("[redis]\nurl = \"redis://h\"\npassword = \"open-sesame\"").unwrap_err();
        assert_eq!(error, "`redis.password` must be `secret://NAME`");
        let error = read("[redis]\nurl = \"redis://:open-sesame@\"").unwrap_err();
        assert!(
            error.starts_with("`redis.url` is") && !error.contains("sesame"),
            "{error}"
        );
        let config = read("[redis]\nurl = \"rediss://me:open@sesame@h:1/2\"").unwrap();
        assert!(config.to_toml().contains("rediss://me:…@h:1/2"), "{}", config.to_toml());
        let config = read("[redis]\nurl = \"redis://h\"\npassword = \"secret://NOBODY_HAS_IT\"").unwrap();
        let error = config.replies().err().unwrap();
        assert_eq!(error, "`redis.password`: there is no secret `NOBODY_HAS_IT`");
        let config = read("[redis]\nurl = \"redis://h:7\"\nreply_stream = \"replies\"").unwrap();
        assert_eq!(config.replies().unwrap()[0].name(), "redis:replies at h:7");
    }
}

//! The targets of notifications.

use super::Config;
use crate::notify::Target;
use starbridge_connector_http::is_refused;
use starbridge_ports::Secrets;
use std::collections::BTreeSet;

impl Config {
    /// The configured targets, or what is wrong with one.
    pub(super) fn targets(&self) -> Result<Vec<Target>, String> {
        let (mut targets, mut names) = (Vec::new(), BTreeSet::new());
        // They may call what flows may call.
        let guard = match self.serves_only_this_machine() {
            true => self.guard()?.with_loopback(),
            false => self.guard()?,
        };
        for config in &self.notifications {
            let target = Target::read(config)?;
            let name = target.name.as_str();
            let wrong = |what: &str| Err(format!("the notifications `{name}`: {what}"));
            if !names.insert(&config.name) {
                return wrong("there are others of that name");
            }
            match target.scheme() {
                "redis" if self.redis.url.is_empty() => {
                    return wrong("`redis:STREAM` says nothing without `redis.url`");
                }
                "sqs" if !cfg!(feature = "aws") => {
                    return wrong("`sqs:QUEUE` can't be used: this program was built without the feature `aws`");
                }
                "http" if is_refused(&config.to, &guard) => {
                    return wrong("`to` is a private or local address, which is not called: name it in `http.allow`");
                }
                _ => targets.push(target),
            }
        }
        Ok(targets)
    }

    /// The configured targets, or why one can't be used: the secret that signs its webhooks must exist.
    pub(super) fn signed_targets(&self, secrets: &dyn Secrets) -> Result<Vec<Target>, String> {
        let targets = self.targets()?;
        for target in &targets {
            if let Some(name) = target.secret.as_deref().filter(|name| secrets.get(name).is_none()) {
                let of = &target.name;
                return Err(format!("the notifications `{of}`: there is no secret `{name}`"));
            }
        }
        Ok(targets)
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn read(text: &str) -> Result<Config, String> {
        Config::read(text, std::iter::empty())
    }

    #[test]
    fn notification_targets_are_checked_at_once() {
        let hook = "[[notifications]]\nname = \"ops\"\nto = \"https://h/x\"\n";
        assert_eq!(read(hook).unwrap().notifications.len(), 1);
        // Behind a name, others than the processes of this machine reach the server.
        let beyond = "[server]\nhosts = [\"flows.example\"]\n";
        let local = hook.replace("//h/", "//localhost:9000/");
        assert_eq!(read(&local).unwrap().targets().unwrap().len(), 1);
        for (text, word) in [
            (format!("{hook}{hook}"), "`ops`: there are others of that name"),
            (format!("{hook}statuses = [\"Done\"]\n"), "`Done` is no status"),
            (format!("{hook}secret = \"open\"\n"), "secret://NAME"),
            (format!("{hook}too = \"x\"\n"), "too"),
            (hook.replace("https:", "ftp:"), "`to` must be"),
            (hook.replace("https://h", "https://me:open@h"), "password"),
            (hook.replace("https://h/x", "redis:alerts"), "`redis.url`"),
            (hook.replace("//h/", "//10.1.2.3:9/"), "`http.allow`"),
            (format!("{beyond}{}", hook.replace("//h/", "//[::1]/")), "`http.allow`"),
            (
                format!("{beyond}{}", hook.replace("//h/", "//localhost/")),
                "`http.allow`",
            ),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn notification_targets_may_be_private_where_allowed() {
        let hook = "[[notifications]]\nname = \"ops\"\nto = \"https://localhost/x\"\n";
        for allowed in [
            "allow = [\"localhost\"]",
            "allow = [\"127.0.0.0/8\"]",
            "private_addresses = true",
        ] {
            let config = read(&format!("[http]\n{allowed}\n{hook}")).unwrap();
            assert_eq!(config.targets().unwrap().len(), 1, "{allowed}");
        }
    }

    #[test]
    fn webhook_is_not_left_unsigned() {
        let text = "[[notifications]]\nname = \"ops\"\nto = \"https://h/x\"\nsecret = \"secret://NOBODY_HAS_IT\"\n";
        let error = read(text).unwrap().node(crate::stores::in_memory()).err();
        let expected = "the notifications `ops`: there is no secret `NOBODY_HAS_IT`";
        assert_eq!(error.as_deref(), Some(expected));
    }

    #[test]
    fn notification_config_printed_is_config_read() {
        let text = "[[notifications]]\nname = \"ops\"\nto = \"https://h/x\"\nstatuses = [\"Failed\"]\n";
        let config = read(text).unwrap();
        assert_eq!(read(&config.to_toml()).unwrap(), config);
    }
}

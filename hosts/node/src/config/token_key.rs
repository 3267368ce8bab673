//! A key for task tokens from a secret instead of the store.

use super::Config;
use super::secrets::secret_named;
use crate::node::read_keys;
use starbridge_ports::Secrets;

impl Config {
    /// The name of the secret with the keys; `None` if the store has them.
    pub(super) fn token_secret(&self) -> Result<Option<&str>, String> {
        let set = self.server.token_key.as_str();
        match secret_named(set) {
            None if !set.is_empty() => Err("`server.token_key` must be `secret://NAME`".to_owned()),
            name => Ok(name),
        }
    }

    /// The keys; empty if the store has them.
    pub(super) fn token_keys(&self, secrets: &dyn Secrets) -> Result<Vec<[u8; 32]>, String> {
        let Some(name) = self.token_secret()? else {
            return Ok(Vec::new());
        };
        let Some(secret) = secrets.get(name) else {
            return Err(format!("`server.token_key`: there is no secret `{name}`"));
        };
        read_keys(secret.reveal()).map_err(|why| format!("`server.token_key`: each key in the secret `{name}` {why}"))
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn read(text: &str) -> Result<Config, String> {
        Config::read(text, std::iter::empty())
    }

    #[test]
    fn token_key_is_a_secret_with_enough_in_it() {
        let folder = std::env::temp_dir().join(format!("starbridge-token-key-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("good"), format!("{}\n", "0a".repeat(32))).unwrap();
        std::fs::write(folder.join("short"), "0a").unwrap();
        let config = |key: &str| {
            let folder = folder.display();
            format!("[server]\ntoken_key = \"{key}\"\n[secrets]\nfolder = \"{folder}\"\n")
        };
        let node = |key: &str| read(&config(key)).and_then(|config| config.node(crate::stores::in_memory()));
        assert_eq!(node("secret://good").ok().unwrap().token_keys, [[0x0a; 32]]);
        assert_eq!(node("").ok().unwrap().token_keys, <[[u8; 32]; 0]>::default());
        for (key, word) in [
            ("0a0a", "must be `secret://NAME`"),
            ("secret://none", "no secret `none`"),
            ("secret://short", "32 bytes or more"),
        ] {
            let error = node(key).err().unwrap();
            assert!(error.contains("server.token_key") && error.contains(word), "{error}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

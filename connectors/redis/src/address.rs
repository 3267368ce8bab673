//! The address of a Redis: the server and the user.

use redis::{ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo};

/// The address of a Redis: host, port, database, user and password. `Display` and `Debug` leave out the password.
#[derive(Clone)]
pub struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) secure: bool,
    pub(crate) login: RedisConnectionInfo,
}

/// A text that is not the address of a Redis. It may contain a password, so the error does not repeat it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadAddress(&'static str);

impl Address {
    /// Reads `redis://[user[:password]@]host[:port][/database]`, or `rediss://…` for TLS.
    ///
    /// # Errors
    ///
    /// [`BadAddress`] says which part is wrong.
    pub fn parse(url: &str) -> Result<Self, BadAddress> {
        let (secure, rest) = match url.split_once("://") {
            Some(("redis", rest)) => (false, rest),
            Some(("rediss", rest)) => (true, rest),
            _ => return Err(BadAddress("it must begin with `redis://` or `rediss://`")),
        };
        if rest.contains('#') {
            return Err(BadAddress("it can't have a `#`: certificates are always checked"));
        }
        // The client library only sees an address without TLS: the handshake is made here.
        let info = format!("redis://{rest}").as_str().into_connection_info();
        let info = info.map_err(|_| BadAddress("expected `redis://[user[:password]@]host[:port][/database]`"))?;
        let ConnectionAddr::Tcp(host, port) = info.addr() else {
            return Err(BadAddress("it names no host"));
        };
        Ok(Self {
            host: host.clone(),
            port: *port,
            secure,
            login: info
                .redis_settings()
                .clone()
                .set_lib_name("starbridge", env!("CARGO_PKG_VERSION")),
        })
    }

    /// This address with another password.
    pub fn with_password(mut self, password: &str) -> Self {
        self.login = self.login.set_password(password);
        self
    }
}

/// Writes `host:port`, or `host:port/database`.
impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port)?,
            false => write!(f, "{}:{}", self.host, self.port)?,
        }
        match self.login.db() {
            0 => Ok(()),
            database => write!(f, "/{database}"),
        }
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Address({self})")
    }
}

impl std::fmt::Display for BadAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no address of a Redis: {}", self.0)
    }
}

impl std::error::Error for BadAddress {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        for (url, shown, secure) in [
            ("redis://localhost", "localhost:6379", false),
            ("redis://u:hidden@redis.internal:7000/3", "redis.internal:7000/3", false),
            ("rediss://:hidden@[::1]:7001", "[::1]:7001", true),
        ] {
            let address = Address::parse(url).unwrap();
            assert_eq!(address.to_string(), shown);
            assert_eq!(address.secure, secure);
            assert!(!format!("{address:?}").contains("hidden"));
        }
        let address = Address::parse("redis://u:a%20b@h").unwrap();
        assert_eq!(
            (address.login.username(), address.login.password()),
            (Some("u"), Some("a b"))
        );
        assert_eq!(address.with_password("c").login.password(), Some("c"));
    }

    #[test]
    fn what_is_no_address_is_not_repeated() {
        for url in [
            "",
            "localhost:6379",
            "http://hidden",
            "redis://h/hidden",
            "redis://:hidden@",
            "rediss://h/#insecure",
            "redis://h:hidden",
        ] {
            let refused = Address::parse(url).unwrap_err().to_string();
            assert!(!refused.contains("hidden"), "{refused}");
        }
    }
}

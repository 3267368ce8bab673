//! Opening the store that is configured: a file, or a database.

use crate::config::Config;
use crate::stores::{Opened, open_to_serve};

/// Opens the store that is configured for a server: in a database, or in a file.
///
/// # Errors
///
/// Why it can't be opened, and what to do.
pub fn open_configured(config: &Config, accept_lost_log: bool) -> Result<Opened, String> {
    match config.store.url.is_empty() {
        true => open_to_serve(&config.store.path, accept_lost_log),
        false => open_database(config),
    }
}

#[cfg(feature = "postgres")]
fn open_database(config: &Config) -> Result<Opened, String> {
    let settings = database(config)?;
    let store = starbridge_postgres::PostgresStore::open(&settings).map_err(|error| error.to_string())?;
    opened(store, &settings.schema)
}

/// Where the configured database is.
#[cfg(feature = "postgres")]
pub(crate) fn database(config: &Config) -> Result<starbridge_postgres::PostgresSettings, String> {
    let node = match config.cluster.is_set() {
        true => config.cluster.node.clone(),
        false => crate::system::process_name(),
    };
    Ok(starbridge_postgres::PostgresSettings {
        url: config.store.url.clone(),
        password: config.store_password()?,
        schema: config.store.schema.clone(),
        node,
        require_synchronous: config.store.require_synchronous,
        ..starbridge_postgres::PostgresSettings::default()
    })
}

/// The handles of a store that was just opened.
#[cfg(feature = "postgres")]
pub(crate) fn opened(store: starbridge_postgres::PostgresStore, schema: &str) -> Result<Opened, String> {
    use starbridge_ports::Listing;
    use std::sync::Arc;
    for warning in store.warnings() {
        tracing::warn!("{warning}");
    }
    let at = store.place();
    let said = if store.is_new() {
        tracing::info!(database = %at, %schema, "new store made");
        format!("made a new store in {at}, schema {schema}")
    } else {
        let counts = store.counts().map_err(|error| error.to_string())?;
        let all: u64 = counts.iter().map(|(_, count)| count).sum();
        let open = counts.iter().filter(|(status, _)| !status.is_ended());
        let open: u64 = open.map(|(_, count)| count).sum();
        tracing::info!(database = %at, %schema, executions = all, open, "store opened");
        format!("opened {at}, schema {schema}; executions in it: {all}, not ended: {open}")
    };
    Ok(Opened {
        // Who runs executions waits while the database is away; who asks for them is told.
        store: Arc::new(store.patient()),
        asked: Some(Arc::new(store)),
        said,
    })
}

#[cfg(not(feature = "postgres"))]
fn open_database(config: &Config) -> Result<Opened, String> {
    Err(format!(
        "`{}` can't be opened: this program was built without the feature `postgres`",
        config.store.place()
    ))
}

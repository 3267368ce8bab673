//! Installing the functions of an outbox into a database.

use super::{Way, client};

/// The SQL of the installation, in one transaction. It can be run again.
pub const INSTALL_SQL: &str = include_str!("../../outbox/install.sql");

/// Installs the functions and tables of an outbox in one transaction, or brings them up to date. Returns where.
///
/// # Errors
///
/// Why they are not installed, and what to do.
pub async fn install(url: &str, password: Option<&String>) -> Result<String, String> {
    let mut way = Way::new(url, password)?;
    client::be_patient(&mut way.config);
    let made = client::client(&way, |_| {}).await;
    let (client, _) = made.map_err(|error| way.error(&error).0)?;
    match client.batch_execute(INSTALL_SQL).await {
        Ok(()) => Ok(way.place),
        Err(error) => {
            let why = crate::fault::said(&error);
            let hint = match error.code().map(|code| code.code()) {
                Some("42501") => {
                    "; the role must own the database and be allowed to make roles, or an administrator runs what `--print` shows".to_owned()
                }
                _ => match error.as_db_error().and_then(|error| error.hint()) {
                    Some(hint) => format!("; what to do: {}", hint.trim_end_matches('.')),
                    None => String::new(),
                },
            };
            Err(format!("the database {}: {why}{hint}", way.place))
        }
    }
}

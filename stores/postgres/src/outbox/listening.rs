//! The connection that listens. Notifications have a connection of their own, so that they never delay the answers to statements.

use super::Way;
use super::client::{CONNECT, ClientEvent, client};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio_postgres::Error;

/// Before listening begins again.
const REST: Duration = Duration::from_secs(10);

const LISTEN: &str = "set search_path = pg_catalog, pg_temp; set client_min_messages = warning; \
    set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 2; set tcp_keepalives_count = 3; \
    listen starbridge_outbox";

/// Listening, until it is dropped.
pub(super) struct Listening {
    _task: Driven,
}

/// A task that ends when this is dropped.
struct Driven(AbortHandle);

impl Drop for Driven {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Listening {
    /// Wakes the reader at each notification. Without a connection it is not woken, and finds all rows when it looks by itself.
    pub(super) fn begin(mut way: Way, wake: Arc<Notify>) -> Self {
        way.config.application_name("starbridge outbox listener");
        let listening = tokio::spawn(async move {
            loop {
                if let Err(error) = listen(&way, &wake).await {
                    tracing::debug!(place = way.place, %error, "an outbox is not listened to");
                }
                tokio::time::sleep(REST).await;
            }
        });
        Self {
            _task: Driven(listening.abort_handle()),
        }
    }
}

/// Listens until the connection ends. The functions of an outbox notify without a text. Every role that can connect may notify as
/// often as it likes; the reader is woken once.
async fn listen(way: &Way, wake: &Arc<Notify>) -> Result<(), Error> {
    let (over, wake) = (Arc::new(Notify::new()), wake.clone());
    let told = over.clone();
    let hear = move |heard| match heard {
        ClientEvent::Notified(words) if words.is_empty() => wake.notify_one(),
        ClientEvent::Notified(_) | ClientEvent::Ended => told.notify_one(),
    };
    let begun = async {
        let (client, driven) = client(way, hear).await?;
        let driven = Driven(driven);
        client.batch_execute(LISTEN).await?;
        Ok((client, driven))
    };
    let Ok(begun) = tokio::time::timeout(CONNECT, begun).await else {
        return Ok(());
    };
    let _connection = begun?;
    over.notified().await;
    Ok(())
}

//! A client of the database of an outbox, driven by the current runtime.

use super::Way;
use std::future::poll_fn;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;
use tokio_postgres::tls::TlsStream;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Error, NoTls};

/// How long a connection may take to be made.
pub(super) const CONNECT: Duration = Duration::from_secs(5);
/// After this silence a connection is checked.
const SILENCE: Duration = Duration::from_secs(10);

/// Sets how long a connection waits for a server that does not answer.
pub(super) fn be_patient(config: &mut Config) {
    config.connect_timeout(CONNECT).tcp_user_timeout(SILENCE);
    config.keepalives_idle(SILENCE).application_name("starbridge outbox");
}

/// An event of a connection that no statement asked for.
pub(super) enum ClientEvent {
    /// A notification with this text.
    Notified(String),
    /// It has ended.
    Ended,
}

/// A client, driven by the current runtime, and the handle that ends it at once.
pub(super) async fn client(
    way: &Way,
    hear: impl FnMut(ClientEvent) + Send + 'static,
) -> Result<(Client, AbortHandle), Error> {
    Ok(match &way.tls {
        Some(tls) => {
            let (client, connection) = way.config.connect(tls.clone()).await?;
            (client, drive(connection, hear))
        }
        None => {
            let (client, connection) = way.config.connect(NoTls).await?;
            (client, drive(connection, hear))
        }
    })
}

fn drive<S, T>(mut connection: Connection<S, T>, mut hear: impl FnMut(ClientEvent) + Send + 'static) -> AbortHandle
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: TlsStream + Unpin + Send + 'static,
{
    let driven = tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(notification) = message {
                hear(ClientEvent::Notified(notification.payload().to_owned()));
            }
        }
        hear(ClientEvent::Ended);
    });
    driven.abort_handle()
}

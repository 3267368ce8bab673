//! Calls over TLS.

use super::server::{Reply, json, talk};
use super::setting::{failure, request, value};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use starbridge_connector_http::{HttpConnector, HttpSettings};
use starbridge_ports::{Connector, Outcome};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

/// A server with a certificate for `127.0.0.1` that no other program trusts. Returns its port and
/// the certificate.
async fn start(reply: Reply) -> (u16, Vec<u8>) {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate: CertificateDer<'static> = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, reply) = (acceptor.clone(), reply.clone());
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    let (saw, _seen) = mpsc::unbounded_channel();
                    talk(stream, reply, saw).await;
                }
            });
        }
    });
    (port, certificate.to_vec())
}

#[tokio::test]
async fn a_trusted_certificate_is_enough() {
    let (port, certificate) = start(json("{\"safe\": true}")).await;
    let connector = HttpConnector::new(HttpSettings {
        extra_roots: vec![certificate],
        ..HttpSettings::default()
    });
    let outcome = connector.call(request(&format!("https://127.0.0.1:{port}/"))).await;
    assert_eq!(outcome, Outcome::Result(value("{\"safe\": true}")));
}

#[tokio::test]
async fn a_stranger_is_not_believed() {
    let (port, _) = start(json("{}")).await;
    let connector = HttpConnector::new(HttpSettings::default());
    let (error, cause, _) = failure(
        connector
            .call(request(&format!("https://127.0.0.1:{port}/pay?key=s")))
            .await,
    );
    assert_eq!(error, "HTTP.ConnectionFailed");
    assert!(
        cause.starts_with(&format!("`https://127.0.0.1:{port}/pay`: TLS: ")),
        "{cause}"
    );
}

#[tokio::test]
async fn informational_answers_are_counted_here_too() {
    let endless = Reply::Endless(b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100));
    let (port, certificate) = start(endless).await;
    let connector = HttpConnector::new(HttpSettings {
        extra_roots: vec![certificate],
        ..HttpSettings::default()
    });
    let outcome = connector.call(request(&format!("https://127.0.0.1:{port}/"))).await;
    let (error, cause, _) = failure(outcome);
    assert_eq!(error, "HTTP.ConnectionFailed");
    assert!(cause.contains("informational answers"), "{cause}");
}

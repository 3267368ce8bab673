//! `rediss://`: the certificate is checked, as with an HTTP function.

use super::setting::{call, failed, only_entry, sent, settings, start};
use starbridge_connector_redis::{Address, RedisConnector, RedisSettings};
use std::net::TcpListener;

#[tokio::test]
async fn the_certificate_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let certificate = file("certificate", certified.cert.pem());
    let key = file("key", certified.signing_key.serialize_pem());
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let port = free.port().to_string();
    let service = start(&[
        "--tls-port",
        &port,
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &certificate,
        "--tls-auth-clients",
        "no",
    ]);
    let secure = |host: &str, extra_roots| {
        let address = Address::parse(&format!("rediss://{host}:{port}")).unwrap();
        RedisConnector::new(RedisSettings {
            extra_roots,
            patience: std::time::Duration::from_secs(1),
            ..RedisSettings {
                address,
                clock: None,
                ..settings(&service)
            }
        })
    };
    let root = vec![certified.cert.der().to_vec()];
    sent(&secure("localhost", root.clone()), call("redis:orders", 1)).await;
    for connector in [secure("localhost", Vec::new()), secure("127.0.0.1", root)] {
        let (error, cause) = failed(&connector, call("redis:orders", 1)).await;
        assert_eq!(error, "Redis.ConnectionFailed");
        assert!(cause.contains("certificate"), "{cause}");
    }
    only_entry(&service, "orders").await;
}

//! Who may speak over a link: whoever has the key of a certificate whose hash stands in the row of a node.

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::version::TLS12;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme,
    SupportedProtocolVersion,
};
use sha2::{Digest, Sha256};
use starbridge_flow::hex;
use starbridge_node::cluster::Cluster;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// The name in all certificates. Only their hashes say whose they are.
pub(super) const NAME: &str = "starbridge";

/// In TLS 1.3 a client learns only after its first request that its certificate is refused, and can't tell whether that request was
/// carried out.
const VERSIONS: &[&SupportedProtocolVersion] = &[&TLS12];

/// The certificate of this process, made when it began, and its key.
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
}

/// Which certificates are good.
#[derive(Clone, Debug)]
enum Good {
    /// Those of the nodes that this one sees.
    Nodes(Arc<Cluster>),
    /// The one with this hash.
    One(String),
}

#[derive(Debug)]
struct Pins {
    good: Good,
    provider: Arc<CryptoProvider>,
}

fn hash(certificate: &CertificateDer<'_>) -> String {
    hex::encode(&Sha256::digest(certificate.as_ref()))
}

/// The hash of the certificate that the other end of a link has shown.
pub(super) fn shown(stream: &TlsStream<TcpStream>) -> Option<String> {
    let (_, link) = stream.get_ref();
    link.peer_certificates()?.first().map(hash)
}

impl Identity {
    /// A new one.
    ///
    /// # Errors
    ///
    /// Why no certificate can be made.
    pub fn new() -> Result<Self, String> {
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()]);
        let made = made.map_err(|error| format!("no certificate can be made: {error}"))?;
        Ok(Self {
            certificate: made.cert.der().clone(),
            key: PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()),
        })
    }

    /// The SHA-256 of the certificate, in hexadecimal digits.
    pub fn hash(&self) -> String {
        hash(&self.certificate)
    }

    fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(self.key.clone_key())
    }

    pub(super) fn server(&self, cluster: Arc<Cluster>) -> Result<ServerConfig, Error> {
        let pins = Arc::new(Pins::new(Good::Nodes(cluster)));
        ServerConfig::builder_with_provider(pins.provider.clone())
            .with_protocol_versions(VERSIONS)?
            .with_client_cert_verifier(pins)
            .with_single_cert(vec![self.certificate.clone()], self.key())
    }

    pub(super) fn client(&self, peer: &str) -> Result<ClientConfig, Error> {
        let pins = Arc::new(Pins::new(Good::One(peer.to_owned())));
        let mut config = ClientConfig::builder_with_provider(pins.provider.clone())
            .with_protocol_versions(VERSIONS)?
            .dangerous()
            .with_custom_certificate_verifier(pins)
            .with_client_auth_cert(vec![self.certificate.clone()], self.key())?;
        // A resumed session is complete for the client before it is for the server: if there are too many links, this one would be
        // closed together with a request.
        config.resumption = Resumption::disabled();
        Ok(config)
    }
}

impl Pins {
    fn new(good: Good) -> Self {
        let provider = Arc::new(ring::default_provider());
        Self { good, provider }
    }

    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        let hash = hash(certificate);
        let good = match &self.good {
            Good::Nodes(cluster) => cluster.knows(&hash),
            Good::One(one) => *one == hash,
        };
        match good {
            true => Ok(()),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn tls12(&self, message: &[u8], by: &CertificateDer<'_>, signed: &DigitallySignedStruct) -> Signed {
        verify_tls12_signature(message, by, signed, &self.provider.signature_verification_algorithms)
    }

    fn tls13(&self, message: &[u8], by: &CertificateDer<'_>, signed: &DigitallySignedStruct) -> Signed {
        verify_tls13_signature(message, by, signed, &self.provider.signature_verification_algorithms)
    }

    fn schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

type Signed = Result<HandshakeSignatureValid, Error>;

impl ServerCertVerifier for Pins {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(certificate).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        by: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Signed {
        self.tls12(message, by, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        by: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Signed {
        self.tls13(message, by, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }
}

impl ClientCertVerifier for Pins {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(certificate).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        by: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Signed {
        self.tls12(message, by, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        by: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Signed {
        self.tls13(message, by, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }
}

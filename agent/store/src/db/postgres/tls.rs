//! TLS connections to PostgreSQL, with rustls.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as RustlsStream;

use super::url::{Protection, TlsSettings};
use crate::error::Cause;

/// The server name in the TLS handshake if the server's address contains no host name.
const NO_NAME: &str = "localhost";

/// A factory for TLS connections.
#[derive(Clone)]
pub(super) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// Creates a factory for TLS connections. Reads the trusted certificates if the server's
    /// certificate must be verified.
    pub(super) fn new(settings: &TlsSettings) -> Result<Tls, Cause> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let config = match settings.protection {
            Protection::VerifyFull => builder.with_root_certificates(roots(settings)?),
            _ => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider))),
        };
        Ok(Tls(Arc::new(config.with_no_client_auth())))
    }
}

fn roots(settings: &TlsSettings) -> Result<RootCertStore, Cause> {
    let mut roots = RootCertStore::empty();
    let Some(path) = &settings.roots else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return if roots.is_empty() {
            Err("the system has no trusted certificates\nhint: name a file of them with \
                         `sslrootcert` in the store's URL"
                .into())
        } else {
            Ok(roots)
        };
    };
    let failed = |why: String| {
        format!("failed to read the certificates `{}` (`sslrootcert`): {why}", path.display())
    };
    let certificates =
        CertificateDer::pem_file_iter(path).map_err(|why| failed(why.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|why| failed(why.to_string()))?;
        roots.add(certificate).map_err(|why| failed(why.to_string()))?;
    }
    if roots.is_empty() { Err(failed("the file has none".to_owned()).into()) } else { Ok(roots) }
}

impl<S> MakeTlsConnect<S> for Tls
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type TlsConnect = Connect;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Connect, Self::Error> {
        let name = if domain.is_empty() { NO_NAME } else { domain };
        let name = ServerName::try_from(name)?.to_owned();
        Ok(Connect { connector: TlsConnector::from(Arc::clone(&self.0)), name })
    }
}

/// The connector and the server name for a TLS handshake.
pub(super) struct Connect {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl<S> TlsConnect<S> for Connect
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        let handshake = self.connector.connect(self.name, stream);
        Box::pin(async { Ok(Encrypted(Box::new(handshake.await?))) })
    }
}

/// An encrypted connection.
pub(super) struct Encrypted<S>(Box<RustlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// A verifier that accepts any certificate, for the modes that only require encryption: `prefer`
/// and `require`.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

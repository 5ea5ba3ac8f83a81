//! A certificate authority for tests.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;

pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// The authority's certificate, for use as `git.ca_file`.
    pub(crate) pem: String,
}

/// The validity period of a currently valid certificate: its start year and end year.
pub(crate) const NOW: (i32, i32) = (2020, 2090);
/// The validity period of an expired certificate: its start year and end year.
pub(crate) const PAST: (i32, i32) = (2020, 2022);
/// The validity period of a certificate that is not valid yet: its start year and end year.
pub(crate) const FUTURE: (i32, i32) = (2080, 2090);

impl Authority {
    pub(crate) fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    /// Returns a TLS acceptor with a certificate for `host` that is valid between the given years.
    pub(crate) fn acceptor(&self, host: &str, (from, to): (i32, i32)) -> TlsAcceptor {
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        (params.not_before, params.not_after) =
            (date_time_ymd(from, 1, 1), date_time_ymd(to, 1, 1));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                key.serialize_der().try_into().unwrap(),
            )
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

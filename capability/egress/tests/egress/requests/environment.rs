//! Tests that endpoints use the proxies and certificates of the environment, and programs do not.

use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use wattle_egress::{Egress, EgressErrorKind as Kind, Environment, Request};

use super::site::{Open, Script, allowing, ok, serve};

fn with(egress: Open, variables: &[(&str, &str)]) -> Open {
    let get =
        |name: &str| Some(variables.iter().find(|(own, _)| *own == name)?.1.to_owned().into());
    Open(egress.0.with_environment(Environment::read(get)))
}

async fn ask(egress: &Egress, url: &str) -> Result<String, wattle_egress::EgressError> {
    let endpoint = egress.endpoint(&url.parse().unwrap())?;
    let response = endpoint.send(Request::get(url)).await?;
    Ok(String::from_utf8_lossy(&response.body).into_owned())
}

#[tokio::test]
async fn a_proxy_of_the_environment_leads_to_endpoints_only() {
    let (proxy, site) =
        (serve(&[ok("by proxy")]).await, serve(&[ok("direct"), ok("direct")]).await);
    let script = || Script::new(&[("model.example", &[&["127.0.0.1"]])]);
    let url = format!("http://model.example:{}/v1", site.port());
    let address = proxy.url("").replace("http://", "http://me:pass@");
    let variables = [("HTTP_PROXY", address.as_str())];
    let policy = || allowing(&[format!("model.example:{}", site.port())]);
    let egress = with(Open::with_resolver(policy(), script()), &variables);
    assert_eq!(ask(&egress.0, &url).await.unwrap(), "by proxy");
    let asked = &proxy.requests()[0];
    assert!(asked.starts_with(&format!("GET {url} HTTP/1.1\r\n")), "{asked}");
    assert!(asked.contains("\r\nproxy-authorization: Basic bWU6cGFzcw==\r\n"), "{asked}");
    let response = egress.send(Request::get(&url)).await.unwrap();
    assert_eq!(&response.body[..], b"direct", "a program's request uses no proxy");

    let exempt = [variables[0], ("no_proxy", ".example")];
    let egress = with(Open::with_resolver(policy(), script()), &exempt);
    assert_eq!(ask(&egress.0, &url).await.unwrap(), "direct");
}

#[tokio::test]
async fn an_https_endpoint_is_reached_through_a_tunnel() {
    let proxy = serve(&["HTTP/1.1 502 No\r\ncontent-length: 0\r\n\r\n".to_owned()]).await;
    let address = proxy.url("");
    let egress = with(Open::new(allowing(&[])), &[("https_proxy", &address)]);
    let why = ask(&egress.0, "https://model.example/v1").await.unwrap_err();
    assert_eq!(why.kind(), Kind::Connect, "{why}");
    let asked = &proxy.requests()[0];
    assert!(asked.starts_with("CONNECT model.example:443 HTTP/1.1\r\n"), "{asked}");
}

#[tokio::test]
async fn an_invalid_proxy_is_an_error_of_endpoints_only() {
    let site = serve(&[ok("direct")]).await;
    let egress = with(Open::new(allowing(&[site.rule()])), &[("ALL_PROXY", "ftp://proxy")]);
    let why = ask(&egress.0, "https://model.example/v1").await.unwrap_err().to_string();
    assert!(why.contains("`ALL_PROXY`"), "{why}");
    let response = egress.send(Request::get(site.url("/"))).await.unwrap();
    assert_eq!(&response.body[..], b"direct");
}

#[tokio::test]
async fn the_certificates_of_the_environment_are_trusted_for_endpoints_only() {
    let certified = rcgen::generate_simple_self_signed(["secure.example".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            stream.write_all(ok("secure").as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("own.pem");
    std::fs::write(&file, certified.cert.pem()).unwrap();
    let url = format!("https://secure.example:{port}/");
    for (name, value) in [("SSL_CERT_FILE", file.as_path()), ("SSL_CERT_DIR", folder.path())] {
        let script = Script::new(&[("secure.example", &[&["127.0.0.1"]])]);
        let open = Open::with_resolver(allowing(&["secure.example".to_owned()]), script);
        let egress = with(open, &[(name, value.to_str().unwrap())]);
        assert_eq!(ask(&egress.0, &url).await.unwrap(), "secure", "{name}");
        let why = egress.send(Request::get(&url)).await.unwrap_err();
        assert_eq!(why.kind(), Kind::Connect, "{name}: {why}");
    }
}

//! Tests the names, addresses and ports that requests may reach, for programs and for endpoints.

use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use wattle_egress::{EgressErrorKind as Kind, Limits, Policy, Request};

use super::site::{Open, Script, allowing, ok, serve, serve_at};

#[tokio::test]
async fn every_class_of_address_behind_a_name_is_refused_before_connecting() {
    for (address, class) in [
        ("127.0.0.1", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("10.0.0.1", "private"),
        ("192.168.0.1", "private"),
        ("172.20.0.1", "private"),
        ("64:ff9b::a00:1", "private"),
        ("169.254.0.1", "link-local"),
        ("fe80::1", "link-local"),
        ("100.64.0.1", "carrier-grade NAT"),
        ("fc00::1", "unique local"),
        ("224.0.0.1", "multicast"),
        ("ff02::1", "multicast"),
        ("255.255.255.255", "broadcast"),
        ("0.0.0.0", "unspecified"),
        ("::", "unspecified"),
        ("198.18.0.1", "benchmark"),
        ("192.0.2.1", "documentation"),
        ("2001:db8::1", "documentation"),
        ("240.0.0.1", "reserved"),
        ("169.254.169.254", "cloud metadata"),
        ("fd00:ec2::254", "cloud metadata"),
        ("2002:7f00:1::", "tunnel"),
        ("2001:0:7f00:1::", "tunnel"),
        ("::7f00:1", "tunnel"),
    ] {
        let script = Script::new(&[("name.example", &[&["1.1.1.1", address]])]);
        let egress = Open::with_resolver(Policy::default(), script.clone());
        let why = egress.send(Request::get("http://name.example/")).await.unwrap_err();
        assert!(why.is_refusal(), "{address}: {why}");
        let text = why.to_string();
        let article = if class == "unspecified" { "an" } else { "a" };
        assert!(
            text.starts_with(&format!(
                "refused: name.example resolves to {address}, {article} {class} address; "
            )),
            "{text}"
        );
        let permittable = !matches!(class, "cloud metadata" | "multicast" | "broadcast");
        assert_eq!(
            text.ends_with("; `--allow-host name.example` would permit it"),
            permittable,
            "{text}"
        );
        assert_eq!(script.asked(), 1);
    }
}

#[tokio::test]
async fn an_allowed_name_still_does_not_lead_to_metadata() {
    let script = Script::new(&[("name.example", &[&["169.254.169.254"]])]);
    let egress = Open::with_resolver(allowing(&["name.example".to_owned()]), script);
    let why = egress.send(Request::get("http://name.example/")).await.unwrap_err();
    assert!(why.is_refusal() && why.to_string().contains("no setting permits"), "{why}");
}

#[tokio::test]
async fn a_rebinding_name_is_looked_up_once_and_connected_where_it_was_checked() {
    let first = serve(&[ok("first")]).await;
    let port = first.port();
    let second = serve_at("127.0.0.2", port, vec![ok("second").into_bytes()]).await;
    let script = Script::new(&[("twice.example", &[&["127.0.0.1"], &["127.0.0.2"]])]);
    let egress = Open::with_resolver(allowing(&[format!("twice.example:{port}")]), script.clone());
    let response =
        egress.send(Request::get(format!("http://twice.example:{port}/"))).await.unwrap();
    assert_eq!(&response.body[..], b"first");
    assert_eq!((script.asked(), second.requests().len()), (1, 0));
    assert!(
        first.requests()[0].contains(&format!("\r\nhost: twice.example:{port}\r\n")),
        "{:?}",
        first.requests()
    );
}

#[tokio::test]
async fn a_name_that_is_public_at_first_never_reaches_loopback() {
    let server = serve(&[ok("inside")]).await;
    let port = server.port();
    // An unassigned public address: the connection fails or times out.
    let script = Script::new(&[("twice.example", &[&["2000::1"], &["127.0.0.1"]])]);
    let limits = Limits { time: Duration::from_millis(300), ..Limits::default() };
    let egress = Open::with_resolver(Policy { limits, ..Policy::default() }, script.clone());
    let url = format!("http://twice.example:{port}/");
    let why = egress.send(Request::get(&url)).await.unwrap_err();
    assert!(why.is_transient(), "{why}");
    assert_eq!(script.asked(), 1);
    let why = egress.send(Request::get(&url)).await.unwrap_err();
    assert!(why.is_refusal(), "{why}");
    assert!(server.requests().is_empty());
}

/// Sends requests to the same name on an allowed port and on another one. The second request must
/// not reuse the connection of the first.
#[tokio::test]
async fn a_rule_for_one_port_opens_no_other() {
    let (open, shut) = (serve(&[ok("open"), ok("open")]).await, serve(&[ok("shut")]).await);
    let script = Script::new(&[("host.example", &[&["127.0.0.1"]])]);
    let egress = Open::with_resolver(allowing(&[format!("host.example:{}", open.port())]), script);
    let ask = |port: u16| egress.send(Request::get(format!("http://host.example:{port}/")));
    let (allowed, refused) = tokio::join!(ask(open.port()), ask(shut.port()));
    assert_eq!(&allowed.unwrap().body[..], b"open");
    assert!(refused.unwrap_err().is_refusal());
    assert!(shut.requests().is_empty());
}

#[tokio::test]
async fn names_without_an_address_fail_to_resolve() {
    let script = Script::new(&[("empty.example", &[&[]])]);
    let egress = Open::with_resolver(Policy::default(), script);
    for (name, why) in
        [("empty.example", "the name has no address"), ("missing.example", "no such name")]
    {
        let error = egress.send(Request::get(format!("http://{name}/"))).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Resolve);
        assert_eq!(error.to_string(), format!("failed to resolve {name}: {why}"));
    }
}

#[tokio::test]
async fn the_server_name_goes_out_in_the_tls_handshake() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = Script::new(&[("secure.example", &[&["127.0.0.1"]])]);
    let egress = Open::with_resolver(allowing(&["secure.example".to_owned()]), script);
    let hello = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = vec![0; 4096];
        let n = stream.read(&mut bytes).await.unwrap();
        bytes.truncate(n);
        bytes
    });
    let why =
        egress.send(Request::get(format!("https://secure.example:{port}/"))).await.unwrap_err();
    assert_eq!(why.kind(), Kind::Connect, "{why}");
    let hello = hello.await.unwrap();
    assert!(
        hello.windows(14).any(|window| window == b"secure.example"),
        "no server name in the client's greeting"
    );
}

#[tokio::test]
async fn nobody_listening_is_a_failed_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let why = Open::new(allowing(&[address.to_string()]))
        .send(Request::get(format!("http://{address}/k?secret=1")))
        .await;
    let why = why.unwrap_err();
    assert_eq!(why.kind(), Kind::Connect);
    assert!(!why.to_string().contains("secret"), "an error repeats no path or query: {why}");
}

#[tokio::test]
async fn an_endpoint_is_open_to_its_own_client_only() {
    let server = serve(&[ok("model")]).await;
    let egress = Open::new(Policy::default());
    let endpoint = egress.0.endpoint(&server.url("/v1").parse().unwrap()).unwrap();
    assert!(egress.send(Request::get(server.url("/v1"))).await.unwrap_err().is_refusal());
    for other in [
        "http://127.0.0.1:1/",
        &server.url("/v1").replace("http:", "https:"),
        "http://example.com/",
    ] {
        let why = endpoint.send(Request::get(other)).await.unwrap_err();
        assert!(
            why.is_refusal() && why.to_string().contains("outside the configured endpoint"),
            "{why}"
        );
    }
    assert_eq!(
        &endpoint.send(Request::get(server.url("/v1/models"))).await.unwrap().body[..],
        b"model"
    );
    assert!(
        egress.send(Request::get(server.url("/v1"))).await.unwrap_err().is_refusal(),
        "its connections are not shared"
    );
}

//! Tests that secrets reach only their hosts and are never returned to a program.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wattle_capability::egress::Egress;
use wattle_capability::http::Http;
use wattle_capability::secrets::{Secret, SecretList, Vault};
use wattle_rt::Grants;

use super::site::{Server, allowing, moved, ok, serve, serve_at};
use crate::world::World;

const VALUE: &str = "tok/3n+value=42";

/// Returns grants that allow requests to the servers, with a secret for 127.0.0.1.
fn grants(world: &World, servers: &[&Server]) -> Arc<Grants> {
    let egress =
        Egress::new(allowing(&servers.iter().map(|server| server.rule()).collect::<Vec<_>>()));
    let secret = Secret::new("api", VALUE, vec!["127.0.0.1".parse().unwrap()]).unwrap();
    let vault = Vault::new(Arc::new(SecretList::new([("api".to_owned(), Ok(secret))])));
    Arc::new((*world.grants()).clone().with(Http::new(Arc::new(egress))).with(vault))
}

async fn run(
    world: &World,
    grants: &Arc<Grants>,
    text: &str,
    args: &[&str],
) -> Result<String, String> {
    let outcome = world.run_granted(text, args, grants).await.unwrap();
    match outcome.failure {
        None => Ok(outcome.texts().concat()),
        Some(failure) => Err(failure.failure.to_string()),
    }
}

const ASK: &str = "(ret (http.request? \"POST\" (arg 0) (arg 1) (arg 2)))";
const HEADER: &str = r#"{"authorization":"Bearer ${secret:api}"}"#;

#[tokio::test]
async fn a_secret_reaches_its_host_and_is_removed_from_the_answer() {
    let echo = format!(
        "you are {VALUE} ({}), {}",
        STANDARD.encode(format!("me:{VALUE}")),
        serde_json::json!({ "k": VALUE })
    );
    let server = serve(&[ok(&echo), ok(&echo), ok(&echo)]).await;
    let world = World::new();
    let grants = grants(&world, &[&server]);
    let output =
        run(&world, &grants, ASK, &[&server.url("/"), HEADER, "key=${secret:api}"]).await.unwrap();
    let sent = &server.requests()[0];
    assert!(
        sent.contains(&format!("authorization: Bearer {VALUE}\r\n"))
            && sent.ends_with(&format!("key={VALUE}")),
        "{sent}"
    );
    assert!(!output.contains("tok/3n") && output.contains("you are ${secret:api} ("), "{output}");
    // The secret is also replaced in the response to a request that contains no secret.
    let later =
        run(&world, &grants, "(ret (http.get? (arg 0)))", &[&server.url("/")]).await.unwrap();
    assert!(later.starts_with("you are ${secret:api} (") && !later.contains("tok/3n"), "{later}");
    let many = "(local $a i32) (local.set $a (str.split? (arg 0) \" \")) (ret (str.join? \
                (http.get_all? (local.get $a)) \"\"))";
    let many = run(&world, &grants, many, &[&server.url("/")]).await.unwrap();
    assert!(!many.contains("tok/3n") && many.contains("${secret:api}"), "{many}");
}

#[tokio::test]
async fn a_failed_answer_is_cleaned_too() {
    let body = format!("no such token: {VALUE}");
    let length = body.len();
    let server = serve(&[format!(
        "HTTP/1.1 403 No\r\ncontent-length: {length}\r\nx-token: {VALUE}\r\n\r\n{body}"
    )])
    .await;
    let world = World::new();
    let grants = grants(&world, &[&server]);
    let post = "(ret (http.post? (arg 0) (arg 1) \"text/plain\"))";
    let why = run(&world, &grants, post, &[&server.url("/"), "${secret:api}"]).await.unwrap_err();
    assert!(why.ends_with("answered with status 403: no such token: ${secret:api}"), "{why}");
}

#[tokio::test]
async fn a_redirect_to_another_origin_has_no_secret() {
    let world = World::new();
    // A header with a secret is dropped.
    let other = serve(&[ok("there")]).await;
    let server = serve(&[moved(307, &other.url("/x"))]).await;
    let grants_of = |servers: &[&Server]| grants(&world, servers);
    let output =
        run(&world, &grants_of(&[&server, &other]), ASK, &[&server.url("/"), HEADER, "plain"])
            .await
            .unwrap();
    assert!(output.contains("there"), "{output}");
    assert!(server.requests()[0].contains(VALUE));
    assert!(
        !other.requests()[0].contains("tok/3n") && !other.requests()[0].contains("authorization"),
        "{:?}",
        other.requests()
    );
    // A body with a secret is not forwarded.
    for status in [301, 302, 303, 307, 308] {
        let other = serve(&[ok("there")]).await;
        let server = serve(&[moved(status, &other.url("/x"))]).await;
        let why = run(
            &world,
            &grants_of(&[&server, &other]),
            ASK,
            &[&server.url("/"), "", "${secret:api}"],
        )
        .await
        .unwrap_err();
        assert!(
            why.contains(
                "the request's body carries a secret, which stays with the host that it was for"
            ),
            "{status}: {why}"
        );
        assert!(other.requests().is_empty(), "{status}");
    }
    // A redirect within the origin keeps the secret.
    let server = serve(&[moved(307, "/next"), ok("done")]).await;
    run(&world, &grants_of(&[&server]), ASK, &[&server.url("/"), HEADER, "${secret:api}"])
        .await
        .unwrap();
    let next = &server.requests()[1];
    assert!(next.contains(&format!("Bearer {VALUE}")) && next.ends_with(VALUE), "{next}");
}

#[tokio::test]
async fn a_secret_is_not_sent_to_other_hosts() {
    let world = World::new();
    let server = serve(&[ok("x")]).await;
    let grants = grants(&world, &[&server]);
    let local = format!("http://localhost:{}/", server.port());
    for (url, headers, body, words) in [
        (local.as_str(), HEADER, "", "the secret `api` is not for localhost"),
        (&server.url("/?k=${secret:api}"), "", "", "a URL carries no secret"),
        (&server.url("/"), "", "${secret:other}", "there is no secret `other`"),
    ] {
        let why = run(&world, &grants, ASK, &[url, headers, body]).await.unwrap_err();
        assert!(why.starts_with("EACCESS") && why.contains(words), "{url}: {why}");
    }
    assert!(server.requests().is_empty());
}

/// Returns a response with the given bytes as its body.
fn bytes(head: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\n{head}content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Encodes bytes in gzip format, as a single stored block without compression.
fn gzip(body: &[u8]) -> Vec<u8> {
    let crc = !body.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ (0xedb8_8320 * (crc & 1)))
    });
    let length = u16::try_from(body.len()).unwrap();
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    let block = [&length.to_le_bytes()[..], &(!length).to_le_bytes(), body].concat();
    [&head[..], &block, &crc.to_le_bytes(), &u32::from(length).to_le_bytes()].concat()
}

const GET: &str = "(ret (http.get? (arg 0)))";
const FETCH: &str = "(ret (web.fetch? (arg 0) 0))";

#[tokio::test]
async fn an_answer_is_cleaned_of_secrets_that_the_run_did_not_send() {
    let world = World::new();
    let entities: String = VALUE.bytes().map(|byte| format!("&#{byte}")).collect();
    let mixed: String = VALUE
        .bytes()
        .zip(0..)
        .map(|(b, at)| if at % 2 == 0 { format!("%{b:02x}") } else { format!("\\u{b:04X}") })
        .collect();
    let lines: String =
        STANDARD.encode(format!("user:{VALUE}")).chars().flat_map(|c| [c, '\n']).collect();
    let wide: Vec<u8> =
        format!("<p>it is {VALUE} !</p>").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let tags = format!(
        "<html><body><p>it is {}<b></b>{} indeed, and there is more of it</p></body></html>",
        &VALUE[..5],
        &VALUE[5..]
    );
    let chunked = format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: \
         close\r\n\r\n5\r\n{}\r\na\r\n{}\r\n0\r\n\r\n",
        &VALUE[..5],
        &VALUE[5..]
    );
    for (program, answer) in [
        (GET, bytes("", VALUE.as_bytes())),
        (GET, bytes("", entities.as_bytes())),
        (GET, bytes("", mixed.as_bytes())),
        (GET, bytes("", lines.as_bytes())),
        (GET, bytes("content-encoding: gzip\r\n", &gzip(format!("packed: {VALUE}").as_bytes()))),
        (GET, chunked.into_bytes()),
        (FETCH, bytes("content-type: text/plain\r\n", mixed.as_bytes())),
        (
            FETCH,
            bytes("content-type: text/html\r\n", format!("<p>it is {entities};</p>").as_bytes()),
        ),
        (FETCH, bytes("content-type: text/html\r\n", tags.as_bytes())),
        (FETCH, bytes("content-type: text/html; charset=utf-16le\r\n", &wide)),
        (
            ASK,
            bytes(
                &format!("x-echo: {VALUE}\r\nset-cookie: a={}\r\n", mixed.to_lowercase()),
                b"nothing",
            ),
        ),
    ] {
        let shown = String::from_utf8_lossy(&answer).into_owned();
        let server = serve_at("127.0.0.1", 0, vec![answer]).await;
        let args: &[&str] =
            if program == ASK { &[&server.url("/"), "", ""] } else { &[&server.url("/")] };
        let output = run(&world, &grants(&world, &[&server]), program, args).await.unwrap();
        // In UTF-16, the bytes of the reference are decoded as other characters.
        let marked = output.contains("${secret:api}") || shown.contains("utf-16");
        assert!(marked && !output.contains("tok/3n"), "{shown}\n{output}");
    }
    // In a response from another host, a string that equals the secret is not replaced.
    let server = serve(&[ok(VALUE)]).await;
    let url = server.url("/").replace("127.0.0.1", "localhost");
    let grants = grants_for(&world, &format!("localhost:{}", server.port()));
    assert_eq!(run(&world, &grants, GET, &[&url]).await.unwrap(), VALUE);
}

fn grants_for(world: &World, rule: &str) -> Arc<Grants> {
    let egress = Egress::new(allowing(&[rule.to_owned()]));
    let secret = Secret::new("api", VALUE, vec!["127.0.0.1".parse().unwrap()]).unwrap();
    let vault = Vault::new(Arc::new(SecretList::new([("api".to_owned(), Ok(secret))])));
    Arc::new((*world.grants()).clone().with(Http::new(Arc::new(egress))).with(vault))
}

#[tokio::test]
async fn a_request_that_contains_a_secret_is_refused_with_its_name() {
    let world = World::new();
    let server = serve(&[ok("x")]).await;
    let grants = grants(&world, &[&server]);
    let escaped: String = VALUE.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let encoded = STANDARD.encode(format!("x:{VALUE}"));
    let hex: String = VALUE.bytes().map(|byte| format!("{byte:02x}")).collect();
    let header = json_of("authorization", &format!("Bearer {VALUE}"));
    let basic = json_of("x-any", &encoded);
    let name = json_of(&format!("x-{hex}"), "1");
    let (head, tail) = hex.split_at(9);
    let halves = serde_json::json!({"x-a": head, "x-b": tail}).to_string();
    let lines: String = escaped.chars().flat_map(|c| [c, '\n']).collect();
    let wide: String = hex.chars().map(wide).collect();
    let search = "(ret (web.search? (arg 0)))";
    let method = "(ret (http.request? (arg 1) (arg 0) 0 \"\"))";
    let post = "(ret (http.post? (arg 0) (arg 1) \"text/plain\"))";
    for (program, args, part) in [
        (GET, vec![server.url(&format!("/?k={escaped}"))], "the URL"),
        (GET, vec![server.url(&format!("/{hex}"))], "the URL"),
        (FETCH, vec![server.url(&format!("/?{encoded}"))], "the URL"),
        (ASK, vec![server.url("/"), header, String::new()], "the header `authorization`"),
        (ASK, vec![server.url("/"), basic, String::new()], "the header `x-any`"),
        (ASK, vec![server.url("/"), String::new(), format!("a {VALUE} b")], "the body"),
        (post, vec![server.url("/"), VALUE.replace('/', "\\/")], "the body"),
        (ASK, vec![server.url("/"), name, String::new()], "the name of a header"),
        (ASK, vec![server.url("/"), halves, String::new()], "across its URL, headers and body"),
        (
            ASK,
            vec![server.url("/"), json_of("x-a", head), tail.to_owned()],
            "across its URL, headers and body",
        ),
        (
            ASK,
            vec![server.url(&format!("/?k={head}")), String::new(), tail.to_owned()],
            "across its URL, headers and body",
        ),
        (GET, vec![server.url(&format!("/?k={lines}"))], "the URL"),
        (GET, vec![format!("https://{wide}.example/")], "the URL"),
        (method, vec![server.url("/"), hex.clone()], "the method"),
        (search, vec![format!("who is {VALUE}")], "the query"),
        ("(ret (image.make? (arg 0) \"a.png\"))", vec![format!("paint {VALUE}")], "the prompt"),
        ("(ret (git.commit_push? (arg 0)))", vec![format!("add {VALUE}")], "the commit message"),
        ("(ret (ai.assist? (arg 0) \"x\" 0))", vec![format!("about {hex}")], "the text"),
        ("(ret (ai.assist? \"x\" (arg 0) 0))", vec![format!("spell {VALUE}")], "the instruction"),
        ("(ret (ai.embed? (arg 0)))", vec![encoded.clone()], "the text"),
        (
            "(ret (ai.classify? \"x\" (str.split? (arg 0) \",\")))",
            vec![format!("spam,{VALUE}")],
            "the list of labels",
        ),
        ("(ret (ai.extract? \"x\" (arg 0)))", vec![json_of("title", VALUE)], "the schema"),
    ] {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let why = run(&world, &grants, program, &args).await.unwrap_err();
        assert!(
            why.starts_with("EACCESS") && why.contains(part) && why.contains("the secret `api`"),
            "{why}"
        );
        assert!(!why.contains("tok/3n"), "{why}");
    }
    let many = "(ret (str.join? (http.get_all? (str.split? (arg 0) \" \")) \"\"))";
    let output =
        run(&world, &grants, many, &[&server.url(&format!("/?k={escaped}"))]).await.unwrap();
    assert!(output.contains("EACCESS") && output.contains("the secret `api`"), "{output}");
    assert!(server.requests().is_empty(), "{:?}", server.requests());
}

/// Returns the full-width form of a letter or digit, which is equivalent in a host name.
fn wide(c: char) -> char {
    char::from_u32(u32::from(c) + 0xfee0).unwrap()
}

fn json_of(name: &str, value: &str) -> String {
    serde_json::json!({ name: value }).to_string()
}

#[tokio::test]
async fn a_redirect_that_contains_a_secret_goes_to_its_hosts_only() {
    let world = World::new();
    let escaped: String = VALUE.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let other = serve(&[ok("there")]).await;
    let elsewhere = other.url(&format!("/?t={escaped}")).replace("127.0.0.1", "localhost");
    let server =
        serve(&[moved(302, &elsewhere), moved(302, &format!("/next?t={escaped}")), ok("here")])
            .await;
    let egress = Egress::new(allowing(&[server.rule(), format!("localhost:{}", other.port())]));
    let grants = Arc::new((*grants(&world, &[&server])).clone().with(Http::new(Arc::new(egress))));
    for program in [GET, FETCH] {
        let output = run(&world, &grants, program, &[&server.url("/")]).await;
        match program {
            GET => {
                let why = output.unwrap_err();
                assert!(
                    why.contains("`api`, which is not for that host") && !why.contains(&escaped),
                    "{why}"
                );
            }
            _ => assert!(output.unwrap().starts_with("here")),
        }
    }
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn posts_have_an_idempotency_key_unless_the_program_set_one() {
    let world = World::new();
    let server = serve(&[ok("a"), ok("b"), ok("c"), ok("d")]).await;
    let grants = grants(&world, &[&server]);
    let post = "(ret (http.post? (arg 0) \"x\" \"text/plain\"))";
    for _ in 0..2 {
        run(&world, &grants, post, &[&server.url("/")]).await.unwrap();
    }
    run(&world, &grants, ASK, &[&server.url("/"), &json_of("Idempotency-Key", "mine"), "x"])
        .await
        .unwrap();
    run(&world, &grants, GET, &[&server.url("/")]).await.unwrap();
    let keys: Vec<Option<String>> = server
        .requests()
        .iter()
        .map(|sent| {
            sent.lines().find_map(|line| line.strip_prefix("idempotency-key: ").map(str::to_owned))
        })
        .collect();
    let [Some(one), Some(two), Some(own), None] = keys.as_slice() else { panic!("{keys:?}") };
    assert!(one.len() == 32 && one != two && own == "mine", "{keys:?}");
}

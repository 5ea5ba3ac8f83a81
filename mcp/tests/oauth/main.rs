//! Tests of sign-ins, against an authorization server on this machine.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

mod world;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value as Json, json};
use tempfile::TempDir;
use tokio::sync::mpsc::unbounded_channel;
use wattle_agent::host::capability::egress::{Egress, Policy};
use wattle_agent::host::capability::secrets::Mask;
use wattle_agent::host::capability::tool::ToolBox;
use wattle_agent::host::ledger::Keys;
use wattle_mcp::{
    ServerError, ServerSettings, Servers, ServersParts, SignIn, SignInLink, SignedIn, Tokens,
};
use world::{Behaviour, World, browse, visit};

/// A process of the user: the servers of its settings, and the folder of their tokens.
struct Process {
    servers: Servers,
    mask: Mask,
}

impl Process {
    fn new(folder: &Path, settings: Json) -> Process {
        let mask = Mask::default();
        let keys = Keys::new(folder.join("keys"));
        let tokens = Tokens::in_folder(folder.join("mcp"), keys, "me", mask.clone());
        let settings: ServerSettings = serde_json::from_value(settings).unwrap();
        let servers = Servers::new(&ServersParts {
            settings: BTreeMap::from([("box".to_owned(), settings)]),
            pins: None,
            egress: &Egress::new(Policy::default()),
            tokens: Some(tokens),
            launcher: None,
            value: &|_, _| None,
        });
        Process { servers, mask }
    }

    fn of(folder: &TempDir, world: &World) -> Process {
        Process::new(folder.path(), json!({"url": world.mcp}))
    }

    /// Signs in with a browser that follows the link. Returns the result and the browser's page.
    async fn sign_in_with(&self, scopes: &[String]) -> (Result<SignedIn, ServerError>, String) {
        let (send, mut links) = unbounded_channel();
        let show = |link: &SignInLink| send.send(link.clone()).unwrap();
        let browser = async {
            match links.recv().await {
                Some(link) => browse(&link.url).await,
                None => String::new(),
            }
        };
        let server = self.servers.get("box").unwrap();
        let sign_in = SignIn { scopes, port: 0, show: &show };
        let signing = server.sign_in(&sign_in);
        tokio::pin!(signing, browser);
        tokio::select! {
            result = &mut signing => (result, String::new()),
            page = &mut browser => (signing.await, page),
        }
    }

    async fn sign_in(&self) -> Result<SignedIn, ServerError> {
        self.sign_in_with(&[]).await.0
    }

    /// Accepts the tools.
    async fn accept(&self) -> Vec<String> {
        let (_, errors) = self.servers.accept_new(None).await;
        errors.iter().map(ToString::to_string).collect()
    }

    async fn call(&self, tool: &str) -> Result<String, String> {
        let called = self.servers.call(format!("box.{tool}"), "{}".to_owned()).await;
        called.map_err(|failure| failure.reason)
    }
}

#[tokio::test]
async fn a_user_signs_in_and_calls_tools_until_they_sign_out() {
    let (world, folder) = (World::start(Behaviour::default()).await, TempDir::new().unwrap());
    let process = Process::of(&folder, &world);
    let errors = process.accept().await;
    assert!(errors[0].contains("`wattle mcp login box`"), "{errors:?}");

    let (signed_in, page) = process.sign_in_with(&[]).await;
    let scopes = vec!["tools".to_owned()];
    assert_eq!(signed_in.unwrap(), SignedIn { issuer: world.issuer.clone(), scopes });
    assert!(page.contains("return to the terminal"), "{page}");
    let client = world.seen.lock().clients[0].clone();
    assert_eq!(client["application_type"], "native");
    assert_eq!(client["token_endpoint_auth_method"], "none");

    assert_eq!(process.accept().await, [""; 0]);
    assert_eq!(process.call("open").await.unwrap(), "a hat");
    world.end_access();
    assert_eq!(process.call("open").await.unwrap(), "a hat", "after a renewal");
    assert_eq!(world.seen.lock().received.last().unwrap(), "Bearer access-token-2");

    let server = process.servers.get("box").unwrap();
    assert!(server.sign_out().await.unwrap());
    assert!(world.seen.lock().revoked.contains("refresh-token-2"));
    assert!(!folder.path().join("mcp/box.token").exists());
    assert!(process.call("open").await.unwrap_err().contains("`wattle mcp login box`"));
    assert!(!server.sign_out().await.unwrap());
}

#[tokio::test]
async fn tokens_are_encrypted_and_masked() {
    let (world, folder) = (World::start(Behaviour::default()).await, TempDir::new().unwrap());
    let process = Process::of(&folder, &world);
    process.sign_in().await.unwrap();
    let path = folder.path().join("mcp/box.token");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let bytes = std::fs::read(&path).unwrap();
    assert!(!bytes.windows(5).any(|part| part == b"token"));
    assert_eq!(
        process.mask.text("access-token-1 refresh-token-1"),
        "${secret:mcp-box-token} ${secret:mcp-box-refresh}"
    );
    // Another process masks what it reads.
    let other = Process::of(&folder, &world);
    assert_eq!(other.accept().await, [""; 0]);
    assert_eq!(other.mask.text("access-token-1"), "${secret:mcp-box-token}");
    // A file that was changed is not used, and a sign-in replaces it.
    std::fs::write(&path, [&bytes[..30], &[bytes[30] ^ 1], &bytes[31..]].concat()).unwrap();
    let third = Process::of(&folder, &world);
    let errors = third.accept().await;
    assert!(errors[0].contains("were changed"), "{errors:?}");
    third.sign_in().await.unwrap();
    assert_eq!(third.accept().await, [""; 0]);
}

#[tokio::test]
async fn the_metadata_are_found_at_each_of_their_places() {
    const RESOURCE: &str = "/.well-known/oauth-protected-resource";
    for (issuer_path, metadata_path, resource_path) in [
        ("", "/.well-known/openid-configuration", (RESOURCE, false)),
        ("", "/.well-known/oauth-authorization-server", (RESOURCE, true)),
        ("/t/1", "/.well-known/oauth-authorization-server/t/1", ("/anywhere", true)),
        (
            "/t/1",
            "/.well-known/openid-configuration/t/1",
            ("/.well-known/oauth-protected-resource/mcp", false),
        ),
        ("/t/1", "/t/1/.well-known/openid-configuration", (RESOURCE, true)),
    ] {
        let metadata_paths: &'static [&'static str] = Box::leak(Box::new([metadata_path]));
        let behaviour =
            Behaviour { issuer_path, metadata_paths, resource_path, ..Behaviour::default() };
        let (world, folder) = (World::start(behaviour).await, TempDir::new().unwrap());
        let scopes = Process::of(&folder, &world).sign_in().await.unwrap().scopes;
        let wanted: &[&str] = if resource_path.1 { &["tools"] } else { &["tools", "more"] };
        assert_eq!(scopes, wanted, "{metadata_path}");
    }
}

#[tokio::test]
async fn a_client_comes_from_the_settings_or_registers() {
    let document = "https://id.example/wattle.json";
    let reads = |world: &World| {
        world.behaviour.lock().metadata = Box::new(|document| {
            document["client_id_metadata_document_supported"] = json!(true);
            document.as_object_mut().unwrap().remove("registration_endpoint");
        });
    };
    for (client_id, reads_documents, used) in [
        (Some("mine"), false, "mine"),
        (Some("mine"), true, "mine"),
        (Some(document), true, document),
        (Some(document), false, "client-0"),
        (None, false, "client-0"),
        (None, true, "registers no clients"),
    ] {
        let (world, folder) = (World::start(Behaviour::default()).await, TempDir::new().unwrap());
        if reads_documents {
            reads(&world);
        }
        let settings = json!({"url": world.mcp, "client_id": client_id});
        match Process::new(folder.path(), settings).sign_in().await {
            Ok(_) => assert_eq!(world.seen.lock().visit["client_id"], used),
            Err(why) => assert!(why.to_string().contains(used), "{used}: {why}"),
        }
    }
}

#[tokio::test]
async fn tokens_are_renewed_before_they_end() {
    let behaviour = Behaviour { lifetime: Some(10), ..Behaviour::default() };
    let (world, folder) = (World::start(behaviour).await, TempDir::new().unwrap());
    let process = Process::of(&folder, &world);
    process.sign_in().await.unwrap();
    assert_eq!(process.accept().await, [""; 0]);
    let before = world.seen.lock().renewals;
    assert!(before > 0);
    assert_eq!(process.call("open").await.unwrap(), "a hat");
    assert_eq!(world.seen.lock().renewals, before + 1);
    // A server that is out of order for a while does not end the sign-in.
    world.behaviour.lock().renewal = Some(503);
    assert_eq!(process.call("open").await.unwrap(), "a hat");
    world.behaviour.lock().renewal = None;
    world.end_access();
    assert_eq!(process.call("open").await.unwrap(), "a hat");
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_renew_at_once_share_the_rotation() {
    let (world, folder) = (World::start(Behaviour::default()).await, TempDir::new().unwrap());
    Process::of(&folder, &world).sign_in().await.unwrap();
    let processes: Vec<Process> = (0..4).map(|_| Process::of(&folder, &world)).collect();
    for process in &processes {
        assert_eq!(process.accept().await, [""; 0]);
    }
    for round in 1..=3 {
        world.end_access();
        let calls = processes.iter().map(|process| process.call("open"));
        for called in futures_util::future::join_all(calls).await {
            assert_eq!(called.unwrap(), "a hat");
        }
        assert_eq!(world.seen.lock().renewals, round);
    }
}

#[tokio::test]
async fn a_sign_in_that_was_ended_names_the_command() {
    let (world, folder) = (World::start(Behaviour::default()).await, TempDir::new().unwrap());
    let process = Process::of(&folder, &world);
    process.sign_in().await.unwrap();
    assert_eq!(process.accept().await, [""; 0]);
    world.end_access();
    world.seen.lock().refresh.clear();
    assert!(process.call("open").await.unwrap_err().contains("`wattle mcp login box`"));
    process.sign_in().await.unwrap();
    assert_eq!(process.call("open").await.unwrap(), "a hat");
}

#[tokio::test]
async fn a_missing_scope_is_named_and_can_be_asked_for() {
    let (world, folder) = (World::start(Behaviour::default()).await, TempDir::new().unwrap());
    let process = Process::of(&folder, &world);
    process.sign_in().await.unwrap();
    assert_eq!(process.accept().await, [""; 0]);
    let why = process.call("lock").await.unwrap_err();
    assert!(why.contains("`wattle mcp login box --scope 'box:admin'`"), "{why}");
    process.sign_in_with(&["box:admin".to_owned()]).await.0.unwrap();
    assert_eq!(process.call("lock").await.unwrap(), "a hat");
    // Scopes that were granted once are asked for again.
    assert_eq!(process.sign_in().await.unwrap().scopes, ["tools", "box:admin"]);
}

#[tokio::test]
async fn tokens_are_for_one_url() {
    let (world, folder) = (World::start(Behaviour::default()).await, TempDir::new().unwrap());
    Process::of(&folder, &world).sign_in().await.unwrap();
    let moved = world.mcp.replace("/mcp", "/moved");
    let other = Process::new(folder.path(), json!({"url": moved}));
    assert!(other.accept().await[0].contains("`wattle mcp login box`"));
    assert_eq!(world.seen.lock().received, [""; 0]);
    assert!(!folder.path().join("mcp/box.token").exists());
    // A fixed token replaces the sign-in.
    let headers = json!({"url": world.mcp, "headers": {"Authorization": "Bearer fixed"}});
    let fixed = Process::new(folder.path(), headers);
    fixed.accept().await;
    assert!(world.seen.lock().received.iter().all(|header| header == "Bearer fixed"));
    assert!(fixed.sign_in().await.unwrap_err().to_string().contains("fixed token"));
}

#[tokio::test]
async fn hostile_servers_get_no_visit_and_no_token() {
    type Hostile = (&'static str, fn(&mut Behaviour), &'static str);
    let cases: &[Hostile] = &[
        (
            "metadata of another issuer",
            |it| {
                it.metadata = Box::new(|it| it["issuer"] = json!("https://honest.example"));
            },
            "are those of \"https://honest.example\"",
        ),
        (
            "an issuer without encryption",
            |it| {
                it.resource = Box::new(|it| {
                    it["authorization_servers"] = json!(["http://as.example"]);
                });
            },
            "is not an `https` URL",
        ),
        (
            "no issuer",
            |it| {
                it.resource = Box::new(|it| it["authorization_servers"] = json!([]));
            },
            "names no authorization server",
        ),
        (
            "metadata of another resource",
            |it| {
                it.resource = Box::new(|it| it["resource"] = json!("https://bank.example/mcp"));
            },
            "for another server, \"https://bank.example/mcp\"",
        ),
        (
            "a metadata URL at another origin",
            |it| {
                it.resource_path = ("http://127.0.0.1:1/meta", true);
            },
            "is at another origin",
        ),
        ("no metadata", |it| it.resource_path = ("/x", false), "no protected resource metadata"),
        ("no metadata of the issuer", |it| it.metadata_paths = &[], "has no metadata"),
        (
            "giant metadata",
            |it| {
                it.metadata = Box::new(|it| it["x"] = json!("a".repeat(1 << 20)));
            },
            "limit of 262144 bytes",
        ),
        (
            "a page that is a script",
            |it| {
                it.metadata = Box::new(|it| {
                    it["authorization_endpoint"] = json!("javascript:alert(1)");
                });
            },
            "is not an `https` URL",
        ),
        (
            "a page with escapes",
            |it| {
                it.metadata = Box::new(|it| {
                    it["authorization_endpoint"] = json!("\u{1b}]8;;x\u{7}");
                });
            },
            "\\u{1b}]8;;x\\u{7}",
        ),
        (
            "tokens without encryption",
            |it| {
                it.metadata = Box::new(|it| it["token_endpoint"] = json!("http://as.example/t"));
            },
            "the token endpoint \"http://as.example/t\" is not",
        ),
        (
            "no PKCE",
            |it| {
                it.metadata = Box::new(|it| {
                    it["code_challenge_methods_supported"] = json!(["plain"]);
                });
            },
            "PKCE",
        ),
    ];
    for (what, change, words) in cases {
        let mut behaviour = Behaviour::default();
        change(&mut behaviour);
        let (world, folder) = (World::start(behaviour).await, TempDir::new().unwrap());
        let why = Process::of(&folder, &world).sign_in().await.unwrap_err().to_string();
        assert!(why.contains(words) && !why.contains('\u{1b}'), "{what}: {why}");
        assert!(world.seen.lock().visit.is_empty(), "{what}");
    }
}

#[tokio::test]
async fn a_page_at_another_host_is_named() {
    for (host, named) in [("127.0.0.1", None), ("localhost", Some("localhost"))] {
        let (world, folder) = (World::start(Behaviour::default()).await, TempDir::new().unwrap());
        let page = world.issuer.replace("127.0.0.1", host) + "/authorize";
        world.behaviour.lock().metadata =
            Box::new(move |document| document["authorization_endpoint"] = json!(page));
        let process = Process::of(&folder, &world);
        let (send, mut links) = unbounded_channel();
        let show = |link: &SignInLink| send.send(link.clone()).unwrap();
        let sign_in = SignIn { scopes: &[], port: 0, show: &show };
        let link = tokio::select! {
            _ = process.servers.get("box").unwrap().sign_in(&sign_in) => None,
            link = links.recv() => link,
        };
        assert_eq!(link.unwrap().other_host.as_deref(), named);
    }
}

#[tokio::test]
async fn a_redirect_that_is_not_the_right_one_gives_no_token() {
    type Redirect = (&'static str, fn(&mut BTreeMap<String, String>), &'static str);
    let cases: &[Redirect] = &[
        ("another state", |it| drop(it.insert("state".into(), "x".into())), "`state`"),
        (
            "another issuer",
            |it| {
                it.insert("iss".into(), "https://honest.example".into());
            },
            "another authorization server, \"https://honest.example\"",
        ),
        ("no issuer", |it| drop(it.remove("iss")), "does not name its authorization server"),
        (
            "a code of another sign-in",
            |it| {
                it.insert("code".into(), "code-99".into());
            },
            "\"invalid_grant\": \"it is invalid_grant\"",
        ),
        (
            "no consent",
            |it| {
                it.remove("code");
                it.insert("error".into(), "access_denied".into());
            },
            "\"access_denied\"",
        ),
    ];
    for (what, change, words) in cases {
        let behaviour = Behaviour { redirect: Box::new(*change), ..Behaviour::default() };
        let (world, folder) = (World::start(behaviour).await, TempDir::new().unwrap());
        let why = Process::of(&folder, &world).sign_in().await.unwrap_err().to_string();
        assert!(why.contains(words), "{what}: {why}");
        assert!(world.seen.lock().access.is_empty(), "{what}");
        assert!(!folder.path().join("mcp/box.token").exists(), "{what}");
    }
}

#[tokio::test]
async fn a_code_is_taken_once_and_other_requests_do_not_count() {
    let (world, folder) = (World::start(Behaviour::default()).await, TempDir::new().unwrap());
    let process = Process::of(&folder, &world);
    let (send, mut links) = unbounded_channel();
    let show = |link: &SignInLink| send.send(link.clone()).unwrap();
    let sign_in = SignIn { scopes: &[], port: 0, show: &show };
    let server = process.servers.get("box").unwrap();
    let browser = async {
        let link = links.recv().await.unwrap().url;
        let link = url::Url::parse(&link).unwrap();
        let fields: BTreeMap<_, _> = link.query_pairs().into_owned().collect();
        let callback = &fields["redirect_uri"];
        // Browsers open connections that they do not use, and ask for icons.
        let address = callback.strip_prefix("http://").unwrap().strip_suffix("/callback").unwrap();
        let _unused = tokio::net::TcpStream::connect(address).await.unwrap();
        let (head, _) = visit(&callback.replace("/callback", "/favicon.ico")).await;
        assert!(head.starts_with("HTTP/1.1 404"), "{head}");
        let page = browse(link.as_str()).await;
        assert!(page.contains("return to the terminal"), "{page}");
        address.to_owned()
    };
    let (signed_in, address) = tokio::join!(server.sign_in(&sign_in), browser);
    signed_in.unwrap();
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "the port is closed");
}

//! Tests tenants and scopes on every route.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value as Json, json};
use wattle_agent::host::Scope;
use wattle_agent::host::capability::secrets::{Secret, SecretList};
use wattle_agent::host::catalog::Folders;
use wattle_agent::host::journal::{Journal as _, RunRequest};
use wattle_agent::host::ledger::Keys;
use wattle_agent::model::Mask;
use wattle_agent::{Store, Tenant};
use wattle_server::{App, ServerSettings, TenantParts};
use wattle_tests::empty_store;

use crate::api::wat;
use crate::world::{TOKEN, World, api};

/// Starts a server with two tenants and creates a token of each scope for the second tenant.
pub(crate) async fn two_tenants(change: impl FnOnce(&mut ServerSettings)) -> World {
    two_tenants_of(|app| app, change).await
}

/// Starts the same server as [`two_tenants`]. `make` modifies the app, and `change` modifies the
/// settings.
pub(crate) async fn two_tenants_of(
    make: impl FnOnce(App) -> App,
    change: impl FnOnce(&mut ServerSettings),
) -> World {
    tenants_of(&["bob"], make, change).await
}

/// Starts a server whose own tenant is `alice`, with tokens `NAMEs-SCOPE` for each other tenant.
pub(crate) async fn tenants_of(
    names: &[&str],
    make: impl FnOnce(App) -> App,
    change: impl FnOnce(&mut ServerSettings),
) -> World {
    let file = empty_store();
    let alice = file.tenant(&Tenant::new("alice").unwrap());
    for name in names {
        let tenant = file.tenant(&Tenant::new(name).unwrap());
        for scope in Scope::ALL {
            let secret = format!("{name}s-{}", scope.name());
            assert!(tenant.add_token(scope.name(), scope, &secret).await.unwrap());
        }
    }
    let tenants = Arc::new(move |tenant: &Tenant| Ok(TenantParts::new(file.tenant(tenant))));
    let make = |app: App| make(app.with_tenants(tenants));
    World::of(TenantParts::new(alice), make, change).await
}

/// Returns the routes, each as a tuple of its request line, its scope, and a flag that is true if
/// the route has parameters. In the request line, the given values replace the parameters.
fn routes(values: &[(&str, &str)]) -> Vec<(String, Option<Scope>, bool)> {
    let document: Json = serde_json::from_str(wattle_server::document()).unwrap();
    let mut routes = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let filled =
                values.iter().fold(path.clone(), |path, (name, value)| path.replace(name, value));
            assert!(!filled.contains('{'), "{filled} has a parameter without a value");
            let scope = operation["x-scope"].as_str().and_then(Scope::from_name);
            let line = format!("{} {filled}", method.to_uppercase());
            routes.push((line, scope, path.contains('{')));
        }
    }
    routes
}

/// Returns a valid body for a request line.
fn body(line: &str) -> String {
    let body = match line.rsplit('/').next().unwrap() {
        "run" if line.contains("/catalog/") => json!({"args": []}),
        "run" => json!({"prompt": "bob's"}),
        "1.1" => json!({"approve": true}),
        "fork" if line.contains("/api/run/") => json!({"step": 0}),
        "check" | "exec" | "test" => json!({"body": "(out 1)"}),
        "tokens" => json!({"name": "new", "scope": "read"}),
        "memory" => json!({"text": "bob's"}),
        "integrations" => json!({"name": "new"}),
        "completions" => {
            json!({"model": "wattle", "messages": [{"role": "user", "content": "bob's"}]})
        }
        "responses" => json!({"model": "wattle", "input": "bob's"}),
        "chat" | "shop" => json!({"message": "bob's"}),
        _ => json!({}),
    };
    body.to_string()
}

#[tokio::test]
async fn no_route_reaches_another_tenants_data() {
    let mut world = two_tenants(|_| {}).await;
    // Creates data that belongs to alice, whose token is the server's own.
    let run = world.start(&json!({"prompt": "alices-secret", "session_id": "alices"})).await;
    world.question().await.respond("alices-secret answer");
    world.until(&run, "done").await;
    for (line, body) in [
        ("PUT /api/sessions/alices/files/alices.txt", "alices-secret"),
        ("PUT /api/vars/alices", "alices-secret"),
        ("POST /api/memory", r#"{"text":"alices-secret"}"#),
        ("POST /api/tokens", r#"{"name":"alices","scope":"read"}"#),
        ("POST /api/integrations", r#"{"name":"shop","system_prompt":"alices-secret"}"#),
    ] {
        assert!(world.api(line, body).await.head.status < 300, "{line}");
    }
    let all = async |world: &World| {
        let mut all = String::new();
        for line in [
            "GET /api/runs",
            "GET /api/sessions/alices",
            "GET /api/sessions/alices/files/alices.txt",
            "GET /api/vars/alices",
            "GET /api/memory",
            "GET /api/tokens",
            "GET /api/integrations",
        ] {
            all += &world.api(line, "").await.body;
        }
        all
    };
    let before = all(&world).await;
    let values = [
        ("{id}", run.as_str()),
        ("{run}", &run),
        ("{call}", "1.1"),
        ("{path}", "alices.txt"),
        ("{key}", "alices"),
        ("{name}", "shop"),
    ];
    let mut tried = 0;
    // Write requests come last, because bob can read what he has written.
    let mut all_routes = routes(&values);
    all_routes.sort_by_key(|(line, ..)| line.starts_with("PUT"));
    for (line, scope, has_parameter) in all_routes {
        // Sessions, responses, memory items and tokens are not identified by a run's id.
        let line =
            if line.contains("/api/sessions/") { line.replace(&run, "alices") } else { line };
        let line = if line.contains("/responses/") {
            line.replace(&run, &format!("resp_{run}"))
        } else {
            line
        };
        let line = if line.contains("/memory/") { line.replace(&run, "1") } else { line };
        let line = if line.contains("/tokens/") { line.replace("shop", "alices") } else { line };
        if scope.is_none() || !has_parameter {
            continue;
        }
        let is_write = line.starts_with("PUT");
        let answer = world.ask(api("bobs-admin", &line, &body(&line))).await;
        assert!(!answer.body.contains("alices-secret"), "{line}: {answer:?}");
        // Bob may write his own data under the same name.
        let shared = is_write || line.contains("/catalog/") || line.contains("/v1/models/");
        if !shared {
            assert_eq!(answer.head.status, 404, "{line}: {answer:?}");
        }
        tried += 1;
    }
    assert!(tried >= 25, "{tried}");
    for line in [
        "GET /api/runs",
        "GET /api/sessions",
        "GET /api/tokens",
        "GET /api/integrations",
        "GET /api/settings",
        "GET /api/memory",
        "GET /api/memory?words=secret",
    ] {
        let answer = world.ask(api("bobs-admin", line, "")).await;
        assert_eq!(answer.head.status, 200);
        assert!(!answer.body.contains("alices-secret"), "{line}: {answer:?}");
    }
    let taken = world.ask(api("bobs-admin", "POST /api/integrations", r#"{"name":"shop"}"#)).await;
    assert!(!taken.body.contains("alices-secret"));
    assert_eq!(all(&world).await, before, "nothing of alice's changed");
}

#[tokio::test]
async fn every_route_requires_its_scope() {
    let world = two_tenants(|_| {}).await;
    let values = [
        ("{id}", "x"),
        ("{run}", "x"),
        ("{call}", "1.1"),
        ("{path}", "x"),
        ("{key}", "x"),
        ("{name}", "x"),
    ];
    for (line, scope, _) in routes(&values) {
        let Some(scope) = scope else { continue };
        let none = world.ask(crate::world::bare(&line, &["Host: localhost"])).await;
        none.refused(401, "unauthorized");
        let wrong = world.ask(api("wrong", &line, "")).await;
        wrong.refused(401, "unauthorized");
        for weaker in Scope::ALL.into_iter().filter(|weaker| *weaker < scope) {
            let token = format!("bobs-{}", weaker.name());
            world.ask(api(&token, &line, "")).await.refused(403, "forbidden");
        }
    }
}

#[tokio::test]
async fn a_token_has_a_limit_of_active_runs() {
    let mut world = two_tenants(|settings| settings.limits.runs_per_token = 1).await;
    let start = async |world: &World, token: &str| {
        world.ask(api(token, "POST /api/run", r#"{"prompt":"m"}"#)).await
    };
    let first = start(&world, "bobs-run").await.json()["id"].as_str().unwrap().to_owned();
    let question = world.question().await;
    start(&world, "bobs-run").await.refused(429, "too_many_runs");
    let fork = format!("POST /api/run/{first}/fork");
    world.ask(api("bobs-run", &fork, r#"{"step":0}"#)).await.refused(429, "too_many_runs");
    // Other tokens have separate limits, and the server's own token has no limit.
    assert_eq!(start(&world, "bobs-admin").await.head.status, 202);
    for _ in 0..2 {
        assert_eq!(start(&world, crate::world::TOKEN).await.head.status, 202);
    }
    question.respond("done");
    for attempt in 0.. {
        if start(&world, "bobs-run").await.head.status == 202 {
            break;
        }
        assert!(attempt < 1_000, "the slot of an ended run is not free");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_revoked_token_opens_nothing() {
    let world = two_tenants(|_| {}).await;
    let created = world.api("POST /api/tokens", r#"{"name":"n","scope":"read"}"#).await.json();
    let token = created["token"].as_str().unwrap().to_owned();
    assert_eq!(world.ask(api(&token, "GET /api/runs", "")).await.head.status, 200);
    let listed = world.api("GET /api/tokens", "").await.body;
    assert!(!listed.contains(&token), "a secret is shown once");
    assert_eq!(world.api("DELETE /api/tokens/n", "").await.head.status, 204);
    world.ask(api(&token, "GET /api/runs", "")).await.refused(401, "unauthorized");
}

#[tokio::test]
async fn a_revoked_token_ends_its_streams_and_its_runs() {
    let mut world = two_tenants(|_| {}).await;
    let created = world.api("POST /api/tokens", r#"{"name":"n","scope":"run"}"#).await.json();
    let token = created["token"].as_str().unwrap().to_owned();
    let started = world.ask(api(&token, "POST /api/run", r#"{"prompt":"m"}"#)).await.json();
    let run = started["id"].as_str().unwrap().to_owned();
    let question = world.question().await;
    let mut clients = Vec::new();
    for line in ["GET /api/runs/stream".to_owned(), format!("GET /api/run/{run}/stream")] {
        let mut client = world.client().await;
        client.send(api(&token, &line, "")).await;
        assert_eq!(client.head().await.status, 200);
        clients.push(client);
    }
    assert_eq!(world.api("DELETE /api/tokens/n", "").await.head.status, 204);
    for client in &mut clients {
        while client.any_frame().await.is_some() {}
    }
    question.abandoned().await;
    let ended = world.until(&run, "cancelled").await;
    assert!(ended.to_string().contains("revoked"), "{ended}");
}

#[tokio::test]
async fn wrong_tokens_of_an_address_are_limited() {
    let world = two_tenants(|_| {}).await;
    let line = "GET /api/runs";
    assert_eq!(world.ask(api("bobs-read", line, "")).await.head.status, 200);
    for number in 0..30 {
        let token = format!("guess-{number}");
        world.ask(api(&token, line, "")).await.refused(401, "unauthorized");
    }
    let refused = world.ask(api("guess-30", line, "")).await;
    assert!(refused.head.get("retry-after").is_some());
    refused.refused(429, "rate_limited");
    world.ask(api("guess-1", line, "")).await.refused(401, "unauthorized");
    // A client with a right token goes on, also with one that the server has not seen yet.
    for token in ["bobs-read", "bobs-run", crate::world::TOKEN] {
        assert_eq!(world.ask(api(token, line, "")).await.head.status, 200);
    }
}

#[tokio::test]
async fn a_tenant_sees_neither_metrics_nor_paths() {
    let folder = tempfile::tempdir().unwrap();
    let program = ";;; name = \"greet\"\n;;; description = \"Greets\"\n(ret \"hello\")\n";
    std::fs::write(folder.path().join("greet.wat"), program).unwrap();
    let file = empty_store();
    let bob = file.tenant(&Tenant::new("bob").unwrap());
    assert!(bob.add_token("n", Scope::Admin, "bobs-admin").await.unwrap());
    let tenants = Arc::new(move |tenant: &Tenant| Ok(TenantParts::new(file.tenant(tenant))));
    let alice = TenantParts::new(bob.file().tenant(&Tenant::new("alice").unwrap()));
    let make = |app: App| app.with_tenants(tenants);
    let folders = Folders::open(&[folder.path()], &|_, _| Ok(()));
    let world = World::with_programs(folders, alice, make, |_| {}).await;
    world.ask(api("bobs-admin", "GET /metrics", "")).await.refused(403, "forbidden");
    assert_eq!(world.api("GET /metrics", "").await.head.status, 200);
    let path = folder.path().to_str().unwrap();
    for line in ["GET /api/catalog", "GET /api/catalog/greet"] {
        let shown = world.ask(api("bobs-admin", line, "")).await.body;
        assert!(shown.contains("greet.wat") && !shown.contains(path), "{shown}");
        assert!(world.api(line, "").await.body.contains(path));
    }
}

#[tokio::test]
async fn the_runs_of_every_tenant_are_resumed() {
    let file = empty_store();
    let bob = file.tenant(&Tenant::new("bob").unwrap());
    let queued = RunRequest {
        id: "01J0000000000000000000000".to_owned(),
        origin: json!({"by": "serve"}),
        ..RunRequest::new("bob's")
    };
    bob.enqueue(RunRequest { session: Some("s".to_owned()), ..queued }).await.unwrap();
    let alice = file.tenant(&Tenant::new("alice").unwrap());
    let tenants = Arc::new(move |tenant: &Tenant| Ok(TenantParts::new(file.tenant(tenant))));
    let mut world =
        World::of(TenantParts::new(alice), |app: App| app.with_tenants(tenants), |_| {}).await;
    world.question().await.respond("for bob");
    tokio::time::timeout(Duration::from_secs(10), async {
        while bob.history("s", None).await.unwrap().messages.len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
}

/// The secrets of three tenants, each with the tenant's token.
const PINS: [(&str, &str, &str); 3] = [
    ("alice", "11151620", TOKEN),
    ("bob", "22251621", "bobs-admin"),
    ("carol", "33351622", "carols-admin"),
];

#[tokio::test]
async fn no_tenant_can_observe_which_texts_contain_secrets_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let file = Store::open(&path, Duration::from_secs(3_600)).unwrap();
    for (name, _, token) in &PINS[1..] {
        let of = file.tenant(&Tenant::new(name).unwrap());
        assert!(of.add_token("n", Scope::Admin, token).await.unwrap());
    }
    let (keys, traces) = (Keys::new(folder.path().join("keys")), folder.path().to_owned());
    // The server separates the tenants even if their stores have the same mask.
    let mask = Mask::default();
    let parts = move |tenant: &Tenant| {
        let (name, pin, _) = PINS.iter().find(|(name, ..)| *name == tenant.as_str()).unwrap();
        let secret = Secret::new("pin", pin, Vec::new()).unwrap();
        TenantParts {
            trace_dir: Some(traces.join(name)),
            secrets: Some(Arc::new(SecretList::new([("pin".to_owned(), Ok(secret))]))),
            ..TenantParts::new(file.tenant(tenant).sealing(mask.clone(), keys.clone()))
        }
    };
    let alice = parts(&Tenant::new("alice").unwrap());
    let tenants = Arc::new(move |tenant: &Tenant| Ok(parts(tenant)));
    let mut world = World::of(alice, |app: App| app.with_tenants(tenants), |_| {}).await;
    // The process knows the secrets of a tenant from the tenant's first run on.
    for (_, _, token) in PINS {
        run_that_prints(&mut world, token, "nothing").await;
    }
    let rows = rusqlite::Connection::open(&path).unwrap();
    for (name, own, token) in PINS {
        // Once a server has read an encrypted record of a tenant, it encrypts all later ones. So the
        // tenant's own secret comes last.
        let others = PINS.map(|(_, pin, _)| pin).into_iter().filter(|pin| *pin != own);
        for pin in others.chain([own]) {
            let item = json!({"text": format!("the pin {pin}")}).to_string();
            let first = world.ask(api(token, "POST /api/memory", &item)).await.json();
            assert_eq!(world.ask(api(token, "POST /api/memory", &item)).await.json(), first);
            let query = "SELECT text FROM memory WHERE tenant = ?1 ORDER BY id DESC LIMIT 1";
            let text: String = rows.query_row(query, [name], |row| row.get(0)).unwrap();
            assert_eq!(text.contains(pin), pin != own, "{name} remembers {pin}: {text}");
        }
    }
    let all = PINS.map(|(_, pin, _)| pin).join(" ");
    for (name, own, token) in PINS {
        run_that_prints(&mut world, token, &all).await;
        let files = std::fs::read_dir(folder.path().join(name)).unwrap();
        let files = files.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
        let trace: String = files.map(|path| std::fs::read_to_string(path).unwrap()).collect();
        assert!(trace.contains("${secret:pin}"), "{trace}");
        for (_, pin, _) in PINS {
            assert_eq!(trace.contains(pin), pin != own, "{name} prints {pin}: {trace}");
        }
    }
}

/// Starts a run that prints a text, and waits for its end.
async fn run_that_prints(world: &mut World, token: &str, text: &str) {
    let started = world.ask(api(token, "POST /api/run", r#"{"prompt":"go"}"#)).await;
    assert_eq!(started.head.status, 202, "{started:?}");
    world.question().await.say(&wat(&format!("(out \"{text}\")")));
    world.question().await.respond("done");
    let line = format!("GET /api/run/{}", started.json()["id"].as_str().unwrap());
    while world.ask(api(token, &line, "")).await.json()["status"] != "done" {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

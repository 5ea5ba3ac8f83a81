//! An MCP server that asks for a sign-in, its authorization server, and a browser, on this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::Router;
use axum::extract::{Query, Request, State};
use axum::http::header::{AUTHORIZATION, LOCATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

type Fields = BTreeMap<String, String>;
type Change<T> = Box<dyn Fn(&mut T) + Send + Sync>;

/// How the servers behave.
pub(crate) struct Behaviour {
    /// The path of the authorization server's identifier.
    pub issuer_path: &'static str,
    /// The paths of the authorization server's metadata.
    pub metadata_paths: &'static [&'static str],
    /// The path or the URL of the MCP server's metadata, and if the challenge names it.
    pub resource_path: (&'static str, bool),
    /// Changes the metadata of the MCP server.
    pub resource: Change<Json>,
    /// Changes the metadata of the authorization server.
    pub metadata: Change<Json>,
    /// Changes the parameters of the redirect.
    pub redirect: Change<Fields>,
    /// The lifetime of access tokens, in seconds.
    pub lifetime: Option<u64>,
    /// The status of the response to a renewal, if it fails.
    pub renewal: Option<u16>,
}

impl Default for Behaviour {
    fn default() -> Behaviour {
        Behaviour {
            issuer_path: "",
            metadata_paths: &["/.well-known/oauth-authorization-server"],
            resource_path: ("/.well-known/oauth-protected-resource/mcp", true),
            resource: Box::new(|_| {}),
            metadata: Box::new(|_| {}),
            redirect: Box::new(|_| {}),
            lifetime: Some(3_600),
            renewal: None,
        }
    }
}

/// What the servers know and have seen.
#[derive(Default)]
pub(crate) struct Seen {
    /// The registered clients, with their redirect URIs.
    pub clients: Vec<Json>,
    /// The parameters of the last visit of the browser.
    pub visit: Fields,
    /// The codes that were granted and not yet exchanged, with the visits.
    codes: BTreeMap<String, Fields>,
    /// The access tokens that are valid, with their scopes.
    pub access: BTreeMap<String, String>,
    /// The refresh tokens that are valid, with their scopes.
    pub refresh: BTreeMap<String, String>,
    /// Number of renewals.
    pub renewals: usize,
    /// The tokens that were revoked.
    pub revoked: BTreeSet<String>,
    /// The values of `Authorization` that the MCP server received.
    pub received: Vec<String>,
    /// Number of tokens that were granted.
    granted: usize,
}

/// The running servers.
#[derive(Clone)]
pub(crate) struct World(Arc<Inner>);

pub(crate) struct Inner {
    pub mcp: String,
    pub issuer: String,
    origin: String,
    pub behaviour: Mutex<Behaviour>,
    pub seen: Mutex<Seen>,
}

impl std::ops::Deref for World {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl World {
    pub(crate) async fn start(behaviour: Behaviour) -> World {
        let (of_mcp, of_issuer) = (listener().await, listener().await);
        let address = |listener: &TcpListener| format!("http://{}", listener.local_addr().unwrap());
        let (mcp, origin) = (address(&of_mcp), address(&of_issuer));
        let issuer = format!("{origin}{}", behaviour.issuer_path);
        let world = World(Arc::new(Inner {
            mcp: format!("{mcp}/mcp"),
            issuer,
            origin,
            behaviour: Mutex::new(behaviour),
            seen: Mutex::default(),
        }));
        let mcp = Router::new()
            .route("/mcp", post(call))
            .route("/moved", post(call))
            .fallback(resource_document)
            .with_state(world.clone());
        let issuer = Router::new()
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/revoke", post(revoke))
            .fallback(server_document)
            .with_state(world.clone());
        tokio::spawn(async { axum::serve(of_mcp, mcp).await });
        tokio::spawn(async { axum::serve(of_issuer, issuer).await });
        world
    }

    /// Makes all access tokens invalid.
    pub(crate) fn end_access(&self) {
        self.seen.lock().access.clear();
    }
}

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

fn json_response(status: u16, body: &Json) -> Response {
    let kind = [("content-type", "application/json")];
    (StatusCode::from_u16(status).unwrap(), kind, body.to_string()).into_response()
}

fn error(status: u16, code: &str) -> Response {
    json_response(status, &json!({"error": code, "error_description": format!("it is {code}")}))
}

async fn resource_document(State(world): State<World>, request: Request) -> Response {
    let behaviour = world.behaviour.lock();
    if request.uri().path() != behaviour.resource_path.0 {
        return StatusCode::NOT_FOUND.into_response();
    }
    let mut document = json!({
        "resource": world.mcp,
        "authorization_servers": [world.issuer],
        "scopes_supported": ["tools", "more"],
    });
    (behaviour.resource)(&mut document);
    json_response(200, &document)
}

async fn server_document(State(world): State<World>, request: Request) -> Response {
    let behaviour = world.behaviour.lock();
    if !behaviour.metadata_paths.contains(&request.uri().path()) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let at = |path: &str| format!("{}{path}", world.origin);
    let mut document = json!({
        "issuer": world.issuer,
        "authorization_endpoint": at("/authorize?theme=dark"),
        "token_endpoint": at("/token"),
        "registration_endpoint": at("/register"),
        "revocation_endpoint": at("/revoke"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["plain", "S256"],
        "authorization_response_iss_parameter_supported": true,
    });
    (behaviour.metadata)(&mut document);
    json_response(200, &document)
}

async fn register(State(world): State<World>, body: String) -> Response {
    let mut client: Json = serde_json::from_str(&body).unwrap();
    let mut seen = world.seen.lock();
    client["client_id"] = json!(format!("client-{}", seen.clients.len()));
    seen.clients.push(client.clone());
    json_response(201, &client)
}

async fn authorize(State(world): State<World>, Query(visit): Query<Fields>) -> Response {
    let mut seen = world.seen.lock();
    for (name, value) in
        [("response_type", "code"), ("code_challenge_method", "S256"), ("theme", "dark")]
    {
        assert_eq!(visit[name], value);
    }
    assert_eq!(visit["resource"], world.mcp);
    let known = seen.clients.iter().find(|client| client["client_id"] == visit["client_id"]);
    assert!(known.is_none_or(|client| client["redirect_uris"] == json!([visit["redirect_uri"]])));
    let code = format!("code-{}", seen.granted);
    let mut redirect: Fields = [
        ("code".to_owned(), code.clone()),
        ("state".to_owned(), visit["state"].clone()),
        ("iss".to_owned(), world.issuer.clone()),
    ]
    .into();
    (world.behaviour.lock().redirect)(&mut redirect);
    let mut to = Url::parse(&visit["redirect_uri"]).unwrap();
    to.query_pairs_mut().extend_pairs(&redirect);
    seen.codes.insert(code, visit.clone());
    seen.visit = visit;
    (StatusCode::FOUND, [(LOCATION, String::from(to))]).into_response()
}

fn fields(form: &str) -> Fields {
    url::form_urlencoded::parse(form.as_bytes()).into_owned().collect()
}

async fn token(State(world): State<World>, form: String) -> Response {
    let form = fields(&form);
    let mut seen = world.seen.lock();
    assert_eq!(form["resource"], world.mcp);
    let scope = match form["grant_type"].as_str() {
        "authorization_code" => {
            let Some(visit) = seen.codes.remove(&form["code"]) else {
                return error(400, "invalid_grant");
            };
            let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&form["code_verifier"]));
            assert_eq!(visit["code_challenge"], challenge);
            assert_eq!(visit["redirect_uri"], form["redirect_uri"]);
            assert_eq!(visit["client_id"], form["client_id"]);
            visit.get("scope").cloned().unwrap_or_default()
        }
        "refresh_token" => {
            if let Some(status) = world.behaviour.lock().renewal {
                return error(status, "temporarily_unavailable");
            }
            // A refresh token is valid once. If it comes again, it was stolen.
            let Some(scope) = seen.refresh.remove(&form["refresh_token"]) else {
                seen.refresh.clear();
                seen.access.clear();
                return error(400, "invalid_grant");
            };
            seen.renewals += 1;
            scope
        }
        _ => return error(400, "unsupported_grant_type"),
    };
    seen.granted += 1;
    let (access, refresh) =
        (format!("access-token-{}", seen.granted), format!("refresh-token-{}", seen.granted));
    seen.access.insert(access.clone(), scope.clone());
    seen.refresh.insert(refresh.clone(), scope.clone());
    let lifetime = world.behaviour.lock().lifetime;
    json_response(
        200,
        &json!({
            "access_token": access, "token_type": "bearer", "expires_in": lifetime,
            "refresh_token": refresh, "scope": scope,
        }),
    )
}

async fn revoke(State(world): State<World>, form: String) -> Response {
    let form = fields(&form);
    let mut seen = world.seen.lock();
    seen.refresh.remove(&form["token"]);
    seen.access.clear();
    seen.revoked.insert(form["token"].clone());
    StatusCode::OK.into_response()
}

/// The MCP server. It has a tool for everyone, and one that needs another scope.
async fn call(State(world): State<World>, headers: HeaderMap, body: String) -> Response {
    let given = headers.get(AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned());
    let mut seen = world.seen.lock();
    seen.received.extend(given.clone());
    let token = given.as_deref().and_then(|given| given.strip_prefix("Bearer "));
    let scope = token.and_then(|token| seen.access.get(token)).cloned();
    let (path, is_named) = world.behaviour.lock().resource_path;
    let Some(scope) = scope else {
        let origin = world.mcp.trim_end_matches("/mcp");
        let challenge = match is_named {
            true => {
                let url =
                    if path.starts_with('/') { origin.to_owned() + path } else { path.into() };
                format!("Bearer resource_metadata=\"{url}\", scope=\"tools\"")
            }
            false => "Bearer".to_owned(),
        };
        return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, challenge)]).into_response();
    };
    let message: Json = serde_json::from_str(&body).unwrap();
    let result = match message["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "box", "version": "1"},
        }),
        "tools/list" => {
            let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
            json!({"tools": [tool("open"), tool("lock")]})
        }
        "tools/call" if message["params"]["name"] == "lock" && !scope.contains("admin") => {
            let challenge = "Bearer error=\"insufficient_scope\", scope=\"box:admin\"";
            return (StatusCode::FORBIDDEN, [(WWW_AUTHENTICATE, challenge)]).into_response();
        }
        "tools/call" => json!({"content": [{"type": "text", "text": "a hat"}]}),
        method if method.starts_with("notifications/") => {
            return StatusCode::ACCEPTED.into_response();
        }
        _ => {
            let error = json!({"code": -32601, "message": "unknown method"});
            return json_response(
                200,
                &json!({"jsonrpc": "2.0", "id": message["id"], "error": error}),
            );
        }
    };
    json_response(200, &json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

/// Opens a link as a browser does, and returns the page after the redirect.
pub(crate) async fn browse(link: &str) -> String {
    let (head, _) = visit(link).await;
    let to = head.lines().find_map(|line| line.strip_prefix("location: ")).unwrap_or_default();
    visit(to).await.1
}

/// Sends a GET request, and returns the head and the body of the response.
pub(crate) async fn visit(url: &str) -> (String, String) {
    let url = Url::parse(url).unwrap();
    let address = (url.host_str().unwrap(), url.port().unwrap());
    let mut stream = TcpStream::connect(address).await.unwrap();
    let target = format!("{}?{}", url.path(), url.query().unwrap_or_default());
    let request =
        format!("GET {target} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", address.0);
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

//! A test server with a model whose answers the test provides.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryFutureExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use wattle_agent::host::TenantStore;
use wattle_agent::host::capability::egress::{Egress, Policy};
use wattle_agent::host::catalog::{Catalog, Folders};
use wattle_agent::host::machine::{AnswerPart, Message, Usage};
use wattle_agent::host::rt::Limits as Bounds;
use wattle_agent::model::{Cassette, Delta, Model, ModelError, ModelReply, ModelRequest};
use wattle_agent::{Host, Settings, Tenant};
use wattle_server::{App, Server, ServerSettings, TenantParts, Token};
use wattle_tests::empty_store;

use crate::client::{Answer, Client, NEVER};

pub(crate) const TOKEN: &str = "t0ken-of-the-tests";

/// A running server and the requests to its model.
pub(crate) struct World {
    pub(crate) address: SocketAddr,
    pub(crate) shutdown: CancellationToken,
    pub(crate) served: JoinHandle<()>,
    questions: mpsc::UnboundedReceiver<Question>,
}

/// A model request that waits for an answer from the test. The answer is streamed in pieces that
/// end with `|`.
pub(crate) struct Question {
    pub(crate) messages: Vec<Message>,
    reply: oneshot::Sender<Option<(String, u64)>>,
}

struct Puppet(mpsc::UnboundedSender<Question>);

impl Question {
    pub(crate) fn last(&self) -> &str {
        &self.messages.last().unwrap().content
    }

    pub(crate) fn say(self, text: &str) {
        self.say_using(0, text);
    }

    /// Answers the request and reports a usage of `tokens` tokens.
    pub(crate) fn say_using(self, tokens: u64, text: &str) {
        self.reply.send(Some((text.to_owned(), tokens))).expect("nobody waits for the answer");
    }

    /// Fails the request.
    pub(crate) fn fail(self) {
        self.reply.send(None).expect("nobody waits for the answer");
    }

    pub(crate) fn respond(self, text: &str) {
        self.say(&format!(
            "<reasoning>done</reasoning>\nToolCall::Response(\"\"\"\n{text}\n\"\"\")"
        ));
    }

    /// Waits until the run stops waiting for the answer.
    pub(crate) async fn abandoned(mut self) {
        timeout(NEVER, self.reply.closed()).await.expect("the run goes on");
    }
}

impl Puppet {
    async fn ask(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let (reply, answer) = oneshot::channel();
        let plain = |message: &Message| Message {
            content: wattle_tests::plain(&message.content).into(),
            ..message.clone()
        };
        self.0
            .send(Question { messages: request.messages.iter().map(plain).collect(), reply })
            .ok();
        match answer.await {
            Ok(Some((text, prompt))) => {
                let usage = Usage { prompt, ..Usage::default() };
                Ok(ModelReply { text, usage, ..ModelReply::default() })
            }
            // An empty recording returns an error, like a failed model.
            Ok(None) => {
                Cassette::parse(r#"{"wattle_cassette":1,"model":"puppet"}"#)
                    .unwrap()
                    .complete(request)
                    .await
            }
            Err(_) => std::future::pending().await,
        }
    }
}

impl Model for Puppet {
    fn name(&self) -> &str {
        "puppet"
    }

    fn complete<'a>(
        &'a self,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        self.ask(request).boxed()
    }

    fn stream<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(Delta<'_>) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        let in_pieces = |reply: &ModelReply| {
            let pieces = reply.text.split_inclusive('|');
            pieces.for_each(|piece| on_delta(Delta::Part(AnswerPart::Text(piece))));
        };
        self.ask(request).inspect_ok(in_pieces).boxed()
    }
}

/// Returns the server's app with the given model and settings.
fn app(
    model: Arc<dyn Model>,
    settings: Settings,
    parts: TenantParts,
    folders: Folders,
    bounds: Bounds,
) -> App {
    let host = Host::new(bounds, folders, Egress::new(Policy::default())).unwrap();
    App::new(host, model, settings, parts)
}

impl World {
    pub(crate) async fn new() -> World {
        World::with(|_| {}).await
    }

    /// Starts a server on a free loopback port. `change` modifies the settings.
    pub(crate) async fn with(change: impl FnOnce(&mut ServerSettings)) -> World {
        World::serving(|parts| parts, change).await
    }

    /// Starts a server on a shared store. `change` modifies the settings.
    pub(crate) async fn on(store: TenantStore, change: impl FnOnce(&mut ServerSettings)) -> World {
        World::of(TenantParts::new(store), |app| app, change).await
    }

    /// Starts a server with an empty store. `parts` modifies the components, and `change` modifies
    /// the settings.
    pub(crate) async fn serving(
        parts: impl FnOnce(TenantParts) -> TenantParts,
        change: impl FnOnce(&mut ServerSettings),
    ) -> World {
        World::of(parts(TenantParts::new(store())), |app| app, change).await
    }

    /// Starts a server with the given components. `make` modifies the app, and `change` modifies
    /// the settings.
    pub(crate) async fn of(
        parts: TenantParts,
        make: impl FnOnce(App) -> App,
        change: impl FnOnce(&mut ServerSettings),
    ) -> World {
        World::with_programs(Folders::from(Catalog::default()), parts, make, change).await
    }

    /// Starts a server whose catalog reads the given folders.
    pub(crate) async fn with_programs(
        folders: Folders,
        parts: TenantParts,
        make: impl FnOnce(App) -> App,
        change: impl FnOnce(&mut ServerSettings),
    ) -> World {
        let app = |model| make(app(model, Settings::default(), parts, folders, Bounds::default()));
        World::start_server(app, change).await
    }

    /// Starts a server with an empty store whose runs have the given settings.
    pub(crate) async fn with_settings(settings: Settings) -> World {
        let (parts, folders) = (TenantParts::new(store()), Folders::from(Catalog::default()));
        let app = |model| app(model, settings, parts, folders, Bounds::default());
        World::start_server(app, |_| {}).await
    }

    /// Starts a server with an empty store whose runs ask `model`.
    pub(crate) async fn asking(model: Arc<dyn Model>, settings: Settings) -> World {
        let (parts, folders) = (TenantParts::new(store()), Folders::from(Catalog::default()));
        let app = |_| app(model, settings, parts, folders, Bounds::default());
        World::start_server(app, |_| {}).await
    }

    /// Starts a server with an empty store. The server's process may use `process_memory` bytes of
    /// memory.
    pub(crate) async fn with_memory(process_memory: usize) -> World {
        World::with_memory_on(store(), process_memory).await
    }

    /// Starts a server on a store. The server's process may use `process_memory` bytes of memory.
    pub(crate) async fn with_memory_on(store: TenantStore, process_memory: usize) -> World {
        let bounds = Bounds { process_memory, ..Bounds::default() };
        let folders = Folders::from(Catalog::default());
        let app = |model| app(model, Settings::default(), TenantParts::new(store), folders, bounds);
        World::start_server(app, |_| {}).await
    }

    /// Starts a server. `app` creates the app with the given model.
    async fn start_server(
        app: impl FnOnce(Arc<dyn Model>) -> App,
        change: impl FnOnce(&mut ServerSettings),
    ) -> World {
        let mut settings =
            ServerSettings::new(([127, 0, 0, 1], 0).into(), Token::new(TOKEN).unwrap());
        settings.limits.grace = Duration::from_millis(50);
        change(&mut settings);
        let (sender, questions) = mpsc::unbounded_channel();
        let server = Server::bind(settings, app(Arc::new(Puppet(sender)))).await.unwrap();
        let (address, shutdown) = (server.local_addr(), CancellationToken::new());
        let served = tokio::spawn(server.run(shutdown.clone()));
        World { address, shutdown, served, questions }
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.address).await
    }

    /// Sends a request and reads the response.
    pub(crate) async fn ask(&self, request: impl AsRef<[u8]>) -> Answer {
        let mut client = self.client().await;
        client.send_in_vain(request).await;
        client.answer().await
    }

    /// Sends a request to the API with the server's token and reads the response.
    pub(crate) async fn api(&self, line: &str, body: &str) -> Answer {
        self.ask(api(TOKEN, line, body)).await
    }

    /// Follows a run and reads the head of the response.
    pub(crate) async fn follow(&self, run: &str, after: u64) -> Client {
        let mut client = self.client().await;
        client.send(api(TOKEN, &format!("GET /api/run/{run}/stream?after={after}"), "")).await;
        assert_eq!(client.head().await.status, 200);
        client
    }

    /// Starts a chat and reads the head of the response.
    pub(crate) async fn chat(&self, body: &str) -> Client {
        let mut client = self.client().await;
        client.send(post(body)).await;
        let head = client.head().await;
        assert_eq!(head.status, 200);
        client
    }

    /// Waits for the next request to the model and returns it.
    pub(crate) async fn question(&mut self) -> Question {
        timeout(NEVER, self.questions.recv()).await.expect("the model receives no request").unwrap()
    }

    /// Returns a pending request to the model, if there is one.
    pub(crate) fn try_question(&mut self) -> Option<Question> {
        self.questions.try_recv().ok()
    }

    /// Asserts that no request to the model is pending.
    pub(crate) fn no_question(&mut self) {
        assert!(self.questions.try_recv().is_err(), "the model received a request");
    }

    /// Waits for the server to end.
    pub(crate) async fn ended(self) {
        timeout(NEVER, self.served).await.expect("the server goes on").unwrap();
    }
}

/// Returns the default tenant's part of an empty store.
pub(crate) fn store() -> TenantStore {
    empty_store().tenant(&Tenant::default())
}

/// Returns a request to the API with a token and a body.
pub(crate) fn api(token: &str, line: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: \
         {length}\r\n\r\n{body}"
    )
}

/// Returns a valid `POST /chat` request with the given body.
pub(crate) fn post(body: &str) -> String {
    let length = body.len();
    format!(
        "POST /chat HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: \
         application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// Returns a request with the given header lines and without a body.
pub(crate) fn bare(line: &str, headers: &[&str]) -> String {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    format!("{line} HTTP/1.1\r\n{headers}\r\n")
}

pub(crate) fn message(text: &str, session: &str) -> String {
    serde_json::json!({"message": text, "session_id": session}).to_string()
}

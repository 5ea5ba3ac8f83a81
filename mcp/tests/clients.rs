//! Clients of the MCP server, with and without the handshake.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, ErrorData, Implementation, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{
    ClientLifecycleMode, NotificationContext, RequestContext, RoleClient, RunningService,
    serve_client_with_lifecycle,
};
use serde_json::json;
use tokio::task::JoinHandle;
use wattle_agent::host::capability::policy::{Answer, Request};
use wattle_agent::host::catalog::{Catalog, Entry};
use wattle_mcp::{CallEnd, ClientCall, Deployment, Gateway, Performing, TaskAgent, Underway};

/// A deployment whose calls ask the user `times` times.
struct Asking {
    times: usize,
    cancelled: Arc<Mutex<bool>>,
}

impl Deployment for Asking {
    fn catalog(&self) -> Catalog {
        Catalog::built_in()
    }

    fn offers(&self, _: &Entry) -> bool {
        true
    }

    fn exposed(&self) -> &[String] {
        &[]
    }

    fn call(&self, _: ClientCall, underway: Underway) -> Performing<'_> {
        Box::pin(async move {
            if self.times == 0 {
                underway.cancel.cancelled().await;
                *self.cancelled.lock() = true;
            }
            for _ in 0..self.times {
                (underway.progress)("it asks".to_owned());
                let request = Request { questions: &[], program: "", args: &[] };
                match underway.approver.ask(request).await {
                    Answer::Yes => {}
                    answer => return CallEnd { text: format!("{answer:?}"), success: false },
                }
            }
            CallEnd { text: "approved".to_owned(), success: true }
        })
    }

    fn check(&self, _: String) -> Performing<'_> {
        Box::pin(async { CallEnd { text: "valid".to_owned(), success: true } })
    }

    fn agents(&self) -> Vec<TaskAgent> {
        Vec::new()
    }

    fn task(&self, task: String, _: Option<String>, underway: Underway) -> Performing<'_> {
        self.call(ClientCall::Program { program: task, args: Vec::new() }, underway)
    }

    fn page(&self, _: &str) -> Option<String> {
        None
    }
}

/// A user who always gives the same answer, or a client that cannot ask its user.
#[derive(Clone)]
struct User {
    answer: Option<ElicitResult>,
    asked: Arc<Mutex<u32>>,
    steps: Arc<Mutex<Vec<f64>>>,
}

impl User {
    fn new(answer: Option<ElicitResult>) -> User {
        User { answer, asked: Arc::default(), steps: Arc::default() }
    }
}

impl ClientHandler for User {
    async fn on_progress(
        &self,
        step: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.steps.lock().push(step.progress);
    }

    fn get_info(&self) -> ClientConfig {
        let capabilities = match &self.answer {
            Some(_) => ClientCapabilities::builder().enable_elicitation().build(),
            None => ClientCapabilities::default(),
        };
        ClientConfig::new(capabilities, Implementation::new("test", "1"))
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        *self.asked.lock() += 1;
        Ok(self.answer.clone().unwrap_or_else(|| ElicitResult::new(ElicitationAction::Cancel)))
    }
}

/// Connects a client to the server of a deployment.
async fn connect(
    deployment: Asking,
    user: User,
    mode: ClientLifecycleMode,
) -> (RunningService<RoleClient, User>, JoinHandle<Result<(), String>>) {
    let (input, their_output) = tokio::io::duplex(1 << 16);
    let (their_input, output) = tokio::io::duplex(1 << 16);
    let gateway = Gateway::new(Arc::new(deployment));
    let served =
        tokio::spawn(gateway.serve_over(their_input, their_output, std::future::pending()));
    let client = serve_client_with_lifecycle(user, (input, output), mode).await.unwrap();
    (client, served)
}

fn modes() -> [ClientLifecycleMode; 2] {
    let preferred_versions = vec![ProtocolVersion::LATEST];
    [ClientLifecycleMode::Initialize, ClientLifecycleMode::Discover { preferred_versions }]
}

fn answer(action: ElicitationAction, approve: Option<bool>) -> ElicitResult {
    let answer = ElicitResult::new(action);
    match approve {
        Some(approve) => answer.with_content(json!({"approve": approve})),
        None => answer,
    }
}

fn run_program() -> CallToolRequestParams {
    let arguments = json!({"program": "(out 1)"}).as_object().cloned().unwrap();
    CallToolRequestParams::new("run_program").with_arguments(arguments)
}

#[tokio::test]
async fn the_clients_user_approves_calls_in_each_version() {
    use ElicitationAction::{Accept, Cancel, Decline};
    for mode in modes() {
        for (reply, times, asked, words) in [
            (Some(answer(Accept, Some(true))), 1, 1, "approved"),
            (Some(answer(Accept, Some(true))), 3, 3, "approved"),
            (Some(answer(Accept, Some(false))), 2, 1, "No("),
            (Some(answer(Accept, None)), 2, 1, "No("),
            (Some(answer(Decline, None)), 2, 1, "No("),
            (Some(answer(Cancel, Some(true))), 2, 1, "No("),
            (None, 2, 0, "cannot ask its user"),
        ] {
            let user = User::new(reply);
            let deployment = Asking { times, cancelled: Arc::default() };
            let (mut client, served) = connect(deployment, user.clone(), mode.clone()).await;
            let result = client.call_tool(run_program()).await.unwrap();
            let text = serde_json::to_string(&result.content).unwrap();
            assert!(text.contains(words), "{mode:?}: {text}");
            assert_eq!(result.is_error.unwrap_or(false), words != "approved", "{mode:?}: {text}");
            assert_eq!(*user.asked.lock(), asked, "{mode:?}: {text}");
            client.close().await.unwrap();
            assert_eq!(served.await.unwrap(), Ok(()));
            let steps: Vec<f64> = (1..=asked.max(1)).map(f64::from).collect();
            assert_eq!(*user.steps.lock(), steps, "{mode:?}: {text}");
        }
    }
}

#[tokio::test]
async fn an_answer_to_no_question_is_an_error() {
    let [_, discover] = modes();
    let user = User::new(None);
    let deployment = Asking { times: 1, cancelled: Arc::default() };
    let (client, _served) = connect(deployment, user, discover).await;
    let error = client.call_tool(run_program().with_request_state("guessed")).await.unwrap_err();
    assert!(error.to_string().contains("no longer waits"), "{error}");
}

#[tokio::test]
async fn the_server_ends_when_its_client_leaves() {
    for mode in modes() {
        let user = User::new(None);
        let deployment = Asking { times: 1, cancelled: Arc::default() };
        let (mut client, served) = connect(deployment, user, mode).await;
        client.close().await.unwrap();
        assert_eq!(served.await.unwrap(), Ok(()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_is_cancelled_with_its_request() {
    for mode in modes() {
        let user = User::new(None);
        let cancelled = Arc::<Mutex<bool>>::default();
        let deployment = Asking { times: 0, cancelled: Arc::clone(&cancelled) };
        let (client, _served) = connect(deployment, user, mode).await;
        let limit = std::time::Duration::from_secs(1);
        assert!(tokio::time::timeout(limit, client.call_tool(run_program())).await.is_err());
        // The notification arrives while everyone waits.
        tokio::time::sleep(limit).await;
        assert!(*cancelled.lock());
    }
}

//! Tests trusted runs over HTTP: any request may ask for a trusted run, but only the operator can
//! allow it.

use std::sync::{Arc, Mutex};

use wattle_agent::host::Trusted;
use wattle_agent::host::capability::PortFuture;
use wattle_agent::host::capability::git::Repository;

use crate::world::{World, post};

#[derive(Default)]
struct Messages(Mutex<Vec<String>>);

impl Repository for Messages {
    fn commit_push(&self, message: String) -> PortFuture<'_, String> {
        self.0.lock().unwrap().push(message);
        Box::pin(async { Ok("committed and pushed".to_owned()) })
    }
}

const PUSH: &str =
    "ToolCall::Wat(```wat\n(fs.write? \"a.txt\" \"x\")\n(ret (git.commit_push? \"hello\"))\n```)";

/// Sends a message whose run tries to commit files. Returns the response's `x-wattle-exec` header
/// and the observation.
async fn push(world: &mut World, body: &str) -> (Option<String>, String) {
    let mut client = world.client().await;
    client.send(post(body)).await;
    let head = client.head().await;
    assert_eq!(head.status, 200);
    world.question().await.say(PUSH);
    let question = world.question().await;
    let observed = question.last().to_owned();
    question.respond("done");
    assert_eq!(client.events().await.last().unwrap()["type"], "response");
    (head.get("x-wattle-exec").map(str::to_owned), observed)
}

#[tokio::test]
async fn a_request_gets_a_trusted_run_only_if_the_operator_allows_it() {
    let dir = tempfile::tempdir().unwrap();
    let messages = Arc::new(Messages::default());
    let trusted = Trusted {
        repository: Arc::<Messages>::clone(&messages) as _,
        public: None,
        image_generator: None,
    };
    for (is_allowed, body, expected, runs) in [
        (false, r#"{"message":"m"}"#, None, false),
        (false, r#"{"message":"m","exec":true}"#, Some("not permitted"), false),
        (true, r#"{"message":"m"}"#, None, false),
        (true, r#"{"message":"m","exec":false}"#, None, false),
        (true, r#"{"message":"m","exec":true}"#, Some("granted"), true),
    ] {
        let parts = |parts: wattle_server::TenantParts| wattle_server::TenantParts {
            trusted: is_allowed.then(|| (trusted.clone(), dir.path().to_owned())),
            ..parts
        };
        let mut world = World::serving(parts, |_| {}).await;
        let (head, observed) = push(&mut world, body).await;
        assert_eq!(head.as_deref(), expected, "{body}");
        assert_eq!(observed.contains("committed and pushed"), runs, "{body}: {observed}");
        assert_eq!(
            observed.ends_with("\ngit not permitted (no exec capability)"),
            !runs,
            "{body}: {observed}"
        );
        assert_eq!(
            dir.path().join("a.txt").exists(),
            runs,
            "only a trusted run writes to the workdir"
        );
    }
    assert_eq!(*messages.0.lock().unwrap(), ["hello"]);
}

//! Scenes: environments that consist of fixtures. The programs of examples and evaluations run in
//! them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use wattle_capability::ai::{Embedding, Inference, Question, Reply};
use wattle_capability::egress::{
    HeaderMap, HeaderName, HeaderValue, Incoming, Outgoing, Passage, StatusCode, Url,
};
use wattle_capability::files::{Files, OVERLAY_LIMIT};
use wattle_capability::git::Repository;
use wattle_capability::image::ImageGenerator;
use wattle_capability::kv::{InMemory, Kv};
use wattle_capability::memory::{self, Memory as _, MemoryText, NewItem, Scope};
use wattle_capability::shell::{Shell, ShellOutput};
use wattle_capability::skill::SkillReader;
use wattle_capability::sys::FixedSources;
use wattle_capability::web::{Engine, EngineKind};
use wattle_capability::{PortFuture, http};
use wattle_catalog::{AiAnswer, Fixtures, HttpAnswer, ShellAnswer};
use wattle_rt::{Account, Code, Failure, Grants};
use wattle_runs::Host;

use crate::wiring::{Resources, Trusted};

/// The picture that is generated for every prompt.
const PICTURE: &[u8] = include_bytes!("scene.png");
/// The address of a scene's search engine. A fixture for a search is the response to
/// `https://search.example/search?q=…&format=json`, in the format of SearXNG.
const ENGINE: &str = "https://search.example";

/// An environment that consists of fixtures. A program that runs in it sees only the files, the
/// state and the scripted responses that the fixtures define.
/// ```
/// use wattle_agent::host::{ExampleWorld, capability::egress::Egress, catalog::{Catalog, Fixtures},
/// rt::Limits}; use wattle_agent::Host;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let fixtures = Fixtures {
///     files: [("a.txt".to_owned(), "one".to_owned())].into(),
///     ..Fixtures::default()
/// };
/// let scene = ExampleWorld::new(&fixtures).await.unwrap();
/// let egress = Egress::new(Default::default());
/// let host = Host::new(Limits::default(), Catalog::built_in(), egress).unwrap();
/// assert!(scene.access(&host).grants().allows("fs"));
/// assert_eq!(scene.file("a.txt").as_deref(), Ok("one"));
/// assert!(scene.file("b.txt").is_err());
/// # }
/// ```
pub struct ExampleWorld {
    files: Arc<Files>,
    state: Arc<InMemory>,
    tenant: Arc<InMemory>,
    memory: Arc<memory::InMemory>,
    network: Arc<RecordedNetwork>,
    model: Arc<ScriptedModel>,
    shell: Arc<ScriptedShell>,
    fixed: FixedSources,
}

impl ExampleWorld {
    /// Creates a scene from its fixtures.
    ///
    /// # Errors
    /// If a fixture contains an invalid path, header or time.
    pub async fn new(fixtures: &Fixtures) -> Result<ExampleWorld, String> {
        let files = Files::overlay(None, OVERLAY_LIMIT);
        let scene = ExampleWorld {
            files: Arc::new(files),
            state: Arc::new(InMemory::default()),
            tenant: Arc::new(InMemory::default()),
            network: Arc::new(RecordedNetwork::new(&fixtures.http)?),
            model: Arc::new(ScriptedModel::new(&fixtures.ai)),
            shell: Arc::new(ScriptedShell(fixtures.shell.clone())),
            memory: Arc::new(memory::InMemory::default()),
            fixed: FixedSources::new(fixtures.now.as_deref(), &fixtures.random)?,
        };
        for (path, content) in &fixtures.files {
            scene.files.write(path, content.as_bytes()).map_err(|e| e.to_string())?;
        }
        let kv = scene.kv();
        for (key, value) in fixtures.kv.clone() {
            let (state, name) = kv.locate(&key);
            let set = state
                .update(name.to_owned(), Box::new(move |_| Ok(Some(value.clone().into_bytes()))));
            set.await.map_err(|e| e.to_string())?;
        }
        for text in &fixtures.memory {
            let text = MemoryText::new(text).map_err(|e| e.to_string())?;
            let item = NewItem { text, scope: Scope::Tenant };
            scene.memory.add(None, item).await.map_err(|e| e.to_string())?;
        }
        Ok(scene)
    }

    /// Returns the session's and the tenant's state. A key's name determines which of the two
    /// contains it.
    fn kv(&self) -> Kv {
        Kv {
            session: Arc::<InMemory>::clone(&self.state),
            tenant: Arc::<InMemory>::clone(&self.tenant),
        }
    }

    /// Returns the resources of a run in the scene. Only the catalog and the manual come from the
    /// host.
    #[must_use]
    pub fn access(&self, host: &Host) -> Resources {
        Resources {
            state: Arc::<InMemory>::clone(&self.state),
            tenant: Arc::<InMemory>::clone(&self.tenant),
            memory: Arc::<memory::InMemory>::clone(&self.memory),
            network: Arc::<RecordedNetwork>::clone(&self.network),
            inference: Some(Arc::<ScriptedModel>::clone(&self.model)),
            engine: Engine::with_backend(
                Arc::<RecordedNetwork>::clone(&self.network),
                EngineKind::Searxng,
                ENGINE,
            )
            .map(Arc::new),
            shell: Some(Arc::<ScriptedShell>::clone(&self.shell)),
            skills: Some(Arc::new(ExampleSkill)),
            ..Resources::new(host, Arc::clone(&self.files))
        }
    }

    /// Returns the additional resources of a trusted run in the scene. Commits are accepted but not
    /// stored, public files are kept in memory, and the image generator returns the same picture
    /// for every prompt.
    #[must_use]
    pub fn trusted(&self) -> Trusted {
        Trusted {
            repository: Arc::new(AcceptingRepository),
            public: Some(Arc::new(Files::overlay(None, OVERLAY_LIMIT))),
            image_generator: Some(Arc::new(FixedImage)),
        }
    }

    /// Returns the grants of a run in the scene: `access`, with the scene's clock and random
    /// numbers.
    #[must_use]
    pub fn grants(&self, access: Resources) -> Grants {
        access.grants().with(self.fixed.clone())
    }

    /// Returns the current content of a file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn file(&self, path: &str) -> Result<String, String> {
        self.files
            .read(path)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .map_err(|e| e.to_string())
    }

    /// Returns the current value of a key, or `None` if there is no such key.
    ///
    /// # Errors
    /// If the state cannot be read.
    pub async fn value(&self, key: &str) -> Result<Option<String>, String> {
        let kv = self.kv();
        let (state, name) = kv.locate(key);
        let value = state.get(name.to_owned()).await.map_err(|e| e.to_string())?;
        Ok(value.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Returns the memory items, oldest first.
    ///
    /// # Errors
    /// If the memory cannot be read.
    pub async fn memory(&self) -> Result<Vec<String>, String> {
        let items = self.memory.list(ITEMS).await.map_err(|e| e.to_string())?;
        Ok(items.into_iter().rev().map(|item| item.text.to_string()).collect())
    }
}

/// Maximum number of memory items that [`ExampleWorld::memory`] reads.
const ITEMS: usize = 1_000;

/// The skills of every scene: `greet`, with the file `names.txt`.
struct ExampleSkill;

impl SkillReader for ExampleSkill {
    fn read(&self, name: &str, file: &str) -> Result<Vec<u8>, Failure> {
        match (name, file) {
            ("greet", "") => Ok(b"Greet everyone in names.txt.\n".to_vec()),
            ("greet", "names.txt") => Ok(b"Ada\n".to_vec()),
            _ => {
                Err(Failure::new(Code::ENOENT, format!("there is no skill `{name}` with `{file}`")))
            }
        }
    }
}

/// A repository that accepts every commit.
struct AcceptingRepository;

impl Repository for AcceptingRepository {
    fn commit_push(&self, message: String) -> PortFuture<'_, String> {
        Box::pin(async move { Ok(format!("committed and pushed: {message}")) })
    }
}

/// An image generator that returns the same picture for every prompt.
struct FixedImage;

impl ImageGenerator for FixedImage {
    fn generate(&self, _: String, _: Passage) -> PortFuture<'_, Vec<u8>> {
        Box::pin(async { Ok(PICTURE.to_vec()) })
    }
}

/// A network that answers requests with recorded responses.
struct RecordedNetwork(Vec<Route>);

/// The responses to requests with a given method and URL, in order. The last response is repeated.
struct Route {
    method: String,
    url: String,
    answers: Mutex<VecDeque<http::Response>>,
}

impl RecordedNetwork {
    fn new(answers: &[HttpAnswer]) -> Result<RecordedNetwork, String> {
        let mut routes: Vec<Route> = Vec::new();
        for HttpAnswer { url, method, status, headers, body } in answers {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                let header =
                    (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value));
                let (Ok(name), Ok(value)) = header else {
                    return Err(format!("`{name}: {value}` is not a valid header"));
                };
                map.append(name, value);
            }
            let status = StatusCode::from_u16(*status)
                .map_err(|_| format!("`{status}` is not an HTTP status"))?;
            let answer = http::Response { status, headers: map, body: body.clone().into() };
            let url = normal(url);
            match routes.iter_mut().find(|route| route.url == url && route.method == *method) {
                Some(route) => route
                    .answers
                    .get_mut()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push_back(answer),
                None => routes.push(Route {
                    method: method.clone(),
                    url,
                    answers: Mutex::new([answer].into()),
                }),
            }
        }
        Ok(RecordedNetwork(routes))
    }
}

/// Normalizes a URL to the form that a client sends: `https://example.org` becomes
/// `https://example.org/`, and the fragment is dropped.
fn normal(url: &str) -> String {
    match Url::parse(url) {
        Ok(mut parsed) => {
            parsed.set_fragment(None);
            parsed.into()
        }
        Err(_) => url.to_owned(),
    }
}

impl Route {
    fn next(&self) -> Option<http::Response> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() }
    }
}

impl http::Backend for RecordedNetwork {
    fn send(&self, outgoing: Outgoing) -> PortFuture<'_, Incoming> {
        let request = outgoing.request();
        let url = normal(&request.url);
        let route =
            self.0.iter().find(|route| route.url == url && route.method == request.method.as_str());
        let answer = route.and_then(Route::next).ok_or_else(|| {
            Failure::new(
                Code::EREMOTE,
                format!("no fixture answers {} {}", request.method, request.url),
            )
        });
        Box::pin(async move { answer.map(|answer| outgoing.answer(answer)) })
    }
}

/// A shell that returns scripted outputs for specific command lines.
struct ScriptedShell(Vec<ShellAnswer>);

impl Shell for ScriptedShell {
    fn run(
        &self,
        _: &Account,
        _: Arc<Files>,
        script: String,
        _: Vec<u8>,
        _: Instant,
    ) -> PortFuture<'_, ShellOutput> {
        let known = self.0.iter().find(|answer| answer.line == script).map(|answer| ShellOutput {
            stdout: answer.stdout.clone().into_bytes(),
            stderr: answer.stderr.clone().into_bytes(),
            status: answer.status,
        });
        Box::pin(async move {
            known.ok_or_else(|| {
                Failure::new(Code::ETRFM, format!("no example says what the line {script:?} does"))
            })
        })
    }
}

/// A model with scripted answers.
struct ScriptedModel {
    when: Vec<(String, String)>,
    next: Mutex<VecDeque<String>>,
}

impl ScriptedModel {
    fn new(answers: &[AiAnswer]) -> ScriptedModel {
        let (mut when, mut next) = (Vec::new(), VecDeque::new());
        for answer in answers.iter().cloned() {
            match answer {
                AiAnswer::Next(reply) => next.push_back(reply),
                AiAnswer::When { when: text, reply } => when.push((text, reply)),
            }
        }
        ScriptedModel { when, next: Mutex::new(next) }
    }
}

impl ScriptedModel {
    /// Returns the first scripted answer whose condition is a substring of one of `texts`, or the
    /// next answer without a condition.
    fn answer(&self, texts: &[&str]) -> Result<String, Failure> {
        let matches =
            |(when, _): &&(String, String)| texts.iter().any(|text| text.contains(when.as_str()));
        let answer = match self.when.iter().find(matches) {
            Some((_, reply)) => Some(reply.clone()),
            None => self.next.lock().unwrap_or_else(PoisonError::into_inner).pop_front(),
        };
        answer.ok_or_else(|| Failure::new(Code::EREMOTE, "the model has no further answer"))
    }
}

impl Inference for ScriptedModel {
    fn ask(&self, question: Question) -> PortFuture<'_, Reply> {
        let answer = self
            .answer(&[&question.text, &question.instruction])
            .map(|text| Reply { text, tokens: 0 });
        Box::pin(async { answer })
    }

    /// Returns the scripted answer for `text` as an embedding. The answer must be a JSON array of
    /// numbers.
    fn embed(&self, text: String) -> PortFuture<'_, Embedding> {
        let answer = self.answer(&[&text]).and_then(|answer| {
            let vector = serde_json::from_str(&answer).map_err(|_| {
                Failure::new(
                    Code::EREMOTE,
                    "the model's answer for an embedding is not a JSON array of numbers",
                )
            })?;
            Ok(Embedding { vector, tokens: 0 })
        });
        Box::pin(async { answer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattle_capability::egress::Method;

    fn answer(url: &str, body: &str) -> HttpAnswer {
        let (url, body) = (url.to_owned(), body.to_owned());
        HttpAnswer { url, method: "GET".to_owned(), status: 200, headers: [].into(), body }
    }

    #[tokio::test]
    async fn requests_are_answered_in_order_and_the_last_answer_repeats() {
        let recorded = [answer("https://a.example", "one"), answer("https://a.example/", "two")];
        let network = RecordedNetwork::new(&recorded).unwrap();
        let ask = async |method, url: &str| {
            let request = http::Request { method, ..http::Request::get(url) };
            let passage = Passage::new(None, Arc::default(), "http");
            let answered = passage.send(&network, "http.get", request).await;
            answered.map(|response| String::from_utf8(response.body.into()).unwrap())
        };
        for expected in ["one", "two", "two"] {
            assert_eq!(ask(Method::GET, "https://a.example/#top").await.as_deref(), Ok(expected));
        }
        let refused = ask(Method::POST, "https://a.example/").await.unwrap_err();
        assert_eq!(refused.to_string(), "EREMOTE (6): no fixture answers POST https://a.example/");
    }

    #[tokio::test]
    async fn invalid_fixtures_are_reported() {
        let bad = HttpAnswer {
            headers: [("a b".to_owned(), "x".to_owned())].into(),
            ..answer("https://a.example", "")
        };
        let fixtures = Fixtures { http: vec![bad], ..Fixtures::default() };
        assert_eq!(
            ExampleWorld::new(&fixtures).await.err().as_deref(),
            Some("`a b: x` is not a valid header")
        );
        let fixtures =
            Fixtures { files: [("../a".to_owned(), String::new())].into(), ..Fixtures::default() };
        assert!(ExampleWorld::new(&fixtures).await.is_err());
        let fixtures = Fixtures { now: Some("noon".to_owned()), ..Fixtures::default() };
        let error = ExampleWorld::new(&fixtures).await.err().unwrap();
        assert!(error.starts_with("\"noon\" is not a timestamp"), "{error}");
    }

    #[tokio::test]
    async fn a_model_answers_by_what_it_is_asked_and_then_in_order() {
        let when = |when: &str, reply: &str| AiAnswer::When {
            when: when.to_owned(),
            reply: reply.to_owned(),
        };
        let model = ScriptedModel::new(&[
            AiAnswer::Next("first".to_owned()),
            when("tea", "hot"),
            when("label", "x"),
        ]);
        for (text, instruction, expected) in [
            ("a cup of tea", "", Some("hot")),
            ("b", "give a label", Some("x")),
            ("c", "", Some("first")),
            ("d", "", None),
        ] {
            let question = Question {
                text: text.to_owned(),
                instruction: instruction.to_owned(),
                ..Question::default()
            };
            assert_eq!(
                model.ask(question).await.ok().map(|reply| reply.text).as_deref(),
                expected,
                "{text}"
            );
        }
    }
}

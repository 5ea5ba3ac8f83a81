//! Scenes: a world made of fixtures, in which examples and evaluations run for real.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use wattle_capability::PortFuture;
use wattle_capability::ai::{Embedding, Inference, Question, Reply};
use wattle_capability::egress::{HeaderMap, HeaderName, HeaderValue, Incoming, Outgoing, Passage, Url};
use wattle_capability::files::Files;
use wattle_capability::git::Repository;
use wattle_capability::http;
use wattle_capability::image::ImageGenerator;
use wattle_capability::kv::{InMemory, Kv};
use wattle_capability::shell::{Captured, Shell};
use wattle_capability::sys::Fixed;
use wattle_capability::web::{Engine, EngineKind};
use wattle_catalog::{AiAnswer, Fixtures, HttpAnswer, ShellAnswer};
use wattle_rt::{Account, Code, Failure, Grants};

use crate::{Access, Host, Trusted};

/// Bytes that may be written in a scene.
const FILE_BYTES: u64 = 64 << 20;

/// The picture that is made of every prompt.
const PICTURE: &[u8] = include_bytes!("scene.png");
/// Where a scene's search engine is asked: its fixtures answer `https://search.example/search?q=…&format=json` as SearXNG does.
const ENGINE: &str = "https://search.example";

/// A world of fixtures: what runs in it meets these files, this state and these answers, and nothing outside.
///
/// ```
/// use wattle_agent::{Host, Scene, capability::egress::Egress, catalog::{Catalog, Fixtures}, rt::Limits};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let fixtures = Fixtures { files: [("a.txt".to_owned(), "one".to_owned())].into(), ..Fixtures::default() };
/// let scene = Scene::new(&fixtures).await.unwrap();
/// let host = Host::new(Limits::default(), Catalog::built_in(), Egress::new(Default::default())).unwrap();
/// assert!(scene.access(&host).grants().allows("fs"));
/// assert_eq!(scene.file("a.txt").as_deref(), Ok("one"));
/// assert!(scene.file("b.txt").is_err());
/// # }
/// ```
pub struct Scene {
    files: Arc<Files>,
    state: Arc<InMemory>,
    tenant: Arc<InMemory>,
    network: Arc<Recorded>,
    model: Arc<Scripted>,
    shell: Arc<Lines>,
    fixed: Fixed,
}

impl Scene {
    /// Lays the fixtures out.
    ///
    /// # Errors
    /// Where they cannot be: a path that no file can have, a header that no answer can carry, a time that is none.
    pub async fn new(fixtures: &Fixtures) -> Result<Scene, String> {
        let files = Files::overlay(None, FILE_BYTES);
        let scene = Scene {
            files: Arc::new(files),
            state: Arc::new(InMemory::default()),
            tenant: Arc::new(InMemory::default()),
            network: Arc::new(Recorded::new(&fixtures.http)?),
            model: Arc::new(Scripted::new(&fixtures.ai)),
            shell: Arc::new(Lines(fixtures.shell.clone())),
            fixed: Fixed::new(fixtures.now.as_deref(), &fixtures.random)?,
        };
        for (path, content) in &fixtures.files {
            scene.files.write(path, content.as_bytes()).map_err(|e| e.to_string())?;
        }
        let kv = scene.kv();
        for (key, value) in fixtures.kv.clone() {
            let (state, name) = kv.place(&key);
            let set = state.update(name.to_owned(), Box::new(|_| Ok(Some(value.into_bytes()))));
            set.await.map_err(|e| e.to_string())?;
        }
        Ok(scene)
    }

    /// The states of session and tenant; a key tells by itself which it belongs to.
    fn kv(&self) -> Kv {
        Kv { session: Arc::<InMemory>::clone(&self.state), tenant: Arc::<InMemory>::clone(&self.tenant) }
    }

    /// What a run in the scene works on. Of the host it meets the catalog and the manual only.
    #[must_use]
    pub fn access(&self, host: &Host) -> Access {
        Access {
            state: Arc::<InMemory>::clone(&self.state),
            tenant: Arc::<InMemory>::clone(&self.tenant),
            network: Arc::<Recorded>::clone(&self.network),
            inference: Some(Arc::<Scripted>::clone(&self.model)),
            engine: Engine::by(Arc::<Recorded>::clone(&self.network), EngineKind::Searxng, ENGINE).map(Arc::new),
            shell: Some(Arc::<Lines>::clone(&self.shell)),
            ..Access::new(host, Arc::clone(&self.files))
        }
    }

    /// What a trusted run in the scene works on besides: its commits and its public files are gone with it, and every picture is the same.
    #[must_use]
    pub fn trusted(&self) -> Trusted {
        Trusted {
            repository: Arc::new(Pushed),
            public: Some(Arc::new(Files::overlay(None, FILE_BYTES))),
            painter: Some(Arc::new(OnePicture)),
        }
    }

    /// What a run in the scene is granted: that access, and the scene's clock and random numbers.
    #[must_use]
    pub fn grants(&self, access: Access) -> Grants {
        access.grants().with(self.fixed.clone())
    }

    /// What a file holds now.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn file(&self, path: &str) -> Result<String, String> {
        self.files.read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).map_err(|e| e.to_string())
    }

    /// What a key of the state holds now; `None` where it is not there.
    ///
    /// # Errors
    /// Why the state cannot be read.
    pub async fn value(&self, key: &str) -> Result<Option<String>, String> {
        let kv = self.kv();
        let (state, name) = kv.place(key);
        let value = state.get(name.to_owned()).await.map_err(|e| e.to_string())?;
        Ok(value.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }
}

/// A repository that takes every commit.
struct Pushed;

impl Repository for Pushed {
    fn commit_push(&self, message: String) -> PortFuture<'_, String> {
        Box::pin(async move { Ok(format!("committed and pushed: {message}")) })
    }
}

/// Makes the same picture of every prompt.
struct OnePicture;

impl ImageGenerator for OnePicture {
    fn paint(&self, _: String, _: Passage) -> PortFuture<'_, Vec<u8>> {
        Box::pin(async { Ok(PICTURE.to_vec()) })
    }
}

/// Answers requests with what was recorded for them.
struct Recorded(Vec<Route>);

/// The answers to one request: in their order, the last one again and again.
struct Route {
    method: String,
    url: String,
    answers: Mutex<VecDeque<http::Response>>,
}

impl Recorded {
    fn new(answers: &[HttpAnswer]) -> Result<Recorded, String> {
        let mut routes: Vec<Route> = Vec::new();
        for HttpAnswer { url, method, status, headers, body } in answers {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                let header = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value));
                let (Ok(name), Ok(value)) = header else { return Err(format!("`{name}: {value}` is no header")) };
                map.append(name, value);
            }
            let answer = http::Response { status: *status, headers: map, body: body.clone().into_bytes() };
            let url = normal(url);
            match routes.iter_mut().find(|route| route.url == url && route.method == *method) {
                Some(route) => route.answers.get_mut().unwrap_or_else(PoisonError::into_inner).push_back(answer),
                None => routes.push(Route { method: method.clone(), url, answers: Mutex::new([answer].into()) }),
            }
        }
        Ok(Recorded(routes))
    }
}

/// A URL as a client sends it, so that `https://example.org` is `https://example.org/`; without what stands behind `#`.
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

impl http::Backend for Recorded {
    fn send(&self, outgoing: Outgoing) -> PortFuture<'_, Incoming> {
        let request = outgoing.request();
        let url = normal(&request.url);
        let route = self.0.iter().find(|route| route.url == url && route.method == request.method.as_str());
        let answer = route.and_then(Route::next).ok_or_else(|| {
            Failure::new(Code::EREMOTE, format!("nothing answers to {} {}", request.method, request.url))
        });
        Box::pin(async move { answer.map(|answer| outgoing.answer(answer)) })
    }
}

/// Knows what certain lines of the shell leave behind.
struct Lines(Vec<ShellAnswer>);

impl Shell for Lines {
    fn run(&self, _: &Account, _: Arc<Files>, script: String, _: Vec<u8>, _: Instant) -> PortFuture<'_, Captured> {
        let known = self.0.iter().find(|answer| answer.line == script).map(|answer| Captured {
            stdout: answer.stdout.clone().into_bytes(),
            stderr: answer.stderr.clone().into_bytes(),
            status: answer.status,
        });
        Box::pin(async move {
            known.ok_or_else(|| Failure::new(Code::ETRFM, format!("no example says what the line {script:?} does")))
        })
    }
}

/// Gives the answers of a model.
struct Scripted {
    when: Vec<(String, String)>,
    next: Mutex<VecDeque<String>>,
}

impl Scripted {
    fn new(answers: &[AiAnswer]) -> Scripted {
        let (mut when, mut next) = (Vec::new(), VecDeque::new());
        for answer in answers.iter().cloned() {
            match answer {
                AiAnswer::Next(reply) => next.push_back(reply),
                AiAnswer::When { when: sought, reply } => when.push((sought, reply)),
            }
        }
        Scripted { when, next: Mutex::new(next) }
    }
}

impl Scripted {
    /// The answer to what has these texts in it.
    fn answer(&self, texts: &[&str]) -> Result<String, Failure> {
        let fits = |(when, _): &&(String, String)| texts.iter().any(|text| text.contains(when.as_str()));
        let answer = match self.when.iter().find(fits) {
            Some((_, reply)) => Some(reply.clone()),
            None => self.next.lock().unwrap_or_else(PoisonError::into_inner).pop_front(),
        };
        answer.ok_or_else(|| Failure::new(Code::EREMOTE, "the model has no further answer"))
    }
}

impl Inference for Scripted {
    fn ask(&self, question: Question) -> PortFuture<'_, Reply> {
        let answer = self.answer(&[&question.text, &question.instruction]).map(|text| Reply { text, tokens: 0 });
        Box::pin(async { answer })
    }

    /// The answer is written as a JSON array of numbers.
    fn embed(&self, text: String) -> PortFuture<'_, Embedding> {
        let answer = self.answer(&[&text]).and_then(|answer| {
            let vector = serde_json::from_str(&answer).map_err(|_| {
                Failure::new(Code::EREMOTE, "the model's answer for an embedding is no JSON array of numbers")
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
    async fn requests_are_answered_in_order_and_the_last_answer_stays() {
        let recorded = [answer("https://a.example", "one"), answer("https://a.example/", "two")];
        let network = Recorded::new(&recorded).unwrap();
        let ask = async |method, url: &str| {
            let request = http::Request { method, url: url.to_owned(), headers: HeaderMap::new(), body: Vec::new() };
            let passage = Passage::new(None, Arc::default(), "http");
            let answered = passage.send(&network, "http.get", request).await;
            answered.map(|response| String::from_utf8(response.body).unwrap())
        };
        for expected in ["one", "two", "two"] {
            assert_eq!(ask(Method::GET, "https://a.example/#top").await.as_deref(), Ok(expected));
        }
        let refused = ask(Method::POST, "https://a.example/").await.unwrap_err();
        assert_eq!(refused.to_string(), "EREMOTE (6): nothing answers to POST https://a.example/");
    }

    #[tokio::test]
    async fn what_cannot_be_laid_out_is_told() {
        let bad =
            HttpAnswer { headers: [("a b".to_owned(), "x".to_owned())].into(), ..answer("https://a.example", "") };
        let fixtures = Fixtures { http: vec![bad], ..Fixtures::default() };
        assert_eq!(Scene::new(&fixtures).await.err().as_deref(), Some("`a b: x` is no header"));
        let fixtures = Fixtures { files: [("../a".to_owned(), String::new())].into(), ..Fixtures::default() };
        assert!(Scene::new(&fixtures).await.is_err());
        let fixtures = Fixtures { now: Some("noon".to_owned()), ..Fixtures::default() };
        let told = Scene::new(&fixtures).await.err().unwrap();
        assert!(told.starts_with("\"noon\" is no point in time"), "{told}");
    }

    #[tokio::test]
    async fn a_model_answers_by_what_it_is_asked_and_then_in_order() {
        let when = |when: &str, reply: &str| AiAnswer::When { when: when.to_owned(), reply: reply.to_owned() };
        let model = Scripted::new(&[AiAnswer::Next("first".to_owned()), when("tea", "hot"), when("label", "x")]);
        for (text, instruction, expected) in [
            ("a cup of tea", "", Some("hot")),
            ("b", "give a label", Some("x")),
            ("c", "", Some("first")),
            ("d", "", None),
        ] {
            let question =
                Question { text: text.to_owned(), instruction: instruction.to_owned(), ..Question::default() };
            assert_eq!(model.ask(question).await.ok().map(|reply| reply.text).as_deref(), expected, "{text}");
        }
    }
}

//! A test environment for programs: every capability, with backends that the test controls.

#![allow(dead_code, reason = "a fuzz target uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test cannot go on without its world")]

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use wattle_capability::PortFuture;
use wattle_capability::agent::{Agents, Delegated, Delegates, Delegation};
use wattle_capability::ai::{Ai, Budget, Embedding, Inference, Question, Reply};
use wattle_capability::egress::{HeaderMap, Incoming, Outgoing, Passage, StatusCode};
use wattle_capability::files::Files;
use wattle_capability::fs::Fs;
use wattle_capability::git::{Git, Repository};
use wattle_capability::help::{Help, Manual};
use wattle_capability::http::{self, Http};
use wattle_capability::image::{Image, ImageGenerator};
use wattle_capability::issue::{IssueTracker, Issues, Ticket};
use wattle_capability::kv::{InMemory, Kv};
use wattle_capability::memory::{InMemory as MemoryOfRun, MemoryGrant};
use wattle_capability::par::{Par, Programs, Work};
use wattle_capability::publish::Publish;
use wattle_capability::search::Search;
use wattle_capability::shell::{Sh, Shell, ShellOutput};
use wattle_capability::skill::{SkillGrant, SkillReader};
use wattle_capability::tool::{ToolBox, Tools};
use wattle_capability::wattle::{CatalogIndex, ProgramSummary, Wattle};
use wattle_capability::web::{self, Engine, EngineKind};
use wattle_cases::guests::SharedGuests;
use wattle_rt::{
    Account, Code, Failure, Grants, Kept, KeptLimits, KeptText, Limits, NestedContext, Outcome,
    RunError, Runtime,
};

pub(crate) struct World {
    pub(crate) runtime: Runtime,
    pub(crate) files: Arc<Files>,
    pub(crate) tracker: Arc<TicketList>,
}

impl World {
    pub(crate) fn new() -> World {
        World::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> World {
        // A debug build takes many seconds to compile a guest, so the tests share compiled guests.
        wattle_capability::guests::keep_compiled_in(SharedGuests::in_target().folder());
        let runtime = Runtime::new(wattle_capability::ALL, limits).unwrap();
        World { runtime, files: Arc::new(Files::overlay(None, 64 << 20)), tracker: Arc::default() }
    }

    pub(crate) fn grants(&self) -> Arc<Grants> {
        let pure = wattle_capability::pure_grants();
        let rows = ("rows", "[1,2]".to_owned(), "list of 2 numbers".to_owned());
        let rows = KeptText::new(self.runtime.account(), rows.0, rows.1, rows.2).unwrap();
        let limits = KeptLimits { names: 64, bytes: 64 << 20 };
        Arc::new(
            pure.with(Kv {
                session: Arc::new(InMemory::default()),
                tenant: Arc::new(InMemory::default()),
            })
            .with(MemoryGrant::new(Arc::new(MemoryOfRun::default()), None))
            .with(Http::new(Arc::new(Web)))
            .with(Par::new(Arc::new(ProgramTexts(self.runtime.clone()))))
            .with(Fs(Arc::clone(&self.files)))
            .with(Search::new(None, None))
            .with(web::Web::new(
                Engine::with_backend(Arc::new(Web), EngineKind::Searxng, "https://search.example/")
                    .map(Arc::new),
            ))
            .with(Sh(Arc::new(Toy)))
            .with(Wattle(Arc::new(ProgramTexts(self.runtime.clone()))))
            .with(Agents(Arc::new(Echo)))
            .with(Tools(Arc::new(Echo)))
            .with(Issues::new(Arc::<TicketList>::clone(&self.tracker)))
            .with(Help(Arc::new(Tables)))
            .with(SkillGrant(Arc::new(Greeting)))
            .with(Git(Arc::new(Pushed)))
            .with(Publish(Some(Arc::new(Files::overlay(None, 1 << 20)))))
            .with(Image::new(Some(Arc::new(OnePicture))))
            .with(Kept::new([rows], limits))
            .with(Ai::new(Arc::new(Echo), Budget { calls: 3, tokens: 1_000 })),
        )
    }

    pub(crate) async fn run(&self, text: &str, args: &[&str]) -> Result<Outcome, String> {
        self.run_granted(text, args, &self.grants()).await
    }

    /// Runs a program that reads and keeps values.
    pub(crate) async fn run_keeping(&self, text: &str, kept: &Kept) -> Result<Outcome, String> {
        let runtime = self.runtime.with_kept(kept.names());
        let program = runtime.prepare(text).await.map_err(|d| d.to_string())?;
        let grants = Arc::new(self.grants().as_ref().clone().with(kept.clone()));
        runtime.run(&program, &grants, Vec::new()).await.map_err(|e| e.to_string())
    }

    pub(crate) async fn run_granted(
        &self,
        text: &str,
        args: &[&str],
        grants: &Arc<Grants>,
    ) -> Result<Outcome, String> {
        let program = self.runtime.prepare(text).await.map_err(|d| d.to_string())?;
        let args = args.iter().map(ToString::to_string).collect();
        self.runtime
            .run_within(&program, grants, args, Duration::from_secs(60))
            .await
            .map_err(|e| e.to_string())
    }
}

/// A repository that accepts all commits.
pub(crate) struct Pushed;

impl Repository for Pushed {
    fn commit_push(&self, message: String) -> PortFuture<'_, String> {
        Box::pin(async move { Ok(format!("committed and pushed: {message}")) })
    }
}

/// An image generator that returns the same image for every prompt.
pub(crate) struct OnePicture;

impl ImageGenerator for OnePicture {
    fn generate(&self, _: String, _: Passage) -> PortFuture<'_, Vec<u8>> {
        Box::pin(async { Ok(include_bytes!("../../../agent/src/scene.png").to_vec()) })
    }
}

/// A manual that is generated from the function tables.
struct Tables;

impl Manual for Tables {
    fn about(&self, topic: &str) -> Option<String> {
        wattle_capability::manual::about(wattle_capability::ALL, topic)
    }
}

/// The skill `greet`, with one file.
struct Greeting;

impl SkillReader for Greeting {
    fn read(&self, name: &str, file: &str) -> Result<Vec<u8>, Failure> {
        match (name, file) {
            ("greet", "") => Ok(b"Greet everyone in names.txt.\n".to_vec()),
            ("greet", "names.txt") => Ok(b"Ada\n".to_vec()),
            _ => Err(Failure::new(Code::ENOENT, "there is no such skill or file")),
        }
    }
}

/// A backend that responds with status 200 and returns the method, path and body of the request. It
/// responds to `/status/N` with status N, rejects `/refused`, and does not respond to `/hang`.
pub(crate) struct Web;

impl http::Backend for Web {
    fn send(
        &self,
        outgoing: Outgoing,
    ) -> Pin<Box<dyn Future<Output = Result<Incoming, Failure>> + Send + '_>> {
        Box::pin(async move {
            let request = outgoing.request();
            let answer = |status: u16, body: Vec<u8>| {
                let status = StatusCode::from_u16(status).unwrap();
                Ok(outgoing.answer(http::Response {
                    status,
                    headers: HeaderMap::new(),
                    body: body.into(),
                }))
            };
            let path = request.url.splitn(4, '/').nth(3).unwrap_or_default().to_owned();
            if path == "hang" {
                std::future::pending::<()>().await;
            }
            if path == "refused" {
                return Err(Failure::new(Code::EACCESS, "refused: that host is not allowed"));
            }
            if request.url.starts_with("https://search.example/search?q=") {
                let body = br#"{"results":[{"title":"Example","url":"https://example.com/","content":"It is one."}]}"#
                    .to_vec();
                return answer(200, body);
            }
            // The examples in the manual send requests to this host.
            if request.url.starts_with("https://example.com/") {
                let body = match (request.method.as_str(), path.as_str()) {
                    ("HEAD", _) => Vec::new(),
                    ("POST", _) => request.body.to_vec(),
                    (_, "") => b"Example Domain".to_vec(),
                    (_, other) => other.as_bytes().to_vec(),
                };
                return answer(200, body);
            }
            let status = path.strip_prefix("status/").map_or(200, |s| s.parse().unwrap());
            let body =
                format!("{} {path} {}", request.method, String::from_utf8_lossy(&request.body));
            answer(status, body.into_bytes())
        })
    }
}

/// A catalog of the programs in `PROGRAMS`.
pub(crate) struct ProgramTexts(pub(crate) Runtime);

const PROGRAMS: &[(&str, &str)] = &[
    ("file_read", "(ret (fs.read? (arg 0)))"),
    ("finish", "(sys.done? (arg 0))"),
    ("leave", "(sys.artifact (arg 0) \"data\")"),
    ("upper", "(argv 0 $a) (call $str.upper (local.get $a)) (drop) (call $sys.resv) (i32.const 0)"),
    ("two", "(argv 0 $a) (resv $a) (resv $a) (i32.const 0)"),
    (
        "fetch",
        "(local $e i32) (local $b i32) (argv 0 $u) (call $http.get (local.get $u)) (local.set $e) \
         (local.set $b) (check $e) (resv $b) (i32.const 0)",
    ),
    ("hang", "(call $sys.sleep (i32.const 60000)) (i32.const 0)"),
    ("spin", "(loop $l (br $l)) (i32.const 0)"),
    ("count", "(call $kv.incr \"count\" (i32.const 1)) (drop) (drop) (i32.const 0)"),
    (
        "deeper",
        "(local $e i32) (local $a i32) (local.set $a (call $arr.new)) (argv 0 $n) (drop (call \
         $arr.push (local.get $a) (local.get $n))) (call $par.map \"deeper\" (local.get $a)) \
         (local.set $e) (local.set $a) (local.get $e)",
    ),
];

impl ProgramTexts {
    fn text(work: &Work) -> Result<String, Failure> {
        match work {
            Work::Inline(text) => Ok(text.clone()),
            Work::Named(program) => PROGRAMS
                .iter()
                .find(|(name, _)| *name == program.strip_suffix("!").unwrap_or(program))
                .map(|(_, text)| (*text).to_owned())
                .ok_or_else(|| {
                    Failure::new(Code::ENOENT, format!("there is no program `{program}`"))
                }),
        }
    }
}

impl Programs for ProgramTexts {
    fn run(
        &self,
        work: Work,
        args: Vec<String>,
        grants: Arc<Grants>,
        place: NestedContext,
    ) -> PortFuture<'_, Outcome> {
        Box::pin(async move {
            let prepared = self.0.prepare(&ProgramTexts::text(&work)?).await.unwrap();
            let time = Duration::from_secs(60);
            self.0.run_nested(&prepared, &grants, args, time, place).await.map_err(|error| {
                match error {
                    RunError::Denied(missing) => {
                        Failure::new(Code::EACCESS, format!("not granted: {missing:?}"))
                    }
                    RunError::Refused(why) => Failure::new(Code::EACCESS, why),
                    RunError::Bug(bug) => std::panic::resume_unwind(Box::new(bug)),
                    RunError::Engine(error) => Failure::new(Code::EREMOTE, error.to_string()),
                }
            })
        })
    }

    fn check(&self, work: Work) -> PortFuture<'_, ()> {
        Box::pin(async move {
            let prepared = self.0.prepare(&ProgramTexts::text(&work)?).await;
            prepared.map(drop).map_err(|why| Failure::new(Code::EPARSE, why.to_string()))
        })
    }

    fn is_exclusive(&self, work: &Work) -> bool {
        matches!(work, Work::Named(program) if program.ends_with('!'))
    }

    fn in_order(&self, _: &str, args: Vec<(String, String)>) -> Result<Vec<String>, Failure> {
        Ok(args.into_iter().map(|(_, value)| value).collect())
    }
}

impl CatalogIndex for ProgramTexts {
    fn list(&self) -> Vec<ProgramSummary> {
        let summary = |(name, about): &(&str, &str)| ProgramSummary {
            name: (*name).to_owned(),
            about: (*about).to_owned(),
        };
        PROGRAMS.iter().map(summary).collect()
    }

    fn search(&self, words: &str) -> Vec<ProgramSummary> {
        self.list().into_iter().filter(|program| program.name == words).collect()
    }

    fn show(&self, name: &str) -> Result<String, Failure> {
        ProgramTexts::text(&Work::Named(name.to_owned()))
    }
}

/// A shell with a few commands: `tr a-z A-Z`, `cat FILE`, `put FILE WORD`, `hang`, which never
/// ends, and `silent`, which fails without a message.
pub(crate) struct Toy;

impl Shell for Toy {
    fn run(
        &self,
        _: &Account,
        files: Arc<Files>,
        script: String,
        stdin: Vec<u8>,
        _: Instant,
    ) -> PortFuture<'_, ShellOutput> {
        Box::pin(async move {
            let words: Vec<&str> = script.split_whitespace().collect();
            let failed = |status, stderr: String| ShellOutput {
                stderr: stderr.into_bytes(),
                status,
                ..ShellOutput::default()
            };
            Ok(match words.as_slice() {
                ["tr", "a-z", "A-Z"] => {
                    ShellOutput { stdout: stdin.to_ascii_uppercase(), ..ShellOutput::default() }
                }
                ["cat", path] => match files.read(path) {
                    Ok(bytes) => ShellOutput { stdout: bytes.into(), ..ShellOutput::default() },
                    Err(error) if error.is_not_found() => {
                        failed(1, format!("cat: {path}: no such file\n"))
                    }
                    Err(error) => failed(1, format!("cat: {error}\n")),
                },
                ["put", path, word] => match files.write(path, word.as_bytes()) {
                    Ok(()) => ShellOutput::default(),
                    Err(error) => failed(2, format!("put: {error}\n")),
                },
                ["hang"] => std::future::pending().await,
                ["silent"] => failed(3, String::new()),
                _ => failed(127, format!("{script}: not found\n")),
            })
        })
    }
}

/// An issue tracker that keeps its tickets in memory.
#[derive(Default)]
pub(crate) struct TicketList(pub(crate) Mutex<Vec<Ticket>>);

impl IssueTracker for TicketList {
    fn file(&self, ticket: Ticket) -> PortFuture<'_, ()> {
        self.0.lock().unwrap().push(ticket);
        Box::pin(async { Ok(()) })
    }
}

/// A model that returns the instruction followed by the text, or only the text if JSON is
/// requested. The type also implements a toolbox and an agent host, which return what they receive.
pub(crate) struct Echo;

impl ToolBox for Echo {
    fn call(&self, name: String, arguments: String) -> PortFuture<'_, String> {
        Box::pin(async move { Ok(format!("the result of {name}: {arguments}")) })
    }
}

impl Delegates for Echo {
    fn ask(&self, delegation: Delegation) -> PortFuture<'_, Delegated> {
        let Delegation { agent, message, .. } = delegation;
        Box::pin(async move { Ok(Delegated::Answer(format!("the answer of {agent}: {message}"))) })
    }
}

impl Inference for Echo {
    fn ask(&self, question: Question) -> PortFuture<'_, Reply> {
        let Question { instruction, text, .. } = question;
        let text =
            if instruction.contains("JSON") { text } else { format!("{instruction} {text}") };
        Box::pin(async { Ok(Reply { text, tokens: 10 }) })
    }

    fn embed(&self, text: String) -> PortFuture<'_, Embedding> {
        let vector = text.bytes().take(3).map(f64::from).collect();
        Box::pin(async { Ok(Embedding { vector, tokens: 1 }) })
    }
}

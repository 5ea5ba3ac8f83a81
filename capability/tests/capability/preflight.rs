//! Tests of policy enforcement: a denied program does not run. If a target is unknown before the
//! program runs, the policy decides when the call is made.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use wattle_capability::egress::{Incoming, Outgoing, StatusCode};
use wattle_capability::files::Files;
use wattle_capability::fs::Fs;
use wattle_capability::http::{Backend, Http, Response};
use wattle_capability::kv::{InMemory, Kv};
use wattle_capability::policy::{Answer, Approver, Policy, Preflight, Request as Questions, Rule};
use wattle_capability::{ALL, pure_grants};
use wattle_rt::{Failure, Grants, Limits, Outcome, Run, RunError, Runtime};

wattle_rt::capability! {
    /// Counts its calls.
    const PROBE: "probe" 1;

    /// Increments the counter.
    #[example = "(call $probe.hit) (i32.const 0)"]
    fn hit() with Probe = hit;
}

fn hit(probe: Arc<Probe>, _run: &mut Run) -> Result<(), Failure> {
    probe.0.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

#[derive(Clone, Default)]
struct Probe(Arc<AtomicUsize>);

impl wattle_rt::Config for Probe {
    const CAPABILITIES: &'static [&'static str] = &["probe"];
}

/// A backend that answers every request and records it.
#[derive(Default)]
struct Web(Mutex<Vec<String>>);

impl Backend for Web {
    fn send(
        &self,
        request: Outgoing,
    ) -> Pin<Box<dyn Future<Output = Result<Incoming, Failure>> + Send + '_>> {
        self.0.lock().unwrap().push(request.request().url.clone());
        let response =
            Response { status: StatusCode::OK, headers: Default::default(), body: "ok".into() };
        Box::pin(async move { Ok(request.answer(response)) })
    }
}

/// An approver that takes its answers from a list and records the questions.
#[derive(Default)]
struct Person {
    answers: Mutex<Vec<Answer>>,
    questions: Mutex<Vec<String>>,
}

impl Approver for Person {
    fn ask<'a>(
        &'a self,
        request: Questions<'a>,
    ) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        let words = request
            .questions
            .iter()
            .map(|(question, line)| format!("{question} | {}", line.as_ref().unwrap()));
        self.questions.lock().unwrap().push(words.collect::<Vec<_>>().join("\n"));
        let answer = self.answers.lock().unwrap().pop().unwrap_or(Answer::No(String::new()));
        Box::pin(async move { answer })
    }
}

struct World {
    runtime: Runtime,
    probe: Probe,
    web: Arc<Web>,
    files: Arc<Files>,
    person: Arc<Person>,
    grants: Arc<Grants>,
}

fn rules(list: &[&str]) -> Vec<Rule> {
    list.iter().map(|rule| rule.parse().unwrap()).collect()
}

impl World {
    fn new(allow: &[&str], ask: &[&str], deny: &[&str]) -> World {
        World::asking(Policy::new(rules(allow), rules(ask), rules(deny)), &[])
    }

    fn asking(policy: Policy, answers: &[Answer]) -> World {
        let all: Vec<_> = ALL.iter().copied().chain([PROBE]).collect();
        let (probe, web, person) =
            (Probe::default(), Arc::new(Web::default()), Arc::new(Person::default()));
        *person.answers.lock().unwrap() = answers.iter().rev().cloned().collect();
        let approver =
            (!answers.is_empty()).then(|| Arc::<Person>::clone(&person) as Arc<dyn Approver>);
        let files = Arc::new(Files::overlay(None, 1 << 20));
        let grants = pure_grants()
            .with(probe.clone())
            .with(Http::new(Arc::<Web>::clone(&web)))
            .with(Fs(Arc::clone(&files)))
            .with(Kv {
                session: Arc::new(InMemory::default()),
                tenant: Arc::new(InMemory::default()),
            })
            .guarded(Arc::new(Preflight::new(policy, approver)));
        let runtime = Runtime::new(&all, Limits { instances: 4, ..Limits::default() }).unwrap();
        World { runtime, probe, web, files, person, grants: Arc::new(grants) }
    }

    async fn run(&self, source: &str, args: &[&str]) -> Result<Outcome, String> {
        let program = self.runtime.prepare(source).await.unwrap();
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        match self.runtime.run(&program, &self.grants, args).await {
            Ok(outcome) => Ok(outcome),
            Err(RunError::Refused(why)) => Err(why),
            Err(other) => panic!("{other}"),
        }
    }

    fn hits(&self) -> usize {
        self.probe.0.load(Ordering::Relaxed)
    }
}

const FETCH: &str = "(call $probe.hit)\n(argv 0 $u)\n(local $b i32) (local $e i32)\n(call \
                     $http.get (local.get $u)) (local.set $e) (local.set $b)\n(check $e)\n(resv \
                     $b)\n(i32.const 0)";
/// A program that reads the URL of its request from the state, so that the host is unknown before
/// the run.
const FOLLOW: &str = "(call $probe.hit)\n(argv 0 $u)\n(check (call $kv.set \"next\" (local.get \
                      $u)))\n(local $b i32) (local $e i32)\n(call $kv.get \"next\") (drop) \
                      (local.set $u)\n(call $http.get (local.get $u)) (local.set $e) (local.set \
                      $b)\n(check $e)\n(resv $b)\n(i32.const 0)";

#[tokio::test]
async fn a_refused_program_calls_no_host_function() {
    let world = World::new(&[], &[], &["host:evil.example"]);
    let why = world.run(FETCH, &["https://evil.example/x"]).await.unwrap_err();
    assert_eq!(
        why,
        "`http.get` may not reach https://evil.example/x (denied by the rule `host:evil.example`) \
         (line 4: (call $http.get (local.get $u)) (local.set $e) (local.set $b)); remove \
         `host:evil.example` from the setting `deny` to permit it"
    );
    assert_eq!((world.hits(), world.web.0.lock().unwrap().len()), (0, 0));

    world.run(FETCH, &["https://good.example/x"]).await.unwrap();
    assert_eq!((world.hits(), world.web.0.lock().unwrap().len()), (1, 1));
}

#[tokio::test]
async fn an_unknown_target_is_decided_at_the_call() {
    let world = World::new(&["host:good.example"], &[], &["http"]);
    assert!(world.run(FOLLOW, &["https://good.example/x"]).await.unwrap().success());
    let outcome = world.run(FOLLOW, &["https://evil.example/x"]).await.unwrap();
    let failure = outcome.failure.unwrap();
    assert_eq!(failure.failure.code, wattle_rt::Code::EACCESS);
    assert!(failure.failure.reason.contains("rule `http`"), "{}", failure.failure.reason);
    assert!(failure.failure.reason.ends_with("`--allow host:evil.example` would permit it"));
    assert_eq!(*world.web.0.lock().unwrap(), ["https://good.example/x"]);
    assert_eq!(world.hits(), 2);
}

#[tokio::test]
async fn without_an_approver_a_question_is_a_denial() {
    let world = World::new(&[], &["http"], &[]);
    let why = world.run(FETCH, &["https://a.example/"]).await.unwrap_err();
    assert!(
        why.contains("nobody was there to approve it")
            && why.contains("`--allow host:a.example` would permit it"),
        "{why}"
    );
    assert_eq!(world.hits(), 0);
}

#[tokio::test]
async fn approvals_are_for_once_or_for_the_session() {
    let policy = || Policy::new(Vec::new(), rules(&["http"]), Vec::new());
    let answers = [Answer::Yes, Answer::No(String::new()), Answer::Always];
    let world = World::asking(policy(), &answers);
    world.run(FETCH, &["https://a.example/1"]).await.unwrap();
    assert!(
        world
            .run(FETCH, &["https://a.example/2"])
            .await
            .unwrap_err()
            .contains("the user denied it")
    );
    world.run(FETCH, &["https://a.example/3"]).await.unwrap();
    world.run(FETCH, &["https://a.example/4"]).await.unwrap();
    assert_eq!(
        world.person.questions.lock().unwrap().len(),
        3,
        "the approval for the session covers the fourth run"
    );
    assert_eq!(
        world.person.questions.lock().unwrap()[0],
        "`http.get` would reach https://a.example/1 | line 4: (call $http.get (local.get $u)) \
         (local.set $e) (local.set $b)"
    );
    // A different host raises a new question, which is denied because no answers are left.
    assert!(world.run(FETCH, &["https://b.example/"]).await.is_err());
    assert_eq!((world.hits(), world.web.0.lock().unwrap().len()), (3, 3));
}

#[tokio::test]
async fn an_approval_once_permits_as_many_calls_as_the_question_says() {
    let post = r#"(out (http.post "https://a.example/" "data" ""))"#;
    let many = format!(r#"(each $x (str.split "1,2,3" ",") {post})"#);
    let write = r#"(each $x (str.split "1,2,3" ",") (fs.write "a" $x))"#;
    for (source, rule, answer, succeeds, sent, question) in [
        (many.as_str(), "http", Answer::Yes, false, 1, "reach https://a.example/ |"),
        (many.as_str(), "http", Answer::Always, true, 3, "reach https://a.example/ |"),
        (&format!("{post} {post}"), "http", Answer::Yes, true, 2, ", up to 2 times |"),
        (&format!("{post} {many}"), "http", Answer::Yes, false, 2, ", up to 2 times |"),
        // What does not leave the machine is not counted.
        (write, "fs", Answer::Yes, true, 0, "write a |"),
    ] {
        let policy = Policy::new(Vec::new(), rules(&[rule]), Vec::new());
        let world = World::asking(policy, &[answer]);
        let outcome = world.run(source, &[]).await.unwrap();
        assert_eq!(outcome.success(), succeeds, "{source}: {:?}", outcome.failure);
        assert_eq!(world.web.0.lock().unwrap().len(), sent, "{source}");
        let asked = world.person.questions.lock().unwrap().join("\n");
        assert!(asked.contains(question), "{asked}");
        if !succeeds {
            let failure = format!("{:?}", outcome.failure);
            assert!(failure.contains("the user approved it for fewer calls"), "{failure}");
        }
    }
}

#[tokio::test]
async fn an_approval_of_one_resource_covers_no_other() {
    let get = |key: &str| format!("(call $kv.get {key:?}) (drop) (drop) (i32.const 0)");
    let set = |key: &str| format!("(call $kv.set {key:?} \"v\")");
    let list = |path: &str| format!("(call $fs.list {path:?}) (drop) (drop) (i32.const 0)");
    let write = |path: &str| format!("(call $fs.write {path:?} \"v\")");
    for (rule, approved, others) in [
        ("kv", get(""), vec![get("k"), get("user.a")]),
        ("kv", set("user"), vec![set("user.a"), set("us"), set("")]),
        ("fs", list("/"), vec![list("notes"), list("notes/a")]),
        ("fs", write("a"), vec![write("a/b"), write("ab")]),
    ] {
        let policy = Policy::new(Vec::new(), rules(&[rule]), Vec::new());
        let world = World::asking(policy, &[Answer::Always]);
        let _outcome = world.run(&approved, &[]).await.unwrap();
        let _again = world.run(&approved, &[]).await.unwrap();
        assert_eq!(world.person.questions.lock().unwrap().len(), 1, "{approved}");
        for other in &others {
            let why = world.run(other, &[]).await.unwrap_err();
            assert!(why.contains("the user denied it"), "{other}: {why}");
        }
    }
}

#[tokio::test]
async fn an_approval_does_not_permit_what_is_denied() {
    let policy = Policy::new(Vec::new(), rules(&["http"]), rules(&["host:evil.example"]));
    let world = World::asking(policy, &[Answer::Yes, Answer::Yes]);
    assert!(world.run(FOLLOW, &["https://a.example/"]).await.unwrap().success());
    assert!(!world.run(FOLLOW, &["https://evil.example/"]).await.unwrap().success());
    assert_eq!(*world.web.0.lock().unwrap(), ["https://a.example/"]);
    assert!(
        world.person.questions.lock().unwrap()[0].starts_with("`http.get` would reach any host")
    );
}

#[tokio::test]
async fn a_rule_on_a_link_decides_about_paths_through_it() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("vault/deep")).unwrap();
    std::fs::write(dir.path().join("vault/deep/token"), "s3").unwrap();
    std::os::unix::fs::symlink("vault", dir.path().join("open")).unwrap();
    std::os::unix::fs::symlink("open/deep", dir.path().join("short")).unwrap();
    let world = World::new(&[], &[], &["path:open"]);
    let base = Files::open_base(dir.path()).unwrap();
    let files = Arc::new(Files::overlay(Some(base), 1 << 20));
    let grants = Arc::new(world.grants.as_ref().clone().with(Fs(Arc::clone(&files))));
    for source in [
        "(local $e i32) (call $fs.read \"short/token\") (local.set $e) (drop) (local.get $e)",
        "(call $fs.write \"short/token\" \"mine\")",
        "(call $fs.write \"short/new\" \"mine\")",
        "(call $fs.remove \"short/token\")",
        "(call $fs.move \"short/token\" \"here\")",
    ] {
        let program = world.runtime.prepare(source).await.unwrap();
        let outcome = world.runtime.run(&program, &grants, Vec::new()).await.unwrap();
        let why = outcome.failure.unwrap_or_else(|| panic!("{source}")).failure;
        assert!(why.reason.contains("rule `path:/open`"), "{why}");
    }
    assert!(files.changes().unwrap().is_empty());
}

#[tokio::test]
async fn paths_are_decided_by_their_targets() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("secret")).unwrap();
    std::fs::write(dir.path().join("secret/token"), "s3").unwrap();
    std::os::unix::fs::symlink("secret", dir.path().join("open")).unwrap();
    let world = World::new(&[], &[], &["path:secret"]);
    let base = Files::open_base(dir.path()).unwrap();
    let grants = Arc::new(
        world.grants.as_ref().clone().with(Fs(Arc::new(Files::overlay(Some(base), 1 << 20)))),
    );
    for source in [
        "(local $e i32) (call $fs.read \"open/token\") (local.set $e) (drop) (local.get $e)",
        "(call $fs.write \"open/token\" \"mine\")",
        "(call $fs.remove \"open/token\")",
        "(call $fs.move \"open/token\" \"here\")",
    ] {
        let program = world.runtime.prepare(source).await.unwrap();
        let outcome = world.runtime.run(&program, &grants, Vec::new()).await.unwrap();
        let why = outcome.failure.unwrap_or_else(|| panic!("{source}")).failure;
        assert!(why.reason.contains("rule `path:/secret`"), "{why}");
    }
    assert!(world.files.changes().unwrap().is_empty());
}

/// A program that appends a word from the state to the start of a name, so that only the start is
/// known before the run.
fn appending(call: &str, start: &str) -> String {
    format!(
        "(check (kv.set \"rest\" (arg 0))) (let $name (str.cat {start:?} (kv.get \"rest\"))) {call}"
    )
}

#[tokio::test]
async fn an_approval_of_a_start_ends_at_a_boundary() {
    let get = appending("(drop (http.get? $name))", "http://other.example");
    for (rest, is_reached) in [
        ("/page", true),
        (":443/", true),
        (".evil.example/", false),
        (".evil.example:80/", false),
        ("x/", false),
        ("-evil.example/", false),
        ("@evil.example/", false),
        (":80@evil.example/", false),
        (":8080/", false),
        ("%2Eevil.example/", false),
        ("\u{3002}evil.example/", false),
        ("./", true),
    ] {
        let policy = Policy::new(Vec::new(), rules(&["http"]), Vec::new());
        let world = World::asking(policy, &[Answer::Yes]);
        _ = world.run(&get, &[rest]).await.unwrap();
        let asked = world.person.questions.lock().unwrap().join("\n");
        assert!(
            asked.starts_with("`http.get` would reach any host that is other.example"),
            "{asked}"
        );
        let sent = world.web.0.lock().unwrap().len();
        assert_eq!(sent, usize::from(is_reached), "{rest}");
    }
    let write = appending("(fs.write? $name \"x\")", "notes/a");
    for (rest, is_written) in [("b", true), ("b/c", false), ("/../../b", false), ("/c", false)] {
        let policy = Policy::new(Vec::new(), rules(&["write:*"]), Vec::new());
        let world = World::asking(policy, &[Answer::Yes]);
        _ = world.run(&write, &[rest]).await.unwrap();
        let asked = world.person.questions.lock().unwrap().join("\n");
        let words = "`fs.write` would write any file in \"notes\" whose name starts with \"a\"";
        assert!(asked.starts_with(words), "{asked}");
        assert_eq!(!world.files.changes().unwrap().is_empty(), is_written, "{rest}");
    }
}

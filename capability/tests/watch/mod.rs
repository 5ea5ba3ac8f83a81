//! Backends that record the calls they receive, so that a test can check which effects took place.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test cannot go on without its world")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use wattle_capability::PortFuture;
use wattle_capability::agent::{Delegated, Delegates, Delegation};
use wattle_capability::ai::{Embedding, Inference, Question, Reply};
use wattle_capability::egress::{Incoming, Outgoing, Passage};
use wattle_capability::files::{EntryKind, Files};
use wattle_capability::git::Repository;
use wattle_capability::image::ImageGenerator;
use wattle_capability::issue::{IssueTracker, Ticket};
use wattle_capability::kv::{self, Change};
use wattle_capability::memory::{Item, Memory, NewItem};
use wattle_capability::par::{Programs, Work};
use wattle_capability::policy::{Policy, Preflight, Rule, Verdict};
use wattle_capability::search::{Nearest, Query};
use wattle_capability::tool::ToolBox;
use wattle_capability::{http, web};
use wattle_rt::{Grants, Guard, GuardFuture, NestedContext, Outcome, Preview, Target};

/// The recorded effects, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<(Target, String)>>>);

impl Log {
    pub(crate) fn add(&self, target: Target, text: impl Into<String>) {
        self.0.lock().unwrap().push((target, text.into()));
    }

    pub(crate) fn take(&self) -> Vec<(Target, String)> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    /// Wraps a backend so that its effects are recorded. Each recorded key is preceded by `prefix`.
    pub(crate) fn of<T: ?Sized>(
        &self,
        inner: Arc<T>,
        target: Target,
        prefix: &'static str,
    ) -> Arc<Watched<T>> {
        Arc::new(Watched { inner, log: self.clone(), target, prefix })
    }
}

pub(crate) struct Watched<T: ?Sized> {
    inner: Arc<T>,
    log: Log,
    target: Target,
    prefix: &'static str,
}

impl http::Backend for Watched<dyn http::Backend> {
    fn send(&self, outgoing: Outgoing) -> PortFuture<'_, Incoming> {
        self.log.add(self.target, outgoing.request().url.clone());
        self.inner.send(outgoing)
    }
}

impl Inference for Watched<dyn Inference> {
    fn ask(&self, question: Question) -> PortFuture<'_, Reply> {
        self.log.add(self.target, "");
        self.inner.ask(question)
    }

    fn embed(&self, text: String) -> PortFuture<'_, Embedding> {
        self.log.add(self.target, "");
        self.inner.embed(text)
    }
}

impl ImageGenerator for Watched<dyn ImageGenerator> {
    fn generate(&self, prompt: String, passage: Passage) -> PortFuture<'_, Vec<u8>> {
        self.log.add(self.target, "");
        self.inner.generate(prompt, passage)
    }
}

impl Repository for Watched<dyn Repository> {
    fn commit_push(&self, message: String) -> PortFuture<'_, String> {
        self.log.add(Target::ReadTree, "/");
        self.log.add(Target::Write, "/.git");
        self.log.add(self.target, "");
        self.inner.commit_push(message)
    }
}

impl Delegates for Watched<dyn Delegates> {
    fn ask(&self, delegation: Delegation) -> PortFuture<'_, Delegated> {
        self.log.add(self.target, delegation.agent.as_str());
        self.inner.ask(delegation)
    }
}

impl ToolBox for Watched<dyn ToolBox> {
    fn call(&self, name: String, arguments: String) -> PortFuture<'_, String> {
        self.log.add(self.target, name.as_str());
        self.inner.call(name, arguments)
    }
}

impl IssueTracker for Watched<dyn IssueTracker> {
    fn file(&self, ticket: Ticket) -> PortFuture<'_, ()> {
        self.log.add(self.target, "");
        self.inner.file(ticket)
    }
}

impl Memory for Watched<dyn Memory> {
    fn add(&self, call: Option<String>, item: NewItem) -> PortFuture<'_, i32> {
        self.log.add(self.target, "");
        self.inner.add(call, item)
    }

    fn remove(&self, call: Option<String>, id: i32) -> PortFuture<'_, bool> {
        self.log.add(self.target, "");
        self.inner.remove(call, id)
    }

    fn list(&self, max: usize) -> PortFuture<'_, Vec<Item>> {
        self.log.add(self.target, "");
        self.inner.list(max)
    }

    fn items(&self, ids: Vec<i32>) -> PortFuture<'_, Vec<Item>> {
        self.log.add(self.target, "");
        self.inner.items(ids)
    }

    fn by_words(&self, query: Query) -> PortFuture<'_, Vec<(i32, f64)>> {
        self.log.add(self.target, "");
        self.inner.by_words(query)
    }

    fn without_vector(
        &self,
        model: String,
        first: Vec<i32>,
        max: usize,
    ) -> PortFuture<'_, Vec<(i32, String)>> {
        self.log.add(self.target, "");
        self.inner.without_vector(model, first, max)
    }

    fn add_vectors(&self, model: String, vectors: Vec<(i32, Vec<u8>)>) -> PortFuture<'_, ()> {
        self.log.add(self.target, "");
        self.inner.add_vectors(model, vectors)
    }

    fn nearest(&self, model: String, nearest: Nearest<i32>) -> PortFuture<'_, Vec<(i32, f64)>> {
        self.log.add(self.target, "");
        self.inner.nearest(model, nearest)
    }
}

impl kv::Backend for Watched<dyn kv::Backend> {
    fn get(&self, key: String) -> PortFuture<'_, Option<Vec<u8>>> {
        self.log.add(Target::Key, format!("{}{key}", self.prefix));
        self.inner.get(key)
    }

    fn update(&self, key: String, change: Change) -> PortFuture<'_, ()> {
        self.log.add(Target::Key, format!("{}{key}", self.prefix));
        self.inner.update(key, change)
    }

    fn keys(&self, prefix: String) -> PortFuture<'_, Vec<String>> {
        self.log.add(Target::Keys, format!("{}{prefix}", self.prefix));
        self.inner.keys(prefix)
    }
}

impl Programs for Watched<dyn Programs> {
    fn run(
        &self,
        work: Work,
        args: Vec<String>,
        grants: Arc<Grants>,
        place: NestedContext,
    ) -> PortFuture<'_, Outcome> {
        let name = if let Work::Named(name) = &work { name.clone() } else { String::new() };
        self.log.add(self.target, name);
        self.inner.run(work, args, grants, place)
    }

    fn check(&self, work: Work) -> PortFuture<'_, ()> {
        self.inner.check(work)
    }

    fn is_exclusive(&self, work: &Work) -> bool {
        self.inner.is_exclusive(work)
    }

    fn in_order(
        &self,
        name: &str,
        args: Vec<(String, String)>,
    ) -> Result<Vec<String>, wattle_rt::Failure> {
        self.inner.in_order(name, args)
    }
}

/// Returns all files and folders, by path. The content of a folder is `None`.
pub(crate) fn snapshot(files: &Files) -> BTreeMap<String, Option<Vec<u8>>> {
    fn walk(files: &Files, folder: &str, found: &mut BTreeMap<String, Option<Vec<u8>>>) {
        for entry in files.list(folder).unwrap() {
            let path = format!("{}/{}", folder.trim_end_matches('/'), entry.name);
            if entry.kind == EntryKind::Folder {
                found.insert(path.clone(), None);
                walk(files, &path, found);
            } else {
                found.insert(path.clone(), Some(files.read(&path).unwrap().to_vec()));
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(files, "/", &mut found);
    found
}

/// Returns the paths that differ between two snapshots.
pub(crate) fn written(
    before: &BTreeMap<String, Option<Vec<u8>>>,
    after: &BTreeMap<String, Option<Vec<u8>>>,
) -> Vec<String> {
    let all: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    all.into_iter().filter(|path| before.get(*path) != after.get(*path)).cloned().collect()
}

/// Creates a run's files. Each file contains a canary string that includes the file's path, and
/// each folder contains a file with the folder's canary.
pub(crate) fn canaries(paths: impl IntoIterator<Item = String>) -> Files {
    let files = Files::overlay(None, 64 << 20);
    for path in paths {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        // A path may be listed both as a file and as a folder. The first use wins.
        _ = files.write(
            &format!("{folder}/canary.name"),
            format!("{CANARY}{folder}/] cats sleep").as_bytes(),
        );
        _ = files.write(&path, format!("{CANARY}{path}] cats sleep a lot, hello").as_bytes());
    }
    files
}

const CANARY: &str = "CANARY[";

/// Returns the paths whose canaries appear in a string. If the string contains the name of a canary
/// file, the program has listed a folder, and the root is returned too.
pub(crate) fn read(text: &str) -> Vec<(Target, String)> {
    let lower = CANARY.to_lowercase();
    let after = text.split(CANARY).skip(1).chain(text.split(&lower).skip(1));
    let paths =
        after.filter_map(|rest| rest.split(']').next()).map(|path| (Target::Read, path.to_owned()));
    let names = text.contains("canary.name").then(|| (Target::Read, "/".to_owned()));
    paths.chain(names).collect()
}

/// A guard that allows every program to start and decides at each call.
pub(crate) struct AtCallOnly(pub(crate) Preflight);

impl Guard for AtCallOnly {
    fn before<'a>(&'a self, _: Preview<'a>) -> GuardFuture<'a> {
        Box::pin(async { Ok(Arc::new(AtCallOnly(self.0.clone())) as Arc<dyn Guard>) })
    }

    fn call(
        &self,
        capability: &str,
        function: &str,
        target: Target,
        text: &str,
    ) -> Result<(), String> {
        self.0.call(capability, function, target, text)
    }

    fn secret(&self, name: &str) -> Result<(), String> {
        self.0.secret(name)
    }
}

/// Returns four guards that apply a rule, each with a description. They apply it as a deny rule or
/// as an ask rule, and either before the program starts or only at each call.
pub(crate) fn guards(rule: &str) -> Vec<(&'static str, Arc<dyn Guard>)> {
    let rule: Rule = rule.parse().unwrap();
    let policy = |verdict| match verdict {
        Verdict::Ask => Policy::new(Vec::new(), vec![rule.clone()], Vec::new()),
        _ => Policy::new(Vec::new(), Vec::new(), vec![rule.clone()]),
    };
    let preflight = |verdict| Preflight::new(policy(verdict), None);
    vec![
        ("deny", Arc::new(preflight(Verdict::Deny))),
        ("ask", Arc::new(preflight(Verdict::Ask))),
        ("deny at the call", Arc::new(AtCallOnly(preflight(Verdict::Deny)))),
        ("ask at the call", Arc::new(AtCallOnly(preflight(Verdict::Ask)))),
    ]
}

/// Returns the rules that could cover the effects: a rule on each capability and, for each effect,
/// rules on its resource and on all resources of its kind.
pub(crate) fn rules_about(done: &[(Target, String)]) -> Vec<String> {
    let words = wattle_capability::ALL.iter().map(|capability| capability.name.to_owned());
    let mut rules: Vec<String> = words.chain(["*".to_owned()]).collect();
    for (target, text) in done {
        rules.extend(match target {
            &Target::Url | &Target::Service(&web::ENGINE) => {
                let host = text.split('/').nth(2).unwrap_or_default();
                vec!["host:*".to_owned(), format!("host:{host}")]
            }
            Target::Read | Target::ReadTree => {
                vec!["read:/".to_owned(), "path:/".to_owned(), format!("read:{text}")]
            }
            Target::Write | Target::Tree => {
                vec!["write:/".to_owned(), "path:/".to_owned(), format!("write:{text}")]
            }
            Target::Key | Target::Keys => vec!["key:".to_owned(), format!("key:{text}")],
            Target::Program if text.is_empty() => vec!["program:*".to_owned()],
            Target::Program => vec!["program:*".to_owned(), format!("program:{text}")],
            Target::Agent => vec!["agent:*".to_owned()],
            Target::Tool => vec!["tool:*".to_owned(), format!("tool:{text}")],
            Target::Service(_) => {
                vec!["host:*".to_owned(), "write:/".to_owned(), "key:".to_owned()]
            }
        });
    }
    // A host rule without a host comes from a service whose host is unknown to the tests.
    rules.retain(|rule| rule != "host:");
    rules.sort();
    rules.dedup();
    rules
}

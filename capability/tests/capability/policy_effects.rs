//! Runs the example of every function under every rule that could cover it. A denied effect must
//! never reach a backend. The same applies to an effect that needs approval if there is no user to
//! approve it. Both must hold whether the decision is made before the program starts or at each
//! call.

use std::collections::BTreeSet;
use std::sync::Arc;

use wattle_capability::agent::{Agents, Delegates};
use wattle_capability::ai::{self, Ai, Budget, Inference};
use wattle_capability::files::Files;
use wattle_capability::fs::Fs;
use wattle_capability::git::{self, Git, Repository};
use wattle_capability::http::{self, Http};
use wattle_capability::image::{self, Image, ImageGenerator};
use wattle_capability::issue::{self, IssueTracker, Issues};
use wattle_capability::kv::{self, InMemory, Kv};
use wattle_capability::memory::{self, Memory, MemoryGrant};
use wattle_capability::par::{Par, Programs};
use wattle_capability::policy::Verdict;
use wattle_capability::publish::{self, Publish};
use wattle_capability::tool::{ToolBox, Tools};
use wattle_capability::web::{self, Engine, EngineKind, Web};
use wattle_capability::{ALL, sys};
use wattle_rt::{Argument, Function, Guard, Program, Reach, Target};

use crate::reference;
use crate::watch::{self, Log};
use crate::world::{self, World};

/// The result of running an example.
struct ExampleResult {
    /// The effects that reached a backend.
    done: Vec<(Target, String)>,
    /// If true, the program succeeded with the output that the function's row documents.
    as_documented: bool,
    files: BTreeSet<String>,
}

/// Runs an example with the given files and guard and records the effects on all backends.
async fn attempt(
    world: &World,
    program: &Program,
    function: &Function,
    files: Files,
    guard: Option<Arc<dyn Guard>>,
) -> ExampleResult {
    let log = Log::default();
    let network = || Arc::new(world::Web) as Arc<dyn http::Backend>;
    let state =
        |prefix| log.of(Arc::new(InMemory::default()) as Arc<dyn kv::Backend>, Target::Key, prefix);
    let service = Target::Service;
    let (files, public) = (Arc::new(files), Arc::new(Files::overlay(None, 1 << 20)));
    let (before, public_before) = (watch::snapshot(&files), watch::snapshot(&public));
    let engine = Engine::with_backend(
        log.of(network(), service(&web::ENGINE), ""),
        EngineKind::Searxng,
        "https://search.example/",
    );
    let programs = Arc::new(world::ProgramTexts(world.runtime.clone())) as Arc<dyn Programs>;
    let mut grants = (*world.grants())
        .clone()
        .with(Http::new(log.of(network(), Target::Url, "")))
        .with(Web::new(engine.map(Arc::new)))
        .with(Kv { session: state(""), tenant: state("tenant:") })
        .with(MemoryGrant::new(
            log.of(
                Arc::new(memory::InMemory::default()) as Arc<dyn Memory>,
                service(&memory::STORE),
                "",
            ),
            None,
        ))
        .with(Fs(Arc::clone(&files)))
        .with(Par::new(log.of(programs, Target::Program, "")))
        .with(Agents(log.of(Arc::new(world::Echo) as Arc<dyn Delegates>, Target::Agent, "")))
        .with(Tools(log.of(Arc::new(world::Echo) as Arc<dyn ToolBox>, Target::Tool, "")))
        .with(Issues::new(log.of(
            Arc::clone(&world.tracker) as Arc<dyn IssueTracker>,
            service(&issue::TICKETS),
            "",
        )))
        .with(Git(log.of(
            Arc::new(world::Pushed) as Arc<dyn Repository>,
            service(&git::REMOTE),
            "",
        )))
        .with(Publish(Some(Arc::clone(&public))))
        .with(Image::new(Some(log.of(
            Arc::new(world::OnePicture) as Arc<dyn ImageGenerator>,
            service(&image::IMAGES),
            "",
        ))))
        .with(Ai::new(
            log.of(Arc::new(world::Echo) as Arc<dyn Inference>, service(&ai::MODEL), ""),
            Budget { calls: 3, tokens: 1_000 },
        ));
    if let Some(guard) = guard {
        grants = grants.guarded(guard);
    }
    let args = vec!["one".to_owned(), "two".to_owned()];
    let outcome = world.runtime.run(program, &Arc::new(grants), args).await;
    let after = watch::snapshot(&files);
    watch::written(&before, &after).into_iter().for_each(|path| log.add(Target::Write, path));
    if !watch::written(&public_before, &watch::snapshot(&public)).is_empty() {
        log.add(service(&publish::PUBLIC), "");
    }
    let mut as_documented = false;
    if let Ok(outcome) = outcome {
        if !outcome.artifacts.is_empty() {
            log.add(service(&sys::ARTIFACTS), "");
        }
        let shown = format!("{:?} {:?} {:?}", outcome.texts(), outcome.log, outcome.failure);
        watch::read(&shown).into_iter().for_each(|(target, path)| log.add(target, path));
        as_documented = outcome.success() && outcome.texts() == function.output;
    }
    ExampleResult {
        done: log.take(),
        as_documented,
        files: after.into_iter().filter(|(_, data)| data.is_some()).map(|(path, _)| path).collect(),
    }
}

/// Returns the targets that the program's authority lists for its calls to `function`.
fn named(program: &Program, function: &Function) -> Vec<(Target, String)> {
    let uses = program.authority().uses().iter();
    let own = uses
        .filter(|one| format!("{}.{}", one.function.module, one.function.name) == function.name);
    let mut named = Vec::new();
    for reach in own.flat_map(|one| one.reaches()) {
        match reach {
            Reach::Named(target, Argument::OneOf(texts)) => {
                named.extend(
                    texts.iter().filter_map(|text| Some((target, text.whole()?.to_owned()))),
                );
            }
            Reach::Always(touch) => named.push((touch.target, touch.text.to_owned())),
            Reach::Named(..) | Reach::Any(_) => {}
        }
    }
    named
}

/// Returns true if `rule` covers an effect when used as a deny rule, no matter which function
/// causes the effect.
fn forbids(rule: &str, target: Target, text: &str) -> bool {
    reference::verdict(&[(rule.to_owned(), Verdict::Deny)], "", target, text) == Verdict::Deny
}

#[tokio::test]
async fn no_row_has_an_effect_that_is_denied_or_not_approved() {
    let world = World::new();
    let (mut wrong, mut runs) = (Vec::new(), 0_usize);
    let functions = ALL.iter().flat_map(|capability| capability.functions);
    // The example of this function is a program that traps.
    for function in functions.filter(|function| function.name != wattle_rt::TRAP) {
        let program = world.runtime.prepare(function.example).await.unwrap();
        let open = attempt(&world, &program, function, Files::overlay(None, 64 << 20), None).await;
        if !open.as_documented {
            wrong.push(format!("{}: its example fails without any rule", function.name));
        }
        let named = named(&program, function);
        if program.authority().uses().iter().all(|one| !one.function.reaches_out()) {
            if !open.done.is_empty() {
                wrong.push(format!(
                    "{}: touches {:?}, and no row says so",
                    function.name, open.done
                ));
            }
            continue;
        }
        let capability = function.name.split('.').next().unwrap();
        let about = open.done.iter().chain(&named).cloned().collect::<Vec<_>>();
        for rule in watch::rules_about(&about).into_iter().chain([function.name.to_owned()]) {
            for (how, guard) in watch::guards(&rule) {
                runs += 1;
                let files = watch::canaries(open.files.iter().cloned());
                let ExampleResult { done, as_documented, .. } =
                    attempt(&world, &program, function, files, Some(guard)).await;
                for (target, text) in
                    done.iter().filter(|(target, text)| forbids(&rule, *target, text))
                {
                    wrong.push(format!(
                        "{} under `{how} {rule}` touches {target:?} {text:?}",
                        function.name
                    ));
                }
                // If a function names no target, a rule on its name applies only before the program
                // starts.
                let is_decided_before = named.is_empty() && how.ends_with("call");
                let by_name = (rule == function.name || rule == capability) && !is_decided_before;
                let by_touch = named.iter().any(|(target, text)| forbids(&rule, *target, text));
                let silent = function.output.is_empty() || !function.signature.reaches_out();
                if as_documented && !silent && (by_name || by_touch) {
                    wrong.push(format!(
                        "{} under `{how} {rule}` puts out what it would without",
                        function.name
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {runs} runs:\n{}", wrong.len(), wrong.join("\n"));
    assert!(runs > 4_000, "{runs} runs");
}

#[tokio::test]
async fn a_row_declares_what_its_example_touches() {
    let world = World::new();
    let mut wrong = Vec::new();
    for function in ALL.iter().flat_map(|capability| capability.functions) {
        let program = world.runtime.prepare(function.example).await.unwrap();
        let open = attempt(&world, &program, function, Files::overlay(None, 64 << 20), None).await;
        for (target, text) in named(&program, function) {
            // Without canaries, reads cannot be observed.
            let reads = matches!(target, Target::Read | Target::ReadTree | Target::Tree);
            let is_seen = |(seen, _): &(Target, String)| {
                *seen == target || matches!((seen, target), (Target::Keys, Target::Key))
            };
            let moved_back = target == Target::Write && open.done.is_empty();
            if !reads && !moved_back && !open.done.iter().any(is_seen) && text != ".git" {
                wrong.push(format!(
                    "{}: declares {target:?} {text:?}, but touches {:?}",
                    function.name, open.done
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

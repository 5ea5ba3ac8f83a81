//! Runs every example of every built-in program under every rule that could match it. A call never
//! reaches a backend if it is denied or if nobody can give the required approval.

#[path = "../../../capability/tests/reference/mod.rs"]
mod reference;
#[path = "../../../capability/tests/watch/mod.rs"]
mod watch;

use std::sync::Arc;

use watch::Log;
use wattle_agent::host::{ExampleWorld, Trusted};
use wattle_agent::{Host, Resources};
use wattle_capability::files::Files;
use wattle_capability::policy::Verdict;
use wattle_capability::{ai, git, image, publish};
use wattle_catalog::{Catalog, Entry, Example, Fixtures};
use wattle_rt::{Guard, Limits, Program, Target};
use wattle_tests::built_in_host;

/// Runs an example and returns all of its effects.
async fn effects_of(
    host: &Host,
    entry: &Entry,
    program: &Program,
    example: &Example,
    guard: Option<Arc<dyn Guard>>,
) -> Vec<(Target, String)> {
    let log = Log::default();
    let service = Target::Service;
    let scene = ExampleWorld::new(&Fixtures { files: [].into(), ..example.fixtures.clone() })
        .await
        .unwrap();
    let files = Arc::new(watch::canaries(
        example.fixtures.files.keys().map(|path| format!("/{}", path.trim_matches('/'))),
    ));
    let public = Arc::new(Files::overlay(None, 1 << 20));
    let (before, public_before) = (watch::snapshot(&files), watch::snapshot(&public));
    let access = scene.access(host);
    let Trusted { repository, image_generator, .. } = scene.trusted();
    let access = Resources {
        files: Arc::clone(&files),
        state: log.of(Arc::clone(&access.state), Target::Key, ""),
        tenant: log.of(Arc::clone(&access.tenant), Target::Key, "tenant:"),
        network: log.of(Arc::clone(&access.network), Target::Url, ""),
        programs: log.of(Arc::clone(&access.programs), Target::Program, ""),
        inference: access
            .inference
            .clone()
            .map(|model| log.of(model, service(&ai::MODEL), "") as Arc<_>),
        trusted: Some(Trusted {
            repository: log.of(repository, service(&git::REMOTE), ""),
            public: Some(Arc::clone(&public)),
            image_generator: image_generator
                .map(|inner| log.of(inner, service(&image::IMAGES), "") as Arc<_>),
        }),
        ..access
    };
    let grants = scene.grants(access);
    let grants = Arc::new(match guard {
        Some(guard) => grants.guarded(guard),
        None => grants,
    });
    if let Ok(args) = entry.arguments(&example.args)
        && let Ok(outcome) = host.runtime().run(program, &grants, args).await
    {
        let shown = format!("{:?} {:?} {:?}", outcome.texts(), outcome.log, outcome.failure);
        watch::read(&shown).into_iter().for_each(|(target, path)| log.add(target, path));
    }
    watch::written(&before, &watch::snapshot(&files))
        .into_iter()
        .for_each(|path| log.add(Target::Write, path));
    if !watch::written(&public_before, &watch::snapshot(&public)).is_empty() {
        log.add(service(&publish::PUBLIC), "");
    }
    log.take()
}

#[tokio::test]
async fn no_catalog_program_has_an_effect_that_is_denied_or_not_approved() {
    let host = built_in_host(Limits::default());
    let catalog = Catalog::built_in();
    let (mut wrong, mut runs, mut effects) = (Vec::new(), 0_usize, 0_usize);
    for entry in catalog.iter() {
        let program = host.runtime().prepare(entry.source()).await.unwrap();
        for example in &entry.meta().examples {
            let open = effects_of(&host, entry, &program, example, None).await;
            effects += open.len();
            if open.is_empty() {
                continue;
            }
            for rule in watch::rules_about(&open) {
                let about = |(target, text): &&(Target, String)| {
                    reference::verdict(&[(rule.clone(), Verdict::Deny)], "", *target, text)
                        == Verdict::Deny
                };
                // A rule that matches no effect cannot prevent one, so it is skipped.
                if !open.iter().any(|one| about(&one)) {
                    continue;
                }
                for (how, guard) in watch::guards(&rule) {
                    runs += 1;
                    let left = effects_of(&host, entry, &program, example, Some(guard)).await;
                    for (target, text) in left.iter().filter(about) {
                        wrong.push(format!(
                            "{} under `{how} {rule}` touches {target:?} {text:?}",
                            entry.name()
                        ));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {runs} runs:\n{}", wrong.len(), wrong.join("\n"));
    assert!(effects > 50 && runs > 400, "{effects} effects, {runs} runs");
}

//! `wattle demo`: plays recorded runs. The model's answers come from a script. The programs in the
//! script are actually parsed, compiled and run. They use built-in files and a built-in web site.

mod script;
mod site;

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use wattle_agent::host::capability::egress::{Egress, Policy};
use wattle_agent::host::capability::files::{Files, OVERLAY_LIMIT};
use wattle_agent::host::catalog::Catalog;
use wattle_agent::host::machine::{Envelope, Event};
use wattle_agent::host::rt::Limits;
use wattle_agent::host::{RunParts, RunRequest, STEPS_FILE};
use wattle_agent::{Host, Resources};

use crate::args::DemoArgs;
use crate::changes::{self, Fate, Rules};
use crate::fault::{Exit, Fault};
use crate::output::{self, DIM, NAME, paint};
use crate::progress::{Live, Mode};
use crate::setup;

use script::Script;
use site::Site;

/// A recorded run: its script, and the files of its workdir.
struct Demo {
    name: &'static str,
    title: &'static str,
    script: &'static str,
    files: &'static [(&'static str, &'static str)],
}

/// The demos, in the order in which they are played.
const DEMOS: &[Demo] = &[
    Demo {
        name: "fetch",
        title: "fetch a page and extract the requested part",
        script: include_str!("../../demo/fetch/script.txt"),
        files: &[],
    },
    Demo {
        name: "logs",
        title: "analyse a log; the first program is wrong and is repaired in place",
        script: include_str!("../../demo/logs/script.txt"),
        files: &[("logs/app.log", include_str!("../../demo/logs/app.log"))],
    },
    Demo {
        name: "report",
        title: "write a report from several files, into the overlay",
        script: include_str!("../../demo/report/script.txt"),
        files: &[
            ("sales/north.csv", include_str!("../../demo/report/north.csv")),
            ("sales/south.csv", include_str!("../../demo/report/south.csv")),
            ("sales/west.csv", include_str!("../../demo/report/west.csv")),
        ],
    },
];

/// Plays one demo or all demos, or lists them.
pub(crate) async fn demo(args: &DemoArgs) -> Result<Exit, Fault> {
    if args.list {
        let line = |demo: &Demo| format!("{:<8} {}\n", demo.name, demo.title);
        output::data(DEMOS.iter().map(line).collect::<String>().as_bytes())?;
        return Ok(Exit::Done);
    }
    let chosen: Vec<&Demo> = DEMOS
        .iter()
        .filter(|demo| args.name.as_deref().is_none_or(|name| name == demo.name))
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = DEMOS.iter().map(|demo| demo.name).collect();
        let fault = Fault::usage(format!("no demo `{}`", args.name.as_deref().unwrap_or_default()));
        return Err(fault.hint(format!("the demos are {}", names.join(", "))));
    }
    let host = Host::new(Limits::default(), Catalog::built_in(), Egress::new(Policy::default()))
        .map_err(Fault::failed)?;
    let site = Site::start()
        .await
        .map_err(|error| Fault::failed(format!("failed to start the demo's web site: {error}")))?;
    let cancel = setup::interrupt();
    for (at, demo) in chosen.iter().enumerate() {
        let number = format!("demo {} of {}: {}", at + 1, chosen.len(), demo.title);
        output::note(&format!("{}{}", if at == 0 { "" } else { "\n" }, paint(NAME, &number)));
        play(&host, &site, demo, &cancel).await?;
        if cancel.is_cancelled() {
            return Ok(Exit::Interrupted);
        }
    }
    output::note(&format!(
        "\n{}",
        paint(NAME, "Only the model's words were recorded; everything else happened just now.")
    ));
    output::note("Next, with a model of your own (`wattle doctor` reports what is missing):");
    output::note("  export OPENAI_API_KEY=…");
    output::note(
        "  wattle run --provider openai --model NAME \"how many files are here, and which is the \
         largest?\"",
    );
    Ok(Exit::Done)
}

/// A prepared demo: its script, its workdir and files, and the parts of its run.
struct Stage {
    script: Script,
    workdir: tempfile::TempDir,
    files: Arc<Files>,
    parts: RunParts,
}

/// Prepares a demo.
fn stage(
    host: &Host,
    site: &Site,
    demo: &Demo,
    cancel: &CancellationToken,
) -> Result<Stage, Fault> {
    let script = Script::read(demo.script, &site.base()).map_err(|what| broken(demo, &what))?;
    let workdir = tempfile::tempdir()
        .map_err(|error| Fault::failed(format!("failed to make a workdir: {error}")))?;
    lay_out(workdir.path(), demo.files)
        .map_err(|error| Fault::failed(format!("failed to lay out the files: {error}")))?;
    let base = Files::open_base(workdir.path()).map_err(Fault::failed)?;
    let files = Arc::new(Files::overlay(Some(base), OVERLAY_LIMIT));
    let access = Resources {
        network: Arc::new(Egress::new(Policy { allow: vec![site.rule()], ..Policy::default() })),
        ..Resources::new(host, Arc::clone(&files))
    };
    let model = script.cassette().map_err(|error| broken(demo, &error.to_string()))?;
    let parts = RunParts {
        trace_dir: Some(workdir.path().to_owned()),
        cancel: cancel.clone().into(),
        ..RunParts::new(host.clone(), Arc::new(model), access.grants())
    };
    Ok(Stage { script, workdir, files, parts })
}

fn broken(demo: &Demo, what: &str) -> Fault {
    Fault::failed(format!("the demo `{}` differs from its recording: {what}", demo.name))
}

/// Plays one run and compares it with its script.
async fn play(
    host: &Host,
    site: &Site,
    demo: &Demo,
    cancel: &CancellationToken,
) -> Result<(), Fault> {
    let Stage { script, workdir, files, parts } = stage(host, site, demo, cancel)?;
    output::note(&script.about);
    output::note(&format!("\n{} wattle run {:?}", paint(DIM, "$"), script.ask));

    let live = Live::new(Mode::Command, false);
    let seen = Mutex::new(Vec::new());
    let sink = |envelope: &Envelope| {
        if let Event::ToolResult { output: text, .. } | Event::Retry { error: text, .. } =
            &envelope.event
        {
            seen.lock().push(text.clone());
        }
        live.show(&envelope.event);
    };
    let request = RunRequest::new(script.ask.as_str());
    let report = wattle_agent::host::run(parts, &request, &sink).await;
    if cancel.is_cancelled() {
        return Ok(());
    }
    let fate = "in the overlay; your own runs apply them with `--apply`";
    changes::settle(&files, &Rules::default(), &Fate::Leave(fate.to_owned()))?;
    let seen = seen.into_inner();
    script.compare(&seen, &report.ending).map_err(|what| broken(demo, &what))?;
    let trace = std::fs::read_to_string(workdir.path().join(STEPS_FILE)).unwrap_or_default();
    output::aside(&format!("{STEPS_FILE} in the workdir has {} lines", trace.lines().count()));
    output::text(report.ending.text())
}

fn lay_out(workdir: &Path, files: &[(&str, &str)]) -> std::io::Result<()> {
    files.iter().try_for_each(|(path, content)| {
        let path = workdir.join(path);
        path.parent().map(std::fs::create_dir_all).transpose()?;
        std::fs::write(path, content)
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use wattle_agent::Store;
    use wattle_agent::host::engine::{Bounds, Component};
    use wattle_agent::host::journal::{self, Journal as _, RunOutcome, SharedJournal};

    use super::*;

    /// Tests that a run of each demo can be replayed from the journal without differences, even
    /// without its workdir and its model.
    #[tokio::test]
    async fn every_demo_plays_back_as_it_was() {
        let host =
            Host::new(Limits::default(), Catalog::built_in(), Egress::new(Policy::default()))
                .unwrap();
        let site = Site::start().await.unwrap();
        let store = Store::in_memory(Duration::from_secs(60))
            .unwrap()
            .tenant(&wattle_agent::Tenant::default());
        let journal: SharedJournal = Arc::new(store.clone());
        for demo in DEMOS {
            let Stage { script, workdir, parts, .. } =
                stage(&host, &site, demo, &CancellationToken::new()).unwrap();
            let request =
                RunRequest { id: demo.name.to_owned(), ..RunRequest::new(script.ask.as_str()) };
            let sink = |_: &Envelope| {};
            let ended = journal::run(parts, &request, &sink, &journal).await.unwrap();
            let RunOutcome::Done(report) = ended else { panic!("{ended:?}") };
            drop(workdir);
            assert!(
                !matches!(report.ending, wattle_agent::host::machine::Ending::Failed { .. }),
                "{report:?}"
            );
            let run = store.run(demo.name).await.unwrap().unwrap();
            let replayed = journal::replay(&host, &journal, &run, 1).await.unwrap();
            assert_eq!(replayed.difference, None, "{}", demo.name);
            assert!(replayed.programs > 1);
            let Some(binary) = wattle_cases::engine::component() else { continue };
            let folder = wattle_cases::guests::SharedGuests::in_target();
            let engine =
                Component::load(&binary, Some(folder.folder()), Bounds::default()).unwrap();
            let host = host.clone().with_engine(Some(engine));
            let by_engine = journal::replay(&host, &journal, &run, 1).await.unwrap();
            assert_eq!(by_engine, replayed, "{} with the engine", demo.name);
        }
    }
}

//! `wattle doctor`: what a run stands on, whether it stands, and how to mend what does not.

use std::time::Duration;

use serde_json::{Value as Json, json};
use wattle_agent::capability::egress::{Limits, Request};
use wattle_agent::capability::files::Files;
use wattle_agent::rt::Grants;
use wattle_agent::{Privacy, privacy};

use crate::args::DoctorArgs;
use crate::config::{Config, Layer};
use crate::fault::{Exit, Fault};
use crate::output;
use crate::output::{BAD, DIM, GOOD, paint, visible};
use crate::setup::{self, Setup};

/// How long the endpoint is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a check found: what stands, or what is wrong and how to mend it.
type Found = Result<String, Wrong>;

struct Wrong {
    what: String,
    mend: String,
}

fn wrong(what: impl ToString, mend: &str) -> Wrong {
    Wrong { what: what.to_string(), mend: mend.to_owned() }
}

/// Checks everything, also where something fails.
pub(crate) async fn doctor(args: DoctorArgs, outer: Layer) -> Result<Exit, Fault> {
    let setup = Setup::new(Config::gather(&[args.flags.into(), outer])?)?;
    let checks: [(&str, Found); 7] = [
        ("engine", engine(&setup).await),
        ("catalog", catalog(&setup).await),
        ("root", root(&setup)),
        ("store", store(&setup).await),
        ("model", model(&setup)),
        ("endpoint", endpoint(&setup).await),
        ("search", search(&setup)),
    ];
    let sound = checks.iter().all(|(_, found)| found.is_ok());
    if args.json {
        let checks: Vec<Json> = checks.iter().map(|(name, found)| to_json(name, found)).collect();
        output::json(&json!({"ok": sound, "checks": checks}))?;
    } else {
        checks.iter().try_for_each(|(name, found)| show(name, found))?;
    }
    Ok(if sound { Exit::Done } else { Exit::Failed })
}

fn to_json(name: &str, found: &Found) -> Json {
    match found {
        Ok(what) => json!({"name": name, "ok": true, "found": what, "mend": null}),
        Err(Wrong { what, mend }) => json!({"name": name, "ok": false, "found": what, "mend": mend}),
    }
}

fn show(name: &str, found: &Found) -> Result<(), Fault> {
    let below = |text: &str| visible(text).replace('\n', "\n                  ");
    let line = match found {
        Ok(what) => format!("{} {name:<9} {}", paint(GOOD, "ok     "), below(what)),
        Err(Wrong { what, mend }) => {
            let mend = paint(DIM, &format!("mend it: {}", below(mend)));
            format!("{} {name:<9} {}\n                  {mend}", paint(BAD, "broken "), below(what))
        }
    };
    output::styled(&line)
}

/// A program compiles, runs, and gives what it should.
async fn engine(setup: &Setup) -> Found {
    const MEND: &str =
        "the process needs address space and threads: raise `ulimit -v` and `ulimit -u`, or report a bug";
    let runtime = setup.host.runtime();
    let program = runtime.prepare("(resv \"well\") (i32.const 0)").await.map_err(|error| wrong(error, MEND))?;
    let grants = std::sync::Arc::new(Grants::new().allow("sys"));
    let outcome = runtime.run(&program, &grants, Vec::new()).await.map_err(|error| wrong(error, MEND))?;
    match outcome.success() && outcome.texts() == ["well"] {
        true => Ok(format!("a program ran in {} µs", outcome.duration.as_micros())),
        false => Err(wrong(format!("a program gave {:?}", outcome.exit), MEND)),
    }
}

/// Every file loads, and every program compiles and has the capabilities that it says.
async fn catalog(setup: &Setup) -> Found {
    let catalog = setup.host.catalog();
    let mut problems: Vec<String> = catalog.problems().iter().map(ToString::to_string).collect();
    for entry in catalog.iter() {
        problems.extend(setup.host.check(entry).await.err().map(|problem| problem.to_string()));
    }
    match problems.is_empty() {
        true => Ok(format!("{} programs", catalog.len())),
        false => {
            Err(wrong(problems.join("\n"), "mend the files, or leave out their folder; `wattle check FILE` tells more"))
        }
    }
}

/// The workdir can be read.
fn root(setup: &Setup) -> Found {
    let root = &setup.config.root.value;
    let listed = Files::open_base(root).and_then(|base| Files::overlay(Some(base), 0).list("/"));
    let entries = listed.map_err(|error| wrong(error, "give another directory with `--root DIR`"))?;
    Ok(format!("`{}` can be read, {} entries", root.display(), entries.len()))
}

/// The store can be written.
async fn store(setup: &Setup) -> Found {
    const MEND: &str = "name another file with `--store FILE`";
    let store = setup.store().map_err(|fault| wrong(fault, MEND))?;
    store.check().await.map_err(|error| wrong(error, MEND))?;
    let path = setup.config.store.value.clone().unwrap_or_default();
    let Privacy { open_folder, open_files } = privacy(&path);
    if let Some((file, mode)) = open_files.first() {
        let what = format!("others may read `{}` (mode {mode:03o})", file.display());
        return Err(wrong(what, "make it private with `chmod go= FILE`"));
    }
    // What others can list is the names of files; their content is private.
    let seen = open_folder.map(|(folder, mode)| format!("; others can list `{}` (mode {mode:03o})", folder.display()));
    Ok(format!("`{}` can be written, and only you can read it{}", path.display(), seen.unwrap_or_default()))
}

/// Something says which model answers, and the key that it needs is there.
fn model(setup: &Setup) -> Found {
    if let Some(path) = &setup.config.cassette.value {
        let opened = wattle_agent::model::Cassette::open(path);
        opened.map_err(|error| wrong(error, "name another recording with `--cassette FILE`"))?;
        return Ok(format!("answers come from the recording `{}`", path.display()));
    }
    let endpoint = setup::endpoint(&setup.config).map_err(no_endpoint)?;
    let key = match endpoint.key {
        Some(key) if key.is_short() => format!("key from `{}`, {}", endpoint.key_variable, setup::SHORT_KEY),
        Some(_) => format!("key from `{}`", endpoint.key_variable),
        None => "no key".to_owned(),
    };
    Ok(format!("{} at {}, {key}", endpoint.model, endpoint.base_url))
}

/// The web can be searched, if that is wanted at all. The engine is not asked: some count requests.
fn search(setup: &Setup) -> Found {
    let Some(kind) = setup.config.search_engine.value else {
        return Ok("the web cannot be searched, since `search.engine` is not set".to_owned());
    };
    let engine = setup.host.engine().map_err(|why| wrong(why, "correct `search` in the settings, or leave it out"))?;
    Ok(format!("{kind} at {}", engine.url()))
}

fn no_endpoint(fault: Fault) -> Wrong {
    let Fault::Told { message, hint, .. } = fault else { return wrong("", "") };
    wrong(
        message,
        hint.as_deref().unwrap_or("correct the setting; `wattle config show --origin` tells where it stands"),
    )
}

/// The endpoint answers at all. It is asked without the key: whether the key is right shows in a run.
async fn endpoint(setup: &Setup) -> Found {
    if setup.config.cassette.value.is_some() {
        return Ok("not needed with a recording".to_owned());
    }
    let endpoint = setup::endpoint(&setup.config).map_err(|_| wrong("no endpoint is set", "see `model`"))?;
    let url = format!("{}/models", endpoint.base_url.as_str().trim_end_matches('/'));
    let limits = Limits { time: PATIENCE, ..Limits::default() };
    let unreachable = |error| wrong(error, "is the server running, and is `--base-url` right?");
    let client = setup.host.egress().endpoint(&endpoint.base_url).map_err(unreachable)?.with_limits(limits);
    let answer = client.start(Request::get(url)).await.map_err(unreachable)?;
    Ok(format!("{} answers (status {})", endpoint.base_url, answer.status.as_u16()))
}

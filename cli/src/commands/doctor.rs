//! `wattle doctor`: checks the requirements of a run and suggests fixes.

use std::time::Duration;

use serde_json::{Value as Json, json};
use wattle_agent::host::capability::egress::{EgressError, Limits, Request};
use wattle_agent::host::capability::files::Files;
use wattle_agent::host::{Privacy, privacy};
use wattle_agent::model::{ApiKey, CLASS_PREFIX, Endpoint};

use crate::args::DoctorArgs;
use crate::config::{Config, Layer, Origin, SearchEngine, SecretEntry, StoreLocation};
use crate::confine::confine;
use crate::fault::{Exit, Fault};
use crate::output::{self, BAD, DIM, GOOD, paint, visible};
use crate::progress::counted;
use crate::setup::trusted;
use crate::setup::{self, Setup, host_files, variable};
use crate::walls::{Needs, Walls};
use crate::{api_keys, threads, trust};

/// Time limit for the endpoint's response to the check.
const PATIENCE: Duration = Duration::from_secs(5);

/// The result of a check: a description, or a fault whose hint is a suggested fix.
type Found = Result<String, Fault>;

fn wrong(what: impl ToString, fix: &str) -> Fault {
    Fault::failed(what).hint(fix)
}

/// Runs every check, even if an earlier one failed.
pub(crate) fn doctor(args: DoctorArgs, flags: &[Layer]) -> Result<Exit, Fault> {
    let (config, faults) = trust::gather_in_part(flags)?;
    let config = trust::with_trusted_content(config)?;
    let walls = confine(&config, &Needs { trusted: config.exec.value, ..Needs::default() })?;
    threads::run(run_checks(args, config, faults, walls))
}

async fn run_checks(
    args: DoctorArgs,
    config: Config,
    faults: Vec<Fault>,
    walls: Walls,
) -> Result<Exit, Fault> {
    let setup = Setup::new(config)?;
    let settings = faults.into_iter().map(|fault| ("settings", Err(fault)));
    let others = [
        ("engine", Some(engine(&setup).await)),
        ("catalog", Some(catalog(&setup).await)),
        ("skills", Some(skills(&setup).await)),
        ("root", Some(root(&setup))),
        ("store", Some(store(&setup).await)),
        ("model", Some(model(&setup))),
        ("endpoint", endpoint(&setup).await),
        ("search", Some(search(&setup))),
        ("secrets", Some(secrets(&setup))),
        ("mcp", mcp(&setup).await),
        ("walls", Some(Ok(walls.to_string()))),
        ("warnings", Some(Ok(warnings(&setup)))),
    ];
    let others = others.into_iter().filter_map(|(name, found)| Some((name, found?)));
    let checks: Vec<(&str, Found)> = settings.chain(others).collect();
    let sound = checks.iter().all(|(_, found)| found.is_ok());
    if args.json {
        let checks: Vec<Json> = checks.iter().map(|(name, found)| to_json(name, found)).collect();
        output::json(&json!({"ok": sound, "checks": checks}))?;
    } else {
        checks.iter().try_for_each(|(name, found)| show(name, found))?;
    }
    Ok(Exit::of(sound))
}

fn to_json(name: &str, found: &Found) -> Json {
    let what = found.as_ref().map_or_else(Fault::message, String::as_str);
    let fix = found.as_ref().err().and_then(Fault::hinted);
    json!({"name": name, "ok": found.is_ok(), "found": what, "mend": fix})
}

fn show(name: &str, found: &Found) -> Result<(), Fault> {
    let below = |text: &str| visible(text).replace('\n', "\n                  ");
    let line = match found {
        Ok(what) => format!("{} {name:<9} {}", paint(GOOD, "ok     "), below(what)),
        Err(fault) => {
            let fix = format!("fix: {}", below(fault.hinted().unwrap_or_default()));
            let (what, fix) = (below(fault.message()), paint(DIM, &fix));
            format!("{} {name:<9} {what}\n                  {fix}", paint(BAD, "broken "))
        }
    };
    output::styled(&line)
}

/// Checks that a program compiles, runs and returns the expected result.
async fn engine(setup: &Setup) -> Found {
    const FIX: &str = "the process needs address space and threads: raise `ulimit -v` and \
                        `ulimit -u`, or report a bug";
    let runtime = setup.host.runtime();
    let program = runtime
        .prepare("(resv \"well\") (i32.const 0)")
        .await
        .map_err(|error| wrong(error, FIX))?;
    let grants = std::sync::Arc::new(wattle_agent::host::capability::pure_grants());
    let outcome =
        runtime.run(&program, &grants, Vec::new()).await.map_err(|error| wrong(error, FIX))?;
    if outcome.success() && outcome.texts() == ["well"] {
        Ok(format!("a program ran in {} µs", outcome.duration.as_micros()))
    } else {
        Err(wrong(format!("the test program returned {:?}", outcome.exit), FIX))
    }
}

/// Checks that every catalog file loads, and that every program compiles and declares its
/// capabilities.
async fn catalog(setup: &Setup) -> Found {
    let catalog = setup.host.catalog();
    let mut problems: Vec<String> = catalog.problems().iter().map(ToString::to_string).collect();
    for entry in catalog.iter() {
        problems.extend(setup.host.check(entry).await.err().map(|problem| problem.to_string()));
    }
    if problems.is_empty() {
        Ok(format!("{} programs", catalog.len()))
    } else {
        Err(wrong(
            problems.join("\n"),
            "fix the files, or remove their folder from the settings; `wattle check FILE` explains",
        ))
    }
}

/// Starts the MCP servers and compares their tools with the accepted ones. Returns `None` if none is
/// configured.
async fn mcp(setup: &Setup) -> Option<Found> {
    let mut problems = Vec::new();
    for (server, now) in setup.servers.look().await {
        let changes = match now {
            Ok(now) => server.pin().map(|pin| pin.changes(&now.tools)).unwrap_or_default(),
            Err(error) => {
                problems.push(error.to_string());
                continue;
            }
        };
        let words: Vec<String> = changes.iter().map(ToString::to_string).collect();
        if !words.is_empty() {
            problems.push(format!("the MCP server `{}` {}", server.name(), words.join(", ")));
        }
    }
    match (setup.servers.iter().len(), problems.is_empty()) {
        (0, _) => None,
        (servers, true) => Some(Ok(counted(servers, "server"))),
        (_, false) => Some(Err(wrong(
            problems.join("\n"),
            "`wattle mcp check` tries them again; `wattle mcp approve NAME` accepts changed tools",
        ))),
    }
}

/// Checks that every skill loads, and that the programs of its scripts compile.
async fn skills(setup: &Setup) -> Found {
    let (count, problems) = super::skills::problems(setup).await;
    if problems.is_empty() {
        return Ok(counted(count, "skill"));
    }
    Err(wrong(
        problems.join("\n"),
        "fix the skills, or remove them; `wattle skills check` explains",
    ))
}

/// Returns the warnings about settings that work.
fn warnings(setup: &Setup) -> String {
    match setup::warnings(&setup.config) {
        found if found.is_empty() => "none".to_owned(),
        found => found.join("\n"),
    }
}

/// Checks that the workdir is readable.
fn root(setup: &Setup) -> Found {
    let root = &setup.config.root.value;
    let listed = Files::open_protected_base(root, host_files(&setup.config))
        .and_then(|base| Files::overlay(Some(base), 0).list("/"));
    let entries =
        listed.map_err(|error| wrong(error, "name another directory with `--root DIR`"))?;
    Ok(format!("`{}` can be read, {} entries", root.display(), entries.len()))
}

/// Returns the fault of a store that cannot be used. Most errors have a hint of their own.
fn no_store(fault: impl Into<Fault>) -> Fault {
    let text = fault.into().to_string();
    match text.split_once("\nhint: ") {
        Some((what, fix)) => wrong(what, fix),
        None => wrong(text, "name another store with `--store FILE|URL`"),
    }
}

/// Checks that the store is writable and, if it is a file, that it is not damaged and that other
/// users cannot read it.
async fn store(setup: &Setup) -> Found {
    let store = setup::store(&setup.config).map_err(no_store)?;
    store.file().check_structure(u64::MAX).await.map_err(no_store)?;
    store.check().await.map_err(no_store)?;
    let location = setup.config.store.value.as_ref();
    let Some(path) = location.and_then(StoreLocation::file) else {
        let database = location.map(StoreLocation::to_string).unwrap_or_default();
        return Ok(format!("`{database}` can be written"));
    };
    let Privacy { open_folder, open_files } = privacy(path);
    if let Some((file, mode)) = open_files.first() {
        let what = format!("others may read `{}` (mode {mode:03o})", file.display());
        return Err(wrong(what, "make it private with `chmod go= FILE`"));
    }
    // The files are private, so other users can see only the files' names.
    let seen = open_folder.map(|(folder, mode)| {
        format!("; others can list `{}` (mode {mode:03o})", folder.display())
    });
    Ok(format!(
        "`{}` can be written, and only you can read it{}",
        path.display(),
        seen.unwrap_or_default()
    ))
}

/// Checks that the settings name a model and that its API key is set. If a recording replaces the
/// model, checks only that the recording can be opened.
fn model(setup: &Setup) -> Found {
    if let Some(path) = &setup.config.cassette.value {
        let opened = wattle_agent::model::Cassette::open(path);
        opened.map_err(|error| wrong(error, "name another recording with `--cassette FILE`"))?;
        return Ok(format!("answers come from the recording `{}`", path.display()));
    }
    let endpoint = setup::endpoint(&setup.config, None).map_err(no_endpoint)?.endpoint;
    let key = match &endpoint.key {
        Some(key) if key.is_short() => {
            format!("key from `{}`, {}", endpoint.key_variable, setup::SHORT_KEY)
        }
        Some(_) if std::env::var_os(&endpoint.key_variable).is_none_or(|key| key.is_empty()) => {
            let path = api_keys::path().unwrap_or_default();
            format!("key `{}` from `{}`", endpoint.key_variable, path.display())
        }
        Some(_) => format!("key from `{}`", endpoint.key_variable),
        None => "no key".to_owned(),
    };
    let default = if setup.uses_default_model() { " (the provider's default)" } else { "" };
    let mut found = format!("{}{default} at {}, {key}", endpoint.model, endpoint.base_url);
    if setup.config.thinking_effort.value.is_some() && !endpoint.takes_thinking_effort() {
        found.push_str(
            "\n`thinking_effort` has no effect: no field of this endpoint is known for it",
        );
    }
    Ok(found + &classes(setup)?)
}

/// Checks that the settings of each model class determine an endpoint. Returns one line for each
/// class.
fn classes(setup: &Setup) -> Found {
    let mut lines = String::new();
    for (class, settings) in &setup.config.models.value.0 {
        let name = format!("{CLASS_PREFIX}{class}");
        let in_class = |fault: Fault| {
            let fault = no_endpoint(fault);
            let fix = fault.hinted().unwrap_or_default();
            wrong(format!("the class `{class}`: {}", fault.message()), fix)
        };
        let endpoint = setup::endpoint(&setup.config, Some(&name)).map_err(in_class)?.endpoint;
        lines += &format!("\n{name}: {} at {}", endpoint.model, endpoint.base_url);
        if settings.thinking_effort.is_some() && !endpoint.takes_thinking_effort() {
            lines += ", where `thinking_effort` has no effect";
        }
    }
    Ok(lines)
}

/// Checks the settings of the search engine. No request is sent, because some engines charge for
/// requests.
fn search(setup: &Setup) -> Found {
    let SearchEngine::Kind(kind) = setup.config.search_engine.value else {
        return Ok("the web cannot be searched, since `search.engine` is `off`".to_owned());
    };
    let engine = setup
        .host
        .search_engine()
        .map_err(|why| wrong(why, "correct `search` in the settings, or leave it out"))?;
    let key = engine.key().map(|key| {
        if key.is_short() {
            format!(", key from `{}`, {}", setup.config.search_key_env.value, setup::SHORT_KEY)
        } else {
            format!(", key from `{}`", setup.config.search_key_env.value)
        }
    });
    let origin = match setup.config.search_engine.origin {
        Origin::Default => " (the default; `search.engine = \"off\"` switches it off)",
        _ => "",
    };
    Ok(format!("{kind} at {}{}{origin}", engine.url(), key.unwrap_or_default()))
}

/// Checks the configured secrets, and the keys for trusted runs.
fn secrets(setup: &Setup) -> Found {
    const FIX: &str = "put another value into the variable, or remove its setting";
    let Config { secrets, image_api_key_env, git_token_env, .. } = &setup.config;
    trusted::secrets(&setup.config).map_err(|fault| wrong(fault, FIX))?;
    let held = |entry: &SecretEntry| {
        let state = if variable(&entry.variable).is_some() { "" } else { ", which is not set" };
        format!("`{}` from `{}`{state}", entry.name, entry.variable)
    };
    let mut found: Vec<String> = secrets.value.0.iter().map(held).collect();
    for (name, setting) in
        [(image_api_key_env, "image.api_key_env"), (git_token_env, "git.token_env")]
    {
        let Some(name) = name.value.as_deref() else { continue };
        let key = trusted::key(Some(name), setting).map_err(|fault| wrong(fault, FIX))?;
        let short = key.filter(ApiKey::is_short).map(|_| format!(": {}", setup::SHORT_KEY));
        found.push(format!("`{setting}` from `{name}`{}", short.unwrap_or_default()));
    }
    if found.is_empty() { Ok("the settings name none".to_owned()) } else { Ok(found.join("\n")) }
}

fn no_endpoint(fault: Fault) -> Fault {
    if fault.hinted().is_some() {
        return fault;
    }
    fault
        .hint("correct the setting; `wattle config show --origin` shows where its value comes from")
}

/// Checks that the endpoint answers. The request contains no key, so only a run shows whether the
/// key is valid. Returns `None` if the settings do not determine the endpoint, which is the fault of
/// [`model`].
async fn endpoint(setup: &Setup) -> Option<Found> {
    if setup.config.cassette.value.is_some() {
        return Some(Ok("not needed with a recording".to_owned()));
    }
    let endpoint = setup::endpoint(&setup.config, None).ok()?.endpoint;
    Some(answering(setup, &endpoint).await)
}

async fn answering(setup: &Setup, endpoint: &Endpoint) -> Found {
    let url = format!("{}/models", endpoint.base_url.as_str().trim_end_matches('/'));
    let limits = Limits { time: PATIENCE, ..Limits::default() };
    let unreachable =
        |error: EgressError| wrong(error, "is the server running, and is `--base-url` right?");
    let client =
        setup.host.egress().endpoint(&endpoint.base_url).map_err(unreachable)?.with_limits(limits);
    let route = setup.host.egress().environment().route(&endpoint.base_url);
    let route = route.map(|route| format!(" {route}")).unwrap_or_default();
    let answer = client.start(Request::get(url)).await;
    let answer = answer.map_err(|why| match route.as_str() {
        "" => unreachable(why),
        _ => wrong(
            format!("{why}, asked{route}"),
            "is the proxy right? `NO_PROXY` lists hosts to reach without it",
        ),
    })?;
    Ok(format!("{} answers{route} (status {})", endpoint.base_url, answer.status.as_u16()))
}

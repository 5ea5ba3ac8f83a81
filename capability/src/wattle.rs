//! `wattle`: the commands of the `wattle` command line that concern the run and its programs. They
//! can access only what the run can also access through other functions. There is no `telemetry` and no
//! `ledger`: they read the traces of other runs, and the seal of this one is written when it has ended.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use wattle_rt::{
    Code, Config, Failure, Gate, Run, Target, Unadmitted, capability, quote, truncate,
};

use crate::history::RunHistoryGrant;
use crate::json::query;
use crate::kv::{self, Kv, TENANT};
use crate::par::{self, Call, Par, Team, Work};
use crate::{too_large, workbook};

capability! {
    /// Commands about this run and its programs.
    pub const WATTLE: "wattle" 1 for "par";

    /// Runs a command and returns its output: `vars`, `catalog`, `check`, `workbook` or `trace` with
    /// arguments, in one line or as a JSON list, or `help` for the list
    #[example = r#"(wattle.run "vars set city 'New York'") (ret (wattle.run "vars get city"))"# => "New York"]
    #[prompt(name)]
    #[effect(once)]
    async run(command: command) with Wattle, Kv, Par -> ptr: bytes
        ! EPARSE ENOENT EACCESS EBOUND EBUDGET EREMOTE ETRFM ENOMEM ETIME EEXIST ECANCEL EKIND = perform;
}

/// The port to the catalog, for listing and searching programs.
pub trait CatalogIndex: Send + Sync {
    /// Returns all programs, sorted by name.
    fn list(&self) -> Vec<ProgramSummary>;

    /// Returns the programs that match the words, best first.
    fn search(&self, words: &str) -> Vec<ProgramSummary>;

    /// Returns the manual page of a program.
    ///
    /// # Errors
    /// `ENOENT` if there is no program with that name.
    fn show(&self, name: &str) -> Result<String, Failure>;
}

/// The name and the description of a catalog program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramSummary {
    /// The program's name.
    pub name: String,
    /// A sentence that describes the program.
    pub about: String,
}

/// The `wattle` grant: the index of a catalog.
pub struct Wattle(pub Arc<dyn CatalogIndex>);

impl Config for Wattle {
    const CAPABILITIES: &'static [&'static str] = &["wattle"];
}

/// The usage and the description of each command.
const COMMANDS: &[(&str, &str)] = &[
    ("vars list", "list the tenant's variables, which are the keys `tenant:NAME`"),
    ("vars get NAME", "print a variable"),
    ("vars set NAME VALUE", "set a variable"),
    ("catalog list", "list all programs"),
    ("catalog search WORDS…", "list the programs that match some words"),
    ("catalog show NAME", "print the manual page of a program"),
    ("catalog run NAME ARG…", "run a program with this run's grants"),
    ("check PROGRAM", "compile a program, given its name or its text, without running it"),
    (
        "workbook list TEXT",
        "list the components of a workbook with their inputs and exports, as JSON",
    ),
    ("workbook lint TEXT", "check a workbook and compile its programs without running them"),
    ("workbook query TEXT FILTER", "apply a jq filter to that list"),
    ("workbook tangle TEXT", "print the texts of its programs, as a JSON object"),
    ("trace show", "print the steps of this run so far"),
    ("help", "print this list"),
];

async fn perform(
    wattle: Arc<Wattle>,
    kv: Arc<Kv>,
    par: Arc<Par>,
    run: &mut Run,
    command: Unadmitted<String>,
) -> Result<Vec<u8>, Failure> {
    let (command, gate) = command.open(run);
    let words = split(&command)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    // As in a terminal, the first word may be the name of the command-line tool.
    let words = words.strip_prefix(&["wattle"]).unwrap_or(&words);
    let text = match words {
        [] | ["help" | "--help" | "-h"] => help(),
        ["vars", "list"] => vars(&kv, run, &gate).await?,
        ["vars", "get", name] => return kv::get(kv, run, key(&gate, name)?).await,
        ["vars", "set", name, value] => {
            kv::set(kv, run, key(&gate, name)?, value.as_bytes().to_vec()).await?;
            format!("{name} is set")
        }
        ["catalog", "list"] => list(wattle.0.list()),
        ["catalog", "search", query @ ..] if !query.is_empty() => {
            search(&wattle, &query.join(" "))?
        }
        ["catalog", "show", name] => wattle.0.show(name)?,
        ["catalog", "run", name, args @ ..] => {
            return run_program(par, run, &gate, name, args).await;
        }
        ["check", program] => check(&par, &gate, program).await?,
        ["workbook", "list", book] => json!(workbook::outline(book)?).to_string(),
        ["workbook", "lint", book] => lint(&par, &gate, book).await?,
        ["workbook", "query", book, filter] => {
            let components = json!(workbook::outline(book)?).to_string();
            return query(run, components, (*filter).to_owned()).await;
        }
        ["workbook", "tangle", book] => tangle(book)?,
        ["trace"] | ["trace", "show"] => trace(run)?,
        other => return Err(unknown(other)),
    };
    Ok(text.into_bytes())
}

/// Splits a command into words, as a shell does. A JSON list has the words themselves, so that they need
/// no quotes.
fn split(command: &str) -> Result<Vec<String>, Failure> {
    if command.trim_start().starts_with('[') {
        return serde_json::from_str(command).map_err(|error| {
            let why = format!("a command that begins with `[` is a JSON list of strings: {error}");
            Failure::new(Code::EPARSE, why)
        });
    }
    shlex::split(command).ok_or_else(|| {
        Failure::new(Code::EPARSE, "the command has an unclosed quote, or ends with `\\`")
    })
}

/// Compiles a program of the catalog, or the text of a program, which has parentheses.
async fn check(par: &Par, gate: &Gate, program: &str) -> Result<String, Failure> {
    let (work, name) = if program.contains('(') {
        (Work::Inline(program.to_owned()), "")
    } else {
        (Work::Named(program.to_owned()), program)
    };
    gate.admit(Target::Program, name)?;
    par.programs.check(work).await?;
    Ok("the program compiles".to_owned())
}

/// Checks a workbook and compiles its programs.
async fn lint(par: &Par, gate: &Gate, book: &str) -> Result<String, Failure> {
    gate.admit(Target::Program, "")?;
    let faults = workbook::lint(book, &*par.programs).await;
    if faults.is_empty() {
        return Ok("the workbook has no problems".to_owned());
    }
    Err(Failure::new(Code::EPARSE, faults.join("\n")))
}

/// Returns the texts of a workbook's programs by the names of their components.
fn tangle(book: &str) -> Result<String, Failure> {
    let components = workbook::outline(book)?;
    let sources = components.into_iter().filter_map(|one| Some((one.name, json!(one.source?))));
    Ok(Json::Object(sources.collect()).to_string())
}

fn help() -> String {
    let width = COMMANDS.iter().map(|(usage, _)| usage.chars().count()).max().unwrap_or(0);
    COMMANDS.iter().fold(String::new(), |mut text, (usage, about)| {
        _ = writeln!(text, "{usage:<width$}  {about}");
        text
    })
}

/// Creates the failure for an unknown command. The message lists the commands with the same first
/// word or, if there are none, all commands.
fn unknown(words: &[&str]) -> Failure {
    let first = |usage: &str| usage.split(' ').next() == words.first().copied();
    let mut known: Vec<&str> =
        COMMANDS.iter().map(|(usage, _)| *usage).filter(|usage| first(usage)).collect();
    if known.is_empty() {
        known = COMMANDS.iter().map(|(usage, _)| *usage).collect();
    }
    let words = words.join(" ");
    let shown = truncate(&words, 60);
    let known: Vec<String> = known.iter().map(|usage| format!("`{usage}`")).collect();
    Failure::new(
        Code::EPARSE,
        format!("unknown command `{shown}`; the commands are {}", known.join(", ")),
    )
}

/// Returns the key of a variable in the tenant's state. Fails if the run's guard denies access to
/// the key.
fn key(gate: &Gate, name: &str) -> Result<String, Failure> {
    let key = format!("{TENANT}{name}");
    gate.admit(Target::Key, &key)?;
    Ok(key)
}

/// Lists the variables with their values, one per line. Long values are truncated.
async fn vars(kv: &Kv, run: &Run, gate: &Gate) -> Result<String, Failure> {
    const SHOWN: usize = 200;
    gate.admit(Target::Keys, TENANT)?;
    let mut text = String::new();
    for name in kv.tenant.keys(String::new()).await? {
        let value = kv.tenant.get(name.clone()).await?.unwrap_or_default();
        let value = String::from_utf8_lossy(&value);
        _ = writeln!(text, "{name}={}", truncate(&value, SHOWN).replace('\n', "\\n"));
        if text.len() > run.remaining_memory() {
            return Err(too_large());
        }
    }
    Ok(if text.is_empty() { "there are no variables".to_owned() } else { text })
}

fn list(programs: Vec<ProgramSummary>) -> String {
    let width = programs.iter().map(|program| program.name.len()).max().unwrap_or(0);
    programs.iter().fold(String::new(), |mut text, ProgramSummary { name, about }| {
        _ = writeln!(text, "{name:<width$}  {}", about.trim());
        text
    })
}

fn search(wattle: &Wattle, words: &str) -> Result<String, Failure> {
    let found = wattle.0.search(words);
    if found.is_empty() {
        let words = quote(words, 60);
        let message =
            format!("no program of the catalog matches {words}; `catalog list` lists all");
        return Err(Failure::new(Code::ENOENT, message));
    }
    Ok(list(found))
}

/// Runs a catalog program and returns its results, one per line.
async fn run_program(
    par: Arc<Par>,
    run: &mut Run,
    gate: &Gate,
    name: &str,
    args: &[&str],
) -> Result<Vec<u8>, Failure> {
    gate.admit(Target::Program, name)?;
    let mut team = Team::new(par, run)?;
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    team.start(0, Ok(Call { work: Work::Named(name.to_owned()), args }));
    match team.next(run).await? {
        Some((_, result)) => result.map(|results| results.join(&b'\n')),
        None => Err(par::stopped()),
    }
}

fn trace(run: &Run) -> Result<String, Failure> {
    let history = run.grants().config::<RunHistoryGrant>().ok_or_else(|| {
        Failure::new(Code::ENOENT, "there is no trace: the program was not started by a run's step")
    })?;
    let steps = history.0.steps();
    Ok(if steps.is_empty() { "this is the first step".to_owned() } else { steps.join("\n") })
}

//! `wattle`: the project's own command line inside a run, as far as it tells about the run and its programs. A fixed set of commands; none of
//! them reaches what the run may not reach by other functions.

use std::fmt::Write as _;
use std::sync::Arc;

use wattle_rt::{Code, Config, Failure, Gate, Run, Target, Unadmitted, capability, quote, truncate};

use crate::history::RunHistoryGrant;
use crate::kv::{self, Kv, TENANT};
use crate::par::{self, Team, Work};
use crate::too_large;

capability! {
    /// The project's own command line, as far as it is about this run.
    pub const WATTLE: "wattle" 1;

    /// Gives the output of a command: `vars`, `catalog` or `trace` with what each takes, or `help`, which lists them
    #[example = r#"(wattle.run? "vars set city 'New York'") (ret (wattle.run? "vars get city"))"# => "New York"]
    #[prompt(name)]
    #[effect(once)]
    async run(command: command) -> ptr: bytes
        ! EPARSE ENOENT EACCESS EBOUND EBUDGET EREMOTE ETRFM ENOMEM ETIME EEXIST ECANCEL = perform;
}

/// The port to the catalog for those who look for programs, implemented by whoever wires a run.
pub trait CatalogIndex: Send + Sync {
    /// All programs by name, each with its sentence.
    fn list(&self) -> Vec<(String, String)>;

    /// The programs that some words are about, the best first.
    fn search(&self, words: &str) -> Vec<(String, String)>;

    /// The manual page of a program.
    ///
    /// # Errors
    /// `ENOENT` where there is none of that name.
    fn show(&self, name: &str) -> Result<String, Failure>;
}

/// Grants `wattle` on that catalog.
pub struct Wattle(pub Arc<dyn CatalogIndex>);

impl Config for Wattle {
    const CAPABILITY: &'static str = "wattle";
}

/// The commands: how each is written, and what it does.
const COMMANDS: &[(&str, &str)] = &[
    ("vars list", "the tenant's variables, which programs know as the keys `tenant:NAME`"),
    ("vars get NAME", "the value of one"),
    ("vars set NAME VALUE", "sets one"),
    ("catalog list", "all programs"),
    ("catalog search WORDS…", "the programs that some words are about"),
    ("catalog show NAME", "the manual page of a program"),
    ("catalog run NAME ARG…", "runs a program with what this run was granted"),
    ("trace show", "the steps of this run so far"),
    ("help", "this list"),
];

async fn perform(run: &mut Run, command: Unadmitted<String>) -> Result<Vec<u8>, Failure> {
    let (command, gate) = command.open(run);
    let Some(words) = shlex::split(&command) else {
        return Err(Failure::new(Code::EPARSE, "a quote of the command is not closed, or a `\\` stands at its end"));
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    // As it is written in a terminal.
    let words = words.strip_prefix(&["wattle"]).unwrap_or(&words);
    let text = match words {
        [] | ["help" | "--help" | "-h"] => help(),
        ["vars", "list"] => vars(run, &gate).await?,
        ["vars", "get", name] => return kv::get(run, key(&gate, name)?).await,
        ["vars", "set", name, value] => {
            kv::set(run, key(&gate, name)?, value.as_bytes().to_vec()).await?;
            format!("{name} is set")
        }
        ["catalog", "list"] => listed(run.config::<Wattle>()?.0.list()),
        ["catalog", "search", sought @ ..] if !sought.is_empty() => search(run, &sought.join(" "))?,
        ["catalog", "show", name] => run.config::<Wattle>()?.0.show(name)?,
        ["catalog", "run", name, args @ ..] => return started(run, &gate, name, args).await,
        ["trace"] | ["trace", "show"] => trace(run)?,
        other => return Err(unknown(other)),
    };
    Ok(text.into_bytes())
}

fn help() -> String {
    let width = COMMANDS.iter().map(|(usage, _)| usage.chars().count()).max().unwrap_or(0);
    COMMANDS.iter().fold(String::new(), |mut text, (usage, about)| {
        _ = writeln!(text, "{usage:<width$}  {about}");
        text
    })
}

/// That there is no such command, with those that there are: of its first word, where that is one.
fn unknown(words: &[&str]) -> Failure {
    let first = |usage: &str| usage.split(' ').next() == words.first().copied();
    let mut known: Vec<&str> = COMMANDS.iter().map(|(usage, _)| *usage).filter(|usage| first(usage)).collect();
    if known.is_empty() {
        known = COMMANDS.iter().map(|(usage, _)| *usage).collect();
    }
    let words = words.join(" ");
    let shown = truncate(&words, 60);
    let known: Vec<String> = known.iter().map(|usage| format!("`{usage}`")).collect();
    Failure::new(Code::EPARSE, format!("there is no command `{shown}`; there is {}", known.join(", ")))
}

/// A variable's key, which the run's guard lets pass.
fn key(gate: &Gate, name: &str) -> Result<String, Failure> {
    let key = format!("{TENANT}{name}");
    gate.admit(Target::Key, &key)?;
    Ok(key)
}

/// The variables and their values, one a line; of a long value its beginning.
async fn vars(run: &mut Run, gate: &Gate) -> Result<String, Failure> {
    const SHOWN: usize = 200;
    gate.admit(Target::Keys, TENANT)?;
    let state = Arc::clone(&run.config::<Kv>()?.tenant);
    let mut text = String::new();
    for name in state.keys(String::new()).await? {
        let value = state.get(name.clone()).await?.unwrap_or_default();
        let value = String::from_utf8_lossy(&value);
        _ = writeln!(text, "{name}={}", truncate(&value, SHOWN).replace('\n', "\\n"));
        if text.len() > run.remaining_memory() {
            return Err(too_large());
        }
    }
    Ok(if text.is_empty() { "there are no variables".to_owned() } else { text })
}

fn listed(programs: Vec<(String, String)>) -> String {
    let width = programs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    programs.iter().fold(String::new(), |mut text, (name, about)| {
        _ = writeln!(text, "{name:<width$}  {}", about.trim());
        text
    })
}

fn search(run: &Run, words: &str) -> Result<String, Failure> {
    let found = run.config::<Wattle>()?.0.search(words);
    if found.is_empty() {
        let words = quote(words, 60);
        let words = format!("no program of the catalog is about {words}; `catalog list` gives all of them");
        return Err(Failure::new(Code::ENOENT, words));
    }
    Ok(listed(found))
}

/// Runs a program of the catalog, and gives what it puts out, several results one a line.
async fn started(run: &mut Run, gate: &Gate, name: &str, args: &[&str]) -> Result<Vec<u8>, Failure> {
    gate.admit(Target::Program, name)?;
    let mut team = Team::new(run)?;
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    team.start(0, Ok((Work::Named(name.to_owned()), args)));
    match team.next(run).await? {
        Some((_, result)) => result.map(|results| results.join(&b'\n')),
        None => Err(par::stopped()),
    }
}

fn trace(run: &Run) -> Result<String, Failure> {
    let told = run.config::<RunHistoryGrant>().map_err(|_| {
        Failure::new(Code::ENOENT, "there is no trace: the program was started by itself, not by a run's step")
    })?;
    let steps = told.0.steps();
    Ok(if steps.is_empty() { "this is the first step".to_owned() } else { steps.join("\n") })
}

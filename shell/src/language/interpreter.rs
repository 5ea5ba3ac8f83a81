//! One shell: its variables, functions, options, descriptors and folder; and how a subshell comes from it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use wattle_capability::files::Files;

use super::arithmetic::{self, Names};
use super::ast::Command;
use super::exec::jobs::Jobs;
use super::expand::{Setting, SettingValue};
use super::run::Run;
use super::variables::{Refused, Text, Value, Variables, is_name, past};
use crate::errno::{Errno, Fault};
use crate::stream::Stream;

/// Why commands are not run on, one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Jump {
    /// `break`, out of so many loops.
    Break(u32),
    /// `continue`, with the loop that is so many levels out.
    Continue(u32),
    /// `return`, out of a function or a sourced script.
    Return,
    /// The shell ends; its status is set.
    Exit,
}

/// What running something gives.
pub(crate) type Flow<T = ()> = Result<T, Jump>;

/// What `set` and `shopt` turn on and off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) errexit: bool,
    pub(crate) nounset: bool,
    pub(crate) xtrace: bool,
    pub(crate) noglob: bool,
    pub(crate) noclobber: bool,
    pub(crate) allexport: bool,
    pub(crate) noexec: bool,
    pub(crate) pipefail: bool,
    pub(crate) nullglob: bool,
    pub(crate) globstar: bool,
    pub(crate) extglob: bool,
    pub(crate) dotglob: bool,
    pub(crate) nocaseglob: bool,
    pub(crate) nocasematch: bool,
    pub(crate) inherit_errexit: bool,
    pub(crate) xpg_echo: bool,
}

impl Options {
    const OFF: Options = Options {
        errexit: false,
        nounset: false,
        xtrace: false,
        noglob: false,
        noclobber: false,
        allexport: false,
        noexec: false,
        pipefail: false,
        nullglob: false,
        globstar: false,
        extglob: false,
        dotglob: false,
        nocaseglob: false,
        nocasematch: false,
        inherit_errexit: false,
        xpg_echo: false,
    };
}

/// A shell. A clone is a subshell: what it changes stays its own.
#[derive(Clone)]
pub(crate) struct Interpreter {
    pub(crate) run: Arc<Run>,
    pub(crate) variables: Variables,
    pub(crate) functions: Arc<HashMap<String, Arc<Command>>>,
    pub(crate) aliases: Arc<BTreeMap<String, String>>,
    /// `$0`
    pub(crate) name: String,
    /// `$1`, `$2`, …
    pub(crate) arguments: Vec<String>,
    pub(crate) options: Options,
    pub(crate) fds: BTreeMap<u32, Stream>,
    pub(crate) cwd: String,
    /// The folders of `pushd`, the last one first.
    pub(crate) folders: Vec<String>,
    /// `$?`
    pub(crate) status: u8,
    /// The status of the last substitution, which is that of a command that only assigns.
    pub(crate) substituted: u8,
    pub(crate) jobs: Jobs,
    pub(crate) traps: BTreeMap<String, String>,
    /// The functions that are being run, the innermost last.
    pub(crate) calls: Vec<String>,
    /// Levels of functions, subshells, substitutions and texts that are run.
    pub(crate) depth: u32,
    /// Levels that stand on the host's stack of this task.
    pub(crate) level: u32,
    pub(crate) loops: u32,
    /// Scripts that are being sourced, out of which `return` leads.
    pub(crate) sourced: u32,
    pub(crate) line: u32,
    /// Above 0 where a failure is looked at, so that `set -e` does not end the shell.
    pub(crate) tolerant: u32,
    /// A stage, a subshell, a job: no shell that goes on to read lines.
    pub(crate) subshell: bool,
    /// `$_`
    pub(crate) last_word: String,
    /// `exit` ended the shell.
    pub(crate) left: bool,
    /// The last command was killed by its bounds, not ended by itself.
    pub(crate) killed: bool,
    /// The descriptors of process substitutions in the command that is being run.
    pub(crate) substitutions: Vec<u32>,
    /// Descriptors that `{name}>` opened or closed, which stay so after the command.
    pub(crate) kept: Vec<u32>,
    /// Where `getopts` stands in a word of several letters.
    pub(crate) letter: usize,
    pub(crate) started: Instant,
}

impl Interpreter {
    pub(crate) fn new(run: Arc<Run>, fds: BTreeMap<u32, Stream>) -> Interpreter {
        let variables = Variables::new(Arc::clone(&run.ledger));
        let mut interpreter = Interpreter {
            run,
            variables,
            functions: Arc::default(),
            aliases: Arc::default(),
            name: "bash".into(),
            arguments: Vec::new(),
            options: Options::OFF,
            fds,
            cwd: "/".into(),
            folders: Vec::new(),
            status: 0,
            substituted: 0,
            jobs: Jobs::default(),
            traps: BTreeMap::new(),
            calls: Vec::new(),
            depth: 0,
            level: 0,
            loops: 0,
            sourced: 0,
            line: 1,
            tolerant: 0,
            subshell: false,
            last_word: String::new(),
            left: false,
            killed: false,
            substitutions: Vec::new(),
            kept: Vec::new(),
            letter: 0,
            started: Instant::now(),
        };
        for (name, value) in [
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("IFS", " \t\n"),
            ("OPTIND", "1"),
            ("OPTERR", "1"),
            ("PS1", "$ "),
            ("PS2", "> "),
            ("PS4", "+ "),
            ("BASH", "/bin/bash"),
            ("BASH_VERSION", "5.2.0(1)-wattle"),
            ("HOSTNAME", "wattle"),
            ("HOSTTYPE", "wasm32"),
            ("OSTYPE", "wasi"),
            ("MACHTYPE", "wasm32-wasi"),
            ("SHLVL", "1"),
            ("UID", "1000"),
            ("EUID", "1000"),
            ("PPID", "1"),
        ] {
            interpreter.preset(name, value, false);
        }
        interpreter
    }

    /// Sets the environment that a session begins with; a shell that a command starts has its starter's.
    pub(crate) fn log_in(&mut self) {
        for (name, value) in [
            ("HOME", "/"),
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("SHELL", "/bin/bash"),
            ("USER", "user"),
            ("LOGNAME", "user"),
            ("LANG", "C.UTF-8"),
            ("TERM", "dumb"),
            ("TMPDIR", "/"),
            ("PWD", "/"),
        ] {
            self.preset(name, value, true);
        }
    }

    /// Sets a variable that the shell comes with. Where the session's variables are full it is left out.
    pub(crate) fn preset(&mut self, name: &str, value: &str, exported: bool) {
        if self.variables.set(name, value).is_ok()
            && let Ok(variable) = self.variables.attributes(name)
        {
            variable.exported = exported;
        }
    }

    /// A copy for a subshell.
    pub(crate) fn fork(&self) -> Interpreter {
        let mut copy = self.clone();
        copy.subshell = true;
        copy.traps.retain(|name, action| action.is_empty() || !matches!(name.as_str(), "EXIT" | "ERR"));
        copy
    }

    /// A shell that knows nothing, to stand in while another task has this one.
    pub(crate) fn hollow(&self) -> Interpreter {
        Interpreter {
            run: Arc::clone(&self.run),
            variables: Variables::new(Arc::clone(&self.run.ledger)),
            functions: Arc::default(),
            aliases: Arc::default(),
            name: String::new(),
            arguments: Vec::new(),
            options: self.options,
            fds: BTreeMap::new(),
            cwd: String::new(),
            folders: Vec::new(),
            jobs: Jobs::default(),
            traps: BTreeMap::new(),
            calls: Vec::new(),
            last_word: String::new(),
            substitutions: Vec::new(),
            kept: Vec::new(),
            ..*self
        }
    }

    /// Ends the whole line because a bound is reached.
    pub(crate) fn bound(&mut self, words: String) -> Jump {
        self.run.end(words);
        self.status = 125;
        Jump::Exit
    }

    /// Goes one level deeper, or says that this is too deep.
    pub(crate) fn descend(&mut self) -> Flow {
        self.depth += 1;
        if self.depth > self.run.bounds.depth {
            let depth = self.run.bounds.depth;
            return Err(self.bound(format!("functions, subshells and substitutions are nested deeper than {depth} levels: does a function call itself without end?")));
        }
        Ok(())
    }

    /// Lets other tasks run now and then, so that a loop of builtins can be ended.
    pub(crate) async fn breathe(&mut self) -> Flow {
        if self.run.steps.fetch_add(1, Ordering::Relaxed) % 64 == 63 {
            tokio::task::yield_now().await;
        }
        if self.run.is_ended() { Err(Jump::Exit) } else { Ok(()) }
    }

    /// Works on the run's files where waiting for a disk is allowed.
    pub(crate) async fn on_files<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Files>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let files = Arc::clone(&self.run.files);
        if files.is_memory() {
            return work(&files);
        }
        tokio::task::spawn_blocking(move || work(&files)).await.unwrap_or(Err(Errno::INTR.into()))
    }

    /// The path in the run's tree that a word names.
    pub(crate) fn path(&self, path: &str) -> String {
        super::paths::absolute(&self.cwd, path)
    }

    /// Writes to standard output. Where nobody reads any more the shell ends as by SIGPIPE.
    pub(crate) async fn out(&mut self, text: impl AsRef<[u8]>) -> Flow<u8> {
        self.write(1, text.as_ref()).await
    }

    async fn write(&mut self, fd: u32, text: &[u8]) -> Flow<u8> {
        let written = match self.fds.get(&fd).cloned() {
            Some(stream) => stream.write(text).await,
            None => Err(Errno::BADF),
        };
        match written {
            Ok(()) => Ok(0),
            Err(Errno::PIPE) => {
                self.status = 141;
                Err(Jump::Exit)
            }
            Err(errno) if fd == 1 => {
                self.complain(&format!("write error: {errno}")).await;
                Ok(1)
            }
            Err(_) => Ok(1),
        }
    }

    /// Writes a message to standard error, with the line that it is about.
    pub(crate) async fn complain(&self, words: &str) {
        let text = if self.line > 1 { format!("line {}: {words}\n", self.line) } else { format!("{words}\n") };
        if let Some(stream) = self.fds.get(&2).cloned() {
            // Whoever closed the place for messages does not want them.
            let _ = stream.write(text.as_bytes()).await;
        }
    }

    /// The value of a parameter without an index.
    pub(crate) fn value(&mut self, name: &str) -> Option<String> {
        let mut signs = name.chars();
        match (signs.next(), signs.next()) {
            (Some(digit), _) if digit.is_ascii_digit() => {
                return match name.parse() {
                    Ok(0) => Some(self.name.clone()),
                    Ok(place) => self.arguments.get(usize::saturating_sub(place, 1)).cloned(),
                    Err(_) => None,
                };
            }
            (Some('?'), None) => return Some(self.status.to_string()),
            (Some('#'), None) => return Some(self.arguments.len().to_string()),
            (Some('$'), None) => return Some("2".into()),
            (Some('!'), None) => return self.jobs.last_pid().map(|pid| pid.to_string()),
            (Some('_'), None) => return Some(self.last_word.clone()),
            (Some('-'), None) => return Some(self.letters()),
            _ => {}
        }
        match name {
            "RANDOM" => Some(fastrand::u32(0..32768).to_string()),
            "SRANDOM" => Some(fastrand::u32(..).to_string()),
            "SECONDS" => {
                let base = self.variables.text(name).and_then(|text| text.parse::<i64>().ok()).unwrap_or_default();
                Some(base.wrapping_add(i64::try_from(self.started.elapsed().as_secs()).unwrap_or_default()).to_string())
            }
            "EPOCHSECONDS" => {
                Some(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().to_string())
            }
            "LINENO" => Some(self.line.to_string()),
            "BASHPID" => Some("2".into()),
            "FUNCNAME" => self.calls.last().cloned(),
            _ => self.variables.get(name).and_then(|variable| variable.text()).map(|text| text.to_string()),
        }
    }

    fn letters(&self) -> String {
        let options = &self.options;
        let all = [
            (options.allexport, 'a'),
            (options.errexit, 'e'),
            (options.noglob, 'f'),
            (true, 'h'),
            (options.noexec, 'n'),
            (options.nounset, 'u'),
            (options.xtrace, 'x'),
            (true, 'B'),
            (options.noclobber, 'C'),
        ];
        all.into_iter().filter(|(on, _)| *on).map(|(_, letter)| letter).collect()
    }

    /// Carries out an assignment; what refuses it is told, and ends the shell as in bash.
    pub(crate) async fn assign(&mut self, setting: Setting) -> Flow {
        match self.try_assign(setting).await? {
            Ok(()) => Ok(()),
            Err(words) => Err(self.fail(&words).await),
        }
    }

    /// As [`Interpreter::assign`], where the caller tells what refused it.
    pub(crate) async fn try_assign(&mut self, setting: Setting) -> Flow<Result<(), String>> {
        match self.carry_out(setting) {
            Ok(()) => Ok(Ok(())),
            Err(Wrong::Refused(refused @ Refused::Full(_))) => Err(self.bound(refused.to_string())),
            Err(Wrong::Refused(refused)) => Ok(Err(refused.to_string())),
            Err(Wrong::Arithmetic(words)) => Ok(Err(words)),
        }
    }

    fn carry_out(&mut self, setting: Setting) -> Result<(), Wrong> {
        let Setting { name, index, append, value } = setting;
        if self.options.allexport {
            self.variables.attributes(&name)?.exported = true;
        }
        match value {
            SettingValue::Text(text) => match index {
                Some(index) => self.set_element(&name, &index, append, text),
                None => self.set_text(&name, append, text),
            },
            SettingValue::Array(elements) => {
                let map = matches!(self.variables.get(&name).map(|variable| &variable.value), Some(Value::Map(_)));
                if !append {
                    let variable = self.variables.entry(&name)?;
                    variable.value = if map { Value::Map(Arc::default()) } else { Value::List(Arc::default()) };
                } else if !map {
                    self.variables.entry(&name)?.make_list();
                }
                let mut next = self.next_index(&name);
                let mut key: Option<String> = None;
                for (index, add, text) in elements {
                    match index {
                        Some(index) => {
                            if !map {
                                next = arithmetic::evaluate(&index, self, 0)?.saturating_add(1);
                            }
                            self.set_element(&name, &index, add, text)?;
                        }
                        None if map => match key.take() {
                            None => key = Some(text),
                            Some(held) => self.set_element(&name, &held, false, text)?,
                        },
                        None => {
                            let text = self.as_integer(&name, None, text)?;
                            self.variables.set_at(&name, next, text)?;
                            next = next.saturating_add(1);
                        }
                    }
                }
                if let Some(key) = key {
                    self.set_element(&name, &key, false, String::new())?;
                }
                Ok(())
            }
        }
    }

    fn next_index(&self, name: &str) -> i64 {
        match self.variables.get(name).map(|variable| &variable.value) {
            Some(Value::List(list)) => past(list),
            _ => 0,
        }
    }

    fn set_text(&mut self, name: &str, append: bool, text: String) -> Result<(), Wrong> {
        match name {
            "RANDOM" => {
                fastrand::seed(text.parse().unwrap_or_default());
                return Ok(());
            }
            "SECONDS" => self.started = Instant::now(),
            "OPTIND" => self.letter = 0,
            _ => {}
        }
        let old = if append { self.variables.text(name) } else { None };
        let text = self.as_integer(name, old.as_deref(), text)?;
        Ok(self.variables.set(name, text)?)
    }

    fn set_element(&mut self, name: &str, index: &str, append: bool, text: String) -> Result<(), Wrong> {
        let map = matches!(self.variables.get(name).map(|variable| &variable.value), Some(Value::Map(_)));
        let old = if append { self.element(name, index)? } else { None };
        let text = self.as_integer(name, old.as_deref(), text)?;
        if map {
            return Ok(self.variables.set_key(name, index.to_owned(), text)?);
        }
        if index.trim().is_empty() {
            return Err(Wrong::Refused(Refused::Index(format!("{name}[{index}"))));
        }
        let place = arithmetic::evaluate(index, self, 0)?;
        Ok(self.variables.set_at(name, place, text)?)
    }

    /// The text to be stored: added to the old one; as a number where the variable is one.
    fn as_integer(&mut self, name: &str, old: Option<&str>, text: String) -> Result<String, Wrong> {
        if self.variables.get(name).is_some_and(|variable| variable.integer) {
            let value = arithmetic::evaluate(&text, self, 0)?;
            let old = match old {
                Some(old) => arithmetic::evaluate(old, self, 0)?,
                None => 0,
            };
            return Ok(old.wrapping_add(value).to_string());
        }
        Ok(match old {
            Some(old) => format!("{old}{text}"),
            None => text,
        })
    }

    /// Sets a text variable from within the shell, such as what `read` read.
    pub(crate) async fn set(&mut self, name: &str, text: impl Into<String>) -> Flow<Result<(), String>> {
        let text = text.into();
        let setting = match name.strip_suffix(']').and_then(|text| text.split_once('[')) {
            Some((name, index)) => {
                Setting { name: name.into(), index: Some(index.into()), append: false, value: SettingValue::Text(text) }
            }
            None => Setting { name: name.into(), index: None, append: false, value: SettingValue::Text(text) },
        };
        if !is_name(&setting.name) {
            return Ok(Err(format!("`{name}': not a valid identifier")));
        }
        self.try_assign(setting).await
    }

    /// Sets a list from within the shell.
    pub(crate) fn set_list(&mut self, name: &str, texts: Vec<String>) -> Flow<Result<(), String>> {
        match self.variables.set_list(name, texts) {
            Ok(()) => Ok(Ok(())),
            Err(refused @ Refused::Full(_)) => Err(self.bound(refused.to_string())),
            Err(refused) => Ok(Err(refused.to_string())),
        }
    }

    /// A variable's text, where it has one.
    pub(crate) fn variable(&self, name: &str) -> Option<Text> {
        self.variables.text(name)
    }
}

/// Why an assignment was not carried out.
enum Wrong {
    Refused(Refused),
    Arithmetic(String),
}

impl From<Refused> for Wrong {
    fn from(refused: Refused) -> Wrong {
        Wrong::Refused(refused)
    }
}

impl From<String> for Wrong {
    fn from(words: String) -> Wrong {
        Wrong::Arithmetic(words)
    }
}

/// The names of arithmetic are the shell's variables.
impl Names for Interpreter {
    fn get(&mut self, name: &str, index: Option<&str>, depth: u32) -> Result<Option<String>, String> {
        let value = match index {
            None => self.value(name),
            Some(index) if matches!(self.variables.get(name).map(|variable| &variable.value), Some(Value::List(_))) => {
                let place = arithmetic::evaluate(index, self, depth)?;
                self.element(name, &place.to_string())?
            }
            Some(index) => self.element(name, index)?,
        };
        if value.is_none() && self.options.nounset {
            return Err(format!("{name}: unbound variable"));
        }
        Ok(value)
    }

    fn set(&mut self, name: &str, index: Option<&str>, value: i64, depth: u32) -> Result<(), String> {
        let map = matches!(self.variables.get(name).map(|variable| &variable.value), Some(Value::Map(_)));
        let index = match index {
            Some(index) if !map => Some(arithmetic::evaluate(index, self, depth)?.to_string()),
            other => other.map(str::to_owned),
        };
        let setting = Setting { name: name.into(), index, append: false, value: SettingValue::Text(value.to_string()) };
        self.carry_out(setting).map_err(|wrong| match wrong {
            Wrong::Refused(refused) => refused.to_string(),
            Wrong::Arithmetic(words) => words,
        })
    }
}

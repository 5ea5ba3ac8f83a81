//! Builtins that change the control flow or look up names: `break`, `return`, `exit`, `eval`,
//! `source`, `shift`, `let`, `trap`, `command`, `type`, `alias`.

use std::sync::Arc;

use wattle_rt::truncate;

use crate::language::builtin_table;
use crate::language::exec::ResolvedCommand;
use crate::language::interpreter::Jump;
use crate::language::interpreter::{Flow, Interpreter};
use crate::language::setting::{ExpandedWord, texts};
use crate::language::variables::AssignError;
use crate::ledger::Text;

/// Maximum number of aliases in one shell.
const MAX_ALIASES: usize = 1_000;
/// Maximum length of an alias, including its name, in bytes.
const MAX_ALIAS: usize = 10_000;

impl Interpreter {
    pub(super) async fn break_or_continue(&mut self, name: &str, words: Vec<String>) -> Flow<u8> {
        let count = match words.first().map(|word| word.parse::<u32>()) {
            None => 1,
            Some(Ok(count)) if count > 0 => count,
            Some(_) => {
                self.report(&format!(
                    "{name}: {}: expected a number above 0",
                    words.first().cloned().unwrap_or_default()
                ))
                .await;
                self.last.status = 128;
                return Err(Jump::Exit);
            }
        };
        if self.execution.loops == 0 {
            self.report(&format!("{name}: only meaningful in a loop")).await;
            return Ok(0);
        }
        self.last.status = 0;
        let count = count.min(self.execution.loops);
        Err(if name == "break" { Jump::Break(count) } else { Jump::Continue(count) })
    }

    pub(super) async fn return_or_exit(&mut self, name: &str, words: Vec<String>) -> Flow<u8> {
        if name == "return" && self.execution.calls.is_empty() && self.execution.sourced == 0 {
            return self
                .failure("return: can only `return' from a function or sourced script")
                .await;
        }
        match words.first().map(|word| word.trim().parse::<i64>()) {
            None => {}
            Some(Ok(status)) => self.last.status = (status & 0xff) as u8,
            Some(Err(_)) => {
                self.report(&format!(
                    "{name}: {}: numeric argument required",
                    words.first().cloned().unwrap_or_default()
                ))
                .await;
                self.last.status = 2;
            }
        }
        if name == "return" {
            return Err(Jump::Return);
        }
        self.lifecycle.exited = true;
        Err(Jump::Exit)
    }

    pub(super) async fn eval(&mut self, words: Vec<String>) -> Flow<u8> {
        let text = words.join(" ");
        self.last.status = 0;
        self.evaluate(&text).await?;
        Ok(self.last.status)
    }

    pub(super) async fn source(&mut self, words: Vec<String>) -> Flow<u8> {
        let mut words = words.into_iter().peekable();
        if words.peek().is_some_and(|word| word == "--") {
            words.next();
        }
        let Some(path) = words.next() else {
            return self.usage_error("source: filename argument required").await;
        };
        let text = if let Some(crate::stream::Device::Descriptor(_)) =
            crate::stream::Device::from_path(&self.path(&path))
        {
            match self.open(&path, crate::stream::OpenMode::READ).await {
                Ok(stream) => {
                    Ok(String::from_utf8_lossy(&self.read_whole(&stream).await?.0).into_owned())
                }
                Err(message) => Err((message, 1)),
            }
        } else {
            self.script(&path, &path).await?
        };
        let text = match text {
            Ok(text) => text,
            Err((message, _)) => return self.failure(message).await,
        };
        let list = match crate::language::parse::parse(&text, 1, &self.run.trees) {
            Ok(list) => std::sync::Arc::new(list),
            Err(error) => return self.usage_error(format!("{path}: {error}")).await,
        };
        let arguments = self.positional(words)?;
        let before = if arguments.is_empty() {
            None
        } else {
            Some(std::mem::replace(&mut self.parameters.arguments, arguments))
        };
        let line = self.execution.line;
        self.last.status = 0;
        self.execution.sourced += 1;
        let ran = self.nested(&list).await;
        self.execution.sourced -= 1;
        self.execution.line = line;
        if let Some(before) = before {
            self.parameters.arguments = before;
        }
        match ran {
            Ok(()) | Err(Jump::Return) => Ok(self.last.status),
            Err(other) => Err(other),
        }
    }

    pub(super) async fn shift(&mut self, words: Vec<String>) -> Flow<u8> {
        let count = match words.first().map(|word| word.parse::<usize>()) {
            None => 1,
            Some(Ok(count)) => count,
            Some(Err(_)) => return self.failure("shift: numeric argument required").await,
        };
        if count > self.parameters.arguments.len() {
            return Ok(1);
        }
        Arc::make_mut(&mut self.parameters.arguments).drain(..count);
        Ok(0)
    }

    pub(super) async fn let_builtin(&mut self, words: Vec<String>) -> Flow<u8> {
        if words.is_empty() {
            return self.failure("let: expression expected").await;
        }
        let mut value = 0;
        for word in words {
            self.checkpoint().await?;
            value = match crate::language::arithmetic::evaluate(&word, self) {
                Ok(value) => value,
                Err(message) => return self.failure(format!("let: {message}")).await,
            };
        }
        Ok(u8::from(value == 0))
    }

    pub(super) async fn command_builtin(&mut self, name: &str, words: Vec<String>) -> Flow<u8> {
        let mut words = words.into_iter().peekable();
        let (mut brief, mut verbose) = (false, false);
        while name == "command"
            && let Some(word) =
                words.next_if(|word| matches!(word.as_str(), "-v" | "-V" | "-p" | "--"))
        {
            match word.as_str() {
                "-v" => brief = true,
                "-V" => verbose = true,
                _ => {}
            }
        }
        if brief || verbose {
            let mut status = 1;
            for word in words {
                if let Some((short, long)) = self.describe(&word).await {
                    status = 0;
                    self.print(format!("{}\n", if brief { short } else { long })).await?;
                } else if verbose {
                    self.report(&format!("command: {word}: not found")).await;
                }
            }
            return Ok(status);
        }
        let Some(first) = words.next() else { return Ok(0) };
        if name == "builtin" && !builtin_table::is_builtin(&first) {
            return self.failure(format!("builtin: {first}: not a shell builtin")).await;
        }
        let given: Vec<ExpandedWord> = words.map(ExpandedWord::Text).collect();
        if builtin_table::is_builtin(&first) {
            return Box::pin(self.builtin(&first, given)).await;
        }
        let env = self.variables.exported();
        let argv = std::iter::once(first).chain(texts(given)).collect();
        Ok(self.external(argv, env).await?.status().0)
    }

    /// Describes the command that a name refers to. Returns the outputs of `command -v` and of
    /// `type`, or `None` if the name is unknown.
    pub(super) async fn describe(&mut self, name: &str) -> Option<(String, String)> {
        if let Some(value) = self.definitions.aliases.get(name) {
            let value: &str = value;
            return Some((
                format!("alias {name}='{value}'"),
                format!("{name} is aliased to `{value}'"),
            ));
        }
        if matches!(
            name,
            "if" | "then"
                | "else"
                | "elif"
                | "fi"
                | "for"
                | "while"
                | "until"
                | "do"
                | "done"
                | "case"
                | "esac"
                | "select"
                | "function"
                | "time"
                | "{"
                | "}"
                | "!"
                | "[["
                | "]]"
                | "in"
        ) {
            return Some((name.into(), format!("{name} is a shell keyword")));
        }
        if self.definitions.functions.contains_key(name) {
            return Some((name.into(), format!("{name} is a function")));
        }
        match self.find(name) {
            ResolvedCommand::Builtin(_) if !name.contains('/') => {
                Some((name.into(), format!("{name} is a shell builtin")))
            }
            ResolvedCommand::Tool(_) | ResolvedCommand::Shell | ResolvedCommand::Builtin(_) => {
                let path =
                    if name.contains('/') { name.to_owned() } else { format!("/usr/bin/{name}") };
                Some((path.clone(), format!("{name} is {path}")))
            }
            ResolvedCommand::File(path) => {
                self.stat(&path).await.map(|_| (name.to_owned(), format!("{name} is {name}")))
            }
            ResolvedCommand::Unknown => None,
        }
    }

    pub(super) async fn type_builtin(&mut self, words: Vec<String>) -> Flow<u8> {
        let mut status = 0;
        let mut kind_only = false;
        let mut path_only = false;
        for word in words {
            match word.as_str() {
                "-t" => kind_only = true,
                "-p" | "-P" => path_only = true,
                "-a" | "-f" | "--" => {}
                name => match self.describe(name).await {
                    Some((short, long)) => {
                        let text = if kind_only {
                            let kind = [
                                ("keyword", "is a shell keyword"),
                                ("function", "is a function"),
                                ("builtin", "is a shell builtin"),
                                ("alias", "is aliased"),
                            ];
                            kind.into_iter()
                                .find(|(_, words)| long.contains(words))
                                .map_or("file", |(kind, _)| kind)
                                .to_owned()
                        } else if path_only {
                            if !short.contains('/') {
                                continue;
                            }
                            short
                        } else {
                            long
                        };
                        self.print(format!("{text}\n")).await?;
                    }
                    None => {
                        status = 1;
                        if !kind_only && !path_only {
                            self.report(&format!("type: {name}: not found")).await;
                        }
                    }
                },
            }
        }
        Ok(status)
    }

    pub(super) async fn alias(&mut self, name: &str, words: Vec<String>) -> Flow<u8> {
        let mut status = 0;
        let aliases = std::sync::Arc::make_mut(&mut self.definitions.aliases);
        let mut full = None;
        let mut text = String::new();
        let mut errors = Vec::new();
        for word in &words {
            match (name, word.split_once('=')) {
                ("unalias", _) if word == "-a" => aliases.clear(),
                ("unalias", _) => status = if aliases.remove(word).is_some() { status } else { 1 },
                (_, Some((name, value)))
                    if name.len() + value.len() > MAX_ALIAS
                        || (aliases.len() >= MAX_ALIASES && !aliases.contains_key(name)) =>
                {
                    errors.push(format!(
                        "{}: a shell has at most {MAX_ALIASES} aliases, each with at most \
                         {MAX_ALIAS} bytes",
                        truncate(name, 60)
                    ));
                }
                (_, Some((name, value))) => match self.run.ledger.store(value.into()) {
                    Ok(value) => drop(aliases.insert(name.into(), value)),
                    Err(reason) => full = Some(reason),
                },
                (_, None) if word == "-p" => {}
                (_, None) => match aliases.get(word) {
                    Some(value) => {
                        let value: &str = value;
                        text.push_str(&format!("alias {word}='{value}'\n"));
                    }
                    None => errors.push(format!("{word}: not found")),
                },
            }
        }
        if name == "alias" && words.iter().all(|word| word == "-p") {
            let line = |(name, value): (&String, &Text)| {
                let value: &str = value;
                format!("alias {name}='{value}'\n")
            };
            text = aliases.iter().map(line).collect();
        }
        if let Some(full) = full {
            return Err(self.exceed(AssignError::Full(full).to_string()));
        }
        for error in errors {
            status = 1;
            self.report(&format!("alias: {error}")).await;
        }
        Ok(self.print(text).await?.max(status))
    }

    pub(super) async fn trap(&mut self, words: Vec<String>) -> Flow<u8> {
        let mut words = words.into_iter().peekable();
        if words.peek().is_some_and(|word| word == "--") {
            words.next();
        }
        let list = words.peek().is_none_or(|word| word == "-p");
        if list {
            words.next();
            let chosen: Vec<String> = words.map(|word| signal(&word)).collect();
            let text: String = self
                .definitions
                .traps
                .iter()
                .filter(|(name, _)| chosen.is_empty() || chosen.contains(name))
                .map(|(name, action)| {
                    format!("trap -- {} {name}\n", crate::language::escape::quoted(action))
                })
                .collect();
            return self.print(text).await;
        }
        if words.peek().is_some_and(|word| word == "-l") {
            return self.print("EXIT ERR INT TERM HUP QUIT PIPE USR1 USR2\n").await;
        }
        let Some(action) = words.next() else { return Ok(0) };
        let signals: Vec<String> = words.collect();
        let action = self.stored(action)?;
        if signals.is_empty() {
            self.definitions.traps.remove(&signal(&action));
            return Ok(0);
        }
        if action.len() > self.run.bounds.script {
            return self.failure("trap: the text is too long").await;
        }
        for name in signals {
            let name = signal(&name);
            if !matches!(
                name.as_str(),
                "EXIT"
                    | "ERR"
                    | "DEBUG"
                    | "RETURN"
                    | "INT"
                    | "TERM"
                    | "HUP"
                    | "QUIT"
                    | "PIPE"
                    | "USR1"
                    | "USR2"
                    | "ALRM"
                    | "CHLD"
                    | "WINCH"
                    | "TSTP"
                    | "CONT"
                    | "STOP"
                    | "KILL"
            ) {
                return self.failure(format!("trap: {name}: invalid signal specification")).await;
            }
            if &*action == "-" {
                self.definitions.traps.remove(&name);
            } else {
                self.definitions.traps.insert(name, action.clone());
            }
        }
        Ok(0)
    }
}

/// Returns the name of a signal without the prefix `SIG`: `INT` for `SIGINT`, `int` and `2`.
fn signal(word: &str) -> String {
    match word {
        "0" => "EXIT".into(),
        "1" => "HUP".into(),
        "2" => "INT".into(),
        "3" => "QUIT".into(),
        "9" => "KILL".into(),
        "13" => "PIPE".into(),
        "14" => "ALRM".into(),
        "15" => "TERM".into(),
        word => {
            let upper = word.to_uppercase();
            upper.strip_prefix("SIG").map_or(upper.clone(), str::to_owned)
        }
    }
}

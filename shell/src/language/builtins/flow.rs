//! Builtins that change the control flow: `break`, `return`, `exit`, `eval`, `source`, `shift`,
//! `let`, `trap`.

use std::sync::Arc;

use super::{Arguments, after_dashes};
use crate::language::interpreter::{Attempt, Interpreter, Jump, Stop, usage};
use crate::language::{arithmetic, escape, parse};
use crate::stream::{Device, OpenMode};

/// The names that `trap` accepts.
const SIGNALS: [&str; 18] = [
    "EXIT", "ERR", "DEBUG", "RETURN", "INT", "TERM", "HUP", "QUIT", "PIPE", "USR1", "USR2", "ALRM",
    "CHLD", "WINCH", "TSTP", "CONT", "STOP", "KILL",
];

impl Interpreter {
    pub(super) async fn break_or_continue(&mut self, name: &str, words: &[String]) -> Attempt<u8> {
        let count = match after_dashes(words).first().map(|word| (word, word.parse::<u32>())) {
            None => 1,
            Some((_, Ok(count))) if count > 0 => count,
            Some((word, _)) => {
                self.report(&format!("{name}: {word}: expected a number above 0")).await;
                self.last.status = 128;
                return Err(Jump::Exit.into());
            }
        };
        if self.execution.loops == 0 {
            self.report(&format!("{name}: only meaningful in a loop")).await;
            return Ok(0);
        }
        self.last.status = 0;
        let count = count.min(self.execution.loops);
        Err(if name == "break" { Jump::Break(count) } else { Jump::Continue(count) }.into())
    }

    pub(super) async fn return_or_exit(&mut self, name: &str, words: &[String]) -> Attempt<u8> {
        if name == "return" && self.execution.calls.is_empty() && self.execution.sourced == 0 {
            return Err("can only `return' from a function or sourced script".into());
        }
        if let Some(word) = after_dashes(words).first() {
            self.last.status = match word.trim().parse::<i64>() {
                Ok(status) => (status & 0xff) as u8,
                Err(_) => {
                    self.report(&format!("{name}: {word}: numeric argument required")).await;
                    2
                }
            };
        }
        if name == "return" {
            return Err(Jump::Return.into());
        }
        self.lifecycle.exited = true;
        Err(Jump::Exit.into())
    }

    pub(super) async fn eval(&mut self, words: Vec<String>) -> Attempt<u8> {
        let words = Arguments::parse(words, "")?.words;
        self.last.status = 0;
        self.evaluate(&words.join(" ")).await?;
        Ok(self.last.status)
    }

    pub(super) async fn source(&mut self, words: Vec<String>) -> Attempt<u8> {
        let mut words = Arguments::parse(words, "")?.words.into_iter();
        let Some(path) = words.next() else {
            return Err(usage("filename argument required"));
        };
        let device = Device::from_path(&self.path(&path));
        let text = if let Some(Device::Descriptor(_)) = device {
            match self.open(&path, OpenMode::READ).await {
                Ok(stream) => Ok(self.read_whole(&stream).await?.0),
                Err(message) => Err(message.into()),
            }
        } else {
            self.script(&path, &path).await.map(String::into_bytes)
        };
        let text = match text {
            Ok(text) => String::from_utf8_lossy(&text).into_owned(),
            Err(Stop::Failed { message, .. }) => {
                self.report(&message).await;
                return Ok(1);
            }
            Err(stop) => return Err(stop),
        };
        let list = match parse::parse(&text, 1, &self.run.trees) {
            Ok(list) => list,
            Err(error) => {
                self.report(&format!("{path}: {error}")).await;
                return Ok(2);
            }
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
        let ran = self.nested_lines(list).await;
        self.execution.sourced -= 1;
        self.execution.line = line;
        if let Some(before) = before {
            self.parameters.arguments = before;
        }
        match ran {
            Ok(()) | Err(Jump::Return) => Ok(self.last.status),
            Err(other) => Err(other.into()),
        }
    }

    pub(super) fn shift(&mut self, words: &[String]) -> Attempt<u8> {
        let count = after_dashes(words).first().map_or(Ok(1), |word| word.parse::<usize>());
        let count = count.map_err(|_| "numeric argument required")?;
        if count > self.parameters.arguments.len() {
            return Ok(1);
        }
        Arc::make_mut(&mut self.parameters.arguments).drain(..count);
        Ok(0)
    }

    pub(super) async fn let_builtin(&mut self, words: &[String]) -> Attempt<u8> {
        let words = after_dashes(words);
        if words.is_empty() {
            return Err("expression expected".into());
        }
        let mut value = 0;
        for word in words {
            self.checkpoint().await?;
            value = arithmetic::evaluate(word, self)?;
        }
        Ok(u8::from(value == 0))
    }

    pub(super) async fn trap(&mut self, words: Vec<String>) -> Attempt<u8> {
        let given = Arguments::parse(words, "lp")?;
        if given.has('l') {
            return Ok(self.print("EXIT ERR INT TERM HUP QUIT PIPE USR1 USR2\n").await?);
        }
        let print = given.has('p') || given.words.is_empty();
        let mut words = given.words.into_iter();
        if print {
            let chosen: Vec<String> = words.map(|word| signal(&word)).collect();
            let text: String = self
                .definitions
                .traps
                .iter()
                .filter(|(name, _)| chosen.is_empty() || chosen.contains(name))
                .map(|(name, action)| format!("trap -- {} {name}\n", escape::quoted(action)))
                .collect();
            return Ok(self.print(text).await?);
        }
        let Some(action) = words.next() else { return Ok(0) };
        let signals: Vec<String> = words.collect();
        let action = self.stored(action)?;
        if signals.is_empty() {
            self.definitions.traps.remove(&signal(&action));
            return Ok(0);
        }
        if action.len() > self.run.bounds.script {
            return Err("the text is too long".into());
        }
        for name in signals {
            let name = signal(&name);
            if !SIGNALS.contains(&name.as_str()) {
                return Err(format!("{name}: invalid signal specification").into());
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

//! Runs simple commands: assignments, functions, builtins, and commands of the toolbox.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::lookup::ResolvedCommand;
use super::spawn::Spawner;
use crate::language::ast::{Command as Tree, Redirect, Simple};
use crate::language::interpreter::{Flow, Interpreter, Jump};
use crate::language::setting::{ExpandedWord, Setting, SettingValue, texts};
use crate::language::{builtin_table, escape};
use crate::{Command, CommandOutcome, Status};

impl Interpreter {
    pub(super) async fn simple(&mut self, simple: &Simple, redirects: &[Redirect]) -> Flow {
        let before = self.descriptors.open.clone();
        let first_substitution = self.descriptors.substitutions.len();
        self.last.substitution_status = 0;
        let ran = self.simple_here(simple, redirects).await;
        let persists = matches!(ran, Ok(true));
        if !persists {
            let mut before = before;
            for number in self.descriptors.persistent.drain(..) {
                match self.descriptors.open.get(&number) {
                    Some(stream) => before.insert(number, stream.clone()),
                    None => before.remove(&number),
                };
            }
            self.descriptors.open = before;
        }
        for fd in self
            .descriptors
            .substitutions
            .split_off(first_substitution.min(self.descriptors.substitutions.len()))
        {
            self.descriptors.open.remove(&fd);
        }
        ran.map(|_| ())
    }

    /// Runs a simple command. Returns true if its redirections persist, like those of `exec`.
    async fn simple_here(&mut self, simple: &Simple, redirects: &[Redirect]) -> Flow<bool> {
        let mut charge = self.word_charge();
        let given = self.arguments(&simple.words, &mut charge).await?;
        let mut given = given.into_iter();
        let Some(first) = given.next() else {
            self.only_assignments(simple, redirects).await?;
            return Ok(false);
        };
        let given: Vec<ExpandedWord> = given.collect();
        let ExpandedWord::Text(name) = first else { return Ok(false) };
        self.trace(simple, &name, &given).await;
        if let Err(message) = self.redirect(redirects).await? {
            self.report(&message).await;
            self.last.status = 1;
            return Ok(false);
        }
        let mut settings = Vec::new();
        for assignment in &simple.assignments {
            settings.push(self.setting(assignment).await?);
        }
        let last = match given.last() {
            Some(ExpandedWord::Text(text)) => text.clone(),
            _ => name.clone(),
        };
        if name == "exec" && !self.definitions.functions.contains_key("exec") {
            return self.exec(settings, given).await;
        }
        let ran = self.call(name, given, settings).await;
        self.last.word = self.run.ledger.store(last).ok();
        ran.map(|()| false)
    }

    async fn only_assignments(&mut self, simple: &Simple, redirects: &[Redirect]) -> Flow {
        if let Err(message) = self.redirect(redirects).await? {
            self.report(&message).await;
            self.last.status = 1;
            return Ok(());
        }
        for assignment in &simple.assignments {
            let setting = self.setting(assignment).await?;
            if self.options.xtrace
                && let SettingValue::Text(text) = &setting.value
            {
                let line = format!("+ {}={}", setting.name, quoted_word(text));
                self.trace_line(&line).await;
            }
            self.assign(setting).await?;
        }
        self.last.status = self.last.substitution_status;
        Ok(())
    }

    /// Runs the function, builtin or command with this name.
    pub(crate) fn call<'a>(
        &'a mut self,
        name: String,
        given: Vec<ExpandedWord>,
        settings: Vec<Setting>,
    ) -> BoxFuture<'a, Flow> {
        async move {
            if let Some(body) = self.definitions.functions.get(&name).cloned() {
                return self
                    .with_settings(settings, async |shell| {
                        shell.function(name, texts(given), body).await
                    })
                    .await;
            }
            if builtin_table::is_builtin(&name) {
                return self
                    .with_settings(settings, async |shell| {
                        let status = shell.builtin(&name, given).await?;
                        shell.last.status = status;
                        Ok(())
                    })
                    .await;
            }
            self.call_external(name, given, settings).await
        }
        .boxed()
    }

    /// Runs a command that is neither a function nor a builtin.
    async fn call_external(
        &mut self,
        name: String,
        given: Vec<ExpandedWord>,
        settings: Vec<Setting>,
    ) -> Flow {
        let mut env = self.variables.exported();
        for setting in settings {
            if self.variables.get(&setting.name).is_some_and(|variable| variable.readonly) {
                self.report(&format!("{}: readonly variable", setting.name)).await;
                self.last.status = 1;
                return Ok(());
            }
            if let SettingValue::Text(text) = setting.value {
                env.retain(|(name, _)| *name != setting.name);
                env.push((setting.name, text));
            }
        }
        let argv = std::iter::once(name).chain(texts(given)).collect();
        let ended = self.external(argv, env).await?;
        self.last.status = ended.status().0;
        self.last.killed = ended.ends_pipeline();
        // A stage whose reader is gone must end. Otherwise a loop in the stage would continue.
        if self.lifecycle.subshell && self.last.status == 141 { Err(Jump::Exit) } else { Ok(()) }
    }

    /// Runs a command with the assignments that precede it, and restores the variables afterwards.
    async fn with_settings(
        &mut self,
        settings: Vec<Setting>,
        run: impl AsyncFnOnce(&mut Interpreter) -> Flow,
    ) -> Flow {
        if settings.is_empty() {
            return run(self).await;
        }
        self.variables.push_frame();
        for setting in settings {
            self.variables.save(&setting.name);
            let name = setting.name.clone();
            if let Err(message) = self.try_assign(setting).await? {
                self.variables.pop_frame();
                self.report(&message).await;
                self.last.status = 1;
                return Ok(());
            }
            if let Ok(variable) = self.variables.attributes(&name) {
                variable.exported = true;
            }
        }
        let ran = run(self).await;
        self.variables.pop_frame();
        ran
    }

    async fn function(&mut self, name: String, arguments: Vec<String>, body: Arc<Tree>) -> Flow {
        self.enter_level()?;
        let parameters = self.positional(arguments)?;
        self.variables.push_frame();
        self.execution.calls.push(name);
        let arguments = std::mem::replace(&mut self.parameters.arguments, parameters);
        let loops = std::mem::take(&mut self.execution.loops);
        let line = self.execution.line;
        let ran = if self.execution.stack_level < super::MAX_STACK_LEVEL {
            self.command(&body).await
        } else {
            self.on_new_stack(move |mut shell| {
                async move {
                    let ran = shell.command(&body).await;
                    (shell, ran)
                }
                .boxed()
            })
            .await
        };
        self.parameters.arguments = arguments;
        self.execution.loops = loops;
        self.execution.line = line;
        self.execution.calls.pop();
        self.variables.pop_frame();
        self.execution.depth = self.execution.depth.saturating_sub(1);
        match ran {
            Err(Jump::Return) => Ok(()),
            other => other,
        }
    }

    /// Runs `exec`. Without words, makes its redirections permanent. With words, runs them as the
    /// last command of this shell.
    async fn exec(&mut self, settings: Vec<Setting>, given: Vec<ExpandedWord>) -> Flow<bool> {
        let mut words = texts(given);
        if words.first().is_some_and(|word| word == "--") {
            words.remove(0);
        }
        if words.is_empty() {
            self.last.status = 0;
            self.descriptors.persistent.clear();
            return Ok(true);
        }
        let name = words.remove(0);
        if matches!(self.find(&name), ResolvedCommand::Unknown) && !builtin_table::is_builtin(&name)
        {
            self.report(&self.not_found(&name)).await;
            self.last.status = 127;
            return Err(Jump::Exit);
        }
        self.call(name, words.into_iter().map(ExpandedWord::Text).collect(), settings).await?;
        Err(Jump::Exit)
    }

    /// Runs a command or a builtin, but not a function, with the given environment.
    pub(crate) fn external(
        &mut self,
        argv: Vec<String>,
        env: Vec<(String, String)>,
    ) -> BoxFuture<'_, Flow<CommandOutcome>> {
        async move {
            let Some(name) = argv.first().cloned() else {
                return Ok(CommandOutcome::Exited(Status::SUCCESS));
            };
            let exited = |status: u8| Ok(CommandOutcome::Exited(Status(status)));
            match self.find(&name) {
                ResolvedCommand::Shell => {
                    exited(self.run_shell(argv.into_iter().skip(1).collect(), env).await?)
                }
                ResolvedCommand::Tool(name) => {
                    if let Err(message) = self.run.count_command() {
                        return Err(self.exceed(message));
                    }
                    let argv = std::iter::once(name).chain(argv.into_iter().skip(1)).collect();
                    let fds = self
                        .descriptors
                        .open
                        .iter()
                        .map(|(number, stream)| (*number, stream.clone()))
                        .collect();
                    let command = Command { argv, env, cwd: self.folders.current.clone(), fds };
                    let spawn = Arc::new(Spawner {
                        run: Arc::clone(&self.run),
                        depth: self.execution.depth,
                    });
                    let run = Arc::clone(&self.run);
                    let ended =
                        run.commands.run(command, &run.files, spawn, &run.bounds.stage).await;
                    Ok(ended)
                }
                ResolvedCommand::Builtin(name) => {
                    let given = argv.into_iter().skip(1).map(ExpandedWord::Text).collect();
                    exited(self.builtin(&name, given).await?)
                }
                ResolvedCommand::File(path) => exited(self.run_file(path, argv, env).await?),
                ResolvedCommand::Unknown => {
                    self.report(&self.not_found(&name)).await;
                    exited(127)
                }
            }
        }
        .boxed()
    }

    /// Prints a command for `set -x`.
    async fn trace(&mut self, simple: &Simple, name: &str, given: &[ExpandedWord]) {
        if !self.options.xtrace {
            return;
        }
        let mut line = format!("+ {}", quoted_word(name));
        for word in given {
            match word {
                ExpandedWord::Text(text) => line.push_str(&format!(" {}", quoted_word(text))),
                ExpandedWord::Setting(setting) => {
                    line.push_str(&format!(" {}", setting.name));
                    if let SettingValue::Text(text) = &setting.value {
                        line.push_str(&format!("={}", quoted_word(text)));
                    }
                }
            }
        }
        if !simple.assignments.is_empty() {
            line.push_str("  # with variables of its own");
        }
        self.trace_line(&line).await;
    }

    async fn trace_line(&self, line: &str) {
        self.write_stderr(&format!("{line}\n")).await;
    }
}

/// Quotes a word for the output of `set -x`.
fn quoted_word(text: &str) -> String {
    let plain =
        !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_-./:=,+@%^".contains(c));
    if plain { text.to_owned() } else { escape::quoted(text) }
}

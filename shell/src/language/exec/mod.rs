//! Execution of scripts. This module runs lists, chains and commands. The submodules run pipelines,
//! compound and simple commands, redirections, substitutions and jobs.

mod background;
mod compound;
mod conditional;
pub(crate) mod files;
mod lookup;
mod pipeline;
mod redirect;
mod simple;
mod spawn;
mod substitute;

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::ast::{Chain, Command, Connector, Kind, List, Pipeline};
use super::interpreter::{Flow, Interpreter, Jump};
use super::run::Slot;
use crate::language::task::Task;

pub(crate) use lookup::ResolvedCommand;

/// Maximum nesting depth of commands on one task's host stack. More deeply nested commands run in a
/// new task.
const MAX_STACK_LEVEL: u32 = 12;

/// Maximum number of functions in one shell.
const MAX_FUNCTIONS: usize = 5_000;

impl Interpreter {
    /// Runs commands one after another.
    pub(crate) fn list<'a>(&'a mut self, list: &'a List) -> BoxFuture<'a, Flow> {
        async move {
            for item in &list.items {
                match &item.background {
                    Some(text) => self.start_job(Arc::clone(&item.chain), text.clone()).await?,
                    None => self.chain(&item.chain).await?,
                }
            }
            Ok(())
        }
        .boxed()
    }

    /// Runs pipelines joined by `&&` and `||`.
    pub(super) async fn chain(&mut self, chain: &Chain) -> Flow {
        self.chained_pipeline(&chain.first, chain.rest.is_empty()).await?;
        for (index, (connector, pipeline)) in chain.rest.iter().enumerate() {
            if (self.last.status == 0) == (*connector == Connector::And) {
                self.chained_pipeline(pipeline, index + 1 == chain.rest.len()).await?;
            }
        }
        Ok(())
    }

    /// Runs a pipeline of a chain. Only a failure of the chain's last pipeline triggers `set -e`.
    async fn chained_pipeline(&mut self, pipeline: &Pipeline, last: bool) -> Flow {
        let suspended = u32::from(!last || pipeline.negated);
        self.execution.errexit_suspended += suspended;
        let ran = self.pipeline(pipeline).await;
        self.execution.errexit_suspended -= suspended;
        ran?;
        // These commands and pipelines trigger `set -e`. In any other compound command, the inner
        // command that failed has already triggered it.
        let triggers = match pipeline.stages.as_slice() {
            [only] => matches!(
                only.kind,
                Kind::Simple(_) | Kind::Subshell(_) | Kind::Test(_) | Kind::Arithmetic(_)
            ),
            stages => !stages.is_empty(),
        };
        if last
            && !pipeline.negated
            && triggers
            && self.last.status != 0
            && self.execution.errexit_suspended == 0
        {
            self.handle_failure().await?;
        }
        Ok(())
    }

    /// Handles the failure of a command whose status is not checked by a condition: runs the `ERR`
    /// trap, and exits the shell if `set -e` is in effect.
    async fn handle_failure(&mut self) -> Flow {
        let status = self.last.status;
        if let Some(action) = self.definitions.traps.get("ERR").cloned()
            && !action.is_empty()
        {
            self.execution.errexit_suspended += 1;
            let ran = self.evaluate(&action).await;
            self.execution.errexit_suspended -= 1;
            ran?;
            self.last.status = status;
        }
        if self.options.errexit { Err(Jump::Exit) } else { Ok(()) }
    }

    /// Runs one command.
    pub(super) fn command<'a>(&'a mut self, command: &'a Command) -> BoxFuture<'a, Flow> {
        async move {
            self.checkpoint().await?;
            self.execution.line = command.line;
            if self.options.noexec {
                return Ok(());
            }
            self.execution.stack_level += 1;
            let ran = match &command.kind {
                Kind::Simple(simple) => self.simple(simple, &command.redirects).await,
                Kind::Function(name, body) => self.define(name, body),
                kind if command.redirects.is_empty() => self.compound(kind).await,
                kind => {
                    let before = self.descriptors.open.clone();
                    let ran = match self.redirect(&command.redirects).await? {
                        Ok(()) => self.compound(kind).await,
                        Err(message) => {
                            self.descriptors.open.clone_from(&before);
                            self.report(&message).await;
                            self.last.status = 1;
                            Ok(())
                        }
                    };
                    self.descriptors.open = before;
                    ran
                }
            };
            self.execution.stack_level -= 1;
            ran
        }
        .boxed()
    }

    /// Defines a function.
    fn define(&mut self, name: &str, body: &Arc<Command>) -> Flow {
        let functions = &mut self.definitions.functions;
        if functions.len() >= MAX_FUNCTIONS && !functions.contains_key(name) {
            return Err(self.exceed(format!("more than {MAX_FUNCTIONS} functions are defined")));
        }
        Arc::make_mut(functions).insert(name.to_owned(), Arc::clone(body));
        self.last.status = 0;
        Ok(())
    }

    /// Runs a list one nesting level deeper. At [`MAX_STACK_LEVEL`], runs it in a new task instead
    /// of on the current stack.
    pub(crate) async fn nested(&mut self, list: &Arc<List>) -> Flow {
        self.enter_level()?;
        let ran = if self.execution.stack_level < MAX_STACK_LEVEL {
            self.list(list).await
        } else {
            let list = Arc::clone(list);
            self.on_new_stack(move |mut shell| {
                async move {
                    let ran = shell.list(&list).await;
                    (shell, ran)
                }
                .boxed()
            })
            .await
        };
        self.execution.depth -= 1;
        ran
    }

    /// Takes a slot for a shell that runs in parallel. Prepares the shell to run one nesting level
    /// deeper, on a new stack.
    fn slot_for(&mut self, shell: &mut Interpreter) -> Flow<Slot> {
        shell.execution.stack_level = 0;
        if let Err(jump) = shell.enter_level() {
            self.last.status = shell.last.status;
            return Err(jump);
        }
        self.run.take_slot().map_err(|message| self.exceed(message))
    }

    /// Runs `work` with this shell in a local task, which starts at the bottom of the thread's
    /// stack.
    async fn on_new_stack(
        &mut self,
        work: impl FnOnce(Interpreter) -> BoxFuture<'static, (Interpreter, Flow)>,
    ) -> Flow {
        let (level, placeholder) = (self.execution.stack_level, self.placeholder());
        let mut moved = std::mem::replace(self, placeholder);
        moved.execution.stack_level = 0;
        let task = Task::start_local(work(moved));
        match task.finish().await {
            Some((shell, ran)) => {
                *self = shell;
                self.execution.stack_level = level;
                ran
            }
            None => Err(self.exceed("the shell failed: this is a bug in the host".into())),
        }
    }

    /// Parses a string and runs it in this shell.
    pub(crate) async fn evaluate(&mut self, text: &str) -> Flow {
        let line = self.execution.line;
        match super::parse::parse(text, line, &self.run.trees) {
            Ok(list) => {
                let ran = self.nested(&Arc::new(list)).await;
                self.execution.line = line;
                ran
            }
            Err(error) => {
                self.report(&error.to_string()).await;
                self.last.status = 2;
                Ok(())
            }
        }
    }

    /// Ends the shell: runs its `EXIT` trap, and leaves its jobs running.
    pub(crate) async fn finish(&mut self) {
        if let Some(action) = self.definitions.traps.remove("EXIT")
            && !action.is_empty()
        {
            let status = self.last.status;
            self.execution.errexit_suspended += 1;
            if self.evaluate(&action).await != Err(Jump::Exit) {
                self.last.status = status;
            }
            self.execution.errexit_suspended -= 1;
        }
        let tasks = self.jobs.release();
        self.run.adopt(tasks);
    }

    /// Runs a list as this shell's whole script and ends the shell.
    async fn run_to_end(&mut self, list: &List) {
        // The list has set the status, even if a jump such as `exit` ended it.
        let _ = self.list(list).await;
        self.finish().await;
    }
}

//! Carrying a script out: lists, chains, pipelines; compound commands, simple commands, redirections and jobs beside it.

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

use super::ast::{Chain, Command, Joint, Kind, List, Pipeline};
use super::interpreter::{Flow, Interpreter, Jump};
use super::run::Slot;
use crate::language::task::Task;

pub(crate) use lookup::Found;

/// The levels on the host's stack after which a task of its own goes on.
const LEVELS: u32 = 12;

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

    /// Runs pipelines that `&&` and `||` join.
    pub(super) async fn chain(&mut self, chain: &Chain) -> Flow {
        self.link(&chain.first, chain.rest.is_empty()).await?;
        for (place, (joint, pipeline)) in chain.rest.iter().enumerate() {
            if (self.last.status == 0) == (*joint == Joint::And) {
                self.link(pipeline, place + 1 == chain.rest.len()).await?;
            }
        }
        Ok(())
    }

    /// Runs one pipeline of a chain; a failure of the last one counts for `set -e`.
    async fn link(&mut self, pipeline: &Pipeline, last: bool) -> Flow {
        let tolerant = u32::from(!last || pipeline.negated);
        self.execution.errexit_suspended += tolerant;
        let ran = self.pipeline(pipeline).await;
        self.execution.errexit_suspended -= tolerant;
        ran?;
        let own = match pipeline.stages.as_slice() {
            [only] => matches!(only.kind, Kind::Simple(_) | Kind::Subshell(_) | Kind::Test(_) | Kind::Arithmetic(_)),
            stages => !stages.is_empty(),
        };
        if last && !pipeline.negated && own && self.last.status != 0 && self.execution.errexit_suspended == 0 {
            self.failed().await?;
        }
        Ok(())
    }

    /// A command failed where nobody looks at it.
    async fn failed(&mut self) -> Flow {
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
                Kind::Function(name, body) => {
                    Arc::make_mut(&mut self.definitions.functions).insert(name.clone(), Arc::clone(body));
                    self.last.status = 0;
                    Ok(())
                }
                kind if command.redirects.is_empty() => self.compound(kind).await,
                kind => {
                    let before = self.descriptors.open.clone();
                    let ran = match self.redirect(&command.redirects).await? {
                        Ok(()) => self.compound(kind).await,
                        Err(words) => {
                            self.descriptors.open.clone_from(&before);
                            self.report(&words).await;
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

    /// Runs a list one level deeper, on a stack of its own where this one has grown.
    pub(crate) async fn nested(&mut self, list: &Arc<List>) -> Flow {
        self.enter_level()?;
        let ran = if self.execution.stack_level < LEVELS {
            self.list(list).await
        } else {
            let list = Arc::clone(list);
            self.elsewhere(move |mut shell| {
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

    /// Takes a place for a shell that will run beside this one, a level deeper and on a stack of its own.
    pub(super) fn place_beside(&mut self, shell: &mut Interpreter) -> Flow<Slot> {
        shell.execution.stack_level = 0;
        if let Err(jump) = shell.enter_level() {
            self.last.status = shell.last.status;
            return Err(jump);
        }
        self.run.take_slot().map_err(|words| self.exceed(words))
    }

    /// Lets another task go on with this shell, and takes it back.
    pub(super) async fn elsewhere(
        &mut self,
        work: impl FnOnce(Interpreter) -> BoxFuture<'static, (Interpreter, Flow)>,
    ) -> Flow {
        let (level, hollow) = (self.execution.stack_level, self.placeholder());
        let mut moved = std::mem::replace(self, hollow);
        moved.execution.stack_level = 0;
        let task = Task::start(work(moved));
        match task.finish().await {
            Some((shell, ran)) => {
                *self = shell;
                self.execution.stack_level = level;
                ran
            }
            None => Err(self.exceed("the shell failed: this is a bug in the host".into())),
        }
    }

    /// Reads a text as a script and runs it here.
    pub(crate) async fn evaluate(&mut self, text: &str) -> Flow {
        let line = self.execution.line;
        match super::parse::parse(text, line) {
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

    /// Ends a shell: its traps are run, its jobs go on without it.
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

    /// Runs a list as a whole shell does: jumps end here.
    pub(super) async fn whole(&mut self, list: &List) {
        // Whatever jumped, the status is set.
        let _ = self.list(list).await;
        self.finish().await;
    }
}

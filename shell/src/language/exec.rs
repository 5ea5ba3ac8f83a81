//! Execution of scripts: lists, chains, pipelines, compound commands, substitutions and jobs. The
//! stages of a pipeline run in parallel, each in its own shell. The status of a pipeline is that of
//! its last stage or, under `set -o pipefail`, of its last stage that failed.

use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::ast::{
    Arm, CaseEnd, Chain, Command, Connector, Item, Kind, List, Pipeline, Target, TimeFormat, Word,
};
use super::expand::words_size;
use super::interpreter::{Flow, Interpreter, Jump, Stop};
use super::run::Slot;
use super::task::Task;
use super::{arithmetic, parse};
use crate::bounds::amount;
use crate::ledger::Charge;
use crate::stream::{OpenMode, Stream};

/// Maximum nesting depth of commands on one task's host stack. More deeply nested commands run in a
/// new task.
const MAX_STACK_LEVEL: u32 = 12;

/// Maximum number of functions in one shell.
const MAX_FUNCTIONS: usize = 5_000;

/// Descriptor of the first process substitution. Each additional one uses the next lower number.
const FIRST_DESCRIPTOR: u32 = 63;

/// A part of a script that a task can own.
pub(super) enum Body {
    /// The commands of a construct.
    List(Arc<List>),
    /// The lines of a script.
    Lines(Arc<List>),
    Command(Arc<Command>),
}

/// Result of a stage.
struct StageResult {
    status: u8,
    /// If true, the host killed the stage, so the pipeline ends.
    killed: bool,
}

/// Lists, chains, commands and their stacks.
impl Interpreter {
    /// Runs commands one after another.
    pub(crate) fn list<'a>(&'a mut self, list: &'a List) -> BoxFuture<'a, Flow> {
        async move {
            for item in &list.items {
                self.item(item).await?;
            }
            Ok(())
        }
        .boxed()
    }

    /// Runs the lines of a script, of `eval`, or of a trap. A line that is abandoned ends there, and
    /// the next line runs. In a copy of a shell, it ends the copy, as in bash.
    pub(crate) fn lines<'a>(&'a mut self, list: &'a List) -> BoxFuture<'a, Flow> {
        async move {
            let mut abandoned = false;
            for item in &list.items {
                if abandoned && !item.starts_line {
                    continue;
                }
                abandoned = false;
                match self.item(item).await {
                    Err(Jump::Abandon) if !self.lifecycle.forked => abandoned = true,
                    ran => ran?,
                }
            }
            Ok(())
        }
        .boxed()
    }

    /// Runs a chain, or starts it as a background job.
    async fn item(&mut self, item: &Item) -> Flow {
        match &item.background {
            Some(text) => self.start_job(Arc::clone(&item.chain), text.clone()).await,
            None => self.chain(&item.chain).await,
        }
    }

    /// Runs pipelines joined by `&&` and `||`.
    async fn chain(&mut self, chain: &Chain) -> Flow {
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
    fn command<'a>(&'a mut self, command: &'a Command) -> BoxFuture<'a, Flow> {
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
                    let ran = match self.redirect(&command.redirects).await {
                        Ok(()) => self.compound(kind).await,
                        Err(stop) => {
                            self.descriptors.open.clone_from(&before);
                            self.report_failure(stop).await.map(drop)
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

    /// Runs a list one nesting level deeper.
    pub(crate) async fn nested(&mut self, list: &Arc<List>) -> Flow {
        self.nested_body(Body::List(Arc::clone(list))).await
    }

    /// Runs the lines of a script one nesting level deeper.
    pub(crate) async fn nested_lines(&mut self, list: List) -> Flow {
        self.nested_body(Body::Lines(Arc::new(list))).await
    }

    async fn nested_body(&mut self, body: Body) -> Flow {
        self.enter_level()?;
        let ran = self.with_stack(body).await;
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

    /// Runs a body. At [`MAX_STACK_LEVEL`], runs it in a local task, which starts at the bottom of
    /// the thread's stack, instead of on the current stack.
    pub(super) async fn with_stack(&mut self, body: Body) -> Flow {
        let level = self.execution.stack_level;
        if level < MAX_STACK_LEVEL {
            return self.body(&body).await;
        }
        let placeholder = self.placeholder();
        let mut shell = std::mem::replace(self, placeholder);
        shell.execution.stack_level = 0;
        let task = Task::start_local(async move {
            let ran = shell.body(&body).await;
            (shell, ran)
        });
        match task.finish().await {
            Some((shell, ran)) => {
                *self = shell;
                self.execution.stack_level = level;
                ran
            }
            None => Err(self.exceed("the shell failed: this is a bug in the host".into())),
        }
    }

    async fn body(&mut self, body: &Body) -> Flow {
        match body {
            Body::List(list) => self.list(list).await,
            Body::Lines(list) => self.lines(list).await,
            Body::Command(command) => self.command(command).await,
        }
    }

    /// Counts the start of a command. Ends the script if it has started too many.
    pub(crate) fn count_command(&mut self) -> Flow {
        self.run.count_command().map_err(|message| self.exceed(message))
    }

    /// Parses a string and runs it in this shell.
    pub(crate) async fn evaluate(&mut self, text: &str) -> Flow {
        let line = self.execution.line;
        match parse::parse(text, line, &self.run.trees) {
            Ok(list) => {
                let ran = self.nested_lines(list).await;
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
    pub(super) async fn run_to_end(&mut self, list: &List) {
        // The list has set the status, even if a jump such as `exit` ended it.
        let _ = self.lines(list).await;
        self.finish().await;
    }
}

/// Pipelines and background jobs.
impl Interpreter {
    async fn pipeline(&mut self, pipeline: &Pipeline) -> Flow {
        let start = Instant::now();
        match pipeline.stages.as_slice() {
            [] => self.last.status = 0,
            [only] => {
                self.command(only).await?;
                self.set_pipe_status(vec![self.last.status])?;
            }
            stages => self.stages(stages).await?,
        }
        if pipeline.negated {
            self.last.status = u8::from(self.last.status == 0);
        }
        if let Some(timed) = pipeline.timed {
            self.report_time(start, timed).await;
        }
        Ok(())
    }

    /// Sets `PIPESTATUS`.
    fn set_pipe_status(&mut self, statuses: Vec<u8>) -> Flow {
        let texts = statuses.into_iter().map(|status| status.to_string()).collect();
        // A readonly `PIPESTATUS` keeps its value.
        match self.set_list("PIPESTATUS", texts) {
            Err(Stop::Jump(jump)) => Err(jump),
            _ => Ok(()),
        }
    }

    async fn stages(&mut self, stages: &[Arc<Command>]) -> Flow {
        if stages.len() > self.run.bounds.parallel {
            let max = self.run.bounds.parallel;
            return Err(self.exceed(format!("the pipeline has more than {max} stages")));
        }
        let mut input = self.descriptors.open.get(&0).cloned();
        let mut tasks = Vec::new();
        for (index, stage) in stages.iter().enumerate() {
            let mut shell = self.fork();
            shell.execution.stack_level = 0;
            match input.take() {
                Some(stream) => shell.descriptors.open.insert(0, stream),
                None => shell.descriptors.open.remove(&0),
            };
            if index + 1 < stages.len() {
                let (reader, writer) = Stream::pipe();
                shell.descriptors.open.insert(1, writer);
                input = Some(reader);
            }
            let slot = self.run.take_slot().map_err(|message| self.exceed(message))?;
            let command = Arc::clone(stage);
            tasks.push(Some(Task::start_local(async move {
                let _slot = slot;
                shell.stage(&command).await
            })));
        }
        let mut statuses = vec![0; tasks.len()];
        while let Some((index, result)) = next_ended(&mut tasks).await {
            let Some(result) = result else {
                return Err(self.exceed("a stage failed: this is a bug in the host".into()));
            };
            if let Some(status) = statuses.get_mut(index) {
                *status = result.status;
            }
            if result.killed {
                // Dropping the tasks ends the other stages.
                tasks.clear();
                self.last.status = result.status;
                return Ok(());
            }
        }
        self.last.status = statuses.last().copied().unwrap_or_default();
        if self.options.pipefail {
            self.last.status =
                statuses.iter().rev().copied().find(|status| *status != 0).unwrap_or_default();
        }
        let status = self.last.status;
        self.set_pipe_status(statuses)?;
        self.last.status = status;
        Ok(())
    }

    /// Runs a stage in this shell, which exists only for that stage.
    async fn stage(&mut self, command: &Command) -> StageResult {
        self.last.killed = false;
        if self.command(command).await != Err(Jump::Exit) || !self.run.is_ended() {
            self.finish().await;
        }
        StageResult { status: self.last.status, killed: self.last.killed }
    }

    /// Prints the report of `time`.
    async fn report_time(&mut self, start: Instant, timed: TimeFormat) {
        let seconds = start.elapsed().as_secs_f64();
        let text = match timed {
            TimeFormat::Posix => format!("real {seconds:.2}\nuser {seconds:.2}\nsys 0.00\n"),
            TimeFormat::Plain => {
                let minutes = (seconds / 60.0).floor();
                let rest = seconds - minutes * 60.0;
                format!("\nreal\t{minutes}m{rest:.3}s\nuser\t{minutes}m{rest:.3}s\nsys\t0m0.000s\n")
            }
        };
        self.write_stderr(&text).await;
    }

    /// Starts a chain as a background job.
    async fn start_job(&mut self, chain: Arc<Chain>, text: String) -> Flow {
        while self.run.is_busy() && self.jobs.are_running() {
            self.jobs.wait_one().await;
        }
        self.checkpoint().await?;
        let mut shell = self.fork();
        shell.descriptors.open.insert(0, Stream::null());
        let slot = self.slot_for(&mut shell)?;
        let task = Task::start(async move {
            let _slot = slot;
            if shell.chain(&chain).await != Err(Jump::Exit) || !shell.run.is_ended() {
                shell.finish().await;
            }
            shell.last.status
        });
        let pid = self.run.next_pid();
        let text = self.stored(text)?;
        self.jobs.add(pid, text, task);
        self.last.status = 0;
        Ok(())
    }
}

/// Compound commands: groups, subshells, conditions, loops, `case`, `select`.
impl Interpreter {
    /// Runs a compound command, without applying its redirections.
    async fn compound(&mut self, kind: &Kind) -> Flow {
        match kind {
            Kind::Group(list) => self.list(list).await,
            Kind::Subshell(list) => self.subshell(list).await,
            Kind::If { arms, otherwise } => self.condition(arms, otherwise.as_ref()).await,
            Kind::While { until, test, body } => self.while_loop(*until, test, body).await,
            Kind::For { name, words, body } => {
                let mut charge = self.word_charge();
                let words = self.loop_words(words.as_deref(), &mut charge).await?;
                self.for_loop(name, words, body).await
            }
            Kind::Select { name, words, body } => {
                let mut charge = self.word_charge();
                let words = self.loop_words(words.as_deref(), &mut charge).await?;
                self.select(name, words, body).await
            }
            Kind::Count { start, test, step, body } => {
                self.count_loop(start, test, step, body).await
            }
            Kind::Case { word, arms } => self.case(word, arms).await,
            Kind::Test(test) => {
                self.last.status = match self.conditional(test).await {
                    Ok(truth) => u8::from(!truth),
                    Err(stop) => self.report_failure(stop).await?,
                };
                Ok(())
            }
            Kind::Arithmetic(word) => {
                let text = self.text(word).await?;
                self.last.status = match arithmetic::evaluate(&text, self) {
                    Ok(value) => u8::from(value == 0),
                    Err(message) => self.failed(1, &format!("((: {message}")).await?,
                };
                Ok(())
            }
            Kind::Simple(_) | Kind::Function(..) => Ok(()),
        }
    }

    /// Runs a list in a subshell.
    async fn subshell(&mut self, list: &Arc<List>) -> Flow {
        self.count_command()?;
        let mut shell = self.fork();
        let ran = shell.nested(list).await;
        if self.run.is_ended() {
            return Err(Jump::Exit);
        }
        if ran != Err(Jump::Exit) || !shell.definitions.traps.is_empty() {
            shell.finish().await;
        } else {
            let tasks = shell.jobs.release();
            self.run.adopt(tasks);
        }
        self.last.status = shell.last.status;
        self.last.killed = shell.last.killed;
        Ok(())
    }

    /// Runs the condition of a compound command. A failing condition does not trigger `set -e`.
    async fn test(&mut self, list: &List) -> Flow<bool> {
        self.execution.errexit_suspended += 1;
        let ran = self.list(list).await;
        self.execution.errexit_suspended -= 1;
        ran.map(|()| self.last.status == 0)
    }

    async fn condition(&mut self, arms: &[(List, List)], otherwise: Option<&List>) -> Flow {
        for (test, body) in arms {
            if self.test(test).await? {
                return self.list(body).await;
            }
        }
        self.last.status = 0;
        match otherwise {
            Some(body) => self.list(body).await,
            None => Ok(()),
        }
    }

    /// Runs a loop's body once. Returns false if the loop must end.
    async fn iterate(&mut self, body: &List) -> Flow<bool> {
        self.checkpoint().await?;
        self.execution.loops += 1;
        let ran = self.list(body).await;
        self.execution.loops -= 1;
        ran.map_or_else(after_iteration, |()| Ok(true))
    }

    async fn while_loop(&mut self, until: bool, test: &List, body: &List) -> Flow {
        let mut status = 0;
        loop {
            self.execution.loops += 1;
            let tested = self.test(test).await;
            self.execution.loops -= 1;
            match tested {
                Ok(truth) if truth == until => break,
                Ok(_) => {}
                Err(jump) => {
                    if after_iteration(jump)? {
                        continue;
                    }
                    break;
                }
            }
            let go_on = self.iterate(body).await?;
            status = self.last.status;
            if !go_on {
                break;
            }
        }
        self.last.status = status;
        Ok(())
    }

    async fn loop_words(
        &mut self,
        words: Option<&[Word]>,
        charge: &mut Charge,
    ) -> Flow<Vec<String>> {
        let Some(words) = words else {
            let all = self.parameters.words();
            self.charge_words(words_size(&all), charge)?;
            return Ok(all);
        };
        let mut all = Vec::new();
        for word in words {
            all.extend(self.fields(word, charge).await?);
        }
        Ok(all)
    }

    async fn for_loop(&mut self, name: &str, words: Vec<String>, body: &List) -> Flow {
        self.last.status = 0;
        for word in words {
            // As in bash, a readonly variable ends only the loop.
            if let Err(stop) = self.set(name, word).await {
                self.report_failure(stop).await?;
                break;
            }
            if !self.iterate(body).await? {
                break;
            }
        }
        Ok(())
    }

    async fn count_loop(&mut self, start: &Word, test: &Word, step: &Word, body: &List) -> Flow {
        let mut status = 0;
        let mut runs = self.evaluate_part(start).await?.is_some();
        while runs {
            match self.evaluate_part(test).await? {
                Some(0) => break,
                Some(_) => {}
                None => return Ok(()),
            }
            let go_on = self.iterate(body).await?;
            status = self.last.status;
            if !go_on {
                break;
            }
            runs = self.evaluate_part(step).await?.is_some();
        }
        if runs {
            self.last.status = status;
        }
        Ok(())
    }

    /// Evaluates one of the three expressions of `for (( ; ; ))`. An empty expression has the value
    /// 1. Reports an invalid expression and returns `None`: as in bash, it ends only the loop.
    async fn evaluate_part(&mut self, word: &Word) -> Flow<Option<i64>> {
        let text = self.text(word).await?;
        if text.trim().is_empty() {
            return Ok(Some(1));
        }
        match arithmetic::evaluate(&text, self) {
            Ok(value) => Ok(Some(value)),
            Err(message) => self.failed(1, &format!("((: {message}")).await.map(|_| None),
        }
    }

    async fn case(&mut self, word: &Word, arms: &[Arm]) -> Flow {
        let text = self.text(word).await?;
        self.last.status = 0;
        let mut falls_through = false;
        for arm in arms {
            let mut chosen = std::mem::take(&mut falls_through);
            for pattern in &arm.patterns {
                if chosen {
                    break;
                }
                let pattern = self.pattern(pattern, false, self.options.nocasematch).await?;
                chosen = match self.matches(&pattern, &text) {
                    Ok(matches) => matches,
                    Err(message) => return Err(self.fail(&message).await),
                };
            }
            if !chosen {
                continue;
            }
            self.list(&arm.body).await?;
            match arm.then {
                CaseEnd::Break => break,
                CaseEnd::FallThrough => falls_through = true,
                CaseEnd::TestNext => {}
            }
        }
        Ok(())
    }

    async fn select(&mut self, name: &str, words: Vec<String>, body: &List) -> Flow {
        self.last.status = 0;
        if words.is_empty() {
            return Ok(());
        }
        let menu: String = words
            .iter()
            .enumerate()
            .map(|(index, word)| format!("{}) {word}\n", index + 1))
            .collect();
        let mut shown = false;
        loop {
            let prompt =
                self.variable("PS3").map_or_else(|| "#? ".to_owned(), |text| text.to_string());
            let text = if shown { prompt } else { format!("{menu}{prompt}") };
            shown = true;
            self.write_stderr(&text).await;
            let Some(answer) = self.read_line().await? else {
                self.last.status = 1;
                return Ok(());
            };
            if answer.is_empty() {
                shown = false;
                continue;
            }
            let chosen = answer
                .trim()
                .parse::<usize>()
                .ok()
                .and_then(|number| words.get(number.wrapping_sub(1)).cloned())
                .unwrap_or_default();
            for (name, text) in [("REPLY", answer), (name, chosen)] {
                if let Err(stop) = self.set(name, text).await {
                    self.report_failure(stop).await?;
                    return Ok(());
                }
            }
            if !self.iterate(body).await? {
                return Ok(());
            }
        }
    }
}

/// Command substitutions `$( )`, and process substitutions `<( )` and `>( )`.
impl Interpreter {
    /// Runs a command substitution and returns its output without trailing newlines.
    pub(crate) async fn substitute(&mut self, list: &Arc<List>) -> Flow<String> {
        let limit = self.run.bounds.substitution;
        let (text, over) = match self.file_contents(list).await? {
            Some(read) => read,
            None => {
                let (stream, captured) = Stream::capture_charged(limit, self.word_charge());
                let mut shell = self.fork();
                shell.descriptors.open.insert(1, stream);
                if !self.options.inherit_errexit {
                    shell.options.errexit = false;
                }
                self.count_command()?;
                let ran = shell.nested(list).await;
                if self.run.is_ended() {
                    return Err(Jump::Exit);
                }
                if ran != Err(Jump::Exit) || !shell.definitions.traps.is_empty() {
                    shell.finish().await;
                }
                shell.jobs.wait_all().await;
                self.last.status = shell.last.status;
                self.last.substitution_status = shell.last.status;
                let over = captured.overflowed();
                let text = captured.take();
                if over && text.len() < limit {
                    return Err(self.exceed_words());
                }
                (text, over)
            }
        };
        if over {
            return Err(self.exceed(format!(
                "a substitution returned more than {}: write to a file or use a pipe",
                amount(limit)
            )));
        }
        let mut text = String::from_utf8_lossy(&text).into_owned();
        if text.contains('\0') {
            text.retain(|c| c != '\0');
        }
        text.truncate(text.trim_end_matches('\n').len());
        Ok(text)
    }

    /// Reads the file of `$(<file)`. Returns its content, and a flag that is true if the content
    /// exceeds the limit. Returns `None` if the list is not of the form `<file`.
    async fn file_contents(&mut self, list: &List) -> Flow<Option<(Vec<u8>, bool)>> {
        let [item] = list.items.as_slice() else { return Ok(None) };
        let [stage] = item.chain.first.stages.as_slice() else { return Ok(None) };
        let (Kind::Simple(simple), [redirect]) = (&stage.kind, stage.redirects.as_slice()) else {
            return Ok(None);
        };
        let Target::Read(word) = &redirect.to else { return Ok(None) };
        if !simple.words.is_empty()
            || !simple.assignments.is_empty()
            || !item.chain.rest.is_empty()
            || item.background.is_some()
        {
            return Ok(None);
        }
        let path = self.text(word).await?;
        let stream = match self.open(&path, OpenMode::READ).await {
            Ok(stream) => stream,
            Err(message) => {
                self.report(&message).await;
                self.last.status = 1;
                self.last.substitution_status = 1;
                return Ok(Some((Vec::new(), false)));
            }
        };
        self.last.status = 0;
        self.last.substitution_status = 0;
        self.read_whole(&stream).await.map(Some)
    }

    /// Reads a stream to its end. Returns the bytes, and a flag that is true if they exceed the
    /// limit for a substitution.
    pub(crate) async fn read_whole(&mut self, stream: &Stream) -> Flow<(Vec<u8>, bool)> {
        let limit = self.run.bounds.substitution;
        let mut text = Vec::new();
        loop {
            match stream.read(64 << 10).await {
                Ok(chunk) if chunk.is_empty() => return Ok((text, false)),
                Ok(chunk) => text.extend_from_slice(&chunk),
                Err(errno) => {
                    self.report(&format!("read error: {errno}")).await;
                    return Ok((text, false));
                }
            }
            if text.len() > limit {
                return Ok((text, true));
            }
        }
    }

    /// Starts a process substitution and returns the path of its descriptor.
    pub(crate) async fn process(&mut self, input: bool, list: Arc<List>) -> Flow<String> {
        let (reader, writer) = Stream::pipe();
        let mut shell = self.fork();
        for fd in shell.descriptors.substitutions.drain(..) {
            shell.descriptors.open.remove(&fd);
        }
        let own = if input {
            shell.descriptors.open.insert(1, writer);
            reader
        } else {
            shell.descriptors.open.insert(0, reader);
            writer
        };
        let slot = self.slot_for(&mut shell)?;
        let task = Task::start(async move {
            let _slot = slot;
            shell.run_to_end(&list).await;
            shell.last.status
        });
        let pid = self.run.next_pid();
        self.jobs.add_hidden(pid, task);
        let Some(fd) =
            (10..=FIRST_DESCRIPTOR).rev().find(|fd| !self.descriptors.open.contains_key(fd))
        else {
            return Err(self.exceed("more process substitutions are open than fit".into()));
        };
        self.descriptors.open.insert(fd, own);
        self.descriptors.substitutions.push(fd);
        Ok(format!("/dev/fd/{fd}"))
    }
}

/// Returns true if a jump out of a loop's body continues the loop, and false if it ends the loop.
/// Fails with the jump that remains if it leaves the loop for an outer one.
fn after_iteration(jump: Jump) -> Flow<bool> {
    match jump {
        Jump::Continue(1) => Ok(true),
        Jump::Break(1) => Ok(false),
        Jump::Continue(more) => Err(Jump::Continue(more - 1)),
        Jump::Break(more) => Err(Jump::Break(more - 1)),
        other => Err(other),
    }
}

/// Waits until one of the running stages ends. Returns its index and its result, which is `None` if
/// the stage panicked. Returns `None` if all stages have ended.
async fn next_ended(
    tasks: &mut [Option<Task<StageResult>>],
) -> Option<(usize, Option<StageResult>)> {
    if tasks.iter().all(Option::is_none) {
        return None;
    }
    let ended = std::future::poll_fn(|context| {
        for (index, task) in tasks.iter_mut().enumerate() {
            if let Some(running) = task
                && let std::task::Poll::Ready(result) = running.poll_end(context)
            {
                *task = None;
                return std::task::Poll::Ready((index, result));
            }
        }
        std::task::Poll::Pending
    })
    .await;
    Some(ended)
}

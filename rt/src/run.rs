//! The state of one run of a program. Host functions access it.

use std::any::{Any, TypeId};
use std::sync::Arc;
use std::time::Instant;

use wasmtime::{Memory, ResourceLimiter};

use crate::deadline::{Deadline, Pause, SharedDeadline};
use crate::growing::GrowingStrings;
use crate::host::{CallValue, Record, TapedCall, wrong_recorded_type};
use crate::outcome::Artifact;
use crate::tape::{Args, RecordedValue, TapeCursor};
use crate::{
    Account, CallEffect, Calls, Code, Config, Failure, Grants, MemoryCharge, Outcome, Target,
};

/// Maximum number of lines that [`Run::log`] keeps.
const MAX_LOG_LINES: usize = 1_000;
/// Maximum length of a log line, in bytes.
const MAX_LOG_LINE: usize = 4_096;
/// Maximum total length of the lines that [`Run::log`] keeps, in bytes.
const MAX_LOG: usize = 1 << 20;

/// Maximum depth of nesting: a program, its child and its grandchild.
pub(crate) const LEVELS: usize = 3;

/// The settings that a nested program inherits. The nested program runs one level deeper than its
/// parent, and must end by the parent's deadline.
#[derive(Clone, Debug)]
pub struct NestedContext {
    pub(crate) level: usize,
    pub(crate) deadline: SharedDeadline,
    /// The cursor on the tape of the run, if the run has a tape.
    pub(crate) tape: Option<TapeCursor>,
    /// The account of the run.
    pub(crate) account: Account,
}

impl NestedContext {
    /// Returns the settings for the program at `index` in the list of programs that one call
    /// starts.
    #[must_use]
    pub fn item(&self, index: usize) -> NestedContext {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        let tape = self.tape.as_ref().map(|cursor| cursor.child(index));
        NestedContext { tape, ..self.clone() }
    }
}

/// The place of a program among the programs of its run.
pub(crate) struct RunContext {
    pub(crate) level: usize,
    pub(crate) deadline: Deadline,
    pub(crate) tape: Option<TapeCursor>,
    pub(crate) account: Account,
}

/// Maximum number of artifacts per program.
const MAX_ARTIFACTS: usize = 32;

/// Maximum total size of one program's artifacts, in bytes.
const MAX_ARTIFACT_BYTES: usize = 4 << 20;

/// A run of a program: its arguments, its grants, its results so far, and the state that
/// capabilities keep for it.
///
/// The engine's store owns it. Host functions receive it as their first parameter.
pub struct Run {
    args: Vec<String>,
    grants: Arc<Grants>,
    states: Vec<(TypeId, Box<dyn Any + Send + Sync>)>,
    results: Vec<Vec<u8>>,
    answer: Option<String>,
    artifacts: Vec<Artifact>,
    log: Vec<String>,
    /// The total length of the log's lines, in bytes.
    logged: usize,
    /// The number of bytes that the host may still hold for this program's results, artifacts,
    /// arrays and maps.
    budget: usize,
    /// The level of nesting, which is 0 for a top-level program.
    level: usize,
    /// The host calls of nested programs.
    pub(crate) nested_calls: Vec<Calls>,
    /// The fuel that nested programs used.
    pub(crate) nested_fuel: u64,
    pub(crate) memory: Option<Memory>,
    /// The first free address of the program's memory.
    pub(crate) heap: u32,
    pub(crate) growing: GrowingStrings,
    pub(crate) memory_limit: MemoryLimit,
    pub(crate) deadline: Deadline,
    pub(crate) tape: Option<TapeCursor>,
    pub(crate) calls: Vec<Calls>,
    /// The last failed call. Boxed, because few runs have one.
    pub(crate) failed: Option<Box<FailedCall>>,
    /// The second-to-last failed call.
    pub(crate) failed_before: Option<Box<FailedCall>>,
    /// The host function that was called last.
    pub(crate) last: Option<&'static str>,
    /// If true, the program asked to end, which is a success.
    pub(crate) ended: bool,
}

/// The limit on a program's memory.
pub(crate) struct MemoryLimit {
    /// Maximum size of the program's memory, in bytes.
    max: usize,
    /// The program's memory and what the host holds for the program, charged to the account of the
    /// run.
    held: MemoryCharge,
    /// The error of the account, if the account rejected the program's last request for more
    /// memory.
    pub(crate) refused: Option<Failure>,
}

impl ResourceLimiter for MemoryLimit {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if desired > self.max {
            return Ok(false);
        }
        self.refused = self.held.grow(desired.saturating_sub(current)).err();
        Ok(self.refused.is_none())
    }

    /// Allows any growth, because the instance pool limits the size of tables.
    fn table_growing(&mut self, _: usize, _: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(true)
    }
}

/// A failed host call and its offset in the module's binary.
#[derive(Clone, Debug)]
pub(crate) struct FailedCall {
    pub(crate) function: &'static str,
    pub(crate) failure: Failure,
    pub(crate) offset: Option<usize>,
}

impl Run {
    pub(crate) fn new(
        args: Vec<String>,
        grants: Arc<Grants>,
        memory_limit: usize,
        context: RunContext,
    ) -> Self {
        let RunContext { level, deadline, tape, account } = context;
        Run {
            args,
            grants,
            states: Vec::new(),
            results: Vec::new(),
            answer: None,
            artifacts: Vec::new(),
            log: Vec::new(),
            logged: 0,
            budget: memory_limit,
            level,
            nested_calls: Vec::new(),
            nested_fuel: 0,
            memory: None,
            heap: 0,
            growing: GrowingStrings::default(),
            memory_limit: MemoryLimit {
                max: memory_limit,
                held: MemoryCharge::nothing(account),
                refused: None,
            },
            deadline,
            tape,
            calls: Vec::new(),
            failed: None,
            failed_before: None,
            last: None,
            ended: false,
        }
    }

    /// Ends the program, which succeeds, wherever it is. The host function must return the failure.
    pub fn end(&mut self) -> Failure {
        self.ended = true;
        Failure::new(Code::SUCCESS, "the program ended")
    }

    /// Returns the failure of the last host call that failed, or `None` if none has failed.
    #[must_use]
    pub fn last_failure(&self) -> Option<&Failure> {
        self.failed.as_ref().map(|failed| &failed.failure)
    }

    /// Returns the program's arguments.
    #[must_use]
    pub fn args(&self) -> &[String] {
        &self.args
    }

    /// Returns the run's grants. A nested program gets the same grants and never more.
    #[must_use]
    pub fn grants(&self) -> &Arc<Grants> {
        &self.grants
    }

    /// Returns true if another program started this one.
    #[must_use]
    pub fn is_nested(&self) -> bool {
        self.level > 0
    }

    /// Returns the maximum memory of a program, in bytes.
    #[must_use]
    pub fn memory_limit(&self) -> usize {
        self.memory_limit.max
    }

    /// Returns the account of the run, which all of its programs share.
    #[must_use]
    pub fn account(&self) -> &Account {
        self.memory_limit.held.account()
    }

    /// Asks the run's guard about a resource that a call is about to access. `function` is the full
    /// name, such as `http.get`.
    ///
    /// Before the adapter calls a host function, it asks about the arguments that the function's
    /// row declares as names. `admit` is for additional resources, such as each URL in an array.
    ///
    /// # Errors
    /// `EACCESS` if the guard denies access.
    pub fn admit(&self, function: &str, target: Target, text: &str) -> Result<(), Failure> {
        let Some(guard) = self.grants.guard() else { return Ok(()) };
        let capability = function.split('.').next().unwrap_or_default();
        let counted = self.calls.iter().find(|calls| calls.function == function);
        let number = counted.map_or(0, |calls| calls.calls);
        guard
            .numbered_call(number, capability, function, (target, text))
            .map_err(|why| Failure::new(Code::EACCESS, why))
    }

    /// Returns the deadline of the run. Work that a host function starts must end by then.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.deadline.instant()
    }

    /// Suspends the deadlines of the program and its parents until the pause is dropped. A host
    /// function holds a pause while it waits for work that has its own time limits.
    pub fn pause(&self) -> Pause {
        self.deadline.shared().pause()
    }

    /// Stops the program until a person has answered a question. Returns the failure that the
    /// calling host function must return. Only a run with a tape can be suspended. When the run is
    /// resumed, the call that asks the question is made again.
    #[must_use]
    pub fn suspend(&mut self, question: &str) -> Failure {
        let reason = match &mut self.tape {
            Some(cursor) => cursor.suspend(question).0,
            None => format!("nobody can answer: {question}"),
        };
        Failure::new(Code::ECANCEL, reason)
    }

    /// Returns the settings that a nested program inherits, for
    /// [`Runtime::run_nested`](crate::Runtime::run_nested). A call requests the settings once. If
    /// it starts several programs, it passes [separate settings](NestedContext::item) to each.
    ///
    /// # Errors
    /// `EBOUND` if this program is at the maximum depth of nesting.
    pub fn nested(&mut self) -> Result<NestedContext, Failure> {
        if self.level + 1 < LEVELS {
            let tape = self.tape.as_mut().map(TapeCursor::nested);
            let account = self.account().clone();
            return Ok(NestedContext {
                level: self.level + 1,
                deadline: self.deadline.shared().clone(),
                tape,
                account,
            });
        }
        let reason = format!(
            "programs that start programs may be nested {LEVELS} deep, and this one is at that \
             depth"
        );
        Err(Failure::new(Code::EBOUND, reason))
    }

    /// Returns a key for the next change that the call in progress makes. A backend can use it to
    /// avoid making the same change twice. The key is unique to the change. It stays the same if
    /// the call is repeated because the process stopped. Returns `None` if the run is not recorded.
    #[must_use]
    pub fn change_key(&mut self) -> Option<String> {
        self.tape.as_mut().and_then(TapeCursor::key)
    }

    /// Returns a value that comes from outside the program but not from a host call, and records it
    /// on the tape under `name`, with the arguments that `args` adds. `make` creates the value. In a
    /// replay, `restore` converts the recorded value instead.
    ///
    /// # Errors
    /// The errors that `make` returns, and `ECANCEL` if the program must not continue. The program
    /// is then ended.
    pub fn recall<V: Record>(
        &mut self,
        name: &'static str,
        args: impl FnOnce(&mut Args),
        make: impl FnOnce(&mut Run) -> Result<V, Failure>,
        restore: impl FnOnce(RecordedValue) -> Option<V>,
    ) -> Result<V, Failure> {
        let call = TapedCall::begin(self, name, CallEffect::Reads, args);
        let call = call.map_err(|halt| Failure::new(Code::ECANCEL, halt.0))?;
        let made = if call.is_performed() { make(self) } else { Err(wrong_recorded_type()) };
        match call.finish(self, made)? {
            CallValue::Returned(value) => Ok(value),
            CallValue::Recorded(recorded) => restore(recorded).ok_or_else(wrong_recorded_type),
        }
    }

    /// Adds the host calls, the log and the fuel of a nested program to those of this program.
    pub fn absorb(&mut self, outcome: &Outcome) {
        outcome.log.iter().for_each(|line| self.log(line));
        self.nested_fuel = self.nested_fuel.saturating_add(outcome.fuel.unwrap_or(0));
        outcome.calls.iter().for_each(|calls| add_calls(&mut self.nested_calls, calls.clone()));
    }

    /// Returns the state of the capability that the calling function belongs to, or of another one
    /// whose state it also needs.
    ///
    /// # Errors
    /// `EACCESS` if the other capability is not granted.
    pub fn config<C: Config>(&self) -> Result<Arc<C>, Failure> {
        self.grants.config::<C>().ok_or_else(|| {
            let names = C::CAPABILITIES.join("` or `");
            Failure::new(Code::EACCESS, format!("this needs `{names}`, which this run has not"))
        })
    }

    /// Returns the state that a capability keeps for this run. The state is created on first use.
    pub fn state<S: Default + Send + Sync + 'static>(&mut self) -> &mut S {
        let id = TypeId::of::<S>();
        let at = match self.states.iter().position(|(known, _)| *known == id) {
            Some(at) => at,
            None => {
                self.states.push((id, Box::<S>::default()));
                self.states.len() - 1
            }
        };
        #[expect(
            clippy::expect_used,
            clippy::indexing_slicing,
            reason = "the entry was found or made just above, under its own type"
        )]
        self.states[at].1.downcast_mut().expect("an entry is stored under its own type")
    }

    /// Adds a result to the output of the program.
    ///
    /// # Errors
    /// `ENOMEM` if the host would hold too much memory for the run.
    pub fn emit_result(&mut self, result: &[u8]) -> Result<(), Failure> {
        self.charge(result.len())?;
        self.results.push(result.to_vec());
        Ok(())
    }

    /// Adds a result that is also the answer to the user, which ends the agent's run. Only the last
    /// answer counts, and only if the program returns 0.
    ///
    /// # Errors
    /// `EACCESS` in a nested program, which returns its results to its parent. `ENOMEM` for the
    /// same reason as [`emit_result`](Run::emit_result).
    pub fn answer(&mut self, answer: &str) -> Result<(), Failure> {
        if self.level > 0 {
            let reason = "a program that another one started cannot end the run; it returns its \
                          results to that program";
            return Err(Failure::new(Code::EACCESS, reason));
        }
        self.emit_result(answer.as_bytes())?;
        self.answer = Some(answer.to_owned());
        Ok(())
    }

    /// Leaves data for the application that started the run. The model does not see it. The data is
    /// kept only if the program returns 0. An artifact replaces an earlier one with the same name.
    ///
    /// # Errors
    /// `EACCESS` in a nested program, which returns its results to its parent. `EBOUND` if the
    /// program has left too many artifacts. `ENOMEM` for the same reason as
    /// [`emit_result`](Run::emit_result).
    pub fn leave_artifact(&mut self, name: &str, data: &[u8]) -> Result<(), Failure> {
        if self.level > 0 {
            let reason = "a program that another one started cannot leave artifacts; it returns \
                          its results to that program";
            return Err(Failure::new(Code::EACCESS, reason));
        }
        let others = || self.artifacts.iter().filter(|known| known.name != name);
        let bytes: usize = others().map(|known| known.data.len()).sum();
        if others().count() >= MAX_ARTIFACTS
            || bytes.saturating_add(data.len()) > MAX_ARTIFACT_BYTES
        {
            let reason = format!(
                "a program leaves at most {MAX_ARTIFACTS} artifacts of together {} MiB",
                MAX_ARTIFACT_BYTES >> 20
            );
            return Err(Failure::new(Code::EBOUND, reason));
        }
        self.charge(data.len())?;
        self.artifacts.retain(|known| known.name != name);
        self.artifacts.push(Artifact { name: name.to_owned(), data: data.to_vec() });
        Ok(())
    }

    /// Adds a line to the run's log. Lines are truncated at 4,096 bytes. A line is dropped if the
    /// log already has 1,000 lines, if the log would exceed 1 MiB, or if the account of the run has
    /// no memory for the line.
    pub fn log(&mut self, line: &str) {
        let line = line.get(..line.floor_char_boundary(MAX_LOG_LINE)).unwrap_or_default();
        let logged = self.logged.saturating_add(line.len());
        if self.log.len() < MAX_LOG_LINES
            && logged <= MAX_LOG
            && self.memory_limit.held.grow(line.len() + size_of::<String>()).is_ok()
        {
            self.logged = logged;
            self.log.push(line.to_owned());
        }
    }

    /// Charges the run for bytes that the host holds on behalf of the run until the run ends. The
    /// limit is the same as for the program's own memory.
    ///
    /// # Errors
    /// `ENOMEM` if the limit would be exceeded.
    pub fn charge(&mut self, bytes: usize) -> Result<(), Failure> {
        // Even a value of 0 bytes takes up memory.
        match self.budget.checked_sub(bytes.saturating_add(32)) {
            Some(rest) => {
                self.memory_limit.held.grow(self.budget - rest)?;
                self.budget = rest;
                Ok(())
            }
            None => Err(Failure::new(
                Code::ENOMEM,
                "the results and arrays of this run take more than its memory limit",
            )),
        }
    }

    /// Returns the number of bytes that the host may still hold for this run.
    #[must_use]
    pub fn remaining_memory(&self) -> usize {
        self.budget.min(self.account().free())
    }

    /// Counts a call to a host function.
    pub(crate) fn count(&mut self, function: &'static str) {
        self.last = Some(function);
        // The name of a function is usually the same constant at each of its calls.
        match self.calls.iter_mut().find(|known| std::ptr::eq(known.function, function)) {
            Some(known) => known.calls += 1,
            None => add_calls(&mut self.calls, Calls { function, calls: 1, failed: 0 }),
        }
    }

    /// Records that the call to a host function failed. `offset` is that of the call in the module's
    /// binary.
    pub(crate) fn fail(&mut self, function: &'static str, failure: Failure, offset: Option<usize>) {
        if self.ended {
            return;
        }
        add_calls(&mut self.calls, Calls { function, calls: 0, failed: 1 });
        let failed = Box::new(FailedCall { function, failure, offset });
        self.failed_before = self.failed.replace(failed);
    }

    /// Returns the calls of this program, followed by those of nested programs.
    pub(crate) fn take_calls(&mut self) -> Vec<Calls> {
        let mut calls = std::mem::take(&mut self.calls);
        for nested in self.nested_calls.drain(..) {
            add_calls(&mut calls, nested);
        }
        calls
    }

    pub(crate) fn take_results(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.results)
    }

    pub(crate) fn take_answer(&mut self) -> Option<String> {
        self.answer.take()
    }

    pub(crate) fn take_artifacts(&mut self) -> Vec<Artifact> {
        std::mem::take(&mut self.artifacts)
    }

    pub(crate) fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }
}

/// Adds the calls of one function to a list that has one entry for each function.
fn add_calls(list: &mut Vec<Calls>, added: Calls) {
    match list.iter_mut().find(|known| known.function == added.function) {
        Some(known) => {
            known.calls += added.calls;
            known.failed += added.failed;
        }
        None => list.push(added),
    }
}

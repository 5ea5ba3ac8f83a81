//! The state of one run: what host functions see of it.

use std::any::{Any, TypeId};
use std::sync::Arc;
use std::time::Instant;

use wasmtime::{Memory, ResourceLimiter};

use crate::host::{Given, Record, Start, wrong_recorded_type};
use crate::tape::{RecordedValue, TapeCursor};
use crate::{Account, CallEffect, Calls, Code, Config, Failure, Grants, Held, Outcome, Target};

/// The most lines that [`Run::log`] keeps, and the most bytes of one line.
const LOG_LINES: usize = 1_000;
const LOG_BYTES: usize = 4_096;

/// How deep programs that start programs may be nested: a program, one that it starts, and one that that one starts.
pub(crate) const LEVELS: usize = 3;

/// The place of a program that another one starts: one level deeper, and over by the other's deadline.
#[derive(Clone, Debug)]
pub struct Nested {
    pub(crate) level: usize,
    pub(crate) deadline: Instant,
    /// The place on the tape of the run, where it has one.
    pub(crate) reel: Option<TapeCursor>,
    /// The account of the run.
    pub(crate) account: Account,
}

impl Nested {
    /// The place of one of several programs that one call starts, counted from 0 in the order of the call.
    #[must_use]
    pub fn item(&self, at: usize) -> Nested {
        let reel = self.reel.as_ref().map(|reel| reel.child(u32::try_from(at).unwrap_or(u32::MAX)));
        Nested { reel, ..self.clone() }
    }
}

/// One run of one program: its arguments, its grants, what it has put out, and the state that capabilities keep for it.
///
/// It lives in the engine's store and is gone with the run. Host functions get it as their first parameter.
pub struct Run {
    args: Vec<String>,
    grants: Arc<Grants>,
    states: Vec<(TypeId, Box<dyn Any + Send + Sync>)>,
    results: Vec<Vec<u8>>,
    answer: Option<String>,
    log: Vec<String>,
    /// Bytes that the host may still hold for this program: results, arrays, logs.
    budget: usize,
    /// What it holds for this program, on the account.
    held: Held,
    account: Account,
    /// 0 for a program that no other one started.
    level: usize,
    /// Calls and fuel of the programs that this one started.
    pub(crate) others: Vec<Calls>,
    pub(crate) fuel_of_others: u64,
    pub(crate) memory: Option<Memory>,
    /// The first free address of the program's memory.
    pub(crate) heap: u32,
    pub(crate) memory_limit: MemoryLimit,
    pub(crate) deadline: Instant,
    pub(crate) reel: Option<TapeCursor>,
    pub(crate) calls: Vec<CallCount>,
    pub(crate) failed: Option<FailedCall>,
    /// The host function that was called last.
    pub(crate) last: Option<usize>,
    /// The asynchronous host call that is under way, and where in the module it was made.
    pub(crate) waiting: Option<(usize, Option<usize>)>,
}

/// Bounds the memory of a program, and holds it on the account of its run.
pub(crate) struct MemoryLimit {
    most: usize,
    held: Held,
    /// Why the account last refused more.
    pub(crate) refused: Option<Failure>,
}

impl ResourceLimiter for MemoryLimit {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        if desired > self.most {
            return Ok(false);
        }
        self.refused = self.held.grow(desired.saturating_sub(current)).err();
        Ok(self.refused.is_none())
    }

    /// Tables are bounded by the engine's pool.
    fn table_growing(&mut self, _: usize, _: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(true)
    }
}

/// How often a host function was called in a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallCount {
    pub(crate) function: usize,
    pub(crate) calls: u64,
    pub(crate) failed: u64,
}

/// The last host call that failed, and where in the module it was made.
#[derive(Clone, Debug)]
pub(crate) struct FailedCall {
    pub(crate) function: usize,
    pub(crate) failure: Failure,
    pub(crate) offset: Option<usize>,
}

impl Run {
    pub(crate) fn new(args: Vec<String>, grants: Arc<Grants>, memory_limit: usize, place: Nested) -> Self {
        let Nested { level, deadline, reel, account } = place;
        Run {
            args,
            grants,
            states: Vec::new(),
            results: Vec::new(),
            answer: None,
            log: Vec::new(),
            budget: memory_limit,
            held: account.nothing(),
            level,
            others: Vec::new(),
            fuel_of_others: 0,
            memory: None,
            heap: 0,
            memory_limit: MemoryLimit { most: memory_limit, held: account.nothing(), refused: None },
            account,
            deadline,
            reel,
            calls: Vec::new(),
            failed: None,
            last: None,
            waiting: None,
        }
    }

    /// The program's arguments.
    #[must_use]
    pub fn args(&self) -> &[String] {
        &self.args
    }

    /// What the run was granted; a program started by a host function gets the same, never more.
    #[must_use]
    pub fn grants(&self) -> &Arc<Grants> {
        &self.grants
    }

    /// Returns the maximum memory of a program, in bytes.
    #[must_use]
    pub fn memory_limit(&self) -> usize {
        self.memory_limit.most
    }

    /// Returns the account of the run, which all of its programs share.
    #[must_use]
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Asks the run's guard about something that a call is about to touch: `function` by its full name, such as `http.get`.
    ///
    /// Arguments that a row declares as targets were asked about before its function is called; this is for what a call touches
    /// besides, such as each URL of an array.
    ///
    /// # Errors
    /// `EACCESS` where the guard refuses.
    pub fn admit(&self, function: &str, target: Target, text: &str) -> Result<(), Failure> {
        let Some(guard) = self.grants.guard() else { return Ok(()) };
        let capability = function.split('.').next().unwrap_or_default();
        guard.call(capability, function, target, text).map_err(|why| Failure::new(Code::EACCESS, why))
    }

    /// When the run's time is up. A host function that starts further work gives it no more than this.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The place of the programs that a call starts, for [`Runtime::run_nested`](crate::Runtime::run_nested); asked for once in a call, and each
    /// of several programs gets [its own](Nested::item).
    ///
    /// # Errors
    /// `EBOUND` where this one is nested as deep as programs may be.
    pub fn nested(&mut self) -> Result<Nested, Failure> {
        if self.level + 1 < LEVELS {
            let reel = self.reel.as_mut().map(TapeCursor::below);
            let account = self.account.clone();
            return Ok(Nested { level: self.level + 1, deadline: self.deadline, reel, account });
        }
        let words = format!("programs that start programs may be nested {LEVELS} deep, and this one is at that depth");
        Err(Failure::new(Code::EBOUND, words))
    }

    /// A key for the next change that the call under way makes, for backends that keep a change from being made twice: the same where the
    /// call is made once more because its process was stopped, and no other change's. `None` in a run that is kept nowhere.
    #[must_use]
    pub fn change_key(&mut self) -> Option<String> {
        self.reel.as_mut().and_then(TapeCursor::key)
    }

    /// What comes to the program from outside by no call of its own, under a name: asked for with `make`, and given again where the program
    /// is run once more on the tape of its run.
    ///
    /// # Errors
    /// As `make`; `ECANCEL` where the program must not go on, which then it does not.
    pub fn recall<V: Record>(
        &mut self,
        what: &'static str,
        make: impl FnOnce(&mut Run) -> Result<V, Failure>,
        again: impl FnOnce(RecordedValue) -> Option<V>,
    ) -> Result<V, Failure> {
        let start =
            Start::new(self, what, CallEffect::Reads, |_| {}).map_err(|halt| Failure::new(Code::ECANCEL, halt.0))?;
        let made = if start.performs() { make(self) } else { Err(wrong_recorded_type()) };
        match start.done(self, made)? {
            Given::Made(value) => Ok(value),
            Given::RecordedValue(kept) => again(kept).ok_or_else(wrong_recorded_type),
        }
    }

    /// Takes the calls, the log and the fuel of a program that this one started into its own trace.
    pub fn absorb(&mut self, outcome: &Outcome) {
        outcome.log.iter().for_each(|line| self.log(line));
        self.fuel_of_others = self.fuel_of_others.saturating_add(outcome.fuel.unwrap_or(0));
        for call in &outcome.calls {
            match self.others.iter_mut().find(|known| known.function == call.function) {
                Some(known) => (known.calls, known.failed) = (known.calls + call.calls, known.failed + call.failed),
                None => self.others.push(call.clone()),
            }
        }
    }

    /// The configuration that the capability was granted with.
    ///
    /// # Errors
    /// `EACCESS` where it was granted without one.
    pub fn config<C: Config>(&self) -> Result<Arc<C>, Failure> {
        let name = C::CAPABILITY;
        self.grants
            .config::<C>()
            .ok_or_else(|| Failure::new(Code::EACCESS, format!("`{name}` was granted without a backend in this run")))
    }

    /// The state that a capability keeps for this run, made at its first use.
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

    /// Puts out a result.
    ///
    /// # Errors
    /// `ENOMEM` where the run holds too much already.
    pub fn emit_result(&mut self, result: &[u8]) -> Result<(), Failure> {
        self.charge(result.len())?;
        self.results.push(result.to_vec());
        Ok(())
    }

    /// Puts out a result that is the answer to whoever had the program run: with it there is nothing more to do. The last one counts,
    /// and only if the program leaves with 0.
    ///
    /// # Errors
    /// `EACCESS` in a program that another one started: that one has its own answer to give. `ENOMEM` as [`emit_result`](Run::emit_result).
    pub fn answer(&mut self, answer: &str) -> Result<(), Failure> {
        if self.level > 0 {
            let words = "a program that another one started cannot end the run; it gives its result to that one";
            return Err(Failure::new(Code::EACCESS, words));
        }
        self.emit_result(answer.as_bytes())?;
        self.answer = Some(answer.to_owned());
        Ok(())
    }

    /// Writes a line into the run's log; long lines are cut, and past 1,000 lines the rest is dropped.
    pub fn log(&mut self, line: &str) {
        if self.log.len() < LOG_LINES {
            self.log.push(line.get(..line.floor_char_boundary(LOG_BYTES)).unwrap_or_default().to_owned());
        }
    }

    /// Accounts for bytes that the host keeps for this run until its end. What a program makes the host hold is bounded
    /// by the same limit as its own memory.
    ///
    /// # Errors
    /// `ENOMEM` where the limit would be passed.
    pub fn charge(&mut self, bytes: usize) -> Result<(), Failure> {
        // Every entry costs something, even an empty one.
        match self.budget.checked_sub(bytes.saturating_add(32)) {
            Some(rest) => {
                self.held.grow(self.budget - rest)?;
                self.budget = rest;
                Ok(())
            }
            None => {
                Err(Failure::new(Code::ENOMEM, "the results and arrays of this run take more than its memory limit"))
            }
        }
    }

    /// How many more bytes the host may keep for this run.
    #[must_use]
    pub fn remaining_memory(&self) -> usize {
        self.budget.min(self.account.free())
    }

    pub(crate) fn count(&mut self, function: usize) {
        self.last = Some(function);
        match self.calls.iter_mut().find(|c| c.function == function) {
            Some(count) => count.calls += 1,
            None => self.calls.push(CallCount { function, calls: 1, failed: 0 }),
        }
    }

    pub(crate) fn fail(&mut self, function: usize, failure: Failure, offset: Option<usize>) {
        if let Some(count) = self.calls.iter_mut().find(|c| c.function == function) {
            count.failed += 1;
        }
        self.failed = Some(FailedCall { function, failure, offset });
    }

    pub(crate) fn take_results(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.results)
    }

    pub(crate) fn take_answer(&mut self) -> Option<String> {
        self.answer.take()
    }

    pub(crate) fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }
}

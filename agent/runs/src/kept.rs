//! The kept values of a run while it is driven or replayed.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wattle_machine::{Execution, KeptValue, MAX_KEPT, MAX_KEPT_BYTES, is_cut};
use wattle_rt::tape::Tape;
use wattle_rt::{Account, Failure, Kept, KeptLimits, KeptText};

use crate::journal::{RecordedCall, kept_json};

/// The limits on the kept values of a run, and of a session in a terminal.
pub const KEPT_LIMITS: KeptLimits = KeptLimits { names: MAX_KEPT, bytes: MAX_KEPT_BYTES };

/// The texts of a run's kept values. The state of the run has their names and hashes.
pub(crate) struct RunKept {
    /// The values that the next programs can read, by name.
    current: Mutex<BTreeMap<String, KeptText>>,
    /// The values that the programs of the current step kept.
    added: Mutex<Vec<KeptText>>,
    /// Maximum length of a call's output in the conversation, in characters.
    shown: usize,
}

/// The kept values as one call sees them.
pub(crate) struct CallKept {
    pub(crate) values: Kept,
    /// The name under which the results are kept if the conversation shows only a part of them.
    result: String,
    /// Maximum length of the output in the conversation, in characters.
    shown: usize,
}

impl RunKept {
    pub(crate) fn new(shown: usize) -> RunKept {
        RunKept { current: Mutex::default(), added: Mutex::default(), shown }
    }

    /// Returns the kept values for a call, whose results are kept under the name `result` if they
    /// are cut.
    pub(crate) fn for_call(&self, result: String) -> CallKept {
        let current = lock(&self.current).values().cloned().collect::<Vec<_>>();
        CallKept { values: Kept::new(current, KEPT_LIMITS), result, shown: self.shown }
    }

    /// Adds values that programs of the current step kept.
    pub(crate) fn add(&self, values: impl IntoIterator<Item = KeptText>) {
        lock(&self.added).extend(values);
    }

    /// Adds the values among `kept` that `calls` recorded.
    ///
    /// # Errors
    /// If the account has no memory for them.
    pub(crate) fn restore<'v>(
        &self,
        account: &Account,
        kept: impl IntoIterator<Item = &'v KeptValue>,
        calls: &[RecordedCall],
    ) -> Result<(), Failure> {
        for value in kept {
            let json = calls.iter().filter_map(kept_json);
            let json = json.filter(|json| json.len() as u64 == value.bytes);
            let Some(json) = json.into_iter().find(|json| KeptText::hash_of(json) == value.hash)
            else {
                continue;
            };
            let about = value.about.clone();
            self.add([KeptText::new(account, &value.name, json.to_owned(), about)?]);
        }
        Ok(())
    }

    /// Makes the values in the run's state those that the next programs can read.
    pub(crate) fn settle(&self, kept: &[KeptValue]) {
        let added = std::mem::take(&mut *lock(&self.added));
        let mut current = lock(&self.current);
        let is_meant = |text: &KeptText| {
            kept.iter().any(|value| value.name == text.name() && value.hash == text.hash())
        };
        current.retain(|_, text| is_meant(text));
        let meant = added.into_iter().filter(is_meant);
        current.extend(meant.map(|text| (text.name().to_owned(), text)));
    }
}

impl CallKept {
    /// Returns the execution of a call with the values that its program kept. If the conversation
    /// will show only a part of the results, keeps the whole results, too, unless there is no room
    /// for them.
    pub(crate) fn of_execution(
        &self,
        execution: Execution,
        account: Option<&Account>,
        tape: Option<&dyn Tape>,
    ) -> Execution {
        let mut is_kept = false;
        if let Some(account) = account.filter(|_| is_cut(&execution, self.shown)) {
            is_kept = self.keep_results(&execution, account, tape).is_some();
        }
        let value = |text: &KeptText| KeptValue {
            name: text.name().to_owned(),
            about: text.about().to_owned(),
            hash: text.hash().to_owned(),
            bytes: text.json().len() as u64,
            is_result: is_kept && text.name() == self.result,
        };
        let values = self.values.added().iter().map(value).collect();
        execution.with_kept(values)
    }

    fn keep_results(
        &self,
        execution: &Execution,
        account: &Account,
        tape: Option<&dyn Tape>,
    ) -> Option<()> {
        let whole = execution.results().join("\n");
        let about = format!("string of {} characters", whole.chars().count());
        let json = serde_json::to_string(&whole).ok()?;
        let text = KeptText::new(account, &self.result, json, about).ok()?;
        self.values.add(text.clone()).ok()?;
        tape.map_or(Ok(()), |tape| text.record(tape)).ok()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

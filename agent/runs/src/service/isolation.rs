//! Isolation of runs that are suspected of ending their process.
//!
//! A root run holds a shared pass while it works on a turn, and takes a new one at each turn. A run
//! that is suspected repeatedly holds the only pass until its next turn, so all other runs of the
//! process stand still at a turn. If the process ends then, only that run can be the cause.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// Number of ends of processes for which a run may be suspected before it is isolated.
const SUSPECTED: u32 = 2;
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_secs(15);
/// Maximum duration of a run's first isolation. It doubles with each further suspicion.
const ISOLATED: Duration = Duration::from_secs(30);
/// Maximum number of times that the duration doubles.
const DOUBLINGS: u32 = 4;

/// The passes of the root runs in this process. Cheap to clone.
#[derive(Clone)]
pub(super) struct Passes {
    lock: Arc<RwLock<()>>,
    /// Maximum time for which other runs wait until a suspected run can be isolated.
    patience: Duration,
    /// Time until the next attempt to isolate a run.
    pause: Duration,
}

impl Default for Passes {
    fn default() -> Passes {
        Passes { lock: Arc::default(), patience: PATIENCE, pause: PAUSE }
    }
}

/// The pass of a root run. Holds nothing until the run begins to work.
pub(super) struct Pass {
    of: Passes,
    held: Mutex<Held>,
}

#[derive(Default)]
enum Held {
    #[default]
    Nothing,
    Shared(#[expect(dead_code, reason = "only its drop matters")] OwnedRwLockReadGuard<()>),
    Alone(OwnedRwLockWriteGuard<()>),
}

/// Returns the maximum time for which a run is isolated, or `None` if it need not be isolated.
pub(super) fn isolation_of(suspicion: u32) -> Option<Duration> {
    let more = suspicion.checked_sub(SUSPECTED)?;
    Some(ISOLATED * 2_u32.pow(more.min(DOUBLINGS)))
}

impl Passes {
    pub(super) fn pass(&self) -> Arc<Pass> {
        Arc::new(Pass { of: self.clone(), held: Mutex::default() })
    }
}

impl Pass {
    /// Waits for a shared pass. Gives up the pass that the run has.
    pub(super) async fn share(&self) {
        self.hold(Held::Nothing);
        self.hold(Held::Shared(Arc::clone(&self.of.lock).read_owned().await));
    }

    /// Waits for the only pass. Other runs wait meanwhile, but never for long: a run that works on a
    /// long turn delays this one, and not all the others.
    pub(super) async fn be_alone(&self) {
        self.hold(Held::Nothing);
        loop {
            let alone = Arc::clone(&self.of.lock).write_owned();
            if let Ok(alone) = tokio::time::timeout(self.of.patience, alone).await {
                return self.hold(Held::Alone(alone));
            }
            tokio::time::sleep(self.of.pause).await;
        }
    }

    /// Turns the only pass into a shared one.
    pub(super) fn join_others(&self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        *held = match std::mem::take(&mut *held) {
            Held::Alone(alone) => Held::Shared(alone.downgrade()),
            held => held,
        };
    }

    fn hold(&self, held: Held) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = held;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_isolated_run_works_alone_and_others_wait_at_a_turn() {
        let passes = Passes::default();
        let (first, suspect) = (passes.pass(), passes.pass());
        first.share().await;
        let alone = Arc::clone(&suspect);
        let isolating = tokio::spawn(async move { alone.be_alone().await });
        tokio::task::yield_now().await;
        let next_turn = Arc::clone(&first);
        let waiting = tokio::spawn(async move { next_turn.share().await });
        assert!(isolating.await.is_ok());
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished(), "the other run does not begin its turn");
        suspect.share().await;
        assert!(waiting.await.is_ok());
    }

    #[tokio::test]
    async fn a_run_with_a_long_turn_does_not_stop_the_others() {
        let (patience, pause) = (Duration::from_millis(20), Duration::from_millis(20));
        let passes = Passes { patience, pause, ..Passes::default() };
        let (long, suspect, new) = (passes.pass(), passes.pass(), passes.pass());
        long.share().await;
        let alone = Arc::clone(&suspect);
        let isolating = tokio::spawn(async move { alone.be_alone().await });
        tokio::task::yield_now().await;
        let begins = tokio::time::timeout(Duration::from_secs(10), new.share()).await;
        assert!(begins.is_ok() && !isolating.is_finished());
        drop((long, new));
        assert!(isolating.await.is_ok(), "the suspected run is isolated once nothing else works");
        suspect.join_others();
    }
}

//! Counters of the memory that the shells of a session hold.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use wattle_rt::{Account, MemoryCharge};

use crate::bounds::amount;
use crate::lock::lock;

/// Number of bytes counted for each stored string in addition to its length.
const OVERHEAD: u64 = 48;

/// Maximum number of bytes that stay charged to the account after they have been released.
const SLACK: usize = 256 << 10;

/// A byte counter with a limit, for one kind of data in a session and its subshells. The counted
/// bytes are also charged to the run's account.
#[derive(Debug)]
pub(crate) struct Ledger {
    held: AtomicU64,
    limit: u64,
    /// The charge to the run's account. It covers all counted bytes and at most [`SLACK`] bytes
    /// more, unless the account is full.
    charged: Option<Mutex<MemoryCharge>>,
}

impl Ledger {
    pub(crate) fn new(limit: u64, account: Option<&Account>) -> Arc<Ledger> {
        let charged = account.map(|account| Mutex::new(account.nothing()));
        Arc::new(Ledger { held: AtomicU64::new(0), limit, charged })
    }

    /// Returns true if the limit and the account of the run allow `bytes` more bytes.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.allows(self.held.load(Ordering::Relaxed).saturating_add(bytes))
    }

    /// Returns the reason why the ledger has no room for `bytes` more bytes.
    pub(crate) fn full(&self, bytes: u64) -> Full {
        let held = self.held.load(Ordering::Relaxed).saturating_add(bytes);
        if held > self.limit { Full::Limit(self.limit) } else { Full::Account }
    }

    /// Counts `bytes` more bytes. If there is no room for them, counts them anyway and returns
    /// false.
    fn add(&self, bytes: u64) -> bool {
        let before = self.held.fetch_add(bytes, Ordering::Relaxed);
        self.allows(before.saturating_add(bytes))
    }

    fn subtract(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
        let Some(charged) = &self.charged else { return };
        let mut charged = lock(charged);
        // The number is read under the lock, so that bytes which were charged in the meantime stay
        // charged.
        let held = usize::try_from(self.held.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        if charged.used().saturating_sub(held) > SLACK {
            charged.shrink_to(held.saturating_add(SLACK / 2));
        }
    }

    fn allows(&self, held: u64) -> bool {
        if held > self.limit {
            return false;
        }
        let Some(charged) = &self.charged else { return true };
        let mut charged = lock(charged);
        let held = usize::try_from(held).unwrap_or(usize::MAX);
        let missing = held.saturating_sub(charged.used());
        missing == 0 || charged.grow(missing).is_ok()
    }

    /// Stores a string and counts its bytes.
    ///
    /// # Errors
    /// If there is no room for the string.
    pub(crate) fn store(self: &Arc<Ledger>, text: String) -> Result<Text, Full> {
        let text = self.store_unlimited(text);
        if self.has_room(0) { Ok(text) } else { Err(self.full(0)) }
    }

    /// Stores a string that the host provides. Counts its bytes even if they exceed the limit.
    pub(crate) fn store_unlimited(self: &Arc<Ledger>, text: String) -> Text {
        self.add(text.len() as u64 + OVERHEAD);
        Text(Arc::new(StoredText { text, ledger: Arc::clone(self) }))
    }
}

/// The reason why a ledger has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// The ledger's limit, in bytes.
    Limit(u64),
    /// The account of the run has no memory left.
    Account,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Full::Limit(limit) => write!(f, "more than {}", amount(*limit)),
            Full::Account => f.write_str("more memory than the run has left"),
        }
    }
}

/// Bytes that a [`Ledger`] counts until the charge is dropped. Cloning a charge counts the same
/// number of bytes again.
#[derive(Debug)]
pub(crate) struct Charge {
    bytes: u64,
    ledger: Arc<Ledger>,
}

impl Charge {
    /// Creates an empty charge on a ledger.
    pub(crate) fn new(ledger: Arc<Ledger>) -> Charge {
        Charge { bytes: 0, ledger }
    }

    /// Creates an empty charge on the same ledger.
    pub(crate) fn another(&self) -> Charge {
        Charge::new(Arc::clone(&self.ledger))
    }

    /// Counts more bytes. If there is no room for them, counts them anyway and returns false.
    pub(crate) fn grow(&mut self, bytes: u64) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        self.ledger.add(bytes)
    }

    /// Changes the number of counted bytes.
    pub(crate) fn set(&mut self, bytes: u64) {
        if bytes < self.bytes {
            self.ledger.subtract(self.bytes - bytes);
            self.bytes = bytes;
        } else {
            self.grow(bytes - self.bytes);
        }
    }
}

impl Clone for Charge {
    fn clone(&self) -> Charge {
        let mut copy = self.another();
        copy.grow(self.bytes);
        copy
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.ledger.subtract(self.bytes);
    }
}

/// A stored string, whose bytes are counted. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Text(Arc<StoredText>);

#[derive(Debug)]
struct StoredText {
    text: String,
    ledger: Arc<Ledger>,
}

impl Drop for StoredText {
    fn drop(&mut self) {
        self.ledger.subtract(self.text.len() as u64 + OVERHEAD);
    }
}

impl Deref for Text {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0.text
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        **self == **other
    }
}

impl Eq for Text {}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_until_they_are_dropped_and_clones_of_a_charge_count_again() {
        let ledger = Ledger::new(1_000, None);
        let text = ledger.store("a".repeat(100)).unwrap();
        let shared = text.clone();
        let mut charge = Charge::new(Arc::clone(&ledger));
        assert!(charge.grow(400));
        assert!(ledger.has_room(452) && !ledger.has_room(453));
        let copy = charge.clone();
        assert!(ledger.has_room(52) && !ledger.has_room(53));
        charge.set(100);
        assert!(ledger.has_room(352) && !ledger.has_room(353));
        charge.set(453);
        assert!(!ledger.has_room(0));
        assert_eq!(ledger.store(String::new()).unwrap_err(), Full::Limit(1_000));
        drop((charge, copy, text));
        assert!(ledger.has_room(852) && !ledger.has_room(853));
        drop(shared);
        assert!(ledger.has_room(1_000));
    }

    #[test]
    fn bytes_are_charged_to_the_account() {
        let account = Account::of_process(256 << 10);
        let ledger = Ledger::new(u64::MAX, Some(&account));
        let text = ledger.store("a".repeat(100 << 10)).unwrap();
        assert!(account.held() >= 100 << 10);
        assert_eq!(ledger.store("a".repeat(200 << 10)).unwrap_err(), Full::Account);
        drop(text);
        assert!(ledger.store("a".repeat(200 << 10)).is_ok());
        drop(ledger);
        assert_eq!(account.held(), 0);
    }

    #[test]
    fn bytes_that_are_dropped_are_released_to_the_account() {
        let account = Account::of_process(64 << 20);
        let ledger = Ledger::new(u64::MAX, Some(&account));
        let small = ledger.store("a".repeat(100 << 10)).unwrap();
        let large = ledger.store("a".repeat(32 << 20)).unwrap();
        assert!(account.held() >= 32 << 20);
        drop(large);
        assert!((100 << 10..2 << 20).contains(&account.held()), "{}", account.held());
        let again = ledger.store("a".repeat(60 << 20)).unwrap();
        assert!(account.held() >= 60 << 20);
        drop((small, again, ledger));
        assert_eq!(account.held(), 0);
    }
}

//! A limit on the wrong tokens that one client address sends.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::quota::TokenKey;

/// Maximum number of different wrong tokens from one address in [`WINDOW`].
const MAX_WRONG: usize = 30;

/// The time in which wrong tokens of an address are counted, from the first one.
const WINDOW: Duration = Duration::from_secs(60);

/// Maximum number of addresses whose wrong tokens are counted, and of accepted tokens that are
/// remembered. If there are more, all of them are forgotten.
const MAX_TRACKED: usize = 5_000;

/// The tokens that clients sent. A token that was accepted before is always looked up again. Any
/// other token is refused without a look-up if its address sent too many wrong ones, so tokens
/// cannot be guessed faster than the limit, and clients behind the same address go on.
#[derive(Default)]
pub(crate) struct Attempts(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    /// The time of the first wrong token of each address, and the wrong tokens since then.
    wrong: HashMap<IpAddr, (Instant, HashSet<TokenKey>)>,
    accepted: HashSet<TokenKey>,
}

impl Attempts {
    /// Returns the time until a token may be looked up, or `None` if it may be looked up now.
    /// `address` is `None` if the address of the client is unknown.
    pub(crate) fn wait(&self, address: Option<IpAddr>, token: &TokenKey) -> Option<Duration> {
        let seen = self.lock();
        let (since, wrong) = seen.wrong.get(&network(address))?;
        let left = WINDOW.checked_sub(since.elapsed())?;
        let is_new = !seen.accepted.contains(token) && !wrong.contains(token);
        (wrong.len() >= MAX_WRONG && is_new).then_some(left)
    }

    /// Records the result of looking up a token.
    pub(crate) fn record(&self, address: Option<IpAddr>, token: TokenKey, is_known: bool) {
        let mut seen = self.lock();
        if is_known {
            if seen.accepted.len() >= MAX_TRACKED {
                seen.accepted.clear();
            }
            seen.accepted.insert(token);
            return;
        }
        if seen.wrong.len() >= MAX_TRACKED {
            seen.wrong.retain(|_, (since, _)| since.elapsed() < WINDOW);
            if seen.wrong.len() >= MAX_TRACKED {
                seen.wrong.clear();
            }
        }
        let begin = || (Instant::now(), HashSet::new());
        let entry = seen.wrong.entry(network(address)).or_insert_with(begin);
        if entry.0.elapsed() >= WINDOW {
            *entry = begin();
        }
        entry.1.insert(token);
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the address whose tokens are counted together: of an IPv6 address, its network of 64
/// bits, which one client usually has for itself. Clients of unknown addresses count together.
fn network(address: Option<IpAddr>) -> IpAddr {
    match address.map(|address| address.to_canonical()) {
        Some(IpAddr::V6(address)) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
        Some(address) => address,
        None => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([192, 0, 2, last]))
    }

    #[test]
    fn an_address_may_send_only_some_wrong_tokens_in_a_minute() {
        let attempts = Attempts::default();
        attempts.record(address(1), [0; 32], true);
        for number in 1..=30 {
            assert!(attempts.wait(address(1), &[number; 32]).is_none(), "{number}");
            attempts.record(address(1), [number; 32], false);
        }
        assert!(attempts.wait(address(1), &[31; 32]).is_some_and(|wait| wait <= WINDOW));
        // Neither known tokens nor other addresses are affected.
        assert!(attempts.wait(address(1), &[0; 32]).is_none());
        assert!(attempts.wait(address(2), &[31; 32]).is_none());
    }

    #[test]
    fn the_memory_of_addresses_and_tokens_is_bounded() {
        let attempts = Attempts::default();
        for number in 0..25_000_u32 {
            let bytes = number.to_be_bytes();
            let mut token = [0; 32];
            token[..4].copy_from_slice(&bytes);
            attempts.record(Some(IpAddr::from(bytes)), token, number % 2 == 0);
        }
        let seen = attempts.lock();
        assert!(seen.wrong.len() <= MAX_TRACKED && seen.accepted.len() <= MAX_TRACKED);
    }

    #[test]
    fn the_addresses_of_one_network_count_together() {
        let of = |text: &str| network(Some(text.parse().unwrap()));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }
}

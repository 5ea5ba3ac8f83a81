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

/// Maximum number of addresses whose wrong tokens are counted. If there are more, all of them are
/// forgotten.
const MAX_TRACKED: usize = 5_000;

/// The wrong tokens that clients sent. Tokens of the store cannot be guessed, so each token is looked
/// up, and a client with a right one goes on, whatever others send from its address. An address that
/// sent too many wrong ones is told to wait.
#[derive(Default)]
pub(crate) struct Attempts(Mutex<HashMap<IpAddr, Wrong>>);

/// The wrong tokens of an address since the time of the first one.
struct Wrong {
    since: Instant,
    tokens: HashSet<TokenKey>,
}

impl Attempts {
    /// Records a wrong token. Returns the time to wait if its address sent too many. `address` is `None`
    /// if the address of the client is unknown.
    pub(crate) fn wrong(&self, address: Option<IpAddr>, token: TokenKey) -> Option<Duration> {
        let mut seen = self.lock();
        if seen.len() >= MAX_TRACKED {
            seen.retain(|_, wrong| wrong.since.elapsed() < WINDOW);
            if seen.len() >= MAX_TRACKED {
                seen.clear();
            }
        }
        let begin = || Wrong { since: Instant::now(), tokens: HashSet::new() };
        let wrong = seen.entry(network(address)).or_insert_with(begin);
        if wrong.since.elapsed() >= WINDOW {
            *wrong = begin();
        }
        if wrong.tokens.contains(&token) {
            return None;
        }
        if wrong.tokens.len() >= MAX_WRONG {
            return Some(WINDOW.saturating_sub(wrong.since.elapsed()));
        }
        wrong.tokens.insert(token);
        None
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, Wrong>> {
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
        for number in 1..=30 {
            assert!(attempts.wrong(address(1), [number; 32]).is_none(), "{number}");
        }
        assert!(attempts.wrong(address(1), [31; 32]).is_some_and(|wait| wait <= WINDOW));
        // A token that was sent before is not counted again, and other addresses are not affected.
        assert!(attempts.wrong(address(1), [1; 32]).is_none());
        assert!(attempts.wrong(address(2), [31; 32]).is_none());
    }

    #[test]
    fn the_memory_of_addresses_and_tokens_is_bounded() {
        let attempts = Attempts::default();
        for number in 0..25_000_u32 {
            let bytes = number.to_be_bytes();
            let mut token = [0; 32];
            token[..4].copy_from_slice(&bytes);
            attempts.wrong(Some(IpAddr::from(bytes)), token);
            attempts.wrong(address(1), token);
        }
        let seen = attempts.lock();
        assert!(seen.len() <= MAX_TRACKED);
        assert!(seen.values().all(|wrong| wrong.tokens.len() <= MAX_WRONG));
    }

    #[test]
    fn the_addresses_of_one_network_count_together() {
        let of = |text: &str| network(Some(text.parse().unwrap()));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }
}

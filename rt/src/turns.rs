//! Turns: slots of the process for which the owners of work wait in a fair queue.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::{Owner, Shares, Usage};

/// A queue in which the owners take turns, regardless of how many items each of them has. The items
/// of one owner keep their order.
#[derive(Debug)]
pub(crate) struct FairQueue<T> {
    /// The owners that have items, in the order of their turns.
    owners: VecDeque<(Owner, VecDeque<T>)>,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        FairQueue { owners: VecDeque::new() }
    }
}

impl<T> FairQueue<T> {
    pub(crate) fn push(&mut self, owner: &Owner, item: T) {
        match self.owners.iter_mut().find(|(known, _)| known == owner) {
            Some((_, items)) => items.push_back(item),
            None => self.owners.push_back((owner.clone(), VecDeque::from([item]))),
        }
    }

    /// Removes the first item of the next owner that `may_go`, whose next turn comes after those of
    /// all other owners.
    pub(crate) fn pop(&mut self, may_go: impl Fn(&Owner) -> bool) -> Option<(Owner, T)> {
        let next = self.owners.iter().position(|(owner, _)| may_go(owner))?;
        let (owner, mut items) = self.owners.remove(next)?;
        let item = items.pop_front()?;
        if !items.is_empty() {
            self.owners.push_back((owner.clone(), items));
        }
        Some((owner, item))
    }

    /// Removes the items for which `keep` returns false.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.owners.retain_mut(|(_, items)| {
            items.retain(&mut keep);
            !items.is_empty()
        });
    }

    /// Returns the owner of each item.
    pub(crate) fn owners(&self) -> impl Iterator<Item = &Owner> {
        self.owners.iter().flat_map(|(owner, items)| items.iter().map(move |_| owner))
    }
}

/// A number of slots that the owners of a process share. Each owner may use its
/// [share](Shares), and owners that wait for a slot take turns. Cheap to clone.
#[derive(Clone)]
pub struct Turns(Arc<Mutex<State>>);

struct State {
    usage: Usage,
    waiting: FairQueue<oneshot::Sender<Turn>>,
}

/// A slot that an owner uses. Dropping it frees the slot.
pub struct Turn {
    turns: Turns,
    owner: Owner,
}

impl Turns {
    /// Creates free slots.
    #[must_use]
    pub fn new(shares: Shares) -> Turns {
        let state = State { usage: Usage::new(shares), waiting: FairQueue::default() };
        Turns(Arc::new(Mutex::new(state)))
    }

    /// Waits for a slot. Dropping the future ends the wait.
    pub async fn wait(&self, owner: &Owner) -> Turn {
        loop {
            let turn = {
                let mut state = self.lock();
                if state.usage.take(owner).is_ok() {
                    return self.turn(owner);
                }
                let (sender, turn) = oneshot::channel();
                state.waiting.retain(|waiter| !waiter.is_closed());
                state.waiting.push(owner, sender);
                turn
            };
            // The sender is only dropped together with its waiter.
            if let Ok(turn) = turn.await {
                return turn;
            }
        }
    }

    fn turn(&self, owner: &Owner) -> Turn {
        Turn { turns: self.clone(), owner: owner.clone() }
    }

    fn release(&self, owner: &Owner) {
        // No other task can take the slot before the next waiter. No second waiter may use a slot,
        // because it would not have waited.
        let next = {
            let mut state = self.lock();
            state.usage.give_back(owner);
            self.next(&mut state)
        };
        if let Some((sender, turn)) = next {
            // If the waiter has given up, the turn is dropped here, without the lock.
            let _unwanted = sender.send(turn);
        }
    }

    /// Takes a free slot for the next waiter that may use one.
    fn next(&self, state: &mut State) -> Option<(oneshot::Sender<Turn>, Turn)> {
        // The usual case costs nothing else.
        if state.waiting.owners.is_empty() {
            return None;
        }
        loop {
            let State { usage, waiting } = state;
            let (owner, sender) = waiting.pop(|owner| usage.check(owner).is_ok())?;
            if !sender.is_closed() && usage.take(&owner).is_ok() {
                return Some((sender, self.turn(&owner)));
            }
        }
    }

    /// Locks the state. Each change leaves the state consistent, so poisoning is ignored.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.release(&self.owner);
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("owner", &self.owner).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn group(name: &str) -> Owner {
        Owner::Group(name.into())
    }

    fn taken(turns: &Turns, owner: &Owner) -> Vec<Turn> {
        std::iter::from_fn(|| turns.wait(owner).now_or_never()).collect()
    }

    #[test]
    fn a_group_that_uses_its_share_leaves_slots_to_others_and_to_the_operator() {
        let turns = Turns::new(Shares::of(8));
        let first = taken(&turns, &group("a"));
        let second = taken(&turns, &group("b"));
        assert_eq!((first.len(), second.len()), (4, 3));
        assert_eq!(taken(&turns, &Owner::Operator).len(), 1);
    }

    /// Returns the turns that waiters have received, each with the waiter's position.
    fn received<F: Future<Output = Turn> + Unpin>(waiting: &mut [Option<F>]) -> Vec<(usize, Turn)> {
        let poll = |(at, waiter): (usize, &mut Option<F>)| {
            let turn = waiter.as_mut()?.now_or_never()?;
            *waiter = None;
            Some((at, turn))
        };
        waiting.iter_mut().enumerate().filter_map(poll).collect()
    }

    #[test]
    fn owners_that_wait_take_turns() {
        let turns = Turns::new(Shares::of(2));
        let (a, b, operator) = (group("a"), group("b"), Owner::Operator);
        let held = (taken(&turns, &a), taken(&turns, &operator));
        let order = [&a, &a, &a, &b, &b, &operator];
        let mut waiting: Vec<_> =
            order.into_iter().map(|owner| Some(Box::pin(turns.wait(owner)))).collect();
        assert!(received(&mut waiting).is_empty());
        drop(held.0);
        let mut served = Vec::new();
        while let Some((at, turn)) = received(&mut waiting).pop() {
            served.push(at);
            drop(turn);
        }
        assert_eq!(served, [0, 3, 5, 1, 4, 2]);
        drop(held.1);
    }

    #[test]
    fn a_waiter_that_gives_up_blocks_nobody() {
        let turns = Turns::new(Shares::of(1));
        let held = taken(&turns, &group("a"));
        let (a, b) = (group("a"), group("b"));
        let mut gone = Box::pin(turns.wait(&a));
        assert!(gone.as_mut().now_or_never().is_none());
        let mut next = Box::pin(turns.wait(&b));
        assert!(next.as_mut().now_or_never().is_none());
        drop(gone);
        drop(held);
        let next = next.now_or_never().unwrap();
        // A turn that was granted, but not received, is free again.
        let mut late = Box::pin(turns.wait(&a));
        assert!(late.as_mut().now_or_never().is_none());
        drop(next);
        drop(late);
        assert_eq!(taken(&turns, &b).len(), 1);
    }
}

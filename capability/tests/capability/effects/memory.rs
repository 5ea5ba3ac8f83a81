//! Tests that memory used by host functions for a run is charged to the run's account.

use std::sync::{Arc, Mutex};

use wattle_capability::PortFuture;
use wattle_capability::kv::{Backend, Change, InMemory, Kv};
use wattle_rt::{Account, AccountLimits, Code, Outcome};

use super::failure;
use crate::world::World;

/// Opens the account of a run with a memory limit of `memory` bytes.
fn account(memory: usize) -> Account {
    let limits = AccountLimits { memory, ..AccountLimits::default() };
    Account::of_process(usize::MAX).open_run(limits)
}

/// Runs a program with the given account and session state. Checks that all memory is released at
/// the end of the program.
async fn run(account: &Account, session: Arc<dyn Backend>, text: &str) -> Outcome {
    let world = World::new();
    let kv = Kv { session, tenant: Arc::new(InMemory::default()) };
    let grants = (*world.grants()).clone().with(kv).charged_to(account.clone());
    let outcome = world.run_granted(text, &[], &Arc::new(grants)).await.unwrap();
    assert_eq!(account.held(), 0, "{text}");
    outcome
}

/// Checks that a program succeeds with unlimited memory, but fails if its account may hold only
/// `memory` bytes.
async fn needs_more_than(memory: usize, session: Arc<dyn Backend>, text: &str) {
    let unlimited = run(&account(usize::MAX), Arc::clone(&session), text).await;
    assert!(unlimited.success(), "{text}: {:?}", unlimited.failure);
    let (code, why) = failure(&run(&account(memory), session, text).await);
    assert!(code == Code::ENOMEM && why.contains("`limits.memory_mb`"), "{text}: {code} {why}");
}

/// A state in which every key has the value `x`. It records how much memory the account holds at
/// each read.
struct Watched {
    account: Account,
    held: Mutex<Vec<usize>>,
}

impl Backend for Watched {
    fn get(&self, _: String) -> PortFuture<'_, Option<Vec<u8>>> {
        self.held.lock().unwrap().push(self.account.held());
        Box::pin(async { Ok(Some(b"x".to_vec())) })
    }

    fn update(&self, _: String, _: Change) -> PortFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn keys(&self, _: String) -> PortFuture<'_, Vec<String>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

#[tokio::test]
async fn a_value_of_the_state_is_charged_while_it_is_read() {
    for (memory, charged) in [(64 << 20, true), (1 << 20, false)] {
        let account = account(memory);
        let state = Arc::new(Watched { account: account.clone(), held: Mutex::default() });
        let outcome = run(&account, Arc::clone(&state) as _, "(ret (kv.get? \"k\"))").await;
        assert_eq!(outcome.texts(), ["x"]);
        let held = state.held.lock().unwrap().clone();
        assert!(held.len() == 1 && (held[0] >= 8 << 20) == charged, "{held:?}");
    }
    let state = InMemory::default();
    state.update("k".to_owned(), Box::new(|_| Ok(Some(vec![b'x'; 2 << 20])))).await.unwrap();
    needs_more_than(1 << 20, Arc::new(state), "(let $v (kv.get? \"k\"))").await;
}

#[tokio::test]
async fn the_keys_of_the_state_are_charged_besides_their_array() {
    let state = Arc::new(InMemory::default());
    for n in 0..5_000 {
        state.update(format!("{n:0100}"), Box::new(|_| Ok(Some(Vec::new())))).await.unwrap();
    }
    // The array alone takes 645 KiB, and the keys 605 KiB.
    needs_more_than(1 << 20, state, "(let $keys (kv.list? \"\"))").await;
}

#[tokio::test]
async fn patterns_and_sorting_are_charged_to_the_account() {
    let state = || Arc::new(InMemory::default());
    // The pattern and its caches take almost 2 MiB.
    needs_more_than(1 << 20, state(), "(let $a (str.match? \"a\" \"a{15000}\"))").await;
    // The array takes 645 KiB.
    let array = "(let $a (str.chunk? (str.repeat? \"1\" 20000) 1))";
    assert!(run(&account(1 << 20), state(), array).await.success());
    for sort in [
        "(arr.sort? $a)",
        "(arr.sort_by? $a \"text\")",
        "(arr.sort_by? $a \"num\")",
        "(arr.uniq? $a)",
    ] {
        needs_more_than(1 << 20, state(), &format!("{array}\n{sort}")).await;
    }
    // The map takes 296 KiB.
    let map = "(let $m (map.new))\n(for $i 0 3000 (map.set? $m (str.from_int $i) \"1\"))";
    assert!(run(&account(640 << 10), state(), map).await.success());
    needs_more_than(640 << 10, state(), &format!("{map}\n(map.sort? $m \"num\")")).await;
}

#[tokio::test]
async fn a_value_that_changes_often_is_charged_only_for_its_growth() {
    let count = "(let $m (map.new))\n(for $i 0 100000 (map.incr? $m \"a\" 1))";
    assert!(run(&account(640 << 10), Arc::new(InMemory::default()), count).await.success());
}

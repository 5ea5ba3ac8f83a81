//! Tests of the accounts of runs: the memory that a run holds, the processor time and the bytes
//! that it spends, and the errors that name the setting of an exceeded limit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wattle_rt::{Account, AccountLimits, Code, Exit, Grants, Limits, Owner, Runtime, TrapKind};

/// Number of bytes that a charge takes from its account in advance.
const ADVANCE: usize = 16 << 10;

fn small() -> AccountLimits {
    AccountLimits { memory: 1 << 20, cpu: Duration::from_millis(50), received: 1_000 }
}

#[test]
fn memory_is_charged_to_the_run_and_the_process_until_it_is_released() {
    let process = Account::of_process(3 << 20);
    let (one, other) =
        (process.open_run(small()), process.open_run(AccountLimits { memory: 8 << 20, ..small() }));
    let held = one.hold(1 << 20).unwrap();
    assert_eq!((one.held(), process.held(), one.free()), (1 << 20, 1 << 20, 0));
    let failure = one.hold(1).unwrap_err();
    assert_eq!(failure.code, Code::ENOMEM);
    assert!(
        failure.reason.contains("the run holds 1024 KiB of its 1024 KiB")
            && failure.reason.contains("`limits.memory_mb`"),
        "{failure}"
    );
    let failure = other.hold((2 << 20) + 1).unwrap_err();
    assert!(
        failure.reason.contains("the runs of this process")
            && failure.reason.contains("`limits.process_memory_mb`"),
        "{failure}"
    );
    assert_eq!(other.held(), 0, "memory that the process refuses is not held by the run");
    drop(held);
    assert_eq!((one.held(), process.held()), (0, 0));
    assert!(other.hold(3 << 20).is_ok());
}

#[test]
fn memory_is_taken_in_advance_up_to_the_last_byte() {
    let run =
        Account::of_process(usize::MAX).open_run(AccountLimits { memory: ADVANCE + 10, ..small() });
    let mut held = run.nothing();
    held.grow(1).unwrap();
    assert_eq!((held.used(), run.held()), (1, ADVANCE + 1));
    held.grow(ADVANCE).unwrap();
    assert_eq!((held.used(), run.held()), (ADVANCE + 1, ADVANCE + 1));
    held.grow(9).unwrap();
    assert_eq!(run.held(), ADVANCE + 10);
    assert!(held.grow(1).is_err());
    assert_eq!(held.used(), ADVANCE + 10);
    held.shrink_to(5);
    assert_eq!(run.held(), 5);
}

#[tokio::test]
async fn a_waiter_gets_memory_when_it_is_released() {
    let run = Account::of_process(usize::MAX).open_run(small());
    let soon = Instant::now() + Duration::from_secs(20);
    let first = run.wait_to_hold(1 << 20, 0, soon).await.unwrap();
    let waits = tokio::spawn({
        let run = run.clone();
        async move { run.wait_to_hold(1, 0, soon).await.map(|held| held.used()) }
    });
    tokio::task::yield_now().await;
    drop(first);
    assert_eq!(waits.await.unwrap(), Ok(1));
    assert_eq!(run.wait_to_hold(1, 1 << 20, soon).await.unwrap_err().code, Code::ENOMEM);
    let _all = run.hold(1 << 20).unwrap();
    let late = Instant::now() + Duration::from_millis(5);
    assert_eq!(run.wait_to_hold(1, 0, late).await.unwrap_err().code, Code::ENOMEM);
}

#[tokio::test]
async fn processor_time_and_bytes_are_charged_once_to_a_shared_account() {
    let process = Account::of_process(usize::MAX);
    let run = process.open_run(small());
    let busy = || {
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(30) {}
    };
    run.metered(async { run.metered(async { busy() }).await }).await;
    assert!(
        run.cpu() >= Duration::from_millis(30) && run.cpu() == process.cpu(),
        "{:?}",
        run.cpu()
    );
    run.metered(tokio::time::sleep(Duration::from_millis(30))).await;
    let failure = run.clone().spend_cpu(Duration::from_millis(50)).unwrap_err();
    assert!(failure.code == Code::EBUDGET && failure.reason.contains("`limits.cpu`"), "{failure}");
    assert!(!process.is_out_of_cpu());
    assert!(run.take_bytes(600).is_ok());
    let failure = run.clone().take_bytes(600).unwrap_err();
    assert!(
        failure.code == Code::EBUDGET
            && failure.reason.starts_with("the run received more than")
            && failure.reason.contains("`limits.received_mb`"),
        "{failure}"
    );
}

#[test]
fn a_child_run_spends_for_the_runs_above_and_holds_memory_alone() {
    let process = Account::of_process(usize::MAX);
    let top = process.open_run(AccountLimits {
        cpu: Duration::from_millis(100),
        received: 1_000,
        ..AccountLimits::default()
    });
    let (one, other) = (top.open_child(AccountLimits::default()), top.clone());
    let below = other.open_child(AccountLimits::default()).open_child(AccountLimits::default());
    assert!(one.take_bytes(600).is_ok() && below.take_bytes(400).is_ok());
    let failure = below.take_bytes(1).unwrap_err();
    assert_eq!(failure.code, Code::EBUDGET);
    assert!(failure.reason.starts_with("a parent run received more than 1 KiB"), "{failure}");
    assert_eq!((top.received(), process.received()), (1_001, 1_001));
    assert!(one.spend_cpu(Duration::from_millis(60)).is_ok());
    assert_eq!(below.cpu_left(), Duration::from_millis(40));
    let failure = below.spend_cpu(Duration::from_millis(60)).unwrap_err();
    assert!(failure.reason.starts_with("a parent run used up its 100ms"), "{failure}");
    assert!(one.is_out_of_cpu() && top.is_out_of_cpu() && !process.is_out_of_cpu());
    assert_eq!((top.cpu(), process.cpu()), (Duration::from_millis(120), top.cpu()));
    let held = below.hold(1 << 20).unwrap();
    assert_eq!((top.held(), process.held() >= 1 << 20), (0, true));
    drop(held);
    assert_eq!(process.held(), 0);
}

#[tokio::test]
async fn the_processor_time_left_decreases_during_a_poll_and_during_work() {
    let cpu = Duration::from_secs(60);
    let run = Account::of_process(usize::MAX).open_run(AccountLimits { cpu, ..small() });
    let busy = || {
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(30) {}
        run.cpu_left()
    };
    assert_eq!(run.cpu_left(), cpu);
    let left = run.metered(async { busy() }).await;
    assert!(left <= cpu - Duration::from_millis(30) && run.cpu_left() <= left, "{left:?}");
    let before = run.cpu_left();
    let left = run.work(busy);
    assert!(left < before && run.cpu_left() <= left, "{left:?} of {before:?}");
    assert!(run.spend_cpu(cpu).is_err() && run.cpu_left().is_zero());
}

#[tokio::test]
async fn a_program_that_exceeds_a_limit_of_the_run_is_ended() {
    let run = AccountLimits {
        memory: 1 << 20,
        cpu: Duration::from_millis(100),
        ..AccountLimits::default()
    };
    let runtime = Runtime::new(&[], Limits { run, ..Limits::default() }).unwrap();
    let grants = Arc::new(Grants::new());
    let grows = runtime
        .prepare("(i32.eqz (i32.eq (memory.grow (i32.const 100)) (i32.const -1)))")
        .await
        .unwrap();
    let outcome = runtime.run(&grows, &grants, Vec::new()).await.unwrap();
    assert_eq!(
        outcome.exit,
        Exit::Returned(Code(0)),
        "the engine refuses memory that the account refuses"
    );
    let endless = runtime.prepare("(loop $l (br $l)) (i32.const 0)").await.unwrap();
    let outcome = runtime.run(&endless, &grants, Vec::new()).await.unwrap();
    let Exit::Trapped(trap) = outcome.exit else { panic!("{:?}", outcome.exit) };
    assert!(trap.kind == TrapKind::Time && trap.message.contains("`limits.cpu`"), "{trap}");
}

#[tokio::test]
async fn programs_of_one_run_share_its_time() {
    let runtime = Runtime::new(&[], Limits::default()).unwrap();
    let account = runtime.open_account();
    let grants = Arc::new(Grants::new().charged_to(account.clone()));
    let program = runtime.prepare("(i32.const 0)").await.unwrap();
    let mut before = Duration::ZERO;
    for _ in 0..3 {
        runtime.run(&program, &grants, Vec::new()).await.unwrap();
        assert!(account.cpu() > before && account.held() == 0, "{account:?}");
        before = account.cpu();
    }
}

fn group(name: &str) -> Owner {
    Owner::Group(name.into())
}

#[test]
fn a_group_of_runs_leaves_memory_to_others_and_all_groups_leave_some_to_the_operator() {
    let run = AccountLimits { memory: 6 << 20, ..AccountLimits::default() };
    let limits = Limits { run, process_memory: 16 << 20, ..Limits::default() };
    let runtime = Runtime::new(&[], limits).unwrap();
    let of = |name: &str| runtime.owned_by(&group(name)).open_account();
    let held = (of("a").hold(6 << 20).unwrap(), of("a").hold(2 << 20).unwrap());
    let failure = of("a").hold(1).unwrap_err();
    assert_eq!(failure.code, Code::ENOMEM);
    assert!(failure.reason.contains("share") && failure.reason.contains("`a`"), "{failure}");
    assert_eq!(runtime.account().held(), 8 << 20, "the process has all of it");
    let other = of("b").hold(6 << 20).unwrap();
    let failure = of("c").hold(1).unwrap_err();
    assert!(failure.reason.contains("the runs that share this process"), "{failure}");
    assert!(failure.reason.contains("`limits.process_memory_mb`"), "{failure}");
    let own = runtime.open_account().hold(2 << 20).unwrap();
    runtime.open_account().hold(1).unwrap_err();
    drop((held, other, own));
    assert_eq!(runtime.account().held(), 0);
    let child = runtime.open_child_account(&of("a"));
    assert_eq!(child.owner(), &group("a"));
    let _child = child.hold(6 << 20).unwrap();
    of("a").hold(3 << 20).unwrap_err();
}

#[tokio::test]
async fn the_programs_of_a_group_leave_a_slot_to_another_group() {
    let runtime = Runtime::new(&[], Limits { instances: 2, ..Limits::default() }).unwrap();
    let endless = runtime.prepare("(loop $l (br $l)) (i32.const 0)").await.unwrap();
    let quick = runtime.prepare("(i32.const 0)").await.unwrap();
    let run = |owner: Owner, program: &wattle_rt::Program| {
        let (runtime, program) = (runtime.owned_by(&owner), program.clone());
        let grants = Arc::new(Grants::new().charged_to(runtime.open_account()));
        // The account alone decides whose slot it is.
        let runtime = runtime.owned_by(&Owner::Operator);
        tokio::spawn(async move { runtime.run(&program, &grants, Vec::new()).await })
    };
    let floods = [run(group("a"), &endless), run(group("a"), &endless)];
    tokio::task::yield_now().await;
    let outcome = run(group("b"), &quick).await.unwrap().unwrap();
    assert_eq!(outcome.exit, Exit::Returned(Code(0)));
    let outcome = run(Owner::Operator, &quick).await.unwrap().unwrap();
    assert_eq!(outcome.exit, Exit::Returned(Code(0)));
    floods.iter().for_each(tokio::task::JoinHandle::abort);
}

//! Tests the limits on guests: processor time, memory, output, and the account of the run.

use std::time::{Duration, Instant};

use wattle_rt::{
    Account, AccountLimits, Code, Guest, GuestAnswer, GuestBounds, GuestFault, HostModule,
};

const PAGE: usize = 64 << 10;

/// Returns a guest whose function `answer` has the given body. The body sets `$output` to the
/// length of the output.
fn guest(answer: &str) -> Guest {
    let text = format!(
        r#"(module
            (memory (export "memory") 1)
            (global $output (mut i32) (i32.const 0))
            (func (export "reserve") (param i32) (result i32) (i32.const 1024))
            (func $answer (export "answer") (param $head i32) (param $now f64) (result i32) {answer})
            (func (export "output") (result i32) (i32.const 1024))
            (func (export "output_len") (result i32) (global.get $output)))"#
    );
    let buffer = wast::parser::ParseBuffer::new(&text).unwrap();
    let module = wast::parser::parse::<wast::Wat<'_>>(&buffer).unwrap().encode().unwrap();
    let named = HostModule { name: "test", identity: &module };
    Guest::new(named, None, || Ok(module.clone())).unwrap()
}

const ENDLESS: &str = "(loop $l (br $l)) (i32.const 0)";

fn account(limits: AccountLimits) -> Account {
    Account::of_process(usize::MAX).open_run(limits)
}

fn bounds() -> GuestBounds {
    let until = Instant::now() + Duration::from_secs(60);
    GuestBounds { memory: 2 * PAGE, cpu: Duration::from_secs(60), output: 100, until }
}

async fn call(
    guest: &Guest,
    account: &Account,
    bounds: GuestBounds,
) -> Result<GuestAnswer, GuestFault> {
    guest.call(account, b"head", b"body", 0.0, bounds).await
}

#[tokio::test]
async fn the_output_of_a_guest_is_limited() {
    let run = account(AccountLimits::default());
    let echo =
        guest("(global.set $output (i32.add (local.get $head) (i32.const 4))) (i32.const 7)");
    let answer = call(&echo, &run, bounds()).await.unwrap();
    assert_eq!(answer, GuestAnswer { status: 7, output: b"headbody".to_vec() });
    assert_eq!(run.held(), 0, "the memory of a call is released");
    let answer = call(&echo, &run, GuestBounds { output: 7, ..bounds() }).await;
    assert!(matches!(answer, Err(GuestFault::Output)), "{answer:?}");
}

#[tokio::test]
async fn a_guest_ends_at_its_limit_of_processor_time() {
    let (run, endless) = (account(AccountLimits::default()), guest(ENDLESS));
    let answer =
        call(&endless, &run, GuestBounds { cpu: Duration::from_millis(30), ..bounds() }).await;
    assert!(matches!(answer, Err(GuestFault::Time)), "{answer:?}");
    assert!(
        run.cpu() >= Duration::from_millis(30),
        "its time is charged to the run: {:?}",
        run.cpu()
    );
    let until = Instant::now() + Duration::from_millis(30);
    let answer = call(&endless, &run, GuestBounds { until, ..bounds() }).await;
    assert!(matches!(answer, Err(GuestFault::Time)), "{answer:?}");
}

#[tokio::test]
async fn a_guest_ends_when_its_run_has_no_time_left() {
    let run = account(AccountLimits { cpu: Duration::from_millis(30), ..AccountLimits::default() });
    let answer = call(&guest(ENDLESS), &run, bounds()).await;
    let Err(GuestFault::Account(failure)) = answer else { panic!("{answer:?}") };
    assert!(failure.code == Code::EBUDGET && failure.reason.contains("`limits.cpu`"), "{failure}");
}

#[tokio::test]
async fn the_memory_of_a_guest_is_limited() {
    let run = account(AccountLimits::default());
    let grows = guest(
        "(if (i32.eq (memory.grow (i32.const 2)) (i32.const -1)) (then (unreachable))) (i32.const \
         0)",
    );
    let answer = call(&grows, &run, bounds()).await;
    assert!(matches!(answer, Err(GuestFault::Memory)), "{answer:?}");
    assert!(call(&grows, &run, GuestBounds { memory: 3 * PAGE, ..bounds() }).await.is_ok());
    let answer = call(&guest("(unreachable)"), &run, bounds()).await;
    assert!(matches!(answer, Err(GuestFault::Crash)), "{answer:?}");
}

#[tokio::test]
async fn dropping_a_call_ends_the_guest_and_releases_its_memory() {
    let (run, endless) = (account(AccountLimits::default()), guest(ENDLESS));
    let dropped =
        tokio::time::timeout(Duration::from_millis(30), call(&endless, &run, bounds())).await;
    assert!(dropped.is_err());
    assert_eq!(run.held(), 0);
}

#[tokio::test]
async fn calls_wait_for_the_memory_of_their_run() {
    let run = account(AccountLimits { memory: 3 * PAGE, ..AccountLimits::default() });
    let (endless, quick) = (guest(ENDLESS), guest("(i32.const 0)"));
    let first = GuestBounds { cpu: Duration::from_millis(60), ..bounds() };
    let (first, second) = tokio::join!(call(&endless, &run, first), call(&quick, &run, bounds()));
    assert!(matches!(first, Err(GuestFault::Time)), "{first:?}");
    assert!(second.is_ok(), "{second:?}");
    let answer = call(&quick, &run, GuestBounds { memory: 4 * PAGE, ..bounds() }).await;
    let Err(GuestFault::Account(failure)) = answer else { panic!("{answer:?}") };
    assert_eq!(failure.code, Code::ENOMEM);
}

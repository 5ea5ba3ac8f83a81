//! `sys`: the program's own surroundings: arguments, results, memory, time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use wattle_rt::{Code, Config, Failure, Room, Run, capability};

capability! {
    /// Arguments, results, memory, time.
    pub const SYS: "sys" 1;

    /// Gives the number of arguments
    #[example = "(ret (str.from_int (sys.argc)))" => "2"]
    fn argc() -> n: int = argc;

    /// Gives argument n, counted from 0
    #[example = "(ret (sys.argv? 0))" => "one"]
    fn argv(n: int) -> ptr: str ! EBOUND = argv;

    /// Puts out a result; several calls give several results
    #[example = r#"(sys.resv "one") (sys.resv "two")"# => "one", "two"]
    fn resv(ptr: bytes) = resv;

    /// Reserves bytes of memory for the program's own use, aligned to 8
    #[example = "(let $p (sys.alloc 16)) (i32.store $p 7) (ret (str.from_int (i32.load $p)))" => "7"]
    fn alloc(size: int) -> ptr: addr = alloc;

    /// Gives the time in milliseconds since 1970
    #[example = r#"(let $start i64 (sys.time)) (when (< (- (sys.time) $start) 60000) (out "quick"))"# => "quick"]
    fn time() -> ms: long = time;

    /// Gives an unpredictable number, 0 up to (not including) below
    #[example = r#"(when (< (sys.random 6) 6) (out "a side of a die"))"# => "a side of a die"]
    fn random(below: int) -> n: int = random;

    /// Waits that many milliseconds
    #[example = "(sys.sleep 1)"]
    async sleep(ms: int) = sleep;
}

fn argc(run: &mut Run) -> Result<i32, Failure> {
    Ok(i32::try_from(run.args().len()).unwrap_or(i32::MAX))
}

fn argv(run: &mut Run, n: i32) -> Result<String, Failure> {
    let args = run.args();
    usize::try_from(n).ok().and_then(|n| args.get(n)).cloned().ok_or_else(|| {
        let words = match args.len() {
            0 => "it was started without arguments".to_owned(),
            count => format!("it was started with {count}, numbered from 0"),
        };
        Failure::new(Code::EBOUND, format!("the program has no argument {n}: {words}"))
    })
}

fn resv(run: &mut Run, result: &[u8]) -> Result<(), Failure> {
    run.put_out(result)
}

fn alloc(_run: &mut Run, size: i32) -> Result<Room, Failure> {
    u32::try_from(size).map(Room).map_err(|_| Failure::new(Code::EBOUND, format!("{size} is no size in bytes")))
}

/// A clock that stands still: what `sys.time` and `date.now` tell in place of the machine's time, where a run is granted one.
///
/// ```
/// use wattle_capability::sys::Clock;
/// assert_eq!(Clock::at("1970-01-01T00:01:00Z").unwrap(), Clock(60_000));
/// assert!(Clock::at("noon").is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock(
    /// Milliseconds since 1970.
    pub i64,
);

impl Clock {
    /// The clock that stands at that date, which is RFC 3339.
    ///
    /// # Errors
    /// `EPARSE` where the text is no such date.
    pub fn at(date: &str) -> Result<Clock, Failure> {
        let at: Timestamp = date.trim().parse().map_err(|why| {
            Failure::new(Code::EPARSE, format!("{date:?} is no date such as 2026-03-01T12:00:00Z: {why}"))
        })?;
        Ok(Clock(at.as_millisecond()))
    }
}

impl Config for Clock {
    const CAPABILITY: &'static str = "sys";
}

/// The run's time in milliseconds since 1970.
pub(crate) fn now(run: &Run) -> i64 {
    if let Some(clock) = run.grants().config::<Clock>() {
        return clock.0;
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn time(run: &mut Run) -> Result<i64, Failure> {
    Ok(now(run))
}

fn random(_run: &mut Run, below: i32) -> Result<i32, Failure> {
    let below = u32::try_from(below)
        .ok()
        .filter(|b| *b > 0)
        .ok_or_else(|| Failure::new(Code::EBOUND, format!("the bound of a random number is positive, not {below}")))?;
    let word = getrandom::u64().map_err(|e| Failure::new(Code::EREMOTE, format!("no random numbers: {e}")))?;
    // 64 random bits over at most 31: the bias is below 2^-32.
    Ok(i32::try_from(word % u64::from(below)).unwrap_or(0))
}

async fn sleep(_run: &mut Run, ms: i32) -> Result<(), Failure> {
    tokio::time::sleep(Duration::from_millis(u64::try_from(ms).unwrap_or(0))).await;
    Ok(())
}

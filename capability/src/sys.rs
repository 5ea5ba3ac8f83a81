//! `sys`: the program's own surroundings: arguments, results, memory, time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wattle_rt::tape::RecordedValue;
use wattle_rt::{Allocation, Code, Config, Failure, Run, capability};

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

    /// Ends the whole run with that result, as soon as this program has come to its end with 0
    #[example = r#"(sys.done? "It is four.")"# => "It is four."]
    #[prompt(signature)]
    fn done(result: str) ! EBOUND EACCESS ENOMEM = done;

    /// Reserves bytes of memory for the program's own use, aligned to 8
    #[example = "(let $p (sys.alloc 16)) (i32.store $p 7) (ret (str.from_int (i32.load $p)))" => "7"]
    fn alloc(size: int) -> ptr: addr = alloc;

    /// Gives the time in milliseconds since 1970
    #[example = r#"(let $start i64 (sys.time)) (when (< (- (sys.time) $start) 60000) (out "quick"))"# => "quick"]
    #[effect(reads)]
    #[touches(nothing)]
    fn time() -> ms: long = time;

    /// Gives an unpredictable number, 0 up to (not including) below
    #[example = r#"(when (< (sys.random 6) 6) (out "a side of a die"))"# => "a side of a die"]
    fn random(below: int) -> n: int = random;

    /// Waits that many milliseconds
    #[example = "(sys.sleep 1)"]
    #[effect(reads)]
    #[touches(nothing)]
    async sleep(ms: int) = sleep;
}

/// Grants `sys` with a clock that stands still and with random numbers that are known, so that a program gives the same each time. Clones
/// take their numbers from one row.
///
/// ```
/// use wattle_capability::sys::Fixed;
/// assert!(Fixed::new(Some("2026-03-01T12:00:00Z"), &[4]).is_ok());
/// assert!(Fixed::new(Some("noon"), &[]).is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Fixed {
    /// Milliseconds since 1970.
    now: Option<i64>,
    /// What `random` gives, in turn; the last one again and again.
    random: Arc<Mutex<Vec<u32>>>,
}

impl Fixed {
    /// A clock that stands at that time, in RFC 3339, and those random numbers, in turn, the last one again and again. Without
    /// a time the clock goes on as ever, without numbers they are unpredictable.
    ///
    /// # Errors
    /// Where the time is none.
    pub fn new(now: Option<&str>, random: &[u32]) -> Result<Fixed, String> {
        let parse =
            |text: &str| text.parse::<jiff::Timestamp>().map_err(|e| format!("{text:?} is no point in time: {e}"));
        let now = now.map(parse).transpose()?.map(jiff::Timestamp::as_millisecond);
        let random = random.iter().rev().copied().collect();
        Ok(Fixed { now, random: Arc::new(Mutex::new(random)) })
    }

    fn next(&self) -> Option<u64> {
        let mut numbers = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let next = if numbers.len() > 1 { numbers.pop() } else { numbers.last().copied() };
        next.map(u64::from)
    }
}

impl Config for Fixed {
    const CAPABILITY: &'static str = "sys";
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
    run.emit_result(result)
}

fn done(run: &mut Run, result: &str) -> Result<(), Failure> {
    if result.trim().is_empty() {
        return Err(Failure::new(Code::EBOUND, "the result is empty; say what came of the task"));
    }
    run.answer(result)
}

fn alloc(_run: &mut Run, size: i32) -> Result<Allocation, Failure> {
    u32::try_from(size).map(Allocation).map_err(|_| Failure::new(Code::EBOUND, format!("{size} is no size in bytes")))
}

fn time(run: &mut Run) -> Result<i64, Failure> {
    Ok(now_ms(run))
}

/// The time that the run's clock shows, in milliseconds since 1970.
pub(crate) fn now_ms(run: &Run) -> i64 {
    if let Some(now) = run.config::<Fixed>().ok().and_then(|fixed| fixed.now) {
        return now;
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn random(run: &mut Run, below: i32) -> Result<i32, Failure> {
    let below = u32::try_from(below)
        .ok()
        .filter(|b| *b > 0)
        .ok_or_else(|| Failure::new(Code::EBOUND, format!("the bound of a random number is positive, not {below}")))?;
    let word = match run.config::<Fixed>().ok().and_then(|fixed| fixed.next()) {
        Some(number) => number,
        None => Dice::of(run)?.next(),
    };
    // 64 random bits over at most 31: the bias is below 2^-32.
    Ok(i32::try_from(word % u64::from(below)).unwrap_or(0))
}

/// Unpredictable numbers from one seed, so that a recording of the program needs to hold no more than that.
#[derive(Default)]
struct Dice(Option<Seeded>);

struct Seeded {
    numbers: blake3::OutputReader,
}

impl Dice {
    /// The run's own, with a seed of the system's at their first use.
    fn of(run: &mut Run) -> Result<&mut Seeded, Failure> {
        if run.state::<Dice>().0.is_none() {
            let fresh = |_: &mut Run| {
                let mut seed = [0; 32];
                getrandom::fill(&mut seed)
                    .map_err(|e| Failure::new(Code::EREMOTE, format!("no random numbers: {e}")))?;
                Ok(seed.to_vec())
            };
            let again = |kept| if let RecordedValue::Bytes(seed) = kept { Some(seed) } else { None };
            let seed = run.recall("sys.random", fresh, again)?;
            let numbers = blake3::Hasher::new().update(&seed).finalize_xof();
            run.state::<Dice>().0 = Some(Seeded { numbers });
        }
        run.state::<Dice>().0.as_mut().ok_or_else(|| Failure::new(Code::EREMOTE, "no random numbers"))
    }
}

impl Seeded {
    fn next(&mut self) -> u64 {
        let mut word = [0; 8];
        self.numbers.fill(&mut word);
        u64::from_le_bytes(word)
    }
}

async fn sleep(_run: &mut Run, ms: i32) -> Result<(), Failure> {
    tokio::time::sleep(Duration::from_millis(u64::try_from(ms).unwrap_or(0))).await;
    Ok(())
}

//! `sys`: arguments, results, memory and time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::arr::{Arrays, Handle};
use wattle_rt::tape::RecordedValue;
use wattle_rt::{Allocation, Code, Config, Failure, MAX_REASON, Run, Service, capability, quote};

/// The artifacts of the run, which the application that started it receives.
pub const ARTIFACTS: Service = Service {
    name: "artifacts",
    label: "artifacts",
    verb: "leave an artifact",
    capability: "sys",
    is_class: false,
    depends_on: &[],
    leaves_machine: true,
    kept_in: None,
};

capability! {
    /// Arguments, results, memory, time.
    pub const SYS: "sys" 1;

    /// Returns the number of arguments
    #[example = "(ret (str.from_int (sys.argc)))" => "2"]
    #[prompt(omitted)]
    fn argc() -> n: int = argc;

    /// Returns argument n, counted from 0
    #[example = "(ret (sys.argv 0))" => "one"]
    #[prompt(omitted)]
    fn argv(n: int) -> ptr: str ! EBOUND = argv;

    /// Returns an array of all arguments
    #[example = r#"(ret (str.join (sys.args) "+"))"# => "one+two"]
    #[prompt(omitted)]
    fn args() -> arr: arr = args;

    /// Returns a value that the agent's declaration passes to the program
    #[example = r#"(ret (default (sys.context "tone") "none"))"# => "none"]
    #[prompt(omitted)]
    fn context(name: str) -> value: str ! ENOENT = context;

    /// Prints a result; each call adds one
    #[example = r#"(sys.resv "one") (sys.resv "two")"# => "one", "two"]
    #[prompt(omitted)]
    fn resv(ptr: bytes) = resv;

    /// Ends the whole run with the result, once this program has returned 0
    #[example = r#"(sys.done "It is four.")"# => "It is four."]
    #[prompt(signature)]
    fn done(result: str) ! EBOUND EACCESS ENOMEM = done;

    /// Stores data for the application that started the run, under a name such as chart.csv; no
    /// model sees the data
    #[example = r#"(sys.artifact "sums.csv" "a,1") (out "saved")"# => "saved"]
    #[prompt(omitted)]
    #[touches(ARTIFACTS)]
    fn artifact(name: str, data: bytes) ! EBOUND EACCESS ENOMEM = artifact;

    /// Fails with the code (ETRFM for 0) and the reason
    #[example = r#"(catch $e $why (sys.fail EBOUND "too long")) (ret $why)"# => "too long"]
    #[prompt(omitted)]
    fn fail(code: int, reason: str) ! ETRFM ENOMEM EACCESS ENOENT EBOUND EREMOTE EPARSE ETIME EBUDGET EEXIST ECANCEL EKIND = fail;

    /// Returns the reason for the last failure of a call, or an empty string
    #[example = r#"(catch $v $e (kv.get "missing")) (out (if (has (sys.why) "missing") "named" "not"))"# => "named"]
    #[prompt(omitted)]
    fn why() -> reason: str = why;

    /// Returns the name of an error code, such as ENOENT, or the number if it has none
    #[example = r#"(ret (sys.code_name 4))"# => "ENOENT"]
    #[prompt(omitted)]
    fn code_name(code: int) -> name: str = code_name;

    /// Ends the program with a message, in which {a} and {b} are replaced with the numbers.
    /// Generated checks of arithmetic and of number arrays call it
    #[example = r#"(sys.trap "{a} of {b}" (i64.const 1) (i64.const 2))"#]
    #[prompt(omitted)]
    fn trap(message: str, a: long, b: long) = trap;

    /// Ends the program, which succeeds. `ret` within a function calls it
    #[example = r#"(fn $f () (out "a") (ret)) ($f) (out "b")"# => "a"]
    #[prompt(omitted)]
    fn end() = end;

    /// Allocates size bytes of memory, aligned to 8
    #[example = "(let $p (sys.alloc 16)) (i32.store $p 7) (ret (str.from_int (i32.load $p)))" => "7"]
    #[prompt(name)]
    fn alloc(size: int) -> ptr: addr = alloc;

    /// Returns the time in milliseconds since 1970
    #[example = r#"(let $start i64 (sys.time)) (when (< (- (sys.time) $start) 60000) (out "quick"))"# => "quick"]
    #[effect(reads)]
    #[touches(nothing)]
    fn time() -> ms: long = time;

    /// Returns a random number from 0 to below (exclusive)
    #[example = r#"(when (< (sys.random 6) 6) (out "a side of a die"))"# => "a side of a die"]
    fn random(below: int) -> n: int = random;

    /// Waits for ms milliseconds
    #[example = "(sys.sleep 1)"]
    #[prompt(signature)]
    #[effect(reads)]
    #[touches(nothing)]
    async sleep(ms: int) = sleep;
}

/// The named values that an agent's declaration passes to a program.
#[derive(Clone, Debug, Default)]
pub struct Context(pub Arc<BTreeMap<String, String>>);

impl Config for Context {
    const CAPABILITIES: &'static [&'static str] = &[];
}

/// The `sys` grant with a fixed clock and predefined random numbers, so that a program returns the
/// same result each time. Clones share one sequence of numbers.
///
/// ```
/// use wattle_capability::sys::FixedSources;
/// assert!(FixedSources::new(Some("2026-03-01T12:00:00Z"), &[4]).is_ok());
/// assert!(FixedSources::new(Some("noon"), &[]).is_err());
/// ```
#[derive(Clone, Debug)]
pub struct FixedSources {
    /// The time at which the clock is fixed, in milliseconds since 1970.
    now: Option<i64>,
    /// The random numbers that are left, in reverse order. When only one number is left, it is
    /// repeated.
    random: Arc<Mutex<Vec<u32>>>,
}

impl FixedSources {
    /// Creates a clock that always returns `now`, an RFC 3339 time, and a sequence of random
    /// numbers that repeats its last number. Without `now`, the system's clock is used. If `random`
    /// is empty, random numbers are unpredictable.
    ///
    /// # Errors
    /// If `now` is not a valid time.
    pub fn new(now: Option<&str>, random: &[u32]) -> Result<FixedSources, String> {
        let parse = |text: &str| {
            text.parse::<jiff::Timestamp>().map_err(|e| format!("{text:?} is not a timestamp: {e}"))
        };
        let now = now.map(parse).transpose()?.map(jiff::Timestamp::as_millisecond);
        let random = random.iter().rev().copied().collect();
        Ok(FixedSources { now, random: Arc::new(Mutex::new(random)) })
    }

    fn next(&self) -> Option<u64> {
        let mut numbers = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let next = if numbers.len() > 1 { numbers.pop() } else { numbers.last().copied() };
        next.map(u64::from)
    }
}

impl Config for FixedSources {
    const CAPABILITIES: &'static [&'static str] = &[];
}

fn argc(run: &mut Run) -> Result<i32, Failure> {
    Ok(i32::try_from(run.args().len()).unwrap_or(i32::MAX))
}

fn argv(run: &mut Run, n: i32) -> Result<String, Failure> {
    let args = run.args();
    usize::try_from(n).ok().and_then(|n| args.get(n)).cloned().ok_or_else(|| {
        let words = match args.len() {
            0 => "it was started without arguments".to_owned(),
            count => format!("it was started with {count}, counted from 0"),
        };
        Failure::new(Code::EBOUND, format!("the program has no argument {n}: {words}"))
    })
}

fn args(run: &mut Run) -> Result<Handle, Failure> {
    let args: Vec<Vec<u8>> = run.args().iter().map(|arg| arg.clone().into_bytes()).collect();
    Arrays::make(run, args)
}

fn context(run: &mut Run, name: &str) -> Result<String, Failure> {
    let context = run.grants().config::<Context>();
    let value = context.as_ref().and_then(|context| context.0.get(name).cloned());
    value.ok_or_else(|| {
        let names: Vec<&str> =
            context.iter().flat_map(|context| context.0.keys()).map(String::as_str).collect();
        let known = if names.is_empty() {
            "this program has no context".to_owned()
        } else {
            format!("the context has `{}`", names.join("`, `"))
        };
        Failure::new(Code::ENOENT, format!("no value {}: {known}", quote(name, crate::QUOTED)))
    })
}

fn fail(_: &mut Run, code: i32, reason: &str) -> Result<(), Failure> {
    let code = if code == Code::SUCCESS.number() { Code::ETRFM } else { Code(code) };
    Err(Failure::new(code, given(reason)))
}

/// Returns the reason that a program gave, or a default text if the reason is empty or contains
/// only whitespace.
fn given(reason: &str) -> &str {
    if reason.trim().is_empty() { "the program gave no reason" } else { reason }
}

fn why(run: &mut Run) -> Result<String, Failure> {
    Ok(run.last_failure().map(|failure| failure.reason.clone()).unwrap_or_default())
}

fn code_name(_: &mut Run, code: i32) -> Result<String, Failure> {
    Ok(Code(code).name().map_or_else(|| code.to_string(), str::to_owned))
}

fn trap(_: &mut Run, message: &str, a: i64, b: i64) -> Result<(), Failure> {
    // A replacement can be many times as long as its placeholder.
    let message = given(message);
    let message = message.get(..message.floor_char_boundary(MAX_REASON)).unwrap_or_default();
    let message = message.replace("{a}", &a.to_string()).replace("{b}", &b.to_string());
    Err(Failure::new(Code::EBOUND, message))
}

fn end(run: &mut Run) -> Result<(), Failure> {
    Err(run.end())
}

fn resv(run: &mut Run, result: &[u8]) -> Result<(), Failure> {
    run.emit_result(result)
}

/// Maximum size of an answer, in bytes. The answer is also stored in the run's record, events and
/// session, each of which takes several times the answer's size.
const MAX_ANSWER: usize = 1 << 20;

fn done(run: &mut Run, result: &str) -> Result<(), Failure> {
    if result.len() > MAX_ANSWER {
        let reason = format!(
            "the result has {} bytes, and an answer at most {MAX_ANSWER}; write it to a file, or \
             leave it as an artifact, and answer where it is",
            result.len()
        );
        return Err(Failure::new(Code::EBOUND, reason));
    }
    if result.trim().is_empty() {
        return Err(Failure::new(
            Code::EBOUND,
            "the result is empty; state the outcome of the task",
        ));
    }
    run.answer(result)
}

/// Maximum length of an artifact's name, in bytes.
const MAX_ARTIFACT_NAME: usize = 100;

fn artifact(run: &mut Run, name: &str, data: &[u8]) -> Result<(), Failure> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_name = (1..=MAX_ARTIFACT_NAME).contains(&name.len())
        && !name.starts_with('.')
        && name.chars().all(is_allowed);
    if !is_name {
        let reason = format!(
            "{} is not the name of an artifact: use letters, digits, `.`, `_` and `-`, at most \
             {MAX_ARTIFACT_NAME}, and begin with no dot",
            quote(name, crate::QUOTED)
        );
        return Err(Failure::new(Code::EBOUND, reason));
    }
    run.leave_artifact(name, data)
}

fn alloc(_run: &mut Run, size: i32) -> Result<Allocation, Failure> {
    u32::try_from(size)
        .map(Allocation)
        .map_err(|_| Failure::new(Code::EBOUND, format!("{size} is not a size in bytes")))
}

fn time(run: &mut Run) -> Result<i64, Failure> {
    Ok(now_ms(run))
}

/// Returns the time of the run's clock, in milliseconds since 1970.
pub(crate) fn now_ms(run: &Run) -> i64 {
    if let Some(now) = run.grants().config::<FixedSources>().and_then(|fixed| fixed.now) {
        return now;
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn random(run: &mut Run, below: i32) -> Result<i32, Failure> {
    let below = u32::try_from(below).ok().filter(|b| *b > 0).ok_or_else(|| {
        Failure::new(
            Code::EBOUND,
            format!("the bound of a random number must be positive, not {below}"),
        )
    })?;
    let word = match run.grants().config::<FixedSources>().and_then(|fixed| fixed.next()) {
        Some(number) => number,
        None => Dice::of(run)?.next(),
    };
    // The word has 64 random bits and the bound has at most 31 bits, so the bias is below 2^-32.
    Ok(i32::try_from(word % u64::from(below)).unwrap_or(0))
}

/// A generator of random numbers from a single seed, so that only the seed is recorded.
#[derive(Default)]
struct Dice(Option<Generator>);

struct Generator {
    numbers: blake3::OutputReader,
}

impl Dice {
    /// Returns the run's generator, which is seeded on first use.
    fn of(run: &mut Run) -> Result<&mut Generator, Failure> {
        if run.state::<Dice>().0.is_none() {
            let fresh = |_: &mut Run| {
                let mut seed = [0; 32];
                getrandom::fill(&mut seed)
                    .map_err(|e| Failure::new(Code::EREMOTE, format!("no random numbers: {e}")))?;
                Ok(seed.to_vec())
            };
            let again = |recorded| {
                if let RecordedValue::Bytes(seed) = recorded { Some(seed) } else { None }
            };
            let seed = run.recall("sys.random", |_| {}, fresh, again)?;
            let numbers = blake3::Hasher::new().update(&seed).finalize_xof();
            run.state::<Dice>().0 = Some(Generator { numbers });
        }
        run.state::<Dice>()
            .0
            .as_mut()
            .ok_or_else(|| Failure::new(Code::EREMOTE, "no random numbers"))
    }
}

impl Generator {
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

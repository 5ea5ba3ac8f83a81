//! The tape of a program: what came to it from outside, in the order of its calls.
//!
//! Every host function that reaches outside the program's own state passes here before it does anything. On a tape that records, the
//! call is noted before it is performed, and what came of it after; on one that is played back, what came of it then is given to the
//! program and nothing is performed. A program is otherwise a function of its text and its arguments, so it does the same again.
//!
//! A call is known by its place: the program's own [`path`](Mark::path) and the number of the call within it. Programs that a program
//! starts have paths below the call that starts them, so it does not matter in which order they get on.

use std::borrow::Cow;
use std::fmt::Write;
use std::pin::Pin;
use std::sync::Arc;

use crate::abi::Untyped;
use crate::{CallEffect, Code, Exit, Failure, Outcome, Position, Trap, TrapKind};

/// One call, as a tape knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallId {
    /// The program: empty for the one that the run called; else, for each level, the number of the call that started it, which time that call
    /// started programs, and its place among those.
    pub path: Arc<[u32]>,
    /// 0 for the program itself, 1 for what the guard asked about it, from 2 on the calls in their order.
    pub number: u32,
    /// The function's full name; [`PROGRAM`] and [`QUESTION`] for the two that are none.
    pub function: Cow<'static, str>,
    /// What the call does outside.
    pub effect: CallEffect,
    /// A hash of all arguments.
    pub digest: [u8; 16],
    /// The arguments as a person reads them, cut off where they are long.
    pub args: String,
}

/// Stands for the program itself on its tape.
pub const PROGRAM: &str = "program";
/// Stands for what a guard asked about a program.
pub const QUESTION: &str = "question";
/// The number of the first call.
const FIRST: u32 = 2;

/// A value that came to a program from outside.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordedValue {
    /// Nothing but that it was done.
    Unit,
    /// A number.
    Int(i32),
    /// A long number.
    Long(i64),
    /// A float.
    Float(f64),
    /// Text or bytes.
    Bytes(Vec<u8>),
    /// The items of an array.
    Items(Vec<Vec<u8>>),
}

impl RecordedValue {
    /// How many bytes it takes, about.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            RecordedValue::Unit | RecordedValue::Int(_) | RecordedValue::Long(_) | RecordedValue::Float(_) => 8,
            RecordedValue::Bytes(bytes) => bytes.len(),
            RecordedValue::Items(items) => items.iter().map(|item| item.len() + 4).sum(),
        }
    }
}

/// What came of a call.
pub type CallResult = Result<RecordedValue, Failure>;

/// What is to become of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Replay {
    /// It is performed.
    Perform,
    /// It was performed before, and this came of it.
    Recorded(CallResult),
    /// This came of it; what it changed was lost with the run's memory, so it is performed once more all the same.
    Again(CallResult),
}

/// Why a program must not go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Halt(pub String);

/// What a tape will have written.
pub type Flush<'a> = Pin<Box<dyn Future<Output = Result<(), Halt>> + Send + 'a>>;

/// The tape of one call of a run, and of all programs that it comes to start. Shared by programs that run at the same time.
pub trait Tape: Send + Sync {
    /// Notes that a call begins, and tells what is to become of it.
    ///
    /// # Errors
    /// Where the program must not go on. From then on it is [halted](Tape::halted).
    fn begin(&self, mark: &CallId) -> Result<Replay, Halt>;

    /// Notes what came of a call that was performed.
    fn end(&self, mark: &CallId, came: CallResult);

    /// Whether what was noted is to be made safe before that call is performed, and again after it where it must not be performed twice.
    fn needs_flush(&self, mark: &CallId) -> bool;

    /// The key of a call: the same when the program is run once more, and no other call's, in whatever run.
    fn key(&self, path: &[u32], number: u32) -> String;

    /// Makes what was noted safe.
    fn flush(&self) -> Flush<'_>;

    /// Notes that nobody can answer a question now: the program waits for it, and is halted.
    fn suspend(&self, mark: &CallId) -> Halt;

    /// Why the program must not go on, where it must not.
    fn halted(&self) -> Option<Halt>;
}

/// A program's place on a tape.
#[derive(Clone)]
pub(crate) struct TapeCursor {
    pub(crate) tape: Arc<dyn Tape>,
    path: Arc<[u32]>,
    next: u32,
    /// The call that is under way, where it stands on the tape, and how often it has started programs.
    current: Option<(u32, u32)>,
    /// How many keys it was given.
    changes: u32,
}

impl std::fmt::Debug for TapeCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TapeCursor").field("path", &self.path).field("next", &self.next).finish_non_exhaustive()
    }
}

impl TapeCursor {
    /// The beginning of a tape.
    pub(crate) fn root(tape: Arc<dyn Tape>) -> TapeCursor {
        TapeCursor { tape, path: Arc::from([]), next: FIRST, current: None, changes: 0 }
    }

    /// The place of the programs that the call under way starts; several places where it starts some several times. A call that does not stand
    /// on the tape itself gets a number of its own.
    pub(crate) fn below(&mut self) -> TapeCursor {
        let (call, times) = self.current.unwrap_or_else(|| (self.take(), 0));
        if let Some((_, times)) = &mut self.current {
            *times += 1;
        }
        self.child(call).child(times)
    }

    /// A key for a change that the call under way makes; another one each time.
    pub(crate) fn key(&mut self) -> Option<String> {
        let (number, _) = self.current?;
        self.changes += 1;
        Some(format!("{}.{}", self.tape.key(&self.path, number), self.changes))
    }

    /// Whether a call that stands on the tape is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.current.is_some()
    }

    /// Notes that a call which stands on the tape is over.
    pub(crate) fn over(&mut self) {
        self.current = None;
    }

    /// The place of one of them.
    pub(crate) fn child(&self, number: u32) -> TapeCursor {
        let path = self.path.iter().copied().chain([number]).collect();
        TapeCursor { tape: Arc::clone(&self.tape), path, next: FIRST, current: None, changes: 0 }
    }

    fn take(&mut self) -> u32 {
        let number = self.next;
        self.next = self.next.saturating_add(1);
        number
    }

    pub(crate) fn next(&mut self, function: &'static str, effect: CallEffect, args: Args) -> CallId {
        let number = self.take();
        (self.current, self.changes) = (Some((number, 0)), 0);
        self.mark(number, function, effect, args)
    }

    fn mark(&self, number: u32, function: &'static str, effect: CallEffect, args: Args) -> CallId {
        let (digest, args) = args.done();
        CallId { path: Arc::clone(&self.path), number, function: Cow::Borrowed(function), effect, digest, args }
    }

    /// The mark of a question about the program; all of it can be read again.
    pub(crate) fn question(&self, question: &str) -> CallId {
        let mut args = Args::default();
        args.add(&question);
        CallId { args: question.to_owned(), ..self.mark(1, QUESTION, CallEffect::Reads, args) }
    }

    /// Notes that the program begins. Gives what it came to where the clock ended it, since it would not be ended in the same place again, and
    /// where the guard refused it.
    pub(crate) fn open(&self, source: &str, args: &[String]) -> Result<(CallId, Option<Before>), Halt> {
        let mut all = Args::default();
        all.add(&source);
        args.iter().for_each(|arg| all.add(&arg.as_str()));
        let mark = self.mark(0, PROGRAM, CallEffect::Reads, all);
        let before = match self.tape.begin(&mark)? {
            Replay::Recorded(Ok(RecordedValue::Items(parts))) => Stopped::of(parts).map(Before::Stopped),
            Replay::Recorded(Err(refused)) => Some(Before::Refused(refused.reason)),
            _ => None,
        };
        Ok((mark, before))
    }

    /// Notes that the guard refused it.
    pub(crate) fn refuse(&self, mark: &CallId, why: &str) {
        self.tape.end(mark, Err(Failure::new(Code::EACCESS, why)));
    }

    /// Notes how it ended.
    pub(crate) fn close(&self, mark: &CallId, outcome: &Outcome) {
        let came = match &outcome.exit {
            Exit::Trapped(trap) if trap.kind == TrapKind::Time => {
                let place = trap.position.map_or(String::new(), |p| format!("{} {}", p.line, p.column));
                let head = [trap.message.clone().into_bytes(), place.into_bytes()];
                RecordedValue::Items(head.into_iter().chain(outcome.results.iter().cloned()).collect())
            }
            _ => RecordedValue::Unit,
        };
        self.tape.end(mark, Ok(came));
    }
}

/// What became of a program in an earlier run of it, which is not run again.
#[derive(Debug)]
pub(crate) enum Before {
    Stopped(Stopped),
    Refused(String),
}

/// A program that the clock ended.
#[derive(Debug)]
pub(crate) struct Stopped {
    pub(crate) trap: Trap,
    pub(crate) results: Vec<Vec<u8>>,
}

impl Stopped {
    fn of(parts: Vec<Vec<u8>>) -> Option<Stopped> {
        let mut parts = parts.into_iter();
        let mut text = || parts.next().and_then(|bytes| String::from_utf8(bytes).ok());
        let (message, place) = (text()?, text()?);
        let position = place
            .split_once(' ')
            .and_then(|(line, column)| Some(Position { line: line.parse().ok()?, column: column.parse().ok()? }));
        Some(Stopped { trap: Trap { kind: TrapKind::Time, message, position }, results: parts.collect() })
    }
}

/// The most bytes of the arguments that a mark shows.
const SHOWN: usize = 200;

/// The arguments of a call, on their way to a mark.
#[derive(Default)]
pub struct Args {
    digest: blake3::Hasher,
    shown: String,
}

impl Args {
    /// Adds the next argument.
    pub fn add(&mut self, arg: &impl Arg) {
        if !self.shown.is_empty() {
            self.shown.push_str(", ");
        }
        arg.feed(self);
    }

    fn number(&mut self, kind: u8, bytes: &[u8], shown: &dyn std::fmt::Display) {
        self.digest.update(&[kind]).update(bytes);
        if self.shown.len() < SHOWN {
            let _ = write!(self.shown, "{shown}");
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.digest.update(&[4]).update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        if self.shown.len() < SHOWN {
            let head = bytes.get(..SHOWN).unwrap_or(bytes);
            let _ = write!(self.shown, "{:?}", String::from_utf8_lossy(head));
        }
    }

    fn done(mut self) -> ([u8; 16], String) {
        if self.shown.len() > SHOWN {
            self.shown.truncate(self.shown.floor_char_boundary(SHOWN));
            self.shown.push('…');
        }
        let mut digest = [0; 16];
        digest.iter_mut().zip(self.digest.finalize().as_bytes()).for_each(|(to, from)| *to = *from);
        (digest, self.shown)
    }
}

/// An argument of a host function.
pub trait Arg {
    /// Adds it to the others.
    fn feed(&self, args: &mut Args);
}

macro_rules! args {
    ($($ty:ty: |$this:ident, $args:ident| $feed:expr;)*) => {$(
        impl Arg for $ty {
            fn feed(&self, $args: &mut Args) {
                let $this = self;
                $feed
            }
        }
    )*};
}
args! {
    i32: |this, args| args.number(0, &this.to_le_bytes(), this);
    i64: |this, args| args.number(1, &this.to_le_bytes(), this);
    f64: |this, args| args.number(2, &this.to_bits().to_le_bytes(), this);
    bool: |this, args| args.number(3, &[u8::from(*this)], this);
    &str: |this, args| args.bytes(this.as_bytes());
    String: |this, args| args.bytes(this.as_bytes());
    &[u8]: |this, args| args.bytes(this);
    Vec<u8>: |this, args| args.bytes(this);
    Untyped<'_>: |this, args| match this.bytes {
        Some(bytes) => args.bytes(bytes),
        None => args.number(0, &this.number.to_le_bytes(), &this.number),
    };
}

impl<T: Arg> Arg for Option<T> {
    fn feed(&self, args: &mut Args) {
        match self {
            Some(arg) => arg.feed(args),
            None => args.number(5, &[], &"null"),
        }
    }
}

/// The forms of what came of a call, by their first byte.
const UNIT: u8 = 0;
const INT: u8 = 1;
const LONG: u8 = 2;
const FLOAT: u8 = 3;
const BYTES: u8 = 4;
const ITEMS: u8 = 5;
const FAILED: u8 = 255;

/// Writes what came of a call as bytes: a byte for the form, then the number (little-endian), the bytes, each item as `[u32 length][bytes]`, or
/// the code (little-endian) and the words of a failure.
#[must_use]
pub fn encode(came: &CallResult) -> Vec<u8> {
    let with = |form: u8, bytes: &[u8]| [&[form], bytes].concat();
    match came {
        Ok(RecordedValue::Unit) => vec![UNIT],
        Ok(RecordedValue::Int(number)) => with(INT, &number.to_le_bytes()),
        Ok(RecordedValue::Long(number)) => with(LONG, &number.to_le_bytes()),
        Ok(RecordedValue::Float(number)) => with(FLOAT, &number.to_bits().to_le_bytes()),
        Ok(RecordedValue::Bytes(bytes)) => with(BYTES, bytes),
        Ok(RecordedValue::Items(items)) => {
            let mut all = vec![ITEMS];
            for item in items {
                all.extend_from_slice(&u32::try_from(item.len()).unwrap_or(u32::MAX).to_le_bytes());
                all.extend_from_slice(item);
            }
            all
        }
        Err(failure) => [&[FAILED], &failure.code.number().to_le_bytes()[..], failure.reason.as_bytes()].concat(),
    }
}

/// Reads what [`encode`] wrote; `None` where it is no such thing.
#[must_use]
pub fn decode(bytes: &[u8]) -> Option<CallResult> {
    let (form, rest) = bytes.split_first()?;
    Some(Ok(match *form {
        UNIT if rest.is_empty() => RecordedValue::Unit,
        INT => RecordedValue::Int(i32::from_le_bytes(rest.try_into().ok()?)),
        LONG => RecordedValue::Long(i64::from_le_bytes(rest.try_into().ok()?)),
        FLOAT => RecordedValue::Float(f64::from_bits(u64::from_le_bytes(rest.try_into().ok()?))),
        BYTES => RecordedValue::Bytes(rest.to_vec()),
        ITEMS => {
            let (mut items, mut rest) = (Vec::new(), rest);
            while !rest.is_empty() {
                let (head, body) = rest.split_first_chunk::<4>()?;
                let (item, after) = body.split_at_checked(u32::from_le_bytes(*head) as usize)?;
                items.push(item.to_vec());
                rest = after;
            }
            RecordedValue::Items(items)
        }
        FAILED => {
            let (code, reason) = rest.split_first_chunk::<4>()?;
            return Some(Err(Failure::new(Code(i32::from_le_bytes(*code)), std::str::from_utf8(reason).ok()?)));
        }
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_is_read_as_it_was_written() {
        for came in [
            Ok(RecordedValue::Unit),
            Ok(RecordedValue::Int(-5)),
            Ok(RecordedValue::Long(i64::MIN)),
            Ok(RecordedValue::Float(-0.0)),
            Ok(RecordedValue::Bytes(vec![0, 255])),
            Ok(RecordedValue::Bytes(Vec::new())),
            Ok(RecordedValue::Items(vec![Vec::new(), b"two".to_vec()])),
            Ok(RecordedValue::Items(Vec::new())),
            Err(Failure::new(Code::ENOENT, "no ü")),
        ] {
            let bytes = encode(&came);
            assert_eq!(decode(&bytes), Some(came.clone()), "{came:?}");
            if bytes.first() != Some(&BYTES) && bytes.len() > 1 {
                assert_ne!(decode(&bytes[..bytes.len() - 1]), Some(came.clone()), "a part of {came:?}");
            }
        }
        for bytes in [&b""[..], b"\x09", b"\x01\x00", b"\x05\xff\xff\xff\xffx", b"\xff\x00\x00\x00\x00\xff", b"\x00x"] {
            assert_eq!(decode(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn arguments_that_differ_have_other_digests() {
        let mark = |add: &dyn Fn(&mut Args)| {
            let mut args = Args::default();
            add(&mut args);
            args.done()
        };
        let all = [
            mark(&|_| {}),
            mark(&|args| args.add(&"")),
            mark(&|args| args.add(&"ab")),
            mark(&|args| (args.add(&"a"), args.add(&"b")).0),
            mark(&|args| args.add(&None::<&str>)),
            mark(&|args| args.add(&1i32)),
            mark(&|args| args.add(&1i64)),
            mark(&|args| args.add(&1f64)),
            mark(&|args| args.add(&true)),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(all.iter().skip(at + 1).all(|other| other.0 != one.0), "{one:?}");
        }
        assert_eq!(all[3].1, "\"a\", \"b\"");
        let long = mark(&|args| args.add(&"ü".repeat(1_000)));
        assert!(long.1.len() <= SHOWN + 3 && long.1.ends_with('…'), "{}", long.1);
    }
}

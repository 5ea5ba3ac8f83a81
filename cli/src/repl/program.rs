//! The open program: the session's inputs that together form one program.
//!
//! Each input is compiled together with the previous ones, and all of them run from the start. The
//! host calls of earlier inputs are not repeated: the program receives their recorded results.
//! Therefore every variable has the same value as before, and nothing is written or sent twice.
//!
//! An input is kept only if it ran without a failure and allows another input to follow, that is,
//! its forms leave no value and it does not end the program. Any other input also runs after the
//! kept ones, but later inputs do not see its variables.
//!
//! The values that inputs leave with the form `keep` belong to the session, and later programs read
//! them, too. The open program reads each of them as it was at its first use.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use wattle_agent::host::KEPT_LIMITS;
use wattle_agent::host::rt::tape::{
    CallId, CallResult, Flush, Halt, PROGRAM, QUESTION, RecordedValue, Replay, Tape,
};
use wattle_agent::host::rt::{KEEP, Kept, KeptText, Outcome, Signatures, assemble};

use crate::output::highlight::{Kind, Piece, pieces};

/// The forms that no other input can follow.
const ENDS: &[&str] = &["ret", "return", "fail", "done", "unreachable", "module", "func"];

/// The kept inputs, and the results of their calls.
#[derive(Debug, Default)]
pub(super) struct OpenProgram {
    /// The source of the kept inputs.
    text: String,
    /// The results of the host calls that the kept inputs made.
    calls: Vec<(CallId, CallResult)>,
    /// Number of results that the kept inputs produced.
    results: usize,
    /// Number of lines that the kept inputs logged.
    logged: usize,
    /// The values that programs of the session left with the form `keep`, by name.
    values: BTreeMap<String, KeptText>,
    /// The earlier values of those that changed after the kept inputs may have read them.
    read: BTreeMap<String, KeptText>,
}

impl OpenProgram {
    /// Begins a new program. The values of the session stay.
    pub(super) fn begin_new(&mut self) {
        let values = std::mem::take(&mut self.values);
        *self = OpenProgram { values, ..OpenProgram::default() };
    }

    /// Returns the values of the session, as the next input can read them.
    pub(super) fn values(&self) -> Kept {
        let changed = |name: &String| self.read.contains_key(name);
        let values = self.values.iter().filter(|(name, _)| !changed(name)).map(|(_, text)| text);
        Kept::new(values.chain(self.read.values()).cloned(), KEPT_LIMITS)
    }

    /// Adds the values that an input left with the form `keep`, and returns them. Values that the
    /// kept inputs leave again are not among them.
    pub(super) fn add_values(
        &mut self,
        input: &str,
        values: &Kept,
        tape: &InputTape,
    ) -> Vec<KeptText> {
        let made = tape.made();
        let is_new = |text: &KeptText| {
            let json = Ok(RecordedValue::Bytes(text.json().as_bytes().to_vec()));
            made.iter().any(|(id, result)| id.function == KEEP && *result == json)
        };
        let added: Vec<KeptText> = values.added().into_iter().filter(is_new).collect();
        for text in &added {
            let name = text.name().to_owned();
            let read = format!("${name}");
            let is_read = self.text.contains(&read) || input.contains(&read);
            let before = self.values.insert(name.clone(), text.clone());
            if let Some(before) = before.filter(|_| is_read) {
                self.read.entry(name).or_insert(before);
            }
        }
        added
    }

    /// Returns the source of the kept inputs.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the number of lines in the kept inputs.
    pub(super) fn lines(&self) -> usize {
        self.text.lines().count()
    }

    /// Returns the program that consists of the kept inputs and `input`.
    pub(super) fn with(&self, input: &str) -> String {
        // A program that consists only of functions would be read as a single function to run.
        let end = if only_functions(input) { "\n(ret)" } else { "" };
        format!("{}{input}{end}", self.text)
    }

    /// Returns a tape that replays the calls that the kept inputs made.
    pub(super) fn tape(&self) -> Arc<InputTape> {
        let key = |(id, result): &(CallId, CallResult)| {
            ((id.path.to_vec(), id.number), (id.clone(), result.clone()))
        };
        let id = wattle_agent::host::journal::new_id();
        let kept = self.calls.iter().map(key).collect();
        Arc::new(InputTape { id, kept, ..InputTape::default() })
    }

    /// Removes the results and log lines of the kept inputs from the outcome. Those of the new
    /// input remain.
    pub(super) fn only_new(&self, outcome: &mut Outcome) {
        outcome.results.drain(..self.results.min(outcome.results.len()));
        outcome.log.drain(..self.logged.min(outcome.log.len()));
    }

    /// Keeps an input that ran without a failure, if another input can follow it. `outcome`
    /// contains only the output of this input. Returns false if the input is not kept.
    pub(super) fn keep(
        &mut self,
        input: &str,
        outcome: &Outcome,
        tape: &InputTape,
        host: &Signatures,
    ) -> bool {
        let whole = format!("{}{}\n", self.text, input.trim_end());
        let follows = format!("{whole}(out \"\")");
        if !can_continue(input) || assemble(&follows, host).is_err() {
            return false;
        }
        self.text = whole;
        self.results += outcome.results.len();
        self.logged += outcome.log.len();
        self.calls.extend(tape.made());
        true
    }
}

/// Returns true if a later input may depend on something that this input declares or changes.
pub(super) fn declares(input: &str) -> bool {
    let words = ["let", "set", "fn", "global", "catch"];
    heads(input).any(|(_, head)| words.contains(&head))
}

/// Returns true if another input can follow: no form of this input leaves a value or ends the
/// program.
fn can_continue(input: &str) -> bool {
    let ends = heads(input).any(|(_, head)| ENDS.contains(&bare(head)) || head.starts_with("br"));
    let mut tops = heads(input).filter(|(depth, _)| *depth == 1).peekable();
    // WAT instructions may leave a value for the next form.
    let is_statement = |head: &str| {
        let head = bare(head);
        let is_form =
            head != "call" && wattle_agent::host::rt::forms().any(|form| form.name == head);
        is_form || matches!(head, "fn" | "global") || is_call(head)
    };
    !ends && tops.peek().is_some() && !has_flat(input) && tops.all(|(_, head)| is_statement(head))
}

fn is_call(head: &str) -> bool {
    let namespace = head.split_once('.').map(|(namespace, _)| namespace);
    namespace.is_some_and(wattle_agent::host::capability::is_namespace) || head.starts_with('$')
}

fn only_functions(input: &str) -> bool {
    let mut tops = heads(input).filter(|(depth, _)| *depth == 1).peekable();
    tops.peek().is_some() && !has_flat(input) && tops.all(|(_, head)| head == "fn")
}

fn bare(head: &str) -> &str {
    head.trim_end_matches(['?', '!'])
}

/// Returns the heads of the lists in a program, each with the depth of its list.
fn heads(input: &str) -> impl Iterator<Item = (usize, &str)> {
    words(input).filter(|word| word.is_head).map(|word| (word.depth, word.text))
}

/// Returns true if an input contains anything outside its lists.
fn has_flat(input: &str) -> bool {
    words(input).any(|word| word.depth == 0)
}

/// A word or a string in a program.
struct Word<'a> {
    text: &'a str,
    /// The depth of its list.
    depth: usize,
    /// If true, it is the first word of its list.
    is_head: bool,
}

fn words(input: &str) -> impl Iterator<Item = Word<'_>> {
    let (mut depth, mut is_head) = (0_usize, false);
    pieces(input).into_iter().filter_map(move |Piece { text, kind, .. }| {
        if kind == Kind::Parenthesis {
            is_head = matches!(text, "(" | "[");
            depth = if is_head { depth + 1 } else { depth.saturating_sub(1) };
            return None;
        }
        let is_word = kind != Kind::Comment && !text.trim().is_empty();
        is_word.then(|| Word { text, depth, is_head: std::mem::take(&mut is_head) })
    })
}

/// The tape of one input. It replays the calls of the earlier inputs and records the calls of this
/// input.
#[derive(Default)]
pub(super) struct InputTape {
    /// The id of this run of the program.
    id: String,
    /// The calls of the kept inputs, by path and number.
    kept: HashMap<(Vec<u32>, u32), (CallId, CallResult)>,
    made: Mutex<Vec<(CallId, CallResult)>>,
    halted: Mutex<Option<Halt>>,
}

impl InputTape {
    /// Returns the calls that were performed rather than replayed.
    fn made(&self) -> Vec<(CallId, CallResult)> {
        self.made.lock().clone()
    }

    fn halt(&self, why: String) -> Halt {
        let halt = Halt(why);
        *self.halted.lock() = Some(halt.clone());
        halt
    }
}

/// Returns true if the id denotes the whole program or the question whether to approve it. Each
/// input has its own program and its own question.
fn is_whole(id: &CallId) -> bool {
    id.path.is_empty() && [PROGRAM, QUESTION].contains(&&*id.function)
}

impl Tape for InputTape {
    fn begin(&self, id: &CallId) -> Result<Replay, Halt> {
        let key = (id.path.to_vec(), id.number);
        match self.kept.get(&key).filter(|_| !is_whole(id)) {
            None => Ok(Replay::Perform),
            Some((kept, result)) if kept.function == id.function && kept.digest == id.digest => {
                Ok(Replay::Recorded(result.clone()))
            }
            Some((kept, _)) => Err(self.halt(format!(
                "the earlier inputs do not repeat: `{}` was called instead of `{}`; `/wat new` \
                 begins a new program",
                id.function, kept.function
            ))),
        }
    }

    fn end(&self, id: &CallId, result: CallResult) {
        if !is_whole(id) {
            let mut made = self.made.lock();
            made.push((id.clone(), result));
        }
    }

    fn needs_flush(&self, _: &CallId) -> bool {
        false
    }

    fn key(&self, path: &[u32], number: u32) -> String {
        // A call is never made twice under the same number, so the key need not be durable.
        format!("{}/{path:?}/{number}", self.id)
    }

    fn flush(&self) -> Flush<'_> {
        Box::pin(async { Ok(()) })
    }

    fn suspend(&self, id: &CallId) -> Halt {
        self.halt(format!("nobody can answer a question about `{}` now", id.function))
    }

    fn halted(&self) -> Option<Halt> {
        self.halted.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use wattle_agent::host::rt::Account;

    use super::*;

    #[test]
    fn inputs_that_another_one_can_follow_are_kept() {
        for (input, kept) in [
            ("(let $x 5)", true),
            ("(let $m (map))\n(map.set $m \"a\" \"b\")", true),
            ("(each $x (args) (out $x))", true),
            ("(fn $double ($x) (* $x 2))", true),
            ("(fs.write \"a\" \"b\") ;; (ret)", true),
            ("(ret \"x\")", false),
            ("(let $x 5) (ret $x)", false),
            ("(when (= $x 1) (fail EBOUND \"no\"))", false),
            ("(call $fs.write \"a\" \"b\")", false),
            ("(i32.const 0)", false),
            ("(let $x 5) i32.const 0", false),
            (";; nothing", false),
        ] {
            assert_eq!(can_continue(input), kept, "{input}");
        }
    }

    #[test]
    fn the_open_program_reads_a_value_as_it_was_at_first() {
        let account = Account::of_process(1 << 20);
        let text = |json: &str| {
            KeptText::new(&account, "x", json.to_owned(), "number".to_owned()).unwrap()
        };
        let mut open = OpenProgram::default();
        let keep = |open: &mut OpenProgram, json: &str, is_made: bool| {
            let (values, tape) = (open.values(), open.tape());
            values.add(text(json)).unwrap();
            if is_made {
                text(json).record(&*tape).unwrap();
            }
            open.add_values("(keep x V)", &values, &tape).len()
        };
        let read = |open: &OpenProgram| open.values().get("x").unwrap().json().to_owned();
        assert_eq!((keep(&mut open, "1", true), read(&open)), (1, "1".to_owned()));
        assert_eq!(keep(&mut open, "0", false), 0, "an input that is run again");
        open.text = "(out $x)\n".to_owned();
        assert_eq!((keep(&mut open, "2", true), read(&open)), (1, "1".to_owned()));
        assert_eq!((keep(&mut open, "3", true), read(&open)), (1, "1".to_owned()));
        open.begin_new();
        assert_eq!((open.text(), read(&open)), ("", "3".to_owned()));
    }

    #[test]
    fn the_heads_of_lists_are_found() {
        assert_eq!(
            heads("(let $x (str.len? \"(no\")) ;; (not)\n(out $x)").collect::<Vec<_>>(),
            [(1, "let"), (2, "str.len?"), (1, "out")]
        );
    }
}

//! The scanner that finds the table's forms in an answer.

use super::body::{Body, FoundCalls};
use super::pattern::{Cursor, Stop};
use super::table::{
    CALLS, CHANNELS, Channel, FORMAT_MARKS, MarkPlace, Place, THOUGHT_TAGS, UNOPENED,
};
use crate::function::ProgramFunction;
use crate::message::FunctionCall;

/// A form in an answer, in the byte range `start..end`.
#[derive(Debug)]
pub(crate) struct Mark {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) kind: MarkKind,
}

/// The kind of a [`Mark`].
#[derive(Debug)]
pub(crate) enum MarkKind {
    /// The start of a thought. The next mark is its end, unless the thought is not closed.
    Open,
    /// The end of a thought, which may lack its start.
    Close,
    /// The start of the answer. The text before it is a thought.
    Answer,
    /// A part of a format without a meaning of its own.
    Nothing,
    /// Calls.
    Calls { families: &'static str, calls: Vec<FunctionCall>, is_complete: bool },
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The next text outside of thoughts.
    Text(String),
    /// A thought, or the next part of one.
    Thought(String),
    /// All texts so far belong to a thought, whose end was only found now.
    TextWasThought,
    /// A call.
    Call {
        /// The model families that write this form.
        families: &'static str,
        /// The call.
        call: FunctionCall,
    },
}

/// A scanner that finds thoughts and calls in the formats of model families. It takes an answer in
/// pieces, and its output does not depend on how the answer is cut. It does not read the calls of
/// the text dialect.
///
/// Text in code (a fence, inline code, a quoted line) is never a form. The scanner takes time linear
/// in the length of the answer.
///
/// ```
/// use wattle_machine::{Piece, Scanner};
///
/// let mut scanner = Scanner::new(&[]);
/// let mut pieces = scanner.push("<think>two and ");
/// pieces.extend(scanner.push("two</think>\nfour"));
/// pieces.extend(scanner.finish());
/// let thought = |text: &str| Piece::Thought(text.to_owned());
/// assert_eq!(pieces, [thought("two and "), thought("two"), Piece::Text("\nfour".into())]);
/// ```
#[derive(Debug)]
pub struct Scanner<'p> {
    state: Scan<'p>,
    /// The offset up to which the text was returned.
    shown: usize,
    /// The number of marks that were returned.
    shown_marks: usize,
    /// If true, the text before `shown` has an answer's start or a thought's end.
    has_ended_thought: bool,
    /// If true, a thought is open at `shown`.
    in_thought: bool,
}

impl<'p> Scanner<'p> {
    /// Creates a scanner. The programs are those that the model may call: forms that are ordinary
    /// text, such as a JSON object, are calls only if they name a known program.
    pub fn new(programs: &'p [ProgramFunction]) -> Self {
        let state = Scan::new(programs);
        Self { state, shown: 0, shown_marks: 0, has_ended_thought: false, in_thought: false }
    }

    /// Adds text to the answer. Returns the pieces that it completes.
    pub fn push(&mut self, text: &str) -> Vec<Piece> {
        self.state.push(text);
        self.pieces()
    }

    /// Ends the answer. Returns the remaining pieces.
    pub fn finish(mut self) -> Vec<Piece> {
        self.state.finish();
        self.pieces()
    }

    fn pieces(&mut self) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let text = |from: usize, to: usize| {
            let text = self.state.text.get(from..to).unwrap_or_default();
            (!text.is_empty()).then(|| text.to_owned())
        };
        // The opening of a thought that is ordinary text may be withdrawn.
        let open = self.state.thought;
        let is_certain = open.is_none_or(|open| !self.state.is_plain(open.form));
        let settled = self.state.marks.len() - usize::from(!is_certain);
        let marks = self.state.marks.iter().enumerate().take(settled).skip(self.shown_marks);
        for (at, mark) in marks {
            let before = text(self.shown, mark.start);
            let kind = if self.in_thought { Piece::Thought } else { Piece::Text };
            pieces.extend(before.map(kind));
            let is_first = !std::mem::replace(&mut self.has_ended_thought, true);
            match &mark.kind {
                MarkKind::Open => {}
                MarkKind::Close if self.in_thought || !is_first => {}
                MarkKind::Close | MarkKind::Answer => pieces.push(Piece::TextWasThought),
                MarkKind::Nothing => self.has_ended_thought = !is_first,
                MarkKind::Calls { families, calls, .. } => pieces
                    .extend(calls.iter().map(|call| Piece::Call { families, call: call.clone() })),
            }
            self.in_thought = matches!(mark.kind, MarkKind::Open);
            (self.shown, self.shown_marks) = (self.shown.max(mark.end), at + 1);
        }
        let end = match open {
            Some(open) if is_certain => open.settled(),
            Some(open) => open.start,
            None => self.state.at,
        };
        let rest = text(self.shown, end);
        pieces.extend(rest.map(if self.in_thought || self.state.is_unclosed {
            Piece::Thought
        } else {
            Piece::Text
        }));
        self.shown = self.shown.max(end);
        pieces
    }
}

/// The marks in an answer, found as far as they are needed.
#[derive(Debug)]
pub(crate) struct Marks<'p>(Scan<'p>);

impl<'p> Marks<'p> {
    /// The programs are those that the model may call.
    pub(crate) fn new(text: &str, programs: &'p [ProgramFunction]) -> Self {
        let mut scan = Scan::new(programs);
        scan.text.push_str(text);
        Self(scan)
    }

    /// Returns the mark with this index if it begins before `limit`. Does not read the text after
    /// `limit` if there is no such mark.
    pub(crate) fn get(&mut self, index: usize, limit: usize) -> Option<&Mark> {
        let scan = &mut self.0;
        // The last mark may be withdrawn while its thought is open.
        while scan.thought.is_some()
            || scan.marks.len() <= index && scan.at < limit.min(scan.text.len())
        {
            scan.step(true).ok()?;
        }
        scan.marks.get(index).filter(|mark| mark.start < limit)
    }

    /// Returns the marks that were found so far, from the index `from`.
    pub(crate) fn found(&self, from: usize) -> &[Mark] {
        self.0.marks.get(from..).unwrap_or_default()
    }

    /// Returns all marks.
    pub(crate) fn all(mut self) -> Vec<Mark> {
        self.0.finish();
        self.0.marks
    }
}

/// Returns true if an opening tag of a thought begins at `at`.
pub(crate) fn opens_thought(text: &str, at: usize) -> bool {
    matches!(tag_at(Cursor { text, at, is_end: true }), Ok(Tag { closes: false, .. }))
}

/// Returns the mark of a family's format that begins at `at`: its end, and its place.
pub(crate) fn format_mark(text: &str, at: usize) -> Option<(usize, MarkPlace)> {
    let found = FORMAT_MARKS.iter().find_map(|(mark, place)| {
        let mut cursor = Cursor { text, at, is_end: true };
        (cursor.take(mark) == Ok(true)).then_some((cursor.at, *place))
    });
    // `auto=functions.` is a word of its own.
    found.filter(|_| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        !text.get(at..).is_some_and(|rest| rest.starts_with("to="))
            || !before.is_some_and(char::is_alphanumeric)
    })
}

/// The state of the scan.
#[derive(Debug)]
struct Scan<'p> {
    programs: &'p [ProgramFunction],
    text: String,
    /// The offset up to which the text is decided.
    at: usize,
    /// The length of the text at which the next decision is tried. It grows with the text that is
    /// undecided, so that all attempts together take linear time.
    retry_at: usize,
    marks: Vec<Mark>,
    /// The thought that is open at `at`.
    thought: Option<Thought>,
    /// If true, the last thought is not closed, and the text after it is searched for calls only.
    is_unclosed: bool,
    /// For each opening tag of a thought that is only shown and not closed yet: true if it is the
    /// first text of its line.
    shown_tags: Vec<bool>,
    /// The start of a tag that is only shown.
    examined: Option<usize>,
    /// The start of a word that is no channel after all.
    refused: Option<usize>,
    fence: Option<Fence>,
    line: Line,
    /// If true, there was no text so far, or none after a thought.
    is_fresh: bool,
    /// The number of bytes that attempts without a result have read.
    spent: usize,
    /// For each form of a thought, the offset from which its end is known to be missing.
    unended: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Thought {
    start: usize,
    end: usize,
    /// The index of the name in [`THOUGHT_TAGS`], or after these, that of the form in [`CHANNELS`].
    form: usize,
    /// The offset up to which the thought was searched for its end.
    searched: usize,
    /// The first closing tag with another name. It ends the thought if no other tag does.
    other: Option<(usize, usize)>,
}

impl Thought {
    fn new(start: usize, end: usize, form: usize) -> Self {
        Self { start, end, form, searched: end, other: None }
    }

    /// Returns the offset up to which the text certainly belongs to the thought.
    fn settled(&self) -> usize {
        self.other.map_or(self.searched, |(start, _)| start)
    }
}

#[derive(Clone, Copy, Debug)]
struct Fence {
    mark: char,
    length: usize,
}

/// The current line.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// If true, the line's start was not examined yet.
    is_new: bool,
    /// If true, the line has only whitespace and forms so far.
    is_blank: bool,
    /// If true, the line belongs to code.
    is_code: bool,
    /// The line's indentation, in columns.
    indent: usize,
}

const NEW_LINE: Line = Line { is_new: true, is_blank: true, is_code: false, indent: 0 };

/// Indentation from which a line is code, in columns.
const CODE_INDENT: usize = 4;

/// Maximum length of a run of backticks around inline code.
const MAX_TICKS: usize = 8;

/// Number of bytes that attempts without a result may read in addition to a share of the text.
const MIN_EFFORT: usize = 1 << 16;

/// Number of times that attempts without a result may read the text.
const MAX_EFFORT: usize = 8;

impl<'p> Scan<'p> {
    fn new(programs: &'p [ProgramFunction]) -> Self {
        Self {
            programs,
            text: String::new(),
            at: 0,
            retry_at: 0,
            marks: Vec::new(),
            thought: None,
            is_unclosed: false,
            shown_tags: Vec::new(),
            examined: None,
            refused: None,
            fence: None,
            line: NEW_LINE,
            is_fresh: true,
            spent: 0,
            unended: vec![usize::MAX; THOUGHT_TAGS.len() + CHANNELS.len()],
        }
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        if self.text.len() >= self.retry_at {
            self.run(false);
        }
    }

    fn finish(&mut self) {
        self.run(true);
    }

    fn run(&mut self, is_end: bool) {
        while self.at < self.text.len() || is_end && self.thought.is_some() {
            if self.step(is_end).is_err() {
                // A search for the end of a thought continues where it ended.
                let open = if self.thought.is_some() { 0 } else { self.text.len() - self.at };
                self.retry_at = self.text.len() + 1 + open / 8;
                return;
            }
        }
    }

    fn step(&mut self, is_end: bool) -> Result<(), Stop> {
        match self.thought {
            Some(thought) => self.in_thought(thought, is_end),
            None => self.in_answer(is_end),
        }
    }

    fn cursor(&self, at: usize, is_end: bool) -> Cursor<'_> {
        Cursor { text: &self.text, at, is_end }
    }

    fn add(&mut self, start: usize, end: usize, kind: MarkKind) {
        self.marks.push(Mark { start, end, kind });
        self.at = end;
        self.line = NEW_LINE;
    }

    /// Takes the next step in a thought.
    fn in_thought(&mut self, mut thought: Thought, is_end: bool) -> Result<(), Stop> {
        let known = self.unended.get(thought.form).copied().unwrap_or(usize::MAX);
        let own = if thought.end >= known {
            Ok(None)
        } else {
            let found = self.end_of(&mut thought, is_end);
            self.thought = Some(thought);
            found
        };
        let found = match own? {
            Some(found) => Some(found),
            None => {
                if let Some(unended) = self.unended.get_mut(thought.form) {
                    *unended = thought.end.min(*unended);
                }
                thought.other
            }
        };
        self.thought = None;
        match found {
            Some((start, end)) => {
                self.add(start, end, MarkKind::Close);
                self.is_fresh = true;
            }
            None if self.is_plain(thought.form) => {
                self.marks.pop();
                self.refused = Some(thought.start);
                self.at = thought.start;
                (self.line, self.is_fresh) = (NEW_LINE, true);
            }
            None => {
                self.is_unclosed = true;
                self.at = thought.end;
            }
        }
        Ok(())
    }

    /// Returns true if the opening of this form is ordinary text.
    fn is_plain(&self, form: usize) -> bool {
        self.channel(form).is_some_and(is_plain_channel)
    }

    fn channel(&self, form: usize) -> Option<&'static Channel> {
        let at = form.checked_sub(THOUGHT_TAGS.len())?;
        CHANNELS.get(at).map(|form| &form.channel)
    }

    /// Returns the end of a thought, or `None` if it is missing. Continues where the last search ended.
    fn end_of(&self, thought: &mut Thought, is_end: bool) -> Result<Option<(usize, usize)>, Stop> {
        let mut cursor = self.cursor(thought.searched, is_end);
        let found = match self.channel(thought.form) {
            Some(Channel::Thought { closings, nexts, .. }) => {
                first_of(closings, nexts, &mut cursor)
            }
            _ => self.closing_tag(thought, &mut cursor),
        };
        thought.searched = cursor.at;
        match found {
            Ok(found) => Ok(Some(found)),
            Err(Stop::Not) => Ok(None),
            Err(Stop::More) => Err(Stop::More),
        }
    }

    /// Moves to the closing tag with the thought's name, and returns it.
    fn closing_tag(
        &self,
        thought: &mut Thought,
        cursor: &mut Cursor<'_>,
    ) -> Result<(usize, usize), Stop> {
        while let Some(offset) = cursor.rest().find('<') {
            cursor.at += offset;
            match tag_at(*cursor) {
                Ok(tag) if tag.closes => {
                    let found = (cursor.at, tag.end);
                    if !self.is_enclosed(cursor.at, tag.end, cursor.is_end)? {
                        if tag.name == thought.form {
                            return Ok(found);
                        }
                        thought.other.get_or_insert(found);
                    }
                    cursor.at = tag.end;
                }
                Err(Stop::More) => return Err(Stop::More),
                _ => cursor.at += 1,
            }
        }
        cursor.at = self.text.len();
        Err(cursor.missing())
    }

    /// Returns true if backticks or quotes enclose the range: it is only mentioned.
    fn is_enclosed(&self, start: usize, end: usize, is_end: bool) -> Result<bool, Stop> {
        const PAIRS: &[(char, char)] =
            &[('`', '`'), ('"', '"'), ('\'', '\''), ('“', '”'), ('‘', '’'), ('«', '»')];
        let before = self.text.get(..start).and_then(|text| text.chars().next_back());
        let Some((_, close)) = PAIRS.iter().find(|(open, _)| Some(*open) == before) else {
            return Ok(false);
        };
        match self.cursor(end, is_end).peek() {
            Some(next) => Ok(next == *close),
            None if is_end => Ok(false),
            None => Err(Stop::More),
        }
    }

    /// Takes the next step in the answer.
    fn in_answer(&mut self, is_end: bool) -> Result<(), Stop> {
        if self.line.is_new {
            return self.start_line(is_end);
        }
        if self.fence.is_some() || self.line.is_code {
            let length = self.cursor(self.at, is_end).rest().find('\n');
            self.at = length.map_or(self.text.len(), |length| self.at + length + 1);
            if length.is_some() {
                self.line = NEW_LINE;
            }
            return Ok(());
        }
        self.pass_plain();
        let Some(next) = self.cursor(self.at, is_end).peek() else { return Ok(()) };
        match next {
            '\n' => {
                self.at += 1;
                self.line = NEW_LINE;
                return Ok(());
            }
            '`' => return self.backticks(is_end),
            '<' | '[' | '{' | '✿' | '◁' if self.form(is_end)? => return Ok(()),
            'a' | 'c' | 't' | 'f' | 'A' | 'H' | 'd' | 'p' | '>'
                if self.may_be_word(is_end) && self.form(is_end)? =>
            {
                return Ok(());
            }
            _ => {}
        }
        self.pass(next);
        Ok(())
    }

    /// Passes over characters with which no form begins.
    fn pass_plain(&mut self) {
        let is_plain = |b: &u8| {
            b.is_ascii_graphic() && !b"<[{`actfAHdp>".contains(b)
                || *b == b' ' && !self.line.is_blank
        };
        let length = self.text.as_bytes().iter().skip(self.at).take_while(|b| is_plain(b)).count();
        if length > 0 {
            self.at += length;
            (self.line.is_blank, self.is_fresh) = (false, false);
        }
    }

    /// Returns true if a word that begins a form may be next.
    fn may_be_word(&self, is_end: bool) -> bool {
        const STARTS: &[&str] = &[
            "assistant",
            "analysis",
            "commentary",
            "to=",
            "functools",
            "functions.",
            "function <",
            "default_api.",
            "print(default_api.",
            ">>>",
            "Action",
            "Here",
        ];
        let mut cursor = self.cursor(self.at, is_end);
        cursor.take_any(STARTS) != Ok(false)
    }

    /// Passes over a character of the answer's text.
    fn pass(&mut self, next: char) {
        self.at += next.len_utf8();
        if next.is_whitespace() {
            let columns = if next == '\t' { CODE_INDENT } else { 1 };
            self.line.indent += if self.line.is_blank { columns } else { 0 };
        } else {
            (self.line.is_blank, self.is_fresh) = (false, false);
        }
    }

    /// Examines the start of a line: the start or end of a fence, or a quoted line.
    fn start_line(&mut self, is_end: bool) -> Result<(), Stop> {
        let begin = self.at;
        let rest = self.cursor(begin, is_end).rest();
        let bare = rest.trim_start_matches([' ', '\t']);
        let blanks = rest.len() - bare.len();
        let Some(mark) = bare.chars().next() else {
            if !is_end {
                return Err(Stop::More);
            }
            self.at = self.text.len();
            return Ok(());
        };
        if matches!(mark, '`' | '~') {
            let length = bare.chars().take_while(|c| *c == mark).count();
            let Some(line) = bare.find('\n').or(is_end.then_some(bare.len())) else {
                return Err(Stop::More);
            };
            let info = bare.get(length..line).unwrap_or_default().trim();
            let is_bare = info.is_empty();
            let opens = length >= 3 && !info.contains('`');
            let after = (begin + blanks + line + 1).min(self.text.len());
            if let Some(fence) = self.fence {
                if mark == fence.mark && length >= fence.length && is_bare {
                    self.fence = None;
                    (self.at, self.line) = (after, NEW_LINE);
                    return Ok(());
                }
            } else if opens {
                self.line.is_new = false;
                self.at = begin + blanks;
                match self.form(is_end) {
                    Ok(true) => return Ok(()),
                    Ok(false) => {}
                    Err(stop) => {
                        // The line is examined again.
                        (self.at, self.line) = (begin, NEW_LINE);
                        return Err(stop);
                    }
                }
                self.fence = Some(Fence { mark, length });
                self.is_fresh = false;
                (self.at, self.line) = (after, NEW_LINE);
                return Ok(());
            }
        }
        // `>>>name` is a call of Functionary, and `>>> text` is quoted three times.
        const CALL: &str = ">>>";
        if !is_end && bare.len() <= CALL.len() && CALL.starts_with(bare) {
            return Err(Stop::More);
        }
        let is_call =
            bare.strip_prefix(CALL).is_some_and(|name| name.starts_with(char::is_alphabetic));
        self.line.is_new = false;
        self.line.is_code = self.fence.is_none() && mark == '>' && !is_call;
        self.is_fresh &= !self.line.is_code;
        Ok(())
    }

    /// Passes over inline code. Backticks without an end in their paragraph are ordinary text.
    fn backticks(&mut self, is_end: bool) -> Result<(), Stop> {
        let rest = self.cursor(self.at, is_end).rest();
        let length = rest.bytes().take_while(|b| *b == b'`').count();
        if length == rest.len() && !is_end {
            return Err(Stop::More);
        }
        let after = rest.get(length..).unwrap_or_default();
        let end = if length <= MAX_TICKS { end_of_span(after, length, is_end)? } else { None };
        self.at += length + end.unwrap_or(0);
        (self.line.is_blank, self.is_fresh) = (false, false);
        Ok(())
    }

    /// Reads the form at the current offset. Returns true if there is one.
    fn form(&mut self, is_end: bool) -> Result<bool, Stop> {
        if !self.is_unclosed && self.thought_tag(is_end)? {
            return Ok(true);
        }
        if self.call(is_end)? {
            return Ok(true);
        }
        if self.is_unclosed {
            return Ok(false);
        }
        self.channel_form(is_end)
    }

    fn thought_tag(&mut self, is_end: bool) -> Result<bool, Stop> {
        let start = self.at;
        if self.examined == Some(start) {
            return Ok(false);
        }
        let mut unopened = self.cursor(start, is_end);
        let (end, closes, name) = match tag_at(unopened) {
            Ok(tag) if tag.is_empty => {
                let is_form = self.fits(Place::Line);
                if is_form {
                    self.add(start, tag.end, MarkKind::Nothing);
                }
                return Ok(is_form);
            }
            Ok(tag) => (tag.end, tag.closes, tag.name),
            Err(Stop::More) => return Err(Stop::More),
            Err(Stop::Not) if unopened.take_any(UNOPENED)? => (unopened.at, true, 0),
            Err(Stop::Not) => return Ok(false),
        };
        if closes {
            let closes_shown = |opens_line: &bool| *opens_line || !self.line.is_blank;
            if self.shown_tags.last().is_some_and(closes_shown) {
                self.shown_tags.pop();
                self.examined = Some(start);
                return Ok(false);
            }
            if self.is_enclosed(start, end, is_end)? || self.is_in_sentence(start, end, is_end)? {
                return Ok(false);
            }
            self.add(start, end, MarkKind::Close);
            self.is_fresh = true;
        } else {
            if !self.fits(Place::Line) {
                self.shown_tags.push(self.line.is_blank);
                self.examined = Some(start);
                return Ok(false);
            }
            self.add(start, end, MarkKind::Open);
            self.thought = Some(Thought::new(start, end, name));
        }
        Ok(true)
    }

    /// Returns true if a closing tag stands between the words of a sentence.
    fn is_in_sentence(&self, start: usize, end: usize, is_end: bool) -> Result<bool, Stop> {
        let before = self.text.get(..start).unwrap_or_default();
        let last = before.trim_end_matches(' ').chars().next_back();
        if self.line.is_blank || !before.ends_with([' ', '(']) {
            return Ok(false);
        }
        let goes_on = last.is_some_and(|c| !matches!(c, '.' | '!' | '?' | ':' | '…' | '。'));
        let mut after = self.cursor(end, is_end);
        let bare = after.rest().trim_start_matches(' ');
        after.at = self.text.len() - bare.len();
        match after.peek() {
            None if !is_end => Err(Stop::More),
            None | Some('\n' | '\r') => Ok(false),
            Some(next) => Ok(goes_on || !next.is_uppercase()),
        }
    }

    fn fits(&self, place: Place) -> bool {
        let before = || self.text.get(..self.at).and_then(|text| text.chars().next_back());
        let is_line = self.line.is_blank && (self.line.indent < CODE_INDENT || self.is_fresh);
        match place {
            Place::Anywhere => true,
            Place::Word => !before().is_some_and(char::is_alphanumeric),
            Place::Line => is_line,
            Place::Touching => {
                is_line || !before().is_some_and(|c| c.is_whitespace() || "(\"'“‘«`".contains(c))
            }
            Place::Start => self.is_fresh,
            Place::AfterForm => !self.marks.is_empty(),
        }
    }

    fn call(&mut self, is_end: bool) -> Result<bool, Stop> {
        let (start, spent) = (self.at, self.spent);
        for form in CALLS {
            if !self.fits(form.place) || self.spent > MIN_EFFORT + MAX_EFFORT * start {
                continue;
            }
            let mut cursor = self.cursor(start, is_end);
            match cursor.take_any(form.openings) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(stop) => {
                    self.spent = spent;
                    return Err(stop);
                }
            }
            let mut body = Body { cursor, form, programs: self.programs };
            let found = body.read(start);
            let end = body.cursor.at;
            match found {
                Ok(FoundCalls { calls, is_complete }) => {
                    let families = form.families;
                    self.add(start, end, MarkKind::Calls { families, calls, is_complete });
                    return Ok(true);
                }
                Err(Stop::More) => {
                    // The attempts are repeated once there is more text.
                    self.spent = spent;
                    return Err(Stop::More);
                }
                Err(Stop::Not) => self.spent += end.saturating_sub(start),
            }
        }
        Ok(false)
    }

    fn channel_form(&mut self, is_end: bool) -> Result<bool, Stop> {
        let start = self.at;
        for (index, form) in CHANNELS.iter().enumerate() {
            let mut cursor = self.cursor(start, is_end);
            if !self.fits(form.place) || !cursor.take_any(form.openings)? {
                continue;
            }
            let end = cursor.at;
            if is_plain_channel(&form.channel) {
                if self.refused == Some(start) {
                    continue;
                }
                let is_word =
                    self.text.get(..end).is_some_and(|text| text.ends_with(char::is_alphabetic));
                match cursor.peek() {
                    None if !is_end => return Err(Stop::More),
                    Some(next) if is_word && (next == ' ' || ".,:;!?)'-".contains(next)) => {
                        continue;
                    }
                    _ => {}
                }
            }
            match form.channel {
                Channel::Thought { .. } => {
                    self.add(start, end, MarkKind::Open);
                    let form = THOUGHT_TAGS.len() + index;
                    self.thought = Some(Thought::new(start, end, form));
                }
                Channel::Answer => {
                    self.add(start, end, MarkKind::Answer);
                    self.is_fresh = true;
                }
                Channel::Nothing => self.add(start, end, MarkKind::Nothing),
            }
            return Ok(true);
        }
        Ok(false)
    }
}

/// Moves to the first of the patterns, and returns it.
fn first_of(
    closings: &[&str],
    nexts: &[&str],
    cursor: &mut Cursor<'_>,
) -> Result<(usize, usize), Stop> {
    while let Some(offset) = cursor.rest().find(['<', '[', 'a', '◁', 'H']) {
        cursor.at += offset;
        let mut end = *cursor;
        if end.take_any(closings)? {
            return Ok((cursor.at, end.at));
        }
        if end.take_any(nexts)? {
            return Ok((cursor.at, cursor.at));
        }
        cursor.next()?;
    }
    cursor.at = cursor.text.len();
    Err(cursor.missing())
}

fn is_plain_channel(channel: &Channel) -> bool {
    matches!(channel, Channel::Thought { is_plain: true, .. })
}

/// Returns the offset after the run of `length` backticks that ends inline code. Returns `None` if
/// the paragraph has none.
fn end_of_span(text: &str, length: usize, is_end: bool) -> Result<Option<usize>, Stop> {
    let mut at = 0;
    while let Some(offset) = text.get(at..).and_then(|rest| rest.find(['`', '\n'])) {
        at += offset;
        let rest = text.get(at..).unwrap_or_default();
        if rest.starts_with('\n') {
            at += 1;
            let line = text.get(at..).unwrap_or_default().trim_start_matches([' ', '\t', '\r']);
            let is_cut = line.len() < 3 && line.chars().all(|c| matches!(c, '`' | '~'));
            if is_cut && !is_end {
                return Err(Stop::More);
            }
            let ends = line.is_empty() || line.starts_with(['\n', '>']);
            if ends || line.starts_with("```") || line.starts_with("~~~") {
                return Ok(None);
            }
            continue;
        }
        let run = rest.bytes().take_while(|b| *b == b'`').count();
        if run == rest.len() && !is_end {
            return Err(Stop::More);
        }
        at += run;
        if run == length {
            return Ok(Some(at));
        }
    }
    if is_end { Ok(None) } else { Err(Stop::More) }
}

/// A tag that opens or closes a thought.
struct Tag {
    end: usize,
    /// The index of the name in [`THOUGHT_TAGS`].
    name: usize,
    closes: bool,
    /// If true, the tag has no content, as in `<think/>`.
    is_empty: bool,
}

/// Maximum length of a tag's attributes, in bytes.
const MAX_ATTRIBUTES: usize = 120;

/// Maximum length of the name of a tag with its namespace, in bytes.
const MAX_TAG: usize = 40;

/// Reads the tag at the cursor.
fn tag_at(cursor: Cursor<'_>) -> Result<Tag, Stop> {
    let inside = cursor.rest().strip_prefix('<').ok_or(Stop::Not)?;
    let bare = inside.strip_prefix('/').unwrap_or(inside);
    let closes = bare.len() < inside.len();
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':');
    let length = bare.bytes().take_while(is_name).count();
    if length > MAX_TAG {
        return Err(Stop::Not);
    }
    let missing = |at: usize| if at == bare.len() { cursor.missing() } else { Stop::Not };
    let name = bare.get(..length).unwrap_or_default();
    let name = name.rsplit_once(':').map_or(name, |(_, name)| name);
    let known = THOUGHT_TAGS.iter().position(|known| name.eq_ignore_ascii_case(known));
    let Some(name) = known else { return Err(missing(length)) };
    let rest = bare.get(length..).unwrap_or_default();
    let attributes = rest.bytes().take(MAX_ATTRIBUTES);
    let attributes = attributes.take_while(|b| !matches!(b, b'>' | b'<' | b'\n')).count();
    let is_separated = attributes == 0 || rest.starts_with([' ', '\t', '/']);
    let end = length + attributes;
    if !is_separated || !bare.get(end..).is_some_and(|rest| rest.starts_with('>')) {
        return Err(missing(end));
    }
    let is_empty = bare.get(..end).is_some_and(|tag| tag.ends_with('/'));
    let end = cursor.text.len() - bare.len() + end + 1;
    Ok(Tag { end, name, closes, is_empty: is_empty && !closes })
}

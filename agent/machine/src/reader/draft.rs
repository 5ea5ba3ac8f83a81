//! Shows the thought and the answer of a message while the model writes it.
//!
//! The draft is read with the parts of the reader that reads whole answers. It shows a text as soon
//! as it is most likely part of the answer. What the whole message turns out to say always wins: if
//! it differs from what was shown, [`ShownAnswer::settle`] takes everything back.

use super::{
    header::{self, Header, Kind},
    quote::{self, Quote},
    text::{after_blanks, after_space, byte, char_at, fence, line_end, run, slice},
    uncalled,
};
use crate::dialect::{ANSWER_FIELDS, is_done};
use crate::families::{Piece, Scanner};
use crate::function::ProgramFunction;
use crate::request::Dialect;

/// A part of a message, as it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerPart<'a> {
    /// The next part of the text.
    Text(&'a str),
    /// The next part of the reasoning that the provider separates from the text.
    Reasoning(&'a str),
    /// The next part of a function call.
    Call {
        /// The number of the call in the message, counted from 0.
        index: usize,
        /// The function's name.
        name: &'a str,
        /// The next part of the arguments.
        arguments: &'a str,
    },
}

/// A part of what a message shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DraftPiece {
    /// The next part of a thought.
    Thought(String),
    /// The next part of the answer.
    Answer {
        /// The text.
        text: String,
        /// If true, the text and all parts before it are the answer, unless the model is asked again.
        /// Otherwise, a call may follow.
        is_certain: bool,
    },
    /// The parts of the answer so far are no answer.
    Void,
}

/// A message that is being written.
///
/// ```
/// use wattle_machine::{AnswerPart, Dialect, Draft, DraftPiece, ShownAnswer};
///
/// let mut draft = Draft::new(Dialect::Text, false, &[]);
/// let mut pieces = draft.push(AnswerPart::Text("<reasoning>add</reasoning>\nToolCall::Respon"));
/// pieces.extend(draft.push(AnswerPart::Text("se(\"\"\"\ntwo and two are fo")));
/// let answer = |text: &str| DraftPiece::Answer { text: text.to_owned(), is_certain: true };
/// let thought = DraftPiece::Thought("add".to_owned());
/// assert_eq!(pieces, [thought, answer("two and two are fo")]);
/// let mut shown = ShownAnswer::default();
/// pieces.iter().for_each(|piece| shown.add(piece));
/// let rest = shown.settle(Some("two and two are four"));
/// assert_eq!(rest, [answer("ur")]);
/// ```
#[derive(Debug)]
pub struct Draft<'p> {
    dialect: Dialect,
    programs: &'p [ProgramFunction],
    /// If true, the answer should be a JSON value.
    is_typed: bool,
    scanner: Scanner<'p>,
    /// The text outside of thoughts. Line breaks are `\n`.
    text: String,
    /// If true, the last character that arrived is `\r`.
    ends_in_return: bool,
    stage: Stage,
    /// The parts of the answer that were shown, joined.
    shown: String,
    arguments: Option<Arguments>,
}

/// What is known about the text outside of thoughts.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// The text may be the answer, a program or a call. Headers before `at` do not count.
    Open { at: usize },
    /// The text is the answer, unless a call follows. Headers before `at` do not count.
    Prose { at: usize },
    /// The text from this offset on is the answer, up to its end.
    Rest { inside: usize },
    /// The argument of `ToolCall::Response` begins at this offset, and its form is not known yet.
    Argument { inside: usize },
    /// The argument is a string. The text before `at` was read.
    Literal { literal: Literal, at: usize },
    /// Nothing more is shown before the end of the message.
    Silent,
}

/// The form of an answer's argument.
#[derive(Clone, Copy, Debug)]
enum Literal {
    Fence { mark: u8, length: usize },
    Triple { quote: Quote, has_lines: bool },
    Quoted { quote: Quote },
    Json { depth: usize, in_string: bool },
    Bare { depth: usize },
}

/// Maximum length of the start of a header that is held back, in bytes.
const MAX_HEADER: usize = 64;

/// Maximum length of the text that is held back until its meaning is known, in bytes. It keeps the
/// running time linear.
const MAX_HELD: usize = 1 << 12;

/// Maximum length of an escape, in bytes.
const MAX_ESCAPE: usize = 12;

/// Number of bytes from which the form of an argument is certain.
const CERTAIN: usize = 24;

impl<'p> Draft<'p> {
    /// Creates an empty draft of a message in a dialect. `is_typed` is true if the run has an output
    /// contract. The programs are those that the model may call.
    pub fn new(dialect: Dialect, is_typed: bool, programs: &'p [ProgramFunction]) -> Self {
        Self {
            dialect,
            programs,
            is_typed,
            scanner: Scanner::new(programs),
            text: String::new(),
            ends_in_return: false,
            stage: Stage::Open { at: 0 },
            shown: String::new(),
            arguments: None,
        }
    }

    /// Adds the next part of the message. Returns what it shows.
    pub fn push(&mut self, part: AnswerPart<'_>) -> Vec<DraftPiece> {
        let mut pieces = Vec::new();
        match part {
            AnswerPart::Reasoning(text) => {
                pieces.extend((!text.is_empty()).then(|| DraftPiece::Thought(text.to_owned())));
            }
            AnswerPart::Text(text) => self.add_text(text, &mut pieces),
            AnswerPart::Call { index, name, arguments } => {
                self.add_call(index, name, arguments, &mut pieces);
            }
        }
        pieces
    }

    fn add_text(&mut self, text: &str, pieces: &mut Vec<DraftPiece>) {
        let text = match self.dialect {
            Dialect::Plain => text.to_owned(),
            Dialect::Text | Dialect::Native => self.with_plain_line_breaks(text),
        };
        let is_value = self.is_typed
            && self.text.is_empty()
            && matches!(self.stage, Stage::Open { at: 0 })
            && text.trim_start().starts_with(['{', '[']);
        if is_value {
            self.stage = Stage::Rest { inside: 0 };
        }
        if self.dialect == Dialect::Plain || matches!(self.stage, Stage::Rest { inside: 0 }) {
            self.stage = Stage::Rest { inside: 0 };
            self.text.push_str(&text);
        } else {
            for piece in self.scanner.push(&text) {
                match piece {
                    Piece::Text(text) => self.text.push_str(&text),
                    Piece::Thought(thought) => pieces.push(DraftPiece::Thought(thought)),
                    Piece::TextWasThought => {
                        self.withdraw(pieces);
                        let thought = std::mem::take(&mut self.text);
                        pieces.push(DraftPiece::Thought(thought));
                        self.stage = Stage::Open { at: 0 };
                    }
                    Piece::Call { .. } => {
                        self.withdraw(pieces);
                        self.stage = Stage::Silent;
                    }
                }
            }
        }
        while self.read(pieces) {}
        if self.held() > MAX_HELD {
            self.stage = Stage::Silent;
        }
    }

    /// Returns the length of the text whose meaning is not known yet.
    fn held(&self) -> usize {
        let known = match self.stage {
            Stage::Silent => return 0,
            Stage::Open { .. } => 0,
            Stage::Prose { .. } => self.shown.len(),
            Stage::Rest { inside } => inside + self.shown.len(),
            Stage::Argument { inside } => inside,
            Stage::Literal { at, .. } => at,
        };
        self.text.len().saturating_sub(known)
    }

    /// Converts line breaks to `\n`. A `\r` at the end becomes a line break once it is certain that no
    /// `\n` follows.
    fn with_plain_line_breaks(&mut self, text: &str) -> String {
        let mut plain = String::with_capacity(text.len() + 1);
        for c in text.chars() {
            if std::mem::take(&mut self.ends_in_return) && c != '\n' {
                plain.push('\n');
            }
            match c {
                '\r' => self.ends_in_return = true,
                '\u{feff}' if self.text.is_empty() && plain.is_empty() => {}
                c => plain.push(c),
            }
        }
        plain
    }

    /// Reads the next part of the text. Returns true if there may be more to read.
    fn read(&mut self, pieces: &mut Vec<DraftPiece>) -> bool {
        match self.stage {
            Stage::Silent => return false,
            Stage::Open { at } | Stage::Prose { at } => {
                let header = header::candidate(&self.text, at, self.text.len());
                if let Some(header) = header {
                    if !header.counts(&self.text, 0) {
                        let at = header.start + 1;
                        self.stage = match self.stage {
                            Stage::Open { .. } => Stage::Open { at },
                            _ => Stage::Prose { at },
                        };
                        return true;
                    }
                    self.stage = begun(&header);
                    self.withdraw(pieces);
                    return true;
                }
                let end = start_of_header(&self.text, at).min(start_of_token(&self.text, at));
                if let Stage::Open { .. } = self.stage {
                    let Some(stage) = first_stage(&self.text, end) else { return false };
                    self.stage = stage;
                    return true;
                }
                self.stage = Stage::Prose { at: end };
                let lead = leading_lines(&self.text);
                self.show_up_to(lead, end, pieces);
            }
            Stage::Rest { inside } => {
                let lead = after_space(&self.text, inside);
                self.show_up_to(lead, self.text.len(), pieces);
            }
            Stage::Argument { inside } => {
                let Some(stage) = argument(&self.text, inside) else { return false };
                self.stage = stage;
                return true;
            }
            Stage::Literal { literal, at } => {
                let (shown, next) = literal.read(&self.text, at);
                self.show(&shown, pieces);
                self.stage = next;
                return false;
            }
        }
        false
    }

    /// Shows the text from `lead` to `end`, without whitespace at its end. All of it that was shown
    /// before is unchanged.
    fn show_up_to(&mut self, lead: usize, end: usize, pieces: &mut Vec<DraftPiece>) {
        let from = lead + self.shown.len();
        let text = slice(&self.text, from, from.max(end)).trim_end().to_owned();
        self.show(&text, pieces);
    }

    fn show(&mut self, text: &str, pieces: &mut Vec<DraftPiece>) {
        let text = if self.shown.is_empty() { text.trim_start_matches('\n') } else { text };
        if !text.is_empty() {
            self.shown.push_str(text);
            // A call may follow prose, and a typed answer may not match its schema.
            let is_certain = !self.is_typed && !matches!(self.stage, Stage::Prose { .. });
            pieces.push(DraftPiece::Answer { text: text.to_owned(), is_certain });
        }
    }

    fn withdraw(&mut self, pieces: &mut Vec<DraftPiece>) {
        if !self.shown.is_empty() {
            self.shown.clear();
            pieces.push(DraftPiece::Void);
        }
    }

    fn add_call(
        &mut self,
        index: usize,
        name: &str,
        arguments: &str,
        pieces: &mut Vec<DraftPiece>,
    ) {
        if self.dialect == Dialect::Plain {
            return;
        }
        if !is_done(name, self.programs) {
            self.withdraw(pieces);
            self.stage = Stage::Silent;
            self.arguments = Some(Arguments { is_over: true, ..Arguments::default() });
            return;
        }
        if self.arguments.is_none() {
            // The text before a call is a thought.
            self.withdraw(pieces);
            self.stage = Stage::Silent;
        }
        let read = self.arguments.get_or_insert_default();
        if index == 0 {
            let text = read.push(arguments);
            self.show(&text, pieces);
        }
    }
}

/// The parts of an answer that were shown, joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownAnswer(String);

impl ShownAnswer {
    /// Adds a piece that is shown.
    pub fn add(&mut self, piece: &DraftPiece) {
        match piece {
            DraftPiece::Thought(_) => {}
            DraftPiece::Answer { text, .. } => self.0.push_str(text),
            DraftPiece::Void => self.0.clear(),
        }
    }

    /// Returns true if `answer` begins with what was shown, and something was shown.
    pub fn begins(&self, answer: &str) -> bool {
        !self.0.is_empty() && answer.starts_with(&self.0)
    }

    /// Returns the pieces that turn what was shown into the answer that the whole message contains, or
    /// take it back if the message contains no answer. The parts after the last
    /// [`DraftPiece::Void`], joined, are this answer.
    pub fn settle(self, answer: Option<&str>) -> Vec<DraftPiece> {
        let rest = answer.and_then(|answer| answer.strip_prefix(self.0.as_str()));
        let void = (rest.is_none() && !self.0.is_empty()).then_some(DraftPiece::Void);
        let more = rest.or(answer).filter(|text| !text.is_empty());
        let more = more.map(|text| DraftPiece::Answer { text: text.to_owned(), is_certain: true });
        void.into_iter().chain(more).collect()
    }
}

fn begun(header: &Header<'_>) -> Stage {
    match header.kind {
        Kind::Response => Stage::Argument { inside: header.inside },
        _ => Stage::Silent,
    }
}

/// Returns the offset after the blank lines at the start of a text.
fn leading_lines(text: &str) -> usize {
    let bare = after_space(text, 0);
    slice(text, 0, bare).rfind('\n').map_or(0, |line| line + 1)
}

/// Returns the offset from which the text may become a header, or the length of the text.
fn start_of_header(text: &str, at: usize) -> usize {
    let from = text.ceil_char_boundary(text.len().saturating_sub(MAX_HEADER)).max(at);
    let is_word = |c: char| c.is_alphanumeric();
    let starts = slice(text, from, text.len()).match_indices(['t', 'T']);
    let mut starts = starts.map(|(offset, _)| from + offset);
    let found = starts.find(|start| {
        !slice(text, 0, *start).ends_with(is_word)
            && may_become_header(slice(text, *start, text.len()))
    });
    found.unwrap_or(text.len())
}

/// Returns the offset of the first special token, such as `<|im_end|>`, or the length of the text. If
/// the text has one, only the whole message tells what it means.
fn start_of_token(text: &str, at: usize) -> usize {
    let mut starts = slice(text, at, text.len()).match_indices('<').map(|(offset, _)| at + offset);
    let is_token = |start: &usize| matches!(char_at(text, start + 1), None | Some('|' | '｜'));
    starts.find(is_token).unwrap_or(text.len())
}

fn may_become_header(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let Some(rest) = lower.strip_prefix("tool") else { return "tool".starts_with(lower.as_str()) };
    let rest = rest.strip_prefix(['_', '-', ' ']).unwrap_or(rest);
    let Some(rest) = rest.strip_prefix("call") else { return "call".starts_with(rest) };
    rest.chars().all(|c| c.is_alphanumeric() || c.is_whitespace() || "_:.->*`".contains(c))
}

/// Returns the stage of a text without a header so far, or `None` if it is not known yet.
fn first_stage(text: &str, end: usize) -> Option<Stage> {
    let start = after_space(text, 0);
    let lone = slice(text, start, end);
    let first = lone.chars().next()?;
    if let Some((Kind::Response, after)) = header::prefixed_kind(text, start) {
        let next = after_blanks(text, after);
        if matches!(byte(text, next), b':' | b'\n') {
            return Some(Stage::Rest { inside: next + 1 });
        }
    }
    if matches!(first, '`' | '~') {
        let marks = lone.chars().take_while(|c| *c == first).count();
        let line = line_end(text, start);
        if marks < 3 {
            return (marks < lone.len()).then_some(Stage::Prose { at: end });
        }
        if line == text.len() {
            return None;
        }
        let body = slice(text, line + 1, end);
        let has_code = body.lines().any(|line| {
            let line = line.trim_start();
            line.len() > MAX_ESCAPE && !line.starts_with(";;")
        });
        return match uncalled::is_program(text, start + marks, body) {
            true => Some(Stage::Silent),
            false if has_code => Some(Stage::Prose { at: end }),
            false => None,
        };
    }
    if let Some(header) = header::bare_at_offset(text, start) {
        return Some(begun(&header));
    }
    let word = lone.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let is_kind =
        |kind: &&str| kind.get(..word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word));
    let may_be_kind =
        word == lone.trim_end() && ["wat", "catalog", "fix", "response"].iter().any(is_kind);
    (!may_be_kind && !lone.is_empty()).then_some(Stage::Prose { at: end })
}

/// Returns the stage of an argument of `ToolCall::Response`, or `None` if its form is not known yet.
fn argument(text: &str, inside: usize) -> Option<Stage> {
    let start = after_space(text, inside);
    let rest = slice(text, start, text.len());
    let first = rest.chars().next()?;
    if first == '\\' {
        return Some(Stage::Silent);
    }
    // Quotes and fences may be longer than what has arrived, and a name may precede the value.
    let is_short =
        rest.len() < 4 || first.is_alphabetic() && rest.len() < CERTAIN && !rest.contains('\n');
    if is_short {
        return None;
    }
    let start = super::arguments::after_key(text, start).unwrap_or(start);
    if let Some((mark, length)) = fence(text, start) {
        let line = line_end(text, start);
        if line == text.len() {
            return None;
        }
        if slice(text, start + length, line).contains("```") {
            return Some(Stage::Silent);
        }
        return Some(Stage::Literal { literal: Literal::Fence { mark, length }, at: line + 1 });
    }
    if let Some(quote) = quote::at_offset(text, start) {
        if char_at(text, quote.inside) == Some('“') {
            return Some(Stage::Silent);
        }
        let literal = if quote.is_triple {
            Literal::Triple { quote, has_lines: false }
        } else {
            Literal::Quoted { quote }
        };
        return Some(Stage::Literal { literal, at: quote.inside });
    }
    let literal = match byte(text, start) {
        b'{' | b'[' => Literal::Json { depth: 0, in_string: false },
        _ => Literal::Bare { depth: 0 },
    };
    Some(Stage::Literal { literal, at: start })
}

/// A part of an argument.
enum Token {
    /// The part up to this offset is shown.
    Shown(usize),
    /// The same, but the part is an escape with this meaning.
    Escape(usize, String),
    /// More text must arrive first.
    Unknown,
    /// The argument ends here, most likely.
    Over,
}

impl Literal {
    /// Reads the text from `at`. Returns what it shows, and the next stage. Whitespace is shown
    /// together with the text after it.
    fn read(mut self, text: &str, mut at: usize) -> (String, Stage) {
        let mut shown = String::new();
        loop {
            let bare = slice(text, at, text.len()).trim_start();
            let start = text.len() - bare.len();
            let token = if bare.is_empty() { Token::Unknown } else { self.token(text, start) };
            let end = match token {
                Token::Shown(end) => {
                    shown.push_str(slice(text, at, end));
                    end
                }
                Token::Escape(end, meant) => {
                    shown.push_str(slice(text, at, start));
                    shown.push_str(&meant);
                    end
                }
                Token::Unknown => return (shown, Stage::Literal { literal: self, at }),
                Token::Over => return (shown, Stage::Silent),
            };
            if let Self::Triple { quote, has_lines, .. } = &mut self {
                let is_later = !slice(text, quote.inside, at).trim().is_empty();
                *has_lines |= is_later && slice(text, at, start).contains('\n');
            }
            at = end;
        }
    }

    /// Reads the part at `at`, which is not whitespace.
    fn token(&mut self, text: &str, at: usize) -> Token {
        let Some(first) = char_at(text, at) else { return Token::Unknown };
        let after = at + first.len_utf8();
        match self {
            Self::Fence { mark, length } if byte(text, at) == *mark => {
                let end = at + run(text, at, *mark);
                match () {
                    () if end - at >= *length => Token::Over,
                    () if end == text.len() => Token::Unknown,
                    () => Token::Shown(end),
                }
            }
            Self::Triple { quote, has_lines, .. } if first == '\\' && !quote.is_raw => {
                let lines = slice(text, quote.inside, text.len()).trim();
                if !*has_lines && !lines.contains('\n') {
                    // The escapes of a single line are resolved, those of several lines are not.
                    return Token::Unknown;
                }
                let quotes = run(text, after, u8::try_from(quote.mark).unwrap_or(b'"'));
                let end = after + quotes;
                if end == text.len() {
                    return Token::Unknown;
                }
                Token::Escape(end, quote::code(slice(text, at, end), quote.mark))
            }
            Self::Triple { quote, .. } if first == quote.mark => {
                let end = at + run(text, at, byte(text, at));
                if end == text.len() {
                    return Token::Unknown;
                }
                if end - at >= 3 {
                    let is_alone = slice(text, 0, at).ends_with('\n') && byte(text, end) == b'\n';
                    match char_at(text, after_space(text, end)) {
                        None => return Token::Unknown,
                        Some(')' | '）' | ',' | '，') => return Token::Over,
                        Some(_) if is_alone || header::is_over(text, end) => return Token::Over,
                        // The text itself has such quotes.
                        Some(_) => {}
                    }
                }
                Token::Shown(end)
            }
            Self::Quoted { quote } if first == '\\' && !quote.is_raw => {
                if text.len() < at + MAX_ESCAPE {
                    return Token::Unknown;
                }
                match quote::escape(slice(text, after, text.len())) {
                    Some((meant, length)) => Token::Escape(after + length, meant.to_string()),
                    None => Token::Shown(after),
                }
            }
            Self::Quoted { quote } if quote::lenient_closers(quote.mark).contains(&first) => {
                let next = after_space(text, after);
                match char_at(text, next) {
                    None => Token::Unknown,
                    Some(')' | '）' | ',' | '，') => Token::Over,
                    Some(_) if slice(text, after, next).contains('\n') => Token::Over,
                    Some(_) => Token::Shown(after),
                }
            }
            Self::Json { depth, in_string } => {
                match first {
                    '\\' if *in_string => {
                        let escaped = char_at(text, after).map_or(0, char::len_utf8);
                        return if escaped == 0 {
                            Token::Unknown
                        } else {
                            Token::Shown(after + escaped)
                        };
                    }
                    '"' if *depth > 0 => *in_string = !*in_string,
                    '{' | '[' if !*in_string => *depth += 1,
                    '}' | ']' if !*in_string => *depth = depth.saturating_sub(1),
                    _ if *depth == 0 => return Token::Over,
                    _ => {}
                }
                Token::Shown(after)
            }
            Self::Bare { depth } if matches!(first, '(' | '（') => {
                *depth += 1;
                Token::Shown(after)
            }
            Self::Bare { depth } if matches!(first, ')' | '）') => {
                if *depth == 0 {
                    return Token::Over;
                }
                *depth -= 1;
                Token::Shown(after)
            }
            _ => {
                let is_special = |c: char| c.is_whitespace() || self.is_mark(c);
                match slice(text, after, text.len()).find(is_special) {
                    Some(length) => Token::Shown(after + length),
                    // The call may end with them.
                    None if self.is_string() => {
                        let rest = slice(text, at, text.len()).trim_end_matches([')', '）']);
                        if rest.is_empty() { Token::Unknown } else { Token::Shown(at + rest.len()) }
                    }
                    None => Token::Shown(text.len()),
                }
            }
        }
    }

    fn is_string(&self) -> bool {
        matches!(self, Self::Triple { .. } | Self::Quoted { .. })
    }

    /// Returns true if the character may have a meaning of its own.
    fn is_mark(&self, c: char) -> bool {
        match self {
            Self::Fence { mark, .. } => c == char::from(*mark),
            Self::Triple { quote, .. } => c == quote.mark || c == '\\',
            Self::Quoted { quote } => c == '\\' || quote::lenient_closers(quote.mark).contains(&c),
            Self::Json { .. } => matches!(c, '"' | '\\' | '{' | '}' | '[' | ']'),
            Self::Bare { .. } => matches!(c, '(' | ')' | '（' | '）'),
        }
    }
}

/// The arguments of a function call that may contain the answer.
#[derive(Debug, Default)]
struct Arguments {
    text: String,
    /// The offset in `text` up to which the answer was read, once its string has begun.
    at: Option<usize>,
    is_over: bool,
    has_shown: bool,
    /// Whitespace that is shown together with the text after it.
    space: String,
}

impl Arguments {
    /// Adds a part of the arguments. Returns the next part of the answer.
    fn push(&mut self, part: &str) -> String {
        if self.is_over {
            return String::new();
        }
        self.text.push_str(part);
        let at = match self.at {
            Some(at) => at,
            None => match start_of_answer(&self.text) {
                Ok(Some(at)) => at,
                Ok(None) if self.text.len() <= MAX_HELD => return String::new(),
                Ok(None) | Err(NoAnswer) => {
                    self.is_over = true;
                    return String::new();
                }
            },
        };
        let (end, is_over) = end_of_string(&self.text, at);
        self.at = Some(end);
        self.is_over = is_over;
        let quoted = format!("\"{}\"", slice(&self.text, at, end));
        let Ok(decoded) = serde_json::from_str::<String>(&quoted) else {
            self.is_over = true;
            return String::new();
        };
        let mut shown = std::mem::take(&mut self.space);
        shown.push_str(&decoded);
        if !self.has_shown {
            shown = shown.trim_start().to_owned();
        }
        self.space = slice(&shown, shown.trim_end().len(), shown.len()).to_owned();
        shown.truncate(shown.trim_end().len());
        self.has_shown |= !shown.is_empty();
        shown
    }
}

/// The arguments contain no answer that can be shown before their end.
struct NoAnswer;

/// Returns the offset of the answer's string in a JSON object, or `None` if it has not arrived yet.
fn start_of_answer(text: &str) -> Result<Option<usize>, NoAnswer> {
    let expect = |at: usize, wanted: u8| {
        let at = after_space(text, at);
        match byte(text, at) {
            _ if at >= text.len() => Ok(None),
            found if found == wanted => Ok(Some(at + 1)),
            _ => Err(NoAnswer),
        }
    };
    let Some(object) = expect(0, b'{')? else { return Ok(None) };
    let Some(key) = expect(object, b'"')? else { return Ok(None) };
    let (end, true) = end_of_string(text, key) else { return Ok(None) };
    if !ANSWER_FIELDS.contains(&slice(text, key, end)) {
        return Err(NoAnswer);
    }
    let Some(colon) = expect(end + 1, b':')? else { return Ok(None) };
    expect(colon, b'"')
}

/// Returns the offset up to which the content of a JSON string has arrived as whole characters, and
/// true if the string ends there.
fn end_of_string(text: &str, at: usize) -> (usize, bool) {
    let mut end = at;
    while let Some(offset) = slice(text, end, text.len()).find(['"', '\\']) {
        let found = end + offset;
        if byte(text, found) == b'"' {
            return (found, true);
        }
        // A surrogate pair is two escapes of six bytes.
        let is_unit = |at: usize| slice(text, at, at + 2) == "\\u";
        let is_pair = is_unit(found) && matches!(byte(text, found + 2), b'd' | b'D');
        let length = if is_pair {
            12
        } else if is_unit(found) {
            6
        } else {
            2
        };
        if found + length > text.len() {
            return (found, false);
        }
        end = found + length;
    }
    (text.len(), false)
}

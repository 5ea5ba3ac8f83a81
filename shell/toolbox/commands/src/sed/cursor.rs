//! A cursor over the text of a script.

/// A script, joined from the `-e` options and script files, and the current position in it.
pub(super) struct Cursor {
    letters: Vec<char>,
    at: usize,
    /// The start index of the text of each option or file, with its source for error messages.
    pieces: Vec<(usize, Piece)>,
}

/// The source of a part of a script: an `-e` option or a script file.
enum Piece {
    /// An `-e` option, by its number.
    Expression(usize),
    File(String),
}

impl Cursor {
    pub(super) fn new() -> Cursor {
        Cursor { letters: Vec::new(), at: 0, pieces: Vec::new() }
    }

    /// Adds the text of an `-e` option.
    pub(super) fn add_expression(&mut self, text: &str) {
        let count = self.pieces.iter().filter(|(_, piece)| matches!(piece, Piece::Expression(_)));
        let number = count.count() + 1;
        self.add(text, Piece::Expression(number));
    }

    /// Adds the text of a script file.
    pub(super) fn add_file(&mut self, name: &str, text: &str) {
        self.add(text.strip_suffix('\n').unwrap_or(text), Piece::File(name.to_owned()));
    }

    fn add(&mut self, text: &str, piece: Piece) {
        if !self.pieces.is_empty() {
            self.letters.push('\n');
        }
        self.pieces.push((self.letters.len(), piece));
        self.letters.extend(text.chars());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(super) fn at_start(&self) -> bool {
        self.at == 0
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let letter = self.peek();
        self.at += usize::from(letter.is_some());
        letter
    }

    /// If the next character is `letter`, consumes it and returns true.
    pub(super) fn take(&mut self, letter: char) -> bool {
        self.take_if(|next| next == letter).is_some()
    }

    pub(super) fn take_if(&mut self, wanted: impl Fn(char) -> bool) -> Option<char> {
        let letter = self.peek().filter(|letter| wanted(*letter))?;
        self.at += 1;
        Some(letter)
    }

    pub(super) fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let mut text = String::new();
        while let Some(letter) = self.take_if(&wanted) {
            text.push(letter);
        }
        text
    }

    /// Skips spaces and tabs.
    pub(super) fn skip_spaces(&mut self) {
        self.take_while(|letter| letter == ' ' || letter == '\t');
    }

    /// Skips whitespace, including newlines.
    pub(super) fn skip_whitespace(&mut self) {
        self.take_while(char::is_whitespace);
    }

    /// Returns the current position, which can be passed to `back_to`.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn back_to(&mut self, position: usize) {
        self.at = position;
    }

    /// Parses an unsigned number, if there is one.
    pub(super) fn number(&mut self) -> Option<u64> {
        let digits = self.take_while(|letter| letter.is_ascii_digit());
        if digits.is_empty() { None } else { Some(digits.parse().unwrap_or(u64::MAX)) }
    }

    /// Returns an error message that contains the current position.
    pub(super) fn error(&self, why: impl std::fmt::Display) -> String {
        match self.pieces.iter().rev().find(|(start, _)| *start <= self.at) {
            Some((start, Piece::Expression(number))) => {
                format!("-e expression #{number}, char {}: {why}", self.at - start)
            }
            Some((start, Piece::File(name))) => {
                let before = self.letters.get(*start..self.at).unwrap_or_default();
                let line = before.iter().filter(|letter| **letter == '\n').count() + 1;
                format!("file {name} line {line}: {why}")
            }
            None => why.to_string(),
        }
    }
}

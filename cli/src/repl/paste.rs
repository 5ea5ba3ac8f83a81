//! Pasted text. A long one is shown in the input as a label, such as `[pasted 200 lines]`, and the
//! input contains the whole text once it is entered.

use std::sync::Arc;

use parking_lot::Mutex;
use rustyline::history::History;
use rustyline::{
    Cmd, ConditionalEventHandler, Editor, Event, EventContext, EventHandler, Helper, KeyCode,
    KeyEvent, Modifiers,
};

use crate::progress::{counted, grouped};

/// Maximum number of lines of a text that is shown as it is.
const MAX_LINES: usize = 10;

/// Maximum length of a text that is shown as it is, in bytes.
const MAX_BYTES: usize = 2_000;

/// The pasted texts of the current input. The line editor reports a pasted text key by key.
#[derive(Clone, Default)]
pub(super) struct Pastes(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The part of a text that was received so far, while the terminal sends it.
    incoming: Option<String>,
    /// The long texts, each with its label.
    long: Vec<(String, String)>,
}

impl Pastes {
    /// Makes a line editor pass pasted texts to this value. Ctrl-J and Alt-Enter begin a new line.
    pub(super) fn bind<H: Helper, I: History>(&self, editor: &mut Editor<H, I>) {
        let handler = || EventHandler::Conditional(Box::new(self.clone()));
        editor.bind_sequence(Event::Any, handler());
        // Terminals send Alt-Enter in several ways.
        let alt = [KeyCode::Enter, KeyCode::Char('\r'), KeyCode::Char('\n')];
        for key in alt.map(|key| KeyEvent(key, Modifiers::ALT)).into_iter().chain([NEW_LINE]) {
            editor.bind_sequence(key, handler());
        }
    }

    /// Returns an input with the pasted texts in place of their labels, and forgets the texts.
    pub(super) fn expand(&self, input: &str) -> String {
        let long = std::mem::take(&mut self.0.lock().long);
        long.iter().fold(input.to_owned(), |input, (label, text)| input.replacen(label, text, 1))
    }
}

/// Ctrl-J, which is also how a line end is pasted.
const NEW_LINE: KeyEvent = KeyEvent(KeyCode::Char('J'), Modifiers::CTRL);

impl ConditionalEventHandler for Pastes {
    fn handle(&self, event: &Event, _: u16, _: bool, _: &EventContext<'_>) -> Option<Cmd> {
        let key = event.get(0).copied()?;
        let mut state = self.0.lock();
        match (key.0, &mut state.incoming) {
            (KeyCode::BracketedPasteStart, incoming) => *incoming = Some(String::new()),
            (KeyCode::BracketedPasteEnd, incoming) => {
                let text = incoming.take()?.replace("\r\n", "\n").replace('\r', "\n");
                return Some(Cmd::Insert(1, state.shown(text)));
            }
            (_, Some(incoming)) => incoming.extend(character(key)),
            // Of the other keys, only those that begin a new line are special.
            (KeyCode::Enter | KeyCode::Char('\r' | '\n'), None) if key.1 == Modifiers::ALT => {
                return Some(Cmd::Newline);
            }
            (_, None) => return (key == NEW_LINE).then_some(Cmd::Newline),
        }
        Some(Cmd::Noop)
    }
}

impl State {
    /// Returns the form in which a pasted text is inserted. Keeps the text if that is a label.
    fn shown(&mut self, text: String) -> String {
        let lines = text.lines().count();
        if lines <= MAX_LINES && text.len() <= MAX_BYTES {
            return text;
        }
        let size = if lines > 1 {
            counted(lines, "line")
        } else {
            format!("{} characters", grouped(text.chars().count() as u64))
        };
        let taken = |label: &str| self.long.iter().any(|(own, _)| own == label);
        let mut label = format!("[pasted {size}]");
        let mut number = 2;
        while taken(&label) {
            label = format!("[pasted {size} #{number}]");
            number += 1;
        }
        self.long.push((label.clone(), text));
        label
    }
}

/// Returns the character of a pasted text that the line editor reports as this key. Keys that only
/// control the terminal have none.
fn character(KeyEvent(key, modifiers): KeyEvent) -> Option<char> {
    match key {
        _ if KeyEvent(key, modifiers) == NEW_LINE => Some('\n'),
        KeyCode::Enter => Some('\r'),
        KeyCode::Tab => Some('\t'),
        KeyCode::Char('I') if modifiers == Modifiers::CTRL => Some('\t'),
        KeyCode::Char(c) if !modifiers.contains(Modifiers::CTRL) => Some(c),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_has_a_label_of_its_own_until_the_input_is_entered() {
        let pastes = Pastes::default();
        let show = |text: &str| pastes.0.lock().shown(text.to_owned());
        let long = "one line\n".repeat(200);
        assert_eq!(show("two\nlines"), "two\nlines");
        assert_eq!(show(&long), "[pasted 200 lines]");
        assert_eq!(show(&long.replace("one", "1")), "[pasted 200 lines #2]");
        assert_eq!(show(&"x".repeat(2_001)), "[pasted 2,001 characters]");
        let input = "a [pasted 200 lines #2] b [pasted 200 lines]";
        let whole = format!("a {} b {long}", long.replace("one", "1"));
        assert_eq!(pastes.expand(input), whole);
        assert_eq!(pastes.expand(input), input);
    }
}

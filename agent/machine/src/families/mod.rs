//! The calls and thoughts in the formats of model families, which models and servers write into the
//! text of an answer.
//!
//! `table` has the forms as data, and [`Scanner`] finds them. `pattern` and `body` read the parts of
//! a form.

mod body;
mod pattern;
mod scanner;
mod table;

pub(crate) use self::scanner::{Mark, MarkKind, Marks, format_mark, opens_thought};
pub use self::scanner::{Piece, Scanner};
pub(crate) use self::table::{CALL_FENCES, CHANNEL_WORDS, MarkPlace};

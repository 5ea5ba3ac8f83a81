//! The parser of values.

use wattle_rt::{Failure, Run};

use super::arena::{Builder, Values, with};
use crate::json::scan::{self, Fault, Grammar, Scalar, Sink, Text, Written};

impl Sink for Builder<'_> {
    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<(), Failure> {
        match scalar {
            Scalar::Null => self.add_null(),
            Scalar::Bool(yes) => self.add_bool(yes),
            Scalar::Number(Written { whole: Some(n), .. }) => self.add_whole(n),
            Scalar::Number(Written { text, at, .. }) => self.add_decimal(text, Some(at)),
            Scalar::Text(text) => self.add_text(&text.text, copied(&text)),
        }
    }

    fn key(&mut self, key: &Text<'_>) -> Result<bool, Failure> {
        self.add_key(&key.text, copied(key))
    }

    fn open(&mut self, is_object: bool) -> Result<(), Failure> {
        Builder::open(self, is_object)
    }

    fn close(&mut self) -> Result<(), Failure> {
        Builder::close(self)
    }
}

/// Returns the offset of a string in the text, if the text contains it without escapes.
fn copied(text: &Text<'_>) -> Option<usize> {
    matches!(text.text, std::borrow::Cow::Borrowed(_)).then_some(text.at)
}

impl Values {
    /// Parses JSON or a literal of Python, which must be exactly one value.
    ///
    /// # Errors
    /// `EPARSE` with the line and column if the text is not valid, is nested too deeply or repeats
    /// a key in an object; `ENOMEM` if the values do not fit.
    pub(super) fn parse(&mut self, text: &str) -> Result<i32, Failure> {
        let text = wattle_rt::without_bom(text);
        let mark = self.mark();
        let scanned = Builder::of_copy(self, text).map_err(Fault::Sink).and_then(|mut builder| {
            scan::scan(text, Grammar::JsonOrPython, &mut builder)?;
            Ok(builder.finish())
        });
        scanned.map_err(|fault| {
            self.restore(&mark);
            fault.failure(text)
        })
    }
}

pub(super) fn parse(run: &mut Run, s: &str) -> Result<super::ValueHandle, Failure> {
    with(run, |values| values.parse(s)).map(super::ValueHandle)
}

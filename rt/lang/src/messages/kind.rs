//! Messages about values of the wrong [kind](ValueKind).

use super::{Message, message};
use crate::Signature;
use crate::kinds::ValueKind;
use crate::truncate::excerpt;

pub(crate) fn kind_mismatch(
    head: &str,
    text: &str,
    found: ValueKind,
    wanted: ValueKind,
) -> Message {
    let text = excerpt(text);
    let message = message(
        "value-sort",
        format!("`{text}` is {}, but `{head}` takes {}", found.name(), wanted.name()),
    );
    match (found, wanted) {
        (ValueKind::Number | ValueKind::Code, ValueKind::Text) => {
            message.hint(format!("write `(str.from_int {text})`"))
        }
        (ValueKind::Text, ValueKind::Number) if !text.starts_with('"') => {
            message.hint(format!("write `(str.to_int? {text})`"))
        }
        (ValueKind::Array, ValueKind::Text) => message
            .hint(format!("write `(str.join? {text} \", \")`; `arr.to_json` converts it to JSON")),
        (ValueKind::Map, ValueKind::Text) => message.hint("`map.to_json` converts it to JSON"),
        (_, ValueKind::Code) => message.hint(
            "a code is a name such as `ENOENT`, or the `$e` that `(catch $v $e (CALL …))` sets",
        ),
        (ValueKind::Text, ValueKind::Array) => {
            message.hint(format!("write `(str.split? {text} \",\")`"))
        }
        (ValueKind::Map, ValueKind::Array) => message.hint(format!("write `(map.keys {text})`")),
        _ => message,
    }
}

impl Message {
    /// Adds a hint to call the function that takes a value of that kind.
    pub(crate) fn use_function(self, function: &str) -> Message {
        self.hint(format!("write `({function} …)`"))
    }

    /// Adds a hint with the placeholder of `fmt` for a value of that kind.
    pub(crate) fn use_placeholder(self, placeholder: &str) -> Message {
        self.hint(format!("its placeholder is `{placeholder}`"))
    }
}

pub(crate) fn operands_swapped(signature: &Signature) -> Message {
    message("value-sort", format!("two arguments of `{signature}` are swapped"))
}

/// Reports that the names of a value and its err are swapped. If `catch` is true, the names are
/// those of a `catch`, and otherwise of two `local.set`.
pub(crate) fn names_swapped(value: &str, err: &str, catch: bool) -> Message {
    let message = message(
        "names-swapped",
        format!(
            "`{value}` is set to the value and `{err}` to err, but they are used the other way \
             round"
        ),
    );
    match catch {
        true => message.hint(format!("`catch` names the value first: `(catch {err} {value} …)`")),
        false => message.hint(format!(
            "err is on top of the value and is popped first: `(local.set {value}) (local.set \
             {err})`; as written, the program would return a pointer, and no error code has this \
             number"
        )),
    }
}

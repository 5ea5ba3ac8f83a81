//! Messages of the traps that checks in lowered code raise.

use crate::diagnose::truncate::excerpt;
use crate::types::Elem;
use crate::types::Val;

/// Returns the trap message for a `for` loop with a step of 0.
pub(crate) fn zero_step_trap() -> String {
    "the step of `for` is 0, so the loop would never end".to_owned()
}

/// Returns the trap message for a result that does not fit in its type. In the message, `{a}` and
/// `{b}` are placeholders for the operands.
pub(crate) fn overflow(operator: &str, val: Val) -> String {
    match val {
        Val::I64 => format!("{{a}} {operator} {{b}} does not fit in a long (64 bits)"),
        _ => format!(
            "{{a}} {operator} {{b}} does not fit in an int (32 bits); declare a long: (let $x \
             long V)"
        ),
    }
}

/// Returns the trap message for a shift by too many bits, or for a shift whose result does not fit.
pub(crate) fn shift(left: bool, val: Val) -> String {
    let (ty, last, long) = match val {
        Val::I64 => ("a long (64 bits)", 63, ""),
        _ => ("an int (32 bits)", 31, "; declare a long: (let $x long V)"),
    };
    if left {
        format!("{{a}} << {{b}} does not fit in {ty}, which shifts by 0 to {last}{long}")
    } else {
        format!("{{a}} >> {{b}}: {ty} shifts by 0 to {last}{long}")
    }
}

/// Returns the trap message for an index out of bounds. In the message, `{a}` is a placeholder for
/// the index, and `{b}` for the length.
pub(crate) fn outside_array(text: &str, elem: Elem) -> String {
    let text = excerpt(text).replace(['{', '}'], " ");
    format!("`{text}` has {{b}} {}, from index 0, so it has no index {{a}}", elem.plural())
}

/// Returns the trap message for an array that is too large.
pub(crate) fn array_size(elem: Elem) -> String {
    format!("an array cannot have {{a}} {}; the most are {{b}}", elem.plural())
}

/// Returns the trap message for a number that is not a byte.
pub(crate) fn wide_byte() -> String {
    "{a} is not a byte (0 to 255)".to_owned()
}

/// Returns the trap message for a long that does not fit in an int.
pub(crate) fn wide_int() -> String {
    "{a} does not fit in an int (32 bits); keep it as a long".to_owned()
}

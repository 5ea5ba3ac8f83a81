//! Programs: text to module to instance.

mod code;
mod signature;
mod text;

pub use code::Code;
pub use signature::{Param, Signature, Signatures, Ty, ValType};
pub use text::{Assembled, Diagnostic, EncodeError, Position, Severity, assemble, explain, locate};

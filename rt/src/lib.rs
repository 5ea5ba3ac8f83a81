//! Programs: text to module to instance.

mod code;
mod signature;

pub use code::Code;
pub use signature::{Param, Signature, Signatures, Ty, ValType};

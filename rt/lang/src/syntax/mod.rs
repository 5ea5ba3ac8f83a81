//! The syntax of a program: its tokens, its tree, its literals, and its layout.

mod bad_tokens;
pub(crate) mod format;
pub(crate) mod indent;
pub(crate) mod lex;
pub(crate) mod literal;
pub(crate) mod tree;

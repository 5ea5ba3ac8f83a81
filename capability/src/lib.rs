//! x
pub mod files;

//! x

pub mod provider;

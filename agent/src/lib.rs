//! x

pub mod model;

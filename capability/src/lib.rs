//! x

pub mod egress;

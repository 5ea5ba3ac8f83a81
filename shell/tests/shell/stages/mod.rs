//! Tests of pipeline stages: the host functions, the limits of a stage, and the bundled
//! commands.

mod calls;
mod commands;
mod guest;
mod hostile;
mod random;
mod streams;

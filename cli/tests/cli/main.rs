//! The binary as a user meets it: its output, its exit codes, what it leaves behind.

mod config;
mod exec;
mod interrupt;
mod place;
mod run;
mod transcripts;

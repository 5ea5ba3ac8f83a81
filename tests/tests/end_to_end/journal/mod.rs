//! Tests runs in a journal: replaying them, stopping them at any point and resuming them, parking
//! them, and forking them.

mod conformance;
mod engine;
mod fork;
mod generated;
mod kept;
mod keys;
mod output;
mod park;
mod place;
mod poison;
mod power_loss;
mod privilege;
mod recall;
mod replay;
mod sealed;
mod stopped;
mod traits;

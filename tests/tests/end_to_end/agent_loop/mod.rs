//! Tests complete runs: both dialects, each limit, misbehaving models, and costs.

mod artifacts;
mod bounds;
mod dialects;
mod endpoint;
mod fix;
mod guard;
mod injection;
mod misbehaving;
mod orient;
mod output;
mod recall;
mod trace;
mod traits;
mod usage;

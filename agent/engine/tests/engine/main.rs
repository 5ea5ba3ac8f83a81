//! Tests of engines. Each module tests one topic.
//!
//! - `equal`: the machine's loop as a component does what the machine does, in generated runs, after a
//!   kill at any effect.
//! - `hostile`: engines that break a rule or a limit end their run, with its reason.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may panic"
)]

mod equal;
mod hostile;

use wattle_engine::{Bounds, Component, RunFacts};
use wattle_machine::Setup;
use wattle_rt::{Account, AccountLimits};

/// Returns the machine's loop as a component, or `None` if it is not built.
fn machine() -> Option<Component> {
    let folder = wattle_cases::guests::SharedGuests::in_target();
    let binary = wattle_cases::engine::component()?;
    Some(Component::load(&binary, Some(folder.folder()), Bounds::default()).unwrap())
}

fn account() -> Account {
    Account::of_process(1 << 30).open_run(AccountLimits::default())
}

fn facts(setup: &Setup) -> RunFacts {
    RunFacts { setup: setup.clone(), agent: "a".into(), model: "m".into(), ..RunFacts::default() }
}

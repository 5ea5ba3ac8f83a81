//! The machine's loop as a component: the adapter between [`wattle_machine::step`] and the world of
//! `engine.wit`. It performs each effect by calling the host.
#![cfg(target_family = "wasm")]

#[path = "../../src/convert.rs"]
mod convert;

/// The types and functions of `engine.wit`.
mod wit {
    wit_bindgen::generate!({ path: "../../machine/wit", world: "engine" });

    pub(crate) use self::wattle::engine::loop_ as types;
}

use convert::all;
use wattle_machine::{Dollars, Effect, Event, Input, Setup, State, step};
use wit::types;

struct Loop;

wit::export!(Loop with_types_in wit);

impl wit::Guest for Loop {
    fn run(prompt: String, config: String) -> Result<wit::Report, String> {
        let setup: Setup =
            serde_json::from_str(&config).map_err(|why| format!("invalid setup: {why}"))?;
        let known = setup.history.len() + 1;
        let mut next = step(State::new(setup), Input::Begin { message: prompt });
        loop {
            let (state, effects) = next;
            let mut answered = None;
            for effect in effects {
                answered = match effect {
                    // The host writes the last event of a run.
                    Effect::Emit(Event::Response { .. } | Event::Error { .. }) => None,
                    Effect::Emit(event) => {
                        let json = serde_json::to_string(&event);
                        types::emit(&json.map_err(|why| why.to_string())?);
                        None
                    }
                    Effect::Refuse { call, reason, .. } => {
                        let call = call.into();
                        types::note(&types::Notice::Refused(types::Refusal { call, reason }));
                        None
                    }
                    Effect::Done { call, .. } => {
                        types::note(&types::Notice::Done(call.into()));
                        None
                    }
                    Effect::Finish(ending) => {
                        let turns = state.conversation().get(known..).unwrap_or_default().to_vec();
                        return Ok(wit::Report { ending: ending.into(), turns: all(turns) });
                    }
                    Effect::Moderate { message } => {
                        Some(input(types::moderate(&message), |verdict| {
                            Input::Moderated(verdict.into())
                        }))
                    }
                    Effect::Ask(ask) => Some(input(types::ask(&ask.into()), replied)),
                    Effect::Execute { calls, .. } => {
                        Some(input(types::execute(&all(calls)), |executions| {
                            Input::Executed(all(executions))
                        }))
                    }
                    Effect::Recall { call, .. } => {
                        Some(input(types::recall(&call.into()), |execution| {
                            Input::Recalled(execution.into())
                        }))
                    }
                    Effect::Contribute { calls, .. } => {
                        Some(input(types::contribute(&all(calls)), |contributions| {
                            Input::Contributed(all(contributions))
                        }))
                    }
                    Effect::Validate { text } => Some(input(types::validate(&text), validated)),
                };
            }
            let (spent, input) = answered.ok_or("the loop waits for nothing")?;
            let state = step(state, Input::Spent(spent.into())).0;
            next = step(state, input);
        }
    }
}

/// Returns the input that the host's answer to a request means, and the usage of programs.
fn input<T>(
    (spent, result): (types::Usage, Result<T, types::Stop>),
    answered: impl FnOnce(T) -> Input,
) -> (types::Usage, Input) {
    (spent, result.map_or_else(stopped, answered))
}

fn replied(reply: types::Reply) -> Input {
    match reply {
        types::Reply::Answer(answer) => Input::Answer(answer.into()),
        types::Reply::WithoutFunctions(why) => Input::WithoutFunctions(why),
        types::Reply::TooLong(types::Excess { error, window, sent }) => {
            Input::TooLong { error, window, sent }
        }
    }
}

fn validated(validated: Result<String, Vec<String>>) -> Input {
    match validated.map(|json| serde_json::from_str(&json)) {
        Ok(Ok(value)) => Input::Validated(Ok(value)),
        Ok(Err(why)) => Input::Failed(why.to_string()),
        Err(errors) => Input::Validated(Err(errors)),
    }
}

fn stopped(stop: types::Stop) -> Input {
    match stop {
        types::Stop::Cancelled(reason) => Input::Cancel { reason },
        types::Stop::Expired(limit_ms) => Input::Expired { limit_ms },
        types::Stop::OutOfTokens(types::TokenLimit { limit, owner }) => {
            Input::OutOfTokens { limit, owner }
        }
        types::Stop::OutOfMoney(types::CostLimit { limit, owner }) => {
            Input::OutOfMoney { limit: Dollars::from_nanos(limit), owner }
        }
        types::Stop::Failed(message) => Input::Failed(message),
    }
}

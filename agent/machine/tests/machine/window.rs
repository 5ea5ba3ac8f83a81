//! Tests conversations that exceed the model's context window.

use wattle_machine::{
    Ask, Dialect, Effect, Ending, Event, Execution, Input, Message, ModelAnswer, Setup, State, step,
};

fn history(exchanges: usize) -> Vec<Message> {
    let exchange = |at: usize| {
        let text = format!("{at} {}", "x".repeat(1_000));
        [
            Message::user(format!("question {text}")),
            Message::assistant("ToolCall::Catalog(\"now\")"),
            Message::user(format!("[Observation (step 1)] {text}")),
            Message::assistant(format!("answer {text}")),
        ]
    };
    (1..=exchanges).flat_map(exchange).collect()
}

fn begin(setup: Setup) -> (State, Vec<Effect>) {
    let setup = Setup { system: "system".into(), ..setup };
    step(State::new(setup), Input::Begin { message: "the message".to_owned() })
}

/// Returns the number of messages that the effects report as left out, and the request.
fn asked(effects: &[Effect]) -> (u64, &Ask) {
    let left_out = effects.iter().find_map(|effect| match effect {
        Effect::Emit(Event::LeftOut { messages, .. }) => Some(*messages),
        _ => None,
    });
    let Some(Effect::Ask(ask)) = effects.last() else { panic!("{effects:?}") };
    (left_out.unwrap_or(0), ask)
}

/// Checks that a request begins with the system prompt and a whole exchange, and tells the model
/// what is left out. Returns the number of messages.
fn is_right(left_out: u64, ask: &Ask) -> usize {
    let all = ask.messages.iter().map(|message| message.content.as_str()).collect::<Vec<_>>();
    assert_eq!(all[0], "system");
    assert!(all[1].starts_with("question ") || all[1].starts_with("the message"), "{}", all[1]);
    let own = all.iter().find(|text| text.starts_with("the message")).unwrap();
    let note = format!("The oldest messages of this conversation ({left_out}) are not shown");
    assert_eq!(own.contains(&note), left_out > 0, "{own}");
    all.len()
}

#[test]
fn a_history_that_fits_is_sent_whole() {
    for window in [None, Some(100_000)] {
        let (_, effects) = begin(Setup { history: history(3), window, ..Setup::default() });
        let (left_out, ask) = asked(&effects);
        assert_eq!((left_out, is_right(left_out, ask)), (0, 14));
    }
}

#[test]
fn messages_that_the_history_lacks_are_reported() {
    let (_, effects) = begin(Setup { history: history(1), left_out: 7, ..Setup::default() });
    let (left_out, ask) = asked(&effects);
    assert_eq!((left_out, is_right(left_out, ask)), (7, 6));
}

#[test]
fn a_known_window_bounds_the_request_before_it_is_sent() {
    let setup = Setup { history: history(10), window: Some(3_000), ..Setup::default() };
    let (state, effects) = begin(setup);
    let (left_out, ask) = asked(&effects);
    let bytes: usize = ask.messages.iter().map(|message| message.content.len()).sum();
    assert!(bytes <= 3 * 3_000, "{bytes}");
    assert_eq!((left_out, is_right(left_out, ask)), (32, 10));
    assert_eq!(state.conversation().len(), 42, "nothing is lost");
}

#[test]
fn a_request_that_is_too_long_is_sent_again_without_its_oldest_messages() {
    for (window, sent) in [(Some(4_000), Some(8_000)), (Some(4_000), None), (None, None)] {
        let (state, _) = begin(Setup { history: history(10), ..Setup::default() });
        let input = Input::TooLong { error: "too long".to_owned(), window, sent };
        let (state, effects) = step(state, input.clone());
        let (left_out, ask) = asked(&effects);
        assert!(left_out >= 8, "{left_out}");
        assert_eq!(is_right(left_out, ask) as u64, 42 - left_out);
        let (_, effects) = step(state, input);
        assert!(asked(&effects).0 > left_out, "it is still too long");
    }
}

#[test]
fn the_steps_of_the_run_itself_are_left_out_last() {
    let (mut state, mut effects) = begin(Setup { history: history(1), ..Setup::default() });
    for _ in 0..4 {
        let text = "ToolCall::Catalog(\"now\")".to_owned();
        (state, _) = step(state, Input::Answer(ModelAnswer { text, ..ModelAnswer::default() }));
        let reason = "x".repeat(2_000);
        (state, effects) = step(state, Input::Executed(vec![Execution::Refused { reason }]));
    }
    assert_eq!(asked(&effects).1.dialect, Dialect::Text);
    let mut seen = Vec::new();
    let ending = loop {
        let input = Input::TooLong { error: "too long".to_owned(), window: None, sent: None };
        (state, effects) = step(state, input);
        if let Some(Effect::Finish(ending)) = effects.last() {
            break ending.clone();
        }
        let (left_out, ask) = asked(&effects);
        seen.push((left_out, is_right(left_out, ask)));
    };
    assert_eq!(seen.last(), Some(&(10, 4)), "{seen:?}");
    let Ending::Failed { message } = ending else { panic!("{ending:?}") };
    assert!(message.starts_with("error: too long\nhint: the message and the last"), "{message}");
}

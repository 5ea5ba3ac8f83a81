//! Tests of properties that hold for every run.

use proptest::prelude::*;
use wattle_machine::{
    Call, Completion, Dialect, Dollars, Effect, Execution, Failure, FunctionCall, Input,
    ModelAnswer, OnMaxSteps, Purpose, Settings, Setup, State, SystemPrompt, Usage, step,
};

fn answer() -> impl Strategy<Value = Input> {
    let texts = prop::sample::select(vec![
        "",
        "ToolCall::Catalog(\"now\")",
        "ToolCall::Wat(```wat\n(i32.const 0)\n```)",
        "<reasoning>why</reasoning>\nToolCall::Wat(```wat\n(nop)\n```, \"a\") and more",
        "ToolCall::Response(\"done\")",
        "plain",
        "<think>",
    ]);
    let calls = prop::collection::vec(prop::sample::select(vec!["now", "wat", "done", "{"]), 0..3);
    (texts, calls, any::<bool>()).prop_map(|(text, calls, is_truncated)| {
        let call = |name: &str| FunctionCall {
            id: String::new(),
            name: name.to_owned(),
            arguments: "{\"body\":\"(nop)\"}".into(),
        };
        Input::Answer(ModelAnswer {
            text: text.to_owned(),
            calls: calls.into_iter().map(call).collect(),
            is_truncated,
            usage: Usage { prompt: u64::MAX / 2, completion: 1, cached: 0, cost: None },
            ..ModelAnswer::default()
        })
    })
}

fn execution() -> impl Strategy<Value = Execution> {
    let failure = Failure {
        exit_code: std::num::NonZeroI32::MIN,
        name: None,
        meaning: None,
        function: None,
        line: None,
        call: None,
        reason: None,
    };
    prop_oneof![
        Just(Execution::Ran(Completion { results: vec!["x".into()], ..Completion::default() })),
        Just(Execution::Ran(Completion { failure: Some(failure), ..Completion::default() })),
        Just(Execution::Rejected { diagnostic: "error".into() }),
        Just(Execution::Refused { reason: "no".into() }),
    ]
}

fn input() -> impl Strategy<Value = Input> {
    prop_oneof![
        4 => answer(),
        4 => prop::collection::vec(execution(), 0..3).prop_map(Input::Executed),
        1 => Just(Input::Begin { message: "m".into() }),
        1 => Just(Input::Failed("gone".into())),
        1 => Just(Input::WithoutFunctions("no".into())),
        1 => Just(Input::Spent(Usage { completion: 7, ..Usage::default() })),
        1 => Just(Input::Cancel { reason: String::new() }),
        1 => Just(Input::Expired { limit_ms: 1 }),
        1 => Just(Input::OutOfTokens { limit: 1, owner: None }),
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    (1..4_u32, 0..3_u32, any::<bool>()).prop_map(|(max_steps, max_retries, stop)| Settings {
        max_steps,
        max_retries,
        on_max_steps: if stop { OnMaxSteps::Stop } else { OnMaxSteps::Answer },
        ..Settings::default()
    })
}

fn setup(settings: Settings) -> impl Strategy<Value = Setup> {
    (any::<bool>(), any::<bool>()).prop_map(move |(native, falls_back)| Setup {
        settings,
        dialect: if native { Dialect::Native } else { Dialect::Text },
        fallback: falls_back.then(SystemPrompt::default),
        ..Setup::default()
    })
}

fn finishes(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::Finish(_))).count()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_inputs_keep_the_machine_consistent(
        setup in settings().prop_flat_map(setup),
        inputs in prop::collection::vec(input(), 0..60),
    ) {
        let settings = setup.settings;
        let mut state = State::new(setup);
        let (mut asks, mut ended) = (0, false);
        for input in [Input::Begin { message: "go".into() }].into_iter().chain(inputs) {
            let (next, effects) = step(state, input);
            state = next;
            prop_assert!(!ended || effects.is_empty(), "effects after the end: {effects:?}");
            prop_assert!(finishes(&effects) <= 1);
            ended |= finishes(&effects) == 1;
            prop_assert_eq!(ended, state.has_ended());
            if ended && !effects.is_empty() {
                prop_assert!(matches!(effects.last(), Some(Effect::Finish(_))));
            }
            // Each input leads to at most one request to the driver, and to none if the run ends.
            let waits = effects
                .iter()
                .filter(|effect| matches!(effect, Effect::Ask(_) | Effect::Execute { .. }))
                .count();
            prop_assert!(waits <= 1 && waits + finishes(&effects) <= 1);
            asks += effects.iter().filter(|effect| matches!(effect, Effect::Ask(_))).count();
        }
        // One additional request is allowed if the model turns out not to support functions, and
        // one more to ask for the answer after a call in the turn that requires it.
        let bound = (settings.max_steps + 1) * (settings.max_retries + 1) + 2;
        prop_assert!(asks <= bound as usize, "{asks} requests, at most {bound} are allowed");
    }

    #[test]
    fn a_run_ends_if_its_effects_are_performed(
        setup in settings().prop_flat_map(setup),
        answers in prop::collection::vec(answer(), 20),
        executions in prop::collection::vec(execution(), 20),
    ) {
        let settings = setup.settings;
        let (mut state, mut effects) =
            step(State::new(setup), Input::Begin { message: "go".into() });
        let (mut answers, mut executions) = (answers.into_iter(), executions.into_iter());
        while let Some(Effect::Ask(_) | Effect::Execute { .. }) = effects.last() {
            let input = match effects.last() {
                Some(Effect::Ask(_)) => answers.next().unwrap(),
                _ => Input::Executed(vec![executions.next().unwrap()]),
            };
            (state, effects) = step(state, input);
        }
        prop_assert!(state.has_ended());
        prop_assert!(state.steps() <= settings.max_steps);
    }
}

#[test]
fn a_repaired_program_replaces_the_failed_one() {
    let inputs = [
        Input::Begin { message: "go".into() },
        model("ToolCall::Wat(```wat\n(broken)\n```)"),
        Input::Executed(vec![Execution::Rejected { diagnostic: "error: broken".into() }]),
        model("ToolCall::Wat(```wat\n(repaired)\n```)"),
        Input::Executed(vec![Execution::Ran(Completion::default())]),
    ];
    let mut state = State::new(Setup::default());
    let mut effects = Vec::new();
    for input in inputs {
        (state, effects) = step(state, input);
    }
    let Some(Effect::Ask(ask)) = effects.last() else { panic!("the next step is asked for") };
    assert_eq!((ask.step, ask.purpose), (2, Purpose::Act));
    let seen: String = ask.messages.iter().map(|message| message.content.as_str()).collect();
    assert!(seen.contains("(repaired)") && !seen.contains("broken"), "{seen}");
}

#[test]
fn a_repaired_program_without_arguments_keeps_those_of_the_failed_one() {
    let (state, _) = step(State::new(Setup::default()), Input::Begin { message: "go".into() });
    let (state, _) = step(state, model("ToolCall::Wat(```wat\n(broken)\n```, \"a\")"));
    let (state, _) =
        step(state, Input::Executed(vec![Execution::Rejected { diagnostic: "error".into() }]));
    let (_, effects) = step(state, model("```wat\n(repaired)\n```"));
    let calls = vec![Call::Wat { body: "(repaired)".into(), args: vec!["a".into()] }];
    assert_eq!(effects.last(), Some(&Effect::Execute { step: 1, calls }));
}

#[test]
fn the_budget_of_a_run_above_ends_a_run_and_names_its_agent() {
    let owner = || Some("boss".to_owned());
    let tokens = Input::OutOfTokens { limit: 5, owner: owner() };
    let cost = Input::OutOfMoney { limit: Dollars::from_nanos(1_000_000_000), owner: owner() };
    for (input, limit) in [(tokens, "max_tokens_total (5)"), (cost, "max_cost ($1.00)")] {
        let (state, _) = step(State::new(Setup::default()), Input::Begin { message: "go".into() });
        let (state, effects) = step(state, input);
        let Some(Effect::Finish(ending)) = effects.last() else { panic!("{effects:?}") };
        let text = format!("stopped: reached {limit} of the agent `boss` above it");
        assert_eq!((ending.text(), state.has_ended()), (text.as_str(), true));
    }
    let recorded: Input = serde_json::from_str(r#"{"out_of_tokens":{"limit":5}}"#).unwrap();
    assert_eq!(recorded, Input::OutOfTokens { limit: 5, owner: None });
}

fn model(text: &str) -> Input {
    Input::Answer(ModelAnswer { text: text.to_owned(), ..ModelAnswer::default() })
}

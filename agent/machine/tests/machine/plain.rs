//! Tests of the plain dialect, in which the model calls nothing.

use wattle_machine::{
    Bound, Dialect, Effect, Ending, FunctionCall, Input, ModelAnswer, PromptParts, Settings, Setup,
    State, step, system_prompt,
};

/// Starts a run, passes it an answer and returns the effects.
fn answered(answer: ModelAnswer) -> Vec<Effect> {
    let settings = Settings { max_retries: 0, ..Settings::default() };
    let setup = Setup { settings, dialect: Dialect::Plain, ..Setup::default() };
    let (state, effects) = step(State::new(setup), Input::Begin { message: "title?".into() });
    assert!(matches!(effects.as_slice(), [Effect::Ask(ask)] if ask.dialect == Dialect::Plain));
    let (state, effects) = step(state, Input::Answer(answer));
    assert!(state.has_ended(), "one request ends the run");
    effects
}

#[test]
fn the_whole_text_of_an_answer_is_final_whatever_it_looks_like() {
    for text in [
        "A title",
        "{\"title\": \"A title\"}",
        "```wat\n(out 1)\n```",
        "<reasoning>why</reasoning>\nToolCall::Wat(```wat\n(out 1)\n```)",
        "ToolCall::Catalog(\"file_read\", \"a.txt\")",
        "<tool_call>{\"name\": \"file_read\", \"arguments\": {\"path\": \"a.txt\"}}</tool_call>",
        "(out 1)",
    ] {
        let answer = ModelAnswer { text: format!("{text}\n"), ..ModelAnswer::default() };
        let ending = Ending::Answered { text: text.to_owned(), data: None };
        assert_eq!(answered(answer).last(), Some(&Effect::Finish(ending)), "{text}");
    }
}

#[test]
fn a_function_call_is_not_performed() {
    let call = FunctionCall {
        id: "1".to_owned(),
        name: "file_read".to_owned(),
        arguments: "{\"path\":\"a.txt\"}".into(),
    };
    let effects = answered(ModelAnswer { calls: vec![call], ..ModelAnswer::default() });
    assert!(matches!(effects.last(), Some(Effect::Finish(Ending::Failed { .. }))), "{effects:?}");
}

#[test]
fn an_empty_answer_fails_unless_the_model_used_up_its_length() {
    let message = "error: the model returned an empty answer".to_owned();
    let failed = answered(ModelAnswer::default());
    assert_eq!(failed.last(), Some(&Effect::Finish(Ending::Failed { message })));
    let reasoning = Some("a title is".to_owned());
    let answer = ModelAnswer { reasoning, is_truncated: true, ..ModelAnswer::default() };
    let ending = Ending::Exhausted { text: String::new(), bound: Bound::Length, data: None };
    assert_eq!(answered(answer).last(), Some(&Effect::Finish(ending)));
}

#[test]
fn the_prompt_describes_no_programs() {
    let parts = PromptParts {
        dialect: Dialect::Plain,
        preamble: Some("Be kind.".to_owned()),
        volatile: vec!["Today is 2026-03-01.".to_owned()],
        ..PromptParts::default()
    };
    let prompt = system_prompt(&parts).to_string();
    assert!(prompt.starts_with("Be kind.\n\nAnswer the user's message"), "{prompt}");
    assert!(prompt.ends_with("\nToday is 2026-03-01.\n"), "{prompt}");
    for absent in ["ToolCall", "WebAssembly", "# Programs", "At most"] {
        assert!(!prompt.contains(absent), "{absent:?} is in the prompt: {prompt}");
    }
}

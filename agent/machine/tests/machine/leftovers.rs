//! Tests of leftovers in final answers: special tokens, channels and calls that no reader
//! understood.

use std::fmt::Write as _;

use wattle_machine::{
    Ask, Dialect, Effect, Ending, Input, ModelAnswer, Offer, Param, ParamKind, ProgramFunction,
    Setup, State, step,
};

const DIALECTS: [Dialect; 2] = [Dialect::Text, Dialect::Native];

fn begun(dialect: Dialect) -> State {
    let param = |name: &str| Param {
        name: name.to_owned(),
        kind: ParamKind::Text,
        format: None,
        description: String::new(),
        default: None,
    };
    let program = |(name, params): (&str, &[&str])| ProgramFunction {
        program: name.to_owned(),
        description: String::new(),
        params: params.iter().map(|name| param(name)).collect(),
        result: None,
        offer: Offer::Listed,
        exclusive: false,
        silent: false,
        whole: false,
        schema: None,
    };
    let programs: [(&str, &[&str]); 4] =
        [("file_read", &["path"]), ("kv_get", &["key"]), ("text_sort", &[]), ("search", &[])];
    let programs = programs.map(program).to_vec();
    let setup = Setup { dialect, programs: programs.into(), ..Setup::default() };
    step(State::new(setup), Input::Begin { message: "go".into() }).0
}

fn answer(state: State, text: &str) -> (State, Vec<Effect>) {
    step(state, Input::Answer(ModelAnswer { text: text.into(), ..ModelAnswer::default() }))
}

fn asked(effects: &[Effect]) -> Option<&Ask> {
    effects.iter().find_map(|effect| match effect {
        Effect::Ask(ask) => Some(ask),
        _ => None,
    })
}

fn ending(effects: &[Effect]) -> Option<&Ending> {
    effects.iter().find_map(|effect| match effect {
        Effect::Finish(ending) => Some(ending),
        _ => None,
    })
}

fn fate(dialect: Dialect, text: &str) -> String {
    let (state, effects) = answer(begun(dialect), text);
    match ending(&effects) {
        Some(Ending::Answered { .. }) => return "accepted".to_owned(),
        Some(other) => return format!("{other:?}"),
        None => {}
    }
    if effects.iter().any(|effect| matches!(effect, Effect::Execute { .. })) {
        return "a call".to_owned();
    }
    let Some(ask) = asked(&effects) else { return format!("{effects:?}") };
    assert_eq!((ask.step, ask.attempt), (1, 1));
    assert!(ask.messages.last().unwrap().content.contains("Your last answer was not used"));
    match ending(&answer(state, text).1) {
        Some(Ending::Answered { .. }) => "asked again".to_owned(),
        Some(Ending::Failed { .. }) => "asked again, then failed".to_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn an_answer_with_leftovers_is_asked_for_again_once() {
    let path = "tests/leftovers.txt";
    let text = wattle_cases::read(path);
    let mut parts = text.split("\n=> ");
    let mut found = String::new();
    let mut case = parts.next().unwrap().split_once("\n\n").unwrap();
    write!(found, "{}\n\n", case.0).unwrap();
    let mut count = 0;
    for part in parts {
        let answer = case.1.trim_start_matches('\n');
        let fates = DIALECTS.map(|dialect| fate(dialect, answer));
        assert_eq!(fates[0], fates[1], "the dialects differ: {answer}");
        write!(found, "{answer}\n=> {}\n\n", fates[0]).unwrap();
        case = part.split_once('\n').unwrap_or((part, ""));
        count += 1;
    }
    assert!(count >= 40, "only {count} cases were found");
    wattle_cases::compare(path, &format!("{}\n", found.trim_end()));
}

#[test]
fn a_better_answer_after_leftovers_is_accepted() {
    for dialect in DIALECTS {
        let (state, _) = answer(begun(dialect), "commentaryThe user asks for a sum.");
        let (_, effects) = answer(state, "four");
        let four = Ending::Answered { text: "four".into(), data: None };
        assert_eq!(ending(&effects), Some(&four));
        let (state, _) = answer(begun(dialect), "The token <|im_end|> ends a turn.");
        let (_, effects) = answer(state, "Each turn ends with the token <|im_end|>.");
        assert!(matches!(ending(&effects), Some(Ending::Answered { .. })));
    }
}

#[test]
fn a_recorded_run_that_accepted_leftovers_replays() {
    for dialect in DIALECTS {
        let mut recorded = serde_json::to_value(Setup { dialect, ..Setup::default() }).unwrap();
        recorded.as_object_mut().unwrap().remove("accepts_leftovers").unwrap();
        let state = State::new(serde_json::from_value(recorded).unwrap());
        let (state, _) = step(state, Input::Begin { message: "go".into() });
        let (_, effects) = answer(state, "<|channel|>final<|message|>four");
        assert!(matches!(ending(&effects), Some(Ending::Answered { .. })));
    }
}

#[test]
fn a_plain_run_accepts_every_answer() {
    let (_, effects) = answer(begun(Dialect::Plain), "<|channel|>final<|message|>four");
    assert!(matches!(ending(&effects), Some(Ending::Answered { .. })));
}

#[test]
fn leftovers_are_found_in_linear_time() {
    let repeated = [
        "<|a|> ",
        "<",
        "<|",
        "(<|a|>",
        "file_read(x) ",
        "file_read(",
        "`",
        "`` ` ",
        "\"",
        "```\n",
        "<｜",
        "assistant",
        "to=",
        "[TOOL",
        "> <|a|>\n",
        "file_read(   ",
        "~~~ `\n",
        "a.file_read(",
    ];
    for part in repeated {
        let text = part.repeat((1 << 18) / part.len());
        let started = std::time::Instant::now();
        drop(answer(begun(Dialect::Native), &text));
        let elapsed = started.elapsed();
        assert!(elapsed.as_secs() < 20, "{part:?} took {elapsed:?}");
    }
}

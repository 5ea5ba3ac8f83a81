//! Reads arbitrary text as a catalog program, formats it, and lists it in a prompt. Checks that
//! nothing panics or takes too long, and that each program takes up one line of the prompt,
//! whatever its author wrote.

#![no_main]

use std::time::Instant;

use libfuzzer_sys::fuzz_target;
use wattle_catalog::{Entry, Origin, format};
use wattle_machine::{ArgLine, ProgramLine, ProgramList, PromptParts, system_prompt};

/// Maximum time for one input, in seconds. Only an endless loop exceeds this limit.
const SECONDS: u64 = 5;

fuzz_target!(|text: &str| {
    let started = Instant::now();
    let parsed = Entry::parse(text, Origin::BuiltIn("fuzz"));
    let laid_out = format(text, Origin::BuiltIn("fuzz"));
    assert!(
        started.elapsed().as_secs() < SECONDS,
        "a text of {} bytes took {:?}",
        text.len(),
        started.elapsed()
    );
    if let Ok(laid_out) = laid_out {
        assert!(laid_out.len() <= 16 * text.len() + 1024, "the layout is too large for its text");
    }
    let Ok(entry) = parsed else { return };
    let arg = |arg: &wattle_catalog::Arg| ArgLine {
        name: arg.name.clone(),
        type_hint: arg.type_hint.to_string(),
        optional: arg.default.is_some(),
    };
    let meta = entry.meta();
    let line = ProgramLine {
        name: entry.name().to_string(),
        args: meta.args.iter().map(arg).collect(),
        result: meta.result.clone(),
        description: meta.description.clone(),
    };
    let bare =
        ProgramLine { args: Vec::new(), result: None, description: String::new(), ..line.clone() };
    let lines = |program| {
        let programs = ProgramList { own: vec![program], ..ProgramList::default() };
        let prompt = system_prompt(&PromptParts { programs, ..PromptParts::default() });
        prompt.to_string().split('\n').count()
    };
    assert_eq!(lines(line), lines(bare), "a program takes more than one line of the prompt");
});

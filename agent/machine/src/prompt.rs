//! The system prompt, and requests that are only part of one turn.
//!
//! The same parts always produce the same bytes, so providers can cache the prompt across the turns
//! of a session.

use std::fmt::Write as _;

use crate::{
    dialect::Dialect,
    mark::{Nonce, one_line},
    observation::Excerpt,
    parts::{ArgLine, CapabilityPart, Limits, ProgramLine, PromptParts, WithheldCapability},
};

const ANSWERING: &str = include_str!("../prompt/answering.md");
const PROGRAMS: &str = include_str!("../prompt/programs.md");
const EXAMPLE: &str = include_str!("../prompt/example.md");
const NATIVE: &str = include_str!("../prompt/native.md");
const NATIVE_EXAMPLE: &str = include_str!("../prompt/native_example.md");

/// The program of the prompt's worked example. Its arguments are a text and a word, and it prints
/// how many lines of the text contain the word.
pub const EXAMPLE_PROGRAM: &str = include_str!("../prompt/example.wat");

/// Writes the system prompt.
///
/// ```
/// use wattle_machine::{PromptParts, system_prompt};
///
/// let prompt = system_prompt(&PromptParts { volatile: vec!["Today is 2026-03-01.".into()], ..PromptParts::default() });
/// assert!(prompt.ends_with("Today is 2026-03-01.\n"));
/// ```
pub fn system_prompt(parts: &PromptParts) -> String {
    let mut prompt = String::new();
    if let Some(preamble) =
        parts.preamble.as_deref().map(str::trim).filter(|preamble| !preamble.is_empty())
    {
        _ = writeln!(prompt, "{preamble}\n");
    }
    let (answering, listed, example) = match parts.dialect {
        Dialect::Text => (ANSWERING, programs(&parts.programs, parts.more_programs), EXAMPLE),
        // The schemas describe the functions.
        Dialect::Native => (NATIVE, more_functions(parts.more_programs), NATIVE_EXAMPLE),
    };
    prompt.push_str(answering);
    for section in [
        listed,
        format!("{PROGRAMS}{}", limits(&parts.limits)),
        functions(&parts.capabilities),
        codes(parts),
        withheld(&parts.withheld),
        example.replace("{program}", EXAMPLE_PROGRAM.trim_end()),
        volatile(parts),
    ] {
        if !section.is_empty() {
            _ = write!(prompt, "\n{section}");
        }
    }
    prompt
}

fn volatile(parts: &PromptParts) -> String {
    let steps = format!("At most {} calls before the final answer.\n", parts.limits.max_steps);
    parts.volatile.iter().fold(steps, |lines, line| lines + line.trim() + "\n")
}

fn limits(limits: &Limits) -> String {
    format!(
        "- Bounds: {} MiB of memory, {} s a program; output over {} characters is cut in the \
         middle.\n",
        limits.memory_mib, limits.program_secs, limits.observation_limit
    )
}

/// Lists the functions of each capability. Functions that are only named share one line at the end.
fn functions(capabilities: &[CapabilityPart]) -> String {
    let mut section = String::new();
    let mut named: Vec<&str> = Vec::new();
    for capability in capabilities {
        if capability.functions.is_empty() && !capability.rare.is_empty() {
            named.extend(capability.rare.iter().map(String::as_str));
            continue;
        }
        match capability.about.trim() {
            "" => _ = writeln!(section, "## {}", capability.name),
            about => _ = writeln!(section, "## {} — {about}", capability.name),
        }
        for function in &capability.functions {
            _ = match function.about.trim() {
                "" => writeln!(section, "{}", function.usage.trim()),
                about => writeln!(section, "{} {about}", function.usage.trim()),
            };
        }
        if !capability.rare.is_empty() {
            _ = writeln!(section, "more, by help: {}", capability.rare.join(" "));
        }
    }
    if !named.is_empty() {
        _ = writeln!(section, "## Others, by help\n{}", named.join(" "));
    }
    match section.as_str() {
        "" => section,
        section => {
            format!("# Host functions\nThey return a string unless → says otherwise.\n{section}")
        }
    }
}

/// Lists the catalog programs by name, and explains how to find those that are not listed.
fn programs(programs: &[ProgramLine], more: usize) -> String {
    let mut sorted: Vec<&ProgramLine> = programs.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    let lines: String = sorted.iter().map(|program| program_line(program)).collect();
    let rest = match more {
        0 => String::new(),
        more if sorted.iter().any(|program| program.name == "help") => {
            format!("… and {more} more: ToolCall::Catalog(\"help\", \"word\") finds them\n")
        }
        more => format!("… and {more} more: calling an unknown name lists the nearest ones\n"),
    };
    if lines.is_empty() {
        lines
    } else {
        format!("# Catalog programs (? may be left out)\n{lines}{rest}")
    }
}

/// Explains how to find the catalog programs that have no function.
fn more_functions(more: usize) -> String {
    match more {
        0 => String::new(),
        more => {
            format!(
                "There are {more} more programs: `help` finds them by words, `catalog` calls one \
                 by its name.\n"
            )
        }
    }
}

/// Maximum length of a program's description in a list, in characters.
pub(crate) const MAX_DESCRIPTION: usize = 200;

/// Maximum length of a name in a list, in characters.
const MAX_NAME: usize = 64;

/// Describes a program on one line. The author's text is cleaned, so that it cannot add lines to
/// the list.
fn program_line(program: &ProgramLine) -> String {
    let argument = |arg: &ArgLine| {
        let (name, mark) = (one_line(&arg.name, MAX_NAME), if arg.optional { "?" } else { "" });
        match arg.type_hint.as_str() {
            "" | "string" => format!("{name}{mark}"),
            hint => format!("{name}{mark}: {}", one_line(hint, MAX_NAME)),
        }
    };
    let args: Vec<String> = program.args.iter().map(argument).collect();
    let about = match one_line(&program.description, MAX_DESCRIPTION) {
        description if description.is_empty() => description,
        description => format!(" — {description}"),
    };
    format!("{}({}){about}\n", one_line(&program.name, MAX_NAME), args.join(", "))
}

fn codes(parts: &PromptParts) -> String {
    let codes: Vec<String> =
        parts.codes.iter().map(|code| format!("{} {}", code.name, code.meaning)).collect();
    if codes.is_empty() { String::new() } else { format!("# Error codes\n{}\n", codes.join("; ")) }
}

fn withheld(withheld: &[WithheldCapability]) -> String {
    let line = |WithheldCapability { capability, why }: &WithheldCapability| match why.trim() {
        "" => capability.clone(),
        why => format!("{capability} ({why})"),
    };
    let lines: Vec<String> = withheld.iter().map(line).collect();
    if lines.is_empty() {
        String::new()
    } else {
        format!("# Not granted: do not try\n{}\n", lines.join("; "))
    }
}

/// Maximum length of a failed program and of its diagnostic in a request, in characters.
const REPAIR_LIMIT: usize = 12_000;

/// Returns the request to correct a program that does not compile.
pub(crate) fn repair(nonce: &Nonce, dialect: Dialect, body: &str, diagnostic: &str) -> String {
    let width = body.lines().count().to_string().len();
    let numbered =
        body.lines().zip(1..).fold(String::new(), |mut text, (line, number): (&str, usize)| {
            _ = writeln!(text, "{number:>width$} | {line}");
            text
        });
    let (numbered, diagnostic) =
        (Excerpt::of(&numbered, REPAIR_LIMIT), Excerpt::of(diagnostic.trim(), REPAIR_LIMIT));
    let is_escaped = numbered.has_marks(nonce) || diagnostic.has_marks(nonce);
    format!(
        "{} With line numbers it is:\n\n{}\n{}\n\n{}",
        nonce.note("Your program does not compile, so nothing was run."),
        numbered.escaped(nonce),
        diagnostic.escaped(nonce),
        nonce.note(&format!(
            "Answer with {}: the whole corrected program, without line numbers{}, and its \
             arguments.",
            dialect.wat(),
            if is_escaped {
                " and without those backslashes after `[` that you did not write"
            } else {
                ""
            }
        ))
    )
}

/// Returns the request for the final answer, for a run that has used up its steps.
pub(crate) fn conclude(dialect: Dialect, max_steps: u32) -> String {
    format!(
        "The limit of {max_steps} steps is reached and nothing more can be run. Answer now with \
         {}: say what you found out, and what is missing.",
        dialect.done()
    )
}

/// Returns the warning about a call that is repeated without effect.
pub(crate) fn repeated(times: u32, limit: u32) -> String {
    format!(
        "you made this call {times} times in a row and got the same result: do something else, or \
         answer with what you have; the run ends at the {limit}th time"
    )
}

/// The request after a truncated answer.
pub(crate) const TRUNCATED_ANSWER: &str = "Your last answer was cut off before its end and was \
                                           not used. Answer again, much shorter: think less, \
                                           write a shorter program, or do it in several steps.";

/// The note on escaped marks in an observation.
pub(crate) const ESCAPED: &str = "some of the data looks like the host's lines and is shown with \
                                  a backslash after its `[`; the data itself is unchanged";

/// The note on escaped marks before the run's first step: in the user's message and in earlier
/// turns.
pub(crate) const ESCAPED_BEFORE: &str =
    " Marks with a backslash above are of earlier runs, or data.";

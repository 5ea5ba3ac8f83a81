//! What the model is told: the system prompt, and the requests that stand only in one turn.
//!
//! The prompt is a function of its parts, byte for byte, so that providers can cache it across the turns of a session.

use std::fmt::Write as _;

use crate::{
    dialect::Dialect,
    mark::{Nonce, one_line},
    observation::Excerpt,
    parts::{ArgLine, CapabilityPart, Limits, ProgramLine, PromptParts, Withheld},
};

const ANSWERING: &str = include_str!("../prompt/answering.md");
const PROGRAMS: &str = include_str!("../prompt/programs.md");
const EXAMPLE: &str = include_str!("../prompt/example.md");
const NATIVE: &str = include_str!("../prompt/native.md");
const NATIVE_EXAMPLE: &str = include_str!("../prompt/native_example.md");

/// The program of the prompt's worked example. With a text of lines and a word as arguments it puts out how many lines
/// contain the word.
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
    if let Some(preamble) = parts.preamble.as_deref().map(str::trim).filter(|preamble| !preamble.is_empty()) {
        _ = writeln!(prompt, "{preamble}\n");
    }
    let (answering, listed, example) = match parts.dialect {
        Dialect::Text => (ANSWERING, programs(&parts.programs, parts.more_programs), EXAMPLE),
        // Functions are told by their schemas.
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
        "- Bounds: {} MiB of memory, {} s a program; output over {} characters is cut in the middle.\n",
        limits.memory_mib, limits.program_secs, limits.observation_limit
    )
}

/// The functions of each capability; those of which only names stand here share one line at the end.
fn functions(capabilities: &[CapabilityPart]) -> String {
    let mut section = String::new();
    let mut named: Vec<&str> = Vec::new();
    for capability in capabilities {
        if capability.functions.is_empty() && !capability.seldom.is_empty() {
            named.extend(capability.seldom.iter().map(String::as_str));
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
        if !capability.seldom.is_empty() {
            _ = writeln!(section, "more, by help: {}", capability.seldom.join(" "));
        }
    }
    if !named.is_empty() {
        _ = writeln!(section, "## Others, by help\n{}", named.join(" "));
    }
    match section.as_str() {
        "" => section,
        section => format!("# Host functions\nThey give a string where no → says otherwise.\n{section}"),
    }
}

/// Lists the catalog programs by name, and says how to find those that are not named.
fn programs(programs: &[ProgramLine], more: usize) -> String {
    let mut sorted: Vec<&ProgramLine> = programs.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    let lines: String = sorted.iter().map(|program| program_line(program)).collect();
    let rest = match more {
        0 => String::new(),
        more if sorted.iter().any(|program| program.name == "help") => {
            format!("… and {more} more: ToolCall::Catalog(\"help\", \"word\") finds them\n")
        }
        more => format!("… and {more} more: an unknown name is answered with the nearest ones\n"),
    };
    if lines.is_empty() { lines } else { format!("# Catalog programs (? may be left out)\n{lines}{rest}") }
}

/// Says how to find the catalog programs that have no function.
fn more_functions(more: usize) -> String {
    match more {
        0 => String::new(),
        more => {
            format!("There are {more} more programs: `help` finds them by words, `catalog` calls one by its name.\n")
        }
    }
}

/// Maximum length of a program's description where programs are listed, in characters.
pub(crate) const DESCRIPTION: usize = 200;

/// Maximum length of a name in a list, in characters.
const NAME: usize = 64;

/// Describes a program on one line. What its author wrote is cleaned: a line of the list is one program.
fn program_line(program: &ProgramLine) -> String {
    let argument = |arg: &ArgLine| {
        let (name, mark) = (one_line(&arg.name, NAME), if arg.optional { "?" } else { "" });
        match arg.type_hint.as_str() {
            "" | "string" => format!("{name}{mark}"),
            hint => format!("{name}{mark}: {}", one_line(hint, NAME)),
        }
    };
    let args: Vec<String> = program.args.iter().map(argument).collect();
    let about = match one_line(&program.description, DESCRIPTION) {
        description if description.is_empty() => description,
        description => format!(" — {description}"),
    };
    format!("{}({}){about}\n", one_line(&program.name, NAME), args.join(", "))
}

fn codes(parts: &PromptParts) -> String {
    let codes: Vec<String> = parts.codes.iter().map(|code| format!("{} {}", code.name, code.meaning)).collect();
    if codes.is_empty() { String::new() } else { format!("# Error codes\n{}\n", codes.join("; ")) }
}

fn withheld(withheld: &[Withheld]) -> String {
    let line = |Withheld { capability, why }: &Withheld| match why.trim() {
        "" => capability.clone(),
        why => format!("{capability} ({why})"),
    };
    let lines: Vec<String> = withheld.iter().map(line).collect();
    if lines.is_empty() { String::new() } else { format!("# Not granted: do not try\n{}\n", lines.join("; ")) }
}

/// How many characters of a broken program and of its diagnostic the model reads again.
const REPAIR_LIMIT: usize = 12_000;

/// Asks for a corrected program in place of one that does not compile.
pub(crate) fn repair(nonce: &Nonce, dialect: Dialect, body: &str, diagnostic: &str) -> String {
    let width = body.lines().count().to_string().len();
    let numbered = body.lines().zip(1..).fold(String::new(), |mut text, (line, number): (&str, usize)| {
        _ = writeln!(text, "{number:>width$} | {line}");
        text
    });
    let (numbered, diagnostic) = (Excerpt::of(&numbered, REPAIR_LIMIT), Excerpt::of(diagnostic.trim(), REPAIR_LIMIT));
    let hides = numbered.imitates_marks(nonce) || diagnostic.imitates_marks(nonce);
    format!(
        "{} With line numbers it is:\n\n{}\n{}\n\n{}",
        nonce.note("Your program does not compile, so nothing was run."),
        numbered.shown(nonce),
        diagnostic.shown(nonce),
        nonce.note(&format!(
            "Answer with {}: the whole corrected program, without line numbers{}, and its arguments.",
            dialect.wat(),
            if hides { " and without those backslashes behind `[` that you did not write" } else { "" }
        ))
    )
}

/// Asks for the final answer when the steps are used up.
pub(crate) fn conclude(dialect: Dialect, max_steps: u32) -> String {
    format!(
        "The bound of steps ({max_steps}) is reached and nothing more can be run. Answer now with {}: give what you found out, and say \
         what is missing.",
        dialect.done()
    )
}

/// Tells the model that it goes round in a circle.
pub(crate) fn repeated(times: u32, most: u32) -> String {
    format!(
        "you made this call {times} times in a row, and it gave the same each time: do something else, or answer with what you have; \
         the run ends at the {most}th time"
    )
}

/// Asks again after an answer that was cut off.
pub(crate) const CUT_ANSWER: &str = "Your last answer was cut off before its end, and nothing of it was used. Answer again, much \
                                     shorter: think less, write a shorter program, or do it in several steps.";

/// Says how data is shown that looks like the host's lines.
pub(crate) const ESCAPED: &str = "some of the data looks like the host's lines, and is shown with a backslash behind its `[`; the data \
                                  itself is unchanged";

/// Says the same of what is before the run's first step: the user's message, and earlier turns with their marks.
pub(crate) const OPENS_ESCAPED: &str = " Marks with a backslash above are of earlier runs, or data.";

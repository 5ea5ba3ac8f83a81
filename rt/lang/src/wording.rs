//! Every sentence that is said about a program's text, with the stable code of its class.

use std::ops::Range;
use std::time::Duration;

use super::diagnostic::{Diagnostic, Severity, clamp};
use super::fix::{self, Certainty, Change, Mend};
use super::nearest;
use super::ops::Val;
use super::program::Program;
use super::sorts::Sort;
use super::walk::list_types;
use crate::cost::Measure;
use crate::{Code, Signature, Signatures, Unfinished, truncate};

/// The code of a text that costs too much to compile.
pub(super) const TOO_LARGE: &str = "too-large";

/// A finding before it is shown: a place and what to say of it.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) span: Range<usize>,
    pub(super) words: Words,
}

/// What to say.
#[derive(Debug)]
pub(super) struct Words {
    code: &'static str,
    message: String,
    hint: Option<String>,
    mend: Option<Mend>,
}

impl Fault {
    pub(super) fn new(span: Range<usize>, words: Words) -> Box<Fault> {
        Box::new(Fault { span, words })
    }

    /// The finding as it is shown.
    pub(super) fn told(self, source: &str, severity: Severity) -> Diagnostic {
        let fix = self.words.mend.and_then(|mend| mend.fix(source, &self.span));
        let span = clamp(self.span.start)..clamp(self.span.end);
        Diagnostic::new(source, severity, self.words.code, span, self.words.message, self.words.hint).with_fix(fix)
    }
}

pub(super) fn words(code: &'static str, message: impl Into<String>) -> Words {
    Words { code, message: message.into(), hint: None, mend: None }
}

impl Words {
    pub(super) fn hint(self, hint: impl Into<String>) -> Words {
        Words { hint: Some(hint.into()), ..self }
    }

    /// Whether they say that a form is not closed.
    pub(super) fn is_unclosed(&self) -> bool {
        self.code == "unclosed-form"
    }

    /// Whether they know nothing that puts it right.
    pub(super) fn lacks_fix(&self) -> bool {
        self.mend.is_none()
    }

    /// Adds what puts it right, for certain.
    pub(super) fn safe(self, change: Change) -> Words {
        Words { mend: Some(Mend { change, certainty: Certainty::Safe }), ..self }
    }

    /// Adds what probably puts it right.
    pub(super) fn likely(self, change: Change) -> Words {
        Words { mend: Some(Mend { change, certainty: Certainty::Likely }), ..self }
    }

    /// Adds what the fault's span should hold, for certain.
    pub(super) fn instead(self, text: impl Into<String>) -> Words {
        self.safe(Change::Instead(text.into()))
    }

    /// Adds what puts it right, for certain, where that is known.
    pub(super) fn perhaps(self, change: Option<Change>) -> Words {
        change.into_iter().fold(self, Words::safe)
    }

    /// Adds what a piece of the text can only mean, as its hint too.
    pub(super) fn meaning(self, source: &str, piece: Range<usize>, change: Change) -> Words {
        let mend = Mend { change: change.clone(), certainty: Certainty::Safe };
        let inside = |at: usize| (piece.start..=piece.end).contains(&at);
        let shown = mend.fix(source, &piece).and_then(|fix| {
            let within =
                fix.edits.iter().all(|edit| inside(edit.span.start as usize) && inside(edit.span.end as usize));
            let (fixed, rest) = (fix.apply(source), source.len() - piece.end);
            within.then(|| fix::short(fixed.get(piece.start..fixed.len() - rest).unwrap_or("")))
        });
        let said = shown.into_iter().fold(self, |said, shown| said.hint(format!("write `{shown}`")));
        said.safe(change)
    }

    /// Adds what to write.
    pub(super) fn advice(self, hint: &str) -> Words {
        self.hint(hint)
    }

    /// Says which function takes the value.
    pub(super) fn of_other(self, function: &str) -> Words {
        self.hint(format!("write `({function} …)`"))
    }

    /// Says which hole of `fmt` takes the value.
    pub(super) fn of_hole(self, hole: &str) -> Words {
        self.hint(format!("its hole is `{hole}`"))
    }

    /// Adds the conversion of what the fault's span holds. One that keeps the number is certain.
    pub(super) fn converted(self, want: Val, found: Val, by: &str) -> Words {
        let change = Change::Around(format!("({by} "), ")".to_owned());
        match (found, want) {
            (Val::I32, Val::I64 | Val::F64) | (Val::F32, Val::F64) => self.safe(change),
            _ => self.likely(change),
        }
    }

    fn maybe(self, hint: Option<String>) -> Words {
        Words { hint, ..self }
    }
}

// ---- characters and tokens

pub(super) fn too_long(bytes: usize) -> Words {
    words("too-long", format!("the text has {bytes} bytes, more than the {} allowed", super::tree::MAX_SOURCE))
        .hint("read large data with a host function rather than writing it into the program")
}

pub(super) fn module_too_long(limit: usize) -> Words {
    words("too-long", format!("what the forms of this text expand to has more than the {limit} bytes allowed"))
        .hint("move what is repeated into a function or a loop")
}

/// There is more of something than is compiled.
pub(super) fn too_large(measure: Measure, found: u64) -> Words {
    let (what, hint) = match measure {
        Measure::Instructions => {
            ("the program has {} instructions", "move what is repeated into a function or a loop, and data into files")
        }
        Measure::Functions => ("the program has {} functions", "split it into several programs"),
        Measure::Types => ("the program has {} function types", "use the same types for functions and blocks"),
        Measure::Locals => {
            ("the program's functions declare {} locals", "keep lists in an array (`$arr.new`) or in memory")
        }
        Measure::Globals => ("the program has {} globals", "keep lists in an array (`$arr.new`) or in memory"),
        Measure::Elements => ("the program's element segments have {} entries", "call functions by name"),
        Measure::TableUses => ("the program has {} instructions that use a table", "call functions by name"),
        Measure::Labels => ("the labels of `br_table` are {} in number", "look values up in a string or an array"),
        Measure::Carried => (
            "functions, calls, blocks and branches carry {} values",
            "pass one array or one address rather than many values",
        ),
        Measure::Joined => (
            "{} values may differ where branches and loops meet",
            "set fewer locals in one block or loop, and move parts of it into functions of their own",
        ),
        Measure::Crossed => (
            "locals are carried through {} branches and loops",
            "use fewer locals in one function, and move parts of it into functions of their own",
        ),
    };
    let (what, limit) = (what.replace("{}", &found.to_string()), measure.limit());
    words(TOO_LARGE, format!("{what}, more than the {limit} that are compiled")).hint(hint)
}

pub(super) fn unfinished(reason: &Unfinished, time: Duration) -> Words {
    match reason {
        Unfinished::Busy => words("host-busy", "the host has as many programs to compile as it takes at a time")
            .hint("nothing is wrong with the text: try again in some seconds"),
        Unfinished::Overdue => {
            words("compile-time", format!("compiling took longer than {} s and was given up", time.as_secs_f64()))
                .hint("split the program into several, or a long function into shorter ones")
        }
        Unfinished::Bug(message) => words("compiler-bug", format!("the compiler broke down: {message}"))
            .hint("this is a bug in wattle, and no fault of the program; another way to write it may work"),
    }
}

pub(super) fn too_deep(limit: usize) -> Words {
    words("too-deep", format!("parentheses nest more than {limit} deep"))
        .hint("keep intermediate values in locals, and long sequences beside one another")
}

pub(super) fn too_deep_blocks(limit: usize) -> Words {
    words("too-deep", format!("blocks nest more than {limit} deep"))
        .hint("close each `block`, `loop` and `if` with `end`")
}

pub(super) fn bad_character(c: char) -> Words {
    let shown = if c.is_control() || c.is_whitespace() { c.escape_default().to_string() } else { c.to_string() };
    let found = words("bad-character", format!("unexpected character `{shown}`"));
    match c {
        '“' | '”' | '„' | '‟' | '«' | '»' | '‘' | '’' => {
            found.hint("a text is written between plain quotes: \"…\"")
        }
        ',' => found.hint("operands are separated by blanks alone"),
        '[' | ']' | '{' | '}' => found.hint("forms are written with round parentheses"),
        _ => found.hint("only texts and comments may hold it"),
    }
}

pub(super) fn one_semicolon() -> Words {
    words("bad-character", "unexpected character `;`")
        .hint("a comment begins with `;;`, or stands between `(;` and `;)`")
}

pub(super) fn other_comment(mark: &str) -> Words {
    words("unknown-instruction", format!("`{mark}` is not an instruction")).hint("a comment begins with `;;`")
}

pub(super) fn other_quotes(found: &str) -> Words {
    words("unknown-instruction", format!("`{}` is not an instruction", short(found)))
        .hint("a text is written between plain quotes: \"…\"")
}

pub(super) fn quoted_name() -> Words {
    words("bad-character", "a name cannot be written in quotes").hint("write `$name` without quotes")
}

pub(super) fn annotation() -> Words {
    words("bad-character", "unexpected character `@`").hint("names begin with `$`; annotations have no meaning here")
}

pub(super) fn unclosed_comment() -> Words {
    words("unclosed-comment", "the comment that begins here is never closed").hint("close it with `;)`")
}

pub(super) fn unclosed_text(block: bool, culprit: Option<u32>) -> Words {
    let quotes = if block { "\"\"\"" } else { "\"" };
    let found = words("unclosed-string", "the string that begins here is never closed");
    match culprit {
        Some(line) => found.hint(format!(
            "the string that begins in line {line} runs over several lines, so it may be the one that lacks its closing `\"`"
        )),
        None => found.hint(format!("close it with `{quotes}`")),
    }
}

/// `rest` is what follows `found` in the string.
pub(super) fn bad_escape(found: &str, rest: &str) -> Words {
    let doubled = Change::Instead(format!("\\{found}"));
    let hex = rest.get(..2).filter(|digits| u8::from_str_radix(digits, 16).is_ok_and(|byte| byte.is_ascii()));
    let change = |said: Words| match (found, hex) {
        ("\\" | "\\u", _) => said,
        ("\\x", Some(_)) => said.instead("\\"),
        ("\\x", None) => said,
        ("\\/" | "\\`", _) => said.instead(found.trim_start_matches('\\')),
        ("\\0", _) => said.instead("\\00"),
        ("\\a" | "\\b" | "\\e" | "\\f" | "\\v" | "\\$", _) => said.likely(doubled),
        _ => said.safe(doubled),
    };
    change(bad_escape_words(found))
}

fn bad_escape_words(found: &str) -> Words {
    let hint = match found {
        "\\" => "write a backslash as `\\\\`".to_owned(),
        "\\u" => "write `\\u{e9}` or `\\u00e9`, and a backslash as `\\\\`".to_owned(),
        _ => format!(
            "escapes are `\\n`, `\\t`, `\\r`, `\\\"`, `\\'`, `\\\\`, `\\u{{…}}` and `\\hh` (two hexadecimal digits); for a \
             backslash write `\\{}`",
            found
        ),
    };
    words("bad-escape", format!("`{}` is not an escape", found.escape_debug().to_string().replace("\\\\", "\\")))
        .hint(hint)
}

pub(super) fn not_utf8() -> Words {
    words("not-utf8", "the escapes of this string make bytes that are not UTF-8 text")
        .hint("write a backslash as `\\\\`: `\\bf` and the like are bytes in hexadecimal")
}

/// `extra` says that it is one too many, and not the form before it closed too early.
pub(super) fn stray_close(extra: bool) -> Words {
    words("stray-paren", "`)` closes nothing")
        .hint("remove it, or look for a form before it that was closed too early")
        .perhaps(extra.then(|| Change::Instead(String::new())))
}

pub(super) fn closed_at_end(count: usize) -> Words {
    let lacks =
        if count == 1 { "1 closing parenthesis was".to_owned() } else { format!("{count} closing parentheses were") };
    words("closed-at-end", format!("{lacks} missing at the end of the text and added"))
}

pub(super) fn unclosed_form(head: &str, next_line: Option<u32>) -> Words {
    let found = words("unclosed-form", format!("the form `({head}` that begins here is not closed"));
    match next_line {
        Some(line) => found.hint(format!("line {line} begins outside of it by its indentation: close it before")),
        None => found.hint("add its `)` where it ends"),
    }
}

// ---- the items of a text

pub(super) fn empty() -> Words {
    words("empty", "the text holds no program")
        .hint("write the instructions of the program, ending with `(i32.const 0)`")
}

pub(super) fn no_body() -> Words {
    words("no-body", "there are several functions and none of them is `$run`")
        .hint("write the program's instructions beside the functions, or name its function `$run`")
}

pub(super) fn two_bodies() -> Words {
    words("two-bodies", "instructions stand beside a function that is the program itself")
        .hint("move them into `$run`, or leave out the function around the others")
}

pub(super) fn module_among_others() -> Words {
    words("module-form", "`(module …)` stands beside other forms")
        .hint("write the program's instructions without a module")
}

pub(super) fn two_programs() -> Words {
    words("no-body", "two functions are named or exported as the program, `run`")
        .hint("give the helper function another name and take its export away")
}

pub(super) fn run_params() -> Words {
    words("program-type", "the program's function takes no parameters and no type")
        .hint("get arguments with `(argv 0 $name)`")
}

pub(super) fn run_result() -> Words {
    words("program-type", "the program's function has one result, an i32 code")
        .hint("write `(result i32)` or nothing, and put results out with `(resv $p)`")
}

pub(super) fn nested_function(head: &str, line: u32) -> Words {
    words("nested-function", "a function begins inside a form of another body").hint(format!(
        "functions stand beside the body; perhaps the form `({head}` of line {line} is not closed before"
    ))
}

pub(super) fn data_field() -> Words {
    words("data-field", "`(data …)` cannot be placed: static data is laid out by the runtime")
        .hint("write a string literal where its pointer is needed, as in `(call $dbg.log \"text\")`")
}

pub(super) fn start_field() -> Words {
    words("start-field", "`(start …)` has no meaning here")
        .hint("the program is the function that runs: name it `$run`")
}

pub(super) fn dropped_memory() -> Words {
    words("dropped-field", "the memory declaration was left out: the runtime declares the one memory")
}

pub(super) fn dropped_export() -> Words {
    words("dropped-field", "the export was left out: only the program itself is exported")
}

pub(super) fn unknown_import(full_name: &str, host: &Signatures) -> Words {
    words("unknown-import", format!("no host function `{full_name}` to import"))
        .maybe(nearest::functions(full_name, host, None).or_else(|| Some("imports need not be declared".to_owned())))
}

pub(super) fn misleading_import(name: &str, full_name: &str) -> Words {
    words(
        "misleading-import",
        format!("`{name}` is imported as the name of `{full_name}`, but is a host function itself"),
    )
    .hint("leave out the import: host functions are called by their own names")
}

pub(super) fn duplicate_function(name: &str) -> Words {
    words("duplicate-name", format!("there is a function `{name}` already")).hint("give one of them another name")
}

pub(super) fn host_function_name(known: &Signature) -> Words {
    words("duplicate-name", format!("`${}.{}` is a host function", known.module, known.name))
        .hint(format!("call it as it is, `${known}`, or give yours another name"))
}

// ---- locals

pub(super) fn no_type(name: &str, param: bool) -> Words {
    let kind = if param { "param" } else { "local" };
    words("no-type", format!("`{name}` is declared without a type"))
        .hint(format!("write `({kind} {name} i32)`"))
        .instead(format!("{name} i32"))
}

pub(super) fn unknown_type(found: &str) -> Words {
    let shown = truncate(found, 40);
    words("unknown-type", format!("`{shown}` is not a type"))
        .hint("types are i32, i64, f32 and f64; pointers, strings and handles are i32")
        .perhaps(meant_type(found).map(|ty| Change::Instead(ty.to_owned())))
}

/// The type that a word of another language can only mean.
pub(super) fn meant_type(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_lowercase().as_str() {
        "i32" | "int" | "int32" | "u32" | "uint" | "integer" | "bool" | "boolean" | "ptr" | "pointer" | "string"
        | "str" | "usize" | "handle" | "array" | "map" | "i16" | "u16" | "i8" | "u8" | "byte" => "i32",
        "i64" | "int64" | "u64" | "uint64" | "long" => "i64",
        "f64" | "float64" | "double" => "f64",
        "f32" | "float32" => "f32",
        _ => return None,
    })
}

pub(super) fn two_types(name: &str, first: &str, second: &str, line: u32) -> Words {
    words("duplicate-name", format!("`{name}` is declared as {second} here and as {first} in line {line}"))
        .hint("give one of them another name")
}

pub(super) fn duplicate_param(name: &str, line: u32) -> Words {
    words("duplicate-name", format!("`{name}` is a parameter already, declared in line {line}"))
        .hint("give the local another name, or set the parameter")
}

pub(super) fn too_many_locals(limit: usize) -> Words {
    words("too-many-locals", format!("a function cannot have more than {limit} locals"))
        .hint("keep lists in an array (`$arr.new`) or in memory")
}

pub(super) fn returned_value(sort: Sort, value: &str) -> Words {
    let said = words(
        "returned-value",
        format!(
            "the program's last value, `{}`, is {}, and is taken for its error code",
            fix::short(value),
            sort.name()
        ),
    );
    match sort {
        Sort::Text => said
            .hint("return it as the result with `(ret …)`, or put it out with `(out …)` and end with `(i32.const 0)`"),
        _ => said.hint("put out what it holds with `(out …)`, and end with `(i32.const 0)`"),
    }
}

// ---- forms and functions

pub(super) fn form_operands(head: &str, usage: &str, wanted: usize, found: usize) -> Words {
    let plural = if wanted == 1 { "operand" } else { "operands" };
    words("form-operands", format!("`{head}` takes {wanted} {plural}, found {found}")).hint(format!("write `{usage}`"))
}

pub(super) fn argv_target(found: &str) -> Words {
    words("form-operands", format!("`argv` takes the name of a local here, found `{}`", short(found)))
        .hint("write `(argv N $p)`")
}

pub(super) fn function_number(number: &str) -> Words {
    words("function-number", format!("function {number} is called by its number"))
        .hint("call functions by name: numbers depend on which imports there are")
}

pub(super) fn unknown_function(
    full_name: &str,
    written: &str,
    host: &Signatures,
    program: Option<&Program<'_>>,
) -> Words {
    let plain = !written.is_empty() && !written.starts_with('$');
    if plain && let Some(known) = host.get(full_name) {
        return words("unknown-function", format!("`{written}` is not a name"))
            .hint(format!("names begin with `$`: `${known}`"))
            .instead(format!("${full_name}"));
    }
    let kind = if full_name.contains('.') { "host function" } else { "function" };
    words("unknown-function", format!("no {kind} `${}`", short(full_name)))
        .maybe(nearest::functions(full_name, host, program).or_else(|| nearest::modules(host)))
        .perhaps(
            nearest::certain_function(full_name, host, program).filter(|_| !written.is_empty()).map(Change::Instead),
        )
}

// ---- instructions

pub(super) fn empty_form() -> Words {
    words("empty-form", "`()` is no form").hint("remove it").instead("")
}

pub(super) fn headless_form() -> Words {
    words("headless-form", "a form begins with an instruction")
        .hint("remove the outer parentheses; forms follow one another")
}

pub(super) fn unknown_instruction(name: &str, near: &[String], functions: Option<String>, code: Option<Code>) -> Words {
    let found = words("unknown-instruction", format!("`{}` is not an instruction", short(name)));
    if !near.is_empty() {
        return found.hint(format!("nearest: {}", quoted(near)));
    }
    match (name, code) {
        (_, Some(code)) => found.hint(format!("write its number: `(i32.const {})`", code.number())),
        ("true", _) => found.hint("write `(i32.const 1)`"),
        ("false" | "null" | "nil", _) => found.hint("write `(i32.const 0)`"),
        ("param" | "result" | "type" | "export", _) => {
            found.hint(format!("`({name} …)` stands at the head of a function, before its instructions"))
        }
        ("module" | "import" | "memory" | "global" | "table" | "elem" | "data", _) => {
            found.hint(format!("`({name} …)` stands beside the instructions, not within a form"))
        }
        (name, _) if name.starts_with(|c: char| c.is_ascii_uppercase()) => {
            found.hint("what is not part of the program is written as a comment: `;; …`")
        }
        _ => found.maybe(functions.map(|functions| format!("functions are called: `(call $f …)`; {functions}"))),
    }
}

/// A head that only a host function can be: of a module, but none of WAT's.
pub(super) fn unknown_head(name: &str, host: &Signatures) -> Words {
    let plain = name.trim_start_matches('$').trim_end_matches('?');
    let near = nearest::functions(plain, host, None).or_else(|| nearest::modules(host));
    words("unknown-function", format!("no host function `{}`", short(plain)))
        .maybe(near.map(|near| near.replace("`$", "`")))
}

pub(super) fn foreign_head(name: &str) -> Words {
    words("unknown-instruction", format!("`{}` is not an instruction", fix::short(name)))
}

pub(super) fn letter_before_text() -> Words {
    words("call-form", "a text has no letter before it").hint("write `(fmt \"{}\" $value)`")
}

pub(super) fn call_syntax(name: &str) -> Words {
    words("call-form", "a call begins with its parenthesis").hint(format!("write `({name} …)`"))
}

pub(super) fn flat_form(name: &str, usage: &str) -> Words {
    words("unknown-instruction", format!("`{name}` stands without parentheses")).hint(format!("write `{usage}`"))
}

pub(super) fn call_missing(name: &str, known: &Signature) -> Words {
    let operands = if known.params.is_empty() { "" } else { " …" };
    words("call-missing", format!("`{}` is a function, not an instruction", short(name)))
        .hint(format!("write `(call ${}.{}{operands})`: `${known}`", known.module, known.name))
}

pub(super) fn helper_call_missing(name: &str) -> Words {
    words("call-missing", format!("`{}` is a function, not an instruction", short(name)))
        .hint(format!("write `(call {name} …)`"))
}

pub(super) fn bare_operand(text: &str, written: &str) -> Words {
    words("bare-operand", format!("`{}` is not an instruction", short(text))).hint(format!("write `{written}`"))
}

pub(super) fn missing_argument(name: &str, what: &str, usage: &str) -> Words {
    words("missing-argument", format!("`{name}` lacks {what}")).hint(format!("write `{usage}`"))
}

pub(super) fn bad_number(name: &str, ty: Val, found: &str, local: bool, code: Option<i32>) -> Words {
    let said = words("bad-number", format!("`{name}` takes a number that is {}, found `{found}`", with_article(ty)));
    match (found, code) {
        (_, Some(code)) => said.hint(format!("write `({name} {code})`")),
        _ if local => said.hint(format!("write `(local.get {found})` alone")),
        ("true", _) => said.hint("write 1"),
        ("false" | "null", _) => said.hint("write 0"),
        (found, _) if found.starts_with('(') => said.hint("write the expression alone, without the constant around it"),
        (found, _) if matches!(ty, Val::I32 | Val::I64) && found.contains('.') => {
            said.hint("write `(f64.const …)` for it")
        }
        (found, _) if ty == Val::I32 && found.bytes().all(|b| b.is_ascii_digit() || b == b'-') => {
            said.hint("it does not fit 32 bits; write `(i64.const …)` for it")
        }
        _ => said,
    }
}

pub(super) fn unknown_local(name: &str, near: &[&str], global: bool) -> Words {
    let found = words("unknown-local", format!("no local `{}`", short(name)));
    if global {
        return found.hint(format!("`{name}` is a global: use `global.get` and `global.set`"));
    }
    if !name.starts_with('$') {
        return found.hint("a local's name begins with `$`");
    }
    let declare = format!("declare it with `(local {} i32)`", short(name));
    if near.is_empty() { found.hint(declare) } else { found.hint(format!("nearest: {}; or {declare}", quoted(near))) }
}

pub(super) fn local_number(number: &str, count: usize) -> Words {
    words("unknown-local", format!("no local {}: the function has {count}", short(number)))
        .hint("give locals names, as in `(local $x i32)`, and use those")
}

pub(super) fn unknown_global(name: &str, near: &[&str], local: bool) -> Words {
    let found = words("unknown-global", format!("no global `{}`", short(name)));
    if local {
        return found.hint(format!("`{name}` is a local: use `local.get` and `local.set`"));
    }
    match near {
        [] => found.hint(format!("declare it beside the body: `(global {} (mut i32) (i32.const 0))`", short(name))),
        near => found.hint(format!("nearest: {}", quoted(near))),
    }
}

pub(super) fn constant_global(name: &str, ty: Val) -> Words {
    words("constant-global", format!("the global `{name}` cannot be set"))
        .hint(format!("declare it as `(global {name} (mut {}) …)`", ty.name()))
}

pub(super) fn unknown_label(name: &str, around: &[&str]) -> Words {
    let found = words("unknown-label", format!("no block or loop `{}` around here", short(name)));
    match around {
        [] => found.hint("label the block or loop to branch to: `(block $done …)`, `(loop $next …)`"),
        around => found.hint(format!("labels around here: {}", quoted(around))),
    }
}

pub(super) fn no_end(name: &str) -> Words {
    words("block-end", format!("`{}` has no `end`", short(name)))
        .hint("write `end` where it ends, or put it in parentheses")
}

pub(super) fn stray_end(name: &str) -> Words {
    let hint = match name {
        "else" => "`else` stands between a flat `if` and its `end`, `(else …)` after `(then …)`",
        _ => "a form in parentheses ends with its `)`",
    };
    let said = words("block-end", format!("`{name}` ends nothing")).hint(hint);
    if name == "end" { said.instead("") } else { said }
}

pub(super) fn arm_outside(name: &str) -> Words {
    let hint = match name {
        "else" => "write `(if COND (then …) (else …))`: the `if` before it may be closed too early",
        _ => "write `(if COND (then …) (else …))`",
    };
    words("if-form", format!("`{name}` stands outside of an `if`")).hint(hint)
}

pub(super) fn no_then() -> Words {
    words("if-form", "`if` lacks `(then …)`").hint("write `(if COND (then …) (else …))`")
}

pub(super) fn second_then() -> Words {
    words("if-form", "an `if` has one `(then …)`").hint("write `(else …)` for the other arm")
}

pub(super) fn after_then() -> Words {
    words("if-form", "only `(else …)` may follow `(then …)`")
        .hint("put all instructions of the arm into the one `(then …)`, and close the `if` after its last arm")
}

pub(super) fn after_else() -> Words {
    words("if-form", "nothing may follow `(else …)`").hint("close the `if` after its last arm")
}

pub(super) fn if_without_else(results: &str) -> Words {
    words("if-form", format!("an `if` with the result {results} lacks `(else …)`"))
        .hint("both arms must leave the result")
}

pub(super) fn operand_count(usage: &str, wanted: usize, found: usize, called: Option<&Signature>) -> Words {
    let said = words("operand-count", format!("`{usage}` takes {}, found {found}", operands(wanted)));
    let missing = called.map_or(&[][..], |called| called.params.get(found..).unwrap_or(&[]));
    let optional = !missing.is_empty() && missing.iter().all(|param| param.ty.is_optional());
    let names: Vec<&str> = missing.iter().map(|param| param.name).collect();
    said.maybe(optional.then(|| format!("{} may be `(i32.const 0)`", names.join(" and "))))
}

pub(super) fn results_as_operand(usage: &str, wanted: usize, found: usize, called: &Signature) -> Words {
    operand_count(usage, wanted, found, None).hint(pop_before(called))
}

fn pop_before(called: &Signature) -> String {
    let names = called.results.iter().map(|p| p.name).chain(called.fallible().then_some("err"));
    let pops: Vec<String> = names.rev().map(|name| format!("(local.set ${name})")).collect();
    let (count, pops) = (pops.len(), pops.join(" "));
    match called.results {
        [_] => format!(
            "`${called}` leaves {count} values: write `({}.{}? …)`, or pop both before, err first: `{pops}`",
            called.module, called.name
        ),
        _ => format!("`${called}` leaves {count} values: call it before, and pop them, the last one first: `{pops}`"),
    }
}

pub(super) fn value_missing(usage: &str, wanted: usize, found: usize, name: &str, argument: Option<&str>) -> Words {
    let there = match found {
        0 => "the stack is empty".to_owned(),
        1 => "the stack holds 1 value".to_owned(),
        n => format!("the stack holds {n} values"),
    };
    let said = words("value-missing", format!("`{usage}` takes {}, and {there}", operands(wanted)));
    let argument = argument.map(|argument| format!(" {argument}")).unwrap_or_default();
    match name {
        "if" => said.hint("write `(if COND (then …) (else …))`"),
        "return" => said.hint("write `(return (i32.const 0))`"),
        _ => said.hint(format!("write `({name}{argument}{})`", " (…)".repeat(wanted.min(6)))),
    }
}

pub(super) fn operand_type(
    usage: &str,
    nth: usize,
    param: Option<&str>,
    wanted: Val,
    found: Val,
    from: &str,
    conversion: Option<&str>,
) -> Words {
    let which = match param {
        Some(param) => format!("operand {} ({param})", nth + 1),
        None => format!("operand {}", nth + 1),
    };
    let message =
        format!("{which} of `{usage}` must be {}, found {} from `{from}`", with_article(wanted), with_article(found));
    words("operand-type", message).maybe(conversion.map(|name| format!("convert it: `({name} …)`")))
}

pub(super) fn err_as_operand(usage: &str, nth: usize, wanted: Val, called: &Signature) -> Words {
    let message = format!("operand {} of `{usage}` must be {}, found err, an i32", nth + 1, with_article(wanted));
    words("operand-type", message).hint(pop_before(called))
}

pub(super) fn wrong_set(name: &str, wanted: Val, found: Val, from: &str, conversion: Option<&str>) -> Words {
    words("operand-type", format!("`{name}` is {}, found {} from `{from}`", with_article(wanted), with_article(found)))
        .maybe(
            conversion.map(|conversion| {
                format!("convert it with `({conversion} …)`, or declare `{name}` as {}", found.name())
            }),
        )
}

pub(super) fn err_on_top(name: &str, wanted: Val, signature: &Signature) -> Words {
    words("operand-type", format!("`{name}` is {}, but err, an i32, is on top of the stack", with_article(wanted)))
        .hint(format!("`${signature}` pushes err last, so pop it first: `(local.set $err) (local.set {name})`"))
}

pub(super) fn result_left(signature: &Signature, nth: usize, count: usize) -> Words {
    let names: Vec<&str> =
        signature.results.iter().map(|p| p.name).chain(signature.fallible().then_some("err")).collect();
    let left: Vec<&str> = names.iter().copied().skip(nth).take(count).collect();
    let message = format!("`${signature}` leaves {} on the stack", left.join(" and "));
    let call = format!("(call ${}.{} …)", signature.module, signature.name);
    let pops: Vec<String> = names.iter().rev().map(|name| format!("(local.set ${name})")).collect();
    words("value-left", message).hint(match (names.len(), left.len()) {
        (1, _) if signature.fallible() => format!("end the program where it fails: `(check {call})`"),
        (1, _) => format!("use the value, or `(drop {call})`"),
        (2, _) => format!(
            "write `({}.{}? …)`, or pop both, err first: `{}`",
            signature.module,
            signature.name,
            pops.join(" ")
        ),
        _ => format!("pop all results, the last one first: `{}`", pops.join(" ")),
    })
}

/// What takes up the one value of a call whose value nobody takes: an err ends the program, another is of no use.
pub(super) fn taken_up(signature: &Signature) -> Option<Change> {
    match (signature.results.len(), signature.fallible()) {
        (0, true) => Some(Change::around("(check ", ")")),
        (1, false) => Some(Change::around("(drop ", ")")),
        _ => None,
    }
}

pub(super) fn call_left(signature: &Signature) -> Words {
    let (module, name) = (signature.module, signature.name);
    let gives = if signature.results.is_empty() { "err" } else { "a value and err" };
    let catch = if signature.results.is_empty() { "$e" } else { "$v $e" };
    words("value-left", format!("`({module}.{name} …)` leaves {gives}, which nothing takes")).hint(format!(
        "write `({module}.{name}? …)` to end the program where it fails, or `(catch {catch} ({module}.{name} …))`"
    ))
}

pub(super) fn value_left(from: &str, ty: Val) -> Words {
    words("value-left", format!("`{from}` leaves {} on the stack", with_article(ty))).hint("use the value, or drop it")
}

pub(super) fn lacks_result(what: &str, wanted: &[Val], found: &[Val]) -> Words {
    let found = if found.is_empty() { "nothing".to_owned() } else { list_types(found) };
    words("value-missing", format!("{what} must leave {}, and leaves {found}", list_types(wanted)))
        .hint("put the result last")
}

pub(super) fn wrong_result(
    what: &str,
    wanted: Val,
    found: Val,
    from: &str,
    run: bool,
    conversion: Option<&str>,
) -> Words {
    let said = words(
        "wrong-result",
        format!("{what} must leave {}, found {} from `{from}`", with_article(wanted), with_article(found)),
    );
    if run {
        return said.hint("a program ends with a code: `(i32.const 0)`; results are put out with `(resv $p)`");
    }
    said.maybe(conversion.map(|name| format!("convert it: `({name} …)`")))
}

// ---- sorts of values

pub(super) fn sort_mismatch(head: &str, text: &str, found: Sort, wanted: Sort) -> Words {
    let text = fix::short(text);
    let said = words("value-sort", format!("`{text}` is {} where `{head}` takes {}", found.name(), wanted.name()));
    match (found, wanted) {
        (Sort::Number | Sort::Code, Sort::Text) => said.hint(format!("write `(str.from_int {text})`")),
        (Sort::Text, Sort::Number) if !text.starts_with('"') => said.hint(format!("write `(str.to_int? {text})`")),
        (Sort::Array, Sort::Text) => {
            said.hint(format!("write `(str.join? {text} \", \")`; `arr.to_json` makes JSON of it"))
        }
        (Sort::Map, Sort::Text) => said.hint("`map.to_json` makes JSON of it"),
        (_, Sort::Code) => said.hint("codes are names such as `ENOENT`, or what `(catch $v $e (CALL …))` sets `$e` to"),
        (Sort::Text, Sort::Array) => said.hint(format!("write `(str.split? {text} \",\")`")),
        (Sort::Map, Sort::Array) => said.hint(format!("write `(map.keys {text})`")),
        _ => said,
    }
}

pub(super) fn operands_swapped(signature: &Signature) -> Words {
    words("value-sort", format!("two operands of `{signature}` stand in each other's place"))
}

pub(super) fn names_swapped(value: &str, err: &str, catch: bool) -> Words {
    let said = words(
        "names-swapped",
        format!("`{value}` takes the value and `{err}` the err, and they are used the other way round"),
    );
    match catch {
        true => said.hint(format!("`catch` names the value first: `(catch {err} {value} …)`")),
        false => said.hint(format!(
            "as it stands the program would end with a pointer, and no error code has this number: err lies on top of the value \
             and is popped first: `(local.set {value}) (local.set {err})`"
        )),
    }
}

pub(super) fn no_code_result(form: &str, func: &str) -> Words {
    words("form-result", format!("`{form}` returns a code, but `{func}` has not the one result i32"))
        .hint("give the function `(result i32)`, or test the error with `if`")
}

pub(super) fn form_target(form: &str, name: &str, found: Val) -> Words {
    words("operand-type", format!("`{form}` sets `{name}` to a pointer, an i32, but it is {}", with_article(found)))
        .hint(format!("leave out its declaration: `{form}` declares it"))
}

fn operands(count: usize) -> String {
    if count == 1 { "1 operand".to_owned() } else { format!("{count} operands") }
}

pub(super) fn with_article(ty: Val) -> String {
    let article = if matches!(ty, Val::V128 | Val::Func) { "a" } else { "an" };
    format!("{article} {}", ty.name())
}

pub(super) fn quoted<T: AsRef<str>>(names: &[T]) -> String {
    names.iter().take(8).map(|name| format!("`{}`", short(name.as_ref()))).collect::<Vec<_>>().join(", ")
}

/// A name as it is shown: giants are cut.
pub(super) fn short(name: &str) -> String {
    truncate(name, 64).into_owned()
}

// ---- what only the engine's own reader knows

pub(super) fn invalid(message: &str) -> Words {
    words("invalid", message.lines().next().unwrap_or("").trim())
}

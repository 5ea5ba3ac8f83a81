//! Every sentence that is said about a program's text, with the stable code of its class.

use std::ops::Range;

use super::diagnostic::{Diagnostic, Severity, clamp};
use super::nearest;
use super::program::Program;
use crate::{Signature, Signatures};

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
}

impl Fault {
    pub(super) fn new(span: Range<usize>, words: Words) -> Box<Fault> {
        Box::new(Fault { span, words })
    }

    /// The finding as it is shown.
    pub(super) fn told(self, source: &str, severity: Severity) -> Diagnostic {
        let span = clamp(self.span.start)..clamp(self.span.end);
        Diagnostic::new(source, severity, self.words.code, span, self.words.message, self.words.hint)
    }
}

fn words(code: &'static str, message: impl Into<String>) -> Words {
    Words { code, message: message.into(), hint: None }
}

impl Words {
    fn hint(self, hint: impl Into<String>) -> Words {
        Words { hint: Some(hint.into()), ..self }
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

pub(super) fn too_deep(limit: usize) -> Words {
    words("too-deep", format!("parentheses nest more than {limit} deep"))
        .hint("keep intermediate values in locals, and long sequences beside one another")
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

pub(super) fn quoted_name() -> Words {
    words("bad-character", "a name cannot be written in quotes").hint("write `$name` without quotes")
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

pub(super) fn bad_escape(found: &str) -> Words {
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

pub(super) fn stray_close() -> Words {
    words("stray-paren", "`)` closes nothing").hint("remove it, or look for a form before it that was closed too early")
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
    words("no-type", format!("`{name}` is declared without a type")).hint(format!("write `({kind} {name} i32)`"))
}

pub(super) fn unknown_type(found: &str) -> Words {
    let shown: String = found.chars().take(40).collect();
    words("unknown-type", format!("`{shown}` is not a type"))
        .hint("types are i32, i64, f32 and f64; pointers, strings and handles are i32")
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

// ---- forms and functions

pub(super) fn form_operands(head: &str, usage: &str, wanted: usize, found: usize) -> Words {
    let plural = if wanted == 1 { "operand" } else { "operands" };
    words("form-operands", format!("`{head}` takes {wanted} {plural}, found {found}")).hint(format!("write `{usage}`"))
}

pub(super) fn form_name(head: &str, usage: &str, found: &str) -> Words {
    let shown: String = found.chars().take(40).collect();
    words("form-operands", format!("`{head}` takes a local here, found `{shown}`")).hint(format!("write `{usage}`"))
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
            .hint(format!("names begin with `$`: `${known}`"));
    }
    words("unknown-function", format!("no function `${full_name}`")).maybe(nearest::functions(full_name, host, program))
}

// ---- what only the engine's own reader knows

pub(super) fn invalid(message: &str) -> Words {
    words("invalid", message.lines().next().unwrap_or("").trim())
}

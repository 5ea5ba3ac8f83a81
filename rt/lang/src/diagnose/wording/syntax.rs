//! Messages about characters, strings, comments and parentheses.

use super::{Message, message};
use crate::diagnose::fix::{Change, Edits};
use crate::diagnose::truncate::excerpt;

messages! {
    one_semicolon() "bad-character"
        "unexpected character `;`"
        => "a comment begins with `;;`, or is written between `(;` and `;)`";
    other_comment(mark: &str) "unknown-instruction"
        "`{mark}` is not an instruction" => "a comment begins with `;;`";
    other_quotes(found: &str) "unknown-instruction"
        "`{found}` is not an instruction" => "write a string in plain quotes: \"…\""
        where found = excerpt(found);
    /// Warns about an output string with a placeholder but without a value.
    placeholder_without_value(head: &str, text: &str) "string-template"
        "`{{}}` in {text} is output as it is: no value follows" => "write `({head} {text} V)`"
        where text = excerpt(text);
    /// Reports an object in braces where no value is expected.
    braces() "bad-character"
        "an object in braces is a value, but no form takes it here"
        => "write `(out {{…}})` to print it, or `(do …)` for several forms";
    quoted_name() "bad-character"
        "a name cannot be written in quotes" => "write `$name` without quotes";
    annotation() "bad-character"
        "unexpected character `@`" => "names begin with `$`; annotations are not supported";
    unclosed_comment() "unclosed-comment"
        "the comment that begins here is never closed" => "close it with `;)`";
    /// Reports a raw string that ends at a quote after a backslash, although more text follows.
    raw_quote() "raw-string-quote"
        "a raw string ends at its first quote, also after a backslash"
        => "write a raw string that contains quotes as `r\"\"\"…\"\"\"`";
    not_utf8() "not-utf8"
        "the escapes in this string produce bytes that are not valid UTF-8"
        => "write a backslash as `\\\\`: `\\bf` and similar are hexadecimal bytes";
    /// Reports a form that has an empty body and is followed by a more deeply indented line. `own`
    /// and `next` are the lines of the form and of the indented line.
    closed_early(head: &str, own: u32, next: u32) "closed-early"
        "the form `({head}` of line {own} is closed here, so its body is empty"
        => "by its indentation, line {next} is its body: remove this `)`, and add one after the \
            body";
    /// Warns about a line that is indented as if it were part of the previous form.
    indented_after(head: &str, own: u32, next: u32) "closed-early"
        "line {next} is indented as a part of the form `({head}` of line {own}, which is closed \
         here"
        => "if it is a part, remove this `)` and add one after it; otherwise indent it less";
    bad_character(c: char) "bad-character"
        "unexpected character `{shown}`"
        => match (c) {
            '“' | '”' | '„' | '‟' | '«' | '»' | '‘' | '’' =>
                "write a string in plain quotes: \"…\"",
            ',' => "separate operands with spaces only",
            '[' | ']' | '{' | '}' => "write forms in round parentheses",
            _ => "only strings and comments may contain it",
        } where shown = match c {
            c if c.is_control() || c.is_whitespace() => c.escape_default().to_string(),
            c => c.to_string(),
        };
    /// Warns about a string that contains `found`, which stands for a variable's value in another
    /// language.
    template_in_string(found: &str, name: &str, text: &str) "string-template"
        "`{found}` in {shown} is not replaced by the value of `${name}`"
        => "write `(fmt {written} ${name})`"
        where shown = excerpt(text), written = excerpt(&text.replacen(found, "{}", 1));
    /// Reports an unclosed string. `multi_line` is the line of an earlier multi-line string that
    /// may be the cause.
    unclosed_text(block: bool, multi_line: Option<u32>) "unclosed-string"
        "the string that begins here is never closed"
        => match (multi_line) {
            Some(line) =>
                "the string that begins on line {line} spans several lines: it may be the one that \
                 lacks its closing `\"`",
            None => "close it with `{quotes}`",
        } where quotes = if block { "\"\"\"" } else { "\"" };
    unknown_escape(found: &str) "bad-escape"
        "`{shown}` is not an escape"
        => match (found) {
            "\\" => "write a backslash as `\\\\`",
            "\\u" => "write `\\u{{e9}}` or `\\u00e9`, and a backslash as `\\\\`",
            _ => "escapes are `\\n`, `\\t`, `\\r`, `\\\"`, `\\'`, `\\\\`, `\\u{{…}}` and `\\hh` (two \
                  hexadecimal digits); for a backslash write `\\{found}`",
        } where shown = found.escape_debug().to_string().replace("\\\\", "\\");
    /// Reports an unmatched `)`. If `extra` is true, removing the parenthesis is a safe fix.
    /// Otherwise, an earlier form may be closed too early.
    stray_close(extra: bool) "stray-paren"
        "unmatched `)`" => "remove it, or look for an earlier form that is closed too early"
        fix maybe_safe(extra.then(|| Change::Replace(String::new())));
    /// Reports a `)` too many. `own` and `next` are the lines of the form that it closes and of a line
    /// that is indented as a part of the form.
    extra_close(head: &str, own: u32, next: u32) "stray-paren"
        "this `)` closes the form `({head}` of line {own}, so a later `)` is unmatched"
        => "by its indentation, line {next} is a part of the form: remove this `)`";
    closed_at_end(count: usize) "closed-at-end"
        "added {count} missing closing {noun} at the end of the program"
        where noun = if count == 1 { "parenthesis" } else { "parentheses" };
    /// Reports an unclosed form. `next_line` is the first line whose indentation shows that it is
    /// outside the form.
    unclosed_form(head: &str, next_line: Option<u32>) "unclosed-form"
        "the form `({head}` that begins here is not closed"
        => match (next_line) {
            Some(line) =>
                "by its indentation, line {line} is outside this form: add `)` before line {line}",
            None => "add `)` where it ends",
        };
    /// Reports a list that ends with the wrong bracket. If `square` is true, the list starts with
    /// `[`.
    wrong_bracket(open: &str, close: &str) "wrong-bracket"
        "this list begins with `{open}`, so it ends with `{close}`" fix replace_with(close);
}

/// Reports a template in backticks.
pub(crate) fn template(found: &str) -> Message {
    other_quotes(found).hint("write `(fmt \"{} and {}\" $a $b)`")
}

/// Reports an unknown escape. `rest` is the part of the string after the escape.
pub(crate) fn bad_escape(found: &str, rest: &str) -> Message {
    let doubled = Change::Replace(format!("\\{found}"));
    let hex = rest
        .get(..2)
        .filter(|digits| u8::from_str_radix(digits, 16).is_ok_and(|byte| byte.is_ascii()));
    let message = unknown_escape(found);
    match (found, hex) {
        ("\\" | "\\u", _) => message,
        ("\\x", Some(_)) => message.replace_with("\\"),
        ("\\x", None) => message,
        ("\\/" | "\\`", _) => message.replace_with(found.trim_start_matches('\\')),
        ("\\0", _) => message.replace_with("\\00"),
        ("\\a" | "\\b" | "\\e" | "\\f" | "\\v" | "\\$", _) => message.likely(doubled),
        _ => message.safe(doubled),
    }
}

impl Message {
    /// Proposes the given edits. They double the backslashes of an unknown escape and of escapes
    /// that denote bytes, which the author probably did not intend as escapes either.
    pub(crate) fn doubled_with_bytes(self, edits: Edits) -> Message {
        self.hint(
            "two hexadecimal digits after a backslash are a byte: write a string without escapes \
             as `r\"…\"`",
        )
        .likely(edits)
    }
}

//! Messages about forms, such as `let` and `cond`, and about calls by name.

use super::{Message, counted, meant_type, message, quoted, with_article};
use crate::diagnose::fix::Change;
use crate::diagnose::nearest;
use crate::diagnose::truncate::excerpt;
use crate::types::{Type, Val};
use crate::{Code, Signature};

messages! {
    value_needs_else(head: &str) "form-value"
        "`{head}` returns a value here, so it needs a last `(else …)`"
        => "add `(else V)`, or move the code that uses the value into the arms";
    function_as_value(name: &str) "call-missing"
        "`{name}` is a function, not a value" => "call it: `({name} …)`" where name = excerpt(name);
    missing_code(found: &str) "form-operands"
        "`{found}` returns no error code for `check`"
        => "remove `check`: a call that fails ends the program" where found = excerpt(found);
    helper_operands(name: &str, wanted: usize, found: usize) "operand-count"
        "`{name}` takes {wanted}, found {found}"
        where name = excerpt(name), wanted = counted(wanted, "argument");
    set_unknown(name: &str, value: &str) "unknown-local"
        "no local `{name}` to set" => "declare it: `(let {name} {value})`"
        where name = excerpt(name), value = excerpt(value);
    /// Reports a list of names among the names that a `let` binds.
    names_among_bindings(names: &str) "form-operands"
        "`{names}` takes an array apart, which needs a `let` of its own"
        => "write `(let {names} ARR)`" where names = excerpt(names);
    keep_name(found: &str) "form-operands"
        "`keep` takes a variable, found `{found}`"
        => "name the value, as in `(keep rows V)`; later programs read it as `$rows`"
        where found = excerpt(found);
    /// Reports `(keep $a $b)`, which may mean both variables or the value of the second one.
    keep_two(one: &str, other: &str) "form-operands"
        "`(keep {one} {other})` has two readings"
        => "write `(keep {one}) (keep {other})` to keep both, and `(set {one} {other}) (keep {one})` \
            to keep the second one's value under the first one's name"
        where one = excerpt(one), other = excerpt(other);
    /// Reports Scheme's named `let`, which declares a loop.
    named_let(name: &str) "form-operands"
        "`let` does not declare the loop `{name}`"
        => "write `(while C …)`, `(for $i FROM TO …)`, or a function: `(fn $f ($i) …)`"
        where name = excerpt(name);
    catch_call(head: &str, usage: &str, found: &str) "form-operands"
        "`{head}` takes a call that can fail, found `{found}`" => "write `{usage}`"
        where found = excerpt(found);
    /// Reports a `catch` whose first name looks like a name for the error code but receives the
    /// value.
    catch_order(name: &str, call: &str) "form-operands"
        "`{call}` returns a value, so the first name of `catch`, `{name}`, is the value's"
        => "write `(catch $v $e $why {call})`: the value, the error code, the reason"
        where call = excerpt(call);
    else_not_last() "form-operands"
        "`else` must be the last clause of `cond`" => "move it after the other clauses";
    clause(found: &str) "form-operands"
        "a clause of `cond` is `(CONDITION …)` or `(else …)`, found `{found}`"
        => "write `(cond ((= $a 1) …) (else …))`" where found = excerpt(found);
    count_type(text: &str, found: Type) "value-type"
        "`{text}` is {found}, but `for` counts in ints or longs"
        => "`(int {text})` drops the fraction"
        where text = excerpt(text), found = found.described();
    /// Reports a `for` loop with a condition on its counter in place of the end value. `end` is the
    /// end value that is equivalent to the condition.
    condition_as_end(name: &str, end: &str) "form-operands"
        "`for` takes the end of the range, excluded, instead of a condition"
        => "write `(for {name} FROM {end} …)`; the last operand before the body is the step"
        where name = excerpt(name), end = excerpt(end);
    /// Warns about a `for` loop without a step whose end value is not above its start value.
    counts_up(from: &str, to: &str) "empty-range"
        "`for` counts up, so from {from} to {to} its body does not run"
        => "to count down, write a step of -1; the end is excluded: `(for $i 9 -1 -1 …)`"
        where from = excerpt(from), to = excerpt(to);
    outside_loop(head: &str) "outside-loop"
        "`{head}` is outside `while`, `for` and `each`"
        => "leave a WAT `loop` or `block` with its label: `(br $label)`";
    two_operands(head: &str, found: usize) "form-operands"
        "`{head}` takes 2 arguments, found {found}" => "nest them: `({head} ({head} A B) C)`";
    fmt_template(found: &str) "form-operands"
        "the first argument of `fmt` is a string literal, found `{found}`"
        => "write `(fmt \"{{}} and {{}}\" $a $b)`; join strings with `str.cat`"
        where found = excerpt(found);
    /// Reports a WAT `call` that leaves a value and its error code where one value is expected.
    value_and_err(signature: &Signature) "value-and-err"
        "`call ${module}.{name}` leaves a value and an error code, but one value is expected"
        => "write `({module}.{name} …)`: the program ends with the code if it fails"
        where module = signature.module, name = signature.name;
    missing_result(signature: &Signature) "form-operands"
        "`{signature}` returns no value" => "write it as a separate statement before this form";
    /// Reports a call in method notation.
    method(head: &str, method: &str) "form-operands"
        "`.{name}` in `{head}` is not an operand"
        => "there are no methods: a function comes first, as in `(str.{name} X)`"
        where name = excerpt(method.trim_start_matches('.'));
    catch_infallible(head: &str, signature: &Signature) "form-operands"
        "`{signature}` cannot fail, so `{head}` has no effect"
        => "write `({module}.{name} …)` without `{head}`"
        where module = signature.module, name = signature.name;
    condition_type(text: &str, found: Type) "value-type"
        "`{text}` is {ty}, but a condition is an int"
        => match (found) {
            Type::Str => "compare it: `(!= {text} \"\")`" fix likely(Change::wrap("(!= ", " \"\")")),
            Type::Arr | Type::Map | Type::Numbers(_) => "compare its length: `(> (len {text}) 0)`"
                fix likely(Change::wrap("(> (len ", ") 0)")),
            Type::Long | Type::Float => "compare it: `(!= {text} 0)`"
                fix safe(Change::wrap("(!= ", " 0)")),
            _ => none,
        } where text = excerpt(text), ty = found.described();
    number_type(text: &str, want: Val, own: Val) "bad-number"
        "`{text}` {problem}"
        => match (want, own) {
            (Val::I32 | Val::I64, Val::F64) =>
                "write a whole number; to compute with floats, convert the other values: `(float …)`",
            (Val::I32, Val::I64) => "use longs, if possible: `(let $x long …)`, `(longs N)`",
            (Val::I64, Val::I64) =>
                "write an identifier as a string, and a number as a float, such as `1.5e20`",
            _ => none,
        } where text = excerpt(text), problem = match (want, own) {
            (Val::I32, Val::I64) => "does not fit in an int (32 bits)".to_owned(),
            (Val::I64, Val::I64) => "does not fit in a long (64 bits)".to_owned(),
            _ => format!("is not {}", with_article(want)),
        };
    /// Reports a word that is not a value. `head` is the name of the form that expects the value,
    /// and `usage` is an example of that form.
    not_a_value(head: &str, usage: &str, text: &str, is_local: bool) "form-operands"
        "`{shown}` is not a value"
        => match (text) {
            "true" | "True" | "#t" | "#true" | "t" | "TRUE" => "write 1" fix replace_with("1"),
            "false" | "False" | "#f" | "#false" | "FALSE" | "null" | "NULL" | "nil" | "none"
            | "None" | "undefined" => "write 0" fix replace_with("0"),
            _ if is_keyword(text) => "a key is a string: `\"{key}\"`"
                fix replace_with(format!("\"{key}\"")),
            _ if is_local => "the name of a local begins with `$`: `${text}`"
                fix replace_with(format!("${text}")),
            "in" | "of" | "to" | "from" | "by" | "do" | "then" | "as" | "else" | "elif" | "elsif"
            | "elseif" if !usage.is_empty() => "write `{usage}`, without `{text}`",
            _ if is_word(text) && text.starts_with(|c: char| c.is_ascii_alphabetic()) =>
                "a variable is written `${text}` and declared before this: `(let ${text} 0)`; a \
                 string is written `\"{text}\"`",
            _ if usage.is_empty() =>
                "`{head}` takes locals (`$x`), numbers, strings (`\"…\"`) and forms",
            _ => "write `{usage}`, with locals (`$x`), numbers, strings (`\"…\"`) or forms",
        } where shown = excerpt(text), key = text.trim_start_matches(':');
    value_count(head: &str, text: &str, count: i32) "form-operands"
        "`{text}` returns {results}, but `{head}` takes one"
        where text = excerpt(text), results = values(count, "no value");
    /// Reports a call to a function without a result where a value is expected. `last` contains the
    /// last form of the function and the line of that form.
    no_result(head: &str, text: &str, name: &str, last: Option<(&str, u32)>) "form-operands"
        "`{text}` returns no value, but `{head}` takes one"
        => match (last) {
            Some((last, line)) =>
                "`{name}` ends with `{last}` in line {line}, which has no value: end it with the \
                 value",
            None => none,
        } where text = excerpt(text), name = excerpt(name),
        last = last.map(|(last, line)| (excerpt(last), line));
    /// Reports an unknown error code. `nearest` is the known error code that was probably meant.
    unknown_code(text: &str, nearest: Option<Code>) "unknown-code"
        "`{text}` is not an error code"
        => match (nearest.and_then(Code::name)) {
            Some(name) => "write `{name}`" fix replace_with(name),
            None => "codes are {all}",
        } where text = excerpt(text), all = failures();
    branch_value(count: i32) "form-value"
        "this arm leaves {found}, but a value is expected" => "end the arm with the value"
        where found = values(count, "nothing");
    call_operands(signature: &Signature, found: usize) "operand-count"
        "`{signature}` takes {wanted}, found {found}"
        => match (missing.as_str()) {
            "" => "remove the extra arguments, or close the call before them",
            _ => "add {missing}",
        } where wanted = counted(signature.params.len(), "argument"),
        missing = signature.params.iter().skip(found).map(|param| param.name).collect::<Vec<_>>()
            .join(" and ");
    let_type(name: &str, found: &str) "unknown-type"
        "`{shown}` is not a type"
        => "write `(let {name} V)`, or `(let {name} long V)` with int, long, float, str, arr or map"
        fix maybe_safe(match found {
            "=" | ":=" | ":" => Some(Change::Replace(String::new())),
            word => meant_type(word).map(|ty| Change::Replace(ty.to_owned())),
        }) where shown = excerpt(found);
    target(head: &str, usage: &str, found: &str) "form-operands"
        "`{head}` takes the name of a local, found `{shown}`"
        => match (found) {
            _ if found.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') =>
                "names begin with `$`: `${shown}`"
                fix maybe_safe(is_word(found).then(|| Change::Replace(format!("${found}")))),
            _ if found.starts_with("(at ") && head.ends_with('=') =>
                "write `(put X I ({sign} (at X I) N))`; `(map.incr $m K N)` adds to a map's number",
            _ => "write `{usage}`",
        } where shown = excerpt(found), sign = head.trim_end_matches('=');
    negative_index(index: &str, of: &str) "form-operands"
        "the first index is 0, so `{of}` has no index {index}"
        => "count from the end with its length: `(at {of} (- (len {of}) {back}))`"
        where index = excerpt(index), of = excerpt(of), back = index.trim_start_matches('-');
    /// Reports a `catch` with three names around a call that returns only an error code.
    catch_names(call: &str) "form-operands"
        "`{call}` returns only err" => "write `(catch $e {call})`" where call = excerpt(call);
    /// Reports an argument's name without a value.
    missing_argument(program: &str, name: &str) "form-operands"
        "a value follows `{name}:` in a call of `{program}`" => "write `({program} {name}: V)`";
    /// Reports too many arguments of a program.
    program_operands(program: &str, count: usize, usage: &str) "operand-count"
        "`{program}` takes {wanted}" => "write `{usage}`"
        where wanted = counted(count, "argument");
    /// Reports an argument that a program does not have.
    unknown_argument(program: &str, name: &str, usage: &str) "form-operands"
        "`{program}` has no argument `{name}`" => "write `{usage}`";
    repeated_argument(program: &str, name: &str) "form-operands"
        "the argument `{name}` of `{program}` is given twice" => "write it once";
    /// Reports a required argument that a call leaves out.
    left_out(program: &str, name: &str, usage: &str) "operand-count"
        "`{program}` needs the argument `{name}`" => "write `{usage}`";
    /// Reports a function over a collection whose result nobody uses.
    unused_result(head: &str, name: &str, text: &str) "form-operands"
        "`{head}` changes nothing: it gives a new value, which nobody uses"
        => "write `(set {name} {text})`, or use its value" where text = excerpt(text);
    /// Reports `by` without a key.
    missing_key(head: &str) "form-operands"
        "a key follows `by` in `{head}`"
        => "write `({head} X by \"name\")` or `({head} X by (fn ($a) $a.name))`";
    /// Reports a function in a form that cannot be called with an item.
    inline_function(text: &str) "form-operands"
        "`{text}` is not a function of an item"
        => "write `(fn ($a) E)`: the item's name, and a form that gives the result" where text = excerpt(text);
    unsupported_operator(head: &str, ty: Type) "value-type"
        "`{head}` does not take {found}"
        => match (head, ty) {
            ("%", Type::Float) =>
                "`%` takes ints and longs; `(- A (* B (math.floor (/ A B))))` for floats",
            _ => none,
        } where found = ty.described();
    fmt_placeholder(found: &str) "fmt-hole"
        "`{shown}` is not a placeholder of `fmt`"
        => match (found.split_once(':').map_or("", |(_, format)| format)) {
            format if format.starts_with(['<', '>', '^']) || format.starts_with(is_digit) =>
                "write `{{}}`, and pad the value: `(str.pad_left V WIDTH)`, or `(str.pad_right V \
                 WIDTH)`",
            _ => "write `{{}}` for any value, `{{.2}}` for a float with 2 digits, `{{e}}` for the \
                  name of an error code, `{{{{` and `}}}}` for braces",
        } where shown = excerpt(found), is_digit = |c: char| c.is_ascii_digit();
    fmt_count(placeholders: usize, values: usize) "fmt-count"
        "the string has {placeholders}, but {values} {verb} it"
        => "pass one value for each `{{}}` and `{{.2}}`; write a brace as `{{{{`"
        where verb = if values == 1 { "follows" } else { "follow" },
        placeholders = counted(placeholders, "placeholder"), values = counted(values, "value");
}

/// Returns the number of values, or `none` if there are no values.
fn values(count: i32, none: &str) -> String {
    if count <= 0 { none.to_owned() } else { format!("{count} values") }
}

/// Returns true if `text` would be a valid name after a `$`.
fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// Returns true if `text` is a Clojure keyword, such as `:name`. Keywords that introduce the last
/// clause of a `cond`, such as `:else`, are excluded.
fn is_keyword(text: &str) -> bool {
    let word = text.strip_prefix(':');
    word.is_some_and(|word| !matches!(word, "" | "else" | "default" | "otherwise") && is_word(word))
}

/// Reports an unknown local. `later` is the line of a later form that declares it.
pub(crate) fn unknown_local<'n>(
    name: &str,
    known: impl Iterator<Item = &'n str>,
    later: Option<u32>,
) -> Message {
    let message = message("unknown-local", format!("no local `{}`", excerpt(name)));
    if let Some(line) = later {
        return message.hint(format!(
            "line {line} declares it, after this: declare it before this, as in `(let {name} 0)`"
        ));
    }
    let known: Vec<&str> = known.collect();
    if let Some((object, member)) = name.split_once('.')
        && known.contains(&object)
    {
        let (object, member) = (excerpt(object), excerpt(member));
        return message.hint(format!(
            "write `(at {object} \"{member}\")` for a map, `(json.get {object} \"{member}\")` for \
             JSON, and the function's name for a method: `(str.{member} {object})`"
        ));
    }
    let certain =
        nearest::certain(name, known.iter().copied()).map(|near| Change::Replace(near.to_owned()));
    let near = nearest::names(name, known.iter().copied());
    let declare = format!("declare it with `(let {} …)`", excerpt(name));
    if near.is_empty() {
        message.hint(declare)
    } else {
        message.hint(format!("nearest: {}; or {declare}", quoted(&near))).maybe_safe(certain)
    }
}

/// Lists the error codes with their meanings.
fn failures() -> String {
    let all = Code::ALL.iter().filter(|code| !code.is_success());
    let all = all.filter_map(|code| Some(format!("{} ({})", code.name()?, code.meaning())));
    all.collect::<Vec<_>>().join(", ")
}

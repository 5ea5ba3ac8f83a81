//! Messages about values of the wrong type, and messages of the traps that checks in lowered code
//! raise.

use crate::diagnose::truncate::excerpt;
use crate::diagnose::wording::{Message, counted, message, quoted};
use crate::types::{Elem, Type, Val};

messages! {
    /// Warns about a quoted character in output, where it becomes the digits of its code. `string`
    /// is the string literal with this character.
    character_as_digits(text: &str, code: u32, string: &str) "character-code"
        "`{text}` is the code of a character: it becomes `{code}`"
        => "for the character, write `{string}`";
    /// Reports that the values of branches have no common type.
    branches(first: Type, found: Type, line: u32) "value-type"
        "this branch returns {found}, but the branch in line {line} returns {first}"
        => "let all branches return values of one type"
        where found = found.described(), first = first.described();
    /// Reports that the results of a function have no common type.
    two_results(found: Type, known: Type, line: u32) "value-type"
        "this result is {found}, but the result in line {line} is {known}"
        => "let the function return values of one type"
        where found = found.described(), known = known.described();
    /// Reports a function that contains a `return` with a value but does not end with a value.
    missing_last_value(name: &str, ty: Type, line: u32) "value-type"
        "`{name}` returns {ty} in line {line}, but its end has no value"
        => "end the function with a value" where name = excerpt(name), ty = ty.described();
    /// Reports a `return` without a value in a function that returns one.
    return_without_value(ty: Type, line: u32) "value-type"
        "this `return` has no value, but the function returns {ty} in line {line}"
        => "write `(return V)`" where ty = ty.described();
    /// Reports a function whose parameter types cannot be inferred, because its types and those of
    /// other functions depend on each other.
    unsettled() "value-type"
        "the types of this function's parameters cannot be inferred"
        => "declare them: `(fn $f (($a int) ($b str)) …)`";
    /// Warns about a quotient of integers that is converted to a float.
    integer_quotient(a: &str, b: &str) "integer-quotient"
        "`(/ {a} {b})` divides integers, so it has no fraction when it becomes a float"
        => "for a fraction, write `(/ (float {a}) {b})`" where a = excerpt(a), b = excerpt(b);
    /// Warns about a `set` that changes `name` and then sets `other` to an expression that contains
    /// `name`.
    set_in_order(name: &str, other: &str) "set-in-order"
        "`set` works in order, so the value of `{other}` contains the new `{name}`"
        => "for the old one, keep it first: `(let $old {name})`"
        where name = excerpt(name), other = excerpt(other);
    /// Warns about a function that is never called.
    unused_function(name: &str) "unused-function"
        "nothing calls `{name}`" => "call it, `({name} …)`, or remove it";
    /// Warns about an address inside the length field of a string.
    address_of_length(text: &str) "address-of-length"
        "the first 4 bytes at `{text}` are its length, its text begins at `(+ {text} 4)`"
        => "`(str.byte {text} I)` returns a byte" where text = excerpt(text);
    /// Reports a wrong number of operands for an `if` without `then`.
    if_operands(found: usize) "form-operands"
        "`if` takes a condition and one or two forms, found {found}"
        => "write `(if C (then …) (else …))` for several forms, or `(when C …)`"
        where found = counted(found, "operand");
    /// Reports a wrong number of operands for `map`.
    map_operands(found: usize) "form-operands"
        "`map` takes keys and values in pairs, found {found}" => "write `(map K V …)`"
        where found = counted(found, "operand");
    /// Reports a `match` whose group names are not in a list.
    group_names(found: &str) "form-operands"
        "`match` takes the names of the groups in parentheses, found `{found}`"
        => "write `(match S r\"(a)(b)\" ($a $b) …)`; `()` for no groups"
        where found = excerpt(found);
    /// Reports a `for` loop with a step of 0.
    zero_step() "form-operands"
        "the step of `for` is 0, so the loop would never end";
    /// Reports a number that is not a byte.
    not_a_byte(text: &str) "bad-number"
        "`{text}` is not a byte (0 to 255)" where text = excerpt(text);
    /// Reports an unknown variable.
    unknown_variable(name: &str) "unknown-local"
        "no variable `{name}`" where name = excerpt(name);
    /// Reports a list in brackets where a value is expected.
    bracket_list() "form-operands"
        "`[…]` is a list of numbers or names, not a value"
        => "write `(arr \"a\" \"b\")` for an array, `(ints [1 2])` for an array of numbers";
    /// Reports that two arguments are swapped.
    operands_swapped(signature: &crate::Signature) "value-type"
        "two arguments of `{signature}` are swapped";
    /// Reports an operand of the wrong type. If the operand is a variable, `declared` is the line of
    /// its declaration.
    operand(head: &str, text: &str, found: Type, want: Type, declared: Option<u32>) "value-type"
        "`{text}` is {ty}{since}, but `{head}` takes {wanted}"
        => match (found, want) {
            (Type::Code, Type::Str) =>
                "`(fmt \"{{e}}\" {text})` is the name of the code; `catch` names the value first: \
                 `(catch $value $code CALL)`",
            (Type::Str, Type::Int | Type::Long) if !text.starts_with('"') => "write `(int {text})`",
            (Type::Str, Type::Float) => "write `(float {text})`",
            (Type::Arr, Type::Str) =>
                "write `(str.join {text} \", \")`; `arr.to_json` converts it to JSON",
            (Type::Map, Type::Str) => "`map.to_json` converts it to JSON",
            (Type::Numbers(_), Type::Str) => "loop over it: `(each $n {text} …)`",
            (_, Type::Code) =>
                "a code is a name such as `ENOENT`, or the `$e` that `(catch $v $e CALL)` sets; \
                 after WAT's `call`, the code is on top of the value and is popped first",
            (Type::Str, Type::Arr) => "write `(str.split {text} \",\")`",
            (Type::Map, Type::Arr) => "write `(map.keys {text})`",
            (Type::Arr | Type::Map | Type::Numbers(_), Type::Int | Type::Long) =>
                "`(len {text})` is its length",
            (Type::Long, Type::Int) =>
                "an int has 32 bits: make the other values longs, or write `(int {text})`, which \
                 ends the program if the long does not fit",
            (Type::Float, Type::Int | Type::Long) =>
                "`({to} {text})` drops the fraction; `math.round`, `math.floor` and `math.ceil` \
                 return a whole float, to convert in the same way",
            (Type::Long, Type::Float) =>
                "a float holds longs up to 2^53 exactly; `(float {text})` rounds above that",
            _ => none,
        } where text = excerpt(text), ty = found.described(), wanted = want.described(),
        to = want.name(), since = declared.map_or(String::new(), |line| format!(" (line {line})"));
    /// Reports a quoted character where a string is expected. `string` is the string literal with
    /// this character.
    character_as_string(text: &str, string: &str) "value-type"
        "`{text}` is the code of a character, an int, but a string is expected"
        => "write `{string}`; `(str.from_int {text})` is the code in digits"
        fix replace_with(string);
    /// Reports an operand that is not a number, although the operator takes numbers.
    not_a_number(head: &str, text: &str, found: Type, all: &[&str]) "value-type"
        "`{text}` is {ty}, but `{head}` takes numbers"
        => match (found) {
            Type::Str if head == "+" =>
                "join strings with `(str {all})`; `(int {text})` is its number",
            Type::Str if head == "*" =>
                "write `(int {text})` or `(float {text})`; `(str.repeat {text} N)` repeats a string",
            Type::Str => "write `(int {text})` or `(float {text})`",
            Type::Arr | Type::Map => "`(len {text})` is its length",
            _ => none,
        } where text = excerpt(text), ty = found.described(),
        all = all.iter().map(|text| excerpt(text)).collect::<Vec<_>>().join(" ");
    /// Reports a part of a variable whose value has no parts.
    part_of(text: &str, found: Type) "value-type"
        "`{text}` is a part of a value, but the variable is {ty}"
        => match (found) {
            Type::Str => "write `(json …)` where it is set, to read the value of a JSON text",
            Type::Map => "write `(put $m \"key\" V)`",
            _ => none,
        } where ty = found.described();
    /// Reports a function whose result is no condition.
    test_result(found: Type) "value-type"
        "the function's result decides, so it is a condition, but this is {ty}"
        where ty = found.described();
    /// Reports number operands that have no common type.
    mixed_numbers(head: &str, a: &str, first: Type, b: &str, second: Type) "value-type"
        "`{head}` takes numbers of one type, but `{a}` is {a_type} and `{b}` is {b_type}"
        => match (first, second) {
            (Type::Long, Type::Float) =>
                "a float holds longs up to 2^53 exactly; `(float {a})` rounds above that",
            (Type::Float, Type::Long) =>
                "a float holds longs up to 2^53 exactly; `(float {b})` rounds above that",
            _ => none,
        } where a = excerpt(a), a_type = first.described(), b = excerpt(b),
        b_type = second.described();
    /// Reports values that cannot be compared.
    not_comparable(head: &str, a: &str, first: Type, b: &str, second: Type) "value-type"
        "`{head}` cannot compare `{a}`, which is {a_type}, with `{b}`, which is {b_type}"
        => match (first, second) {
            (Type::Str, _) if matches!(b.as_str(), "nil" | "null" | "None" | "undefined") =>
                "a string is never {b}: write `({head} {a} \"\")`; a call that fails is tested with \
                 `(catch $v $e CALL)`, or replaced with `(default CALL D)`",
            (Type::Str, other) | (other, Type::Str) if other.is_number() =>
                "convert one of them: `(int …)`, `(float …)` or `(fmt \"{{}}\" …)`",
            (Type::Str, Type::I32) | (Type::I32, Type::Str) =>
                "if both are strings, write `(str.eq {a} {b})`",
            (Type::Arr, _) | (_, Type::Arr) =>
                "compare `(arr.to_json …)` of both, or their items in a loop",
            (Type::Map, _) | (_, Type::Map) =>
                "compare `(map.to_json …)` of both, or their values in a loop",
            _ => none,
        } where a = excerpt(a), a_type = first.described(), b = excerpt(b),
        b_type = second.described();
    /// Reports that a variable is set to a value of a different type.
    set_type(name: &str, known: Type, found: Type, line: u32) "value-type"
        "`{name}` is {declared} (line {line}), but this is {ty}"
        => match (known, found) {
            (Type::Int | Type::Long, Type::Float) =>
                "declare it as a float in line {line}: `(let {name} 0.0)`",
            (Type::Int, Type::Long) => "declare it as a long in line {line}: `(let {name} long 0)`",
            (Type::Str, found) if found.is_number() =>
                "write `(set {name} (fmt \"{{}}\" …))`, or use another name",
            (Type::Int, Type::Str) => "write `(int …)`, or use another name for the string",
            _ => "use another name, or declare it anew: `(let {name} …)`",
        } where name = excerpt(name), declared = known.described(), ty = found.described();
    /// Reports an update, such as `+=`, of a variable that is not a number.
    update_of(head: &str, name: &str, found: Type) "value-type"
        "`{name}` is {ty}, but `{head}` takes a number"
        => match (found) {
            Type::Str => "write `(append {name} \"{{}}\" …)`",
            Type::Arr => "write `(push {name} …)`",
            _ => none,
        } where name = excerpt(name), ty = found.described();
    /// Reports a target of `append` that is not a string.
    append_to(name: &str, found: Type) "value-type"
        "`{name}` is {ty}, but `append` takes a string"
        => match (found) {
            Type::Arr => "write `(push {name} …)`",
            _ => none,
        } where name = excerpt(name), ty = found.described();
    /// Reports an operand whose type a form does not accept.
    generic(head: &str, usage: &str, text: &str, found: Type) "value-type"
        "`{text}` is {ty}, which `{head}` does not take"
        => match (found, head) {
            (Type::I32, "len") => "use `str.len`, `arr.len` or `map.len`, which take an i32",
            (Type::I32, "at") => "use `arr.get` or `map.get`, which take an i32",
            (Type::I32, "put") => "use `arr.set` or `map.set`, which take an i32",
            (Type::I32, "has") => "use `str.contains`, `arr.has` or `map.has`, which take an i32",
            (Type::I32, _) => "use the function of its type, such as `arr.push`, which takes an i32",
            (Type::Str, "at") =>
                "`(str.byte {text} I)` is a byte, `(str.slice {text} I J)` a part of a string",
            (Type::Map, "push") => "`(put {text} K V)` sets a key; `map.push` adds to a list",
            (Type::Numbers(_), "push") => "its size is fixed: use `(put X I V)`, or an `arr`",
            _ => "write `{usage}`",
        } where text = excerpt(text), ty = found.described();
    /// Reports an operand of `each` that is not a collection.
    not_a_collection(text: &str, found: Type) "value-type"
        "`{text}` is {ty}, but `each` takes an array or a map"
        => match (found) {
            Type::Str =>
                "`(str.lines {text})` are its lines, `(str.words {text})` its words, `(str.chars \
                 {text})` its characters",
            found if found.is_number() => "count with `(for $i 0 {text} …)`",
            _ => none,
        } where text = excerpt(text), ty = found.described();
    /// Reports that arguments for the same parameter have no common type.
    two_arguments(param: &str, name: &str, found: Type, known: Type, line: u32) "value-type"
        "this argument `{param}` of `{name}` is {ty}, but in line {line} it is {declared}"
        => "convert one of them, or declare the parameter: `({param} {word})`"
        where param = excerpt(param), name = excerpt(name), ty = found.described(),
        declared = known.described(), word = known.name();
    /// Reports a wrong number of arguments to a function declared with `fn`.
    fn_operands(name: &str, params: &[&str], found: usize) "operand-count"
        "`{name}` takes {wanted}, found {found}"
        => match (params) {
            [] => none,
            _ => "its parameters are {names}",
        } where name = excerpt(name), wanted = counted(params.len(), "argument"),
        names = quoted(params);
    /// Reports a program that ends with a value that is not an error code.
    returned_value(found: Type, text: &str) "returned-value"
        "the program returns its error code, but `{text}` is {ty}"
        => match (found) {
            Type::Str => "write `(ret {text})` to output it and succeed",
            _ => "output it with `out`, and end with 0",
        } where text = excerpt(text), ty = found.described();
    /// Reports a value that a `fmt` placeholder does not accept.
    placeholder(text: &str, found: Type, placeholder: &str) "value-type"
        "`{text}` is {ty}, which `{placeholder}` does not take"
        => match (found) {
            Type::Arr => "write `(str.join {text} \", \")`",
            Type::Map => "write `(map.to_json {text})`",
            Type::Numbers(_) => "loop over it: `(each $n {text} …)`",
            Type::Str if placeholder == "{.N}" => "write `(float {text})`",
            Type::Long if placeholder == "{.N}" =>
                "`{{}}` formats a long; only floats have digits after the point",
            _ => "`{{}}` takes strings, numbers and error codes",
        } where text = excerpt(text), ty = found.described();
}

impl Message {
    /// Adds a hint to call `function` instead.
    pub(crate) fn use_function(self, function: &str) -> Message {
        self.hint(format!("write `({function} …)`"))
    }
}

/// Returns the trap message for a `for` loop with a step of 0.
pub(crate) fn zero_step_trap() -> String {
    "the step of `for` is 0, so the loop would never end".to_owned()
}

/// Returns the trap message for a result that does not fit in its type. In the message, `{a}` and
/// `{b}` are placeholders for the operands.
pub(crate) fn overflow(operator: &str, val: Val) -> String {
    match val {
        Val::I64 => format!("{{a}} {operator} {{b}} does not fit in a long (64 bits)"),
        _ => format!(
            "{{a}} {operator} {{b}} does not fit in an int (32 bits); declare a long: (let $x \
             long V)"
        ),
    }
}

/// Returns the trap message for a shift by too many bits, or for a shift whose result does not fit.
pub(crate) fn shift(left: bool, val: Val) -> String {
    let (ty, last, long) = match val {
        Val::I64 => ("a long (64 bits)", 63, ""),
        _ => ("an int (32 bits)", 31, "; declare a long: (let $x long V)"),
    };
    if left {
        format!("{{a}} << {{b}} does not fit in {ty}, which shifts by 0 to {last}{long}")
    } else {
        format!("{{a}} >> {{b}}: {ty} shifts by 0 to {last}{long}")
    }
}

/// Returns the trap message for an index out of bounds. In the message, `{a}` is a placeholder for
/// the index, and `{b}` for the length.
pub(crate) fn outside_array(text: &str, elem: Elem) -> String {
    let text = excerpt(text).replace(['{', '}'], " ");
    format!("`{text}` has {{b}} {}, from index 0, so it has no index {{a}}", elem.plural())
}

/// Returns the trap message for an array that is too large.
pub(crate) fn array_size(elem: Elem) -> String {
    format!("an array cannot have {{a}} {}; the most are {{b}}", elem.plural())
}

/// Returns the trap message for a number that is not a byte.
pub(crate) fn wide_byte() -> String {
    "{a} is not a byte (0 to 255)".to_owned()
}

/// Returns the trap message for a long that does not fit in an int.
pub(crate) fn wide_int() -> String {
    "{a} does not fit in an int (32 bits); keep it as a long".to_owned()
}

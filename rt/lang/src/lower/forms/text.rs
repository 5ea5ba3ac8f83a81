//! Strings with placeholders: `fmt` and `append`.

use super::{all_operands, operand_count};
use crate::diagnose::fix::{Change, Edits};
use crate::diagnose::wording::{self, Fault, form, types as type_wording};
use crate::lower::flow::{Context, Lowered, Want};
use crate::lower::output::Wat;
use crate::lower::{CodeResult, LowerResult, Lowering};
use crate::syntax::tree::{NodeId, Tree};
use crate::types::Type;

/// A piece of a template: literal text or a placeholder.
enum Piece {
    Text(Vec<u8>),
    /// `{}`: a string, a number or an error code.
    Any,
    /// `{i}`: an integer in decimal.
    Int,
    /// `{e}`: the name of an error code.
    Code,
    /// `{.N}`: a float with N digits after the decimal point.
    Float(u32),
    /// Any other format, such as `{>8}`.
    Spec(String),
}

/// The pieces of a template, or the text of an invalid placeholder.
type Pieces = Result<Vec<Piece>, String>;

impl<'s> Lowering<'_, 's> {
    /// Lowers `(fmt "{} has {}" $name $n)`, which formats a string.
    pub(super) fn lower_fmt(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let nodes = all_operands(self.tree, list);
        let Some((template, values)) = nodes.split_first() else {
            return Err(operand_count(self.tree, list, 1, 0));
        };
        let strings = self.strings(list, *template, values)?;
        Ok(Lowered::one(self.joined(list, strings)?, Type::Str))
    }

    /// Returns code that formats a string, for a form that accepts a template and values in place
    /// of a string. Returns `None` for any other operands.
    pub(super) fn formatted(
        &mut self,
        list: NodeId,
        operands: &[NodeId],
    ) -> LowerResult<Option<Wat<'s>>> {
        match operands {
            [template, values @ ..] if !values.is_empty() && self.tree.is_text(*template) => {
                let strings = self.strings(list, *template, values)?;
                self.joined(list, strings).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Returns code for the text that `out` and `ret` print: a template with its values, or the
    /// operands as text, with a space between them.
    pub(super) fn printed(&mut self, list: NodeId, operands: &[NodeId]) -> LowerResult<Wat<'s>> {
        let [first, rest @ ..] = operands else {
            return Err(operand_count(self.tree, list, 1, 0));
        };
        if !rest.is_empty()
            && let Some(pieces) = self.template(*first, rest.len())?
        {
            let strings = self.placeholders_of(list, *first, pieces, rest)?;
            return self.joined(list, strings);
        }
        if !rest.is_empty() && !self.tree.open.is_empty() {
            return Err(operand_count(self.tree, list, 1, operands.len()));
        }
        let mut strings = vec![self.text_of(list, *first)?];
        for node in rest {
            strings.push(Wat::literal(*node, &b" "[..]));
            strings.push(self.text_of(list, *node)?);
        }
        self.joined(list, strings)
    }

    /// Returns the pieces of a string literal that `count` values follow, if it is a template: it has
    /// placeholders, perhaps those of another language.
    fn template(&mut self, node: NodeId, count: usize) -> LowerResult<Option<Pieces>> {
        if !self.tree.is_text(node) {
            return Ok(None);
        }
        let pieces = pieces(&self.text_value(node)?);
        let is_template = match &pieces {
            Ok(pieces) => {
                pieces.iter().any(|piece| !matches!(piece, Piece::Text(_)))
                    || rewrite_percent(self.tree, node, 0, count).is_some()
            }
            Err(_) => true,
        };
        Ok(is_template.then_some(pieces))
    }

    /// Lowers `(append $s "{}" V …)`, which appends formatted text to a string.
    pub(super) fn lower_append(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let nodes = all_operands(self.tree, list);
        let [target, template, values @ ..] = nodes.as_slice() else {
            return Err(operand_count(self.tree, list, 2, nodes.len()));
        };
        let name = self.target_name(list, *target)?;
        let variable = self.target_variable(*target, name, *template)?;
        if !matches!(variable.ty, Type::Str | Type::Val) && !variable.ty.is_vague() {
            return self.fault(*target, type_wording::append_to(name, variable.ty));
        }
        let strings = self.strings(list, *template, values)?;
        let added = self.joined(list, strings)?;
        if variable.ty == Type::Val {
            let before = self.unboxed(list, *target, variable.read(list), Type::Str)?;
            let [join, ended] = self.cat(list)?;
            let whole = Wat::sequence(list, [before, added, join, ended]);
            let handle = self.boxed(list, whole, Type::Str)?;
            return Ok(Lowered::none(variable.write(list, Some(handle))));
        }
        self.record_set(variable.at, Type::Str);
        Ok(Lowered::none(self.append_to(list, &variable, added)?))
    }

    /// Returns code that joins strings in order.
    pub(super) fn joined(&mut self, list: NodeId, strings: Vec<Wat<'s>>) -> LowerResult<Wat<'s>> {
        let mut pieces: Vec<Wat<'s>> = Vec::new();
        for string in strings {
            let is_first = pieces.is_empty();
            pieces.push(string);
            if !is_first {
                pieces.extend(self.cat(list)?);
            }
        }
        if pieces.is_empty() {
            pieces.push(Wat::literal(list, &b""[..]));
        }
        Ok(Wat::sequence(list, pieces))
    }

    /// Returns the code for each part of a template: the strings between the placeholders, and the
    /// values that replace the placeholders. `append` also accepts a value instead of a template.
    fn strings(
        &mut self,
        list: NodeId,
        template: NodeId,
        values: &[NodeId],
    ) -> LowerResult<Vec<Wat<'s>>> {
        let tree = self.tree;
        if !tree.is_text(template) {
            if tree.head(list) == Some("append") && values.is_empty() {
                return Ok(vec![self.placeholder_value(list, &Piece::Any, template, None)?]);
            }
            return self.fault(template, form::fmt_template(tree.text(template)));
        }
        let pieces = pieces(&self.text_value(template)?);
        self.placeholders_of(list, template, pieces, values)
    }

    /// Returns the code for each piece of a template.
    fn placeholders_of(
        &mut self,
        list: NodeId,
        template: NodeId,
        pieces: Pieces,
        values: &[NodeId],
    ) -> LowerResult<Vec<Wat<'s>>> {
        let tree = self.tree;
        let pieces = match pieces {
            Ok(pieces) => pieces,
            Err(found) => {
                let change = self.rewrite_placeholders(list, template, values);
                return self.fault(template, form::fmt_placeholder(&found).maybe_safe(change));
            }
        };
        self.warn_of_template(template, true);
        let count = pieces.iter().filter(|piece| !matches!(piece, Piece::Text(_))).count();
        if count != values.len() {
            let message = if values.len() > count && !tree.open.is_empty() {
                wording::unclosed_form("fmt", None)
            } else {
                form::fmt_count(count, values.len()).maybe_safe(rewrite_percent(
                    tree,
                    template,
                    count,
                    values.len(),
                ))
            };
            return self.fault(list, message);
        }
        let spans = placeholders(tree, template);
        let mut values = values.iter();
        let mut spans = spans.into_iter();
        let mut strings = Vec::new();
        for piece in pieces {
            if let Piece::Text(bytes) = piece {
                strings.push(Wat::literal(template, bytes));
                continue;
            }
            let Some(node) = values.next() else { continue };
            let span = spans.next().map(|(span, _)| span);
            strings.push(self.placeholder_value(list, &piece, *node, span)?);
        }
        Ok(strings)
    }

    /// Returns code that converts a value to a string, as its placeholder requires. `span` is the
    /// range of the placeholder.
    fn placeholder_value(
        &mut self,
        list: NodeId,
        placeholder: &Piece,
        node: NodeId,
        span: Option<std::ops::Range<usize>>,
    ) -> LowerResult<Wat<'s>> {
        let want = match placeholder {
            Piece::Float(_) if self.is_number(node) => Want::Type(Type::Float),
            _ => Want::Any,
        };
        if matches!(placeholder, Piece::Any) {
            self.check_character(list, node)?;
        }
        let out = self.value(list, node, want)?;
        let found = out.ty;
        match (placeholder, found) {
            (Piece::Float(digits), _) if found.is_int() || found == Type::Float => {
                let value = self.convert(list, node, out, Type::Float)?.wat;
                return self.number_text(node, value, Type::Float, Some(*digits));
            }
            (Piece::Any, Type::Str | Type::I32 | Type::Any) => return Ok(out.wat),
            (Piece::Any, Type::Val | Type::Arr | Type::Map | Type::Null) => {
                return self.text_of_lowered(list, node, out);
            }
            (Piece::Int, Type::Val) => {
                let value = self.unboxed(list, node, out.wat, Type::Long)?;
                return self.number_text(node, value, Type::Long, None);
            }
            (Piece::Code, Type::Val) => {
                let value = self.unboxed(list, node, out.wat, Type::Int)?;
                return self.host_call(node, "sys.code_name", [value]);
            }
            (Piece::Float(digits), Type::Val | Type::Long) => {
                let spec = Wat::literal(node, format!(".{digits}").into_bytes());
                let value = self.boxed(node, out.wat, found)?;
                return self.value_call(node, "format", [value, spec]);
            }
            (Piece::Spec(spec), found) if found.is_shaped() => {
                let spec = Wat::literal(node, spec.clone().into_bytes());
                let value = self.boxed(node, out.wat, found)?;
                return self.value_call(node, "format", [value, spec]);
            }
            (Piece::Any, Type::Int | Type::Bool | Type::Code | Type::Long | Type::Float) => {
                return self.number_text(node, out.wat, found, None);
            }
            (
                Piece::Int,
                Type::Int | Type::Bool | Type::Code | Type::Long | Type::I32 | Type::Any,
            )
            | (Piece::Int, Type::Arr | Type::Map) => {
                return self.number_text(node, out.wat, found, None);
            }
            (Piece::Code, Type::Int | Type::Code | Type::I32 | Type::Any) => {
                return self.host_call(node, "sys.code_name", [out.wat]);
            }
            _ => {}
        }
        // `{}` takes any string or number, so it is probably what the author meant.
        let fits = found == Type::Str || found.is_number();
        let change = match (placeholder, found) {
            (Piece::Float(_), Type::Str) => {
                self.host.get("str.to_float").map(|_| Change::wrap("(float ", ")"))
            }
            _ => span.filter(|_| fits).map(|span| Change::edit(span, "{}")),
        };
        let message = type_wording::placeholder(self.tree.text(node), found, placeholder.text());
        Err(Fault::at(self.tree, node, message.maybe_safe(change)))
    }

    /// Returns the change that replaces placeholders from other languages with those of `fmt`, or
    /// `None` if the meaning of a placeholder is unclear.
    ///
    /// `{name}` is replaced with a placeholder for the local with this name. Numbered placeholders
    /// such as `{0}` are replaced if their numbers are in order. `{s}`, `{d}` and `{:.2f}` are
    /// replaced with their equivalents. Braces that do not begin a placeholder are doubled.
    fn rewrite_placeholders(
        &self,
        list: NodeId,
        template: NodeId,
        values: &[NodeId],
    ) -> Option<Edits> {
        let tree = self.tree;
        let mut edits = Edits::default();
        let mut names = String::new();
        for (count, (span, inside)) in placeholders(tree, template).into_iter().enumerate() {
            let local = format!("${}", inside.trim_start_matches('$'));
            let word = inside.trim_start_matches(':').trim_end_matches('f');
            let written = match inside {
                "" | "i" | "e" => None,
                _ if inside.starts_with('.')
                    && inside.get(1..).is_some_and(|digits| digits.parse::<u32>().is_ok()) =>
                {
                    None
                }
                "s" | ":s" | "str" if values.len() > count => Some("{}".to_owned()),
                "d" | ":d" | "int" | "n" if values.len() > count => Some("{i}".to_owned()),
                _ if inside.parse() == Ok(count) && values.len() > count => Some("{}".to_owned()),
                _ if word.starts_with('.') && word.get(1..)?.parse::<u32>().is_ok() => {
                    Some(format!("{{{word}}}"))
                }
                // The operand in this position already is the variable with this name.
                _ if values.get(count).and_then(|value| tree.atom(*value)).is_some_and(
                    |value| value.trim_start_matches('$') == inside.trim_start_matches('$'),
                ) =>
                {
                    Some("{}".to_owned())
                }
                _ if named_digits(inside).is_some_and(|(name, _)| {
                    values.is_empty() && self.func.scope.get(&format!("${name}")).is_some()
                }) =>
                {
                    let (name, digits) = named_digits(inside)?;
                    names.push_str(&format!(" ${name}"));
                    Some(format!("{{.{digits}}}"))
                }
                _ if inside.contains([':', '[', '(', '.']) && !inside.contains(['"', '\'']) => {
                    return None;
                }
                _ if self.func.scope.get(&local).is_some() && values.is_empty() => {
                    names.push(' ');
                    names.push_str(&local);
                    Some("{}".to_owned())
                }
                // JSON contains quotes in its braces.
                _ if tree.text(template).contains("\\\"") || inside.contains(['"', '\'']) => {
                    return double_braces(tree, template);
                }
                _ => return None,
            };
            if let Some(written) = written {
                edits.add(span, written);
            }
        }
        let end = tree.end(list).checked_sub(1)?;
        if !names.is_empty() {
            edits.add(end..end, names);
        }
        edits.nonempty()
    }
}

impl Piece {
    /// Returns the placeholder in the form shown in messages.
    fn text(&self) -> &'static str {
        match self {
            Piece::Text(_) => "",
            Piece::Any => "{}",
            Piece::Int => "{i}",
            Piece::Code => "{e}",
            Piece::Float(_) => "{.N}",
            Piece::Spec(_) => "{>8}",
        }
    }
}

/// Splits `x:.2f` into the name and the number of digits.
fn named_digits(inside: &str) -> Option<(&str, u32)> {
    let (name, format) = inside.split_once(':')?;
    let digits = format.strip_prefix('.')?.trim_end_matches('f').parse().ok()?;
    let name = name.trim().trim_start_matches('$');
    (!name.is_empty()).then_some((name, digits))
}

/// Returns the change that doubles the JSON braces in a template: those that do not begin a
/// placeholder, and the matching closing braces. Returns `None` if the braces do not match.
fn double_braces(tree: &Tree<'_>, template: NodeId) -> Option<Edits> {
    let text = tree.text(template);
    let start = tree.start(template);
    let mut edits = Edits::default();
    let mut open = 0_usize;
    let mut at = 0;
    while let Some(found) =
        text.get(at..).and_then(|rest| rest.find(['{', '}'])).map(|found| at + found)
    {
        let rest = text.get(found..)?;
        let placeholder = ["{}", "{i}", "{e}", "{{", "}}"]
            .into_iter()
            .find(|placeholder| rest.starts_with(placeholder));
        at = found + placeholder.map_or(1, str::len);
        match placeholder {
            Some("}}") if open > 0 => {
                // Both characters close doubled braces.
                edits.add(start + found..start + found + 2, "}}}}");
                open = open.checked_sub(2)?;
            }
            Some(_) => {}
            None if rest.starts_with('{') => {
                open += 1;
                edits.add(start + found..start + found + 1, "{{");
            }
            None => {
                open = open.checked_sub(1)?;
                edits.add(start + found..start + found + 1, "}}");
            }
        }
    }
    edits.nonempty().filter(|_| open == 0)
}

/// Returns the change that replaces `%s`, `%d`, `%.2f` and `~a` with placeholders. Returns `None`
/// if the template already has placeholders, or if the number of replacements differs from the
/// number of values.
fn rewrite_percent(
    tree: &Tree<'_>,
    template: NodeId,
    placeholders: usize,
    values: usize,
) -> Option<Edits> {
    let text = tree.text(template);
    let start = tree.span(template).start;
    let mut count = 0;
    let found: Edits = text
        .match_indices(['%', '~'])
        .filter_map(|(at, sign)| {
            let rest = text.get(at + 1..)?;
            let (placeholder, length) = match (sign, rest.get(..1)?) {
                ("%", "s" | "v" | "f" | "g") | ("~", "a" | "A" | "s" | "S") => ("{}".to_owned(), 2),
                ("%", "d" | "i" | "u") | ("~", "d" | "D") => ("{i}".to_owned(), 2),
                ("%", ".") => {
                    let digits = rest.get(1..).filter(|rest| rest.get(1..2) == Some("f"))?;
                    (format!("{{.{}}}", digits.get(..1)?.parse::<u32>().ok()?), 4)
                }
                // A line break.
                ("~", "%" | "n") => return Some((start + at..start + at + 2, "\\n".to_owned())),
                _ => return None,
            };
            count += 1;
            Some((start + at..start + at + length, placeholder))
        })
        .collect();
    (placeholders == 0 && count == values && values > 0).then_some(found)
}

/// Splits a template into literal text and placeholders. If a placeholder is invalid, the error is
/// the placeholder's text.
fn pieces(template: &[u8]) -> Pieces {
    let mut pieces = Vec::new();
    let mut text = Vec::new();
    let mut rest = template;
    let mut count = 0;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after.first()) {
            (b'{', Some(b'{')) | (b'}', Some(b'}')) => {
                text.push(*byte);
                rest = after.get(1..).unwrap_or(&[]);
            }
            (b'{', _) => {
                let Some(end) = after.iter().position(|byte| *byte == b'}') else {
                    return Err(shown(after.get(..after.len().min(12)).unwrap_or(&[]), ""));
                };
                let inside = after.get(..end).unwrap_or(&[]);
                let placeholder = placeholder(inside, count).ok_or_else(|| shown(inside, "}"))?;
                count += 1;
                if !text.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut text)));
                }
                pieces.push(placeholder);
                rest = after.get(end + 1..).unwrap_or(&[]);
            }
            _ => text.push(*byte),
        }
    }
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

/// Parses a placeholder. `count` is the number of those before it: `{0}` and `{1}` are numbers of
/// operands, as other languages write them.
fn placeholder(inside: &[u8], count: usize) -> Option<Piece> {
    match inside {
        b"" => Some(Piece::Any),
        b"i" => Some(Piece::Int),
        b"e" => Some(Piece::Code),
        [b'.', digits @ ..] => match std::str::from_utf8(digits).ok()?.parse() {
            Ok(digits @ 0..=17) => Some(Piece::Float(digits)),
            _ => spec(inside),
        },
        _ if std::str::from_utf8(inside).ok()?.parse() == Ok(count) => None,
        [b'a'..=b'z'] | [b'0'] => None,
        _ => spec(inside),
    }
}

/// Parses a format such as `>8`.
fn spec(inside: &[u8]) -> Option<Piece> {
    let text = std::str::from_utf8(inside).ok()?;
    crate::FormatSpec::parse(text).ok().map(|_| Piece::Spec(text.to_owned()))
}

fn shown(inside: &[u8], end: &str) -> String {
    format!("{{{}{end}", String::from_utf8_lossy(inside))
}

/// Returns the range of each placeholder in a template, including the braces, and the text between
/// the braces.
fn placeholders<'s>(tree: &Tree<'s>, template: NodeId) -> Vec<(std::ops::Range<usize>, &'s str)> {
    let text = tree.text(template);
    let start = tree.span(template).start;
    let mut placeholders = Vec::new();
    let mut at = 0;
    while let Some(open) = text.get(at..).and_then(|rest| rest.find('{')).map(|found| at + found) {
        let rest = text.get(open + 1..).unwrap_or("");
        if rest.starts_with('{') {
            at = open + 2;
            continue;
        }
        let Some(end) = rest.find('}') else { break };
        placeholders.push((start + open..start + open + end + 2, rest.get(..end).unwrap_or("")));
        at = open + end + 2;
    }
    placeholders
}

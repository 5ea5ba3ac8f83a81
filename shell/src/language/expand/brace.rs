//! Braces: `{a,b}` and `{1..9..2}`, before anything else is expanded.

use crate::language::ast::Part;

/// How deep braces may stand in one another; deeper ones stand for themselves.
const DEPTH: u32 = 20;

/// A sign of a word: a plain character, or a part that braces take as it is.
#[derive(Clone, Debug)]
enum Sign {
    Plain(char),
    Whole(Part),
}

impl Sign {
    fn is(&self, c: char) -> bool {
        matches!(self, Sign::Plain(own) if *own == c)
    }
}

/// The words that braces make of one, in order; nothing where they are more than `most`.
pub(super) fn expand(parts: &[Part], most: usize) -> Option<Vec<Vec<Part>>> {
    let mut signs = Vec::new();
    for part in parts {
        match part {
            Part::Literal(text) => signs.extend(text.chars().map(Sign::Plain)),
            other => signs.push(Sign::Whole(other.clone())),
        }
    }
    let words = all(&signs, most, 0)?;
    Some(words.into_iter().map(parts_of).collect())
}

fn all(signs: &[Sign], most: usize, depth: u32) -> Option<Vec<Vec<Sign>>> {
    let mut words = vec![Vec::new()];
    let mut at = 0;
    while let Some(sign) = signs.get(at) {
        let choices = if sign.is('{') && depth < DEPTH { choices(signs, at) } else { None };
        match choices {
            Some((choices, after)) => {
                let mut ends = Vec::new();
                for choice in choices {
                    match choice {
                        Choice::Signs(signs) => ends.extend(all(&signs, most, depth + 1)?),
                        Choice::Range(range) => ends.extend(range.texts(most)?),
                    }
                }
                if words.len().saturating_mul(ends.len()) > most {
                    return None;
                }
                words = words
                    .iter()
                    .flat_map(|word: &Vec<Sign>| ends.iter().map(move |end| [word.as_slice(), end].concat()))
                    .collect();
                at = after;
            }
            None => {
                for word in &mut words {
                    word.push(sign.clone());
                }
                at += 1;
            }
        }
    }
    Some(words)
}

enum Choice {
    Signs(Vec<Sign>),
    Range(Range),
}

/// The choices of the braces that open at `at`, and where they end.
fn choices(signs: &[Sign], at: usize) -> Option<(Vec<Choice>, usize)> {
    let mut depth = 0_u32;
    let mut commas = Vec::new();
    let mut end = None;
    for (place, sign) in signs.iter().enumerate().skip(at) {
        match sign {
            Sign::Plain('{') => depth += 1,
            Sign::Plain('}') => {
                depth -= 1;
                if depth == 0 {
                    end = Some(place);
                    break;
                }
            }
            Sign::Plain(',') if depth == 1 => commas.push(place),
            _ => {}
        }
    }
    let end = end?;
    if commas.is_empty() {
        let inside: Option<String> = signs
            .get(at + 1..end)?
            .iter()
            .map(|sign| if let Sign::Plain(c) = sign { Some(*c) } else { None })
            .collect();
        return Some((vec![Choice::Range(Range::read(&inside?)?)], end + 1));
    }
    let mut list = Vec::new();
    let mut from = at + 1;
    for comma in commas.into_iter().chain([end]) {
        list.push(Choice::Signs(signs.get(from..comma)?.to_vec()));
        from = comma + 1;
    }
    Some((list, end + 1))
}

/// `{from..to..step}`, of numbers or letters.
struct Range {
    from: i64,
    to: i64,
    step: u64,
    width: usize,
    letters: bool,
}

impl Range {
    fn read(text: &str) -> Option<Range> {
        let mut pieces = text.split("..");
        let (from, to, step) = (pieces.next()?, pieces.next()?, pieces.next());
        if pieces.next().is_some() {
            return None;
        }
        let step = match step {
            Some(step) => step.parse::<i64>().ok()?.unsigned_abs().max(1),
            None => 1,
        };
        if let (Ok(first), Ok(last)) = (from.parse::<i64>(), to.parse::<i64>()) {
            let padded = |text: &str| {
                let digits = text.trim_start_matches('-');
                if digits.len() > 1 && digits.starts_with('0') { text.len() } else { 0 }
            };
            let width = if padded(from) + padded(to) > 0 { from.len().max(to.len()) } else { 0 };
            return Some(Range { from: first, to: last, step, width, letters: false });
        }
        let letter = |text: &str| {
            let mut chars = text.chars();
            let first = chars.next().filter(char::is_ascii_alphabetic)?;
            chars.next().is_none().then_some(i64::from(u32::from(first)))
        };
        Some(Range { from: letter(from)?, to: letter(to)?, step, width: 0, letters: true })
    }

    fn texts(&self, most: usize) -> Option<Vec<Vec<Sign>>> {
        if self.from.abs_diff(self.to) / self.step >= most as u64 {
            return None;
        }
        let mut texts = Vec::new();
        let mut value = i128::from(self.from);
        let step = if self.from <= self.to { i128::from(self.step) } else { -i128::from(self.step) };
        while if step > 0 { value <= i128::from(self.to) } else { value >= i128::from(self.to) } {
            let text = match u8::try_from(value) {
                Ok(letter) if self.letters => char::from(letter).to_string(),
                _ => zero_padded(value, self.width),
            };
            texts.push(text.chars().map(Sign::Plain).collect());
            value += step;
        }
        Some(texts)
    }
}

/// Writes a number with zeros in front, at least `width` characters wide. The formatting of the
/// standard library panics at widths over 65,535, and a script's text decides this one.
fn zero_padded(value: i128, width: usize) -> String {
    let (sign, digits) = (if value < 0 { "-" } else { "" }, value.unsigned_abs().to_string());
    let zeros = width.saturating_sub(sign.len() + digits.len());
    [sign, &"0".repeat(zeros), &digits].concat()
}

fn parts_of(signs: Vec<Sign>) -> Vec<Part> {
    let mut parts = Vec::new();
    for sign in signs {
        match (sign, parts.last_mut()) {
            (Sign::Plain(c), Some(Part::Literal(text))) => text.push(c),
            (Sign::Plain(c), _) => parts.push(Part::Literal(c.into())),
            (Sign::Whole(part), _) => parts.push(part),
        }
    }
    parts
}

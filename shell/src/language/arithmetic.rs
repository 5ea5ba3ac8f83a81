//! Arithmetic on 64-bit integers that wrap around, with the operators of C and `**`.
//!
//! The expression is already expanded. Names in it are variables, and their values are also
//! evaluated as arithmetic.

use super::interpreter::Interpreter;

/// Maximum nesting depth of parentheses and of variables that refer to variables.
const MAX_DEPTH: u32 = 40;

/// Maximum number of steps in one evaluation. Each operator and each variable read counts as one
/// step. A long expression or variable value counts as several.
const MAX_STEPS: u64 = 100_000;

/// Number of bytes of an expression or a variable's value that count as one step.
const BYTES_PER_STEP: usize = 16;

/// The nesting depth and the number of steps of an evaluation, including the variables and
/// subscripts that it evaluates in turn.
#[derive(Default)]
pub(crate) struct Effort {
    depth: u32,
    steps: u64,
}

impl Effort {
    /// Returns the number of steps taken.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Counts steps. Fails with a message if their total exceeds [`MAX_STEPS`].
    fn spend(&mut self, steps: u64) -> Result<(), String> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > MAX_STEPS {
            return Err(format!("the expression takes more than {MAX_STEPS} steps"));
        }
        Ok(())
    }

    /// Counts the steps for reading an expression or a variable's value.
    fn spend_on(&mut self, text: &str) -> Result<(), String> {
        self.spend((text.len() / BYTES_PER_STEP) as u64)
    }
}

/// Evaluates an expression. An empty expression is 0.
pub(crate) fn evaluate(text: &str, shell: &mut Interpreter) -> Result<i64, String> {
    let mut effort = Effort::default();
    let result = evaluate_within(text, shell, &mut effort);
    shell.run.charge(effort.steps());
    result
}

/// Evaluates an expression as part of an evaluation in progress. Its nesting depth and steps are
/// added to those in `effort`.
pub(crate) fn evaluate_within(
    text: &str,
    shell: &mut Interpreter,
    effort: &mut Effort,
) -> Result<i64, String> {
    if effort.depth > MAX_DEPTH {
        return Err(format!("{}: expression recursion level exceeded", excerpt(text)));
    }
    effort.spend_on(text)?;
    effort.depth += 1;
    let result = parse(text, shell, effort);
    effort.depth -= 1;
    result
}

/// Parses an expression and computes its value.
fn parse(text: &str, shell: &mut Interpreter, effort: &mut Effort) -> Result<i64, String> {
    let mut evaluator =
        Evaluator { chars: text.chars().collect(), at: 0, skipping: 0, effort, shell };
    evaluator.skip_spaces();
    if evaluator.at == evaluator.chars.len() {
        return Ok(0);
    }
    let value = evaluator.comma()?;
    evaluator.skip_spaces();
    if evaluator.at < evaluator.chars.len() {
        let rest: String = evaluator.chars.iter().skip(evaluator.at).take(40).collect();
        return Err(format!(
            "{}: syntax error in expression (error token is \"{rest}\")",
            excerpt(text)
        ));
    }
    Ok(value)
}

/// Shortens an expression for a message.
fn excerpt(text: &str) -> String {
    wattle_rt::truncate(text.trim(), 80).into_owned()
}

struct Evaluator<'a> {
    chars: Vec<char>,
    at: usize,
    /// Number of enclosing operands that are not evaluated, such as the one after `0 &&`. While it
    /// is not 0, no variable is read or set.
    skipping: u32,
    effort: &'a mut Effort,
    shell: &'a mut Interpreter,
}

/// A variable or array element that can be assigned to.
struct Lvalue {
    name: String,
    index: Option<String>,
}

/// The binary operators with their precedence. Each operator is listed before its prefixes.
const BINARY: [(&str, u8); 20] = [
    ("||", 1),
    ("&&", 2),
    ("==", 6),
    ("!=", 6),
    ("<<", 8),
    (">>", 8),
    ("<=", 7),
    (">=", 7),
    ("**", 11),
    ("|", 3),
    ("^", 4),
    ("&", 5),
    ("<", 7),
    (">", 7),
    ("+", 9),
    ("-", 9),
    ("*", 10),
    ("/", 10),
    ("%", 10),
    ("=", 0),
];

/// The assignment operators. Each operator is listed before its prefixes.
const ASSIGNS: [&str; 11] = ["<<=", ">>=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "="];

impl Evaluator<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn skip_spaces(&mut self) {
        while self.peek(0).is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn looking_at(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(ahead, c)| self.peek(ahead) == Some(c))
    }

    fn take(&mut self, text: &str) -> bool {
        self.skip_spaces();
        let found = self.looking_at(text);
        if found {
            self.at += text.len();
        }
        found
    }

    /// Returns the message of a syntax error at the current position.
    fn syntax_error(&self, expected: &str) -> String {
        let whole = self.excerpt();
        let rest: String = self.chars.iter().skip(self.at).take(40).collect();
        let rest = if rest.is_empty() { &whole } else { &rest };
        format!("{whole}: syntax error: {expected} expected (error token is \"{rest}\")")
    }

    /// Returns the expression, shortened for a message.
    fn excerpt(&self) -> String {
        excerpt(&self.chars.iter().collect::<String>())
    }

    /// Returns the characters from an index up to the current position.
    fn text_since(&self, from: usize) -> String {
        self.chars.iter().take(self.at).skip(from).collect()
    }

    /// Runs `inner` one nesting level deeper.
    fn nested<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        if self.effort.depth > MAX_DEPTH {
            return Err(format!("arithmetic nested deeper than {MAX_DEPTH} levels"));
        }
        self.effort.depth += 1;
        let result = inner(self);
        self.effort.depth -= 1;
        result
    }

    fn comma(&mut self) -> Result<i64, String> {
        let mut value = self.assignment()?;
        while self.take(",") {
            value = self.assignment()?;
        }
        Ok(value)
    }

    fn assignment(&mut self) -> Result<i64, String> {
        self.skip_spaces();
        let start = self.at;
        if let Some(lvalue) = self.lvalue()? {
            self.skip_spaces();
            let operator = ASSIGNS.into_iter().find(|operator| {
                self.looking_at(operator) && !(*operator == "=" && self.peek(1) == Some('='))
            });
            if let Some(operator) = operator {
                self.at += operator.len();
                self.effort.spend(1)?;
                let right = self.nested(Self::assignment)?;
                let value = match operator.strip_suffix('=').unwrap_or_default() {
                    "" => right,
                    operator => {
                        let left = self.read_lvalue(&lvalue)?;
                        self.apply(operator, left, right)?
                    }
                };
                self.write_lvalue(&lvalue, value)?;
                return Ok(value);
            }
        }
        self.at = start;
        self.ternary()
    }

    fn ternary(&mut self) -> Result<i64, String> {
        let test = self.binary(1)?;
        if !self.take("?") {
            return Ok(test);
        }
        let then = self.operand_if(test != 0, Self::assignment)?;
        if !self.take(":") {
            return Err(self.syntax_error("`:`"));
        }
        let otherwise = self.operand_if(test == 0, Self::assignment)?;
        Ok(if test != 0 { then } else { otherwise })
    }

    /// Parses an operand. Evaluates it only if `active` is true.
    fn operand_if(
        &mut self,
        active: bool,
        inner: impl FnOnce(&mut Self) -> Result<i64, String>,
    ) -> Result<i64, String> {
        let skipped = u32::from(!active);
        self.skipping += skipped;
        let result = self.nested(inner);
        self.skipping -= skipped;
        result
    }

    fn binary(&mut self, min_precedence: u8) -> Result<i64, String> {
        let mut left = self.unary()?;
        loop {
            self.skip_spaces();
            let found = BINARY.into_iter().find(|(operator, _)| self.looking_at(operator));
            let Some((operator, precedence)) =
                found.filter(|(_, precedence)| *precedence >= min_precedence && *precedence > 0)
            else {
                return Ok(left);
            };
            let assigns = self.peek(operator.len()) == Some('=')
                && !matches!(operator, "==" | "!=" | "<=" | ">=" | "<" | ">" | "||" | "&&" | "**");
            if assigns {
                return Err(format!("{}: attempted assignment to non-variable", self.excerpt()));
            }
            self.at += operator.len();
            self.effort.spend(1)?;
            left = match operator {
                // An operand that is not evaluated is 0.
                "||" => {
                    let right = self.operand_if(left == 0, |inner| inner.binary(precedence + 1))?;
                    i64::from(left != 0 || right != 0)
                }
                "&&" => {
                    let right = self.operand_if(left != 0, |inner| inner.binary(precedence + 1))?;
                    i64::from(left != 0 && right != 0)
                }
                "**" => {
                    let right = self.nested(|inner| inner.binary(precedence))?;
                    self.apply(operator, left, right)?
                }
                _ => {
                    let right = self.nested(|inner| inner.binary(precedence + 1))?;
                    self.apply(operator, left, right)?
                }
            };
        }
    }

    fn apply(&self, operator: &str, left: i64, right: i64) -> Result<i64, String> {
        let shift = (right & 63) as u32;
        Ok(match operator {
            "+" => left.wrapping_add(right),
            "-" => left.wrapping_sub(right),
            "*" => left.wrapping_mul(right),
            "/" | "%" if right == 0 && self.skipping > 0 => 0,
            "/" | "%" if right == 0 => {
                return Err(format!(
                    "{}: division by 0 (error token is \"{right}\")",
                    self.excerpt()
                ));
            }
            "/" => left.wrapping_div(right),
            "%" => left.wrapping_rem(right),
            "**" if right < 0 && self.skipping == 0 => return Err("exponent less than 0".into()),
            "**" => power(left, right),
            "<<" => left.wrapping_shl(shift),
            ">>" => left.wrapping_shr(shift),
            "<" => i64::from(left < right),
            ">" => i64::from(left > right),
            "<=" => i64::from(left <= right),
            ">=" => i64::from(left >= right),
            "==" => i64::from(left == right),
            "!=" => i64::from(left != right),
            "&" => left & right,
            "^" => left ^ right,
            _ => left | right,
        })
    }

    fn unary(&mut self) -> Result<i64, String> {
        self.skip_spaces();
        for step in ["++", "--"] {
            if self.looking_at(step) {
                let start = self.at;
                self.at += 2;
                self.skip_spaces();
                if let Some(lvalue) = self.lvalue()? {
                    let value =
                        self.read_lvalue(&lvalue)?.wrapping_add(if step == "++" { 1 } else { -1 });
                    self.write_lvalue(&lvalue, value)?;
                    return Ok(value);
                }
                self.at = start;
            }
        }
        match self.peek(0) {
            Some('!') if self.peek(1) != Some('=') => {
                self.at += 1;
                Ok(i64::from(self.nested(Self::unary)? == 0))
            }
            Some('~') => {
                self.at += 1;
                Ok(!self.nested(Self::unary)?)
            }
            Some('-') => {
                self.at += 1;
                Ok(self.nested(Self::unary)?.wrapping_neg())
            }
            Some('+') => {
                self.at += 1;
                self.nested(Self::unary)
            }
            Some('(') => {
                self.at += 1;
                let value = self.nested(Self::comma)?;
                if self.take(")") { Ok(value) } else { Err(self.syntax_error("`)`")) }
            }
            Some(c) if c.is_ascii_digit() => self.number(),
            _ => {
                let Some(lvalue) = self.lvalue()? else { return Err(self.syntax_error("operand")) };
                self.skip_spaces();
                let value = self.read_lvalue(&lvalue)?;
                for (step, by) in [("++", 1), ("--", -1)] {
                    if self.looking_at(step) {
                        self.at += 2;
                        self.write_lvalue(&lvalue, value.wrapping_add(by))?;
                        break;
                    }
                }
                Ok(value)
            }
        }
    }

    fn number(&mut self) -> Result<i64, String> {
        let start = self.at;
        while self
            .peek(0)
            .is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '#' | '@' | '_'))
        {
            self.at += 1;
        }
        let text = self.text_since(start);
        number(&text).map_err(|fault| {
            format!("{}: {} (error token is \"{text}\")", self.excerpt(), fault.message())
        })
    }

    fn lvalue(&mut self) -> Result<Option<Lvalue>, String> {
        let start = self.at;
        if !self.peek(0).is_some_and(|c| c.is_ascii_alphabetic() || c == '_') {
            return Ok(None);
        }
        while self.peek(0).is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
            self.at += 1;
        }
        let name = self.text_since(start);
        if self.peek(0) != Some('[') {
            return Ok(Some(Lvalue { name, index: None }));
        }
        let from = self.at + 1;
        let mut depth = 0_u32;
        while let Some(c) = self.peek(0) {
            self.at += 1;
            match c {
                '[' => depth += 1,
                ']' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                let mut index = self.text_since(from);
                index.pop();
                return Ok(Some(Lvalue { name, index: Some(index) }));
            }
        }
        Err(self.syntax_error("`]`"))
    }

    fn read_lvalue(&mut self, lvalue: &Lvalue) -> Result<i64, String> {
        if self.skipping > 0 {
            return Ok(0);
        }
        self.effort.spend(1)?;
        let Some(text) =
            self.shell.operand_value(&lvalue.name, lvalue.index.as_deref(), self.effort)?
        else {
            return Ok(0);
        };
        self.effort.spend_on(&text)?;
        let text = text.trim();
        if let Ok(value) = number(text) {
            return Ok(value);
        }
        evaluate_within(text, self.shell, self.effort)
    }

    fn write_lvalue(&mut self, lvalue: &Lvalue, value: i64) -> Result<(), String> {
        if self.skipping > 0 {
            Ok(())
        } else {
            self.shell.set_operand(&lvalue.name, lvalue.index.as_deref(), value, self.effort)
        }
    }
}

fn power(base: i64, exponent: i64) -> i64 {
    let mut result = 1_i64;
    let mut base = base;
    let mut exponent = exponent.max(0) as u64;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    result
}

/// The reason why a word that starts with a digit is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NumberFault {
    /// The base is not between 2 and 64.
    Base,
    /// A digit is not below the base.
    Digit,
    /// Nothing follows the base.
    Empty,
}

impl NumberFault {
    fn message(self) -> &'static str {
        match self {
            NumberFault::Base => "invalid arithmetic base",
            NumberFault::Digit => {
                "value too great for base (write decimal numbers without leading zeros, or 10#08)"
            }
            NumberFault::Empty => "invalid integer constant",
        }
    }
}

/// Parses a number: decimal, `0x…`, `0…`, or `base#digits`.
fn number(text: &str) -> Result<i64, NumberFault> {
    let (base, digits) = if let Some((base, digits)) = text.split_once('#') {
        let base = base.parse().ok().filter(|base| (2..=64).contains(base));
        (base.ok_or(NumberFault::Base)?, digits)
    } else if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        (16, digits)
    } else if text.len() > 1 && text.starts_with('0') {
        (8, text.trim_start_matches('0'))
    } else {
        (10_u32, text)
    };
    if digits.is_empty() {
        // As in bash, `0x` is 0, like `00`.
        return if text.starts_with('0') { Ok(0) } else { Err(NumberFault::Empty) };
    }
    digits.chars().try_fold(0_i64, |value, c| {
        let digit = match c {
            '0'..='9' => c as u32 - '0' as u32,
            'a'..='z' => c as u32 - 'a' as u32 + 10,
            'A'..='Z' if base <= 36 => c as u32 - 'A' as u32 + 10,
            'A'..='Z' => c as u32 - 'A' as u32 + 36,
            '@' => 62,
            '_' => 63,
            _ => return Err(NumberFault::Digit),
        };
        if digit >= base {
            return Err(NumberFault::Digit);
        }
        Ok(value.wrapping_mul(i64::from(base)).wrapping_add(i64::from(digit)))
    })
}

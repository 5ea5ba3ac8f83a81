//! Arithmetic: whole numbers of 64 bits that wrap round, with the operators of C and `**`.
//!
//! The text has been expanded before. Names in it are variables, whose values are read as arithmetic again.

/// How deep parentheses and values of values may go.
const DEPTH: u32 = 40;

/// What arithmetic reads and sets.
pub(crate) trait Names {
    /// A variable's text; nothing where it is unset.
    fn get(&mut self, name: &str, index: Option<&str>, depth: u32) -> Result<Option<String>, String>;
    /// Sets a variable.
    fn set(&mut self, name: &str, index: Option<&str>, value: i64, depth: u32) -> Result<(), String>;
}

/// The value of an expression; an empty one is 0.
pub(crate) fn evaluate(text: &str, names: &mut dyn Names, depth: u32) -> Result<i64, String> {
    let mut evaluator = Evaluator { chars: text.chars().collect(), at: 0, depth, idle: 0, names };
    evaluator.blanks();
    if evaluator.at == evaluator.chars.len() {
        return Ok(0);
    }
    let value = evaluator.comma()?;
    evaluator.blanks();
    if evaluator.at < evaluator.chars.len() {
        let rest: String = evaluator.chars.iter().skip(evaluator.at).take(40).collect();
        return Err(format!("{}: syntax error in expression (error token is \"{rest}\")", shown(text)));
    }
    Ok(value)
}

fn shown(text: &str) -> String {
    wattle_rt::truncate(text.trim(), 80).into_owned()
}

struct Evaluator<'a> {
    chars: Vec<char>,
    at: usize,
    depth: u32,
    /// Above 0 where a value does not count, as behind `0 &&`: nothing is set or read.
    idle: u32,
    names: &'a mut dyn Names,
}

/// A place that can be assigned to.
struct Place {
    name: String,
    index: Option<String>,
}

/// The binary operators, each with how strongly it binds; longer ones before their beginnings.
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

const ASSIGNS: [&str; 11] = ["<<=", ">>=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "="];

impl Evaluator<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn blanks(&mut self) {
        while self.peek(0).is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn looking_at(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(ahead, c)| self.peek(ahead) == Some(c))
    }

    fn take(&mut self, text: &str) -> bool {
        self.blanks();
        let there = self.looking_at(text);
        if there {
            self.at += text.len();
        }
        there
    }

    fn wrong(&self, expected: &str) -> String {
        let all: String = self.chars.iter().collect();
        let rest: String = self.chars.iter().skip(self.at).take(40).collect();
        let rest = if rest.is_empty() { shown(&all) } else { rest };
        format!("{}: syntax error: {expected} expected (error token is \"{rest}\")", shown(&all))
    }

    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        if self.depth >= DEPTH {
            return Err(format!("arithmetic nested deeper than {DEPTH} levels"));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
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
        self.blanks();
        let start = self.at;
        if let Some(place) = self.place()? {
            self.blanks();
            let operator = ASSIGNS
                .into_iter()
                .find(|operator| self.looking_at(operator) && !(*operator == "=" && self.peek(1) == Some('=')));
            if let Some(operator) = operator {
                self.at += operator.len();
                let right = self.deeper(Self::assignment)?;
                let value = match operator.strip_suffix('=').unwrap_or_default() {
                    "" => right,
                    operator => {
                        let left = self.read(&place)?;
                        self.apply(operator, left, right)?
                    }
                };
                self.write(&place, value)?;
                return Ok(value);
            }
        }
        self.at = start;
        self.choice()
    }

    fn choice(&mut self) -> Result<i64, String> {
        let test = self.binary(1)?;
        if !self.take("?") {
            return Ok(test);
        }
        let yes = self.when(test != 0, Self::assignment)?;
        if !self.take(":") {
            return Err(self.wrong("`:`"));
        }
        let no = self.when(test == 0, Self::assignment)?;
        Ok(if test != 0 { yes } else { no })
    }

    /// Reads an operand, which counts only if `active`.
    fn when(&mut self, active: bool, inner: impl FnOnce(&mut Self) -> Result<i64, String>) -> Result<i64, String> {
        let idle = u32::from(!active);
        self.idle += idle;
        let result = self.deeper(inner);
        self.idle -= idle;
        result
    }

    fn binary(&mut self, least: u8) -> Result<i64, String> {
        let mut left = self.unary()?;
        loop {
            self.blanks();
            let found = BINARY.into_iter().find(|(operator, _)| self.looking_at(operator));
            let Some((operator, strength)) = found.filter(|(_, strength)| *strength >= least && *strength > 0) else {
                return Ok(left);
            };
            let assigns = self.peek(operator.len()) == Some('=')
                && !matches!(operator, "==" | "!=" | "<=" | ">=" | "<" | ">" | "||" | "&&" | "**");
            if assigns {
                return Err(format!(
                    "{}: attempted assignment to non-variable",
                    shown(&self.chars.iter().collect::<String>())
                ));
            }
            self.at += operator.len();
            left = match operator {
                // An operand that does not count is 0.
                "||" => {
                    let right = self.when(left == 0, |inner| inner.binary(strength + 1))?;
                    i64::from(left != 0 || right != 0)
                }
                "&&" => {
                    let right = self.when(left != 0, |inner| inner.binary(strength + 1))?;
                    i64::from(left != 0 && right != 0)
                }
                "**" => {
                    let right = self.deeper(|inner| inner.binary(strength))?;
                    self.apply(operator, left, right)?
                }
                _ => {
                    let right = self.deeper(|inner| inner.binary(strength + 1))?;
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
            "/" | "%" if right == 0 && self.idle > 0 => 0,
            "/" | "%" if right == 0 => {
                return Err(format!(
                    "{}: division by 0 (error token is \"{right}\")",
                    shown(&self.chars.iter().collect::<String>())
                ));
            }
            "/" => left.wrapping_div(right),
            "%" => left.wrapping_rem(right),
            "**" if right < 0 && self.idle == 0 => return Err("exponent less than 0".into()),
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
        self.blanks();
        for step in ["++", "--"] {
            if self.looking_at(step) {
                let start = self.at;
                self.at += 2;
                self.blanks();
                if let Some(place) = self.place()? {
                    let value = self.read(&place)?.wrapping_add(if step == "++" { 1 } else { -1 });
                    self.write(&place, value)?;
                    return Ok(value);
                }
                self.at = start;
            }
        }
        match self.peek(0) {
            Some('!') if self.peek(1) != Some('=') => {
                self.at += 1;
                Ok(i64::from(self.deeper(Self::unary)? == 0))
            }
            Some('~') => {
                self.at += 1;
                Ok(!self.deeper(Self::unary)?)
            }
            Some('-') => {
                self.at += 1;
                Ok(self.deeper(Self::unary)?.wrapping_neg())
            }
            Some('+') => {
                self.at += 1;
                self.deeper(Self::unary)
            }
            Some('(') => {
                self.at += 1;
                let value = self.deeper(Self::comma)?;
                if self.take(")") { Ok(value) } else { Err(self.wrong("`)`")) }
            }
            Some(c) if c.is_ascii_digit() => self.number(),
            _ => {
                let Some(place) = self.place()? else { return Err(self.wrong("operand")) };
                self.blanks();
                let value = self.read(&place)?;
                for (step, by) in [("++", 1), ("--", -1)] {
                    if self.looking_at(step) {
                        self.at += 2;
                        self.write(&place, value.wrapping_add(by))?;
                        break;
                    }
                }
                Ok(value)
            }
        }
    }

    fn number(&mut self) -> Result<i64, String> {
        let start = self.at;
        while self.peek(0).is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '#' | '@' | '_')) {
            self.at += 1;
        }
        let text: String = self.chars.get(start..self.at).unwrap_or_default().iter().collect();
        number(&text).ok_or_else(|| format!("{text}: not a number (bases are written as 0x1f, 017, 2#101)"))
    }

    fn place(&mut self) -> Result<Option<Place>, String> {
        let start = self.at;
        if !self.peek(0).is_some_and(|c| c.is_ascii_alphabetic() || c == '_') {
            return Ok(None);
        }
        while self.peek(0).is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
            self.at += 1;
        }
        let name = self.chars.get(start..self.at).unwrap_or_default().iter().collect();
        if self.peek(0) != Some('[') {
            return Ok(Some(Place { name, index: None }));
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
                let index = self.chars.get(from..self.at - 1).unwrap_or_default().iter().collect();
                return Ok(Some(Place { name, index: Some(index) }));
            }
        }
        Err(self.wrong("`]`"))
    }

    fn read(&mut self, place: &Place) -> Result<i64, String> {
        if self.idle > 0 {
            return Ok(0);
        }
        let Some(text) = self.names.get(&place.name, place.index.as_deref(), self.depth + 1)? else { return Ok(0) };
        let text = text.trim();
        if let Some(value) = number(text) {
            return Ok(value);
        }
        if self.depth >= DEPTH {
            return Err(format!("{}: expression recursion level exceeded", place.name));
        }
        evaluate(text, self.names, self.depth + 1)
    }

    fn write(&mut self, place: &Place, value: i64) -> Result<(), String> {
        if self.idle > 0 { Ok(()) } else { self.names.set(&place.name, place.index.as_deref(), value, self.depth + 1) }
    }
}

fn power(base: i64, exponent: i64) -> i64 {
    let (mut result, mut base, mut exponent) = (1_i64, base, exponent.max(0) as u64);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    result
}

/// A number as arithmetic writes it: decimal, `0x…`, `0…`, `base#digits`.
pub(crate) fn number(text: &str) -> Option<i64> {
    let (base, digits) = if let Some((base, digits)) = text.split_once('#') {
        (base.parse().ok().filter(|base| (2..=64).contains(base))?, digits)
    } else if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        (16, digits)
    } else if text.len() > 1 && text.starts_with('0') {
        (8, text.trim_start_matches('0'))
    } else {
        (10_u32, text)
    };
    if digits.is_empty() {
        return (base == 8).then_some(0);
    }
    digits.chars().try_fold(0_i64, |value, c| {
        let digit = match c {
            '0'..='9' => c as u32 - '0' as u32,
            'a'..='z' => c as u32 - 'a' as u32 + 10,
            'A'..='Z' if base <= 36 => c as u32 - 'A' as u32 + 10,
            'A'..='Z' => c as u32 - 'A' as u32 + 36,
            '@' => 62,
            '_' => 63,
            _ => return None,
        };
        (digit < base).then(|| value.wrapping_mul(i64::from(base)).wrapping_add(i64::from(digit)))
    })
}

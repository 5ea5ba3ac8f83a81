//! Conversions of values to and from the other types of the language.

use num_bigint::BigInt;
use wattle_rt::{Code, Failure, Run, quote};

use super::arena::{Values, View, with};
use super::number::{Answer, Exact, MAX_BITS, Number, as_number, too_big};
use super::{ValueHandle, values};
use crate::QUOTED;
use crate::arr::{Arrays, Handle as ArrHandle};
use crate::map;
use crate::str::number;

pub(super) fn of_long(run: &mut Run, n: i64) -> Result<ValueHandle, Failure> {
    with(run, |values| values.whole(n)).map(ValueHandle)
}

pub(super) fn of_float(run: &mut Run, x: f64) -> Result<ValueHandle, Failure> {
    if !x.is_finite() {
        let why = format!("{x} is not a number that a value can have; check the float first");
        return Err(Failure::new(Code::EBOUND, why));
    }
    with(run, |values| values.float(x)).map(ValueHandle)
}

pub(super) fn of_str(run: &mut Run, s: &str) -> Result<ValueHandle, Failure> {
    with(run, |values| values.text(s)).map(ValueHandle)
}

pub(super) fn of_arr(run: &mut Run, h: i32) -> Result<ValueHandle, Failure> {
    with_array(run, h, |values, items| {
        let list = values.list(&[])?;
        for item in items {
            let text = values.text(&String::from_utf8_lossy(item))?;
            values.append(list, text)?;
        }
        Ok(ValueHandle(list))
    })
}

/// Calls a function with the values and the items of an array.
pub(super) fn with_array<T>(
    run: &mut Run,
    h: i32,
    work: impl FnOnce(&mut Values, &[Vec<u8>]) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let array = ArrHandle(h);
    let items = std::mem::take(Arrays::of(run).get(array)?);
    let result = with(run, |values| work(values, &items));
    *Arrays::of(run).get(array)? = items;
    result
}

pub(super) fn of_map(run: &mut Run, h: i32) -> Result<ValueHandle, Failure> {
    let entries = map::of(run, h)?.iter();
    let entries: Vec<(String, Vec<u8>)> =
        entries.map(|(key, value)| (key.clone(), value.text().into_owned())).collect();
    with(run, |values| {
        let object = values.object()?;
        for (key, value) in entries {
            let text = values.text(&String::from_utf8_lossy(&value))?;
            values.set(object, &key, text)?;
        }
        Ok(ValueHandle(object))
    })
}

pub(super) fn list(run: &mut Run) -> Result<ValueHandle, Failure> {
    with(run, |values| values.list(&[])).map(ValueHandle)
}

pub(super) fn object(run: &mut Run) -> Result<ValueHandle, Failure> {
    with(run, Values::object).map(ValueHandle)
}

impl Values {
    /// Converts a whole number. `kind` is the type that `what` takes, such as `an int`.
    fn whole_for<T: TryFrom<i64>>(&self, v: i32, what: &str, kind: &str) -> Result<T, Failure> {
        let name = kind.trim_start_matches(['a', 'n', ' ']);
        let Some(number) = as_number(self.view(v)?) else {
            let hint = match self.view(v)? {
                View::Bool(_) => format!("({name} …) converts it"),
                View::Text(text) if text.trim().parse::<i64>().is_ok() => {
                    format!("({name} …) converts it")
                }
                View::Null => "(default V 0) replaces null".to_owned(),
                View::List(_) | View::Object(_) => "(len …) is its number of items".to_owned(),
                View::Text(_) => "(num …) converts a string that is a number".to_owned(),
                _ => String::new(),
            };
            return Err(self.wrong(v, &format!("{what} takes {kind}"), &hint));
        };
        if let Some(fits) = number.to_whole().and_then(|n| T::try_from(n).ok()) {
            return Ok(fits);
        }
        let is_fraction = match number {
            Number::Float(x) => x.fract() != 0.0,
            Number::Decimal(text) => Exact::read(text).is_ok_and(|exact| !exact.is_whole()),
            _ => false,
        };
        let text = number.text();
        let text = wattle_rt::truncate(&text, QUOTED);
        let why = if is_fraction {
            format!(
                "{text} is not whole, but {what} takes {kind}; ({name} …) cuts it, (round …) \
                 rounds it"
            )
        } else {
            format!("{text} does not fit {kind}, which {what} takes")
        };
        Err(self.out_of_range(v, &why))
    }

    fn float_for(&self, v: i32, what: &str) -> Result<f64, Failure> {
        let x = self.number(v, &format!("{what} takes a float"))?.to_float();
        if x.is_finite() {
            return Ok(x);
        }
        let text = self.plain(v)?;
        let text = wattle_rt::truncate(&text, QUOTED);
        Err(self.out_of_range(v, &format!("{text} does not fit a float, which {what} takes")))
    }

    fn text_for(&self, v: i32, what: &str) -> Result<String, Failure> {
        match self.view(v)? {
            View::Null => {
                let hint = "(default V \"\") replaces null, (str …) is its JSON text";
                Err(self.wrong(v, &format!("{what} takes a string"), hint))
            }
            View::List(_) | View::Object(_) => {
                let hint = "(str …) is its JSON text";
                Err(self.wrong(v, &format!("{what} takes a string"), hint))
            }
            _ => self.plain(v),
        }
    }
}

pub(super) fn int(run: &mut Run, v: i32, what: &str) -> Result<i32, Failure> {
    values(run).whole_for(v, what, "an int")
}

pub(super) fn long(run: &mut Run, v: i32, what: &str) -> Result<i64, Failure> {
    values(run).whole_for(v, what, "a long")
}

pub(super) fn float(run: &mut Run, v: i32, what: &str) -> Result<f64, Failure> {
    values(run).float_for(v, what)
}

pub(super) fn str(run: &mut Run, v: i32, what: &str) -> Result<String, Failure> {
    values(run).text_for(v, what)
}

pub(super) fn arr(run: &mut Run, v: i32, what: &str) -> Result<ArrHandle, Failure> {
    let values = values(run);
    let View::List(items) = values.view(v)? else {
        return Err(values.wrong(v, &format!("{what} takes a list"), ""));
    };
    let mut texts = Vec::with_capacity(items.len());
    let mut size = 0;
    for item in items {
        texts.push(values.counted(*item, &mut size)?);
    }
    Arrays::make(run, texts)
}

pub(super) fn map(run: &mut Run, v: i32, what: &str) -> Result<map::Handle, Failure> {
    let values = values(run);
    let View::Object(entries) = values.view(v)? else {
        return Err(values.wrong(v, &format!("{what} takes an object"), ""));
    };
    let mut texts = Vec::with_capacity(entries.len());
    let mut size = 0;
    for entry in entries {
        let text = values.counted(entry.value, &mut size)?;
        texts.push((values.key(entry).to_owned(), text));
    }
    map::of_texts(run, texts)
}

impl Values {
    /// Returns the text of a value, and adds its size to that of the others, which must fit the
    /// memory twice. Many values may share one text.
    fn counted(&self, v: i32, size: &mut usize) -> Result<String, Failure> {
        let text = self.plain(v)?;
        *size += text.len() + size_of::<String>();
        self.memory.check(2 * *size)?;
        Ok(text)
    }
}

pub(super) fn truth(run: &mut Run, v: i32) -> Result<bool, Failure> {
    let values = values(run);
    values.truth(v)
}

impl Values {
    /// Returns true unless a value is null, false, 0 or an empty string.
    pub(super) fn truth(&self, v: i32) -> Result<bool, Failure> {
        Ok(match self.view(v)? {
            View::Null => false,
            View::Bool(yes) => yes,
            View::Text(text) => !text.is_empty(),
            View::List(_) | View::Object(_) => {
                let hint = "(len …) is its number of items, 0 if it is empty";
                return Err(self.wrong(v, "a condition takes no list or object", hint));
            }
            view => {
                let zero = Number::Whole(0);
                as_number(view).is_some_and(|number| number.compare(zero).is_ne())
            }
        })
    }

    /// Returns the number that a value stands for when it is converted explicitly. `None` stands for
    /// a string.
    fn explicit(&self, v: i32, what: &str) -> Result<Option<Number<'_>>, Failure> {
        match self.view(v)? {
            View::Text(_) => Ok(None),
            View::Bool(yes) => Ok(Some(Number::Whole(yes.into()))),
            view => as_number(view).map(Some).ok_or_else(|| {
                let takes = format!("{what} takes a number, a string or a bool");
                self.wrong(v, &takes, "")
            }),
        }
    }

    /// Truncates a number towards 0.
    fn truncated(&self, v: i32, number: Number<'_>, kind: &str) -> Result<i64, Failure> {
        let whole = match number {
            Number::Float(x) => Number::Float(x.trunc()).to_whole(),
            Number::Decimal(text) => {
                Exact::read(text)?.truncated().and_then(|n| i64::try_from(n).ok())
            }
            number => number.to_whole(),
        };
        whole.ok_or_else(|| {
            let text = number.text();
            let text = wattle_rt::truncate(&text, QUOTED);
            self.out_of_range(v, &format!("{text} does not fit {kind}"))
        })
    }
}

/// Returns a copy of a value's text.
fn text_of(values: &Values, v: i32) -> Result<String, Failure> {
    values.plain(v)
}

pub(super) fn to_int(run: &mut Run, v: i32) -> Result<i32, Failure> {
    let values = values(run);
    match values.explicit(v, "int")? {
        Some(number) => {
            let n = values.truncated(v, number, "an int")?;
            i32::try_from(n).map_err(|_| {
                values.out_of_range(v, &format!("{n} does not fit an int; (long …) takes it"))
            })
        }
        None => {
            let text = text_of(values, v)?;
            number::to_int(run, &text)
        }
    }
}

pub(super) fn to_long(run: &mut Run, v: i32) -> Result<i64, Failure> {
    let values = values(run);
    match values.explicit(v, "long")? {
        Some(number) => values.truncated(v, number, "a long"),
        None => {
            let text = text_of(values, v)?;
            number::to_long(run, &text)
        }
    }
}

pub(super) fn to_float(run: &mut Run, v: i32) -> Result<f64, Failure> {
    let values = values(run);
    match values.explicit(v, "float")? {
        Some(Number::Whole(n)) => Ok(Number::Whole(n).to_float()),
        Some(_) => values.float_for(v, "float"),
        None => {
            let text = text_of(values, v)?;
            number::to_float(run, &text)
        }
    }
}

pub(super) fn num(run: &mut Run, v: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        let text = match values.view(v)? {
            View::Text(text) => text.trim().to_owned(),
            view if as_number(view).is_some() => return Ok(v),
            _ => return Err(values.wrong(v, "num takes a string or a number", "")),
        };
        match values.number_of(&text)? {
            Some(number) => Ok(number),
            None => {
                let why = format!("{} is not a number", quote(&text, QUOTED));
                Err(Failure::new(Code::EPARSE, values.place(v) + &why))
            }
        }
    })
    .map(ValueHandle)
}

impl Values {
    /// Adds the number that a text is, exactly and as written if it is JSON.
    pub(super) fn number_of(&mut self, text: &str) -> Result<Option<i32>, Failure> {
        if let Ok(whole) = text.parse::<i64>()
            && whole.to_string() == text
        {
            return self.whole(whole).map(Some);
        }
        if crate::decimal::Number::read(text.as_bytes()).is_none() {
            return Ok(None);
        }
        if crate::json::scan::is_number(text) {
            return self.decimal(text).map(Some);
        }
        let answer = Exact::read(text)?.answer();
        self.keep(answer).map(Some)
    }
}

pub(super) fn big(run: &mut Run, v: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        let big = match values.view(v)? {
            View::Text(text) => {
                let text = text.trim();
                let digits = text.trim_start_matches(['-', '+']);
                // A digit has more than 3 bits.
                if digits.len() as u64 > MAX_BITS / 3 {
                    return Err(too_big());
                }
                BigInt::parse_bytes(text.as_bytes(), 10).ok_or_else(|| {
                    let why = format!("{} is not a whole number", quote(text, QUOTED));
                    Failure::new(Code::EPARSE, values.place(v) + &why)
                })?
            }
            View::Big(_) => return Ok(v),
            view => {
                let Some(number) = as_number(view) else {
                    return Err(values.wrong(v, "big takes a whole number or a string", ""));
                };
                number.to_big().ok_or_else(|| {
                    let text = number.text();
                    let text = wattle_rt::truncate(&text, QUOTED);
                    let why = format!("{text} is not whole; (round …) rounds it");
                    values.out_of_range(v, &why)
                })?
            }
        };
        if big.bits() > MAX_BITS {
            return Err(too_big());
        }
        values.keep(Answer::Big(big))
    })
    .map(ValueHandle)
}

pub(super) fn text(run: &mut Run, v: i32) -> Result<String, Failure> {
    values(run).plain(v)
}

/// Maximum number of spaces that a level of JSON is indented by.
const MAX_INDENT: usize = 16;

pub(super) fn json(run: &mut Run, v: i32, indent: Option<i32>) -> Result<String, Failure> {
    let indent = match indent {
        None => None,
        Some(n) => Some(usize::try_from(n).ok().filter(|n| *n <= MAX_INDENT).ok_or_else(|| {
            let why = format!("JSON is indented by 0 to {MAX_INDENT} spaces a level, not {n}");
            Failure::new(Code::EBOUND, why)
        })?),
    };
    values(run).json(v, indent)
}

pub(super) fn kind(run: &mut Run, v: i32) -> Result<&'static str, Failure> {
    Ok(values(run).view(v)?.kind())
}

//! Values that a program keeps for the later programs of its run.

use wattle_rt::tape::RecordedValue;
use wattle_rt::{Code, Failure, KEEP, Kept, KeptText, Run, quote};

use super::arena::{Values, View, with};
use super::{ValueHandle, values};
use crate::QUOTED;

/// Maximum length of a name, in bytes.
const MAX_NAME: usize = 64;

/// Maximum number of keys that the description of an object shows.
const MAX_KEYS: usize = 8;

/// Maximum length of a key in a description, in bytes.
const MAX_KEY: usize = 24;

pub(super) fn keep(run: &mut Run, name: &str, v: i32) -> Result<(), Failure> {
    let Some(kept) = run.grants().config::<Kept>().filter(|_| !run.is_nested()) else {
        let why = "this program keeps no values: only the programs that the model of a run writes do, \
                   and those that are typed in a session; return the value, or write it to a file";
        return Err(Failure::new(Code::EACCESS, why));
    };
    check_name(name)?;
    let values = values(run);
    let (json, about) = (values.json(v, None)?, values.about(v)?);
    values.memory.check(json.len())?;
    kept.check(name, json.len())?;
    let hash = KeptText::hash_of(&json);
    let json = run.recall(
        KEEP,
        |args| KeptText::feed(name, &hash, args),
        |_| Ok(json),
        |recorded| match recorded {
            RecordedValue::Bytes(json) => String::from_utf8(json).ok(),
            _ => None,
        },
    )?;
    kept.add(KeptText::new(run.account(), name, json, about)?)
}

pub(super) fn kept(run: &mut Run, name: &str) -> Result<ValueHandle, Failure> {
    let kept = run.grants().config::<Kept>().filter(|_| !run.is_nested());
    let text = kept.as_ref().and_then(|kept| kept.get(name)).cloned();
    let text = text.ok_or_else(|| {
        let why = format!("no program of this run kept {}", quote(name, QUOTED));
        Failure::new(Code::ENOENT, why)
    })?;
    with(run, |values| values.parse(text.json())).map(ValueHandle)
}

fn check_name(name: &str) -> Result<(), Failure> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if (1..=MAX_NAME).contains(&name.len()) && name.chars().all(is_part) {
        return Ok(());
    }
    let why = format!(
        "{} is not the name of a variable: use letters, digits, `_` and `-`, at most {MAX_NAME}",
        quote(name, QUOTED)
    );
    Err(Failure::new(Code::EBOUND, why))
}

impl Values {
    /// Describes the shape of a value: `list of 240 {id, name}`, `{users, total}`, `string of 12
    /// characters`, or its kind.
    fn about(&self, v: i32) -> Result<String, Failure> {
        Ok(match self.view(v)? {
            View::List([]) => "empty list".to_owned(),
            View::List(items) => {
                let of = match items.first().map(|first| self.view(*first)).transpose()? {
                    Some(View::Object(_)) => self.shape(items.first().copied().unwrap_or(0))?,
                    Some(first) => plural(first.kind(), items.len()),
                    None => String::new(),
                };
                format!("list of {} {of}", items.len())
            }
            View::Object(_) => self.shape(v)?,
            View::Text(text) => format!("string of {} characters", text.chars().count()),
            other => other.kind().to_owned(),
        })
    }

    /// Describes an object by its keys. A key that is no plain word is left out, since the
    /// description is a line of the host.
    fn shape(&self, v: i32) -> Result<String, Failure> {
        let View::Object(entries) = self.view(v)? else { return Ok(String::new()) };
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let keys = entries.iter().map(|entry| self.key(entry));
        let plain = keys.filter(|key| key.len() <= MAX_KEY && key.chars().all(is_part));
        let mut shown: Vec<&str> = plain.take(MAX_KEYS).collect();
        if shown.len() < entries.len() {
            shown.push("…");
        }
        Ok(format!("{{{}}}", shown.join(", ")))
    }
}

fn plural(kind: &str, count: usize) -> String {
    match (kind, count) {
        (_, 1) | ("null", _) => kind.to_owned(),
        _ => format!("{kind}s"),
    }
}

//! Parsing of command lines in the style of getopt: clustered short options, long options with `=`,
//! options among the operands, and `--`.

use crate::pattern::names;

/// An option of a command: its short letter (NUL for none), its long name (empty for none), and the
/// value that it takes.
pub(crate) type Known = (char, &'static str, Takes);

/// The value that an option takes: none, a required one, or an optional one.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Takes {
    Nothing,
    Value,
    /// An optional value, which must be in the same word as the option.
    Maybe,
}

/// An option given on the command line.
pub(crate) struct Found {
    /// The index of the option in the table of known options.
    pub row: usize,
    pub value: Option<String>,
}

/// A parsed command line: its options in order, and its operands.
pub(crate) struct Line {
    pub options: Vec<Found>,
    pub operands: Vec<String>,
    known: &'static [Known],
}

impl Line {
    /// Returns true if the option `name`, a short letter or a long name, was given.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.options.iter().any(|found| self.is(found, name))
    }

    /// Returns the last value of the option `name`, a short letter or a long name.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.options
            .iter()
            .rev()
            .find(|found| self.is(found, name))
            .and_then(|found| found.value.as_deref())
    }

    /// Returns all values of the option `name`, a short letter or a long name.
    pub(crate) fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        let found = self.options.iter().filter(move |found| self.is(found, name));
        found.filter_map(|found| found.value.as_deref())
    }

    /// Parses the last value of the option `name`. Fails with the message that `why` returns.
    pub(crate) fn parsed<T: std::str::FromStr>(
        &self,
        name: &str,
        why: impl FnOnce(&str) -> String,
    ) -> Result<Option<T>, String> {
        self.value(name).map(|text| text.parse().map_err(|_| why(text))).transpose()
    }

    /// Compiles the values of the option `name`, which are file name patterns.
    pub(crate) fn globs(&self, name: &str) -> Result<Vec<regex::bytes::Regex>, String> {
        self.values(name).map(|glob| names(glob, false)).collect()
    }

    /// Returns the operands, or `otherwise` if there are none.
    pub(crate) fn operands_or<'a>(&'a self, otherwise: &'a [&'a str]) -> Vec<&'a str> {
        if self.operands.is_empty() {
            return otherwise.to_vec();
        }
        self.operands.iter().map(String::as_str).collect()
    }

    /// Returns the option's short letter, or its long name if it has no letter.
    pub(crate) fn name(&self, found: &Found) -> String {
        match self.known.get(found.row) {
            Some(('\0', long, _)) => (*long).to_owned(),
            Some((short, ..)) => short.to_string(),
            None => String::new(),
        }
    }

    fn is(&self, found: &Found, name: &str) -> bool {
        self.known.get(found.row).is_some_and(|(short, long, _)| {
            *long == name || (name.chars().count() == 1 && name.starts_with(*short))
        })
    }
}

/// Parses a command line, whose first word is the command's name. If `permute` is true, options may
/// follow operands.
///
/// # Errors
///
/// If an option is unknown or ambiguous, or its value is missing or not allowed.
pub(crate) fn parse(
    args: &[String],
    known: &'static [Known],
    permute: bool,
) -> Result<Line, String> {
    let mut line = Line { options: Vec::new(), operands: Vec::new(), known };
    let mut args = args.iter().skip(1);
    while let Some(arg) = args.next() {
        if arg == "--" {
            line.operands.extend(args.by_ref().cloned());
        } else if let Some(long) = arg.strip_prefix("--") {
            let (name, mut value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            let row = long_row(known, name)?;
            let takes = known.get(row).map_or(Takes::Nothing, |known| known.2);
            match takes {
                Takes::Nothing if value.is_some() => {
                    return Err(format!("option '--{name}' doesn't allow an argument"));
                }
                Takes::Value if value.is_none() => {
                    let next = args.next().cloned();
                    value = Some(next.ok_or(format!("option '--{name}' requires an argument"))?);
                }
                _ => {}
            }
            line.options.push(Found { row, value });
        } else if arg.len() > 1 && arg.starts_with('-') {
            let mut rest = arg.get(1..).unwrap_or_default();
            while let Some(letter) = rest.chars().next() {
                rest = rest.get(letter.len_utf8()..).unwrap_or_default();
                let row = known
                    .iter()
                    .position(|known| known.0 == letter)
                    .ok_or_else(|| format!("invalid option -- '{letter}'"))?;
                let takes = known.get(row).map_or(Takes::Nothing, |known| known.2);
                if takes == Takes::Nothing {
                    line.options.push(Found { row, value: None });
                    continue;
                }
                let mut value = (!rest.is_empty()).then(|| rest.to_owned());
                if value.is_none() && takes == Takes::Value {
                    let next = args.next().cloned();
                    value = Some(next.ok_or(format!("option requires an argument -- '{letter}'"))?);
                }
                line.options.push(Found { row, value });
                break;
            }
        } else if permute {
            line.operands.push(arg.clone());
        } else {
            line.operands.push(arg.clone());
            line.operands.extend(args.by_ref().cloned());
        }
    }
    Ok(line)
}

/// Returns the index of the option named `name`, or of the only option whose name starts with it.
fn long_row(known: &[Known], name: &str) -> Result<usize, String> {
    if let Some(row) = known.iter().position(|known| known.1 == name && !name.is_empty()) {
        return Ok(row);
    }
    let mut rows =
        known.iter().enumerate().filter(|(_, known)| !name.is_empty() && known.1.starts_with(name));
    match (rows.next(), rows.next()) {
        (Some((row, _)), None) => Ok(row),
        (Some(_), Some(_)) => Err(format!("option '--{name}' is ambiguous")),
        _ => Err(format!("unrecognized option '--{name}'")),
    }
}

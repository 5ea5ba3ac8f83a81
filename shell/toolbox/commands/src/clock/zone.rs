//! Time zones in the POSIX syntax of `TZ`, such as `EST5EDT,M3.2.0,M11.1.0`. Names from the zone
//! database, such as `Europe/Paris`, are not supported and are treated as UTC.

use super::{Moment, days_before, moment};

/// A time zone.
pub(crate) struct Zone {
    standard: Offset,
    /// The offset during summer time, with the changes at its start and end.
    summer: Option<(Offset, Change, Change)>,
}

/// An offset from UTC.
#[derive(Clone)]
struct Offset {
    name: String,
    /// The offset in seconds, positive east of Greenwich.
    seconds: i64,
}

/// The day of the year and the time of day when the offset changes.
struct Change {
    day: Day,
    /// Seconds since midnight in local time.
    time: i64,
}

enum Day {
    /// `Mm.w.d`: the month, the week of the month (5 is the last), and the weekday (0 is Sunday).
    OfMonth(i64, i64, i64),
    /// `Jn`: the day of the year, counted from 1. 29 February is never counted.
    OfYear(i64),
    /// `n`: the day of the year, counted from 0.
    Counted(i64),
}

impl Zone {
    /// Returns a zone with the given name and no offset from UTC.
    pub(crate) fn utc(name: &str) -> Zone {
        Zone { standard: Offset { name: name.to_owned(), seconds: 0 }, summer: None }
    }

    /// Returns the zone that `TZ` defines, or UTC if `TZ` is not set or not valid.
    pub(crate) fn of_environment() -> Zone {
        let text = std::env::var("TZ").unwrap_or_default();
        parse(text.trim_start_matches(':')).unwrap_or_else(|| Zone::utc("UTC"))
    }

    /// Converts seconds since 1970 to the local date and time.
    pub(crate) fn moment(&self, epoch: i64) -> Moment {
        let offset = self.offset(epoch);
        let mut at = moment(epoch.saturating_add(offset.seconds), 0);
        at.epoch = epoch;
        at.offset = offset.seconds;
        at.zone.clone_from(&offset.name);
        at
    }

    /// Converts a local time, encoded as if it were UTC, to seconds since 1970.
    pub(crate) fn epoch(&self, local: i64) -> i64 {
        let standard = local.saturating_sub(self.standard.seconds);
        let Some((summer, ..)) = &self.summer else { return standard };
        let shifted = local.saturating_sub(summer.seconds);
        let is_summer = self.offset(shifted).seconds == summer.seconds;
        if is_summer { shifted } else { standard }
    }

    fn offset(&self, epoch: i64) -> &Offset {
        let Some((summer, start, end)) = &self.summer else { return &self.standard };
        let year = moment(epoch.saturating_add(self.standard.seconds), 0).year;
        let start = start.local(year) - self.standard.seconds;
        let end = end.local(year) - summer.seconds;
        let inside = match start < end {
            true => (start..end).contains(&epoch),
            false => !(end..start).contains(&epoch),
        };
        if inside { summer } else { &self.standard }
    }
}

impl Change {
    /// Returns the local time at which the offset changes in `year`, in seconds since 1970.
    fn local(&self, year: i64) -> i64 {
        let first = days_before(year, 1, 1);
        let day = match self.day {
            Day::Counted(day) => first + day,
            Day::OfYear(day) => {
                let leaps = days_before(year, 3, 1) - first == 60;
                first + day - 1 + i64::from(leaps && day >= 60)
            }
            Day::OfMonth(month, week, weekday) => {
                let start = days_before(year, month, 1);
                // 1 January 1970 was a Thursday.
                let ahead = (weekday - (start + 4)).rem_euclid(7);
                let day = start + ahead + (week - 1) * 7;
                if day >= days_before(year, month + 1, 1) { day - 7 } else { day }
            }
        };
        day * 86_400 + self.time
    }
}

/// Parses the value of `TZ`.
fn parse(text: &str) -> Option<Zone> {
    let (name, rest) = name(text)?;
    let (west, rest) = time(rest)?;
    let standard = Offset { name, seconds: -west };
    if rest.is_empty() {
        return Some(Zone { standard, summer: None });
    }
    let (summer_name, rest) = self::name(rest)?;
    let (west, rest) = match rest.starts_with(',') || rest.is_empty() {
        true => (west - 3_600, rest),
        false => time(rest)?,
    };
    let summer = Offset { name: summer_name, seconds: -west };
    let rules = if rest.is_empty() { ",M3.2.0,M11.1.0" } else { rest };
    let (start, end) = rules.strip_prefix(',')?.split_once(',')?;
    Some(Zone { standard, summer: Some((summer, change(start)?, change(end)?)) })
}

/// Parses the name of an offset: letters, or any text between `<` and `>`.
fn name(text: &str) -> Option<(String, &str)> {
    if let Some(rest) = text.strip_prefix('<') {
        let (name, rest) = rest.split_once('>')?;
        return Some((name.to_owned(), rest));
    }
    let end = text.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (name, rest) = text.split_at_checked(end)?;
    (name.len() >= 3).then(|| (name.to_owned(), rest))
}

/// Parses `[+-]hh[:mm[:ss]]`. Returns the seconds and the rest of the text.
fn time(text: &str) -> Option<(i64, &str)> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mut seconds, mut unit) = (0, 3_600);
    loop {
        let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, behind) = rest.split_at_checked(end)?;
        let number: i64 = digits.parse().ok().filter(|number| *number <= 167)?;
        seconds += number * unit;
        unit /= 60;
        match behind.strip_prefix(':') {
            Some(next) if unit > 0 => rest = next,
            _ => return Some((sign * seconds, behind)),
        }
    }
}

fn change(text: &str) -> Option<Change> {
    let (day, at) = text.split_once('/').unwrap_or((text, "2"));
    let number = |text: &str, most: i64| {
        text.parse::<i64>().ok().filter(|number| (0..=most).contains(number))
    };
    let day = if let Some(rest) = day.strip_prefix('M') {
        let mut parts = rest.split('.');
        let (month, week, weekday) = (parts.next()?, parts.next()?, parts.next()?);
        Day::OfMonth(number(month, 12)?, number(week, 5)?, number(weekday, 6)?)
    } else if let Some(rest) = day.strip_prefix('J') {
        Day::OfYear(number(rest, 365)?)
    } else {
        Day::Counted(number(day, 365)?)
    };
    let (time, rest) = time(at)?;
    rest.is_empty().then_some(Change { day, time })
}

//! Calendar dates and times, in UTC or a time zone.

mod zone;

pub(crate) use self::zone::Zone;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A calendar date with a time.
pub(crate) struct Moment {
    pub year: i64,
    pub month: u32,
    pub day: u32,
    pub hour: u32,
    pub minute: u32,
    pub second: u32,
    pub nanos: u32,
    /// The day of the week; 0 is Sunday.
    pub weekday: u32,
    /// The day of the year; 1 is the first of January.
    pub yearday: u32,
    pub epoch: i64,
    /// The offset from UTC in seconds, positive east of Greenwich.
    pub offset: i64,
    /// The name of the zone.
    pub zone: String,
}

pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(crate) const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Splits a time into whole seconds since 1970 and the remaining nanoseconds.
pub(crate) fn epoch(time: SystemTime) -> (i64, u32) {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => (since.as_secs() as i64, since.subsec_nanos()),
        Err(before) => (-(before.duration().as_secs() as i64), 0),
    }
}

/// Converts seconds since 1970 to a date and time in UTC.
pub(crate) fn moment(epoch: i64, nanos: u32) -> Moment {
    let (days, rest) = (epoch.div_euclid(86_400), epoch.rem_euclid(86_400) as u32);
    // Days since 1 March of year 0, so that a leap day is the last day of its year.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = (of_year - (153 * shifted_month + 2) / 5 + 1) as u32;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 } as u32;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Moment {
        year,
        month,
        day,
        hour: rest / 3_600,
        minute: rest / 60 % 60,
        second: rest % 60,
        nanos,
        weekday: (days + 4).rem_euclid(7) as u32,
        yearday: (days - days_before(year, 1, 1) + 1) as u32,
        epoch,
        offset: 0,
        zone: "UTC".to_owned(),
    }
}

/// Returns the number of days from 1 January 1970 to a date.
pub(crate) fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = (year + (month - 1).div_euclid(12), (month - 1).rem_euclid(12) + 1);
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let of_era = shifted.rem_euclid(400);
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Parses a UTC date `YYYY-MM-DD` with an optional time, or `@SECONDS` since 1970.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let seconds = if let Some(seconds) = text.strip_prefix('@') {
        seconds.parse().ok()?
    } else {
        let numbers: Vec<i64> = text
            .split(['-', ' ', 'T', ':', 'Z'])
            .filter(|part| !part.is_empty())
            .map(str::parse)
            .collect::<Result<_, _>>()
            .ok()?;
        let at = |n: usize| numbers.get(n).copied().unwrap_or_default();
        if numbers.len() < 3 {
            return None;
        }
        days_before(at(0), at(1), at(2)) * 86_400 + at(3) * 3_600 + at(4) * 60 + at(5)
    };
    let length = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 { UNIX_EPOCH.checked_sub(length) } else { UNIX_EPOCH.checked_add(length) }
}

/// Formats a time with a `strftime` format.
pub(crate) fn format(moment: &Moment, format: &str) -> String {
    let mut out = String::new();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        let mut next = letters.next();
        let padded = next != Some('-');
        if !padded {
            next = letters.next();
        }
        match next {
            Some(letter) => out.push_str(&part(moment, letter, padded)),
            None => out.push('%'),
        }
    }
    out
}

/// Formats one `strftime` directive.
pub(crate) fn part(at: &Moment, letter: char, padded: bool) -> String {
    let two = |n: u32| if padded { format!("{n:02}") } else { n.to_string() };
    let name =
        |names: &'static [&'static str], n: u32| names.get(n as usize).copied().unwrap_or_default();
    let short = |name: &'static str| name.get(..3).unwrap_or(name).to_owned();
    let twelve = if at.hour.is_multiple_of(12) { 12 } else { at.hour % 12 };
    match letter {
        'Y' => at.year.to_string(),
        'C' => two((at.year / 100) as u32),
        'y' => two(at.year.rem_euclid(100) as u32),
        'm' => two(at.month),
        'd' => two(at.day),
        'e' => format!("{:2}", at.day),
        'H' => two(at.hour),
        'I' => two(twelve),
        'k' => format!("{:2}", at.hour),
        'l' => format!("{twelve:2}"),
        'M' => two(at.minute),
        'S' => two(at.second),
        'N' => format!("{:09}", at.nanos),
        'j' => {
            if padded {
                format!("{:03}", at.yearday)
            } else {
                at.yearday.to_string()
            }
        }
        'a' => short(name(&DAYS, at.weekday)),
        'A' => name(&DAYS, at.weekday).to_owned(),
        'b' | 'h' => short(name(&MONTHS, at.month.saturating_sub(1))),
        'B' => name(&MONTHS, at.month.saturating_sub(1)).to_owned(),
        'p' => if at.hour < 12 { "AM" } else { "PM" }.to_owned(),
        'P' => if at.hour < 12 { "am" } else { "pm" }.to_owned(),
        'u' => if at.weekday == 0 { 7 } else { at.weekday }.to_string(),
        'w' => at.weekday.to_string(),
        'U' => two((at.yearday + 6 - at.weekday) / 7),
        'W' => two((at.yearday + 6 - (at.weekday + 6) % 7) / 7),
        'V' | 'G' | 'g' => {
            let days = 3 - i64::from((at.weekday + 6) % 7);
            let thursday = moment(at.epoch + at.offset + days * 86_400, 0);
            match letter {
                'V' => two(thursday.yearday.div_ceil(7)),
                'G' => thursday.year.to_string(),
                _ => two(thursday.year.rem_euclid(100) as u32),
            }
        }
        's' => at.epoch.to_string(),
        'Z' => at.zone.clone(),
        'z' => {
            let (sign, minutes) = (if at.offset < 0 { '-' } else { '+' }, at.offset.abs() / 60);
            format!("{sign}{:02}{:02}", minutes / 60, minutes % 60)
        }
        'n' => "\n".to_owned(),
        't' => "\t".to_owned(),
        '%' => "%".to_owned(),
        'F' => format(at, "%Y-%m-%d"),
        'T' | 'X' => format(at, "%H:%M:%S"),
        'R' => format(at, "%H:%M"),
        'D' | 'x' => format(at, "%m/%d/%y"),
        'r' => format(at, "%I:%M:%S %p"),
        'c' => format(at, "%a %b %e %H:%M:%S %Y"),
        other => format!("%{other}"),
    }
}

//! Calendar dates and times, in UTC or a time zone.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::fmt::strtime::{BrokenDownTime, Config, PosixCustom};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned, civil};

/// Splits a time into whole seconds since 1970 and the remaining nanoseconds.
pub(crate) fn epoch(time: SystemTime) -> (i64, u32) {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => (since.as_secs() as i64, since.subsec_nanos()),
        Err(before) => (-(before.duration().as_secs() as i64), 0),
    }
}

/// Returns the time that is `seconds` after the start of 1970, or before it if they are negative.
pub(crate) fn from_epoch(seconds: i64) -> Option<SystemTime> {
    let length = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 { UNIX_EPOCH.checked_sub(length) } else { UNIX_EPOCH.checked_add(length) }
}

/// Returns the date and time in a zone. A time beyond the year 9999 becomes the last one within it.
pub(crate) fn in_zone(seconds: i64, nanos: u32, zone: TimeZone) -> Zoned {
    let last = if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::new(seconds, nanos as i32).unwrap_or(last).to_zoned(zone)
}

/// Returns the date and time in UTC.
pub(crate) fn utc(time: SystemTime) -> Zoned {
    let (seconds, nanos) = epoch(time);
    in_zone(seconds, nanos, TimeZone::UTC)
}

/// Returns the zone that `TZ` defines in POSIX syntax, such as `EST5EDT,M3.2.0,M11.1.0`. Names from
/// the zone database, such as `Europe/Paris`, are treated as UTC.
pub(crate) fn local_zone() -> TimeZone {
    let text = std::env::var("TZ").unwrap_or_default();
    let text = text.trim_start_matches(':');
    // Summer time without rules follows those of the United States.
    TimeZone::posix(text)
        .or_else(|_| TimeZone::posix(&format!("{text},M3.2.0,M11.1.0")))
        .unwrap_or(TimeZone::UTC)
}

/// Formats a time with a `strftime` format.
pub(crate) fn format(at: &Zoned, format: &str) -> String {
    let config = Config::new().custom(PosixCustom::new()).lenient(true);
    BrokenDownTime::from(at).to_string_with_config(&config, format).unwrap_or_default()
}

/// Parses a UTC date `YYYY-MM-DD` with an optional time, or `@SECONDS` since 1970.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    if let Some(seconds) = text.strip_prefix('@') {
        return from_epoch(seconds.parse().ok()?);
    }
    let numbers = text.split(['-', ' ', 'T', ':', 'Z']).filter(|part| !part.is_empty());
    let numbers = numbers.map(str::parse).collect::<Result<Vec<i64>, _>>().ok()?;
    let [year, month, day, rest @ ..] = numbers.as_slice() else { return None };
    let at = |n: usize| rest.get(n).copied().unwrap_or_default();
    from_epoch(moment([*year, *month, *day, at(0), at(1), at(2)], TimeZone::UTC)?)
}

/// Converts year, month, day, hour, minute and second in a zone to seconds since 1970. As in C, they
/// may be out of range: month 13 is January of the next year.
pub(crate) fn moment(parts: [i64; 6], zone: TimeZone) -> Option<i64> {
    let [year, month, day, hour, minute, second] = parts;
    let span = Span::new().try_months(month - 1).ok()?.try_days(day - 1).ok()?;
    let span = span.try_hours(hour).ok()?.try_minutes(minute).ok()?.try_seconds(second).ok()?;
    let start = civil::Date::new(i16::try_from(year).ok()?, 1, 1).ok()?.at(0, 0, 0, 0);
    Some(start.checked_add(span).ok()?.to_zoned(zone).ok()?.timestamp().as_second())
}

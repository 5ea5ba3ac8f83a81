//! `date`: dates and times as strings.
//!
//! A date is written as in RFC 3339, such as `2026-03-01T12:00:00Z`. A named zone follows in
//! brackets: `2026-03-01T13:00:00+01:00[Europe/Berlin]` (RFC 9557). Functions also accept
//! `2026-03-01`, and interpret times without a zone as UTC.

use jiff::civil::{Time, Weekday};
use jiff::fmt::rfc2822;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::fmt::temporal::{Pieces, PiecesOffset};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan, Unit, Zoned};
use wattle_rt::{Code, Failure, Run, capability, quote};

use crate::QUOTED;

capability! {
    /// Dates as RFC 3339, `2026-03-01T12:00:00Z`, followed by `[Zone/Name]` if zoned; a bare date
    /// means midnight UTC; formats are those of strftime, units seconds to years.
    pub const DATE: "date" 1;

    /// Returns the current time in UTC, to the second
    #[example = r#"(when (> (date.diff "2020-01-01" (date.now) "days") 0) (out "later"))"# => "later"]
    #[prompt(signature)]
    #[effect(reads)]
    #[touches(nothing)]
    fn now() -> date: str = now;

    /// Parses a date in a strftime format (default RFC 3339 or 2822), in a zone (default UTC) if
    /// the string has none
    #[example = r#"(ret (date.parse "1.3.2026 9:30" "%d.%m.%Y %H:%M" "Europe/Berlin"))"# => "2026-03-01T09:30:00+01:00[Europe/Berlin]"]
    #[prompt(signature)]
    fn parse(s: str, format: opt_str, zone: opt_str) -> date: str ! EPARSE ENOENT = parse;

    /// Formats a date with a strftime format (default RFC 3339), in a zone or its own
    #[example = r#"(ret (date.format "2026-03-01T12:00:00Z" "%A, %d %b %Y %H:%M" "Europe/Berlin"))"# => "Sunday, 01 Mar 2026 13:00"]
    #[prompt(signature)]
    fn format(date: str, format: opt_str, zone: opt_str) -> ptr: str ! EPARSE ENOENT = format_date;

    /// Adds n units: seconds, minutes, hours, days, weeks, months or years; a day past the month's
    /// end becomes its last day
    #[example = r#"(ret (date.add "2026-01-31" 1 "months"))"# => "2026-02-28T00:00:00Z"]
    #[prompt(signature)]
    fn add(date: str, n: int, unit: str) -> date: str ! EPARSE EBOUND = add;

    /// Returns the number of whole units (as in `date.add`) between two dates; negative if to is
    /// earlier
    #[example = r#"(ret (str.from_int (date.diff "2026-03-01" "2026-03-31T18:00:00Z" "days")))"# => "30"]
    #[prompt(signature)]
    fn diff(from: str, to: str, unit: str) -> n: int ! EPARSE EBOUND = diff;

    /// Returns the weekday, 1 (Monday) to 7 (Sunday)
    #[example = r#"(ret (str.from_int (date.weekday "2026-03-01")))"# => "7"]
    #[prompt(signature)]
    fn weekday(date: str) -> n: int ! EPARSE = weekday;
}

/// Maximum length of a date or a format, in bytes.
const MAX_LENGTH: usize = 1_024;

fn invalid(s: &str, why: impl std::fmt::Display) -> Failure {
    let reason = "not a date; write 2026-03-01, 2026-03-01T12:00:00Z or 2026-03-01T12:00:00+01:00";
    Failure::new(Code::EPARSE, format!("{} is {reason}: {why}", quote(s, QUOTED)))
}

/// Returns the time zone with the given name, or UTC if the name is missing or empty.
fn zone(name: Option<&str>) -> Result<TimeZone, Failure> {
    match name {
        None | Some("" | "UTC" | "Z") => Ok(TimeZone::UTC),
        Some(name) => TimeZone::get(name).map_err(|_| {
            let reason =
                "not a time zone; use a name of the IANA database, such as Europe/Berlin or UTC";
            Failure::new(Code::ENOENT, format!("{} is {reason}", quote(name, QUOTED)))
        }),
    }
}

/// Parses a date in any form that the functions accept. A string without an offset is interpreted
/// in `zone`.
fn read(s: &str, zone: TimeZone) -> Result<Zoned, Failure> {
    let s = s.trim();
    if s.len() > MAX_LENGTH {
        return Err(invalid(s, format!("it has {} bytes", s.len())));
    }
    let bad = |error: jiff::Error| invalid(s, error);
    // The range contains only dates that every time zone can represent.
    let beyond = |_: jiff::Error| {
        let range = "outside the range of dates, -9999-01-03 to 9999-12-30";
        Failure::new(Code::EPARSE, format!("{} is {range}", quote(s, QUOTED)))
    };
    let pieces = match Pieces::parse(s) {
        Ok(pieces) => pieces,
        Err(error) => {
            let is_seconds = (9..=13).contains(&s.len()) && s.bytes().all(|b| b.is_ascii_digit());
            return rfc2822::parse(s).map_err(|_| {
                if is_seconds {
                    invalid(s, "seconds since 1970 are read by (date.parse S \"%s\")")
                } else {
                    bad(error)
                }
            });
        }
    };
    let local = pieces.date().to_datetime(pieces.time().unwrap_or(Time::midnight()));
    if pieces.time_zone_annotation().is_some() {
        // An offset in the text must match the named zone.
        return s.parse().map_err(bad);
    }
    match pieces.offset() {
        None => local.to_zoned(zone).map_err(beyond),
        Some(PiecesOffset::Zulu) => local.to_zoned(TimeZone::UTC).map_err(beyond),
        Some(offset) => local.to_zoned(TimeZone::fixed(offset.to_numeric_offset())).map_err(beyond),
    }
}

/// Formats a date in the form that the functions return.
fn render(date: &Zoned) -> String {
    let zone = date.time_zone();
    if *zone == TimeZone::UTC {
        date.timestamp().to_string()
    } else if zone.iana_name().is_some() {
        date.to_string()
    } else {
        date.timestamp().display_with_offset(date.offset()).to_string()
    }
}

fn now(run: &mut Run) -> Result<String, Failure> {
    let seconds = crate::sys::now_ms(run).div_euclid(1_000);
    Ok(Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX).to_string())
}

fn parse(
    _: &mut Run,
    s: &str,
    format: Option<&str>,
    name: Option<&str>,
) -> Result<String, Failure> {
    let zone = zone(name)?;
    let date = match format.filter(|format| !format.is_empty()) {
        None => read(s, zone)?,
        Some(format) => fields(s, format, zone)?,
    };
    Ok(render(&date))
}

/// Rejects a format without a directive. Such a format is probably in another notation, such as
/// `YYYY-MM-DD`, and would be returned unchanged.
fn require_directive(format: &str) -> Result<(), Failure> {
    if format.contains('%') {
        return Ok(());
    }
    let reason = "not a strftime format: it has no directive, such as %Y, %m, %d, %H, %M or %S";
    Err(Failure::new(Code::EPARSE, format!("{} is {reason}", quote(format, QUOTED))))
}

/// Parses a date in a strftime format. A missing zone defaults to `zone`, and a missing time to
/// midnight.
fn fields(s: &str, format: &str, zone: TimeZone) -> Result<Zoned, Failure> {
    let bad = |error: jiff::Error| {
        Failure::new(
            Code::EPARSE,
            format!(
                "{} is not a date of the format {}: {error}",
                quote(s, QUOTED),
                quote(format, QUOTED)
            ),
        )
    };
    if s.len().max(format.len()) > MAX_LENGTH {
        return Err(invalid(s, format!("a date and its format have at most {MAX_LENGTH} bytes")));
    }
    require_directive(format)?;
    let broken = BrokenDownTime::parse(format, s.trim()).map_err(bad)?;
    if let Ok(timestamp) = broken.to_timestamp() {
        // The text contains an offset or the name of a zone, or is a number of seconds since 1970.
        let offset = broken.offset().map(TimeZone::fixed);
        return match broken.to_zoned() {
            Ok(date) if broken.iana_time_zone().is_some() => Ok(date),
            _ => Ok(timestamp.to_zoned(offset.unwrap_or(TimeZone::UTC))),
        };
    }
    let date = broken.to_date().map_err(bad)?;
    date.to_datetime(broken.to_time().unwrap_or(Time::midnight())).to_zoned(zone).map_err(bad)
}

fn format_date(
    _: &mut Run,
    date: &str,
    format: Option<&str>,
    name: Option<&str>,
) -> Result<String, Failure> {
    let mut date = read(date, TimeZone::UTC)?;
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        date = date.with_time_zone(zone(Some(name))?);
    }
    match format.filter(|format| !format.is_empty()) {
        None => Ok(render(&date)),
        Some(format) if format.len() > MAX_LENGTH => Err(Failure::new(
            Code::EPARSE,
            format!("the format has {} bytes, more than {MAX_LENGTH}", format.len()),
        )),
        Some(format) => {
            require_directive(format)?;
            BrokenDownTime::from(&date).to_string(format).map_err(|error| {
                Failure::new(
                    Code::EPARSE,
                    format!("{} is not a strftime format: {error}", quote(format, QUOTED)),
                )
            })
        }
    }
}

/// Parses the name of a unit, which may be singular or plural.
fn unit(name: &str) -> Result<Unit, Failure> {
    Ok(match name.strip_suffix('s').unwrap_or(name) {
        "second" => Unit::Second,
        "minute" => Unit::Minute,
        "hour" => Unit::Hour,
        "day" => Unit::Day,
        "week" => Unit::Week,
        "month" => Unit::Month,
        "year" => Unit::Year,
        _ => {
            let reason = "not a unit; use seconds, minutes, hours, days, weeks, months or years";
            return Err(Failure::new(Code::EPARSE, format!("{} is {reason}", quote(name, QUOTED))));
        }
    })
}

fn add(_: &mut Run, date: &str, n: i32, name: &str) -> Result<String, Failure> {
    let date = read(date, TimeZone::UTC)?;
    let n = i64::from(n);
    let span = match unit(name)? {
        Unit::Second => Ok(n.seconds()),
        Unit::Minute => Ok(n.minutes()),
        Unit::Hour => Span::new().try_hours(n),
        Unit::Day => Span::new().try_days(n),
        Unit::Week => Span::new().try_weeks(n),
        Unit::Month => Span::new().try_months(n),
        _ => Span::new().try_years(n),
    };
    let sum = span.and_then(|span| date.checked_add(span));
    sum.map(|date| render(&date)).map_err(|_| {
        Failure::new(
            Code::EBOUND,
            format!("{} plus {n} {name} is outside the years -9999 to 9999", render(&date)),
        )
    })
}

fn diff(_: &mut Run, from: &str, to: &str, name: &str) -> Result<i32, Failure> {
    let (from, to, unit) = (read(from, TimeZone::UTC)?, read(to, TimeZone::UTC)?, unit(name)?);
    let far = || {
        let message = format!(
            "the number of {name} from {} to {} is out of the integer range",
            render(&from),
            render(&to)
        );
        Failure::new(Code::EBOUND, message)
    };
    // Days and larger units are counted in the first date's zone.
    let there = to.with_time_zone(from.time_zone().clone());
    let span = from.until((unit, &there)).map_err(|_| far())?;
    let n = match unit {
        Unit::Second => span.get_seconds(),
        Unit::Minute => span.get_minutes(),
        Unit::Hour => span.get_hours().into(),
        Unit::Day => span.get_days().into(),
        Unit::Week => span.get_weeks().into(),
        Unit::Month => span.get_months().into(),
        _ => span.get_years().into(),
    };
    i32::try_from(n).map_err(|_| far())
}

fn weekday(_: &mut Run, date: &str) -> Result<i32, Failure> {
    let weekday: Weekday = read(date, TimeZone::UTC)?.weekday();
    Ok(weekday.to_monday_one_offset().into())
}
